//! What is above a space-time diagram: title, violation, legend.

use std::collections::BTreeSet;

use catraca_core::{Phase, ResourceId};
use catraca_trace::Header;

use crate::arrow::{self, Kinds};
use crate::diagram::{INSIDE, WAITING, WRONG};
use crate::history::{Delivery, History};
use crate::layout::{Layout, MARGIN};
use crate::resource::{self, Resources};
use crate::svg::{INK, Svg, text_width};

const TEXT_SIZE: f64 = 12.0;
const VIOLATION_SIZE: f64 = 14.0;
/// Room for the symbol of a line of the legend.
const SYMBOL: f64 = 34.0;

/// Draws the heading and returns where the rest begins.
pub(crate) fn draw(
    svg: &mut Svg,
    header: &Header,
    history: &History<'_>,
    layout: &Layout,
    kinds: &Kinds<'_>,
) -> f64 {
    let mut y = MARGIN + 12.0;
    svg.text((MARGIN, y), &title(header), 16.0, r#"class="title" font-weight="bold""#);
    let style = format!(r#"class="violation" font-weight="bold" fill="{WRONG}""#);
    if let Some(violation) = &header.violation {
        for line in wrapped(violation, layout.width - 2.0 * MARGIN) {
            y += VIOLATION_SIZE * 1.5;
            svg.text((MARGIN, y), &line, VIOLATION_SIZE, &style);
        }
    }
    y += 28.0;
    let mut x = MARGIN;
    for (symbol, name) in legend(header, history, layout, kinds) {
        let width = SYMBOL + 7.0 + text_width(&name, TEXT_SIZE) + 22.0;
        if x > MARGIN && x + width > layout.right() {
            (x, y) = (MARGIN, y + 22.0);
        }
        draw_symbol(svg, symbol, (x, y - 4.0));
        svg.text((x + SYMBOL + 7.0, y), &name, TEXT_SIZE, r#"class="legend""#);
        x += width;
    }
    y + 14.0
}

pub(crate) fn title(header: &Header) -> String {
    let spec = &header.spec;
    let nodes = if spec.nodes == 1 { "node" } else { "nodes" };
    let broken = spec.mutant.as_ref().map(|mutant| format!(", broken: {mutant}"));
    format!("{}, {} {nodes}{}", spec.algorithm, spec.nodes, broken.unwrap_or_default())
}

#[derive(Clone, Copy)]
enum Symbol {
    Message(&'static str),
    Lost,
    Underway,
    Waiting,
    Inside,
    /// Inside, where the colour is that of the resources.
    InsideOfAnyColour,
    Resource(ResourceId),
    Overlap,
    Crash,
}

/// Only what is in the picture.
fn legend(
    header: &Header,
    history: &History<'_>,
    layout: &Layout,
    kinds: &Kinds<'_>,
) -> Vec<(Symbol, String)> {
    let window = &layout.window;
    let shown: Vec<_> =
        history.flights.iter().filter(|flight| arrow::shown(flight, layout)).collect();
    let visible: Vec<_> = history
        .stays
        .iter()
        .filter(|stay| stay.is_visible() && window.shows(stay.from, stay.to))
        .collect();
    let stays = |phase| visible.iter().any(|stay| stay.phase == phase);
    let mut lines: Vec<(Symbol, String)> = kinds
        .iter()
        .filter(|(kind, _)| shown.iter().any(|flight| flight.message.kind == *kind))
        .map(|(kind, colour)| (Symbol::Message(colour), kind.to_owned()))
        .collect();
    let overlaps = history.overlaps.iter().any(|overlap| window.shows(overlap.from, overlap.to));
    let crashes = history.crashes.values().any(|&at| window.shows(Some(at), Some(at)));
    let resources = Resources::new(header.spec.resource_count());
    let inside = match resources {
        Resources::Single => (Symbol::Inside, "inside, with fence"),
        Resources::Coloured => (Symbol::InsideOfAnyColour, "inside, with fence"),
        Resources::Numbered => (Symbol::Inside, "inside, with fence and resources"),
    };
    let others = [
        (
            shown.iter().any(|flight| matches!(flight.delivery, Delivery::Lost(_))),
            Symbol::Lost,
            "lost",
        ),
        (
            shown.iter().any(|flight| flight.delivery == Delivery::InFlight),
            Symbol::Underway,
            "on its way",
        ),
        (stays(Phase::Waiting), Symbol::Waiting, "waiting"),
        (stays(Phase::Inside), inside.0, inside.1),
        (overlaps, Symbol::Overlap, "more than one inside"),
        (crashes, Symbol::Crash, "crash"),
    ];
    let others = others.into_iter().filter(|(present, ..)| *present);
    lines.extend(others.map(|(_, symbol, name)| (symbol, name.to_owned())));
    if resources == Resources::Coloured {
        let claimed: BTreeSet<ResourceId> =
            visible.iter().flat_map(|stay| stay.claim.resources()).copied().collect();
        let line = |one: ResourceId| (Symbol::Resource(one), format!("resource {one}"));
        lines.extend(claimed.into_iter().map(line));
    }
    lines
}

fn draw_symbol(svg: &mut Svg, symbol: Symbol, (x, y): (f64, f64)) {
    let (from, to) = ((x, y), (x + SYMBOL, y));
    let middle = (x + SYMBOL / 2.0, y);
    match symbol {
        Symbol::Message(colour) => {
            svg.line(from, to, format_args!(r#"stroke="{colour}" stroke-width="2""#));
            svg.polygon(&arrow::head(from, to), format_args!(r#"fill="{colour}""#));
        }
        Symbol::Lost => {
            let line = format!(r#"stroke="{INK}" stroke-width="1.4" stroke-dasharray="5 3""#);
            svg.line(from, (to.0 - 5.0, y), line);
            svg.cross((to.0 - 5.0, y), 4.5, format_args!(r#"stroke="{INK}" stroke-width="2.2""#));
        }
        Symbol::Underway => {
            svg.fading("fade-legend", from, to, INK);
            // A flat line has no area to fill with a gradient; a thin rectangle has.
            svg.rect((x, y - 0.8), (SYMBOL, 1.6), r#"fill="url(#fade-legend)""#);
        }
        Symbol::Waiting => svg.rect((x, y - 5.0), (SYMBOL, 10.0), WAITING),
        Symbol::Inside => svg.rect((x, y - 8.0), (SYMBOL, 16.0), INSIDE),
        Symbol::InsideOfAnyColour => {
            svg.rect((x, y - 8.0), (SYMBOL, 16.0), r##"fill="#ffffff" stroke="#8a6100""##);
        }
        Symbol::Resource(one) => {
            let style = format!(r#"fill="{}""#, resource::colour(one));
            svg.rect((x, y - 5.0), (SYMBOL, 10.0), style);
        }
        Symbol::Overlap => {
            let style = format!(r#"fill="{WRONG}" fill-opacity="0.22" stroke="{WRONG}""#);
            svg.rect((x, y - 8.0), (SYMBOL, 16.0), style);
        }
        Symbol::Crash => {
            svg.cross(middle, 6.5, format_args!(r#"stroke="{INK}" stroke-width="3""#));
        }
    }
}

/// The words of `text` in lines of at most `width` pixels.
fn wrapped(text: &str, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), VIOLATION_SIZE * 1.12) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use catraca_algorithms::Spec;
    use catraca_trace::Origin;

    use super::*;

    #[test]
    fn the_title_says_what_runs() {
        let title = |spec| title(&Header::new(Origin::Sim, spec, 1));
        assert_eq!(title(Spec::new("maekawa", 7)), "maekawa, 7 nodes");
        let broken = Spec::new("raymond", 1).broken("no-queue");
        assert_eq!(title(broken), "raymond, 1 node, broken: no-queue");
    }

    #[test]
    fn long_texts_are_wrapped_between_words() {
        assert_eq!(wrapped("one two three", 80.0), ["one two", "three"]);
        assert_eq!(wrapped("", 80.0), [""; 0]);
    }
}
