//! Pictures: space-time diagrams and pointer trees of traces, evolving graphs, line and bar charts.
//!
//! There is one way to draw: everything becomes SVG text, and a PNG or a PDF is that text rendered with
//! the fonts of the system. No system library is needed for any of them. The same input gives the same SVG
//! on every machine. Writing files is left to the caller.
//!
//! What to read first: [`space_time`], [`trees`], [`strip`], [`contact_chart()`], [`chart_column`],
//! [`bar_chart`], then [`Picture`].
//!
//! ```
//! use std::path::Path;
//!
//! use catraca_draw::{Axis, Chart, Format, Series, chart_column};
//!
//! let line = |name: &str, messages: fn(f64) -> f64| Series {
//!     name: name.to_owned(),
//!     points: [4.0, 16.0, 64.0].map(|nodes| (nodes, messages(nodes))).to_vec(),
//!     ..Series::default()
//! };
//! let picture = chart_column(&[Chart {
//!     title: "Messages per entry".to_owned(),
//!     x: Axis::logarithmic("N"),
//!     y: Axis::logarithmic("messages"),
//!     series: vec![
//!         line("ricart-agrawala", |nodes| 2.0 * (nodes - 1.0)),
//!         line("naimi-trehel", |nodes| nodes.log2()),
//!     ],
//!     ..Chart::default()
//! }]);
//! assert!(picture.svg().contains("naimi-trehel"));
//! assert_eq!(picture.encode(Format::of(Path::new("messages.svg"))?)?, picture.svg().as_bytes());
//! # Ok::<(), catraca_draw::DrawError>(())
//! ```

mod arrow;
mod axis;
mod bars;
mod chart;
mod contact_chart;
mod dark;
mod diagram;
mod forest;
mod heading;
mod history;
mod label;
mod layout;
mod lines;
mod node_style;
mod pdf;
mod picture;
mod resource;
#[cfg(test)]
mod sample;
mod strip;
mod svg;
mod ticks;
mod tree;

pub use axis::{Axis, Scale};
pub use bars::{BarChart, Bars, bar_chart};
pub use chart::{Chart, Series, Threshold, chart_column};
pub use contact_chart::{ContactChart, contact_chart};
pub use dark::dark_style;
pub use diagram::{DiagramOptions, check_nodes, space_time};
pub use history::is_visible;
pub use picture::{DrawError, Format, Picture};
pub use strip::{StripNode, StripPanel, check_strip_size, strip};
pub use tree::{check_instants, tree, trees};
