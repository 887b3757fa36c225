//! Breadth-first search on several threads that goes through the states in the same order as a
//! plain search with a queue does.
//!
//! A level is the set of states that are first reached in the same number of steps. The threads
//! share its states among them and look for the next level. A state of the next level that is
//! reached in several ways belongs to the first of these ways in the order of the search; when a
//! later one was found sooner, by another thread, it is taken back at the end of the level. So
//! which thread did what leaves no mark on the result.

mod known;
mod level;

use std::hash::Hash;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use stateright::{Expectation, Model, Property};

use crate::crew::share;
use known::Known;
use level::{Block, Level, Step, Worst, worse};

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
    /// The caller stopped it.
    Stopped(H),
}

/// Explores `model` until there is nothing left, an `always` property is broken or `pulse` breaks
/// off. `pulse` is called every few milliseconds.
///
/// Among the shortest violations the one of the first property is taken, and among those the first
/// in the order of the search. Then the states are those of all levels up to the violation's.
pub(crate) fn search<M, H>(
    model: &M,
    threads: usize,
    pulse: &mut dyn FnMut(&Counts) -> ControlFlow<H>,
) -> (Counts, End<H>)
where
    M: Model + Sync,
    M::State: Hash + Send + Sync,
{
    let mut search = Search::new(model, threads);
    let mut level = search.first_level();
    loop {
        if let Some(end) = search.violation() {
            return (search.counts, end);
        }
        if level.len() == 0 {
            return (search.counts, End::Exhausted);
        }
        let (next, flow) = search.next_level(&level, pulse);
        if let ControlFlow::Break(reason) = flow {
            let end = search.violation().unwrap_or(End::Stopped(reason));
            return (search.counts, end);
        }
        level = next;
    }
}

struct Search<'a, M: Model> {
    model: &'a M,
    /// Those that have to hold always.
    properties: Vec<Property<M>>,
    threads: usize,
    known: Known,
    /// For every level the steps that led to its states.
    trail: Vec<Vec<Step>>,
    /// The violation to be reported, in the last level.
    worst: Worst,
    counts: Counts,
}

impl<'a, M> Search<'a, M>
where
    M: Model + Sync,
    M::State: Hash + Send + Sync,
{
    fn new(model: &'a M, threads: usize) -> Self {
        let mut properties = model.properties();
        properties.retain(|property| property.expectation == Expectation::Always);
        let (known, counts) = (Known::new(), Counts::default());
        Search { model, properties, threads, known, trail: Vec::new(), worst: None, counts }
    }

    fn first_level(&mut self) -> Level<M::State> {
        let mut first = Block::new();
        for (choice, state) in self.model.init_states().into_iter().enumerate() {
            self.meet(state, Step::new(0, choice), &mut first);
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
        let work = |(first, piece): (usize, &[M::State])| {
            let block = self.successors(first, piece);
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

    /// What follows the `states` of a level, the first of which is at place `first`.
    fn successors(&self, first: usize, states: &[M::State]) -> Block<M::State> {
        let mut block = Block::new();
        let mut actions = Vec::new();
        for (place, state) in states.iter().enumerate() {
            self.model.actions(state, &mut actions);
            for (choice, action) in actions.drain(..).enumerate() {
                if let Some(next) = self.model.next_state(state, action) {
                    self.meet(next, Step::new(first + place, choice), &mut block);
                }
            }
        }
        block.shrink();
        block
    }

    /// Puts `state` into `block` if it is new.
    #[inline]
    fn meet(&self, state: M::State, step: Step, block: &mut Block<M::State>) {
        if !self.model.within_boundary(&state) {
            return;
        }
        block.generated += 1;
        if self.known.note(&state, step) {
            block.push(self.model, &self.properties, state, step);
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

    fn violation<H>(&self) -> Option<End<H>> {
        let (property, last) = self.worst?;
        let mut path = vec![last.action()];
        let mut place = last.parent();
        for level in self.trail.iter().rev().skip(1) {
            path.push(level[place].action());
            place = level[place].parent();
        }
        path.reverse();
        Some(End::Violated { property: self.properties[property].name, path })
    }
}
