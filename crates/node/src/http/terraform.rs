//! The http backend of Terraform and OpenTofu: locks, and where it is configured the state too.
//!
//! `LOCK /terraform/NAME` brings a description of the lock as JSON, whose `ID` is the run's own. The lock is a
//! durable hold of `terraform/NAME` that belongs to this id: it survives the loss of a node, as a run that
//! goes on must not be joined by another one. Whoever finds it taken is told the description of the holder,
//! with 423, as the backend expects. `UNLOCK` brings the same id; without one it is a `force-unlock`, for
//! which an administrator is needed.

use axum::Json as JsonAnswer;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use catraca_group::{
    AcquireDurable, DurableHold, LONGEST_NOTE, LockName, NameError, Refusal, Target, Unlock, Wait,
};
use serde::{Deserialize, Serialize};

use super::caller::Caller;
use super::input::{Part, optional};
use super::problem::{Kind, Problem};
use super::{Api, state};
use crate::access::Role;

/// Names of states are names of locks behind this.
const PREFIX: &str = "terraform/";
/// All locks of Terraform are requests of this name: each run is an owner of its own.
const REQUEST: &str = "terraform";

/// What a run says of its lock, as the backend writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct LockInfo {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "Operation")]
    operation: String,
    #[serde(rename = "Info")]
    info: String,
    #[serde(rename = "Who")]
    who: String,
    #[serde(rename = "Version")]
    version: String,
    #[serde(rename = "Created")]
    created: String,
    #[serde(rename = "Path")]
    path: String,
}

impl LockInfo {
    /// As the note of a hold. If it does not fit, whatever is least needed is left out.
    fn note(&self) -> String {
        let mut info = self.clone();
        let dispensable: [fn(&mut LockInfo) -> &mut String; 5] = [
            |it| &mut it.path,
            |it| &mut it.info,
            |it| &mut it.version,
            |it| &mut it.who,
            |it| &mut it.operation,
        ];
        let mut left_out = dispensable.into_iter();
        loop {
            // Texts can always be written.
            let note = serde_json::to_string(&info).unwrap_or_default();
            if note.len() <= LONGEST_NOTE {
                return note;
            }
            match left_out.next() {
                Some(text) => text(&mut info).clear(),
                None => return String::new(),
            }
        }
    }

    /// What the holder has said.
    fn of(hold: &DurableHold) -> Self {
        serde_json::from_str(&hold.note)
            .unwrap_or_else(|_| LockInfo { id: hold.owner.clone(), ..LockInfo::default() })
    }
}

/// What is asked of a state: its address is that of its lock too.
pub(super) async fn serve(
    State(api): State<Api>,
    caller: Caller,
    Part(name): Part,
    request: Request,
) -> Result<Response, Problem> {
    let lock = lock_of(&name)?;
    match request.method().as_str() {
        "LOCK" => acquire(&api, &caller, lock, request).await,
        "UNLOCK" => release(&api, &caller, lock, request).await,
        _ => state::serve(&api, &caller, &name, lock, request).await,
    }
}

/// What is asked of a lock by a backend that was told to use other methods, which would mean the state at the
/// address above.
pub(super) async fn serve_lock(
    State(api): State<Api>,
    caller: Caller,
    Part(name): Part,
    request: Request,
) -> Result<Response, Problem> {
    let lock = lock_of(&name)?;
    match request.method().as_str() {
        "LOCK" | "POST" | "PUT" => acquire(&api, &caller, lock, request).await,
        "UNLOCK" | "DELETE" => release(&api, &caller, lock, request).await,
        _ => Err(wrong_method(request.method())),
    }
}

fn lock_of(name: &str) -> Result<String, Problem> {
    let lock = format!("{PREFIX}{name}");
    match LockName::new(&lock) {
        Ok(_) if !name.is_empty() => Ok(lock),
        Ok(_) => Err(Refusal::from(NameError::Empty).into()),
        Err(error) => Err(Refusal::from(error).into()),
    }
}

pub(super) fn wrong_method(method: &Method) -> Problem {
    let detail = format!("there is no {method} here; see the manual of the http backend");
    Problem::new(Kind::WrongMethod, "wrong-method", detail)
}

async fn acquire(
    api: &Api,
    caller: &Caller,
    lock: String,
    request: Request,
) -> Result<Response, Problem> {
    caller.may(Role::Lock, [lock.as_str()])?;
    let info = optional::<LockInfo>(request, api).await?;
    if info.id.is_empty() {
        return Err(Problem::new(Kind::BadRequest, "no-lock-id", "the lock needs an \"ID\""));
    }
    let asked = AcquireDurable {
        names: vec![lock.clone()],
        permits: 1,
        wait: Wait::no(),
        owner: owner(caller, &info.id),
        note: info.note(),
        request: REQUEST.to_string(),
    };
    match api.gateway.acquire_durable(asked, caller.known_name()).await {
        Ok(_) => Ok(JsonAnswer(info).into_response()),
        Err(Refusal::Taken | Refusal::TimedOut) => Ok(locked(&holder(api, lock).await?)),
        Err(refusal) => Err(refusal.into()),
    }
}

/// Whoever has the lock.
async fn holder(api: &Api, lock: String) -> Result<LockInfo, Problem> {
    match api.gateway.durable(Target::Name(lock.clone())).await {
        Ok(hold) => Ok(LockInfo::of(&hold)),
        Err(Refusal::NoSuchHold(_)) => {
            let info = format!("the lock is held, but by no run: see /v1/locks?name={lock}");
            Ok(LockInfo { info, ..LockInfo::default() })
        }
        Err(refusal) => Err(refusal.into()),
    }
}

pub(super) fn locked(info: &LockInfo) -> Response {
    (StatusCode::LOCKED, JsonAnswer(info)).into_response()
}

async fn release(
    api: &Api,
    caller: &Caller,
    lock: String,
    request: Request,
) -> Result<Response, Problem> {
    caller.may(Role::Lock, [lock.as_str()])?;
    let info = optional::<LockInfo>(request, api).await?;
    let hold = match api.gateway.durable(Target::Name(lock.clone())).await {
        Err(Refusal::NoSuchHold(_)) => {
            return Err(Problem::new(Kind::Conflict, "not-locked", "nobody holds the lock"));
        }
        found => found?,
    };
    let owner = owner(caller, &info.id);
    // Somebody else's lock is only released by force, which 'force-unlock' means.
    let is_own = hold.owner == owner;
    if !is_own && caller.may(Role::Administer, [lock.as_str()]).is_err() {
        let detail =
            "another run has the lock, or it takes an administrator to release it by force";
        return Err(Problem::new(Kind::Conflict, "not-owner", detail));
    }
    if !is_own && !info.id.is_empty() && info.id != LockInfo::of(&hold).id {
        let detail = format!("another run has the lock: {}", LockInfo::of(&hold).id);
        return Err(Problem::new(Kind::Conflict, "not-owner", detail));
    }
    let owner = is_own.then_some(owner);
    api.gateway.unlock(Unlock { target: Target::Id(hold.id), owner }, caller.name()).await?;
    Ok(JsonAnswer(LockInfo::of(&hold)).into_response())
}

/// Who a lock belongs to. An id is no secret, so the name of whoever has a token is part of it.
fn owner(caller: &Caller, id: &str) -> String {
    match caller.proven_name() {
        Some(name) => format!("{name}/{id}"),
        None => id.to_string(),
    }
}

/// Whether somebody else than the run with this id has the lock, and who.
pub(super) async fn other_holder(
    api: &Api,
    caller: &Caller,
    lock: String,
    id: Option<&str>,
) -> Result<Option<LockInfo>, Problem> {
    match api.gateway.durable(Target::Name(lock)).await {
        Ok(hold) if id.is_some_and(|id| owner(caller, id) == hold.owner) => Ok(None),
        Ok(hold) => Ok(Some(LockInfo::of(&hold))),
        Err(Refusal::NoSuchHold(_)) => Ok(None),
        Err(refusal) => Err(refusal.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(text: &str) -> LockInfo {
        let info = LockInfo { path: text.into(), info: text.into(), ..LockInfo::default() };
        LockInfo { id: "1".into(), who: "me@here".into(), operation: "Plan".into(), ..info }
    }

    #[test]
    fn a_description_that_is_too_long_keeps_what_is_needed_most() {
        let said = |info: &LockInfo| serde_json::from_str::<LockInfo>(&info.note()).unwrap();
        let short = described("x");
        assert_eq!(said(&short), short);
        let long = said(&described(&"\u{1}".repeat(500)));
        assert_eq!((long.path.as_str(), long.info.as_str()), ("", ""));
        assert_eq!((long.who.as_str(), long.operation.as_str()), ("me@here", "Plan"));
        let all = LockInfo { who: "x".repeat(2000), created: "y".repeat(2000), ..long };
        assert_eq!(all.note(), "");
    }

    #[test]
    fn a_state_has_a_name_that_a_lock_can_have() {
        assert_eq!(lock_of("prod/net").unwrap(), "terraform/prod/net");
        for bad in ["", "a b", "a\0b", &"x".repeat(250)] {
            assert_eq!(lock_of(bad).unwrap_err().kind(), Kind::BadRequest, "{bad}");
        }
    }
}
