//! A request of a client: who asks, for which repository, and what comes with it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use catraca_group::LONGEST_OWNER;
use serde::de::DeserializeOwned;

use super::Git;
use super::answer::Refused;
use super::path::LockPath;
use super::repository::Repository;
use crate::access::Role;
use crate::config::RepositorySettings;
use crate::http::Api;
use crate::http::caller::{Caller, Credentials};
use crate::http::input::{BODY_TIME, LONGEST_BODY, read_json, whole};
use crate::http::problem::Kind;

/// In whose name somebody asks who administers the repository.
const ON_BEHALF: &str = "catraca-owner";
/// How long to wait for a lock, for a client that cannot say so in another way.
const WAIT: &str = "catraca-wait";
/// The longest that a request waits: a day.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// A request of a client.
pub(crate) struct Asking {
    pub(crate) git: Arc<Git>,
    pub(crate) api: Api,
    pub(crate) repository: Repository,
    pub(crate) settings: RepositorySettings,
    pub(crate) caller: Caller,
    /// What the owner of locks is called that it takes.
    pub(crate) name: String,
    pub(crate) parts: Parts,
}

impl Asking {
    pub(crate) fn new(api: &Api, repository: Repository, parts: Parts) -> Result<Self, Refused> {
        let given = Credentials::of(&parts)?;
        if given.as_ref().is_some_and(|given| given.token.is_empty()) {
            let detail = "the password is empty: give your token as the password";
            return Err(Refused::new(Kind::Unauthenticated, "no-token", detail));
        }
        let caller = Caller::with(given.as_ref(), &parts, api)?;
        let user = || given.and_then(|given| given.user).filter(|user| !user.is_empty());
        let name = caller.proven_name().map(str::to_string).or_else(user).ok_or_else(|| {
            let detail =
                "say who you are: a user name and any password, as this node knows no tokens";
            Refused::new(Kind::Unauthenticated, "no-name", detail)
        })?;
        check_owner(&name)?;
        let git = Arc::clone(&api.git);
        let settings = git.config.settings(&repository.to_string()).clone();
        Ok(Asking { git, api: api.clone(), repository, settings, caller, name, parts })
    }

    /// Whether the caller may do what takes `role` to locks of this repository, whichever these are.
    pub(crate) fn may(&self, role: Role) -> Result<(), Refused> {
        Ok(self.caller.may(role, [])?)
    }

    /// Whether it may do what takes `role` to all of the repository.
    pub(crate) fn may_all(&self, role: Role) -> Result<(), Refused> {
        Ok(self.caller.may(role, [self.repository.all().as_str()])?)
    }

    /// The path of a lock that the caller may have to do with in this role.
    pub(crate) fn path(&self, given: &str, role: Role) -> Result<LockPath, Refused> {
        let path = LockPath::new(&self.repository, given, self.settings.fold)?;
        self.caller.may(role, [path.name.as_str()])?;
        Ok(path)
    }

    /// Whose locks are its own: those of the caller, or of whomever it speaks for, if it may.
    pub(crate) fn owner(&self, said: Option<&str>) -> Result<String, Refused> {
        let header = header(&self.parts.headers, ON_BEHALF)?;
        let Some(owner) = said.or(header).filter(|owner| *owner != self.name) else {
            return Ok(self.name.clone());
        };
        check_owner(owner)?;
        self.may_all(Role::Administer)?;
        Ok(owner.to_string())
    }

    /// How long to wait: what the body says, or the header.
    pub(crate) fn wait(&self, wait_ms: Option<u64>) -> Result<Duration, Refused> {
        let wait = match (wait_ms, header(&self.parts.headers, WAIT)?) {
            (Some(millis), _) => Some(Duration::from_millis(millis)),
            (None, Some(text)) => duration(text),
            (None, None) => Some(Duration::ZERO),
        };
        wait.filter(|wait| *wait <= LONGEST_WAIT).ok_or_else(|| {
            let detail = "a wait is a time of at most a day, as in 90s, 5m or 2h";
            Refused::new(Kind::BadRequest, "bad-wait", detail)
        })
    }

    /// The body, which may be left out.
    pub(crate) async fn body<T: DeserializeOwned + Default>(
        &self,
        body: Body,
    ) -> Result<T, Refused> {
        let bytes = whole(body, LONGEST_BODY, BODY_TIME, Some(&self.api.quota)).await?;
        if bytes.is_empty() {
            return Ok(T::default());
        }
        self.read(&bytes)
    }

    /// The same of a body that was read.
    pub(crate) fn read<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, Refused> {
        check_json(&self.parts.headers)?;
        Ok(read_json(bytes)?)
    }
}

fn check_owner(owner: &str) -> Result<(), Refused> {
    let fits = (1..=LONGEST_OWNER).contains(&owner.len()) && !owner.contains(char::is_control);
    match fits {
        true => Ok(()),
        false => {
            let detail = format!(
                "the name of an owner has 1 to {LONGEST_OWNER} bytes and no control characters"
            );
            Err(Refused::new(Kind::BadRequest, "bad-owner", detail))
        }
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refused> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    std::str::from_utf8(value.as_bytes()).map(|text| Some(text.trim())).map_err(|_| {
        let detail = format!("the header '{name}' cannot be read");
        Refused::new(Kind::BadRequest, "bad-header", detail)
    })
}

/// Whether a body is said to be JSON. A page of another site can send a form or a text in the name of whoever
/// reads it, but not this.
fn check_json(headers: &HeaderMap) -> Result<(), Refused> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = media_type.strip_prefix("application/");
    if is_json.is_some_and(|kind| kind == "json" || kind.ends_with("+json")) {
        return Ok(());
    }
    let detail = "send the body as 'Content-Type: application/vnd.git-lfs+json'";
    Err(Refused::new(Kind::NotJson, "not-json", detail))
}

/// A time as people write it: `90s`, `5m`, `2h`, `500ms`; seconds if there is no unit.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.len() - text.trim_start_matches(|it: char| it.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let millis = match unit {
        "ms" => 1,
        "s" | "" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.checked_mul(millis)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_a_number_with_a_unit() {
        let seconds = |text| duration(text).map(|it| it.as_secs_f64());
        let cases = [("5m", 300.0), ("90s", 90.0), ("7", 7.0), ("500ms", 0.5), ("2h", 7200.0)];
        for (text, expected) in cases {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for bad in
            ["", "m", "-1s", "1.5s", "5 m", "5w", "99999999999999999999s", "18446744073709551615d"]
        {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }
}
