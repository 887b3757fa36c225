//! What the node tells of itself to those who watch it.

use std::collections::HashMap;
use std::sync::Arc;

use catraca_group::{RequestId, View};

use super::Engine;
use crate::audit::{Audit, Record};
use crate::changes::{Changes, Subscription};
use crate::mutex::hold;

impl Engine {
    /// Tells what happens to locks whose names begin with `prefix` from now on; and what has happened
    /// after the change with this number, if it is still known.
    pub(crate) fn changes(&self, prefix: String, after: Option<u64>) -> Subscription {
        self.changes.subscribe(prefix, after)
    }

    /// What happens to locks, and who wants to know.
    pub(crate) fn watching(&self) -> &Arc<Changes> {
        &self.changes
    }

    /// Writes something into the audit log, if there is one.
    pub(crate) fn record(&self, record: Record) {
        if let Some(audit) = &self.audit {
            audit.write(record);
        }
    }

    /// The audit log, if there is one.
    pub(crate) fn audit(&self) -> Option<&Audit> {
        self.audit.as_ref()
    }

    /// The view that runs here.
    pub(crate) fn epoch(&self) -> u32 {
        hold(&self.serving).view.epoch.0
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
