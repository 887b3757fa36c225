//! How a node and its group are doing, as JSON.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use catraca_group::{LinkStatus, MemberStatus, PastView, Readiness, RegistryStatus, Status};
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::caller::Caller;
use super::problem::Problem;
use crate::access::Role;
use crate::observing::Look;

/// How a node is doing.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Status)]
pub(super) struct StatusBody {
    /// The group's name.
    group: String,
    /// The member's name.
    node: String,
    /// How long it has been running.
    millis: u64,
    /// The number of its view.
    epoch: u32,
    /// Whether it grants locks: `ready`, `joining`, `waiting`, `expelled` or `excluded`.
    readiness: &'static str,
    /// Why it does not.
    why: Option<String>,
    /// The members that it waits for.
    waits_for: Vec<String>,
    /// For how long it may go on to grant locks without hearing from the registry.
    valid_millis: Option<u64>,
    /// Every member, also those that are not in the view.
    members: Vec<Member>,
    /// Where the group keeps its registry, and how that is doing.
    registry: Option<Registry>,
    /// The last views that began here, the newest last.
    views: Vec<View>,
    /// What is counted, by name.
    counters: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Member {
    name: String,
    address: String,
    cluster: Option<String>,
    in_view: bool,
    /// How long ago it was heard to renew its lease.
    renewed_millis: Option<u64>,
    /// The link to it: `this node`, `connecting`, `up`, `down` or `refused`.
    link: &'static str,
    /// For how long the link has been so.
    millis: Option<u64>,
    /// Why the link is down.
    why: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Registry {
    place: String,
    leader: Option<String>,
    voters: Vec<String>,
    /// Voters that cannot be reached from here.
    missing: Vec<String>,
    trouble: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct View {
    epoch: u32,
    members: u32,
    cause: String,
    age_millis: u64,
    /// How long nothing was granted before it began.
    took_millis: u64,
}

impl From<Status> for StatusBody {
    fn from(status: Status) -> Self {
        let (readiness, why, waits_for) = readiness(&status.readiness);
        let counters = BTreeMap::from([
            ("locks", status.locks),
            ("held", status.held),
            ("waiting", status.waiting),
            ("sessions", status.sessions),
            ("grants", status.grants),
            ("handovers", status.handovers),
            ("messages", status.messages),
            ("arrived", status.arrived),
            ("anomalies", status.anomalies),
        ]);
        StatusBody {
            group: status.group,
            node: status.node,
            millis: status.millis,
            epoch: status.epoch,
            readiness,
            why,
            waits_for,
            valid_millis: status.valid,
            members: status.members.into_iter().map(member).collect(),
            registry: status.registry.map(registry),
            views: status.views.into_iter().map(view).collect(),
            counters,
        }
    }
}

/// How a node stands in its group: the data of an event `status` of `/v1/live`.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NodeStateBody {
    group: String,
    node: String,
    millis: u64,
    epoch: u32,
    readiness: &'static str,
    why: Option<String>,
    waits_for: Vec<String>,
    valid_millis: Option<u64>,
    /// How long a lease lasts.
    lease_millis: u64,
    members: Vec<Member>,
    registry: Option<Registry>,
    views: Vec<View>,
}

impl From<&Look> for NodeStateBody {
    fn from(look: &Look) -> Self {
        let node_state = look.node_state.clone();
        let (readiness, why, waits_for) = readiness(&node_state.readiness);
        NodeStateBody {
            group: node_state.group,
            node: node_state.node,
            millis: node_state.millis,
            epoch: node_state.epoch,
            readiness,
            why,
            waits_for,
            valid_millis: node_state.valid,
            lease_millis: look.lease.as_millis() as u64,
            members: node_state.members.into_iter().map(member).collect(),
            registry: node_state.registry.map(registry),
            views: node_state.views.into_iter().map(view).collect(),
        }
    }
}

/// A word, and why.
pub(super) fn readiness(readiness: &Readiness) -> (&'static str, Option<String>, Vec<String>) {
    match readiness {
        Readiness::Ready => ("ready", None, Vec::new()),
        Readiness::Joining(why) => ("joining", Some(why.clone()), Vec::new()),
        Readiness::Waiting(members) => ("waiting", None, members.clone()),
        Readiness::Expelled(why) => ("expelled", Some(why.clone()), Vec::new()),
        Readiness::Excluded(by) => {
            ("excluded", Some(format!("member '{by}' takes it for crashed")), Vec::new())
        }
    }
}

fn member(member: MemberStatus) -> Member {
    let (link, millis, why) = match member.link {
        LinkStatus::Itself => ("this node", None, None),
        LinkStatus::Connecting => ("connecting", None, None),
        LinkStatus::Up(millis) => ("up", Some(millis), None),
        LinkStatus::Down(millis, why) => ("down", Some(millis), Some(why)),
        LinkStatus::Refused(why) => ("refused", None, Some(why)),
    };
    let MemberStatus { name, address, cluster, is_in_view, renewed, .. } = member;
    Member {
        name,
        address,
        cluster,
        in_view: is_in_view,
        renewed_millis: renewed,
        link,
        millis,
        why,
    }
}

fn registry(registry: RegistryStatus) -> Registry {
    let RegistryStatus { place, leader, voters, missing, trouble } = registry;
    Registry { place, leader, voters, missing, trouble }
}

fn view(view: PastView) -> View {
    let PastView { epoch, members, cause, age, took } = view;
    View { epoch, members, cause, age_millis: age, took_millis: took }
}

/// How the node and its group are doing.
#[utoipa::path(
    get,
    path = "/v1/status",
    responses((status = 200, description = "How it is doing", body = StatusBody)),
)]
pub(super) async fn status(
    State(api): State<Api>,
    caller: Caller,
) -> Result<Json<StatusBody>, Problem> {
    caller.may(Role::Observe, [])?;
    Ok(Json(api.gateway.status().into()))
}
