//! By which name of the host a request comes, and from where.
//!
//! A site can let its own name lead to this machine, and its pages could then use the lab as if they were of
//! it. So requests from this machine have to call it by a name that no site can have. And a page of a site
//! may not put questions that keep a processor busy.

use std::net::{IpAddr, SocketAddr};

use http::header::{CONTENT_TYPE, HOST};
use http::uri::Authority;
use http::{HeaderMap, Request, StatusCode};

/// Why a request is turned away.
pub(crate) type Denied = (StatusCode, String);

/// Whether a request may come by the name that it gives.
pub(crate) fn check_host<B>(request: &Request<B>, from: SocketAddr) -> Result<(), Denied> {
    let bad = |what: &str| (StatusCode::BAD_REQUEST, what.to_string());
    let mut lines = request.headers().get_all(HOST).iter();
    let first = lines.next().ok_or_else(|| bad("the header 'Host' is missing"))?;
    if lines.next().is_some() {
        return Err(bad("there is more than one header 'Host'"));
    }
    // A whole URI in the first line counts more than the header.
    let host = match request.uri().authority() {
        Some(authority) => authority.host().to_string(),
        None => {
            let text = first.to_str().ok().and_then(|text| text.parse::<Authority>().ok());
            text.ok_or_else(|| bad("the header 'Host' names no host"))?.host().to_string()
        }
    };
    if from.ip().to_canonical().is_loopback() && !is_own(&host) {
        let what = format!(
            "the lab on this machine is called as localhost or by its address, not '{host}'"
        );
        return Err((StatusCode::MISDIRECTED_REQUEST, what));
    }
    Ok(())
}

/// Whether no site can have this name.
fn is_own(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let name = host.to_ascii_lowercase();
    bare.parse::<IpAddr>().is_ok() || name == "localhost" || name.ends_with(".localhost")
}

/// Whether a question comes from the lab's own page, or from no page at all.
pub(crate) fn check_question(headers: &HeaderMap) -> Result<(), Denied> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if !matches!(text("sec-fetch-site"), None | Some("same-origin" | "none")) {
        let what = "only the lab's own page may ask".to_string();
        return Err((StatusCode::FORBIDDEN, what));
    }
    let kind = text(CONTENT_TYPE.as_str()).and_then(|kind| kind.split(';').next());
    if !kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        let what = "the question is not declared as JSON; send 'Content-Type: application/json'";
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, what.to_string()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(from: &str, hosts: &[&str]) -> Result<(), StatusCode> {
        let mut request = Request::builder().uri("/");
        for host in hosts {
            request = request.header(HOST, *host);
        }
        let from = SocketAddr::new(from.parse().unwrap(), 1);
        check_host(&request.body(()).unwrap(), from).map_err(|(status, _)| status)
    }

    #[test]
    fn a_site_that_leads_to_this_machine_is_not_served() {
        for own in ["127.0.0.1:7890", "[::1]:80", "localhost", "LocalHost:80", "lab.localhost"] {
            assert_eq!(checked("127.0.0.1", &[own]), Ok(()), "{own}");
        }
        for site in ["example.com", "localhost.example.com", "127.0.0.1.example.com:7890"] {
            for from in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
                assert_eq!(checked(from, &[site]), Err(StatusCode::MISDIRECTED_REQUEST), "{site}");
            }
            assert_eq!(checked("10.0.0.1", &[site]), Ok(()), "it has been admitted");
        }
    }

    #[test]
    fn there_is_exactly_one_host() {
        for hosts in [&[][..], &["localhost", "localhost"], &["a b"]] {
            assert_eq!(checked("127.0.0.1", hosts), Err(StatusCode::BAD_REQUEST), "{hosts:?}");
        }
    }

    #[test]
    fn the_page_of_a_site_may_not_ask() {
        let asked = |site: Option<&str>, kind: Option<&str>| {
            let mut headers = HeaderMap::new();
            for (name, value) in [("sec-fetch-site", site), ("content-type", kind)] {
                if let Some(value) = value {
                    headers.insert(name, value.parse().unwrap());
                }
            }
            check_question(&headers).map_err(|(status, _)| status)
        };
        let json = Some("application/json; charset=utf-8");
        assert_eq!(asked(Some("same-origin"), json), Ok(()));
        assert_eq!(asked(None, json), Ok(()), "curl is no page");
        for site in ["cross-site", "same-site"] {
            assert_eq!(asked(Some(site), json), Err(StatusCode::FORBIDDEN));
        }
        for kind in [None, Some("text/plain"), Some("application/jsonx")] {
            assert_eq!(asked(None, kind), Err(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
    }
}
