//! Why a request is not served, as problem details (RFC 9457).

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use catraca_group::{Class, Refusal};
use serde::Serialize;
use utoipa::ToSchema;

use super::input::Part;
use super::locks::Holder;

/// The media type of problem details.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";
/// Whoever finds the group unavailable may ask again after so many seconds.
const RETRY_SECONDS: u16 = 1;

/// The whole answer to a caller whose request is not even read, as there is no room for its connection.
pub(super) fn no_room() -> Vec<u8> {
    let detail = "this node has too many connections; close some, or try again later";
    let body = Problem::new(Kind::Unavailable, NO_ROOM, detail).body().to_string();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: {PROBLEM_JSON}\r\nContent-Length: {length}\r\n\
         Retry-After: {RETRY_SECONDS}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    );
    (head + &body).into_bytes()
}

/// The code of that problem.
pub(super) const NO_ROOM: &str = "too-many-connections";

/// What kind of problem it is: what clients may decide by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    BadRequest,
    Unauthenticated,
    Forbidden,
    NotFound,
    WrongMethod,
    TimedOut,
    SlowBody,
    Taken,
    Conflict,
    Gone,
    TooLarge,
    NotJson,
    WrongHost,
    LongHeader,
    TooMany,
    NotOffered,
    Unavailable,
}

impl Kind {
    pub(super) const ALL: [Kind; 17] = [
        Kind::BadRequest,
        Kind::Unauthenticated,
        Kind::Forbidden,
        Kind::NotFound,
        Kind::WrongMethod,
        Kind::TimedOut,
        Kind::SlowBody,
        Kind::Taken,
        Kind::Conflict,
        Kind::Gone,
        Kind::TooLarge,
        Kind::NotJson,
        Kind::WrongHost,
        Kind::LongHeader,
        Kind::TooMany,
        Kind::NotOffered,
        Kind::Unavailable,
    ];

    /// The last part of its URI.
    pub(crate) fn slug(self) -> &'static str {
        self.texts().1
    }

    pub(crate) fn status(self) -> StatusCode {
        self.texts().0
    }

    pub(crate) fn title(self) -> &'static str {
        self.texts().2
    }

    /// What to do about it.
    pub(super) fn remedy(self) -> &'static str {
        self.texts().3
    }

    fn texts(self) -> (StatusCode, &'static str, &'static str, &'static str) {
        match self {
            Kind::BadRequest => (
                StatusCode::BAD_REQUEST,
                "bad-request",
                "The request is not right",
                "Change it as 'detail' says: asking again in the same way is of no use.",
            ),
            Kind::Unauthenticated => (
                StatusCode::UNAUTHORIZED,
                "unauthenticated",
                "Nobody known is asking",
                "Send a valid token: 'Authorization: Bearer TOKEN', or as the password of basic authentication.",
            ),
            Kind::Forbidden => (
                StatusCode::FORBIDDEN,
                "forbidden",
                "This caller may not do that",
                "Use a token with the role and the names that 'detail' speaks of.",
            ),
            Kind::NotFound => (
                StatusCode::NOT_FOUND,
                "not-found",
                "There is no such thing here",
                "See /openapi.json for what there is.",
            ),
            Kind::WrongMethod => (
                StatusCode::METHOD_NOT_ALLOWED,
                "wrong-method",
                "Not with this method",
                "Use one of those that the header 'Allow' lists.",
            ),
            Kind::TimedOut => (
                StatusCode::REQUEST_TIMEOUT,
                "timed-out",
                "The lock was not granted in time",
                "Ask again, or wait for longer: 'wait_ms'. 'holders' says who is inside.",
            ),
            Kind::SlowBody => (
                StatusCode::REQUEST_TIMEOUT,
                "slow-body",
                "The body did not come in time",
                "Send the whole body at once.",
            ),
            Kind::Taken => (
                StatusCode::CONFLICT,
                "taken",
                "Somebody else holds the lock",
                "Ask again later, or wait: 'wait_ms'. 'holders' says who is inside.",
            ),
            Kind::Conflict => (
                StatusCode::CONFLICT,
                "conflict",
                "It does not fit what is there",
                "Do as 'detail' says.",
            ),
            Kind::Gone => (
                StatusCode::GONE,
                "gone",
                "The hold is lost, over or released",
                "Stop what the lock guards, and ask for it anew.",
            ),
            Kind::TooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The body is too large", "Send less.")
            }
            Kind::NotJson => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "not-json",
                "The body is not declared as JSON",
                "Send 'Content-Type: application/json'; with curl, use '--json'.",
            ),
            Kind::WrongHost => (
                StatusCode::MISDIRECTED_REQUEST,
                "wrong-host",
                "Not by this name of the host",
                "Call a node on this machine as localhost or by its address, or send a token.",
            ),
            Kind::LongHeader => (
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "long-header",
                "The header is too large",
                "Send a shorter address, and fewer or shorter lines of the header.",
            ),
            Kind::TooMany => (
                StatusCode::TOO_MANY_REQUESTS,
                "too-many",
                "Too much at a time",
                "Release something, or wait until something has ended.",
            ),
            Kind::NotOffered => (
                StatusCode::NOT_IMPLEMENTED,
                "not-offered",
                "This node does not offer that",
                "Configure it, or ask another node.",
            ),
            Kind::Unavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "The group cannot serve this now",
                "Ask again after a while, perhaps another node. See /v1/status.",
            ),
        }
    }

    /// What kind of problem a refusal is.
    fn of(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::NoSuchHold(_) => Kind::Gone,
            Refusal::NotOwner(_) => Kind::Forbidden,
            Refusal::OtherPermits { .. } | Refusal::OtherRequest(_) | Refusal::SeveralHolds(..) => {
                Kind::Conflict
            }
            Refusal::TooManyRequests => Kind::TooMany,
            other => match other.class() {
                Class::Input => Kind::BadRequest,
                Class::Taken => Kind::Taken,
                Class::TimedOut => Kind::TimedOut,
                Class::Unavailable => Kind::Unavailable,
                Class::Gone => Kind::Gone,
            },
        }
    }
}

/// Why a request is not served.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    kind: Kind,
    code: &'static str,
    detail: String,
    /// Who holds what was asked for.
    holders: Vec<Holder>,
    /// Who asked, if that is known and the reason.
    caller: Option<String>,
    /// Whether the service has said so, which counts its refusals itself.
    is_counted: bool,
}

/// That somebody was not allowed what it asked for, as part of an answer.
#[derive(Clone)]
pub(super) struct Denial {
    /// Who, if that is known.
    pub(super) caller: Option<String>,
    pub(super) why: String,
}

/// The code of a problem that is yet to be counted, as part of an answer.
#[derive(Clone, Copy)]
pub(super) struct Uncounted(pub(super) &'static str);

/// Problem details as RFC 9457 has them.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct ProblemBody {
    /// Which kind of problem it is, as a path of this node that explains it.
    #[schema(example = "/problems/taken")]
    r#type: String,
    /// The same for people.
    title: &'static str,
    /// The status of the answer.
    #[schema(example = 409, minimum = 400, maximum = 599)]
    status: u16,
    /// What is wrong here and what to do.
    detail: String,
    /// A short name of the reason that does not change from release to release.
    #[schema(example = "taken")]
    code: &'static str,
    /// Who holds the locks that were asked for, where that is the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    holders: Vec<Holder>,
}

impl Problem {
    pub(crate) fn new(kind: Kind, code: &'static str, detail: impl Into<String>) -> Self {
        let (detail, holders, caller) = (detail.into(), Vec::new(), None);
        Problem { kind, code, detail, holders, caller, is_counted: false }
    }

    /// The same, of a caller whose name is known.
    pub(super) fn of(self, caller: Option<&str>) -> Self {
        Problem { caller: caller.map(String::from), ..self }
    }

    /// The same, with who holds what was asked for.
    pub(super) fn with_holders(self, holders: Vec<Holder>) -> Self {
        Problem { holders, ..self }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Its body, as a value to which more can be added.
    pub(crate) fn body(&self) -> serde_json::Value {
        // Texts and numbers can always be written.
        serde_json::to_value(self.problem_body()).unwrap_or_default()
    }

    fn problem_body(&self) -> ProblemBody {
        let kind = self.kind;
        ProblemBody {
            r#type: format!("/problems/{}", kind.slug()),
            title: kind.title(),
            status: kind.status().as_u16(),
            detail: self.detail.clone(),
            code: self.code,
            holders: self.holders.clone(),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let problem = Problem::new(Kind::of(&refusal), refusal.code(), refusal.to_string());
        Problem { is_counted: true, ..problem }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = self.problem_body();
        let Problem { kind, code, detail, caller, is_counted, .. } = self;
        let is_denial = !is_counted && matches!(kind, Kind::Unauthenticated | Kind::Forbidden);
        let denial = is_denial.then_some(Denial { caller, why: detail });
        let mut response = (kind.status(), axum::Json(&body)).into_response();
        if !is_counted {
            response.extensions_mut().insert(Uncounted(code));
        }
        if let Some(denial) = denial {
            response.extensions_mut().insert(denial);
        }
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        match kind {
            Kind::Unauthenticated => {
                let challenge = HeaderValue::from_static("Bearer realm=\"catraca\"");
                headers.insert(WWW_AUTHENTICATE, challenge);
            }
            Kind::Unavailable | Kind::TooMany => {
                headers.insert(RETRY_AFTER, RETRY_SECONDS.into());
            }
            _ => {}
        }
        response
    }
}

/// Explains a kind of problem: its URI leads here.
pub(super) async fn explain(Part(slug): Part) -> Result<String, Problem> {
    let kind = Kind::ALL.into_iter().find(|kind| kind.slug() == slug);
    let kind = kind.ok_or_else(|| Problem::new(Kind::NotFound, "not-found", "no such problem"))?;
    Ok(format!("{} {}\n\n{}\n", kind.status().as_u16(), kind.title(), kind.remedy()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_has_a_uri_of_its_own_and_says_what_to_do() {
        let slugs: BTreeSet<&str> = Kind::ALL.iter().map(|kind| kind.slug()).collect();
        assert_eq!(slugs.len(), Kind::ALL.len());
        for kind in Kind::ALL {
            assert!(kind.status().is_client_error() || kind.status().is_server_error());
            assert!(kind.remedy().ends_with('.') && !kind.title().ends_with('.'));
        }
    }

    #[test]
    fn the_manual_lists_every_kind_of_problem() {
        let manual = include_str!("../../../../docs/HTTP.md");
        for kind in Kind::ALL {
            let row = format!("| `/problems/{}` | {} |", kind.slug(), kind.status().as_u16());
            assert!(manual.contains(&row), "{row}");
        }
    }
}
