//! Who stays when members that all reach the registry do not all reach each other.

use alloc::vec::Vec;

/// So many steps are looked for the largest set; then the best one so far counts. More are needed only
/// if a great many pairs are cut off from each other at once.
const MOST_STEPS: u32 = 100_000;

/// The largest set of members in which everybody reaches everybody, of `members`, at most 64.
/// `is_cut` says which pairs are cut off from each other. Of sets of one size the one with the earlier
/// members counts: everybody who knows the same cuts finds the same set.
pub(crate) fn largest_connected(
    members: usize,
    is_cut: impl Fn(usize, usize) -> bool,
) -> Vec<usize> {
    let members = members.min(64);
    let mut reached = Vec::with_capacity(members);
    for one in 0..members {
        let reaches = |&other: &usize| other != one && !is_cut(one, other) && !is_cut(other, one);
        reached.push((0..members).filter(reaches).fold(0u64, |set, other| set | 1 << other));
    }
    let everybody = if members == 64 { u64::MAX } else { (1 << members) - 1 };
    let mut search = Search { reached: &reached, best: 0, steps: 0 };
    search.extend(0, everybody);
    (0..members).filter(|&member| search.best & 1 << member != 0).collect()
}

struct Search<'a> {
    reached: &'a [u64],
    best: u64,
    steps: u32,
}

impl Search<'_> {
    /// Tries every set that has `chosen` and some of the `candidates`, earlier members first.
    fn extend(&mut self, chosen: u64, mut candidates: u64) {
        self.steps += 1;
        if chosen.count_ones() > self.best.count_ones() {
            self.best = chosen;
        }
        while candidates != 0 && self.steps < MOST_STEPS {
            // Not even all of them would make it larger than the best one.
            if chosen.count_ones() + candidates.count_ones() <= self.best.count_ones() {
                return;
            }
            let member = candidates.trailing_zeros() as usize;
            self.extend(chosen | 1 << member, candidates & self.reached[member]);
            candidates &= !(1 << member);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(members: usize, cuts: &[(usize, usize)]) -> Vec<usize> {
        largest_connected(members, |one, other| cuts.contains(&(one, other)))
    }

    #[test]
    fn everybody_stays_when_everybody_is_reached() {
        assert_eq!(keep(3, &[]), [0, 1, 2]);
        assert_eq!(keep(64, &[]).len(), 64);
        assert_eq!(keep(0, &[]), []);
    }

    #[test]
    fn of_two_that_are_cut_off_the_earlier_one_stays() {
        assert_eq!(keep(3, &[(1, 0)]), [0, 2]);
        assert_eq!(keep(3, &[(0, 1), (1, 0)]), [0, 2], "said by one or by both");
        assert_eq!(keep(2, &[(0, 1)]), [0]);
    }

    #[test]
    fn whoever_is_cut_off_from_most_goes_even_if_it_came_first() {
        assert_eq!(keep(4, &[(0, 1), (0, 2)]), [1, 2, 3]);
        assert_eq!(keep(5, &[(0, 3), (0, 4), (1, 3), (1, 4), (2, 3), (2, 4)]), [0, 1, 2]);
    }

    #[test]
    fn a_hopeless_network_is_answered_in_bounded_time() {
        // Pairs that are cut off from each other: every choice of one of each pair is as good.
        let kept = largest_connected(64, |one, other| one / 2 == other / 2 && one != other);
        assert_eq!(kept.len(), 32);
        assert_eq!(kept[0], 0);
    }
}
