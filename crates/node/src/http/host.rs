//! By which name of the host a request comes.
//!
//! A site can let its own name lead to this machine, and its pages can then read what a node says here to
//! whoever has no token, as if it came from the site. So requests from this machine that bring no token
//! have to call it by a name that no site can have. Where everybody has to show who it is, a page has nothing to
//! show, and a proxy on this machine may pass the name on by which it was called.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::Version;
use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::uri::Authority;

use super::problem::{Kind, Problem};
use crate::access::Origin;

/// Whether a request may come by the name that it gives, to a node that wants everybody to show who it is or not.
pub(super) fn check<B>(request: &Request<B>, wants_proof: bool) -> Result<(), Problem> {
    let host = named(request)?;
    let headers = request.headers();
    let is_local = request.extensions().get::<Origin>() == Some(&Origin::Loopback);
    let is_believed = is_local && !wants_proof && !headers.contains_key(AUTHORIZATION);
    match host {
        Some(host) if is_believed && !is_own(&host) => {
            let detail = format!(
                "without a token, a node on this machine is called as localhost or by its address, not '{host}'"
            );
            Err(Problem::new(Kind::WrongHost, "wrong-host", detail))
        }
        _ => Ok(()),
    }
}

/// The name of the host that a request gives.
fn named<B>(request: &Request<B>) -> Result<Option<String>, Problem> {
    let bad = |detail: &str| Problem::new(Kind::BadRequest, "bad-host", detail);
    let mut lines = request.headers().get_all(HOST).iter();
    let (first, second) = (lines.next(), lines.next());
    if second.is_some() {
        return Err(bad("there is more than one header 'Host'"));
    }
    let given = match first.map(|value| value.to_str()) {
        Some(Ok(text)) => Some(text),
        Some(Err(_)) => return Err(bad("the header 'Host' cannot be read")),
        None if request.version() >= Version::HTTP_11 => {
            return Err(bad("HTTP/1.1 needs a header 'Host'"));
        }
        None => None,
    };
    // A whole URI in the first line counts more than the header.
    if let Some(authority) = request.uri().authority() {
        return Ok(Some(authority.host().to_string()));
    }
    let Some(given) = given.filter(|text| !text.is_empty()) else { return Ok(None) };
    let authority: Authority = given.parse().map_err(|_| bad("the header 'Host' names no host"))?;
    Ok(Some(authority.host().to_string()))
}

/// Whether no site can have this name.
fn is_own(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let name = host.to_ascii_lowercase();
    bare.parse::<IpAddr>().is_ok() || name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(ip: &str, hosts: &[&str], token: bool) -> Result<(), Kind> {
        checked_by(false, ip, hosts, token)
    }

    fn checked_by(wants_proof: bool, ip: &str, hosts: &[&str], token: bool) -> Result<(), Kind> {
        let mut request = Request::builder().uri("/v1/locks");
        for host in hosts {
            request = request.header(HOST, *host);
        }
        if token {
            request = request.header(AUTHORIZATION, "Bearer x");
        }
        let request = request.extension(Origin::of(ip.parse().unwrap())).body(()).unwrap();
        check(&request, wants_proof).map_err(|problem| problem.kind())
    }

    #[test]
    fn a_site_that_leads_to_this_machine_is_not_served() {
        for own in ["127.0.0.1:8080", "[::1]:8080", "localhost", "LocalHost:80", "a.localhost"] {
            assert_eq!(checked("127.0.0.1", &[own], false), Ok(()), "{own}");
        }
        for site in ["example.com", "localhost.example.com:8080", "127.0.0.1.example.com"] {
            assert_eq!(checked("127.0.0.1", &[site], false), Err(Kind::WrongHost), "{site}");
            assert_eq!(checked("::1", &[site], true), Ok(()), "who has a token is no stranger");
            assert_eq!(checked("10.0.0.1", &[site], false), Ok(()), "it has been admitted");
        }
    }

    #[test]
    fn where_everybody_shows_who_it_is_the_name_does_not_matter() {
        for token in [false, true] {
            assert_eq!(checked_by(true, "127.0.0.1", &["locks.example"], token), Ok(()));
            let two = ["locks.example", "localhost"];
            assert_eq!(checked_by(true, "127.0.0.1", &two, token), Err(Kind::BadRequest));
        }
    }

    #[test]
    fn there_is_exactly_one_host() {
        for hosts in [&[][..], &["a", "b"], &["a b"], &["localhost", "localhost"]] {
            assert_eq!(checked("10.0.0.1", hosts, false), Err(Kind::BadRequest), "{hosts:?}");
        }
    }
}
