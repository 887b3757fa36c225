//! Everything that the dashboard shows, as it changes: one stream for each page.
//!
//! What happens to locks is merged: a page is told at most four times a second, and of each lock only what is
//! different then. What a page does not read in time becomes a gap, and takes no memory.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use utoipa::{IntoParams, ToSchema};

use super::Api;
use super::caller::Caller;
use super::input::Asked;
use super::locks::beginning;
use super::pieces::Pieces;
use super::problem::Problem;
use super::rates::visible;
use super::status::NodeStateBody;
use crate::access::Role;
use crate::changes::merged::{Difference, Differences, Merged, Newcomer};
use crate::changes::{Item, Subscription, unix_millis};
use crate::observing::Look;
use crate::observing::alerts::Alert;

/// From one word about locks to the next, at least.
const BETWEEN: Duration = Duration::from_millis(250);
/// The first word after a silence comes so soon: what belongs together is told together.
const SOON: Duration = Duration::from_millis(25);

/// What is to be told.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct LiveQuery {
    /// Whether changes of locks are told too.
    locks: Option<bool>,
    /// Of those locks alone whose names begin so.
    #[param(max_length = 255)]
    prefix: Option<String>,
}

/// What is different about locks since the last word: the data of an event `changes`.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Changes<'a> {
    /// How many changes that were.
    changes: u64,
    /// Those locks about which something is different now.
    locks: Vec<Changed<'a>>,
}

/// What is different about one lock.
#[derive(Debug, Serialize, ToSchema)]
struct Changed<'a> {
    /// The lock.
    name: &'a str,
    /// How many may be inside.
    permits: u32,
    /// Who is inside now and was not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    entered: Vec<Entered<'a>>,
    /// The fences of those who were inside and are not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left: Vec<String>,
    /// Who waits now and did not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits: Vec<Entered<'a>>,
    /// Who waited and does not; somebody who did not have to wait may be named too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waited: Vec<Left<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Entered<'a> {
    member: &'a str,
    label: &'a str,
    /// The number of the grant, of whoever is inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<String>,
    /// How long ago, in milliseconds.
    ago_ms: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct Left<'a> {
    member: &'a str,
    label: &'a str,
}

/// How a node, its group and its locks are doing, as it changes: server-sent events for a page.
///
/// There is an event `sample` each second (a Sample), `status` each second, `alerts` when they have changed (as of
/// `/v1/alerts`), and with `locks=true` `changes` at most four times a second. `gap` means that something may have
/// happened to locks of which nobody tells: look at them anew. No event has an id.
#[utoipa::path(
    get,
    path = "/v1/live",
    params(LiveQuery),
    responses((status = 200, description = "Events without an end", body = Changes, content_type = "text/event-stream")),
)]
pub(super) async fn live(
    State(api): State<Api>,
    caller: Caller,
    Asked(asked): Asked<LiveQuery>,
) -> Result<Response, Problem> {
    caller.may(Role::Observe, [])?;
    let prefix = beginning(asked.prefix.unwrap_or_default())?;
    let changes = asked.locks.unwrap_or(false).then(|| api.gateway.changes(prefix, None));
    let mut looks = api.observed.looks();
    // What is known already is told at once.
    looks.mark_changed();
    let telling = Telling {
        changes,
        looks,
        caller,
        merged: Merged::default(),
        due: None,
        told: None,
        alerts: None,
    };
    let body = Body::new(Pieces::new(telling, next));
    Ok(([(CONTENT_TYPE, "text/event-stream")], body).into_response())
}

/// Whoever is told.
struct Telling {
    changes: Option<Subscription>,
    looks: watch::Receiver<Option<Arc<Look>>>,
    caller: Caller,
    merged: Merged,
    /// When what has happened to locks is told, if something has.
    due: Option<Instant>,
    /// When that was told last.
    told: Option<Instant>,
    /// The alerts that were told last.
    alerts: Option<Vec<Alert>>,
}

/// What wakes whoever is told.
enum Woken {
    Item(Item),
    Due,
    Look(Option<Arc<Look>>),
    Over,
}

/// The next piece; nothing once the node stops, or the caller is not known any more.
async fn next(mut telling: Telling) -> Option<(Telling, String)> {
    loop {
        let woken = telling.wait().await;
        if !telling.caller.is_known() {
            return None;
        }
        let text = match woken {
            Woken::Over => return None,
            Woken::Item(item) => {
                telling.take(item);
                continue;
            }
            Woken::Due => telling.differences(),
            Woken::Look(Some(look)) => telling.look(&look),
            Woken::Look(None) => continue,
        };
        return Some((telling, text));
    }
}

impl Telling {
    async fn wait(&mut self) -> Woken {
        let due = self.due;
        tokio::select! {
            // What is due is told however much comes meanwhile.
            biased;
            () = at(due) => Woken::Due,
            looked = self.looks.changed() => match looked {
                Ok(()) => Woken::Look(self.looks.borrow_and_update().clone()),
                Err(_) => Woken::Over,
            },
            item = happened(self.changes.as_mut()) => item.map_or(Woken::Over, Woken::Item),
        }
    }

    fn take(&mut self, item: Item) {
        match item {
            Item::Change(change) if self.caller.sees(&change.name) => self.merged.add(&change),
            Item::Change(_) => return,
            Item::Gap(_) => self.merged.gap(),
        }
        let soon = Instant::now() + SOON;
        let due = self.told.map_or(soon, |told| soon.max(told + BETWEEN));
        self.due.get_or_insert(due);
    }

    /// What is different about locks.
    fn differences(&mut self) -> String {
        (self.due, self.told) = (None, Some(Instant::now()));
        let differences = self.merged.take();
        match differences.has_gap {
            true => event("gap", &serde_json::json!({})),
            false => event("changes", &changes(&differences, unix_millis())),
        }
    }

    /// What is known after one more look at the node.
    fn look(&mut self, look: &Look) -> String {
        let mut text = String::new();
        text.push_str(&event("status", &NodeStateBody::from(look)));
        if let Some(sample) = &look.sample {
            text.push_str(&event("sample", sample));
        }
        let alerts = visible(&look.alerts, &self.caller);
        if self.alerts.as_ref() != Some(&alerts) {
            text.push_str(&event("alerts", &serde_json::json!({ "alerts": alerts })));
            self.alerts = Some(alerts);
        }
        text
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// What happens next to a lock; that takes for ever for somebody who does not want to know.
async fn happened(changes: Option<&mut Subscription>) -> Option<Item> {
    match changes {
        Some(changes) => changes.next().await,
        None => std::future::pending().await,
    }
}

fn event(name: &str, data: &impl Serialize) -> String {
    // Texts and numbers can always be written, and JSON has no line breaks in it.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}

fn changes(differences: &Differences, now: u64) -> Changes<'_> {
    let locks = differences.locks.iter();
    let locks = locks.map(|((name, permits), it)| changed(name, *permits, it, now)).collect();
    Changes { changes: differences.changes, locks }
}

fn changed<'a>(name: &'a str, permits: u32, difference: &'a Difference, now: u64) -> Changed<'a> {
    let entered = |it: &'a Newcomer| Entered {
        member: &it.member,
        label: &it.label,
        fence: it.fence.map(|fence| fence.to_string()),
        // Clocks of members may differ.
        ago_ms: now.saturating_sub(it.unix_millis),
    };
    let waited = difference.waited.iter();
    Changed {
        name,
        permits,
        entered: difference.entered.iter().map(entered).collect(),
        left: difference.left.iter().map(u64::to_string).collect(),
        waits: difference.waits.iter().map(entered).collect(),
        waited: waited.map(|(member, label)| Left { member, label }).collect(),
    }
}
