//! The end of a run: who still waits, and the figures of the report.

use std::collections::VecDeque;

use catraca_core::{Algorithm, Message, NodeId};

use super::Simulation;
use crate::metrics::jain;
use crate::report::{End, Frame, Report};
use crate::time::Time;

impl<A: Algorithm> Simulation<'_, A> {
    pub(super) fn finish(mut self, end: End) -> Report {
        let now = match (end, self.setup.limits.time) {
            (End::Time, Some(limit)) => limit,
            _ => self.queue.now(),
        };
        let waiting: Vec<NodeId> = self.waiting().collect();
        for &node in &waiting {
            let wait = now - self.sites[node.index()].asked_at;
            self.metrics.wait(wait);
            self.expect(now, |sim| sim.bypass.still_waits(node));
        }
        // The front of a backlog has waited longest.
        for request in self.backlog.values().filter_map(VecDeque::front) {
            self.metrics.wait(now - request.since);
        }
        if let Some(sets) = &mut self.sets {
            sets.concurrency.count_until(now);
        }
        self.measure(end, now, waiting.len() as u64)
    }

    fn measure(self, end: End, now: Time, waiting: u64) -> Report {
        let metrics = &self.metrics;
        let frame = Frame {
            window: metrics.window(now),
            latency: self.setup.network.latency.mean(),
            hold: self.setup.workload.hold.mean(),
        };
        let messages: u64 = metrics.sent.iter().sum();
        let between = self.setup.clusters.as_ref().map(|_| metrics.between);
        let within = between.map(|between| messages - between);
        let per_entry =
            |count: u64| (metrics.entries > 0).then(|| count as f64 / metrics.entries as f64);
        let concurrency = self.sets.as_ref().and_then(|sets| sets.concurrency.means(frame.window));
        let waits = self.sets.as_ref().map(|sets| sets.waits.means()).unwrap_or_default();
        let throughput = frame.throughput(metrics.entries);
        let shares = self.sites.iter().filter(|site| site.alive).map(|site| site.entries.into());
        Report {
            end: if self.violation.is_some() { End::Violation } else { end },
            time: now.as_units(),
            events: self.events,
            entries: metrics.entries,
            last_entry: metrics.last_entry(),
            messages,
            by_kind: A::Message::KINDS.iter().copied().zip(metrics.sent.iter().copied()).collect(),
            messages_per_entry: per_entry(messages),
            messages_within: within,
            messages_between: between,
            messages_within_per_entry: within.and_then(per_entry),
            messages_between_per_entry: between.and_then(per_entry),
            delay: metrics.mean_delay().and_then(|delay| frame.in_latencies(delay)),
            response_mean: metrics.mean_response(),
            response_p99: metrics.response_p99(),
            longest_wait: metrics.longest_wait().as_units(),
            throughput,
            throughput_of_bound: throughput.map(|throughput| frame.of_bound(throughput)),
            fairness: jain(shares),
            cluster_fairness: self.cluster_fairness(),
            cluster_response_ratio: metrics.cluster_response_ratio(),
            wait_in_use: waits.in_use,
            wait_in_line: waits.in_line,
            wait_rest: waits.rest,
            single_response_mean: waits.single,
            single_response_p99: waits.single_p99,
            several_response_mean: waits.several,
            several_response_p99: waits.several_p99,
            one_taken_share: waits.one_taken_share,
            one_taken_response_mean: waits.one_taken,
            concurrency: concurrency.map(|(inside, _)| inside),
            concurrency_possible: concurrency.map(|(_, possible)| possible),
            most_bypasses: self.bypass.most(),
            waiting,
            violation: self.violation,
        }
    }

    /// Over the entries per member, of the members that are alive.
    fn cluster_fairness(&self) -> Option<f64> {
        let clusters = self.setup.clusters.as_ref()?;
        let mut shares = vec![(0.0, 0.0); clusters.count() as usize];
        for node in NodeId::all(self.setup.spec.nodes) {
            let site = &self.sites[node.index()];
            if site.alive {
                let (entries, members) = &mut shares[clusters.of(node) as usize];
                *entries += f64::from(site.entries);
                *members += 1.0;
            }
        }
        let living = shares.iter().filter(|(_, members)| *members > 0.0);
        jain(living.map(|(entries, members)| entries / members))
    }
}
