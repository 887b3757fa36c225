//! A plain search from one state that looks at everything: ends, entries, and what goes wrong.
//!
//! It goes on where something is broken elsewhere, which the [search](crate::search) does not, and tells a
//! way to the next entry of each node. One thread and a queue: it is for small groups and for people.

use std::collections::HashSet;

use catraca_core::{Algorithm, Phase};
use stateright::Model;

use crate::model::GroupModel;
use crate::property;
use crate::search::Prints;
use crate::world::World;

/// What was seen.
pub(crate) struct Survey<B> {
    pub(crate) states: u64,
    pub(crate) generated: u64,
    pub(crate) depth: usize,
    /// States in which nothing can happen any more, and those of them in which somebody waits.
    pub(crate) ends: u64,
    pub(crate) stuck: u64,
    /// States that break a property; nothing behind them was looked at.
    pub(crate) broken: u64,
    /// The way to the first of them: which of the actions of each state.
    pub(crate) violation: Option<(&'static str, Vec<usize>)>,
    /// By node, the shortest way to its next entry.
    pub(crate) entries: Vec<Option<Vec<usize>>>,
    /// Why it ended early.
    pub(crate) bound: Option<B>,
}

/// Where a state was come to from, and by which action.
#[derive(Clone, Copy)]
struct Came {
    from: u32,
    choice: u32,
}

/// Looks at everything that can follow `first`. `goes_on` is asked for every state, with their number so far.
pub(crate) fn survey<A: Algorithm, B>(
    model: &GroupModel<A>,
    first: World<A>,
    goes_on: &mut dyn FnMut(u64) -> Option<B>,
) -> Survey<B> {
    let mut survey = Survey {
        states: 0,
        generated: 1,
        depth: 0,
        ends: 0,
        stuck: 0,
        broken: 0,
        violation: None,
        entries: vec![None; model.nodes as usize],
        bound: None,
    };
    let properties = property::all::<A>();
    let mut seen = Seen { prints: Prints::new(), known: HashSet::new(), trail: Vec::new() };
    seen.add(&first, Came { from: 0, choice: 0 });
    survey.states = 1;
    let mut level = vec![(0, first)];
    while !level.is_empty() {
        let mut next = Vec::new();
        for (place, world) in level {
            survey.note_end(&world);
            let broken = properties.iter().find(|it| !(it.condition)(model, &world));
            if let Some(property) = broken {
                survey.broken += 1;
                survey.violation.get_or_insert_with(|| (property.name, seen.way(place)));
                continue;
            }
            for (choice, after) in successors(model, &world) {
                if survey.bound.is_none() {
                    survey.bound = goes_on(survey.states);
                }
                if survey.bound.is_some() {
                    return survey;
                }
                survey.generated += 1;
                let came = Came { from: place, choice };
                let Some(found) = seen.add(&after, came) else { continue };
                survey.states += 1;
                survey.note_entries(&world, &after, || seen.way(found));
                next.push((found, after));
            }
        }
        survey.depth += usize::from(!next.is_empty());
        level = next;
    }
    survey
}

fn successors<A: Algorithm>(model: &GroupModel<A>, world: &World<A>) -> Vec<(u32, World<A>)> {
    let mut actions = Vec::new();
    model.actions(world, &mut actions);
    let numbered = (0..).zip(actions);
    numbered
        .filter_map(|(choice, action)| Some((choice, model.next_state(world, action)?)))
        .collect()
}

impl<B> Survey<B> {
    fn note_end<A: Algorithm>(&mut self, world: &World<A>) {
        if world.is_at_rest() {
            self.ends += 1;
            self.stuck += u64::from(world.nodes_in(Phase::Waiting).next().is_some());
        }
    }

    fn note_entries<A: Algorithm>(
        &mut self,
        before: &World<A>,
        after: &World<A>,
        way: impl Fn() -> Vec<usize>,
    ) {
        let pairs = before.applications().iter().zip(after.applications());
        for (entry, (was, is)) in self.entries.iter_mut().zip(pairs) {
            if entry.is_none() && was.phase != Phase::Inside && is.phase == Phase::Inside {
                *entry = Some(way());
            }
        }
    }
}

/// The states seen so far.
struct Seen {
    prints: Prints,
    known: HashSet<u64>,
    trail: Vec<Came>,
}

impl Seen {
    /// The place of a state that is new.
    fn add<A: Algorithm>(&mut self, world: &World<A>, came: Came) -> Option<u32> {
        if !self.known.insert(self.prints.of(world)) {
            return None;
        }
        let place = u32::try_from(self.trail.len()).ok()?;
        self.trail.push(came);
        Some(place)
    }

    /// Which actions lead from the first state to the one at `place`.
    fn way(&self, place: u32) -> Vec<usize> {
        let (mut way, mut here) = (Vec::new(), place);
        while here > 0 {
            let came = self.trail[here as usize];
            way.push(came.choice as usize);
            here = came.from;
        }
        way.reverse();
        way
    }
}
