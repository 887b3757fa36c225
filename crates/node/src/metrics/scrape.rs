//! One look at a node, written as OpenMetrics.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use catraca_group::{Histogram, LinkStatus, Readiness, Status, Times};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text::encode};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::Interface;
use crate::engine::Engine;

/// How a node is doing, in the form of OpenMetrics.
pub(crate) fn text(engine: &Engine) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape::of(engine)));
    let mut text = String::new();
    // Writing to a text cannot fail.
    encode(&mut text, &registry).unwrap_or_default();
    text
}

/// One line of a family: its labels, if any, and its value.
type Sample = (Vec<(&'static str, String)>, f64);

/// Everything that is told, as it is at one instant.
#[derive(Debug)]
struct Scrape {
    gauges: Vec<(&'static str, &'static str, Vec<Sample>)>,
    counters: Vec<(&'static str, &'static str, Vec<Sample>)>,
    histograms: Vec<(&'static str, &'static str, Histogram)>,
}

impl Scrape {
    fn of(engine: &Engine) -> Self {
        let status = engine.status();
        let (times, longest) = engine.measured();
        let mut scrape =
            Scrape { gauges: Vec::new(), counters: Vec::new(), histograms: Vec::new() };
        scrape.add_member(&status);
        scrape.add_locks(&status, longest);
        scrape.add_times(&times, engine);
        scrape.add_interfaces(engine);
        scrape.add_process(engine);
        scrape
    }

    fn gauge(&mut self, name: &'static str, help: &'static str, value: f64) {
        self.gauges.push((name, help, vec![(Vec::new(), value)]));
    }

    fn counter(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.counters.push((name, help, vec![(Vec::new(), value as f64)]));
    }

    /// The view, the lease and the other members.
    fn add_member(&mut self, status: &Status) {
        let is_ready = status.readiness == Readiness::Ready;
        self.gauge("catraca_ready", "Whether locks are granted", f64::from(u8::from(is_ready)));
        self.gauge("catraca_uptime_seconds", "How long the node runs", seconds(status.millis));
        self.gauge("catraca_view_epoch", "The number of the view", status.epoch.into());
        let in_view = status.members.iter().filter(|member| member.is_in_view).count();
        self.gauge("catraca_view_members", "Members of the view", in_view as f64);
        let left = status.valid.unwrap_or_default();
        let help = "How long locks may be granted unless the lease is renewed";
        self.gauge("catraca_lease_left_seconds", help, seconds(left));
        let of = |name: &str| vec![("member", name.to_string())];
        let ages =
            status.members.iter().filter_map(|it| Some((of(&it.name), seconds(it.renewed?))));
        let help = "How long ago a member was seen to renew its lease";
        self.gauges.push(("catraca_lease_age_seconds", help, ages.collect()));
        let others = status.members.iter().filter(|it| it.link != LinkStatus::Itself);
        let is_up = |link: &LinkStatus| f64::from(u8::from(matches!(link, LinkStatus::Up(_))));
        let links = others.map(|it| (of(&it.name), is_up(&it.link))).collect();
        self.gauges.push(("catraca_link_up", "Whether a member is connected", links));
    }

    fn add_locks(&mut self, status: &Status, longest: u64) {
        self.gauge("catraca_locks", "Locks that the node keeps", status.locks as f64);
        self.gauge("catraca_holds", "Holds of clients of this node", status.held as f64);
        self.gauge("catraca_waiters", "Clients of this node that wait", status.waiting as f64);
        let help = "Clients in the longest queue of this node";
        self.gauge("catraca_longest_queue", help, longest as f64);
        self.gauge("catraca_sessions", "Sessions, timed holds included", status.sessions as f64);
        self.counter("catraca_grants", "Grants to clients of this node", status.grants);
        let help = "Grants by hand-over from another client of this node";
        self.counter("catraca_handovers", help, status.handovers);
        let help = "Messages of algorithms that came from other members";
        self.counter("catraca_messages_received", help, status.arrived);
        let sent = status.namespaces.iter().flat_map(|namespace| {
            let algorithm = &namespace.algorithm;
            let labels = move |kind: &String| {
                let names = &namespace.pattern;
                let all = [("algorithm", algorithm), ("kind", kind), ("namespace", names)];
                all.map(|(label, value)| (label, value.clone())).to_vec()
            };
            namespace.messages.iter().map(move |(kind, sum)| (labels(kind), *sum as f64))
        });
        let help = "Messages of algorithms to other members";
        self.counters.push(("catraca_messages_sent", help, sent.collect()));
        let help = "What came that cannot come in a correct run";
        self.counter("catraca_anomalies", help, status.anomalies);
    }

    fn add_times(&mut self, times: &Times, engine: &Engine) {
        let metrics = engine.metrics();
        let help = "From asking to being inside, of those who had to wait";
        self.histograms.push(("catraca_wait_seconds", help, times.waits));
        let help = "From being inside to leaving; of the program that runs the node, an estimate";
        self.histograms.push(("catraca_hold_seconds", help, times.holds));
        let help = "From one's leaving until the next client here is inside, if one waited";
        self.histograms.push(("catraca_handover_seconds", help, times.handovers));
        let registry = *crate::mutex::hold(&metrics.registry);
        let help = "How long the registry takes to answer";
        self.histograms.push(("catraca_registry_seconds", help, registry));
        let failures = metrics.registry_failures.load(Ordering::Relaxed);
        self.counter("catraca_registry_failures", "What the registry did not answer", failures);
        let views = metrics.views.load(Ordering::Relaxed);
        self.counter("catraca_view_changes", "Views that have begun here", views);
    }

    fn add_interfaces(&mut self, engine: &Engine) {
        let metrics = engine.metrics();
        let each = |value: &dyn Fn(Interface) -> u64| {
            let sample =
                |it: Interface| (vec![("interface", it.word().to_string())], value(it) as f64);
            Interface::ALL.into_iter().map(sample).collect::<Vec<Sample>>()
        };
        let (sent, up) = engine.links.traffic();
        let open = each(&|it| match it {
            Interface::Peer => up,
            it => metrics.traffic(it).open.load(Ordering::Relaxed),
        });
        self.gauges.push(("catraca_connections", "Open connections", open));
        let all = each(&|it| metrics.traffic(it).connections.load(Ordering::Relaxed));
        self.counters.push(("catraca_connections_opened", "Connections so far", all));
        let received = each(&|it| metrics.traffic(it).received.load(Ordering::Relaxed));
        self.counters.push(("catraca_received_bytes", "Bytes that came", received));
        let sent = each(&|it| match it {
            Interface::Peer => sent,
            it => metrics.traffic(it).sent.load(Ordering::Relaxed),
        });
        self.counters.push(("catraca_sent_bytes", "Bytes that were sent", sent));
        let rejected = crate::mutex::hold(&metrics.rejected);
        let code = |(code, count): (&&str, &u64)| (vec![("code", code.to_string())], *count as f64);
        let rejected = rejected.iter().map(code).collect();
        self.counters.push(("catraca_rejected", "Requests that were refused, by code", rejected));
    }

    fn add_process(&mut self, engine: &Engine) {
        let dropped = engine.audit().map_or(0, |audit| audit.dropped());
        let help = "Records of the audit log that were not written";
        self.counter("catraca_audit_dropped", help, dropped);
        if let Some(bytes) = resident() {
            let help = "Memory that the process uses";
            self.gauge("process_resident_memory_bytes", help, bytes as f64);
        }
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_string())];
        self.gauges.push(("catraca_build_info", "Which release it is", vec![(version, 1.0)]));
    }
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, samples) in &self.gauges {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            each(&mut family, samples, |metric, value| metric.encode_gauge(&value))?;
        }
        for (name, help, samples) in &self.counters {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            each(&mut family, samples, |metric, value| {
                metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
            })?;
        }
        for (name, help, histogram) in &self.histograms {
            let kind = MetricType::Histogram;
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            let bounded = histogram.counts().map(|(bound, count)| (bound.as_secs_f64(), count));
            let mut buckets: Vec<(f64, u64)> = bounded.collect();
            let rest = histogram.count() - buckets.iter().map(|(_, count)| count).sum::<u64>();
            buckets.push((f64::INFINITY, rest));
            let sum = histogram.sum().as_secs_f64();
            metric.encode_histogram::<NoLabelSet>(sum, histogram.count(), &buckets, None)?;
        }
        Ok(())
    }
}

/// Writes each line of a family.
fn each(
    family: &mut MetricEncoder<'_>,
    samples: &[Sample],
    write: impl Fn(&mut MetricEncoder<'_>, f64) -> fmt::Result,
) -> fmt::Result {
    for (labels, value) in samples {
        match labels.is_empty() {
            true => write(family, *value)?,
            false => write(&mut family.encode_family(labels)?, *value)?,
        }
    }
    Ok(())
}

fn seconds(millis: u64) -> f64 {
    Duration::from_millis(millis).as_secs_f64()
}

/// How much memory the process uses, in bytes, as far as the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes << 10)
}
