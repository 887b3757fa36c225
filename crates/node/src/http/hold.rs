//! A hold, as answers show it.

use std::time::Duration;

use catraca_group::{DurableHold, TimedHold};
use serde::Serialize;
use utoipa::ToSchema;

use super::time;
use crate::calendar::rfc3339;

/// A hold.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Hold {
    /// Which one. Whoever knows the id of a hold that is not durable can renew and release it: keep it.
    #[schema(example = "0f3c0a9e5b7d4c1f8e2a6b9d3c5f7a10")]
    pub(super) id: String,
    /// The locks.
    pub(super) names: Vec<String>,
    /// How many may be inside each at a time.
    pub(super) permits: u32,
    /// A number for each name, larger than that of every earlier grant of the lock. Strings: they do not fit
    /// into every reader's numbers.
    #[schema(example = json!(["67108929"]))]
    pub(super) fences: Vec<String>,
    /// The member at which it is held, or was granted.
    pub(super) member: String,
    /// Whether it is durable.
    pub(super) durable: bool,
    /// What the client calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) label: Option<String>,
    /// How long it lasts when it is renewed, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ttl_ms: Option<u64>,
    /// How long it lasts from now on unless it is renewed, in milliseconds. Count from before the request was
    /// sent: then nothing that is counted is too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires_in_ms: Option<u64>,
    /// The same as an instant by the clock of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<String>,
    /// Who a durable hold belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<String>,
    /// What the owner of a durable hold has to say about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
    /// The owner's own name for the request for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request_id: Option<String>,
    /// When a durable hold was granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) granted_at: Option<String>,
}

impl From<TimedHold> for Hold {
    fn from(hold: TimedHold) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Hold {
            id: hold.id.to_string(),
            names: hold.names,
            permits: hold.permits,
            fences: hold.fences.iter().map(u64::to_string).collect(),
            member: hold.member,
            durable: false,
            label: Some(hold.who.label),
            ttl_ms: Some(millis(hold.ttl)),
            expires_in_ms: Some(millis(hold.left)),
            expires_at: Some(time::after(hold.left)),
            owner: None,
            note: None,
            request_id: None,
            granted_at: None,
        }
    }
}

impl From<DurableHold> for Hold {
    fn from(hold: DurableHold) -> Self {
        Hold {
            id: hold.id.to_string(),
            names: hold.names,
            permits: hold.permits,
            fences: hold.fences.iter().map(u64::to_string).collect(),
            member: hold.granted_at.name,
            durable: true,
            label: None,
            ttl_ms: None,
            expires_in_ms: None,
            expires_at: None,
            owner: Some(hold.owner),
            note: Some(hold.note),
            request_id: Some(hold.request),
            granted_at: Some(rfc3339(hold.unix_millis)),
        }
    }
}
