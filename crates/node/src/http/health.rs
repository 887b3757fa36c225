//! Whether a node is alive and whether it grants locks, for whoever starts and stops nodes.

use axum::extract::State;
use catraca_group::Readiness;

use super::Api;
use super::problem::{Kind, Problem, ProblemBody};
use super::status::readiness;

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
    let status = api.gateway.status();
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
