//! The lines of a chart: how each looks, and how those that coincide are told apart.

use std::collections::BTreeMap;

use crate::svg::{PALETTE, Point, Svg};

/// With the colours this makes many more looks than anybody can tell apart; the first sixteen
/// differ in more than one way.
const DASHES: [&str; 3] = ["", "8 4", "2 4"];
pub(crate) const MARKERS: [Marker; 5] =
    [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross];

/// Points that are nearer than this cannot be told apart.
const SAME: f64 = 2.0;
/// Where lines coincide each shows for so long in turn.
const STRIPE: f64 = 10.0;
/// Where points coincide their markers stand so far from each other.
const ASIDE: f64 = 9.0;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
}

/// How a line looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Its place among the lines of the chart.
    place: usize,
    pub(crate) colour: &'static str,
    pub(crate) has_markers: bool,
}

impl Look {
    /// Of the line at this place, with the colour of this number if it is not to have that of its place.
    pub(crate) fn new(place: usize, colour: Option<usize>, has_markers: bool) -> Self {
        let colour = PALETTE[colour.unwrap_or(place) % PALETTE.len()];
        Look { place, colour, has_markers }
    }

    /// Its style where it is alone.
    pub(crate) fn style(&self) -> String {
        let dashes = DASHES[(self.place + 2 * (self.place / PALETTE.len())) % DASHES.len()];
        format!(r#"stroke="{}" stroke-width="2" stroke-dasharray="{dashes}""#, self.colour)
            .replace(r#" stroke-dasharray="""#, "")
    }

    /// Its style where it shares its way with others, of which so many come before it.
    fn striped(&self, before: usize, all: usize) -> String {
        let (gap, offset) = (STRIPE * (all - 1) as f64, STRIPE * (all - before) as f64);
        format!(
            r#"stroke="{}" stroke-width="3" stroke-dasharray="{STRIPE} {gap}" stroke-dashoffset="{offset}""#,
            self.colour
        )
    }

    pub(crate) fn draw_marker(&self, svg: &mut Svg, at: Point) {
        let fill = format!(r##"class="marker" fill="{}" stroke="#ffffff""##, self.colour);
        let stroke = format!(r#"class="marker" stroke="{}" stroke-width="2.4""#, self.colour);
        draw_marker(svg, MARKERS[self.place % MARKERS.len()], at, &fill, &stroke);
    }
}

/// `fill` is for those that have an inside, `stroke` for the cross.
fn draw_marker(svg: &mut Svg, marker: Marker, at: Point, fill: &str, stroke: &str) {
    let (x, y) = at;
    match marker {
        Marker::Circle => svg.circle(at, 4.5, fill),
        Marker::Square => svg.rect((x - 4.0, y - 4.0), (8.0, 8.0), fill),
        Marker::Triangle => {
            svg.polygon(&[(x, y - 5.5), (x + 5.0, y + 4.0), (x - 5.0, y + 4.0)], fill);
        }
        Marker::Diamond => {
            let (r, at) = (5.8, |dx: f64, dy: f64| (x + dx, y + dy));
            svg.polygon(&[at(0.0, -r), at(r, 0.0), at(0.0, r), at(-r, 0.0)], fill);
        }
        Marker::Cross => svg.cross(at, 4.2, stroke),
    }
}

/// Lines with their points as places in the picture.
pub(crate) struct Lines {
    lines: Vec<(Look, Vec<Point>)>,
    /// By line and piece, who goes the same way.
    pieces: Vec<Vec<Vec<usize>>>,
    /// By line and point, which others have a marker at the same place.
    points: Vec<Vec<Vec<usize>>>,
}

impl Lines {
    pub(crate) fn new(lines: Vec<(Look, Vec<Point>)>) -> Self {
        let piece = |two: &[Point]| [two[0], two[1]];
        let ways: Vec<Vec<[Point; 2]>> =
            lines.iter().map(|(_, points)| points.windows(2).map(piece).collect()).collect();
        let marked: Vec<Vec<[Point; 1]>> = lines
            .iter()
            .map(|(look, points)| {
                points.iter().filter(|_| look.has_markers).map(|&point| [point]).collect()
            })
            .collect();
        Lines { pieces: sharers(&ways), points: sharers(&marked), lines }
    }

    /// Whether any two of them coincide somewhere.
    pub(crate) fn coincide(&self) -> bool {
        self.pieces.iter().flatten().any(|sharers| sharers.len() > 1)
    }

    /// Draws a line: where it is alone in its own way, elsewhere in turn with the others.
    pub(crate) fn draw(&self, svg: &mut Svg, line: usize) {
        let (look, points) = &self.lines[line];
        let pieces = &self.pieces[line];
        let mut from = 0;
        for together in pieces.chunk_by(|one, next| one == next) {
            let sharers = &together[0];
            let style = match sharers.iter().position(|&one| one == line) {
                Some(before) if sharers.len() > 1 => look.striped(before, sharers.len()),
                _ => look.style(),
            };
            let way = &points[from..=from + together.len()];
            svg.polyline(way, format_args!(r#"fill="none" {style}"#));
            from += together.len();
        }
    }

    /// Where the marker of a point is: beside those of others that would cover it.
    pub(crate) fn marker(&self, line: usize, point: usize) -> Point {
        let (x, y) = self.lines[line].1[point];
        let sharers = self.points[line].get(point).map_or(&[][..], Vec::as_slice);
        match sharers.iter().position(|&one| one == line) {
            Some(before) => (x + ASIDE * (before as f64 - (sharers.len() - 1) as f64 / 2.0), y),
            None => (x, y),
        }
    }
}

/// For each part of each line, the lines that have a part at the same place, itself among them, in order.
fn sharers<const N: usize>(lines: &[Vec<[Point; N]>]) -> Vec<Vec<Vec<usize>>> {
    // By column of the first point, so that not each part is compared with each.
    let column = |x: f64| (x / SAME).floor() as i64;
    let mut columns: BTreeMap<i64, Vec<(usize, &[Point; N])>> = BTreeMap::new();
    for (line, parts) in lines.iter().enumerate() {
        for part in parts {
            columns.entry(column(part[0].0)).or_default().push((line, part));
        }
    }
    let is_same = |a: &[Point; N], b: &[Point; N]| {
        a.iter().zip(b).all(|(a, b)| (a.0 - b.0).abs() < SAME && (a.1 - b.1).abs() < SAME)
    };
    let of = |part: &[Point; N]| {
        let near = column(part[0].0);
        let near = columns.range(near - 1..=near + 1).flat_map(|(_, parts)| parts);
        let mut found: Vec<usize> =
            near.filter(|(_, other)| is_same(part, other)).map(|(line, _)| *line).collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    lines.iter().map(|parts| parts.iter().map(of).collect()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn lines(points: &[&[Point]]) -> Lines {
        let line =
            |(place, points): (usize, &&[Point])| (Look::new(place, None, true), points.to_vec());
        Lines::new(points.iter().enumerate().map(line).collect())
    }

    fn drawn(lines: &Lines, line: usize) -> Vec<String> {
        let mut svg = Svg::new();
        lines.draw(&mut svg, line);
        let picture = svg.finish(10, 10);
        let drawn = picture.svg().lines().filter(|line| line.starts_with("<polyline"));
        drawn.map(str::to_string).collect()
    }

    #[test]
    fn sixteen_lines_all_look_different() {
        let look = |place: usize| (Look::new(place, None, true).style(), place % MARKERS.len());
        assert_eq!((0..16).map(look).collect::<BTreeSet<_>>().len(), 16);
    }

    #[test]
    fn lines_that_part_share_stripes_only_as_long_as_they_are_together() {
        let both = lines(&[
            &[(0.0, 0.0), (100.0, 50.0), (200.0, 90.0)],
            &[(0.5, 0.0), (100.0, 51.0), (200.0, 10.0)],
        ]);
        assert!(both.coincide());
        let (one, other) = (drawn(&both, 0), drawn(&both, 1));
        assert_eq!((one.len(), other.len()), (2, 2));
        assert!(one[0].contains(r#"stroke-dasharray="10 10" stroke-dashoffset="20""#), "{one:?}");
        assert!(other[0].contains(r#"stroke-dashoffset="10""#), "{other:?}");
        assert!(!one[1].contains("dashoffset") && !other[1].contains("dashoffset"));
        // Both markers of a shared point are seen.
        assert_eq!([both.marker(0, 1), both.marker(1, 1)], [(95.5, 50.0), (104.5, 51.0)]);
        assert_eq!(both.marker(0, 2), (200.0, 90.0));
    }

    #[test]
    fn lines_that_only_cross_are_left_alone() {
        let crossing = lines(&[&[(0.0, 0.0), (100.0, 100.0)], &[(0.0, 100.0), (100.0, 0.0)]]);
        assert!(!crossing.coincide());
        assert_eq!(drawn(&crossing, 1).len(), 1);
    }

    #[test]
    fn a_line_of_one_point_or_none_has_no_pieces() {
        let few = lines(&[&[(1.0, 1.0)], &[]]);
        assert!(drawn(&few, 0).is_empty() && drawn(&few, 1).is_empty());
        assert_eq!(few.marker(0, 0), (1.0, 1.0));
    }
}
