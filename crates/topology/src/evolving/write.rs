//! Writes graphs in the formats that are read.

use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::{Contact, EvolvingGraph, Format, MAX_CONTACTS};

/// Why a graph is not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The format cannot say it.
    #[error(
        "the format '{0}' cannot say that a graph repeats for ever; give it an end with --until"
    )]
    Endless(Format),
    /// The format has a line for every instant of every contact, and they could not be read again.
    #[error(
        "the format '{0}' would need more than {MAX_CONTACTS} lines; take a part with --until, or another format"
    )]
    TooManyLines(Format),
    /// The place does not take it.
    #[error("it cannot be written")]
    Place,
}

impl From<fmt::Error> for WriteError {
    fn from(_: fmt::Error) -> Self {
        WriteError::Place
    }
}

/// Writes `graph` in `format`. Times are instants.
pub fn write(
    graph: &EvolvingGraph,
    format: Format,
    out: &mut impl Write,
) -> Result<(), WriteError> {
    if graph.cycle().is_some() && format != Format::Catraca {
        return Err(WriteError::Endless(format));
    }
    if format == Format::SocioPatterns {
        let lengths = graph.contacts().iter().map(|contact| contact.to - contact.from + 1);
        if lengths.fold(0, u64::saturating_add) > MAX_CONTACTS as u64 {
            return Err(WriteError::TooManyLines(format));
        }
    }
    match format {
        Format::Catraca => own(graph, out),
        Format::SocioPatterns => sociopatterns(graph, out),
        Format::Csv => csv(graph, out),
        Format::One => events(graph, out),
    }?;
    Ok(())
}

fn names<'g>(graph: &'g EvolvingGraph, contact: &Contact) -> (&'g str, &'g str) {
    (graph.name(contact.a), graph.name(contact.b))
}

fn own(graph: &EvolvingGraph, out: &mut impl Write) -> fmt::Result {
    writeln!(out, "catraca graph")?;
    let is_numbered = graph.names().iter().enumerate().all(|(node, name)| name.parse() == Ok(node));
    if is_numbered {
        writeln!(out, "nodes {}", graph.nodes())?;
    } else {
        write!(out, "names")?;
        for name in graph.names() {
            write!(out, " {name}")?;
        }
        writeln!(out)?;
    }
    writeln!(out, "last {}", graph.last())?;
    if let Some(cycle) = graph.cycle() {
        writeln!(out, "cycle {cycle}")?;
    }
    for contact in graph.contacts() {
        let (a, b) = names(graph, contact);
        match contact.to == contact.from {
            true => writeln!(out, "{} {a} {b}", contact.from)?,
            false => writeln!(out, "{}..{} {a} {b}", contact.from, contact.to)?,
        }
    }
    Ok(())
}

/// A line for every instant of every contact, in the order of time.
fn sociopatterns(graph: &EvolvingGraph, out: &mut impl Write) -> fmt::Result {
    let mut present: Vec<Contact> = Vec::new();
    let mut coming = graph.contacts();
    let mut now = coming.first().map_or(0, |contact| contact.from);
    while !(present.is_empty() && coming.is_empty()) {
        present.retain(|contact| contact.to >= now);
        let begin = coming.partition_point(|contact| contact.from <= now);
        present.extend(&coming[..begin]);
        coming = &coming[begin..];
        for contact in &present {
            let (a, b) = names(graph, contact);
            writeln!(out, "{now} {a} {b}")?;
        }
        now = match (present.is_empty(), coming.first()) {
            (true, Some(next)) => next.from,
            _ => now + 1,
        };
    }
    Ok(())
}

fn csv(graph: &EvolvingGraph, out: &mut impl Write) -> fmt::Result {
    writeln!(out, "start,end,a,b")?;
    for contact in graph.contacts() {
        let (a, b) = names(graph, contact);
        writeln!(out, "{},{},{a},{b}", contact.from, contact.to)?;
    }
    Ok(())
}

/// At one instant what ends comes before what begins, so that a contact can follow on another.
fn events(graph: &EvolvingGraph, out: &mut impl Write) -> fmt::Result {
    let up = graph.contacts().iter().map(|contact| (contact.from, true, contact));
    let down = graph.contacts().iter().map(|contact| (contact.to + 1, false, contact));
    let mut events: Vec<(u64, bool, &Contact)> = up.chain(down).collect();
    events.sort_by_key(|&(at, is_up, _)| (at, is_up));
    for (at, is_up, contact) in events {
        let ((a, b), change) = (names(graph, contact), if is_up { "up" } else { "down" });
        writeln!(out, "{at} CONN {a} {b} {change}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec;

    use proptest::prelude::*;

    use super::super::{Reader, Resolution};
    use super::*;

    fn read_back(text: &str, format: Format) -> EvolvingGraph {
        let mut reader = Reader::new(Some(format), Resolution::default());
        text.lines().for_each(|line| reader.line(line).unwrap());
        reader.finish().unwrap()
    }

    /// The edges of every instant.
    fn instants(graph: &EvolvingGraph) -> Vec<Vec<(&str, &str)>> {
        (0..12)
            .map(|at| {
                let there = graph.contacts().iter().filter(|contact| contact.is_at(at));
                let mut edges: Vec<_> = there.map(|contact| names(graph, contact)).collect();
                edges.sort_unstable();
                edges
            })
            .collect()
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_as_the_same_graph(
            contacts in prop::collection::vec((0u64..9, 0u64..4, 0u32..4, 1u32..4), 1..12),
        ) {
            let contact = |(from, length, a, step)| {
                Contact::between(from, from + length, a, (a + step) % 4)
            };
            let contacts = contacts.into_iter().map(contact).collect();
            let graph = EvolvingGraph::numbered(4, contacts, 12, None).unwrap();
            for format in Format::ALL {
                let mut text = String::new();
                write(&graph, format, &mut text).unwrap();
                let again = read_back(&text, format);
                prop_assert_eq!(instants(&again), instants(&graph));
            }
        }
    }

    #[test]
    fn a_contact_that_lasts_for_ages_is_not_written_instant_by_instant() {
        let contacts = vec![Contact::between(0, 1 << 50, 0, 1)];
        let graph = EvolvingGraph::numbered(2, contacts, 1 << 50, None).unwrap();
        let mut text = String::new();
        let refused = Err(WriteError::TooManyLines(Format::SocioPatterns));
        assert_eq!(write(&graph, Format::SocioPatterns, &mut text), refused);
        assert_eq!(write(&graph, Format::One, &mut text), Ok(()));
    }

    #[test]
    fn only_the_own_format_says_for_ever() {
        let names = vec!["w".into(), "u".into()];
        let graph =
            EvolvingGraph::new(names, vec![Contact::between(1, 2, 0, 1)], 4, Some(1)).unwrap();
        let mut text = String::new();
        write(&graph, Format::Catraca, &mut text).unwrap();
        assert_eq!(text, "catraca graph\nnames w u\nlast 4\ncycle 1\n1..2 w u\n");
        assert_eq!(read_back(&text, Format::Catraca), graph);
        assert_eq!(write(&graph, Format::Csv, &mut text), Err(WriteError::Endless(Format::Csv)));
    }
}
