//! Breadth-first search on several threads that goes through the states in the same order as a
//! plain search with a queue does.
//!
//! A level is the set of states that are first reached in the same number of steps. The threads
//! share its states among them and look for the next level. A state of the next level that is
//! reached in several ways belongs to the first of these ways in the order of the search; when a
//! later one was found sooner, by another thread, it is taken back at the end of the level. So
//! the result does not depend on which thread did what.

mod known;
mod lasting;
mod level;

use std::collections::HashSet;
use std::hash::Hash;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use stateright::{Expectation, Model, Property};

use crate::jobs::share;
pub(crate) use known::Prints;
use known::{Known, Note};
pub(crate) use lasting::Lasting;
use level::{Block, Level, Step, Worst, worse};

/// A state of a large group takes a while, and memory, so a job asks whether to go on after so many.
const STEPS_BETWEEN_PULSES: u32 = 16;

/// How far a search has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Different states.
    pub(crate) states: u64,
    /// States including every repetition.
    pub(crate) generated: u64,
    /// Steps to the deepest states.
    pub(crate) depth: usize,
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End<H> {
    /// There are no more states.
    Exhausted,
    /// A state breaks a property.
    Violated {
        /// The property's name.
        property: &'static str,
        /// Which initial state, and then which of the actions of each state.
        path: Vec<usize>,
    },
    /// Somebody waits for ever in a run that never ends.
    Lasting {
        /// Which initial state, and then which of the actions of each state, up to the first state
        /// that is visited again and again.
        path: Vec<usize>,
        /// Which actions lead from there back to it, and then all over again.
        cycle: Vec<usize>,
    },
    /// The caller stopped it.
    Stopped(H),
}

/// Explores `model` until there is nothing left, an `always` property is broken or `pulse` breaks
/// off. `pulse` is called every few milliseconds. Where there is nothing left, it looks for cycles in
/// which somebody waits and nothing that has to happen is neglected.
///
/// Among the shortest violations the one of the first property is taken, and among those the first
/// in the order of the search. Then the states are those of all levels up to the violation's.
pub(crate) fn search<M, H>(
    model: &M,
    threads: usize,
    pulse: &mut dyn FnMut(&Counts) -> ControlFlow<H>,
) -> (Counts, End<H>)
where
    M: Lasting + Sync,
    M::State: Hash + Send + Sync,
{
    let mut search = Search::new(model, threads, HashSet::new());
    let flow = search.run(pulse);
    let counts = search.counts;
    let end = match (search.worst, flow) {
        (Some((property, last)), _) => {
            let property = search.properties[property].name;
            End::Violated { property, path: search.path_of(last) }
        }
        (None, ControlFlow::Break(reason)) => End::Stopped(reason),
        (None, ControlFlow::Continue(())) => search.lasting(pulse),
    };
    (counts, end)
}

struct Search<'a, M: Model> {
    model: &'a M,
    /// The fingerprints of states that count as violations.
    wanted: HashSet<u64>,
    /// Those that have to hold always.
    properties: Vec<Property<M>>,
    threads: usize,
    known: Known,
    /// For every level the steps that led to its states.
    trail: Vec<Vec<Step>>,
    /// The violation to be reported, in the last level.
    worst: Worst,
    /// States of earlier levels to which steps have led back.
    back: Vec<M::State>,
    counts: Counts,
}

impl<'a, M> Search<'a, M>
where
    M: Lasting + Sync,
    M::State: Hash + Send + Sync,
{
    fn new(model: &'a M, threads: usize, wanted: HashSet<u64>) -> Self {
        let mut properties = model.properties();
        properties.retain(|property| property.expectation == Expectation::Always);
        let (known, trail, back) = (Known::new(), Vec::new(), Vec::new());
        let (worst, counts) = (None, Counts::default());
        Search { model, wanted, properties, threads, known, trail, worst, back, counts }
    }

    /// Goes on from level to level until there is a violation or nothing left.
    fn run<H>(&mut self, pulse: &mut dyn FnMut(&Counts) -> ControlFlow<H>) -> ControlFlow<H> {
        let mut level = self.first_level();
        while self.worst.is_none() && level.len() > 0 {
            let (next, flow) = self.next_level(&level, pulse);
            flow?;
            level = next;
        }
        ControlFlow::Continue(())
    }

    /// The last part of a search that has seen every state: cycles in which somebody waits.
    fn lasting<H>(mut self, pulse: &mut dyn FnMut(&Counts) -> ControlFlow<H>) -> End<H> {
        let (model, threads, counts) = (self.model, self.threads, self.counts);
        let mut back = std::mem::take(&mut self.back);
        // In an order that does not depend on the threads.
        back.sort_by_cached_key(|state| self.known.prints.of(state));
        // The way back to the states is found anew, if there is a cycle at all.
        let Known { prints, .. } = self.known;
        drop(self.trail);
        let components = match lasting::find(model, &prints, back, &mut || pulse(&counts)) {
            ControlFlow::Break(reason) => return End::Stopped(reason),
            ControlFlow::Continue(components) if components.is_empty() => return End::Exhausted,
            ControlFlow::Continue(components) => components,
        };
        let wanted = components.iter().flat_map(|component| component.prints()).collect();
        let mut nearest = Search::new(model, threads, wanted);
        if let ControlFlow::Break(reason) = nearest.run(&mut |_| pulse(&counts)) {
            return End::Stopped(reason);
        }
        let lasso = nearest.worst.and_then(|(_, last)| {
            let path = nearest.path_of(last);
            let print = prints.of(&follow(model, &path));
            let cycle = components.iter().find_map(|component| component.cycle(print))?;
            Some(End::Lasting { path, cycle })
        });
        lasso.unwrap_or_else(|| unreachable!("the same search finds the same states"))
    }

    fn first_level(&mut self) -> Level<M::State> {
        let mut first = Block::new();
        for (choice, state) in self.model.init_states().into_iter().enumerate() {
            self.meet(state, Step::new(0, choice), None, &mut first);
        }
        self.conclude(vec![first])
    }

    /// Expands all states of `level`, unless `pulse` breaks off.
    fn next_level<H>(
        &mut self,
        level: &Level<M::State>,
        pulse: &mut dyn FnMut(&Counts) -> ControlFlow<H>,
    ) -> (Level<M::State>, ControlFlow<H>) {
        let (states, generated) = (AtomicU64::new(0), AtomicU64::new(0));
        let work = |(first, piece): (usize, &[M::State]), goes_on: &mut dyn FnMut() -> bool| {
            let block = self.successors(first, piece, goes_on);
            states.fetch_add(block.len() as u64, Ordering::Relaxed);
            generated.fetch_add(block.generated, Ordering::Relaxed);
            block
        };
        let so_far = || {
            pulse(&Counts {
                states: self.counts.states + states.load(Ordering::Relaxed),
                generated: self.counts.generated + generated.load(Ordering::Relaxed),
                depth: self.counts.depth,
            })
        };
        let (found, flow) = share(self.threads, level.jobs(), work, so_far);
        (self.conclude(found), flow)
    }

    /// What follows the `states` of a level, the first of which is at place `first`. Some of it, if it
    /// is not to go on.
    fn successors(
        &self,
        first: usize,
        states: &[M::State],
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Block<M::State> {
        let mut block = Block::new();
        let mut actions = Vec::new();
        let mut steps = 0;
        for (place, state) in states.iter().enumerate() {
            self.model.actions(state, &mut actions);
            for (choice, action) in actions.drain(..).enumerate() {
                steps += 1;
                if steps % STEPS_BETWEEN_PULSES == 0 && !goes_on() {
                    return block;
                }
                if let Some(next) = self.model.next_state(state, action) {
                    self.meet(next, Step::new(first + place, choice), Some(state), &mut block);
                }
            }
        }
        block.shrink();
        block
    }

    /// Puts `state` into `block` if it is new. It comes after `before`, unless it is an initial one.
    #[inline]
    fn meet(
        &self,
        state: M::State,
        step: Step,
        before: Option<&M::State>,
        block: &mut Block<M::State>,
    ) {
        if !self.model.within_boundary(&state) {
            return;
        }
        block.generated += 1;
        let print = self.known.prints.of(&state);
        let lasts = || {
            self.model.can_last(&state) && before.is_some_and(|before| self.model.can_last(before))
        };
        match self.known.note(print, step, lasts) {
            Note::New => {
                let broken = Block::broken(self.model, &self.properties, &state);
                let wanted = || self.wanted.contains(&print).then_some(self.properties.len());
                block.push(state, step, broken.or_else(wanted));
            }
            Note::FirstBack => block.back.push(state),
            Note::Again | Note::Before => {}
        }
    }

    /// Makes a level of what the threads have found.
    fn conclude(&mut self, mut found: Vec<Block<M::State>>) -> Level<M::State> {
        let overtaken = self.known.end_level();
        for block in &mut found {
            block.remove(&overtaken);
            self.counts.generated += block.generated;
            // A violation that was overtaken was found again by an earlier step.
            self.worst = worse(self.worst, block.worst);
            self.back.append(&mut block.back);
        }
        let mut trail = Vec::new();
        let level = Level::new(found, &mut trail);
        if level.len() > 0 {
            self.counts.depth = self.trail.len();
            self.counts.states += level.len() as u64;
        }
        self.trail.push(trail);
        level
    }

    /// Which initial state, and which actions lead from it to where `last` leads, in the last level.
    fn path_of(&self, last: Step) -> Vec<usize> {
        let mut path = vec![last.action()];
        let mut place = last.parent();
        for level in self.trail.iter().rev().skip(1) {
            path.push(level[place].action());
            place = level[place].parent();
        }
        path.reverse();
        path
    }
}

/// The state to which `path` leads.
fn follow<M: Model>(model: &M, path: &[usize]) -> M::State {
    let mut choices = path.iter();
    let first = choices.next().copied().unwrap_or(0);
    let mut state = model.init_states().swap_remove(first);
    for &choice in choices {
        let mut actions = Vec::new();
        model.actions(&state, &mut actions);
        let next = model.next_state(&state, actions.swap_remove(choice));
        state = next.expect("the search has taken this step");
    }
    state
}
