//! A picture as a PDF file of one page: lines and letters as outlines, so that no font is needed to see it.
//!
//! What is written is the picture as the renderer for PNG understands it, so both look the same. A page
//! has one stream of drawing operators (PDF 1.7, section 8); letters are shapes among others.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use resvg::tiny_skia::{Path as Shape, PathSegment, Point, Transform};
use resvg::usvg::{
    ClipPath, Color, Fill, FillRule, Group, LineCap, LineJoin, LinearGradient, Node, Paint,
    PaintOrder, Path, Stroke, Tree,
};

/// A pixel is so many points, the unit of PDF.
const POINTS: f32 = 0.75;
/// The last object that every file has: catalogue, pages, page, content, information.
const FIXED: usize = 5;

/// The picture as a file.
pub(crate) fn pdf(tree: &Tree) -> Vec<u8> {
    let (width, height) = (tree.size().width() * POINTS, tree.size().height() * POINTS);
    let mut page = Page::default();
    // PDF has its origin below.
    page.say(format_args!("{POINTS} 0 0 -{POINTS} 0 {} cm", Number(height)));
    page.group(tree.root(), 1.0);
    page.file(width, height)
}

/// A page in the making.
#[derive(Default)]
struct Page {
    content: String,
    /// How opaque, in thousandths; the place in the list is the name of the state.
    opacities: Vec<u32>,
    fades: Vec<Fade>,
}

/// A mask that lets less and less through from one point to another.
#[derive(Clone, Copy)]
struct Fade {
    from: Point,
    to: Point,
    opacity: (f32, f32),
}

impl Page {
    fn say(&mut self, operator: impl std::fmt::Display) {
        writeln!(self.content, "{operator}").unwrap_or_default(); // Writing to a String cannot fail.
    }

    /// What a group draws; `opacity` is that of the groups around it.
    fn group(&mut self, group: &Group, opacity: f32) {
        self.say("q");
        self.transform(group.transform());
        if let Some(clip) = group.clip_path() {
            self.clip(clip);
        }
        let opacity = opacity * group.opacity().get();
        for child in group.children() {
            match child {
                Node::Group(inner) => self.group(inner, opacity),
                Node::Path(path) if path.is_visible() => self.path(path, opacity),
                Node::Text(text) => self.group(text.flattened(), opacity),
                // Pictures have no images in them.
                Node::Path(_) | Node::Image(_) => {}
            }
        }
        self.say("Q");
    }

    fn transform(&mut self, by: Transform) {
        if !by.is_identity() {
            let numbers =
                [by.sx, by.ky, by.kx, by.sy, by.tx, by.ty].map(|one| Number(one).to_string());
            self.say(format_args!("{} cm", numbers.join(" ")));
        }
    }

    /// Nothing is drawn outside of it, until the group ends.
    fn clip(&mut self, clip: &ClipPath) {
        self.outlines(clip.root(), clip.transform());
        self.say("W n");
    }

    fn outlines(&mut self, group: &Group, transform: Transform) {
        let transform = transform.pre_concat(group.transform());
        for child in group.children() {
            match child {
                Node::Group(inner) => self.outlines(inner, transform),
                Node::Path(path) => {
                    if let Some(shape) = path.data().clone().transform(transform) {
                        self.shape(&shape);
                    }
                }
                Node::Text(_) | Node::Image(_) => {}
            }
        }
    }

    fn path(&mut self, path: &Path, opacity: f32) {
        let fill = |page: &mut Self| {
            if let Some(fill) = path.fill() {
                page.fill(path.data(), fill, opacity);
            }
        };
        let stroke = |page: &mut Self| {
            if let Some(stroke) = path.stroke() {
                page.stroke(path.data(), stroke, opacity);
            }
        };
        match path.paint_order() {
            PaintOrder::FillAndStroke => {
                fill(self);
                stroke(self);
            }
            PaintOrder::StrokeAndFill => {
                stroke(self);
                fill(self);
            }
        }
    }

    fn fill(&mut self, shape: &Shape, fill: &Fill, opacity: f32) {
        self.say("q");
        let colour = self.paint(fill.paint(), fill.opacity().get() * opacity);
        self.say(format_args!("{} rg", Colour(colour)));
        self.shape(shape);
        self.say(match fill.rule() {
            FillRule::NonZero => "f",
            FillRule::EvenOdd => "f*",
        });
        self.say("Q");
    }

    fn stroke(&mut self, shape: &Shape, stroke: &Stroke, opacity: f32) {
        self.say("q");
        let colour = self.paint(stroke.paint(), stroke.opacity().get() * opacity);
        self.say(format_args!("{} RG {} w", Colour(colour), Number(stroke.width().get())));
        let cap = match stroke.linecap() {
            LineCap::Butt => 0,
            LineCap::Round => 1,
            LineCap::Square => 2,
        };
        let join = match stroke.linejoin() {
            LineJoin::Miter | LineJoin::MiterClip => 0,
            LineJoin::Round => 1,
            LineJoin::Bevel => 2,
        };
        self.say(format_args!("{cap} J {join} j {} M", Number(stroke.miterlimit().get())));
        if let Some(dashes) = stroke.dasharray() {
            let dashes: Vec<String> = dashes.iter().map(|&one| Number(one).to_string()).collect();
            // A negative phase is not allowed, and the pattern repeats.
            let length: f32 = stroke.dasharray().into_iter().flatten().sum();
            let phase = stroke.dashoffset().rem_euclid(length.max(0.001));
            self.say(format_args!("[{}] {} d", dashes.join(" "), Number(phase)));
        }
        self.shape(shape);
        self.say("S");
        self.say("Q");
    }

    /// Prepares for a paint, and says which colour it has. Gradients of our pictures fade one colour away.
    fn paint(&mut self, paint: &Paint, opacity: f32) -> Color {
        if opacity < 0.9995 {
            let thousandths = (opacity * 1000.0).round() as u32;
            let known = self.opacities.iter().position(|&one| one == thousandths);
            let place = known.unwrap_or_else(|| {
                self.opacities.push(thousandths);
                self.opacities.len() - 1
            });
            self.say(format_args!("/O{place} gs"));
        }
        match paint {
            Paint::Color(colour) => *colour,
            Paint::LinearGradient(gradient) => self.fade(gradient),
            Paint::RadialGradient(_) | Paint::Pattern(_) => Color::black(),
        }
    }

    fn fade(&mut self, gradient: &LinearGradient) -> Color {
        let stops = gradient.stops();
        let (Some(first), Some(last)) = (stops.first(), stops.last()) else {
            return Color::black();
        };
        let mut ends = [
            Point::from_xy(gradient.x1(), gradient.y1()),
            Point::from_xy(gradient.x2(), gradient.y2()),
        ];
        gradient.transform().map_points(&mut ends);
        let opacity = (first.opacity().get(), last.opacity().get());
        self.fades.push(Fade { from: ends[0], to: ends[1], opacity });
        self.say(format_args!("/F{} gs", self.fades.len() - 1));
        first.color()
    }

    fn shape(&mut self, shape: &Shape) {
        let mut at = Point::from_xy(0.0, 0.0);
        for segment in shape.segments() {
            match segment {
                PathSegment::MoveTo(to) => self.points("m", &[to]),
                PathSegment::LineTo(to) => self.points("l", &[to]),
                PathSegment::QuadTo(bend, to) => {
                    // PDF has curves with two bends only.
                    let towards = |end: Point| {
                        let part = |end: f32, bend: f32| end + 2.0 / 3.0 * (bend - end);
                        Point::from_xy(part(end.x, bend.x), part(end.y, bend.y))
                    };
                    self.points("c", &[towards(at), towards(to), to]);
                }
                PathSegment::CubicTo(first, second, to) => self.points("c", &[first, second, to]),
                PathSegment::Close => self.say("h"),
            }
            if let PathSegment::MoveTo(to)
            | PathSegment::LineTo(to)
            | PathSegment::QuadTo(_, to)
            | PathSegment::CubicTo(_, _, to) = segment
            {
                at = to;
            }
        }
    }

    fn points(&mut self, operator: &str, points: &[Point]) {
        for point in points {
            write!(self.content, "{} {} ", Number(point.x), Number(point.y)).unwrap_or_default();
        }
        self.say(operator);
    }

    /// The objects of the file: the fixed ones, then a mask and its shading for each fade.
    fn file(&self, width: f32, height: f32) -> Vec<u8> {
        let opacity = |(place, thousandths): (usize, &u32)| {
            let opacity = Number(*thousandths as f32 / 1000.0);
            format!("/O{place} << /ca {opacity} /CA {opacity} >>")
        };
        let fade = |place: usize| {
            let mask = FIXED + 1 + place;
            format!("/F{place} << /SMask << /S /Luminosity /G {mask} 0 R >> >>")
        };
        let states = self.opacities.iter().enumerate().map(opacity);
        let states: Vec<String> = states.chain((0..self.fades.len()).map(fade)).collect();
        let mut file = File::new();
        file.object("<< /Type /Catalog /Pages 2 0 R >>");
        file.object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>");
        file.object(&format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Contents 4 0 R /Resources << \
             /ExtGState << {} >> >> /Group << /S /Transparency /CS /DeviceRGB >> >>",
            Number(width),
            Number(height),
            states.join(" ")
        ));
        file.stream("", self.content.as_bytes());
        file.object("<< /Producer (catraca) >>");
        for fade in &self.fades {
            file.stream(&fade.mask(), b"/Shade sh");
        }
        file.finish()
    }
}

impl Fade {
    /// A form whose lightness is how much is let through.
    fn mask(&self) -> String {
        let coordinates = [self.from.x, self.from.y, self.to.x, self.to.y];
        let coordinates = coordinates.map(|one| Number(one).to_string()).join(" ");
        let (begin, end) = (Number(self.opacity.0), Number(self.opacity.1));
        format!(
            "/Type /XObject /Subtype /Form /BBox [-100000 -100000 100000 100000] \
             /Group << /S /Transparency /CS /DeviceGray >> /Resources << /Shading << /Shade << \
             /ShadingType 2 /ColorSpace /DeviceGray /Coords [{coordinates}] /Extend [true true] \
             /Function << /FunctionType 2 /Domain [0 1] /C0 [{begin}] /C1 [{end}] /N 1 >> >> >> >>"
        )
    }
}

/// Numbered objects, and where each begins.
struct File {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

impl File {
    fn new() -> Self {
        // The comment tells programs that the file is not text.
        File { bytes: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec(), places: Vec::new() }
    }

    fn begin(&mut self) {
        self.places.push(self.bytes.len());
        let number = self.places.len();
        self.bytes.extend(format!("{number} 0 obj\n").bytes());
    }

    fn object(&mut self, text: &str) {
        self.begin();
        self.bytes.extend(format!("{text}\nendobj\n").bytes());
    }

    fn stream(&mut self, entries: &str, content: &[u8]) {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        // Writing to a Vec cannot fail.
        let packed = encoder.write_all(content).and_then(|()| encoder.finish()).unwrap_or_default();
        self.begin();
        let length = packed.len();
        let head = format!("<< {entries} /Filter /FlateDecode /Length {length} >>\nstream\n");
        self.bytes.extend(head.bytes());
        self.bytes.extend(packed);
        self.bytes.extend(b"\nendstream\nendobj\n");
    }

    /// The table of objects, which is at the end.
    fn finish(mut self) -> Vec<u8> {
        let (table, count) = (self.bytes.len(), self.places.len() + 1);
        let mut text = format!("xref\n0 {count}\n0000000000 65535 f \n");
        for place in &self.places {
            text.push_str(&format!("{place:010} 00000 n \n"));
        }
        text.push_str(&format!(
            "trailer\n<< /Size {count} /Root 1 0 R /Info 5 0 R >>\nstartxref\n{table}\n%%EOF\n"
        ));
        self.bytes.extend(text.bytes());
        self.bytes
    }
}

/// A number with at most three decimals, which is finer than any printer, and without an exponent, which PDF
/// does not have.
struct Number(f32);

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let thousandths = (f64::from(self.0) * 1000.0).round();
        // Adding zero turns -0 into 0.
        write!(f, "{}", thousandths / 1000.0 + 0.0)
    }
}

/// A colour as three parts from 0 to 1.
struct Colour(Color);

impl std::fmt::Display for Colour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [red, green, blue] =
            [self.0.red, self.0.green, self.0.blue].map(|part| Number(f32::from(part) / 255.0));
        write!(f, "{red} {green} {blue}")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::ZlibDecoder;

    use crate::picture::{Format, Picture};
    use crate::svg::Svg;

    /// The file as text, where it is text.
    fn text(picture: &Picture) -> String {
        String::from_utf8_lossy(&picture.encode(Format::Pdf).unwrap()).into_owned()
    }

    /// What is drawn on the page.
    fn drawn(picture: &Picture) -> String {
        let file = picture.encode(Format::Pdf).unwrap();
        let begin = file.windows(7).position(|part| part == b"stream\n").unwrap() + 7;
        let mut content = String::new();
        ZlibDecoder::new(&file[begin..]).read_to_string(&mut content).unwrap();
        content
    }

    fn sample(content: impl FnOnce(&mut Svg)) -> Picture {
        let mut svg = Svg::new();
        content(&mut svg);
        svg.finish(200, 100)
    }

    #[test]
    fn a_page_is_as_large_as_its_picture_and_its_table_finds_every_object() {
        let picture = sample(|svg| svg.line((10.0, 10.0), (50.0, 20.0), r##"stroke="#ff0000""##));
        assert!(text(&picture).contains("/MediaBox [0 0 150 75]"));
        let file = picture.encode(Format::Pdf).unwrap();
        let end = String::from_utf8_lossy(&file[file.len() - 300..]).into_owned();
        let table = end.split("startxref\n").nth(1).unwrap().lines().next().unwrap();
        let table = String::from_utf8_lossy(&file[table.parse().unwrap()..]).into_owned();
        let places = table.lines().filter(|line| line.ends_with(" 00000 n "));
        for (number, line) in (1..).zip(places) {
            let at: usize = line[..10].parse().unwrap();
            assert!(file[at..].starts_with(format!("{number} 0 obj").as_bytes()), "{number}");
        }
    }

    #[test]
    fn lines_have_their_place_colour_width_and_dashes() {
        let style = r##"stroke="#ff0000" stroke-width="2.5" stroke-dasharray="8 4""##;
        let drawn = drawn(&sample(|svg| svg.line((10.0, 10.0), (50.0, 20.0), style)));
        for part in ["1 0 0 RG 2.5 w", "[8 4] 0 d", "10 10 m\n50 20 l\nS"] {
            assert!(drawn.contains(part), "{part} in {drawn}");
        }
    }

    #[test]
    fn letters_are_shapes_and_need_no_font() {
        let picture = sample(|svg| svg.text((10.0, 30.0), "é ± N", 20.0, ""));
        assert!(!text(&picture).contains("/Font"));
        assert!(drawn(&picture).matches(" c\n").count() > 10);
    }

    #[test]
    fn what_is_half_opaque_or_fades_has_a_state() {
        let picture = sample(|svg| {
            svg.rect((0.0, 0.0), (9.0, 9.0), r##"fill="#0000ff" fill-opacity="0.5""##);
            svg.fading("fade", (0.0, 0.0), (90.0, 30.0), "#00ff00");
            svg.line((0.0, 0.0), (90.0, 30.0), r#"stroke="url(#fade)""#);
        });
        let text = text(&picture);
        assert!(text.contains("/O0 << /ca 0.5 /CA 0.5 >>"), "{text}");
        assert!(text.contains("/Coords [0 0 90 30]") && text.contains("/C0 [1] /C1 [0]"), "{text}");
        assert!(drawn(&picture).contains("/F0 gs\n0 1 0 RG"));
    }

    #[test]
    fn nothing_is_drawn_outside_of_a_clip() {
        let picture = sample(|svg| {
            svg.clip("plot", (5.0, 5.0), (20.0, 20.0));
            svg.group(r#"clip-path="url(#plot)""#, "", |svg| {
                svg.line((0.0, 0.0), (90.0, 90.0), r##"stroke="#000000""##);
            });
        });
        let drawn = drawn(&picture);
        let (before, after) = drawn.split_once("W n").unwrap();
        assert!(before.contains("5 5 m") && after.contains("90 90 l"), "{drawn}");
    }
}
