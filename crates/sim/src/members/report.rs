//! What a run of members has shown.

use std::collections::BTreeMap;

use serde::Serialize;

use super::clients::Client;
use super::engine::{Simulation, Site};
use crate::metrics::jain;
use crate::monitor::Violation;
use crate::report::{End, as_object};

/// Counted while a run goes on.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) events: u64,
    /// Messages of algorithms to other members.
    pub(super) steps: u64,
    pub(super) questions: u64,
    pub(super) answers: u64,
    /// Messages of the failure detector.
    pub(super) tests: u64,
    pub(super) sessions: u64,
    pub(super) refused: BTreeMap<&'static str, u64>,
    pub(super) timed_out: u64,
    pub(super) cancelled: u64,
    pub(super) vanished: u64,
    pub(super) lost: u64,
    pub(super) crashed: bool,
}

/// The figures of one run of members. Times are in units; what cannot be said is `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Why the run ended.
    pub end: End,
    /// When it ended.
    pub time: f64,
    /// Events processed.
    pub events: u64,
    /// How often a client was told that it has what it asked for.
    pub entries: u64,
    /// Of all grants, those that went from one client of a member to the next without a message.
    pub handovers: u64,
    /// Messages between members.
    pub messages: u64,
    /// Messages by kind; those of algorithms also between seats of one member.
    #[serde(serialize_with = "as_object")]
    pub by_kind: Vec<(String, u64)>,
    /// Of these, messages between seats of one member, which are never sent.
    pub within: u64,
    /// Messages between members per entry.
    pub messages_per_entry: Option<f64>,
    /// Mean time from asking to being granted.
    pub response_mean: Option<f64>,
    /// 99 % of the grants came within this time after asking.
    pub response_p99: Option<f64>,
    /// The longest anybody waited, served or not.
    pub longest_wait: f64,
    /// Jain's index over the entries of the clients that are alive.
    pub client_fairness: Option<f64>,
    /// Jain's index over the entries per living client of each member.
    pub member_fairness: Option<f64>,
    /// Requests that were refused, by why; those that waited too long not counted.
    #[serde(serialize_with = "as_object")]
    pub refused: Vec<(String, u64)>,
    /// Requests that waited for as long as they would.
    pub timed_out: u64,
    /// Requests that were taken back.
    pub cancelled: u64,
    /// Clients that went without releasing.
    pub vanished: u64,
    /// Grants that clients lost with their session.
    pub lost: u64,
    /// Sessions that were opened.
    pub sessions: u64,
    /// Requests that still wait at the end.
    pub waiting: u64,
    /// Whether these wait for a member that has crashed: most algorithms do not survive that.
    pub is_stuck: bool,
    /// Stands for the whole run: equal runs have equal digests.
    pub digest: String,
    /// What broke, if something did.
    pub violation: Option<Violation>,
}

impl Simulation<'_> {
    pub(super) fn finish(mut self, end: End) -> Report {
        let now = match (end, self.setup.limits.time) {
            (End::Time, Some(limit)) => limit,
            _ => self.queue.now(),
        };
        let waits = self.clients.iter().filter(|client| client.is_alive).flat_map(Client::waits);
        for since in waits {
            self.metrics.wait(now - since);
        }
        let waiting = self.judge.waiting().count() as u64;
        let is_survivable = !self.tally.crashed || self.setup.survives_crashes();
        if end == End::Quiet && is_survivable {
            let checked = self.judge.nobody_waits();
            self.expect(now, checked);
        }
        let tally = &self.tally;
        let entries = self.metrics.entries;
        let messages = tally.steps + tally.questions + tally.answers + tally.tests;
        let (by_kind, within) = self.by_kind();
        let texts = |counts: &BTreeMap<&'static str, u64>| {
            counts.iter().map(|(code, count)| (code.to_string(), *count)).collect()
        };
        Report {
            end: if self.violation.is_some() { End::Violation } else { end },
            time: now.as_units(),
            events: tally.events,
            entries,
            handovers: self.sites.iter().map(|site| site.member.shard().counts().handovers).sum(),
            messages,
            by_kind,
            within,
            messages_per_entry: (entries > 0).then(|| messages as f64 / entries as f64),
            response_mean: self.metrics.mean_response(),
            response_p99: self.metrics.response_p99(),
            longest_wait: self.metrics.longest_wait().as_units(),
            client_fairness: jain(self.living().map(|client| client.entries as f64)),
            member_fairness: self.member_fairness(),
            refused: texts(&tally.refused),
            timed_out: tally.timed_out,
            cancelled: tally.cancelled,
            vanished: tally.vanished,
            lost: tally.lost,
            sessions: tally.sessions,
            waiting,
            is_stuck: end == End::Quiet && !is_survivable && waiting > 0,
            digest: self.digest.to_string(),
            violation: self.violation,
        }
    }

    fn living(&self) -> impl Iterator<Item = &Client> {
        self.clients.iter().filter(|client| client.is_alive)
    }

    fn member_fairness(&self) -> Option<f64> {
        let mut shares = vec![(0.0, 0.0); self.sites.len()];
        for client in self.living() {
            let (entries, clients) = &mut shares[client.member];
            *entries += client.entries as f64;
            *clients += 1.0;
        }
        let living = shares.iter().filter(|(_, clients)| *clients > 0.0);
        jain(living.map(|(entries, clients)| entries / clients))
    }

    /// Messages by kind, and how many of the algorithm's were between seats of one member.
    fn by_kind(&self) -> (Vec<(String, u64)>, u64) {
        let mut kinds: Vec<(String, u64)> = Vec::new();
        let mut add = |kind: &str, count| match kinds.iter_mut().find(|(known, _)| known == kind) {
            Some((_, sum)) => *sum += count,
            None => kinds.push((kind.to_string(), count)),
        };
        let mut of_algorithms = 0;
        for Site { member, .. } in &self.sites {
            for (kind, count) in member.shard().messages().flat_map(|(_, counts)| counts) {
                of_algorithms += count;
                add(kind, count);
            }
        }
        let Tally { steps, questions, answers, tests, .. } = self.tally;
        for (kind, count) in [("is-held?", questions), ("answer", answers), ("detector", tests)] {
            if count > 0 {
                add(kind, count);
            }
        }
        (kinds, of_algorithms - steps)
    }
}
