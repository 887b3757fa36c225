//! What the node tells of itself to those who watch it.

use std::collections::HashMap;
use std::sync::Arc;

use catraca_group::RequestId;

use super::Engine;
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
