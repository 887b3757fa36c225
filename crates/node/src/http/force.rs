//! Holds that are ended by force.

use axum::Json as JsonAnswer;
use axum::extract::State;
use catraca_group::{LONGEST_NOTE, Refusal};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Api;
use super::caller::Caller;
use super::input::Json;
use super::locks::{named, number};
use super::problem::{Kind, Problem, ProblemBody};
use crate::access::Role;

/// What is to be released by force.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ForceBody {
    /// The lock.
    #[schema(min_length = 1, max_length = 255, example = "deploy")]
    name: String,
    /// Only the holds with these fences; all of them if nothing is said.
    #[serde(default)]
    #[schema(max_items = 64)]
    fences: Vec<String>,
    /// Why, for the audit log.
    #[serde(default)]
    #[schema(max_length = 1024, example = "its machine is gone")]
    note: String,
}

/// What was released by force.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Forced {
    /// The holds that have ended.
    released: Vec<ForcedHold>,
}

/// A hold that was ended by force.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ForcedHold {
    /// The lock.
    name: String,
    /// The number of the grant.
    fence: String,
    /// The member at which it was.
    member: String,
    /// Whether it was durable.
    durable: bool,
    /// What the client called itself; the owner of a durable hold.
    label: String,
}

/// Releases a lock by force, whoever holds it. Takes the role `administer`.
///
/// A client that lives is told, and the next one is let in when the old one cannot believe to be inside any
/// more: the answer comes then.
#[utoipa::path(
    post,
    path = "/v1/force-release",
    request_body = ForceBody,
    responses(
        (status = 200, description = "What was released", body = Forced),
        (status = 409, description = "Nobody holds the lock", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn force_release(
    State(api): State<Api>,
    caller: Caller,
    Json(asked): Json<ForceBody>,
) -> Result<JsonAnswer<Forced>, Problem> {
    let name = named(&asked.name)?;
    let fences: Vec<u64> = asked.fences.iter().map(|it| number(it)).collect::<Result<_, _>>()?;
    caller.may(Role::Administer, [name])?;
    if asked.note.len() > LONGEST_NOTE {
        let detail = format!("a note has at most {LONGEST_NOTE} bytes: shorten it");
        return Err(Problem::new(Kind::BadRequest, "long-note", detail));
    }
    let by = caller.name();
    let forced = match api.gateway.force_release(name, &fences, by, &asked.note).await {
        Err(Refusal::NoSuchHold(_)) => {
            return Err(Problem::new(Kind::Conflict, "not-held", "nobody holds the lock so"));
        }
        forced => forced?,
    };
    let released = forced.into_iter().map(|hold| ForcedHold {
        name: hold.name,
        fence: hold.fence.to_string(),
        member: hold.member,
        durable: hold.is_durable,
        label: hold.label,
    });
    Ok(JsonAnswer(Forced { released: released.collect() }))
}
