//! `catraca graph journey`: how to get from one node to another.

use std::io::Write;
use std::path::PathBuf;

use catraca_draw::{ContactChart, contact_chart};
use catraca_topology::evolving::{Journey, Journeys};

use super::trace::{Source, Trace};
use super::words;
use crate::failure::Failure;
use crate::output::{PendingPicture, Stdout};
use crate::table::counted;
use crate::{Outcome, value};

/// Finds the journeys from one node to another: the first to arrive, the one with the fewest hops,
/// the fastest; and the way back.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    trace: Trace,
    /// Where it begins.
    #[arg(value_name = "A")]
    from_node: String,
    /// Where it ends.
    #[arg(value_name = "B")]
    to_node: String,
    /// The first instant at which one may leave.
    #[arg(long, value_name = "T", default_value_t = 0, allow_negative_numbers = true,
        value_parser = value::instant)]
    from: u64,
    /// Draws the journeys over the contacts, .svg, .png or .pdf.
    #[arg(long, value_name = "FILE")]
    draw: Option<PathBuf>,
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let picture = self.draw.as_deref().map(PendingPicture::create).transpose()?;
        let source = self.trace.read()?;
        let (a, b) = (source.node("A", &self.from_node)?, source.node("B", &self.to_node)?);
        if a == b {
            return Err(Failure::input("A and B are the same node; name two"));
        }
        let graph = &source.graph;
        let journeys = Journeys::new(graph);
        let foremost = journeys.foremost_to(a, b, self.from);
        let mut out = Stdout::lock();
        let Some(foremost) = foremost else {
            let (a, b) = (graph.name(a), graph.name(b));
            let from = source.times.at(self.from);
            writeln!(out, "there is no journey from {a} to {b} from instant {from} on")?;
            return Ok(());
        };
        let fastest = journeys.fastest(a, b, self.from);
        let found = [
            ("foremost", Some(foremost.clone())),
            ("shortest", journeys.shortest(a, b, self.from)),
            ("fastest", fastest.clone().unwrap_or(None)),
        ];
        for (name, journey) in &found {
            if let Some(journey) = journey {
                print(&source, name, journey, &mut out)?;
            }
        }
        if let Err(error) = fastest {
            writeln!(out, "fastest   not computed: with all laps on the way the trace {error}")?;
        }
        match journeys.foremost_to(b, a, foremost.arrival()) {
            Some(back) => print(&source, "back", &back, &mut out)?,
            None => writeln!(out, "back      there is no journey back after the arrival")?,
        }
        if let Some(file) = picture {
            let named = found.into_iter().filter_map(|(name, journey)| Some((name, journey?)));
            file.finish(&self.picture(&source, named.collect())?)?;
        }
        Ok(())
    }

    /// Journeys that are the same are drawn once.
    fn picture(
        &self,
        source: &Source,
        journeys: Vec<(&str, Journey)>,
    ) -> Result<catraca_draw::Picture, Failure> {
        let mut drawn: Vec<(String, Journey)> = Vec::new();
        for (name, journey) in journeys {
            match drawn.iter_mut().find(|(_, known)| *known == journey) {
                Some((names, _)) => *names = format!("{names}, {name}"),
                None => drawn.push((name.to_string(), journey)),
            }
        }
        let to = drawn.iter().map(|(_, journey)| journey.arrival()).max().unwrap_or(self.from);
        let title = format!("{}: from {} to {}", source.title(), self.from_node, self.to_node);
        let (from, axis) = (self.from, source.times.axis());
        let chart = ContactChart { title, graph: &source.graph, from, to, axis, journeys: drawn };
        contact_chart(&chart).map_err(|error| Failure::input(format!("the picture {error}")))
    }
}

fn print(source: &Source, name: &str, journey: &Journey, out: &mut impl Write) -> Outcome {
    let hops = counted(journey.hops.len() as u64, "hop", "hops");
    writeln!(
        out,
        "{name:<9} {}\n          leaves at {}, arrives at {}, {hops}, takes {}",
        words::journey(&source.graph, journey),
        source.times.at(journey.departure()),
        source.times.at(journey.arrival()),
        source.times.lasting(journey.duration())
    )?;
    Ok(())
}
