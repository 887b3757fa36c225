//! What comes with a request: parts of its path, queries and bodies, with their limits.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::Api;
use super::problem::{Kind, Problem};
use crate::native::quota::{Bytes, MOST_UNFINISHED, Quota};

/// The longest body of JSON, in bytes: as many names as can be, and as long.
pub(crate) const LONGEST_BODY: usize = 256 << 10;
/// A body has come to its end after this time, or is not waited for.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(10);

/// A body of JSON. Whatever it says that is not known is refused.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Api> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Problem> {
        check_json(request.headers())?;
        let bytes = whole(request.into_body(), LONGEST_BODY, BODY_TIME, Some(&api.quota)).await?;
        read_json(&bytes).map(Json)
    }
}

/// A body of JSON that may be left out.
pub(super) async fn optional<T: DeserializeOwned + Default>(
    request: Request,
    api: &Api,
) -> Result<T, Problem> {
    let (parts, body) = request.into_parts();
    let bytes = whole(body, LONGEST_BODY, BODY_TIME, Some(&api.quota)).await?;
    if bytes.is_empty() {
        return Ok(T::default());
    }
    check_json(&parts.headers)?;
    read_json(&bytes)
}

pub(crate) fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let bad = |why: String| {
        Problem::new(Kind::BadRequest, "bad-body", format!("the body cannot be read: {why}"))
    };
    // Fields have names here: the reader would take them from a list too, by their order.
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(bad("it is no JSON object".to_string()));
    }
    serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))
}

/// Whether a body is said to be JSON. A page of another site can send a form or a text in the name of whoever
/// reads it, but not this.
pub(super) fn check_json(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = given.split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let detail = "send the body as 'Content-Type: application/json'";
    Err(Problem::new(Kind::NotJson, "not-json", detail))
}

/// The part of the path of a request that is not the same for all.
pub(super) struct Part(pub(super) String);

impl FromRequestParts<Api> for Part {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, api).await;
        path.map(|Path(part)| Part(part)).map_err(|error| {
            let detail = format!("the path cannot be read: {}", error.body_text());
            Problem::new(Kind::BadRequest, "bad-path", detail)
        })
    }
}

/// The query of a request. Whatever it says that is not known is refused.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Api> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Problem> {
        let query = Query::<T>::try_from_uri(&parts.uri);
        query.map(|Query(query)| Asked(query)).map_err(|error| {
            let reason = std::error::Error::source(&error).map(ToString::to_string);
            let reason = reason.unwrap_or_else(|| error.to_string());
            Problem::new(
                Kind::BadRequest,
                "bad-query",
                format!("the query cannot be read: {reason}"),
            )
        })
    }
}

/// The whole of a body of at most `most` bytes. What has come counts there as unfinished until then.
pub(crate) async fn whole(
    body: Body,
    most: usize,
    time: Duration,
    quota: Option<&Quota>,
) -> Result<Vec<u8>, Problem> {
    let too_large = || {
        let detail = format!("a body has at most {most} bytes here");
        Problem::new(Kind::TooLarge, "too-large", detail)
    };
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let read = read(body, most, quota, too_large);
    timeout(time, read).await.unwrap_or_else(|_| {
        let detail = format!("the body had not come after {time:?}");
        Err(Problem::new(Kind::SlowBody, "slow-body", detail))
    })
}

async fn read(
    mut body: Body,
    most: usize,
    quota: Option<&Quota>,
    too_large: impl Fn() -> Problem,
) -> Result<Vec<u8>, Problem> {
    let mut unfinished = quota.map(Quota::unfinished);
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Problem::new(Kind::BadRequest, "bad-body", format!("the body is cut off: {error}"))
        })?;
        // Trailers say nothing that is needed.
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > most {
            return Err(too_large());
        }
        whole.extend_from_slice(&data);
        let fits = |unfinished: &mut Bytes<'_>| unfinished.set(whole.len(), MOST_UNFINISHED);
        if !unfinished.as_mut().is_none_or(fits) {
            let detail = "too many bodies have not come to their end; try again later";
            return Err(Problem::new(Kind::Unavailable, "busy", detail));
        }
    }
    Ok(whole)
}
