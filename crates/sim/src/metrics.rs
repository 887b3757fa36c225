//! What a run measures: the four measures of S2, section 8.1, and fairness.

use crate::responses::Responses;
use crate::time::{TICKS_PER_UNIT, Time};

/// Counted while a run goes on. Can be set back, so that a warm-up does not count.
#[derive(Debug)]
pub(crate) struct Metrics {
    since: Time,
    pub(crate) entries: u64,
    /// Messages sent, by kind.
    pub(crate) sent: Vec<u64>,
    /// Messages sent to another cluster.
    pub(crate) between: u64,
    responses: Responses,
    /// For each cluster that a node entered from: its responses added up, and how many.
    by_cluster: Vec<(u128, u64)>,
    last_entry: Option<Time>,
    longest_wait: Time,
    delay_total: u128,
    delays: u64,
    /// When the resource was left while a node waited, until the next entry.
    left_at: Option<Time>,
}

impl Metrics {
    pub(crate) fn new(kinds: usize) -> Self {
        Metrics {
            since: Time::ZERO,
            entries: 0,
            sent: vec![0; kinds],
            between: 0,
            responses: Responses::default(),
            by_cluster: Vec::new(),
            last_entry: None,
            longest_wait: Time::ZERO,
            delay_total: 0,
            delays: 0,
            left_at: None,
        }
    }

    /// Forgets what was counted.
    pub(crate) fn reset(&mut self, now: Time) {
        let left_at = self.left_at;
        *self = Metrics { since: now, left_at, ..Metrics::new(self.sent.len()) };
    }

    /// A node of `cluster`, where there are clusters, enters.
    pub(crate) fn enter(&mut self, now: Time, asked_at: Time, cluster: Option<u32>) {
        let response = now - asked_at;
        if let Some(cluster) = cluster {
            let cluster = cluster as usize;
            if cluster >= self.by_cluster.len() {
                self.by_cluster.resize(cluster + 1, (0, 0));
            }
            let (total, count) = &mut self.by_cluster[cluster];
            (*total, *count) = (*total + u128::from(response.0), *count + 1);
        }
        self.entries += 1;
        self.last_entry = Some(now);
        self.responses.add(response);
        self.wait(response);
        if let Some(left_at) = self.left_at.take() {
            self.delay_total += u128::from((now - left_at).0);
            self.delays += 1;
        }
    }

    /// A node has waited so long, whether it was served or not.
    pub(crate) fn wait(&mut self, wait: Time) {
        self.longest_wait = self.longest_wait.max(wait);
    }

    pub(crate) fn leave(&mut self, now: Time, somebody_waits: bool) {
        self.left_at = somebody_waits.then_some(now);
    }

    pub(crate) fn window(&self, now: Time) -> Time {
        now - self.since
    }

    pub(crate) fn mean_delay(&self) -> Option<f64> {
        mean(self.delay_total, self.delays)
    }

    pub(crate) fn mean_response(&self) -> Option<f64> {
        self.responses.mean()
    }

    /// The longest mean response of a cluster, in that of the shortest.
    pub(crate) fn cluster_response_ratio(&self) -> Option<f64> {
        let means: Vec<f64> =
            self.by_cluster.iter().filter_map(|&(total, count)| mean(total, count)).collect();
        let shortest = means.iter().copied().fold(f64::INFINITY, f64::min);
        let longest = means.iter().copied().fold(0.0, f64::max);
        (means.len() > 1 && shortest > 0.0).then(|| longest / shortest)
    }

    pub(crate) fn response_p99(&self) -> Option<f64> {
        self.responses.p99()
    }

    pub(crate) fn last_entry(&self) -> Option<f64> {
        self.last_entry.map(Time::as_units)
    }

    pub(crate) fn longest_wait(&self) -> Time {
        self.longest_wait
    }
}

/// In units.
fn mean(total_ticks: u128, count: u64) -> Option<f64> {
    (count > 0).then(|| total_ticks as f64 / count as f64 / TICKS_PER_UNIT as f64)
}

/// Jain's index of fairness: 1 if all have the same, 1/N if one has everything.
pub(crate) fn jain(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        count += 1.0;
        sum += share;
        squares += share * share;
    }
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_runs_from_one_over_n_to_one() {
        assert_eq!(jain([2.0, 2.0, 2.0].into_iter()), Some(1.0));
        assert_eq!(jain([3.0, 0.0, 0.0].into_iter()), Some(1.0 / 3.0));
        assert_eq!(jain([0.0].into_iter()), None);
    }

    #[test]
    fn a_delay_counts_only_if_somebody_waited_at_the_release() {
        let mut metrics = Metrics::new(0);
        metrics.leave(Time::units(1), false);
        metrics.enter(Time::units(9), Time::units(8), None);
        assert_eq!(metrics.mean_delay(), None);
        metrics.leave(Time::units(10), true);
        metrics.enter(Time::units(12), Time::units(8), None);
        assert_eq!(metrics.mean_delay(), Some(2.0));
        assert_eq!(metrics.mean_response(), Some(2.5));
    }

    #[test]
    fn clusters_are_compared_by_their_mean_responses() {
        let mut metrics = Metrics::new(0);
        metrics.enter(Time::units(3), Time::units(1), Some(2));
        assert_eq!(metrics.cluster_response_ratio(), None, "there is one only");
        metrics.enter(Time::units(9), Time::units(5), Some(0));
        metrics.enter(Time::units(9), Time::units(1), Some(0));
        assert_eq!(metrics.cluster_response_ratio(), Some(3.0));
    }

    #[test]
    fn a_wait_that_was_not_served_is_no_response() {
        let mut metrics = Metrics::new(0);
        metrics.enter(Time(1_234_567), Time::ZERO, None);
        metrics.wait(Time(1_235_000));
        assert_eq!(metrics.response_p99(), Some(1.234567));
        assert_eq!(metrics.longest_wait(), Time(1_235_000));
    }
}
