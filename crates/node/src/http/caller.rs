//! Who sends a request, and what it may do.

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Api;
use super::problem::{Kind, Problem};

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Observe,
    Lock,
    Administer,
}

/// Who sends a request.
pub(super) struct Caller {
    /// What it is called; nothing if nobody has said who it is.
    pub(super) name: Option<String>,
}

impl FromRequestParts<Api> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Problem> {
        let _ = token(parts)?;
        Ok(Caller { name: None })
    }
}

impl Caller {
    /// Whether it may do this with locks of these names.
    pub(super) fn may<'a>(
        &self,
        _: Role,
        _: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Problem> {
        Ok(())
    }
}

/// The token of a request, if it has one: as a bearer's, or as the password of basic authentication, which is
/// all that the http backend of Terraform knows.
fn token(parts: &Parts) -> Result<Option<String>, Problem> {
    let mut given = parts.headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (given.next(), given.next()) else {
        return match parts.headers.contains_key(AUTHORIZATION) {
            true => Err(unreadable()),
            false => Ok(None),
        };
    };
    let (scheme, rest) =
        value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(unreadable)?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Ok(Some(rest.to_string()));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(unreadable());
    }
    let decoded = STANDARD.decode(rest).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let decoded = decoded.ok_or_else(unreadable)?;
    let (_, password) = decoded.split_once(':').ok_or_else(unreadable)?;
    Ok(Some(password.to_string()))
}

fn unreadable() -> Problem {
    let detail = "say who you are as 'Authorization: Bearer TOKEN'";
    Problem::new(Kind::Unauthenticated, "bad-authorization", detail)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn read(values: &[&str]) -> Result<Option<String>, Problem> {
        let mut request = Request::builder();
        for value in values {
            request = request.header(AUTHORIZATION, *value);
        }
        token(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn a_token_is_a_bearers_or_a_password() {
        assert_eq!(read(&[]).unwrap(), None);
        assert_eq!(read(&["Bearer abc"]).unwrap().as_deref(), Some("abc"));
        assert_eq!(read(&["bearer  abc "]).unwrap().as_deref(), Some("abc"));
        // "me:a:b"
        assert_eq!(read(&["Basic bWU6YTpi"]).unwrap().as_deref(), Some("a:b"));
        for bad in ["Bearer", "Digest x", "Basic !", "Basic bWU=", ""] {
            assert_eq!(read(&[bad]).unwrap_err().kind(), Kind::Unauthenticated, "{bad}");
        }
        assert_eq!(read(&["Bearer a", "Bearer b"]).unwrap_err().kind(), Kind::Unauthenticated);
    }
}
