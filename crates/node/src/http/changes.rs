//! What happens to locks, as server-sent events.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::{IntoParams, ToSchema};

use super::Api;
use super::caller::Caller;
use super::input::Asked;
use super::locks::beginning;
use super::problem::{Kind, Problem};
use crate::access::Role;
use crate::calendar::rfc3339;
use crate::changes::{Change, Item, Subscription};

/// Where nothing happens, the client is told so often that the connection stands.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// What a client begins with: how long it waits before it comes back, in milliseconds.
const FIRST: &str = "retry: 1000\n\n";
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

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
    let after = headers.get(LAST_EVENT_ID).map(|id| {
        let number = id.to_str().ok().and_then(|id| id.parse::<u64>().ok());
        let detail = "Last-Event-ID is not the id of an event; begin without one";
        number.ok_or_else(|| Problem::new(Kind::BadRequest, "bad-event-id", detail))
    });
    let after = after.transpose()?;
    let prefix = beginning(asked.prefix.unwrap_or_default())?;
    let changes = api.gateway.changes(prefix, after);
    let feed = Feed { next: Box::pin(begin(Watching { changes, caller })) };
    Ok(([(CONTENT_TYPE, "text/event-stream")], Body::new(feed)).into_response())
}

/// Whoever is told.
struct Watching {
    changes: Subscription,
    caller: Caller,
}

/// A piece of the answer, and who is told the next one; nothing at the end.
type Piece = Option<(Watching, String)>;

async fn begin(watching: Watching) -> Piece {
    Some((watching, FIRST.to_string()))
}

async fn next(mut watching: Watching) -> Piece {
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

/// An answer without an end.
struct Feed {
    next: Pin<Box<dyn Future<Output = Piece> + Send>>,
}

impl HttpBody for Feed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = ready!(self.next.as_mut().poll(cx));
        Poll::Ready(piece.map(|(watching, text)| {
            self.next = Box::pin(next(watching));
            Ok(Frame::data(text.into()))
        }))
    }
}
