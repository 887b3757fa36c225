//! What happens to the locks of a repository, as server-sent events.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;

use super::answer::Refused;
use super::asking::Asking;
use super::body::Pieces;
use crate::access::Role;
use crate::changes::{Change, Item, Subscription};
use crate::http::caller::Caller;
use crate::http::problem::Kind;

/// Where nothing happens, the client is told so often that the connection stands.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// What a client begins with: how long it waits before it comes back, in milliseconds.
const FIRST: &str = "retry: 1000\n\n";

pub(crate) async fn watch(asking: Asking) -> Result<Response, Refused> {
    asking.may(Role::Observe)?;
    let after = asking.parts.headers.get("last-event-id").map(|id| {
        let number = id.to_str().ok().and_then(|id| id.parse::<u64>().ok());
        let detail = "Last-Event-ID is not the id of an event; begin without one";
        number.ok_or_else(|| Refused::new(Kind::BadRequest, "bad-event-id", detail))
    });
    let changes = asking.git.gateway.git_changes(asking.repository.prefix(), after.transpose()?);
    let watching = Watching { changes, caller: asking.caller, has_begun: false };
    let body = Body::new(Pieces::new(watching, next));
    Ok(([(CONTENT_TYPE, "text/event-stream")], body).into_response())
}

/// Whoever is told.
struct Watching {
    changes: Subscription,
    caller: Caller,
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
            Ok(Some(Item::Change(change))) if watching.caller.sees(&change.name) => event(&change),
            Ok(Some(Item::Change(_))) => continue,
        };
        return Some((watching, text));
    }
}

fn event(change: &Change) -> String {
    // JSON has no line breaks in it.
    format!("event: lock\nid: {}\ndata: {}\n\n", change.number, change.label)
}
