//! Locks that are asked for, kept and given back.

use std::time::Duration;

use axum::Json as JsonAnswer;
use axum::extract::{Request, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderName, StatusCode};
use catraca_group::{
    AcquireDurable, HoldId, LONGEST_OWNER, Refusal, Renewal, TIMED_TTL_RANGE, Target, Unlock, Wait,
    Which, Who,
};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::Api;
use super::caller::Caller;
use super::hold::Hold;
use super::input::{Asked, Json, Part, optional};
use super::locks::explained;
use super::problem::{Kind, Problem, ProblemBody};
use crate::access::{Denied, Role};
use crate::gateway::Asking;
use crate::secret::secret;

/// The time to live of a hold for which none was given, in milliseconds.
const USUAL_TTL: u64 = 30_000;
/// The longest that a request waits, in milliseconds: a day.
const LONGEST_WAIT: u64 = 86_400_000;

/// What is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AcquireBody {
    /// The locks: all of them, or none. 1 to 256 names without white space, each of at most 255 bytes.
    #[schema(min_items = 1, max_items = 256, example = json!(["deploy"]))]
    names: Vec<String>,
    /// How many may be inside at a time; everybody gives the same number. More than one only for one name.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 64, default = 1)]
    permits: u32,
    /// How long to wait, in milliseconds. 0 does not wait for others to leave.
    #[serde(default)]
    #[schema(maximum = 86_400_000, default = 0)]
    wait_ms: u64,
    /// How long the hold lasts unless it is renewed, in milliseconds; 30000 if nothing is said. Not for durable
    /// holds.
    #[schema(minimum = 1, maximum = 86_400_000)]
    ttl_ms: Option<u64>,
    /// What the client calls itself, for lists. Not for durable holds: they have an owner.
    label: Option<String>,
    /// Whether the hold is durable: it does not expire, survives the loss of its node, and ends when its owner
    /// releases it.
    #[serde(default)]
    durable: bool,
    /// Who a durable hold belongs to; by default whoever the token is for.
    #[schema(min_length = 1, max_length = 255)]
    owner: Option<String>,
    /// What the owner of a durable hold has to say about it.
    #[schema(max_length = 1024)]
    note: Option<String>,
    /// The client's own name for its request for a durable hold: asking again with it gives the same hold.
    #[schema(min_length = 1, max_length = 255)]
    request_id: Option<String>,
}

fn one() -> u32 {
    1
}

/// A hold that has just been made, and where it is found.
type Created = (StatusCode, [(HeaderName, String); 1], JsonAnswer<Hold>);

/// Asks for locks: all of them, or none.
///
/// The request waits for as long as it says, and ends when its client goes away. What it gets is held until it
/// is released, or until its time to live is over and it was not renewed. Asking for a durable hold again with
/// the same owner and `request_id` gives the same hold.
#[utoipa::path(
    post,
    path = "/v1/acquire",
    request_body = AcquireBody,
    responses(
        (status = 201, description = "Inside", body = Hold, headers(
            ("location" = String, description = "Where the hold is found"),
        )),
        (status = 409, description = "Somebody else holds a lock, or it is in use in another way", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn acquire(
    State(api): State<Api>,
    caller: Caller,
    Json(asked): Json<AcquireBody>,
) -> Result<Created, Problem> {
    caller.may_all(Role::Lock, &asked.names)?;
    let names = asked.names.clone();
    let made = match asked.durable {
        true => {
            let asked = durable_asked(asked, &caller)?;
            api.gateway.acquire_durable(asked, caller.known_name()).await.map(Hold::from)
        }
        false => {
            let asked = timed_asked(asked, caller.known_name().to_string())?;
            api.gateway.acquire(asked).await.map(Hold::from)
        }
    };
    match made {
        // A token may have been revoked while its holder waited.
        Ok(hold) if caller.may_all(Role::Lock, &names).is_err() => {
            hand_back(&api, &caller, &hold).await?;
            Err(Denied::UnknownToken.into())
        }
        Ok(hold) => {
            let place = [(LOCATION, format!("/v1/holds/{}", hold.id))];
            Ok((StatusCode::CREATED, place, JsonAnswer(hold)))
        }
        Err(refusal) => Err(explained(&api, refusal.into(), &names).await),
    }
}

/// Gives back what nobody is to have.
async fn hand_back(api: &Api, caller: &Caller, hold: &Hold) -> Result<(), Problem> {
    let id = hold_id(&hold.id)?;
    if hold.durable {
        let unlock = Unlock { target: Target::Id(id), owner: None };
        api.gateway.unlock(unlock, caller.name()).await?;
    } else {
        api.gateway.release(&Which::Id(id)).await?;
    }
    Ok(())
}

fn timed_asked(asked: AcquireBody, identity: String) -> Result<Asking, Problem> {
    let given = [
        ("owner", asked.owner.is_some()),
        ("note", asked.note.is_some()),
        ("request_id", asked.request_id.is_some()),
    ];
    if let Some((field, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        let detail =
            format!("'{field}' is for durable holds: say \"durable\": true, or leave it out");
        return Err(Problem::new(Kind::BadRequest, "not-durable", detail));
    }
    Ok(Asking {
        names: asked.names,
        permits: asked.permits,
        wait: wait(asked.wait_ms)?,
        ttl: ttl(asked.ttl_ms.unwrap_or(USUAL_TTL))?,
        who: Who { label: asked.label.unwrap_or_default(), identity, ..Who::default() },
        token: Vec::new(),
    })
}

fn durable_asked(asked: AcquireBody, caller: &Caller) -> Result<AcquireDurable, Problem> {
    let given = [("ttl_ms", asked.ttl_ms.is_some()), ("label", asked.label.is_some())];
    if let Some((field, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        let detail = format!("a durable hold has no '{field}'; leave it out");
        return Err(Problem::new(Kind::BadRequest, "durable", detail));
    }
    Ok(AcquireDurable {
        names: asked.names,
        permits: asked.permits,
        wait: wait(asked.wait_ms)?,
        owner: caller.owner(asked.owner)?,
        note: asked.note.unwrap_or_default(),
        request: asked.request_id.unwrap_or_else(random_name),
    })
}

/// A name for a request that nobody else gives.
fn random_name() -> String {
    HoldId(u128::from_be_bytes(secret())).to_string()
}

fn ttl(millis: u64) -> Result<Duration, Problem> {
    let ttl = Duration::from_millis(millis);
    if TIMED_TTL_RANGE.contains(&ttl) {
        return Ok(ttl);
    }
    let most = TIMED_TTL_RANGE.end().as_millis();
    let detail = format!("a time to live goes from 1 to {most} milliseconds, a day");
    Err(Problem::new(Kind::BadRequest, "bad-ttl", detail))
}

fn wait(millis: u64) -> Result<Wait, Problem> {
    match millis {
        0 => Ok(Wait::no()),
        1..=LONGEST_WAIT => Ok(Wait::AtMost(Duration::from_millis(millis))),
        _ => {
            let detail = format!("wait_ms is at most {LONGEST_WAIT}, a day");
            Err(Problem::new(Kind::BadRequest, "bad-wait", detail))
        }
    }
}

/// Looks at a hold.
#[utoipa::path(
    get,
    path = "/v1/holds/{id}",
    params(("id" = String, Path, description = "Which hold", pattern = "^[0-9a-f]{32}$")),
    responses(
        (status = 200, description = "The hold as it is now", body = Hold),
        (status = 404, description = "That is no id of a hold", body = ProblemBody, content_type = "application/problem+json"),
        (status = 410, description = "The hold is lost, over or released", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn look(
    State(api): State<Api>,
    caller: Caller,
    Part(id): Part,
) -> Result<JsonAnswer<Hold>, Problem> {
    let hold = find(&api, hold_id(&id)?).await?;
    caller.may_all(Role::Observe, &hold.names)?;
    Ok(JsonAnswer(hold))
}

/// How long a hold is to last from now on.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RenewBody {
    /// In milliseconds; as long as at first if nothing is said.
    #[schema(minimum = 1, maximum = 86_400_000)]
    ttl_ms: Option<u64>,
}

/// Lets a hold last for its time to live again, from now on.
#[utoipa::path(
    post,
    path = "/v1/holds/{id}/renew",
    params(("id" = String, Path, description = "Which hold", pattern = "^[0-9a-f]{32}$")),
    request_body(content = Option<RenewBody>, description = "Nothing, or how long it is to last"),
    responses(
        (status = 200, description = "The hold as it is now", body = Hold),
        (status = 404, description = "That is no id of a hold", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "A durable hold does not expire", body = ProblemBody, content_type = "application/problem+json"),
        (status = 410, description = "The hold is lost, over or released", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn renew(
    State(api): State<Api>,
    caller: Caller,
    Part(id): Part,
    request: Request,
) -> Result<JsonAnswer<Hold>, Problem> {
    let id = hold_id(&id)?;
    let asked: RenewBody = optional(request, &api).await?;
    let asked = asked.ttl_ms.map(ttl).transpose()?;
    let hold = find(&api, id).await?;
    caller.may_all(Role::Lock, &hold.names)?;
    let Some(usual) = hold.ttl_ms else {
        let detail = "a durable hold does not expire: there is nothing to renew";
        return Err(Problem::new(Kind::Conflict, "durable", detail));
    };
    let ttl = asked.unwrap_or(Duration::from_millis(usual));
    let renewed = api.gateway.renew(&Which::Id(id), Renewal::To(ttl)).await?;
    Ok(JsonAnswer(renewed.into()))
}

/// By whom a durable hold is released.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ReleaseQuery {
    /// The owner of a durable hold; by default whoever the token is for. Not for other holds.
    #[param(max_length = 255)]
    owner: Option<String>,
}

/// Releases a hold.
#[utoipa::path(
    delete,
    path = "/v1/holds/{id}",
    params(
        ("id" = String, Path, description = "Which hold", pattern = "^[0-9a-f]{32}$"),
        ReleaseQuery,
    ),
    responses(
        (status = 204, description = "It is released"),
        (status = 404, description = "That is no id of a hold", body = ProblemBody, content_type = "application/problem+json"),
        (status = 410, description = "The hold is lost, over or released already", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn release(
    State(api): State<Api>,
    caller: Caller,
    Part(id): Part,
    Asked(asked): Asked<ReleaseQuery>,
) -> Result<StatusCode, Problem> {
    let id = hold_id(&id)?;
    if asked.owner.as_ref().is_some_and(|owner| owner.len() > LONGEST_OWNER) {
        let detail = format!("an owner has at most {LONGEST_OWNER} bytes");
        return Err(Problem::new(Kind::BadRequest, "bad-query", detail));
    }
    let hold = match asked.owner.is_none() && caller.may_everywhere(Role::Lock) {
        // It need not be known first which locks these are.
        true => match api.gateway.release(&Which::Id(id)).await {
            Ok(_) => return Ok(StatusCode::NO_CONTENT),
            Err(Refusal::NoSuchHold(_)) => find_durable(&api, id).await?,
            Err(refusal) => return Err(refusal.into()),
        },
        false => find(&api, id).await?,
    };
    caller.may_all(Role::Lock, &hold.names)?;
    if hold.durable {
        let owner = Some(caller.owner(asked.owner)?);
        api.gateway.unlock(Unlock { target: Target::Id(id), owner }, caller.name()).await?;
    } else {
        api.gateway.release(&Which::Id(id)).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The hold with this id, wherever in the group it is.
async fn find(api: &Api, id: HoldId) -> Result<Hold, Problem> {
    match api.gateway.look(&Which::Id(id)).await {
        Ok(hold) => Ok(hold.into()),
        Err(Refusal::NoSuchHold(_)) => find_durable(api, id).await,
        Err(refusal) => Err(refusal.into()),
    }
}

/// The same, of one that is not timed.
async fn find_durable(api: &Api, id: HoldId) -> Result<Hold, Problem> {
    match api.gateway.durable(Target::Id(id)).await {
        Ok(hold) => Ok(hold.into()),
        // Whoever has an id has once had the hold.
        Err(Refusal::NoSuchHold(_) | Refusal::NoRegistry) => {
            let detail = format!("the hold {id} is lost, over or released");
            Err(Problem::new(Kind::Gone, "gone", detail))
        }
        Err(refusal) => Err(refusal.into()),
    }
}

/// Reads an id as the node writes it.
fn hold_id(text: &str) -> Result<HoldId, Problem> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let has_form = text.len() == 32 && text.bytes().all(is_digit);
    let id = has_form.then(|| u128::from_str_radix(text, 16).ok()).flatten();
    id.map(HoldId).ok_or_else(|| {
        let detail = "the id of a hold has 32 hexadecimal digits, in small letters";
        Problem::new(Kind::NotFound, "bad-id", detail)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_node_has_written_is_an_id() {
        let id = HoldId(0x0f3c);
        assert_eq!(hold_id(&id.to_string()).unwrap(), id);
        let cases =
            ["", "0f3c", "+0000000000000000000000000000001", "../../../../../../../etc/passwd"];
        for bad in cases.into_iter().chain([&*"F".repeat(32), &"é".repeat(16)]) {
            assert_eq!(hold_id(bad).unwrap_err().kind(), Kind::NotFound, "{bad}");
        }
    }

    #[test]
    fn a_wait_has_an_end() {
        assert_eq!(wait(0).unwrap(), Wait::no());
        assert_eq!(wait(LONGEST_WAIT).unwrap().limit(), Some(Duration::from_secs(86_400)));
        assert_eq!(wait(LONGEST_WAIT + 1).unwrap_err().kind(), Kind::BadRequest);
        assert_eq!(wait(u64::MAX).unwrap_err().kind(), Kind::BadRequest);
    }
}
