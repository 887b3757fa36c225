//! One ever-growing number per lock.
//!
//! What lets an old holder be refused is a number that grows from grant to grant. Three counts make
//! it: the epoch of the group, the number that the algorithm gave, and how often the lock went from
//! one client of this member to the next without the algorithm. They are packed into 63 bits, the
//! slowest first, so that comparing the integers compares them in that order, also as signed ones.

use catraca_core::Fence;

use crate::view::Epoch;

const EPOCH_BITS: u32 = 26;
const NUMBER_BITS: u32 = 31;
const HANDOVER_BITS: u32 = 6;

/// The last epoch that fits.
pub(crate) const LAST_EPOCH: Epoch = Epoch((1 << EPOCH_BITS) - 1);

/// From this number on the group is asked for another view, in which numbers begin anew. So many are
/// left then that a lock which is granted ten million times a second does not wait for it.
pub(crate) const LATE: Fence = Fence((1 << NUMBER_BITS) - (1 << 26));

/// The most local hand-overs that one grant of the algorithm can serve.
pub const MOST_HANDOVERS: u8 = (1 << HANDOVER_BITS) - 1;

/// The fence of a grant; nothing when one of the counts has gone further than fits.
pub(crate) fn pack(epoch: Epoch, number: Fence, handover: u8) -> Option<Fence> {
    if epoch.0 >= 1 << EPOCH_BITS || number.0 >= 1 << NUMBER_BITS || handover > MOST_HANDOVERS {
        return None;
    }
    let high = u64::from(epoch.0) << (NUMBER_BITS + HANDOVER_BITS);
    Some(Fence(high | number.0 << HANDOVER_BITS | u64::from(handover)))
}

/// The three counts that make a fence: epoch, the algorithm's number, hand-overs.
pub fn unpack(fence: Fence) -> (Epoch, Fence, u8) {
    let number = fence.0 >> HANDOVER_BITS & ((1 << NUMBER_BITS) - 1);
    let epoch = fence.0 >> (NUMBER_BITS + HANDOVER_BITS);
    (Epoch(epoch as u32), Fence(number), handovers(fence))
}

/// How often the lock was handed over since the group granted it.
#[inline]
pub(crate) fn handovers(fence: Fence) -> u8 {
    fence.0 as u8 & MOST_HANDOVERS
}

/// The fence of the next client of this member after a hand-over; nothing after too many.
pub(crate) fn after_handover(fence: Fence) -> Option<Fence> {
    (fence.0 & u64::from(MOST_HANDOVERS) < u64::from(MOST_HANDOVERS)).then_some(Fence(fence.0 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_epochs_numbers_and_handovers_are_larger_and_none_is_negative() {
        let steps = [
            (1, 1, 0),
            (1, 1, 1),
            (1, 1, 63),
            (1, 2, 0),
            (1, (1 << 31) - 1, 9),
            (2, 0, 0),
            ((1 << 26) - 1, (1 << 31) - 1, 63),
        ];
        let packed =
            steps.map(|(epoch, number, handover)| pack(Epoch(epoch), Fence(number), handover));
        assert!(packed.iter().all(Option::is_some) && packed.is_sorted());
        assert!(packed.iter().flatten().all(|fence| fence.0 <= i64::MAX as u64));
        let unpacked = packed.map(|fence| fence.map(unpack));
        assert_eq!(
            unpacked,
            steps
                .map(|(epoch, number, handover)| { Some((Epoch(epoch), Fence(number), handover)) })
        );
    }

    #[test]
    fn what_does_not_fit_is_no_fence() {
        for (epoch, number, handover) in [(1 << 26, 0, 0), (1, 1 << 31, 0), (1, 1, 64)] {
            assert_eq!(pack(Epoch(epoch), Fence(number), handover), None);
        }
    }

    #[test]
    fn each_handover_is_the_next_number_until_they_are_used_up() {
        let mut fence = pack(Epoch(1), Fence(7), 0).unwrap();
        for handover in 1..=MOST_HANDOVERS {
            fence = after_handover(fence).unwrap();
            assert_eq!(Some(fence), pack(Epoch(1), Fence(7), handover));
        }
        assert_eq!(after_handover(fence), None);
    }
}
