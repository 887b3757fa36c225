//! What has happened at a node in the last minutes, second by second.
//!
//! Everything is counted where it arises, and only grows; once a second all of it is read, and what is
//! different from the second before is kept. The ring is bounded, whatever happens.

use std::collections::VecDeque;
use std::time::Duration;

use catraca_group::{Histogram, Times};
use serde::Serialize;
use utoipa::ToSchema;

/// So many samples are kept: ten minutes.
pub(crate) const MOST_SAMPLES: usize = 600;

/// What was counted up to one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) grants: u64,
    pub(crate) handovers: u64,
    pub(crate) sent: u64,
    pub(crate) arrived: u64,
    pub(crate) refused: u64,
    pub(crate) times: Times,
    /// How long the registry takes to answer.
    pub(crate) registry: Histogram,
    /// How it is at that moment.
    pub(crate) locks: u64,
    pub(crate) held: u64,
    pub(crate) waiting: u64,
    pub(crate) longest_queue: u64,
    pub(crate) sessions: u64,
}

/// How long something took within an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct Took {
    /// How many there were.
    pub(crate) count: u64,
    /// Half of them took at most so many milliseconds; right to a factor of two. Nothing if there were none.
    pub(crate) p50_ms: Option<f64>,
    /// 99 of 100 took at most so long.
    pub(crate) p99_ms: Option<f64>,
}

impl Took {
    pub(crate) fn of(histogram: &Histogram) -> Self {
        let millis = |share| histogram.quantile(share).map(|time| time.as_secs_f64() * 1000.0);
        Took { count: histogram.count(), p50_ms: millis(0.5), p99_ms: millis(0.99) }
    }
}

/// What happened within one interval, and how it was at its end.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Sample {
    /// When the interval ended, in milliseconds since 1970.
    pub(crate) unix_ms: u64,
    /// How long it was, in milliseconds: about a second.
    pub(crate) took_ms: u64,
    /// Grants to clients of this node.
    pub(crate) grants: u64,
    /// Of these, by hand-over from another client of this node.
    pub(crate) handovers: u64,
    /// Messages of algorithms to other members.
    pub(crate) sent: u64,
    /// Messages of algorithms from other members.
    pub(crate) arrived: u64,
    /// Requests that were refused.
    pub(crate) refused: u64,
    /// Waits that came to their end by a grant.
    pub(crate) waits: Took,
    /// Holds that ended.
    pub(crate) holds: Took,
    /// Times between one's leaving and the next client's being inside.
    pub(crate) between: Took,
    /// Answers of the registry.
    pub(crate) registry: Took,
    /// Locks that the node keeps.
    pub(crate) locks: u64,
    /// Holds of clients of this node.
    pub(crate) held: u64,
    /// Clients of this node that wait.
    pub(crate) waiting: u64,
    /// How many of them wait in the longest queue.
    pub(crate) longest_queue: u64,
    /// Sessions, timed holds included.
    pub(crate) sessions: u64,
}

impl Sample {
    fn between(before: &Counted, now: &Counted, unix_ms: u64, took: Duration) -> Self {
        let since = |now: &Histogram, before: &Histogram| Took::of(&now.since(before));
        Sample {
            unix_ms,
            took_ms: took.as_millis() as u64,
            grants: now.grants.saturating_sub(before.grants),
            handovers: now.handovers.saturating_sub(before.handovers),
            sent: now.sent.saturating_sub(before.sent),
            arrived: now.arrived.saturating_sub(before.arrived),
            refused: now.refused.saturating_sub(before.refused),
            waits: since(&now.times.waits, &before.times.waits),
            holds: since(&now.times.holds, &before.times.holds),
            between: since(&now.times.handovers, &before.times.handovers),
            registry: since(&now.registry, &before.registry),
            locks: now.locks,
            held: now.held,
            waiting: now.waiting,
            longest_queue: now.longest_queue,
            sessions: now.sessions,
        }
    }
}

/// The last samples.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    last: Option<Counted>,
    samples: VecDeque<Sample>,
}

impl Rates {
    /// Takes in what was counted up to now, `took` after it was the last time. The first time there is
    /// nothing to compare it with. Returns whether it was that.
    pub(crate) fn add(&mut self, now: Counted, unix_ms: u64, took: Duration) -> bool {
        let Some(before) = self.last.replace(now) else { return true };
        if self.samples.len() >= MOST_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample::between(&before, &now, unix_ms, took));
        false
    }

    /// The samples, the oldest first.
    pub(crate) fn samples(&self) -> &VecDeque<Sample> {
        &self.samples
    }

    /// The average of something over some samples, counted from the newest, which is 0; nothing if there are not
    /// so many.
    pub(crate) fn average(
        &self,
        samples: std::ops::Range<usize>,
        of: impl Fn(&Sample) -> u64,
    ) -> Option<f64> {
        let count = samples.len();
        let chosen = self.samples.iter().rev().skip(samples.start).take(count);
        let (sum, found) = chosen.fold((0, 0), |(sum, found), it| (sum + of(it), found + 1));
        (found == count && count > 0).then(|| sum as f64 / count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_sample_is_the_difference_from_the_second_before() {
        let mut rates = Rates::default();
        let mut counted = Counted { grants: 100, waiting: 3, ..Counted::default() };
        counted.times.waits.add(SECOND, 50);
        rates.add(counted, 1000, SECOND);
        assert!(rates.samples().is_empty(), "nobody knows when that was");
        counted.grants = 107;
        counted.waiting = 4;
        counted.times.waits.add(Duration::from_millis(1), 7);
        rates.add(counted, 2000, SECOND);
        let sample = &rates.samples()[0];
        assert_eq!((sample.unix_ms, sample.grants, sample.waiting), (2000, 7, 4));
        assert_eq!(sample.waits.count, 7);
        assert!(sample.waits.p99_ms.unwrap() <= 1.1, "{sample:?}");
        assert_eq!(sample.holds, Took { count: 0, p50_ms: None, p99_ms: None });
    }

    #[test]
    fn ten_minutes_are_kept_and_no_more() {
        let mut rates = Rates::default();
        for second in 0..2 * MOST_SAMPLES as u64 {
            rates.add(Counted { grants: second, ..Counted::default() }, second, SECOND);
        }
        assert_eq!(rates.samples().len(), MOST_SAMPLES);
        assert_eq!(rates.samples().back().unwrap().unix_ms, 2 * MOST_SAMPLES as u64 - 1);
    }

    #[test]
    fn an_average_needs_all_of_its_samples() {
        let mut rates = Rates::default();
        for waiting in [9, 1, 2, 3] {
            rates.add(Counted { waiting, ..Counted::default() }, 0, SECOND);
        }
        let waiting = |sample: &Sample| sample.waiting;
        assert_eq!(rates.average(0..1, waiting), Some(3.0));
        assert_eq!(rates.average(0..2, waiting), Some(2.5));
        assert_eq!(rates.average(1..3, waiting), Some(1.5));
        assert_eq!(rates.average(0..4, waiting), None);
        assert_eq!(rates.average(0..0, waiting), None);
    }
}
