//! What the node tells of itself to those who watch it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use catraca_client::clock;
use catraca_group::{Counts, RequestId, Run, Survey, Tally, Times, View};

use super::Engine;
use crate::access::Identity;
use crate::audit::{Audit, Pace, Record};
use crate::changes::{By, Changes, Subscription};
use crate::metrics::Metrics;
use crate::mutex::hold;

impl Engine {
    /// Tells what happens to locks whose names begin with `prefix` from now on; and what has happened
    /// after the change with this number, if it is still known.
    pub(crate) fn changes(&self, prefix: String, after: Option<u64>) -> Subscription {
        self.changes.subscribe(prefix, after)
    }

    /// The same of what the interface for Git says of locks.
    pub(crate) fn git_changes(&self, prefix: String, after: Option<u64>) -> Subscription {
        self.changes.subscribe_to_git(prefix, after)
    }

    /// What happens to locks, and who wants to know.
    pub(crate) fn watching(&self) -> &Arc<Changes> {
        &self.changes
    }

    /// What is counted for those who watch from outside.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// How long clients have waited for locks and held them, and how many wait in the longest queue.
    pub(crate) fn measured(&self) -> (Times, u64) {
        let (mut times, mut longest) = (Times::default(), 0);
        for shard in self.shards.all() {
            self.shards.step(shard, |cell| {
                times.merge(cell.shard.times());
                longest = longest.max(cell.shard.longest_queue());
            });
        }
        (times, longest)
    }

    /// What has been counted, and how long clients have waited for locks and held them. Takes no look at single
    /// locks.
    pub(crate) fn counts(&self) -> (Counts, Times) {
        let (mut counts, mut times) = (Counts::default(), Times::default());
        for shard in self.shards.all() {
            self.shards.step(shard, |cell| {
                counts.add(cell.shard.counts());
                times.merge(cell.shard.times());
            });
        }
        (counts, times)
    }

    /// Looks at all locks, shard by shard: nobody waits for longer than one of them takes.
    pub(crate) fn survey(&self) -> Survey {
        let (mut survey, now) = (Survey::default(), clock::now());
        for shard in self.shards.all() {
            self.shards.step(shard, |cell| cell.shard.survey(now, &mut survey));
        }
        survey
    }

    /// The same, for the status.
    pub(super) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for shard in self.shards.all() {
            self.shards.step(shard, |cell| tally.add(&cell.shard));
        }
        tally
    }

    /// Which runs of other members are in the view that runs here.
    pub(crate) fn peers_in_view(&self) -> Vec<Run> {
        let seats = self.links.present();
        seats.iter().flatten().map(|link| link.run.clone()).collect()
    }

    /// Writes something into the audit log, if there is one.
    pub(crate) fn record(&self, record: Record) {
        if let Some(audit) = &self.audit {
            audit.write(record);
        }
    }

    /// Somebody was not allowed what it asked for, or was not known at all. It counts as refused.
    pub(crate) fn deny(&self, identity: Option<&str>, why: &str) {
        self.record_denial(identity, why);
        self.metrics.reject("denied");
    }

    /// Writes down that somebody was not allowed what it asked for, or was not known at all. Whoever is denied
    /// very often does not fill the log.
    pub(crate) fn record_denial(&self, identity: Option<&str>, why: &str) {
        let Some(audit) = &self.audit else { return };
        let (detail, count) = match audit.denials.go_on(identity) {
            Pace::LeaveOut => return,
            Pace::Write { left_out } => (why.to_string(), Some(left_out).filter(|it| *it > 0)),
            Pace::WriteLast => (format!("{why}; more of these are not written for a minute"), None),
        };
        let (epoch, identity) = (self.epoch(), identity.map(String::from));
        let detail = Some(detail);
        audit.write(Record { epoch, what: "denied", identity, detail, count, ..Record::default() });
    }

    /// Somebody shows a token over a connection for the first time.
    pub(crate) fn record_token(&self, identity: &Identity, how: &str) {
        if identity.is_by_token() {
            let (identity, detail) = (Some(identity.name.clone()), Some(how.to_string()));
            let epoch = self.epoch();
            self.record(Record {
                epoch,
                what: "token used",
                identity,
                detail,
                ..Record::default()
            });
        }
    }

    /// Somebody shows a token with a request, as it does with every other: that is written once a minute.
    pub(crate) fn record_token_at_times(&self, identity: &Identity, how: &str) {
        let Some(audit) = &self.audit else { return };
        if identity.is_by_token() && audit.tokens.go_on(Some(&identity.name)) != Pace::LeaveOut {
            self.record_token(identity, how);
        }
    }

    /// The audit log, if there is one.
    pub(crate) fn audit(&self) -> Option<&Audit> {
        self.audit.as_ref()
    }

    /// How long a lease of this member lasts.
    pub(crate) fn lease(&self) -> Duration {
        self.lease
    }

    /// The view that runs here.
    pub(crate) fn epoch(&self) -> u32 {
        hold(&self.serving).view.epoch.0
    }

    /// The label of the cluster that a member of the view is in, if it carries one.
    pub(crate) fn cluster_of(&self, member: &str) -> Option<String> {
        let serving = hold(&self.serving);
        let found = serving.view.members.iter().find(|it| it.name == member);
        found.and_then(|it| it.cluster.clone())
    }

    /// Another view begins: who has come and who has gone is written down.
    pub(super) fn record_view(&self, before: &View, view: &View) {
        let is_in = |view: &View, name: &str| view.members.iter().any(|it| it.name == name);
        let record = |what, name: &str| {
            let (epoch, name) = (view.epoch.0, Some(name.to_string()));
            self.record(Record { epoch, what, name, ..Record::default() });
        };
        // Before the first view a member knows nobody but itself.
        let began = before.epoch.0 == 0;
        for member in view.members.iter().filter(|it| began || !is_in(before, &it.name)) {
            record("member joined", &member.name);
        }
        for member in before.members.iter().filter(|it| !is_in(view, &it.name)) {
            record("member left", &member.name);
        }
    }

    /// Adds who has made these requests, as far as that is known.
    pub(crate) fn identify(&self, ids: &[RequestId], known: &mut HashMap<RequestId, By>) {
        if ids.is_empty() {
            return;
        }
        let service = &hold(&self.serving).service;
        for &id in ids {
            known.extend(service.client(id).map(|client| (id, client.into())));
        }
    }
}
