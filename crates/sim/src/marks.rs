//! Marks on numbered things that are all wiped at once.

/// Which of the things 0 to n-1 are marked. Wiping costs nothing, however many there are.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    /// The round in which each was marked last.
    marked_in: Vec<u64>,
    round: u64,
}

impl Marks {
    pub(crate) fn new(things: usize) -> Self {
        Marks { marked_in: vec![0; things], round: 1 }
    }

    /// Wipes all marks.
    pub(crate) fn wipe(&mut self) {
        self.round += 1;
    }

    pub(crate) fn contains(&self, thing: usize) -> bool {
        self.marked_in[thing] == self.round
    }

    /// Marks `thing`; false if it was marked already.
    pub(crate) fn insert(&mut self, thing: usize) -> bool {
        std::mem::replace(&mut self.marked_in[thing], self.round) != self.round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_lasts_until_it_is_wiped() {
        let mut marks = Marks::new(2);
        assert!(!marks.contains(1) && marks.insert(1) && !marks.insert(1));
        assert!(marks.contains(1) && !marks.contains(0));
        marks.wipe();
        assert!(!marks.contains(1) && marks.insert(1));
    }
}
