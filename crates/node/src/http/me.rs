//! Who somebody is in the eyes of a node.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use super::caller::Caller;
use super::problem::Problem;
use crate::access::Role;

/// Who asks, and what it may do.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Me {
    /// What the audit log calls it.
    name: String,
    /// Each role includes the ones before it: `observe`, `lock`, `administer`.
    #[schema(value_type = String, example = "observe")]
    role: Role,
    /// The patterns of the names that it may use; none of them means every name.
    names: Vec<String>,
    /// Whether it has shown a token.
    by_token: bool,
}

/// Who asks, and what it may do.
#[utoipa::path(
    get,
    path = "/v1/me",
    responses((status = 200, description = "Who the node takes the caller for", body = Me)),
)]
pub(super) async fn me(caller: Caller) -> Result<Json<Me>, Problem> {
    let (role, names) = caller.rights()?;
    let (name, by_token) = (caller.name().to_string(), caller.is_by_token());
    Ok(Json(Me { name, role, names, by_token }))
}
