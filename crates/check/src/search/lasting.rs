//! Runs that go on for ever although somebody waits: cycles of the explored graph.
//!
//! Every cycle has a step that leads to a state of the same level or an earlier one. The search keeps
//! the states to which such steps lead, so where there are none nothing is left to do. From these the
//! strongly connected components are found with Tarjan's algorithm; only the states of the components
//! that are not yet complete are in memory.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;
use std::ops::ControlFlow;
use std::vec::IntoIter;

use stateright::Model;

use super::known::Prints;

/// After how many states the caller is asked whether to go on.
const PULSE: usize = 256;

/// What has to be known of a model to find runs that keep somebody waiting for ever.
pub(crate) trait Lasting: Model {
    /// Something that sooner or later happens if it stays possible, whatever else happens meanwhile.
    type Deed: Ord;

    /// Whether a run can stay in states like this one for ever with somebody waiting: somebody waits,
    /// and whatever has to happen is a [`Deed`](Self::Deed).
    fn can_last(&self, state: &Self::State) -> bool;

    /// What `action` does in `state`, if it is something that has to happen.
    fn deed(&self, state: &Self::State, action: &Self::Action) -> Option<Self::Deed>;
}

/// The components around which a run can go for ever without neglecting a deed, as far as they are
/// reached from the states in `from`. `pulse` is called every few hundred states.
pub(super) fn find<M, H>(
    model: &M,
    prints: &Prints,
    from: Vec<M::State>,
    pulse: &mut dyn FnMut() -> ControlFlow<H>,
) -> ControlFlow<H, Vec<Component<M>>>
where
    M: Lasting,
    M::State: Hash,
{
    let mut found = Vec::new();
    let mut walk = Walk { model, prints, numbers: HashMap::new(), stack: vec![], path: vec![] };
    for state in from {
        let print = prints.of(&state);
        if !walk.numbers.contains_key(&print) {
            walk.enter(print, state);
        }
        while let Some(step) = walk.step() {
            if let Some(states) = step {
                found.extend(Component::fair(model, prints, states, pulse)?);
            }
            if walk.numbers.len().is_multiple_of(PULSE) {
                pulse()?;
            }
        }
    }
    ControlFlow::Continue(found)
}

/// States with their fingerprints.
type Printed<S> = Vec<(u64, S)>;

/// The number of a state whose component is complete.
const DONE: u32 = u32::MAX;

/// Tarjan's depth-first walk, without recursion.
struct Walk<'a, M: Model> {
    model: &'a M,
    prints: &'a Prints,
    /// In which order the states were met, by fingerprint.
    numbers: HashMap<u64, u32>,
    /// The states whose components are not complete.
    stack: Printed<M::State>,
    path: Vec<Frame<M::State>>,
}

/// A state on the path from the first one.
struct Frame<S> {
    number: u32,
    /// The least number of a state in the stack that it is known to lead to.
    low: u32,
    /// Its place in the stack.
    place: usize,
    successors: IntoIter<S>,
}

impl<M> Walk<'_, M>
where
    M: Lasting,
    M::State: Hash,
{
    fn enter(&mut self, print: u64, state: M::State) {
        let number = self.numbers.len() as u32;
        self.numbers.insert(print, number);
        let steps = steps(self.model, &state);
        let successors: Vec<M::State> = steps.into_iter().filter_map(|step| step.next).collect();
        let place = self.stack.len();
        self.stack.push((print, state));
        let successors = successors.into_iter();
        self.path.push(Frame { number, low: number, place, successors });
    }

    /// Takes one step of the walk, which may complete a component; `None` at the end.
    fn step(&mut self) -> Option<Option<Printed<M::State>>> {
        let frame = self.path.last_mut()?;
        if let Some(next) = frame.successors.next() {
            let print = self.prints.of(&next);
            match self.numbers.get(&print) {
                None => self.enter(print, next),
                Some(&DONE) => {}
                Some(&number) => frame.low = frame.low.min(number),
            }
            return Some(None);
        }
        let Frame { number, low, place, .. } = self.path.pop()?;
        if low < number {
            if let Some(before) = self.path.last_mut() {
                before.low = before.low.min(low);
            }
            return Some(None);
        }
        let component = self.stack.split_off(place);
        for (print, _) in &component {
            self.numbers.insert(*print, DONE);
        }
        Some(Some(component))
    }
}

/// A deed that is possible in a state.
struct Possible<D, S> {
    /// Its place among the actions of the state.
    choice: usize,
    deed: D,
    /// Where it leads, if the run can last there.
    next: Option<S>,
}

/// Everything that has to happen in `state`.
fn steps<M: Lasting>(model: &M, state: &M::State) -> Vec<Possible<M::Deed, M::State>> {
    let mut actions = Vec::new();
    model.actions(state, &mut actions);
    let step = |(choice, action): (usize, M::Action)| {
        let deed = model.deed(state, &action)?;
        let next = model.next_state(state, action).filter(|next| model.can_last(next));
        Some(Possible { choice, deed, next })
    };
    actions.into_iter().enumerate().filter_map(step).collect()
}

/// States each of which leads to each.
pub(super) struct Component<M: Lasting> {
    /// Where each state is in the lists, by fingerprint.
    places: HashMap<u64, usize>,
    edges: Vec<Vec<Edge<M::Deed>>>,
    /// What is possible in each state, inside the component or out of it.
    possible: Vec<BTreeSet<M::Deed>>,
}

/// A step from one state of a component to another.
struct Edge<D> {
    choice: usize,
    deed: D,
    to: usize,
}

impl<M> Component<M>
where
    M: Lasting,
    M::State: Hash,
{
    /// The component of `states`, if there is a run that stays in it for ever and neglects nothing:
    /// what is possible in all of its states happens on one of its steps. Then a run that takes all
    /// steps again and again is one; otherwise no run is.
    fn fair<H>(
        model: &M,
        prints: &Prints,
        states: Printed<M::State>,
        pulse: &mut dyn FnMut() -> ControlFlow<H>,
    ) -> ControlFlow<H, Option<Self>> {
        let numbered = states.iter().enumerate().map(|(place, (print, _))| (*print, place));
        let places: HashMap<u64, usize> = numbered.collect();
        let (mut edges, mut possible) = (Vec::new(), Vec::new());
        for (place, (_, state)) in states.iter().enumerate() {
            if (place + 1).is_multiple_of(PULSE) {
                pulse()?;
            }
            let mut inside = Vec::new();
            for Possible { choice, deed, next } in steps(model, state) {
                let to = next.and_then(|next| places.get(&prints.of(&next)).copied());
                inside.extend(to.map(|to| Edge { choice, deed, to }));
            }
            edges.push(inside);
            possible.push(steps(model, state).into_iter().map(|step| step.deed).collect());
        }
        let component = Component::<M> { places, edges, possible };
        let is_closed = component.edges.iter().any(|edges| !edges.is_empty());
        let happens = |deed: &M::Deed| {
            component.edges.iter().flatten().any(|edge| edge.satisfies(deed, &component.possible))
        };
        let all_happen = component.possible[0].iter().all(happens);
        ControlFlow::Continue((is_closed && all_happen).then_some(component))
    }

    /// The fingerprints of the states.
    pub(super) fn prints(&self) -> impl Iterator<Item = u64> + '_ {
        self.places.keys().copied()
    }

    /// Which actions lead from the state with this fingerprint back to it without neglecting anything.
    /// `None` if it is not one of the component.
    pub(super) fn cycle(&self, print: u64) -> Option<Vec<usize>> {
        let start = *self.places.get(&print)?;
        let mut walk: Vec<&Edge<M::Deed>> = Vec::new();
        // What is neglected for ever would be possible at the start, too.
        for deed in &self.possible[start] {
            if !walk.iter().any(|edge| edge.satisfies(deed, &self.possible)) {
                let at = walk.last().map_or(start, |edge| edge.to);
                walk.extend(self.way(at, |edge| edge.satisfies(deed, &self.possible)));
            }
        }
        if walk.last().is_none_or(|edge| edge.to != start) {
            let at = walk.last().map_or(start, |edge| edge.to);
            walk.extend(self.way(at, |edge| edge.to == start));
        }
        Some(walk.into_iter().map(|edge| edge.choice).collect())
    }

    /// The shortest way from a state that ends with a step that `is_last`.
    fn way(&self, from: usize, is_last: impl Fn(&Edge<M::Deed>) -> bool) -> Vec<&Edge<M::Deed>> {
        let mut came_by: HashMap<usize, (usize, &Edge<M::Deed>)> = HashMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for edge in &self.edges[at] {
                if is_last(edge) {
                    let mut way = vec![edge];
                    let mut back = at;
                    while back != from {
                        let (before, edge) = came_by[&back];
                        way.push(edge);
                        back = before;
                    }
                    way.reverse();
                    return way;
                }
                if edge.to != from && !came_by.contains_key(&edge.to) {
                    came_by.insert(edge.to, (at, edge));
                    queue.push_back(edge.to);
                }
            }
        }
        unreachable!("the states of a component lead to each other")
    }
}

impl<D: Ord> Edge<D> {
    /// Whether `deed` happens here, or is not possible after it.
    fn satisfies(&self, deed: &D, possible: &[BTreeSet<D>]) -> bool {
        self.deed == *deed || !possible[self.to].contains(deed)
    }
}
