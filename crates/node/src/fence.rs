//! One ever-growing number per lock.
//!
//! What lets an old holder be refused is a number that grows from grant to grant. Three counts make
//! it: the epoch of the group, the number that the algorithm gave, and how often the lock went from
//! one client of this node to the next without the algorithm. They are packed into 64 bits, the
//! slowest first, so that comparing the integers compares them in that order.

use catraca_core::Fence;

const NUMBER_BITS: u32 = 40;
const HANDOVER_BITS: u32 = 8;

/// The most local hand-overs that one grant of the algorithm can serve.
pub(crate) const MOST_HANDOVERS: u8 = u8::MAX;

/// The number of a grant, or `None` when the algorithm has counted further than fits.
pub(crate) fn pack(epoch: u16, number: Fence, handover: u8) -> Option<Fence> {
    if number.0 >= 1 << NUMBER_BITS {
        return None;
    }
    let high = u64::from(epoch) << (NUMBER_BITS + HANDOVER_BITS);
    Some(Fence(high | number.0 << HANDOVER_BITS | u64::from(handover)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_epochs_numbers_and_handovers_are_larger() {
        let steps =
            [(1, 1, 0), (1, 1, 1), (1, 1, 255), (1, 2, 0), (1, (1 << 40) - 1, 9), (2, 0, 0)];
        let packed = steps.map(|(epoch, number, handover)| pack(epoch, Fence(number), handover));
        assert!(packed.iter().all(Option::is_some) && packed.is_sorted());
        assert_eq!(pack(1, Fence(1 << 40), 0), None);
    }
}
