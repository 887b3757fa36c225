//! Who has answered a request, in memory that follows how many have answered.
//!
//! A set with a bit for every node up to its largest would take 125 kB for a single answer of the
//! millionth node, and a graph may have a million requests. Labels that are copied or joined share
//! their sets until one of them changes.

use alloc::sync::Arc;
use alloc::vec::Vec;

use catraca_core::NodeId;

/// The nodes that have answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Answers(Arc<Words>);

impl Answers {
    pub(super) fn of(node: NodeId) -> Self {
        let (index, bit) = place(node);
        Answers(Arc::new(Words { words: [(index, bit)].into(), count: 1 }))
    }

    pub(super) fn contains(&self, node: NodeId) -> bool {
        let (index, bit) = place(node);
        self.0.word(index) & bit != 0
    }

    /// How many have answered.
    pub(super) fn len(&self) -> u32 {
        self.0.count
    }

    /// Adds all of `other`.
    pub(super) fn join(&mut self, Answers(other): &Self) {
        let Answers(words) = self;
        if Arc::ptr_eq(words, other) {
            return;
        }
        if other.count >= words.count && other.includes(words) {
            *words = Arc::clone(other);
        } else if !words.includes(other) {
            Arc::make_mut(words).join(other);
        }
    }
}

/// A set of nodes: words of 64 nodes, sorted, of which only those that are not empty are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Words {
    words: Vec<(u32, u64)>,
    count: u32,
}

impl Words {
    fn word(&self, index: u32) -> u64 {
        let word = self.words.binary_search_by_key(&index, |&(index, _)| index);
        word.map_or(0, |word| self.words[word].1)
    }

    fn includes(&self, other: &Self) -> bool {
        let mut ours = self.words.iter();
        other.words.iter().all(|&(index, bits)| {
            let same = ours.find(|&&(ours, _)| ours >= index);
            same.is_some_and(|&(ours, word)| ours == index && bits & !word == 0)
        })
    }

    fn join(&mut self, other: &Self) {
        let mut from = 0;
        for &(index, bits) in &other.words {
            match self.words[from..].binary_search_by_key(&index, |&(index, _)| index) {
                Ok(word) => {
                    from += word;
                    let word = &mut self.words[from].1;
                    self.count += (bits & !*word).count_ones();
                    *word |= bits;
                }
                Err(word) => {
                    from += word;
                    self.count += bits.count_ones();
                    self.words.insert(from, (index, bits));
                }
            }
        }
    }
}

/// The word of a node, and its bit there.
fn place(node: NodeId) -> (u32, u64) {
    (node.0 / u64::BITS, 1 << (node.0 % u64::BITS))
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_of_answers_is_a_set(
            ours in prop::collection::btree_set(0u32..300, 0..20),
            theirs in prop::collection::btree_set(0u32..300, 0..20),
        ) {
            let set = |nodes: &BTreeSet<u32>| {
                let mut set = Answers::default();
                nodes.iter().for_each(|&node| set.join(&Answers::of(NodeId(node))));
                set
            };
            let mut joined = set(&ours);
            joined.join(&set(&theirs));
            let expected: BTreeSet<u32> = ours.union(&theirs).copied().collect();
            prop_assert_eq!(&joined, &set(&expected));
            prop_assert_eq!(joined.len() as usize, expected.len());
            prop_assert!((0..300).all(|node| joined.contains(NodeId(node)) == expected.contains(&node)));
        }
    }

    #[test]
    fn one_answer_of_the_last_node_takes_one_word() {
        assert_eq!(Answers::of(NodeId(u32::MAX)).0.words.len(), 1);
    }
}
