//! Labels along arrows, as many as find room.

use catraca_trace::Payload;

use crate::layout::Layout;
use crate::svg::{Point, Svg, text_width};

const SIZE: f64 = 11.0;
/// Labels are cut to this many letters.
const LETTERS: usize = 26;
/// Where on its arrow a label may sit, the best place first.
const PLACES: [f64; 9] = [0.45, 0.36, 0.54, 0.28, 0.62, 0.72, 0.2, 0.8, 0.14];
/// A label does not come closer to the line of a node than this, if it can.
const LINE_CLEARANCE: f64 = 15.0;

/// The labels so far, each as points along its text.
#[derive(Default)]
pub(crate) struct Labels {
    taken: Vec<Point>,
}

impl Labels {
    /// Keeps a place free for a text that is written there anyway.
    pub(crate) fn reserve(&mut self, middle: Point, direction: (f64, f64), width: f64) {
        self.taken.extend(span(middle, direction, width));
    }

    /// Writes what the message says along its arrow, or only its kind, or nothing, as there is room.
    pub(crate) fn add(
        &mut self,
        svg: &mut Svg,
        course: (Point, Point),
        message: &Payload,
        layout: &Layout,
        colour: &str,
    ) {
        let Some(line) = visible_part(course, layout) else { return };
        let texts = [shortened(&message.to_string()), shortened(&message.kind)];
        let found = texts.iter().find_map(|text| Some((text, self.room(text, line, layout)?)));
        if let Some((text, (middle, span))) = found {
            self.taken.extend(span);
            let ((x1, y1), (x2, y2)) = line;
            let degrees = ((y2 - y1) / (x2 - x1)).atan().to_degrees();
            let style = format!(r#"class="label" fill="{colour}""#);
            svg.turned_text(middle, degrees, text, SIZE, style);
        }
    }

    /// Where on the line the text fits best, if it does: its middle, and the points it takes.
    fn room(
        &self,
        text: &str,
        (from, to): (Point, Point),
        layout: &Layout,
    ) -> Option<(Point, Vec<Point>)> {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy);
        let (along_x, along_y) = (dx / length, dy / length);
        // Upwards from the line, so that the text stands on it.
        let (up_x, up_y) = (along_y * dx.signum(), -along_x.abs());
        let width = text_width(text, SIZE);
        let margin = width / 2.0 / length;
        PLACES
            .iter()
            .filter(|&&share| margin <= share && share <= 1.0 - margin)
            .map(|share| {
                let middle = (from.0 + share * dx + 3.0 * up_x, from.1 + share * dy + 3.0 * up_y);
                (middle, span(middle, (along_x, along_y), width))
            })
            .filter(|(_, span)| self.is_free(span))
            .min_by_key(|(_, span)| near_lines(span, layout))
    }

    fn is_free(&self, span: &[Point]) -> bool {
        let close = |a: &Point, b: &Point| (a.0 - b.0).hypot(a.1 - b.1) < SIZE;
        !self.taken.iter().any(|taken| span.iter().any(|point| close(point, taken)))
    }
}

/// Points along the middle of a text, close enough to represent it.
fn span(middle: Point, (dx, dy): (f64, f64), width: f64) -> Vec<Point> {
    let steps = (width / SIZE).ceil().max(1.0);
    let shares = (0..=steps as usize).map(|step| step as f64 / steps - 0.5);
    shares.map(|share| (middle.0 + share * width * dx, middle.1 + share * width * dy)).collect()
}

fn near_lines(span: &[Point], layout: &Layout) -> usize {
    span.iter().filter(|point| layout.off_line(point.1) < LINE_CLEARANCE).count()
}

/// The part of an arrow that is inside the plot.
fn visible_part((from, to): (Point, Point), layout: &Layout) -> Option<(Point, Point)> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    if dx.hypot(dy) < 1.0 {
        return None;
    }
    let share = |x: f64| if dx.abs() < 0.1 { 0.0 } else { (x - from.0) / dx };
    let at = |share: f64| (from.0 + share * dx, from.1 + share * dy);
    let begin = if from.0 < layout.left() { share(layout.left()) } else { 0.0 };
    let end = if to.0 > layout.right() { share(layout.right()) } else { 1.0 };
    (begin < end).then(|| (at(begin), at(end)))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LETTERS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagram::DiagramOptions;
    use crate::layout::Window;

    /// The labels that are written when one message after the other takes the same way.
    fn written(messages: &[(&str, &str)], course: (Point, Point)) -> Vec<String> {
        let window = Window::choose(&[0, 10], &DiagramOptions::default()).unwrap();
        let layout = Layout::new(window, 2);
        let (mut svg, mut labels) = (Svg::new(), Labels::default());
        for &(kind, body) in messages {
            let message = Payload { kind: kind.to_owned(), body: body.parse().unwrap() };
            labels.add(&mut svg, course, &message, &layout, "black");
        }
        let picture = svg.finish(10, 10);
        let texts = picture.svg().lines().filter(|line| line.starts_with("<text"));
        let text = |line: &str| line.split(['<', '>']).nth(2).map(str::to_owned);
        texts.filter_map(text).collect()
    }

    #[test]
    fn a_label_is_shortened_to_its_kind_or_left_out_where_there_is_no_room() {
        let token = [("token", r#"{"token":123456}"#)];
        assert_eq!(written(&token, ((200.0, 40.0), (350.0, 130.0))), ["token 123456"]);
        assert_eq!(written(&token, ((200.0, 40.0), (250.0, 80.0))), ["token"]);
        assert_eq!(written(&token, ((200.0, 40.0), (210.0, 60.0))), [""; 0]);
        assert_eq!(written(&token, ((200.0, 40.0), (200.0, 40.0))), [""; 0]);
    }

    #[test]
    fn labels_do_not_cover_each_other() {
        let twice = [("reply", "null"), ("reply", "null")];
        assert_eq!(written(&twice, ((200.0, 40.0), (245.0, 80.0))), ["reply"]);
        assert_eq!(written(&twice, ((200.0, 40.0), (350.0, 130.0))), ["reply", "reply"]);
    }

    #[test]
    fn only_the_part_of_an_arrow_inside_the_plot_is_labelled() {
        let reply = [("reply", "null")];
        assert_eq!(written(&reply, ((-900.0, 40.0), (90.0, 80.0))), [""; 0]);
        assert_eq!(written(&reply, ((-900.0, 40.0), (400.0, 80.0))), ["reply"]);
    }

    #[test]
    fn long_labels_are_cut() {
        assert_eq!(shortened("request 3"), "request 3");
        let long = "é".repeat(40);
        assert_eq!(shortened(&long).chars().count(), LETTERS + 1);
    }
}
