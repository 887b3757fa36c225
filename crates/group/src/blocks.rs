//! A table that grows without moving what is in it.
//!
//! A node may have a million locks, in as many tables as it has shards. A vector that doubles leaves the
//! memory of the smaller one behind, and that is too much to be forgotten and too scattered to be given
//! back: a good part of what locks take. Here the entries are in blocks, and a full block stays where it is.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// So many entries are in a block.
const BLOCK: usize = 64;

/// A table whose entries are found by their places.
#[derive(Clone, Debug)]
pub(crate) struct Blocks<T> {
    /// All but the last are full.
    blocks: Vec<Vec<T>>,
}

impl<T> Blocks<T> {
    pub(crate) const fn new() -> Self {
        Blocks { blocks: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        match self.blocks.split_last() {
            Some((last, full)) => full.len() * BLOCK + last.len(),
            None => 0,
        }
    }

    /// Puts an entry at the end.
    pub(crate) fn push(&mut self, entry: T) {
        match self.blocks.last_mut() {
            Some(last) if last.len() < BLOCK => last.push(entry),
            // A member with few locks has a small block; one with many has whole ones.
            first => {
                let capacity = if first.is_none() { 1 } else { BLOCK };
                let mut block = Vec::with_capacity(capacity);
                block.push(entry);
                self.blocks.push(block);
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().flatten()
    }
}

impl<T> Index<usize> for Blocks<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: usize) -> &T {
        &self.blocks[place / BLOCK][place % BLOCK]
    }
}

impl<T> IndexMut<usize> for Blocks<T> {
    #[inline]
    fn index_mut(&mut self, place: usize) -> &mut T {
        &mut self.blocks[place / BLOCK][place % BLOCK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_where_they_are_and_in_order() {
        let mut table = Blocks::new();
        assert_eq!((table.len(), table.iter().next()), (0, None));
        for entry in 0..3 * BLOCK + 5 {
            assert_eq!(table.len(), entry);
            table.push(entry);
        }
        let places: Vec<*const usize> = table.iter().map(core::ptr::from_ref).collect();
        table[BLOCK] = 7;
        (0..BLOCK).for_each(|entry| table.push(entry));
        assert!(
            table
                .iter()
                .map(core::ptr::from_ref)
                .take(3 * BLOCK)
                .eq(places[..3 * BLOCK].iter().copied())
        );
        assert_eq!((table[0], table[BLOCK], table[3 * BLOCK + 4]), (0, 7, 3 * BLOCK + 4));
        assert!(table.clone().iter().eq(table.iter()));
    }
}
