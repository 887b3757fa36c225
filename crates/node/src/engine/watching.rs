//! What the node tells of itself to those who watch it.

use std::collections::HashMap;
use std::sync::Arc;

use catraca_group::{RequestId, Run, Times, View};

use super::Engine;
use crate::audit::{Audit, Record};
use crate::changes::{Changes, Subscription};
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

    /// Somebody was not allowed what it asked for, or was not known at all.
    pub(crate) fn record_denial(&self, identity: Option<&str>, why: &str) {
        if self.audit.is_some() {
            let (identity, detail) = (identity.map(String::from), Some(why.to_string()));
            let epoch = self.epoch();
            self.record(Record { epoch, what: "denied", identity, detail, ..Record::default() });
        }
        self.metrics.reject("denied");
    }

    /// The audit log, if there is one.
    pub(crate) fn audit(&self) -> Option<&Audit> {
        self.audit.as_ref()
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

    /// Adds what the clients call themselves who have made these requests, as far as they are known.
    pub(crate) fn identify(&self, ids: &[RequestId], labels: &mut HashMap<RequestId, String>) {
        if ids.is_empty() {
            return;
        }
        let service = &hold(&self.serving).service;
        for &id in ids {
            labels.extend(service.label(id).map(|label| (id, label.to_string())));
        }
    }
}
