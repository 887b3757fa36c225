//! What happens to the locks of a repository, as server-sent events.

use axum::response::Response;

use super::answer::Refused;
use super::asking::Asking;
use crate::access::Role;
use crate::changes::Change;
use crate::http::feed::{feed, last_event};

pub(crate) async fn watch(asking: Asking) -> Result<Response, Refused> {
    asking.may(Role::Observe)?;
    let after = last_event(&asking.parts.headers)?;
    let changes = asking.git.gateway.git_changes(asking.repository.prefix(), after);
    Ok(feed(changes, asking.caller, event))
}

fn event(change: &Change) -> String {
    // JSON has no line breaks in it.
    format!("event: lock\nid: {}\ndata: {}\n\n", change.number, change.label)
}
