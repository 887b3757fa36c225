//! What happens to locks, as server-sent events: who is told, and in which form.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;

use super::caller::Caller;
use super::pieces::Pieces;
use super::problem::{Kind, Problem};
use crate::changes::{Change, Item, Subscription};

/// Where nothing happens, the client is told so often that the connection stands.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// What a client begins with: how long it waits before it comes back, in milliseconds.
const FIRST: &str = "retry: 1000\n\n";
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The last event that a client has seen, if it says so.
pub(crate) fn last_event(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let number = headers.get(LAST_EVENT_ID).map(|id| {
        let number = id.to_str().ok().and_then(|id| id.parse::<u64>().ok());
        let detail = "Last-Event-ID is not the id of an event; begin without one";
        number.ok_or_else(|| Problem::new(Kind::BadRequest, "bad-event-id", detail))
    });
    number.transpose()
}

/// Tells the caller of changes that it may see, each as `event` writes it, without an end.
pub(crate) fn feed(
    changes: Subscription,
    caller: Caller,
    event: fn(&Change) -> String,
) -> Response {
    let watching = Watching { changes, caller, event, has_begun: false };
    let body = Body::new(Pieces::new(watching, next));
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// Whoever is told.
struct Watching {
    changes: Subscription,
    caller: Caller,
    event: fn(&Change) -> String,
    has_begun: bool,
}

/// The next piece, if there is one.
async fn next(mut watching: Watching) -> Option<(Watching, String)> {
    if !std::mem::replace(&mut watching.has_begun, true) {
        return Some((watching, FIRST.to_string()));
    }
    loop {
        let item = timeout(HEARTBEAT, watching.changes.next()).await;
        // Whoever's token was revoked is told nothing more.
        if !watching.caller.is_known() {
            return None;
        }
        let text = match item {
            Err(_) => ":\n\n".to_string(),
            Ok(None) => return None,
            Ok(Some(Item::Gap(number))) => format!("event: gap\nid: {number}\ndata: {{}}\n\n"),
            Ok(Some(Item::Change(change))) if watching.caller.sees(&change.name) => {
                (watching.event)(&change)
            }
            Ok(Some(Item::Change(_))) => continue,
        };
        return Some((watching, text));
    }
}
