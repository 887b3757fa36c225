//! How long things take, counted by powers of two.

use core::time::Duration;

/// How many bounds there are. The first is a microsecond, and each is twice the one before.
const BOUNDS: usize = 28;

/// Counts by how long something took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// For each bound, how many took at most that long and longer than the bound before; then the rest.
    counts: [u64; BOUNDS + 1],
    nanos: u64,
}

impl Histogram {
    /// Something took so long; it stands for `weight` of its kind.
    #[inline]
    pub fn add(&mut self, time: Duration, weight: u64) {
        let nanos = time.as_nanos() as u64;
        let micros = nanos.div_ceil(1000).max(1);
        // The number of the first power of two that is not smaller.
        let bound = (u64::BITS - (micros - 1).leading_zeros()) as usize;
        self.counts[bound.min(BOUNDS)] += weight;
        self.nanos = self.nanos.saturating_add(nanos.saturating_mul(weight));
    }

    /// Adds what another one has counted.
    pub fn merge(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(other.counts).for_each(|(sum, more)| *sum += more);
        self.nanos = self.nanos.saturating_add(other.nanos);
    }

    /// For each bound, how many took at most that long and longer than the bound before.
    pub fn counts(&self) -> impl Iterator<Item = (Duration, u64)> {
        (0..BOUNDS).map(|bound| (Duration::from_micros(1 << bound), self.counts[bound]))
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How long they took together.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.nanos)
    }
}

/// How long clients of a member wait for locks and hold them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// From asking to being inside, of those who had to wait.
    pub waits: Histogram,
    /// From being inside to leaving.
    pub holds: Histogram,
    /// From one's leaving until the next client of the member is inside, if one waited.
    pub handovers: Histogram,
}

impl Times {
    /// Adds what another part of the member has counted.
    pub fn merge(&mut self, other: &Times) {
        self.waits.merge(&other.waits);
        self.holds.merge(&other.holds);
        self.handovers.merge(&other.handovers);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn what_takes_as_long_as_a_bound_is_counted_there_and_what_takes_longer_at_the_next() {
        let bound = |nanos| {
            let mut histogram = Histogram::default();
            histogram.add(Duration::from_nanos(nanos), 1);
            histogram.counts().position(|(_, count)| count == 1)
        };
        let expected = [
            (0, Some(0)),
            (1, Some(0)),
            (1_000, Some(0)),
            (1_001, Some(1)),
            (2_000, Some(1)),
            (2_001, Some(2)),
            (1_000 << 27, Some(27)),
            ((1_000 << 27) + 1, None),
            (u64::MAX, None),
        ];
        for (nanos, at) in expected {
            assert_eq!(bound(nanos), at, "{nanos}");
        }
    }

    #[test]
    fn counts_and_sums_add_up() {
        let (mut one, mut other) = (Histogram::default(), Histogram::default());
        one.add(Duration::from_millis(1), 1);
        other.add(Duration::from_secs(1), 64);
        other.add(Duration::from_secs(u64::MAX / 2), 1);
        one.merge(&other);
        assert_eq!(one.count(), 66);
        assert_eq!(one.sum(), Duration::from_nanos(u64::MAX), "it does not wrap");
        let counted: Vec<u64> = one.counts().map(|(_, count)| count).filter(|&it| it > 0).collect();
        assert_eq!(counted, [1, 64]);
    }
}
