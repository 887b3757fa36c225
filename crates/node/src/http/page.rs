//! A page to try the interface: it lists what the document describes, and sends it.

use axum::Router;
use axum::http::HeaderName;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::Api;

const PAGE: &str = include_str!("page/page.html");
const SCRIPT: &str = include_str!("page/page.js");
const STYLE: &str = include_str!("page/page.css");

/// Nothing of other sites, and nothing that is written into the page itself, is run or shown; no other site can
/// put the page into a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/try", get(async || file("text/html; charset=utf-8", PAGE)))
        .route("/page.js", get(async || file("text/javascript; charset=utf-8", SCRIPT)))
        .route("/page.css", get(async || file("text/css; charset=utf-8", STYLE)))
}

fn file(media_type: &'static str, content: &'static str) -> Response {
    let headers: [(HeaderName, &str); 3] = [
        (CONTENT_TYPE, media_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
    ];
    (headers, content).into_response()
}
