//! Whether a node is alive, whether it grants locks, and what is counted: for whoever runs nodes.

use axum::extract::State;
use axum::http::HeaderName;
use axum::http::header::CONTENT_TYPE;
use catraca_group::Readiness;

use super::Api;
use super::caller::Caller;
use super::problem::{Kind, Problem, ProblemBody};
use super::status::readiness;
use crate::access::Role;

/// The media type of OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether the process is alive: it is, if it answers. Needs no token.
#[utoipa::path(
    get,
    path = "/healthz",
    responses((status = 200, description = "It is", body = String, content_type = "text/plain")),
)]
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// Whether the node grants locks. Needs no token.
#[utoipa::path(
    get,
    path = "/readyz",
    responses(
        (status = 200, description = "It does", body = String, content_type = "text/plain"),
        (status = 503, description = "It does not", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn ready(State(api): State<Api>) -> Result<&'static str, Problem> {
    let status = api.gateway.node_state();
    if status.readiness == Readiness::Ready && status.valid != Some(0) {
        return Ok("ready\n");
    }
    let (word, why, waits_for) = readiness(&status.readiness);
    let detail = match (why, status.readiness) {
        (_, Readiness::Ready) => "the lease of this node is over".to_string(),
        (Some(why), _) => format!("{word}: {why}"),
        (None, _) => format!("{word} for {}", waits_for.join(", ")),
    };
    Err(Problem::new(Kind::Unavailable, "not-ready", detail))
}

/// What is counted, for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, description = "In the form of OpenMetrics", body = String, content_type = "application/openmetrics-text")),
)]
pub(super) async fn metrics(
    State(api): State<Api>,
    caller: Caller,
) -> Result<([(HeaderName, &'static str); 1], String), Problem> {
    caller.may(Role::Observe, [])?;
    Ok(([(CONTENT_TYPE, OPEN_METRICS)], api.gateway.metrics_text()))
}
