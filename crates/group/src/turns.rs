//! How long a member keeps a lock once the group has let it in.
//!
//! Members take turns by their algorithm, and clients of one member by the order of asking. A turn
//! that ends with the first client is the fairest to members and the slowest: every grant costs
//! messages. A turn as long for two clients as for three is unfair to the three. So a turn is as long as
//! the queue was when it began, so many times over: a client gets the same share wherever it is, and
//! messages are paid for by several grants. Whoever comes during the turn stands behind those who were
//! there; whoever gives up leaves its place in the turn to whoever is next.
//!
//! Clients take a while to come back: those of other processes about as long as the next one is inside. The
//! queue of two is empty then and their turn is over, while that of three would go on. So after the first
//! round a turn goes on only while of all who were there nobody is missing: that becomes as unlikely for three
//! as it is for two.

use crate::fence::MOST_HANDOVERS;

/// How long the turns of a member are. All members of a group should have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Turns {
    /// How often in a row a lock goes from one client of a member to the next, at the most.
    pub handovers: u8,
    /// For each client that was there when the turn began, so many are served, up to that bound.
    pub rounds: u8,
}

impl Turns {
    /// Turns of three clients are as long as they can be: 24 grants. Three members with 3, 3 and 2
    /// clients serve as many a second as with turns of 17 grants each, the bound before there were
    /// rounds; with fewer than 8 rounds they serve fewer.
    pub const USUAL: Turns = Turns { handovers: 23, rounds: 8 };
    /// The most rounds: more than that no turn can have.
    pub const MOST_ROUNDS: u8 = MOST_HANDOVERS + 1;

    /// How often the lock is handed over, at the most, in a turn that began with so many clients.
    #[inline]
    pub fn handovers_for(self, clients: usize) -> u8 {
        let grants = clients.saturating_mul(usize::from(self.rounds));
        grants.saturating_sub(1).min(usize::from(self.handovers)) as u8
    }

    /// Of how many clients nobody may be missing later in a turn that begins with so many. Of two the next one
    /// has to be there anyway, and where nobody is served twice it makes no difference: that is
    /// not kept in mind.
    #[inline]
    pub(crate) fn company(self, clients: usize) -> u8 {
        let comes_again = clients > 2 && usize::from(self.handovers_for(clients)) >= clients;
        if comes_again { u8::try_from(clients).unwrap_or(u8::MAX) } else { 0 }
    }

    /// Whether a turn goes on after so many hand-overs, where so many wait when somebody leaves.
    #[inline]
    pub(crate) fn goes_on(company: u8, handovers: u8, waiting: usize) -> bool {
        handovers.saturating_add(1) < company || waiting + 1 >= usize::from(company)
    }
}

impl Default for Turns {
    fn default() -> Self {
        Turns::USUAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_as_long_as_its_queue_so_many_times_over_up_to_the_bound() {
        let turns = [1, 2, 3, 4, 64, usize::MAX].map(|count| Turns::USUAL.handovers_for(count));
        assert_eq!(turns, [7, 15, 23, 23, 23, 23]);
        let once = Turns { handovers: 3, rounds: 1 };
        assert_eq!([1, 2, 3, 9].map(|count| once.handovers_for(count)), [0, 1, 2, 3]);
    }

    #[test]
    fn everybody_is_served_once_and_then_as_long_as_nobody_is_missing() {
        let company = Turns::USUAL.company(3);
        // The first and the second of three leave: whoever waits is served, whoever is missing.
        for (handovers, waiting) in [(0, 2), (0, 1), (1, 1), (1, 2)] {
            assert!(Turns::goes_on(company, handovers, waiting));
        }
        for handovers in [2, 3, 4, 22] {
            assert!(Turns::goes_on(company, handovers, 2));
            assert!(!Turns::goes_on(company, handovers, 1));
        }
        let once = Turns { handovers: 23, rounds: 1 };
        assert_eq!(
            [once.company(3), Turns::USUAL.company(24), Turns::USUAL.company(23)],
            [0, 0, 23]
        );
        // Where there are fewer, the next one is waited for by nobody.
        for clients in [1, 2] {
            assert!(Turns::goes_on(Turns::USUAL.company(clients), 5, 1));
        }
    }
}
