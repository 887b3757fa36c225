//! Who holds and who waits; whether a fence is still the newest.

use std::time::Duration;

use axum::Json as JsonAnswer;
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use catraca_group::{LONGEST_NAME, Line, LineKey, LockName, Page, Query, Refusal, Selection};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::{IntoParams, ToSchema};

use super::Api;
use super::caller::Caller;
use super::input::{Asked, Json};
use super::problem::{Kind, Problem};
use crate::access::Role;
use crate::calendar::rfc3339;

/// How many lines a page has that was asked for without saying how many.
const USUAL_LINES: u32 = 100;
/// The most lines of a page.
const MOST_LINES: u32 = 1000;
/// Of so many names at the most it is said who holds them.
const MOST_EXPLAINED: usize = 8;
/// Of each of them so many holders are named at the most.
const MOST_HOLDERS: u32 = 16;
/// Who holds a lock is worth so much time to whoever did not get it.
const EXPLAINING: Duration = Duration::from_millis(500);

/// Who holds a lock.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Holder {
    /// The lock.
    #[schema(example = "deploy")]
    name: String,
    /// The member at which it is held.
    member: String,
    /// The number of the grant. A string: it does not fit into every reader's numbers.
    #[schema(example = "67108929")]
    fence: String,
    /// What the client calls itself.
    label: String,
    /// The client's process, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// The client's machine, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    /// For how long, in milliseconds.
    held_ms: u64,
    /// What there is to say of a durable hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    durable: Option<Durable>,
}

/// Who waits for a lock.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Waiter {
    /// The member at which it waits.
    member: String,
    /// The place in the queue of that member, from 1.
    place: u32,
    /// What the client calls itself.
    label: String,
    /// The client's process, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// The client's machine, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    /// For how long, in milliseconds.
    waited_ms: u64,
}

/// What there is to say of a durable hold.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Durable {
    /// Which one.
    id: String,
    /// Who it belongs to.
    owner: String,
    /// What the owner has to say about it.
    note: String,
    /// When it was granted.
    granted_at: String,
}

/// A lock that somebody holds or waits for.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Lock {
    /// Its name.
    name: String,
    /// How many may be inside at a time.
    permits: u32,
    /// Who is inside.
    holders: Vec<Holder>,
    /// Who waits, in the order of each member's queue.
    queue: Vec<Waiter>,
}

/// A part of the list of locks.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Locks {
    /// By name. A lock with more waiters than fit is continued in the next part.
    locks: Vec<Lock>,
    /// What to give as `cursor` for the next part; nothing after the last one.
    next: Option<String>,
    /// Members that did not answer: what is held there is missing.
    silent: Vec<String>,
}

/// Which locks.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct LocksQuery {
    /// This one alone.
    #[param(max_length = 255)]
    name: Option<String>,
    /// Those whose names begin so.
    #[param(max_length = 255)]
    prefix: Option<String>,
    /// Where to go on: what `next` of the part before said.
    cursor: Option<String>,
    /// How many holders and waiters at the most, from 1 to 1000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// Who holds and who waits, in the whole group.
#[utoipa::path(
    get,
    path = "/v1/locks",
    params(LocksQuery),
    responses((status = 200, description = "A part of the list", body = Locks)),
)]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Asked(asked): Asked<LocksQuery>,
) -> Result<JsonAnswer<Locks>, Problem> {
    let limit = asked.limit.unwrap_or(USUAL_LINES);
    if !(1..=MOST_LINES).contains(&limit) {
        let detail = format!("limit goes from 1 to {MOST_LINES}, not {limit}");
        return Err(Problem::new(Kind::BadRequest, "bad-query", detail));
    }
    let names = match (asked.name, asked.prefix) {
        (Some(_), Some(_)) => {
            let detail = "say either name or prefix";
            return Err(Problem::new(Kind::BadRequest, "bad-query", detail));
        }
        (Some(name), None) => Selection::Name(named(&name)?.to_string()),
        (None, Some(prefix)) => Selection::Prefix(beginning(prefix)?),
        (None, None) => Selection::All,
    };
    let after = asked.cursor.as_deref().map(position).transpose()?;
    let scope = match &names {
        Selection::Name(name) => vec![name.as_str()],
        // What may not be seen is left out of the answer.
        Selection::All | Selection::Prefix(_) => Vec::new(),
    };
    caller.may(Role::Observe, scope)?;
    let page = api.gateway.page(Query { whole_group: true, names, after, limit }).await?;
    Ok(JsonAnswer(locks(page, &caller)))
}

/// Puts the lines of a page together that are of one lock.
fn locks(page: Page, caller: &Caller) -> Locks {
    let Page { lines, silent, more } = page;
    let next = lines.last().filter(|_| more).map(|line| cursor(&line.key));
    let mut locks: Vec<Lock> = Vec::new();
    for line in lines {
        if !caller.sees(&line.key.name) {
            continue;
        }
        let (name, permits) = (&line.key.name, line.key.permits);
        if locks.last().is_none_or(|lock| (&lock.name, lock.permits) != (name, permits)) {
            let name = name.clone();
            locks.push(Lock { name, permits, holders: Vec::new(), queue: Vec::new() });
        }
        // It has just been made, if it was not there.
        let Some(lock) = locks.last_mut() else { continue };
        match line.key.place {
            0 => lock.holders.push(holder(line)),
            _ => lock.queue.push(waiter(line)),
        }
    }
    Locks { locks, next, silent }
}

impl Holder {
    /// Whether it is this grant at this member.
    pub(super) fn is(&self, member: &str, fence: &str) -> bool {
        (self.member.as_str(), self.fence.as_str()) == (member, fence)
    }
}

pub(super) fn holder(line: Line) -> Holder {
    let durable = line.durable.map(|durable| Durable {
        id: durable.id.to_string(),
        owner: durable.owner,
        note: durable.note,
        granted_at: rfc3339(durable.unix_millis),
    });
    Holder {
        name: line.key.name,
        member: line.key.node,
        fence: line.fence.unwrap_or_default().to_string(),
        label: line.label,
        pid: Some(line.pid).filter(|&pid| pid != 0),
        host: Some(line.host).filter(|host| !host.is_empty()),
        held_ms: line.millis,
        durable,
    }
}

pub(super) fn waiter(line: Line) -> Waiter {
    Waiter {
        member: line.key.node,
        place: line.key.place,
        label: line.label,
        pid: Some(line.pid).filter(|&pid| pid != 0),
        host: Some(line.host).filter(|host| !host.is_empty()),
        waited_ms: line.millis,
    }
}

/// What leads to the lines after this one.
fn cursor(key: &LineKey) -> String {
    // Texts and numbers can always be written.
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(key).unwrap_or_default())
}

fn position(cursor: &str) -> Result<LineKey, Problem> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).ok_or_else(|| {
        let detail = "the cursor is not one that a list has given; begin without one";
        Problem::new(Kind::BadRequest, "bad-cursor", detail)
    })
}

/// What names may begin with.
pub(super) fn beginning(prefix: String) -> Result<String, Problem> {
    match prefix.len() {
        0..=LONGEST_NAME => Ok(prefix),
        _ => {
            let detail = format!("no name is longer than {LONGEST_NAME} bytes: shorten the prefix");
            Err(Problem::new(Kind::BadRequest, "bad-query", detail))
        }
    }
}

pub(super) fn named(name: &str) -> Result<&str, Problem> {
    LockName::new(name).map(LockName::as_str).map_err(|error| Refusal::from(error).into())
}

/// The same problem, with who holds these locks where that is the reason.
pub(super) async fn explained(api: &Api, problem: Problem, names: &[String]) -> Problem {
    if !matches!(problem.kind(), Kind::Taken | Kind::TimedOut | Kind::Unavailable) {
        return problem;
    }
    let looking = async {
        let mut holders = Vec::new();
        for name in names.iter().take(MOST_EXPLAINED) {
            match lines(api, name, MOST_HOLDERS).await {
                Ok(page) => {
                    let inside = page.lines.into_iter().filter(|line| line.key.place == 0);
                    holders.extend(inside.map(holder));
                }
                Err(_) => break,
            }
        }
        holders
    };
    match timeout(EXPLAINING, looking).await {
        Ok(holders) => problem.with_holders(holders),
        // It may be for that very reason that nobody answers.
        Err(_) => problem,
    }
}

async fn lines(api: &Api, name: &str, limit: u32) -> Result<Page, Problem> {
    let names = Selection::Name(name.to_string());
    Ok(api.gateway.page(Query { whole_group: true, names, after: None, limit }).await?)
}

/// Which fence is to be looked at.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckBody {
    /// The lock.
    #[schema(min_length = 1, max_length = 255, example = "deploy")]
    name: String,
    /// The number of the grant.
    #[schema(pattern = "^[0-9]{1,19}$", example = "67108929")]
    fence: String,
}

/// What is known of a fence.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Checked {
    /// The lock.
    name: String,
    /// The number that was asked about.
    fence: String,
    /// Whether its hold is still there; nothing if a member that may have it did not answer.
    held: Option<bool>,
    /// Whether no later grant is known. `false` if there was one; nothing if that cannot be known now, as
    /// for a lock that nobody has held since the group last changed.
    newest: Option<bool>,
    /// Who holds the lock.
    holders: Vec<Holder>,
    /// Members that did not answer.
    silent: Vec<String>,
}

/// Whether a fence is still the newest of its lock.
#[utoipa::path(
    post,
    path = "/v1/check",
    request_body = CheckBody,
    responses((status = 200, description = "What is known of the fence", body = Checked)),
)]
pub(super) async fn check(
    State(api): State<Api>,
    caller: Caller,
    Json(asked): Json<CheckBody>,
) -> Result<JsonAnswer<Checked>, Problem> {
    let name = named(&asked.name)?;
    let fence = number(&asked.fence)?;
    caller.may(Role::Observe, [name])?;
    let page = lines(&api, name, MOST_LINES).await?;
    let Page { lines, silent, .. } = page;
    let inside: Vec<Line> = lines.into_iter().filter(|line| line.key.place == 0).collect();
    let fences: Vec<u64> = inside.iter().filter_map(|line| line.fence).collect();
    let (held, mut newest) = judged(fence, &fences, silent.is_empty());
    if newest.is_none() && silent.is_empty() {
        newest = newest_of_free(fence, api.gateway.newest_fence(name, 1).await?);
    }
    let holders = inside.into_iter().map(holder).collect();
    let (name, fence) = (name.to_string(), fence.to_string());
    Ok(JsonAnswer(Checked { name, fence, held, newest, holders, silent }))
}

/// Reads a fence as a grant has it.
pub(super) fn number(fence: &str) -> Result<u64, Problem> {
    let number = fence.parse::<u64>().ok().filter(|_| is_decimal(fence));
    number.filter(|&number| i64::try_from(number).is_ok()).ok_or_else(|| {
        let detail = "a fence is a string of digits, as a grant has given it";
        Problem::new(Kind::BadRequest, "bad-fence", detail)
    })
}

fn is_decimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a fence is held, and whether it is the newest, by the fences of all holds that are known.
fn judged(fence: u64, known: &[u64], are_all_known: bool) -> (Option<bool>, Option<bool>) {
    let is_held = known.contains(&fence);
    let held = if is_held || are_all_known { Some(is_held) } else { None };
    let newest = match known.iter().max() {
        Some(&largest) if largest > fence => Some(false),
        Some(_) if is_held && are_all_known => Some(true),
        _ => None,
    };
    (held, newest)
}

/// Whether a fence is the newest of a lock that nobody holds, by the newest that anybody remembers.
fn newest_of_free(fence: u64, remembered: Option<u64>) -> Option<bool> {
    remembered.filter(|&newest| newest >= fence).map(|newest| newest == fence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_free_lock_the_last_fence_is_the_newest_as_long_as_it_is_remembered() {
        assert_eq!(newest_of_free(7, Some(7)), Some(true));
        assert_eq!(newest_of_free(7, Some(8)), Some(false));
        // It was never granted, or by a view that is forgotten.
        assert_eq!(newest_of_free(7, Some(6)), None);
        assert_eq!(newest_of_free(7, None), None);
    }

    #[test]
    fn a_fence_is_the_newest_only_if_everybody_has_been_heard() {
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(judged(7, &[7], true), (yes, yes));
        assert_eq!(judged(7, &[7], false), (yes, None), "a silent member may have a larger one");
        assert_eq!(judged(7, &[9], true), (no, no));
        assert_eq!(judged(7, &[9], false), (None, no), "a larger one is enough to know");
        assert_eq!(judged(7, &[7, 9], true), (yes, no), "of a semaphore");
        assert_eq!(judged(7, &[], true), (no, None), "the lock is free");
        assert_eq!(judged(7, &[], false), (None, None));
        assert_eq!(judged(7, &[3], true), (no, None), "nobody was given it yet");
    }

    #[test]
    fn a_cursor_leads_back_to_its_line_and_nothing_else_is_one() {
        let key = LineKey {
            name: "ü/x".into(),
            permits: 3,
            place: 2,
            node: "a".into(),
            ticket: u64::MAX,
        };
        assert_eq!(position(&cursor(&key)).unwrap(), key);
        for bad in ["", "x", "AAAA", "../..", "e30"] {
            assert_eq!(position(bad).unwrap_err().kind(), Kind::BadRequest, "{bad}");
        }
    }
}
