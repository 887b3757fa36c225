//! The repositories in which something is locked.

use axum::Json as JsonAnswer;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Api;
use super::caller::Caller;
use super::input::Asked;
use super::problem::{Kind, Problem};
use crate::access::Role;
use crate::git::{MOST_REPOSITORIES, Repositories};

/// Which part of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RepositoriesQuery {
    /// Where to go on: what `next` of the part before said.
    #[param(max_length = 129)]
    after: Option<String>,
    /// How many at the most, from 1 to 1000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// The repositories in which files are locked, as far as the caller may know of them.
///
/// There are also those that the configuration names. Any other is there as soon as somebody locks a file in it.
#[utoipa::path(
    get,
    path = "/v1/git/repositories",
    params(RepositoriesQuery),
    responses((status = 200, description = "A part of the list", body = Repositories)),
)]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Asked(asked): Asked<RepositoriesQuery>,
) -> Result<JsonAnswer<Repositories>, Problem> {
    caller.may(Role::Observe, [])?;
    let limit = asked.limit.unwrap_or(MOST_REPOSITORIES);
    if !(1..=MOST_REPOSITORIES).contains(&limit) {
        let detail = format!("limit goes from 1 to {MOST_REPOSITORIES}, not {limit}");
        return Err(Problem::new(Kind::BadRequest, "bad-query", detail));
    }
    let listed = api.git.repositories(&caller, asked.after.as_deref(), limit).await?;
    Ok(JsonAnswer(listed))
}
