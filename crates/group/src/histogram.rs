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

    /// What was counted after `earlier`, which is what this has been before.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let mut counts = self.counts;
        counts
            .iter_mut()
            .zip(earlier.counts)
            .for_each(|(now, then)| *now = now.saturating_sub(then));
        Histogram { counts, nanos: self.nanos.saturating_sub(earlier.nanos) }
    }

    /// The time within which this share of them was over, from 0 to 1; nothing if there were none. The truth
    /// is in the same power of two: of what took longer than the last bound, that bound is said.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let all = self.count();
        let rank = (share.clamp(0.0, 1.0) * all as f64).max(1.0);
        let mut before = 0;
        for (index, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            if (before + count) as f64 >= rank {
                let micros = |bound: usize| (1_u64 << bound.min(BOUNDS - 1)) as f64;
                let (low, high) =
                    if index == 0 { (0.0, 1.0) } else { (micros(index - 1), micros(index)) };
                // They are taken as evenly spread between two bounds.
                let within = (rank - before as f64) / count as f64;
                return Some(Duration::from_nanos((1000.0 * (low + within * (high - low))) as u64));
            }
            before += count;
        }
        None
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
    fn a_quantile_lies_between_the_bounds_of_its_rank() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        histogram.add(Duration::from_micros(100), 99);
        histogram.add(Duration::from_secs(10), 1);
        let micros = |share| histogram.quantile(share).unwrap().as_micros();
        assert!((65..=128).contains(&micros(0.5)), "{}", micros(0.5));
        assert!((65..=128).contains(&micros(0.99)), "{}", micros(0.99));
        assert!((8_388_608..=16_777_216).contains(&micros(1.0)), "{}", micros(1.0));
        assert!(micros(0.0) <= micros(0.5) && micros(0.5) < micros(0.9));
        let mut endless = Histogram::default();
        endless.add(Duration::from_secs(3600), 1);
        assert_eq!(endless.quantile(0.5), Some(Duration::from_micros(1 << 27)), "the last bound");
    }

    #[test]
    fn what_was_counted_since_is_the_difference() {
        let mut histogram = Histogram::default();
        histogram.add(Duration::from_millis(1), 3);
        let earlier = histogram;
        histogram.add(Duration::from_secs(1), 2);
        let since = histogram.since(&earlier);
        assert_eq!((since.count(), since.sum()), (2, Duration::from_secs(2)));
        assert_eq!(earlier.since(&histogram), Histogram::default(), "it does not wrap");
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
