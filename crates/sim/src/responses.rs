//! How long it took from request to entry: the mean and the 99th percentile.

use hdrhistogram::Histogram;

use crate::time::{TICKS_PER_UNIT, Time};

/// Up to so many responses each is kept, and the percentile is one of them.
const KEPT: usize = 1 << 16;

/// The responses of some requests.
#[derive(Debug, Default)]
pub(crate) struct Responses {
    kept: Vec<u64>,
    /// In place of those kept, once they are too many.
    histogram: Option<Histogram<u64>>,
    count: u64,
    /// In ticks.
    total: u128,
    longest: u64,
}

impl Responses {
    pub(crate) fn add(&mut self, Time(response): Time) {
        self.count += 1;
        self.total += u128::from(response);
        self.longest = self.longest.max(response);
        match &mut self.histogram {
            // The histogram grows by itself: recording cannot fail.
            Some(histogram) => drop(histogram.record(response)),
            None => self.kept.push(response),
        }
        if self.kept.len() > KEPT {
            self.spill();
        }
    }

    fn spill(&mut self) {
        // Three digits are within the allowed range, so the histogram can always be made.
        #[expect(clippy::unwrap_used, reason = "the number of digits is a valid constant")]
        let mut histogram = Histogram::new(3).unwrap();
        for response in std::mem::take(&mut self.kept) {
            histogram.record(response).ok();
        }
        self.histogram = Some(histogram);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// In units.
    pub(crate) fn mean(&self) -> Option<f64> {
        let (total, count) = (self.total as f64, self.count as f64);
        (self.count > 0).then(|| total / count / TICKS_PER_UNIT as f64)
    }

    /// The shortest time, in units, within which 99 % were served. One of the responses, as long as
    /// all are kept; after that within 0.1 % of one.
    pub(crate) fn p99(&self) -> Option<f64> {
        let rank = usize::try_from((99 * self.count).div_ceil(100)).ok()?.checked_sub(1)?;
        let ticks = match &self.histogram {
            Some(histogram) => {
                let upper_edge = histogram.value_at_quantile(0.99);
                histogram.median_equivalent(upper_edge).min(self.longest)
            }
            None => *self.kept.clone().select_nth_unstable(rank).1,
        };
        Some(Time(ticks).as_units())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn responses(ticks: impl Iterator<Item = u64>) -> Responses {
        let mut responses = Responses::default();
        ticks.for_each(|response| responses.add(Time(response)));
        responses
    }

    #[test]
    fn the_percentile_of_few_responses_is_one_of_them() {
        assert_eq!(responses([].into_iter()).p99(), None);
        assert_eq!(responses([1_234_567].into_iter()).p99(), Some(1.234567));
        assert_eq!(responses([1_234_567, 5].into_iter()).p99(), Some(1.234567));
        // The 99th of a hundred in order of length, in whatever order they come.
        let hundred = |unit: u64| responses((1..=100).rev().map(move |one| one * unit));
        assert_eq!(hundred(1_000_003).p99(), Some(99.000297));
        assert_eq!(hundred(1_000_003).mean(), Some(50.5001515));
    }

    #[test]
    fn the_percentile_of_many_responses_is_within_a_thousandth() {
        let count = 10 * KEPT as u64;
        let many = responses((1..=count).map(|one| one * 1000));
        assert!(many.histogram.is_some() && many.kept.is_empty());
        assert_eq!(many.count(), count);
        let exact = Time((99 * count).div_ceil(100) * 1000).as_units();
        assert!((many.p99().unwrap() / exact - 1.0).abs() < 0.001, "{:?} {exact}", many.p99());
        // The least of the values that the histogram takes for equal: their middle is beyond it.
        let alike = responses((0..count).map(|_| 1 << 20));
        assert_eq!(alike.p99(), Some(1.048576), "not beyond the longest");
    }
}
