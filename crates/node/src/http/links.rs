//! Which member of the group reaches which, as JSON.

use axum::Json;
use axum::extract::State;
use catraca_group::Links;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::caller::Caller;
use super::problem::Problem;
use crate::access::Role;
use crate::calendar::rfc3339;
use crate::changes::unix_millis;

/// Which member reaches which.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Links)]
pub(super) struct LinksBody {
    /// When the answers were put together, by the clock of the node that was asked.
    at: String,
    /// The number of the view.
    epoch: u32,
    /// The members of the view.
    members: Vec<String>,
    /// Members that did not answer: what they would have told is missing.
    silent: Vec<String>,
    /// What each of the others has told of each.
    links: Vec<LinkBody>,
}

/// What one member has told of another.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Link)]
struct LinkBody {
    /// Who tells it.
    from: String,
    to: String,
    /// Whether it reaches it.
    up: bool,
}

impl From<Links> for LinksBody {
    fn from(links: Links) -> Self {
        let Links { epoch, members, told, silent } = links;
        let name = |place: usize| members[place].clone();
        let of_member = |(from, reached): &(usize, Vec<bool>)| {
            let others = (0..).zip(reached).filter(|(to, _)| to != from);
            let link = |(to, &up): (usize, &bool)| LinkBody { from: name(*from), to: name(to), up };
            others.map(link).collect::<Vec<_>>()
        };
        LinksBody {
            at: rfc3339(unix_millis()),
            epoch: epoch.0,
            silent: silent.iter().map(|&place| name(place)).collect(),
            links: told.iter().flat_map(of_member).collect(),
            members,
        }
    }
}

/// Which member of the group reaches which, as each of them tells it when it is asked.
#[utoipa::path(
    get,
    path = "/v1/links",
    responses((status = 200, description = "What the members tell", body = LinksBody)),
)]
pub(super) async fn links(
    State(api): State<Api>,
    caller: Caller,
) -> Result<Json<LinksBody>, Problem> {
    caller.may(Role::Observe, [])?;
    Ok(Json(api.gateway.links().await?.into()))
}

#[cfg(test)]
mod tests {
    use catraca_group::Epoch;

    use super::*;

    #[test]
    fn what_a_member_tells_of_each_of_the_others_is_named() {
        let members = ["a", "b", "c"].map(String::from).to_vec();
        let told = vec![(0, vec![true, true, false]), (1, vec![false, true, true])];
        let body = LinksBody::from(Links { epoch: Epoch(3), members, told, silent: vec![2] });
        let seen: Vec<(&str, &str, bool)> =
            body.links.iter().map(|it| (it.from.as_str(), it.to.as_str(), it.up)).collect();
        assert_eq!(
            seen,
            [("a", "b", true), ("a", "c", false), ("b", "a", false), ("b", "c", true)]
        );
        assert_eq!(body.silent, ["c"]);
    }
}
