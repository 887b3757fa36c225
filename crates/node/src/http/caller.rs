//! Who sends a request, and what it may do.

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Api;
use super::problem::{Kind, Problem};
use crate::access::{Denied, Identity, Origin, Role};

/// Who sends a request.
#[derive(Clone)]
pub(crate) struct Caller(Identity);

impl FromRequestParts<Api> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        let given = Credentials::of(parts)?;
        Caller::with(given.as_ref(), parts, api)
    }
}

impl Caller {
    /// Who sends a request with these credentials.
    pub(crate) fn with(
        given: Option<&Credentials>,
        parts: &Parts,
        api: &Api,
    ) -> Result<Self, Problem> {
        // Every connection has one.
        let origin = parts.extensions.get::<Origin>().unwrap_or(&Origin::Network);
        let token = given.map(|given| given.token.as_str());
        let identity = api.access.identify(token, origin)?;
        api.gateway.record_token_at_times(&identity, "HTTP");
        Ok(Caller(identity))
    }

    /// Whether it may do what takes `role` to locks of these names.
    pub(crate) fn may<'a>(
        &self,
        role: Role,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Problem> {
        Ok(self.0.may(role, names)?)
    }

    /// Whether it may do what takes `role` to all of these locks.
    pub(super) fn may_all(&self, role: Role, names: &[String]) -> Result<(), Problem> {
        self.may(role, names.iter().map(String::as_str))
    }

    /// Whether it may do what takes `role` to a lock of any name.
    pub(super) fn may_everywhere(&self, role: Role) -> bool {
        self.0.may_everywhere(role).is_ok()
    }

    /// The owner of a durable hold that it asks for or releases: whom it says, if it may, or itself.
    pub(super) fn owner(&self, said: Option<String>) -> Result<String, Problem> {
        let Some(owner) = said.or_else(|| self.0.proven_name().map(str::to_string)) else {
            let detail = "a durable hold needs an 'owner': whoever is to release it";
            return Err(Problem::new(Kind::BadRequest, "no-owner", detail));
        };
        self.0.may_own(&owner)?;
        Ok(owner)
    }

    /// What it is called, as the audit log shows it.
    pub(super) fn name(&self) -> &str {
        &self.0.name
    }

    /// What it may do, and the patterns of the names with which; none of them means every name.
    pub(super) fn rights(&self) -> Result<(Role, Vec<String>), Problem> {
        Ok(self.0.rights()?)
    }

    /// Whether it has shown a token.
    pub(super) fn is_by_token(&self) -> bool {
        self.0.is_by_token()
    }

    /// Its name, for whoever looks later at what it held; empty if it is nobody in particular.
    pub(super) fn known_name(&self) -> &str {
        self.0.known_name().unwrap_or_default()
    }

    /// Its name, if it has shown that it is its own.
    pub(crate) fn proven_name(&self) -> Option<&str> {
        self.0.proven_name()
    }

    /// Whether it is still what it was when it came: its token was not revoked.
    pub(crate) fn is_known(&self) -> bool {
        self.0.is_known()
    }

    /// Whether it may look at the lock `name`.
    pub(crate) fn sees(&self, name: &str) -> bool {
        self.0.sees(name)
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        let (kind, code) = match &denied {
            Denied::NoToken => (Kind::Unauthenticated, "no-token"),
            Denied::UnknownToken => (Kind::Unauthenticated, "unknown-token"),
            Denied::NoMember => (Kind::Forbidden, "no-member"),
            Denied::Role { .. } => (Kind::Forbidden, "wrong-role"),
            Denied::Names { .. } => (Kind::Forbidden, "wrong-names"),
            Denied::Owner { .. } => (Kind::Forbidden, "wrong-owner"),
            Denied::Id { .. } => (Kind::Forbidden, "wrong-id"),
            Denied::Group { .. } => (Kind::Forbidden, "wrong-names"),
        };
        Problem::new(kind, code, denied.to_string()).of(denied.who())
    }
}

/// What a request says of who sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// The name in basic authentication.
    pub(crate) user: Option<String>,
    /// A bearer's token, or the password of basic authentication, which is all that the http backend of
    /// Terraform and Git LFS know.
    pub(crate) token: String,
}

impl Credentials {
    /// What a request says, if it says something.
    pub(crate) fn of(parts: &Parts) -> Result<Option<Self>, Problem> {
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
            return Ok(Some(Credentials { user: None, token: rest.to_string() }));
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return Err(unreadable());
        }
        let decoded = STANDARD.decode(rest).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let decoded = decoded.ok_or_else(unreadable)?;
        let (user, password) = decoded.split_once(':').ok_or_else(unreadable)?;
        Ok(Some(Credentials { user: Some(user.to_string()), token: password.to_string() }))
    }
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
        let given = Credentials::of(&request.body(()).unwrap().into_parts().0)?;
        Ok(given.map(|given| given.token))
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
