//! Fastest journeys: the least time from the first hop to the last.

use alloc::vec::Vec;

use catraca_core::NodeId;

use super::journey::{Hop, Journey, Journeys};
use super::{Contact, EvolvingGraph, GraphError, MAX_CONTACTS};

impl Journeys<'_> {
    /// The journey from `source` to `target` that takes the least time from its first hop to its
    /// last; of those the one that leaves first.
    ///
    /// For the earliest arrival the latest departure is sought, then the same again from the
    /// instant after it. Each round looks only at the contacts between the two, so the rounds
    /// together look at every contact a few times.
    ///
    /// Fails if the laps between a departure and its arrival have too many contacts to be written
    /// out.
    pub fn fastest(
        &self,
        source: NodeId,
        target: NodeId,
        from: u64,
    ) -> Result<Option<Journey>, GraphError> {
        let graph = self.graph();
        // A departure one lap later looks the same.
        let last = match (graph.cycle(), graph.period()) {
            (Some(cycle), Some(period)) => cycle.max(from) + period,
            _ => graph.last(),
        };
        let longest = graph.contacts().iter().map(|contact| contact.to - contact.from).max();
        let Some(longest) = longest else { return Ok(None) };
        let mut best: Option<Journey> = None;
        let mut leave = from;
        while leave <= last && best.as_ref().is_none_or(|best| best.duration() > 0) {
            let Some(foremost) = self.foremost_to(source, target, leave) else { break };
            let window = Window { first: leave, last: foremost.arrival(), longest };
            window.check_size(graph)?;
            let journey = window.latest_departure(graph, source, target).unwrap_or(foremost);
            leave = journey.departure() + 1;
            if best.as_ref().is_none_or(|best| journey.duration() < best.duration()) {
                best = Some(journey);
            }
        }
        Ok(best)
    }
}

/// The instants from one to another, of a graph whose longest contact is known.
struct Window {
    first: u64,
    last: u64,
    longest: u64,
}

impl Window {
    fn check_size(&self, graph: &EvolvingGraph) -> Result<(), GraphError> {
        let laps = graph.period().map_or(0, |period| (self.last - self.first) / period);
        match laps.saturating_mul(graph.lap().len() as u64) > MAX_CONTACTS as u64 {
            true => Err(GraphError::TooManyContacts),
            false => Ok(()),
        }
    }

    /// Of the journeys in the window the one that leaves last: the foremost one backwards.
    fn latest_departure(
        &self,
        graph: &EvolvingGraph,
        source: NodeId,
        target: NodeId,
    ) -> Option<Journey> {
        let mirrored: Vec<Contact> =
            self.contacts(graph).map(|contact| self.mirror(contact)).collect();
        let mirrored = graph.with(mirrored, self.last - self.first + 1, None);
        let journey = Journeys::new(&mirrored).foremost_to(target, source, 0)?;
        let back = |hop: &Hop| Hop { from: hop.to, to: hop.from, at: self.last - hop.at };
        Some(Journey { hops: journey.hops.iter().rev().map(back).collect() })
    }

    fn mirror(&self, contact: Contact) -> Contact {
        Contact { from: self.last - contact.to, to: self.last - contact.from, ..contact }
    }

    /// The contacts in the window, cut to it, laps written out.
    fn contacts<'g>(&self, graph: &'g EvolvingGraph) -> impl Iterator<Item = Contact> + use<'g> {
        let (first, last, longest) = (self.first, self.last, self.longest);
        let cut = move |contact: &Contact, later: u64| {
            let (from, to) = (contact.from + later, contact.to + later);
            let inside = from <= last && to >= first;
            inside.then(|| Contact { from: from.max(first), to: to.min(last), ..*contact })
        };
        let near = move |contacts: &'g [Contact], later: u64| {
            let begin = contacts.partition_point(|contact| contact.from + later + longest < first);
            let end = contacts.partition_point(|contact| contact.from + later <= last);
            contacts[begin..end.max(begin)].iter().filter_map(move |contact| cut(contact, later))
        };
        let laps = graph.cycle().zip(graph.period()).map(|(cycle, period)| {
            let number = |instant: u64| instant.saturating_sub(cycle) / period;
            (number(first)..=number(last)).map(move |lap| lap * period)
        });
        let laps = laps.into_iter().flatten().flat_map(move |later| near(graph.lap(), later));
        near(graph.prefix(), 0).chain(laps)
    }
}
