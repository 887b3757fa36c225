//! The states that are first reached in the same number of steps.

use stateright::{Model, Property};

/// How many states are expanded in one go.
const JOB: usize = 128;

/// How a state was first reached. Steps are in the order of the search. Following them back needs
/// eight bytes a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step {
    /// The place of its predecessor in the level before.
    parent: u32,
    /// Which of the predecessor's actions led to it.
    action: u32,
}

impl Step {
    pub(super) fn new(parent: usize, action: usize) -> Self {
        // A level of four thousand million states would need a terabyte.
        let number = |n| u32::try_from(n).expect("a level has less than 2^32 states");
        Step { parent: number(parent), action: number(action) }
    }

    pub(super) fn parent(self) -> usize {
        self.parent as usize
    }

    pub(super) fn action(self) -> usize {
        self.action as usize
    }
}

/// The first violation of the first property that is broken: which property, and the step to it.
pub(super) type Worst = Option<(usize, Step)>;

pub(super) fn worse(one: Worst, other: Worst) -> Worst {
    one.into_iter().chain(other).min()
}

/// Some states of a level, in the order of the search, each with the step that leads to it.
pub(super) struct Block<S> {
    states: Vec<S>,
    steps: Vec<Step>,
    /// States including every repetition.
    pub(super) generated: u64,
    /// States of the levels before to which steps have led back.
    pub(super) back: Vec<S>,
    pub(super) worst: Worst,
}

impl<S> Block<S> {
    pub(super) fn new() -> Self {
        Block { states: Vec::new(), steps: Vec::new(), generated: 0, back: Vec::new(), worst: None }
    }

    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    /// The first of `properties` that `state` breaks.
    pub(super) fn broken<M>(model: &M, properties: &[Property<M>], state: &S) -> Option<usize>
    where
        M: Model<State = S>,
    {
        properties.iter().position(|it| !(it.condition)(model, state))
    }

    /// Adds a state, which breaks the property at place `broken`, if any.
    #[inline]
    pub(super) fn push(&mut self, state: S, step: Step, broken: Option<usize>) {
        self.worst = worse(self.worst, broken.map(|property| (property, step)));
        self.states.push(state);
        self.steps.push(step);
    }

    /// Gives back the memory kept for more states: a block lives as long as its level.
    pub(super) fn shrink(&mut self) {
        self.states.shrink_to_fit();
        self.steps.shrink_to_fit();
    }

    /// Takes out the states that were reached by one of `overtaken`, which are sorted.
    pub(super) fn remove(&mut self, overtaken: &[Step]) {
        let (Some(first), Some(last)) = (self.steps.first(), self.steps.last()) else { return };
        let from = overtaken.partition_point(|step| step < first);
        let to = overtaken.partition_point(|step| step <= last);
        let overtaken = &overtaken[from..to];
        if overtaken.is_empty() {
            return;
        }
        let stays: Vec<bool> =
            self.steps.iter().map(|step| overtaken.binary_search(step).is_err()).collect();
        let mut stay = stays.iter();
        self.states.retain(|_| stay.next() == Some(&true));
        self.steps.retain(|step| overtaken.binary_search(step).is_err());
    }
}

/// All states of a level, in the order of the search.
pub(super) struct Level<S> {
    blocks: Vec<Vec<S>>,
    len: usize,
}

impl<S> Level<S> {
    /// A level of `found`, whose steps go to the end of `trail`.
    pub(super) fn new(found: Vec<Block<S>>, trail: &mut Vec<Step>) -> Self {
        let mut level = Level { blocks: Vec::new(), len: 0 };
        trail.reserve_exact(found.iter().map(Block::len).sum());
        for block in found {
            level.len += block.len();
            trail.extend(block.steps);
            match level.blocks.last_mut() {
                // Small blocks are joined, or a level would decay into blocks of one state.
                Some(last) if last.len() + block.states.len() <= JOB => last.extend(block.states),
                _ => level.blocks.push(block.states),
            }
        }
        level
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The level in pieces of a handy size, each with the place of its first state.
    pub(super) fn jobs(&self) -> Vec<(usize, &[S])> {
        let mut place = 0;
        let pieces = self.blocks.iter().flat_map(|block| block.chunks(JOB));
        pieces
            .map(|states| {
                let first = place;
                place += states.len();
                (first, states)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overtaken_states_are_taken_out_with_their_steps() {
        let steps: Vec<Step> = (0..6).map(|parent| Step::new(parent, 0)).collect();
        let mut block = Block::new();
        (block.states, block.steps) = ((1..5).collect::<Vec<u32>>(), steps[1..5].to_vec());
        block.remove(&[steps[0], steps[2], steps[4], steps[5]]);
        assert_eq!((block.states, block.steps), (vec![1, 3], vec![steps[1], steps[3]]));
    }
}
