//! What happens to locks, as server-sent events.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Api;
use super::caller::Caller;
use super::feed::{feed, last_event};
use super::input::Asked;
use super::locks::beginning;
use super::problem::Problem;
use crate::access::Role;
use crate::calendar::rfc3339;
use crate::changes::Change;

/// Of which locks.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ChangesQuery {
    /// Those whose names begin so; all if nothing is said.
    #[param(max_length = 255)]
    prefix: Option<String>,
}

/// Something that happened to a lock: the data of an event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Change)]
pub(super) struct ChangeBody<'a> {
    /// When, by the clock of the member.
    at: String,
    /// At which member.
    member: &'a str,
    /// What: `waits`, `gives-up`, `granted`, `released`, `lost` or `forced`. The event has the same name.
    what: &'static str,
    /// The lock.
    name: &'a str,
    /// How many may be inside.
    permits: u32,
    /// The number of the grant, of whoever is inside or was.
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<String>,
    /// What the client calls itself; the owner of a durable hold.
    label: &'a str,
}

/// What happens to locks from now on, as server-sent events.
///
/// Every event has an id. Whoever was cut off sends the last one as `Last-Event-ID`, as browsers do by
/// themselves, and is told what it has missed. If that is not known any more, or if a client reads too slowly,
/// there is an event `gap`: look at the locks anew.
#[utoipa::path(
    get,
    path = "/v1/changes",
    params(
        ChangesQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that came", pattern = "^[0-9]{1,20}$"),
    ),
    responses((status = 200, description = "Events without an end; the data of each but `gap` is a Change", body = ChangeBody, content_type = "text/event-stream")),
)]
pub(super) async fn watch(
    State(api): State<Api>,
    caller: Caller,
    Asked(asked): Asked<ChangesQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.may(Role::Observe, [])?;
    let after = last_event(&headers)?;
    let prefix = beginning(asked.prefix.unwrap_or_default())?;
    let changes = api.gateway.changes(prefix, after);
    Ok(feed(changes, caller, event))
}

fn event(change: &Change) -> String {
    let body = ChangeBody {
        at: rfc3339(change.unix_millis),
        member: &change.member,
        what: change.what.word(),
        name: &change.name,
        permits: change.permits,
        fence: change.fence.map(|fence| fence.to_string()),
        label: &change.label,
    };
    // Texts and numbers can always be written, and JSON has no line breaks in it.
    let data = serde_json::to_string(&body).unwrap_or_default();
    format!("event: {}\nid: {}\ndata: {data}\n\n", body.what, change.number)
}
