//! The messages of a space-time diagram, as arrows.

use catraca_trace::{Payload, kind_numbers};

use crate::history::{Delivery, Flight, History};
use crate::label::Labels;
use crate::layout::Layout;
use crate::svg::{PALETTE, Point, Svg};

/// A colour for every kind of message: that of its number, the same in every picture.
pub(crate) struct Kinds<'a>(Vec<(&'a str, &'static str)>);

impl<'a> Kinds<'a> {
    /// In the order of their first appearance in the whole trace, so that every window of it has
    /// the same colours, also of kinds that no table knows.
    pub(crate) fn of(history: &History<'a>) -> Self {
        let mut kinds: Vec<&str> = Vec::new();
        for flight in &history.flights {
            let kind = flight.message.kind.as_str();
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let numbers = kind_numbers(&kinds);
        let colours = numbers.into_iter().map(|number| PALETTE[number]);
        Kinds(kinds.into_iter().zip(colours).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, &'static str)> {
        self.0.iter().copied()
    }

    fn colour(&self, message: &Payload) -> &'static str {
        self.iter().find(|&(kind, _)| kind == message.kind).map_or(PALETTE[0], |(_, colour)| colour)
    }
}

/// All messages of a diagram.
pub(crate) struct Arrows<'a> {
    pub(crate) history: &'a History<'a>,
    pub(crate) layout: &'a Layout,
    pub(crate) kinds: &'a Kinds<'a>,
}

impl Arrows<'_> {
    /// Draws the arrows that are in the window.
    pub(crate) fn draw(&self, svg: &mut Svg) {
        for (index, flight) in self.history.flights.iter().enumerate() {
            if shown(flight, self.layout) {
                let style = format!(r#"class="message {}""#, delivery_class(flight.delivery));
                let colour = self.kinds.colour(flight.message);
                let course = course(flight, self.layout);
                svg.group(style, &title(flight), |svg| {
                    draw(svg, index, course, flight.delivery, colour);
                });
            }
        }
    }

    /// Writes as many labels as find room. Comes after all arrows, which would cross them out.
    pub(crate) fn label(&self, svg: &mut Svg, labels: &mut Labels) {
        for flight in self.history.flights.iter().filter(|flight| shown(flight, self.layout)) {
            let course = course(flight, self.layout);
            labels.add(svg, course, flight.message, self.layout, self.kinds.colour(flight.message));
        }
    }
}

/// Whether any of the message's way is in the window.
pub(crate) fn shown(flight: &Flight<'_>, layout: &Layout) -> bool {
    let end = match flight.delivery {
        Delivery::Delivered(at) | Delivery::Lost(at) => Some(at),
        Delivery::InFlight => None,
    };
    layout.window.shows(Some(flight.sent), end)
}

fn delivery_class(delivery: Delivery) -> &'static str {
    match delivery {
        Delivery::Delivered(_) => "delivered",
        Delivery::Lost(_) => "lost",
        Delivery::InFlight => "underway",
    }
}

fn title(flight: &Flight<'_>) -> String {
    let Flight { from, to, sent, message, .. } = flight;
    let end = match flight.delivery {
        Delivery::Delivered(at) => format!("delivered at {at}"),
        Delivery::Lost(at) => format!("lost at {at}"),
        Delivery::InFlight => "still on its way".to_owned(),
    };
    format!("{message} from node {from} to node {to}, sent at {sent}, {end}")
}

/// From where to where the arrow goes.
fn course(flight: &Flight<'_>, layout: &Layout) -> (Point, Point) {
    let from = layout.place(flight.from, flight.sent);
    let aim = layout.y(flight.to);
    let part = |share: f64| from.1 + share * (aim - from.1);
    let to = match flight.delivery {
        Delivery::Delivered(at) => (layout.x(at), aim),
        // It never gets there. What is lost at once still shows as an arrow.
        Delivery::Lost(at) => (layout.x(at).max(from.0 + 16.0), part(0.75)),
        Delivery::InFlight => (layout.right(), part(0.75)),
    };
    (from, to)
}

fn draw(svg: &mut Svg, index: usize, (from, to): (Point, Point), delivery: Delivery, colour: &str) {
    let stroke = format!(r#"stroke="{colour}" stroke-width="1.4""#);
    match delivery {
        Delivery::Delivered(_) => {
            svg.line(from, to, stroke);
            svg.polygon(&head(from, to), format_args!(r#"fill="{colour}""#));
        }
        Delivery::Lost(_) => {
            svg.line(from, to, format_args!(r#"{stroke} stroke-dasharray="5 3""#));
            svg.cross(to, 4.5, format_args!(r#"stroke="{colour}" stroke-width="2.2""#));
        }
        Delivery::InFlight => {
            svg.fading(format_args!("fade-{index}"), from, to, colour);
            svg.line(from, to, format_args!(r#"stroke="url(#fade-{index})" stroke-width="1.4""#));
        }
    }
}

/// The corners of an arrow head at `to`.
pub(crate) fn head(from: Point, to: Point) -> [Point; 3] {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(0.1);
    let (dx, dy) = (dx / length, dy / length);
    let back = (to.0 - 9.0 * dx, to.1 - 9.0 * dy);
    [to, (back.0 - 3.5 * dy, back.1 + 3.5 * dx), (back.0 + 3.5 * dy, back.1 - 3.5 * dx)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_head_points_where_the_arrow_goes() {
        assert_eq!(head((0.0, 0.0), (20.0, 0.0)), [(20.0, 0.0), (11.0, 3.5), (11.0, -3.5)]);
        assert!(head((1.0, 1.0), (1.0, 1.0)).iter().all(|(x, y)| x.is_finite() && y.is_finite()));
    }
}
