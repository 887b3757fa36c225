//! What tests of several files begin with.

use catraca_node::{Readiness, Status};

/// A node that is ready and has nothing to do.
pub(crate) fn idle_status() -> Status {
    Status {
        group: "g".to_string(),
        node: "a".to_string(),
        millis: 0,
        epoch: 3,
        readiness: Readiness::Ready,
        valid: None,
        members: Vec::new(),
        registry: None,
        views: Vec::new(),
        detector: None,
        namespaces: Vec::new(),
        locks: 0,
        held: 0,
        waiting: 0,
        sessions: 0,
        grants: 0,
        handovers: 0,
        messages: 0,
        arrived: 0,
        anomalies: 0,
    }
}
