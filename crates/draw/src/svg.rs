//! A small SVG builder: what diagrams and charts are made of.
//!
//! Positions are in pixels and written with one decimal, so that the same picture is the same text
//! on every machine.

use std::fmt::{self, Display, Write};

use crate::picture::Picture;

/// The fonts that are asked for, the best first.
pub(crate) const FAMILIES: [&str; 3] = ["DejaVu Sans", "Helvetica", "Arial"];

/// Colours that can be distinguished, also by most colour-blind people; none of them is red, which is
/// kept for what is wrong.
pub(crate) const PALETTE: [&str; 8] =
    ["#0067a5", "#00875f", "#8e44ad", "#b35900", "#c2558f", "#2e9fd0", "#6b6b00", "#5c5c5c"];

/// For text and frames.
pub(crate) const INK: &str = "#222222";
/// For lines in the background.
pub(crate) const FAINT: &str = "#e4e4e4";

/// Attributes of text that stays legible across lines.
pub(crate) const HALO: &str =
    r##"stroke="#ffffff" stroke-width="3" stroke-linejoin="round" paint-order="stroke""##;

/// A place in the picture, from the upper left corner.
pub(crate) type Point = (f64, f64);

/// A picture in the making.
pub(crate) struct Svg {
    body: String,
}

impl Svg {
    pub(crate) fn new() -> Self {
        Svg { body: String::new() }
    }

    /// Adds a straight line. `style` is a list of SVG attributes, here and below.
    pub(crate) fn line(&mut self, from: Point, to: Point, style: impl Display) {
        let (x1, y1, x2, y2) = (Px(from.0), Px(from.1), Px(to.0), Px(to.1));
        self.push(format_args!(r#"<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {style}/>"#));
    }

    /// Adds a curve that leaves `from` and reaches `to` in the direction of `bend`.
    pub(crate) fn curve(&mut self, from: Point, bend: Point, to: Point, style: impl Display) {
        let (x1, y1, x, y, x2, y2) =
            (Px(from.0), Px(from.1), Px(bend.0), Px(bend.1), Px(to.0), Px(to.1));
        self.push(format_args!(r#"<path d="M{x1} {y1}Q{x} {y} {x2} {y2}" {style}/>"#));
    }

    /// Adds a rectangle with its upper left corner at `at`.
    pub(crate) fn rect(&mut self, at: Point, (width, height): (f64, f64), style: impl Display) {
        let (x, y, width, height) = (Px(at.0), Px(at.1), Px(width), Px(height));
        self.push(format_args!(
            r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" {style}/>"#
        ));
    }

    /// Adds a circle.
    pub(crate) fn circle(&mut self, at: Point, radius: f64, style: impl Display) {
        let (x, y, radius) = (Px(at.0), Px(at.1), Px(radius));
        self.push(format_args!(r#"<circle cx="{x}" cy="{y}" r="{radius}" {style}/>"#));
    }

    /// Adds straight lines through `points`.
    pub(crate) fn polyline(&mut self, points: &[Point], style: impl Display) {
        self.push(format_args!(r#"<polyline points="{}" {style}/>"#, Places(points)));
    }

    /// Adds a shape with the corners `points`.
    pub(crate) fn polygon(&mut self, points: &[Point], style: impl Display) {
        self.push(format_args!(r#"<polygon points="{}" {style}/>"#, Places(points)));
    }

    /// Adds a diagonal cross.
    pub(crate) fn cross(&mut self, (x, y): Point, radius: f64, style: impl Display) {
        let (left, right, top, bottom) =
            (Px(x - radius), Px(x + radius), Px(y - radius), Px(y + radius));
        self.push(format_args!(
            r#"<path d="M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}" {style}/>"#
        ));
    }

    /// Adds one line of text whose baseline begins at `at`.
    pub(crate) fn text(&mut self, at: Point, text: &str, size: f64, style: impl Display) {
        let (x, y, text) = (Px(at.0), Px(at.1), Escaped(text));
        self.push(format_args!(
            r#"<text x="{x}" y="{y}" font-size="{}" {style}>{text}</text>"#,
            Px(size)
        ));
    }

    /// Adds text centred on `at` and turned by `degrees` around it, on a white halo.
    pub(crate) fn turned_text(
        &mut self,
        at: Point,
        degrees: f64,
        text: &str,
        size: f64,
        style: impl Display,
    ) {
        let turn = format!(r#"transform="rotate({} {} {})""#, Px(degrees), Px(at.0), Px(at.1));
        self.text(at, text, size, format_args!("{turn} text-anchor=\"middle\" {HALO} {style}"));
    }

    /// Everything that `content` adds becomes one group; browsers show `title` on hovering.
    pub(crate) fn group(
        &mut self,
        style: impl Display,
        title: &str,
        content: impl FnOnce(&mut Self),
    ) {
        self.push(format_args!("<g {style}>"));
        if !title.is_empty() {
            self.push(format_args!("<title>{}</title>", Escaped(title)));
        }
        content(self);
        self.push("</g>");
    }

    /// Everything that `content` adds is moved down by `y`.
    pub(crate) fn moved_down(&mut self, y: f64, content: impl FnOnce(&mut Self)) {
        self.group(format_args!(r#"transform="translate(0 {})""#, Px(y)), "", content);
    }

    /// A colour, for use as `url(#id)`, that fades away between two points.
    pub(crate) fn fading(&mut self, id: impl Display, from: Point, to: Point, colour: &str) {
        let (x1, y1, x2, y2) = (Px(from.0), Px(from.1), Px(to.0), Px(to.1));
        self.push(format_args!(
            r#"<linearGradient id="{id}" gradientUnits="userSpaceOnUse" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"><stop offset="0" stop-color="{colour}"/><stop offset="1" stop-color="{colour}" stop-opacity="0"/></linearGradient>"#
        ));
    }

    /// A rectangle, for use as `clip-path="url(#id)"`, outside of which nothing is drawn.
    pub(crate) fn clip(&mut self, id: &str, at: Point, size: (f64, f64)) {
        self.push(format_args!(r#"<clipPath id="{id}">"#));
        self.rect(at, size, "");
        self.push("</clipPath>");
    }

    /// The picture, on white.
    pub(crate) fn finish(self, width: u32, height: u32) -> Picture {
        let families = FAMILIES.join(", ");
        let svg = format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="{families}, sans-serif" fill="{INK}">
<rect width="{width}" height="{height}" fill="#ffffff"/>
{}</svg>
"##,
            self.body
        );
        Picture::new(svg, width, height)
    }

    fn push(&mut self, element: impl Display) {
        writeln!(self.body, "{element}").unwrap_or_default(); // Writing to a String cannot fail.
    }
}

/// About how wide `text` is, without asking a font: letters of DejaVu Sans take 0.6 of its size.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.6
}

/// A length in pixels with at most one decimal.
struct Px(f64);

impl Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        // Adding zero turns -0 into 0.
        write!(f, "{}", tenths / 10.0 + 0.0)
    }
}

struct Places<'a>(&'a [Point]);

impl Display for Places<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(index, &(x, y))| {
            let separator = if index == 0 { "" } else { " " };
            write!(f, "{separator}{},{}", Px(x), Px(y))
        })
    }
}

struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            // XML has no way to write most control characters.
            control if control.is_control() => f.write_char(' '),
            '\u{fffe}' | '\u{ffff}' => f.write_char(' '),
            plain => f.write_char(plain),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_free_of_control_characters() {
        let mut svg = Svg::new();
        svg.text((1.0, 2.0), "<a & \"b\">\u{1}\n", 12.0, r#"class="t""#);
        let picture = svg.finish(10, 10);
        assert!(picture.svg().contains(
            r#"<text x="1" y="2" font-size="12" class="t">&lt;a &amp; &quot;b&quot;&gt;  </text>"#
        ));
    }

    #[test]
    fn lengths_have_at_most_one_decimal() {
        let shown = [1.0, 0.04, 2.25, -0.01, 1e4].map(|length| Px(length).to_string());
        assert_eq!(shown, ["1", "0", "2.3", "0", "10000"]);
    }
}
