//! What is said to clients of Git LFS: JSON of its own media type, and problems that it understands.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::header::{ACCEPT, ALLOW, CONTENT_LENGTH, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use catraca_group::Refusal;
use serde_json::Value;

use super::lock::Lock;
use super::path::PathError;
use super::repository::RepositoryError;
use crate::calendar::rfc3339;
use crate::http::problem::{Kind, PROBLEM_JSON, Problem};

/// The media type of Git LFS.
const LFS_JSON: &str = "application/vnd.git-lfs+json";
/// Where the client looks for how to say who it is.
const LFS_AUTHENTICATE: HeaderName = HeaderName::from_static("lfs-authenticate");
const CHALLENGE: &str = "Basic realm=\"Git locks: your name, and your token as the password\"";

/// JSON, as the client expects it.
pub(crate) fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    (status, [(CONTENT_TYPE, LFS_JSON)], body.into()).into_response()
}

/// Whether a client of Git LFS asks.
pub(crate) fn asks_for_lfs(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let is_lfs = |text: &str| {
        let media_type = text.split(';').next().unwrap_or_default();
        media_type.trim().eq_ignore_ascii_case(LFS_JSON)
    };
    accepted.flat_map(|value| value.split(',')).any(is_lfs)
}

/// An answer as a client of Git LFS shows it: a problem of another part of the node gets a `message` too. Whoever has
/// mistyped `lfs.url` finds out by it.
pub(crate) async fn for_lfs(response: Response) -> Response {
    if response.headers().get(CONTENT_TYPE).is_none_or(|kind| kind != PROBLEM_JSON) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // It was made here, as a whole.
    let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let Ok(mut problem) = serde_json::from_slice::<Value>(&bytes) else {
        return Response::from_parts(parts, bytes.into());
    };
    problem["message"] = problem["detail"].clone();
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(LFS_JSON));
    Response::from_parts(parts, problem.to_string().into())
}

/// `{"KEY": lock}`.
pub(crate) fn one(key: &str, lock: &Lock) -> String {
    format!("{{\"{key}\":{}}}", lock.json)
}

/// A list of locks, as JSON.
pub(crate) fn list<'a>(locks: impl IntoIterator<Item = &'a Arc<Lock>>) -> String {
    let mut text = String::from("[");
    for lock in locks {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&lock.json);
    }
    text.push(']');
    text
}

/// Why something is not done, as a problem that has a `message` too, which is what the client shows.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) problem: Box<Problem>,
    /// The lock that is in the way.
    pub(crate) lock: Option<Arc<Lock>>,
    /// All locks that are in the way of several.
    pub(crate) locks: Option<Vec<Arc<Lock>>>,
    allow: Option<&'static str>,
}

impl Refused {
    pub(crate) fn new(kind: Kind, code: &'static str, detail: impl Into<String>) -> Self {
        Problem::new(kind, code, detail).into()
    }

    /// The same, with the lock that it is about.
    pub(crate) fn about(self, lock: &Arc<Lock>) -> Self {
        Refused { lock: Some(Arc::clone(lock)), ..self }
    }

    /// The same, with all locks that are in the way.
    pub(crate) fn with_locks(self, locks: Vec<Arc<Lock>>) -> Self {
        Refused { locks: Some(locks), ..self }
    }

    /// Somebody has the lock: `owner` itself, or somebody else.
    pub(crate) fn taken(lock: &Arc<Lock>, owner: &str) -> Self {
        let since = rfc3339(lock.unix_millis);
        let refused = match lock.owner == owner {
            true => {
                let detail = format!("you have locked '{}' already, since {since}", lock.path);
                Refused::new(Kind::Conflict, "own-lock", detail)
            }
            false => Refused::new(Kind::Taken, "taken", lock.holder(owner)),
        };
        refused.about(lock)
    }

    /// These have the locks of some paths.
    pub(crate) fn all_taken(locks: Vec<Arc<Lock>>, owner: &str) -> Self {
        let detail = match &locks[..] {
            [one] => return Refused::taken(one, owner).with_locks(locks),
            [] => "somebody is taking one of these locks at this moment; try again".to_string(),
            [first, rest @ ..] => {
                let holder = match first.owner == owner {
                    true => format!("you have locked '{}' already", first.path),
                    false => first.holder(owner),
                };
                format!("nothing was locked: {holder}, and {} others are locked too", rest.len())
            }
        };
        Refused::new(Kind::Taken, "taken", detail).with_locks(locks)
    }

    pub(crate) fn wrong_method(allow: &'static str) -> Self {
        let refused = Refused::new(Kind::WrongMethod, "wrong-method", format!("use {allow} here"));
        Refused { allow: Some(allow), ..refused }
    }

    pub(crate) fn message(&self) -> &str {
        self.problem.detail()
    }

    /// The body: what every problem says, and what the client looks for.
    pub(crate) fn body(&self) -> Value {
        let mut body = self.problem.body();
        let value =
            |lock: &Arc<Lock>| serde_json::from_str::<Value>(&lock.json).unwrap_or_default();
        body["message"] = self.message().into();
        if let Some(lock) = &self.lock {
            body["lock"] = value(lock);
        }
        if let Some(locks) = &self.locks {
            body["locks"] = locks.iter().map(value).collect();
        }
        body
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Refused { problem: Box::new(problem), lock: None, locks: None, allow: None }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Problem::from(refusal).into()
    }
}

impl From<PathError> for Refused {
    fn from(error: PathError) -> Self {
        Refused::new(Kind::BadRequest, "bad-path", error.to_string())
    }
}

impl From<RepositoryError> for Refused {
    // Not 'not found': with that the client would push without asking for locks ever again.
    fn from(error: RepositoryError) -> Self {
        Refused::new(Kind::BadRequest, "bad-repository", error.to_string())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = self.body().to_string();
        let (kind, allow) = (self.problem.kind(), self.allow);
        let (mut parts, _) = (*self.problem).into_response().into_parts();
        parts.headers.remove(CONTENT_LENGTH);
        parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(LFS_JSON));
        if kind == Kind::Unauthenticated {
            let challenge = HeaderValue::from_static(CHALLENGE);
            parts.headers.insert(LFS_AUTHENTICATE, challenge.clone());
            parts.headers.insert(WWW_AUTHENTICATE, challenge);
        }
        if let Some(allow) = allow {
            parts.headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        Response::from_parts(parts, Body::from(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(values: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT, value.parse().unwrap());
        }
        asks_for_lfs(&headers)
    }

    #[test]
    fn a_client_of_git_lfs_says_what_it_reads() {
        assert!(accepts(&["application/vnd.git-lfs+json"]));
        assert!(accepts(&["application/vnd.git-lfs+json; charset=utf-8"]));
        assert!(accepts(&["text/html, application/vnd.git-lfs+json;q=0.9"]));
        assert!(accepts(&["text/html", "Application/Vnd.Git-LFS+json"]));
        assert!(!accepts(&[]));
        assert!(!accepts(&["*/*", "application/json"]));
    }

    #[tokio::test]
    async fn a_problem_has_a_message_for_the_client_and_other_answers_stay_as_they_are() {
        let problem = Problem::new(Kind::NotFound, "no-such-path", "there is nothing here");
        let shown = for_lfs(problem.into_response()).await;
        assert_eq!(shown.status(), StatusCode::NOT_FOUND);
        assert_eq!(shown.headers()[CONTENT_TYPE], LFS_JSON);
        let body = to_bytes(shown.into_body(), usize::MAX).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&body["message"], &body["code"]), (&body["detail"], &"no-such-path".into()));
        let plain = for_lfs("plain".into_response()).await;
        assert_eq!(to_bytes(plain.into_body(), usize::MAX).await.unwrap(), "plain");
    }
}
