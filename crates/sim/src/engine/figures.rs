//! The end of a run: who still waits, and the figures of the report.

use catraca_core::{Algorithm, Message, NodeId, Phase};

use super::{Simulation, Site};
use crate::metrics::jain;
use crate::monitor::nobody_waits;
use crate::report::{End, Frame, Report};
use crate::time::Time;

impl<A: Algorithm> Simulation<'_, A> {
    pub(super) fn finish(mut self, end: End) -> Report {
        let now = match (end, self.setup.limits.time) {
            (End::Time, Some(limit)) => limit,
            _ => self.queue.now(),
        };
        let is_waiting = |site: &Site| site.phase == Phase::Waiting;
        let waiting: Vec<NodeId> = NodeId::all(self.setup.spec.nodes)
            .filter(|node| is_waiting(&self.sites[node.index()]))
            .collect();
        for &node in &waiting {
            let wait = now - self.sites[node.index()].asked_at;
            self.metrics.wait(wait);
            self.expect(now, |sim| sim.bypass.still_waits(node));
        }
        if end == End::Quiet {
            self.expect(now, |_| nobody_waits(waiting.iter().copied()));
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
        let throughput = frame.throughput(metrics.entries);
        let shares = self.sites.iter().filter(|site| site.alive).map(|site| site.entries.into());
        Report {
            end: if self.violation.is_some() { End::Violation } else { end },
            time: now.as_units(),
            events: self.events,
            entries: metrics.entries,
            messages,
            by_kind: A::Message::KINDS.iter().copied().zip(metrics.sent.iter().copied()).collect(),
            messages_per_entry: (metrics.entries > 0)
                .then(|| messages as f64 / metrics.entries as f64),
            delay: metrics.mean_delay().and_then(|delay| frame.in_latencies(delay)),
            response_mean: metrics.mean_response(),
            response_p99: metrics.response_p99(),
            longest_wait: metrics.longest_wait().as_units(),
            throughput,
            throughput_of_bound: throughput.map(|throughput| frame.of_bound(throughput)),
            fairness: jain(shares),
            most_bypasses: self.bypass.most(),
            waiting,
            violation: self.violation,
        }
    }
}
