//! The dashboard: a page that shows the group live, in the browser.
//!
//! Its files are in `dashboard/`, as they are served; nothing is built. They are part of the binary, so a
//! browser asks at every use whether they have changed, by their hash.

use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest as _, Sha256};

use super::Api;
use super::input::Part;
use super::problem::{Kind, Problem};

/// Nothing of other sites, and nothing that is written into the page itself, is run or shown; no text becomes
/// part of the page as HTML; no other site can put the page into a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";
const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

/// The page itself.
const PAGE: &str = include_str!("dashboard/index.html");

/// A file below `/assets/`: its name, its media type, its content.
type Asset = (&'static str, &'static str, &'static str);

const ASSETS: &[Asset] = &[
    ("dashboard.css", STYLE, include_str!("dashboard/dashboard.css")),
    ("icon.svg", PICTURE, include_str!("dashboard/icon.svg")),
    ("anatomy.css", STYLE, include_str!("dashboard/anatomy.css")),
    ("git.css", STYLE, include_str!("dashboard/git.css")),
    ("age.js", SCRIPT, include_str!("dashboard/age.js")),
    ("anatomy.js", SCRIPT, include_str!("dashboard/anatomy.js")),
    ("api.js", SCRIPT, include_str!("dashboard/api.js")),
    ("app.js", SCRIPT, include_str!("dashboard/app.js")),
    ("charts.js", SCRIPT, include_str!("dashboard/charts.js")),
    ("confirm.js", SCRIPT, include_str!("dashboard/confirm.js")),
    ("dom.js", SCRIPT, include_str!("dashboard/dom.js")),
    ("durations.js", SCRIPT, include_str!("dashboard/durations.js")),
    ("force.js", SCRIPT, include_str!("dashboard/force.js")),
    ("git.js", SCRIPT, include_str!("dashboard/git.js")),
    ("live.js", SCRIPT, include_str!("dashboard/live.js")),
    ("lock.js", SCRIPT, include_str!("dashboard/lock.js")),
    ("locks.js", SCRIPT, include_str!("dashboard/locks.js")),
    ("members.js", SCRIPT, include_str!("dashboard/members.js")),
    ("model.js", SCRIPT, include_str!("dashboard/model.js")),
    ("overview.js", SCRIPT, include_str!("dashboard/overview.js")),
    ("pointers.js", SCRIPT, include_str!("dashboard/pointers.js")),
    ("repository.js", SCRIPT, include_str!("dashboard/repository.js")),
    ("strip.js", SCRIPT, include_str!("dashboard/strip.js")),
    ("times.js", SCRIPT, include_str!("dashboard/times.js")),
    ("token.js", SCRIPT, include_str!("dashboard/token.js")),
];

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/", get(async |headers: HeaderMap| file(&headers, HTML, PAGE)))
        .route("/assets/{name}", get(asset))
}

async fn asset(Part(name): Part, headers: HeaderMap) -> Result<Response, Problem> {
    let found = ASSETS.iter().find(|(its, ..)| *its == name);
    let (_, media_type, content) = found.ok_or_else(|| {
        Problem::new(Kind::NotFound, "no-such-path", "the dashboard has no such file")
    })?;
    Ok(file(&headers, media_type, content))
}

/// A file, or that the browser has it already.
fn file(headers: &HeaderMap, media_type: &'static str, content: &'static str) -> Response {
    let tag = tag(content);
    let is_known = headers.get_all(IF_NONE_MATCH).iter().any(|value| {
        let known = value.to_str().unwrap_or_default();
        known.split(',').any(|it| [tag.as_str(), "*"].contains(&it.trim().trim_start_matches("W/")))
    });
    let about: [(HeaderName, &str); 4] = [
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (ETAG, &tag),
    ];
    match is_known {
        true => (StatusCode::NOT_MODIFIED, about).into_response(),
        false => (about, [(CONTENT_TYPE, media_type)], content).into_response(),
    }
}

/// What tells one content from another.
fn tag(content: &str) -> String {
    let digest = Sha256::digest(content.as_bytes());
    let half = digest.iter().take(16);
    format!("\"{}\"", half.map(|byte| format!("{byte:02x}")).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(if_none_match: Option<&str>) -> Response {
        let mut headers = HeaderMap::new();
        if let Some(tags) = if_none_match {
            headers.insert(IF_NONE_MATCH, tags.parse().unwrap());
        }
        file(&headers, HTML, PAGE)
    }

    #[test]
    fn a_browser_that_has_a_file_is_not_sent_it_again() {
        let first = asked(None);
        assert_eq!(first.status(), StatusCode::OK);
        let tag = first.headers()[ETAG].to_str().unwrap().to_string();
        for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_string()] {
            let second = asked(Some(&known));
            assert_eq!(second.status(), StatusCode::NOT_MODIFIED, "{known}");
            assert_eq!(second.headers()[ETAG], tag.as_str());
            assert!(second.headers().contains_key(CONTENT_SECURITY_POLICY));
        }
        assert_eq!(asked(Some("\"other\"")).status(), StatusCode::OK);
    }

    #[test]
    fn every_file_that_a_file_names_is_served() {
        let all = ASSETS.iter().map(|(name, _, content)| (*name, *content));
        for (name, content) in all.chain([("/", PAGE)]) {
            for part in content.split('"').filter(|part| !part.contains(char::is_whitespace)) {
                let asset = part
                    .strip_prefix("/assets/")
                    .or_else(|| part.strip_prefix("./").filter(|part| part.ends_with(".js")));
                let Some(asset) = asset.map(|it| it.split('#').next().unwrap_or(it)) else {
                    continue;
                };
                assert!(ASSETS.iter().any(|(its, ..)| *its == asset), "{name} names {asset}");
            }
        }
    }

    #[test]
    fn no_file_asks_another_site_or_writes_html() {
        let namespace = "http://www.w3.org/2000/svg";
        for (name, _, content) in ASSETS.iter().chain([&("/", HTML, PAGE)]) {
            let content = content.replace(namespace, "");
            for forbidden in
                ["http://", "https://", "innerHTML", "outerHTML", "eval(", "document.write"]
            {
                assert!(!content.contains(forbidden), "{name} has {forbidden}");
            }
        }
    }
}
