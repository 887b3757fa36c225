//! How a node is drawn.

use catraca_core::Phase;

use crate::svg::{INK, Point, Svg};

/// What its circle shows of a node.
#[derive(Clone, Copy)]
pub(crate) struct NodeStyle {
    pub(crate) has_token: bool,
    pub(crate) phase: Phase,
    pub(crate) is_proxy: bool,
    pub(crate) is_crashed: bool,
}

impl NodeStyle {
    /// An ordinary node in this phase.
    pub(crate) fn of(phase: Phase) -> Self {
        NodeStyle { has_token: false, phase, is_proxy: false, is_crashed: false }
    }

    /// The inside of the circle shows where the token is, the ring what the application does.
    pub(crate) fn draw(self, svg: &mut Svg, at: Point, radius: f64) {
        let (paper, ring, class) = match self.phase {
            Phase::Idle => ("#ffffff", format!(r#"stroke="{INK}" stroke-width="1.3""#), "idle"),
            Phase::Waiting => (
                "#e9e9e9",
                r##"stroke="#6f6f6f" stroke-width="2.6" stroke-dasharray="5 3""##.to_owned(),
                "waiting",
            ),
            Phase::Inside => {
                ("#fff0c2", r##"stroke="#ffb400" stroke-width="5""##.to_owned(), "inside")
            }
        };
        if self.is_proxy {
            let style = format!(r#"class="proxy" fill="none" stroke="{INK}" stroke-width="1.3""#);
            svg.circle(at, radius + 4.5, style);
        }
        let (fill, token) = if self.has_token { (INK, " token") } else { (paper, "") };
        svg.circle(at, radius, format_args!(r#"class="node {class}{token}" fill="{fill}" {ring}"#));
        if self.is_crashed {
            svg.cross(at, radius, r##"class="crash" stroke="#8c8c8c" stroke-width="2.5""##);
        }
    }
}
