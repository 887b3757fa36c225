//! One lock: what its algorithm knows at every member, who holds it, who waits, what was granted last.
//!
//! `nodes.rs` calls the nodes of an instance by their members, `arrows.rs` says which of them point to which.

mod arrows;
mod nodes;

use axum::Json as JsonAnswer;
use axum::extract::State;
use catraca_algorithms::registry::{self, Family};
use catraca_core::NodeId;
use catraca_group::{Ending, Layout, PastGrant, Picture};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use self::arrows::{Arrow, arrows};
use self::nodes::{Names, Node};
use super::Api;
use super::caller::Caller;
use super::input::Asked;
use super::locks::{Holder, Waiter, holder, named, waiter};
use super::problem::Problem;
use crate::access::Role;
use crate::calendar::rfc3339;
use crate::changes::unix_millis;

/// So many grants of the whole group are told.
const MOST_GRANTS: usize = 128;

/// Which lock.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AnatomyQuery {
    /// Its name.
    #[param(min_length = 1, max_length = 255)]
    name: String,
}

/// What there is to see of a lock.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Anatomy {
    /// The lock.
    name: String,
    /// When the answers were put together, by the clock of the node that was asked.
    at: String,
    /// The number of the view.
    epoch: u32,
    /// The members of the view.
    members: Vec<String>,
    /// Members that did not answer.
    silent: Vec<String>,
    /// Whether some member has heard of the lock in this view.
    known: bool,
    /// What to keep in mind when one reads this.
    remarks: Vec<String>,
    /// What guards the lock, one for each number of permits in use; at least one.
    instances: Vec<Instance>,
}

/// An instance of an algorithm, over the whole group.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LockInstance)]
struct Instance {
    /// What it guards: the lock, or a pattern whose names are taken in sets.
    guards: String,
    /// How many may be inside.
    permits: u32,
    /// The name of the algorithm.
    algorithm: String,
    /// Its authors and its year.
    title: &'static str,
    /// How it decides: `token`, `permission`, `quorum` or `central`.
    family: String,
    /// The member where the instance begins: its node is number 0.
    home: String,
    /// How many nodes each member has.
    seats: u32,
    /// Where the token is; two members may tell of different moments. Nothing of an algorithm without one.
    token: Option<Vec<String>>,
    /// Every member, with its nodes.
    members: Vec<Part>,
    /// Which node points to which, and why.
    arrows: Vec<Arrow>,
    /// Whom each node asks, of an algorithm with quorums.
    quorums: Option<Vec<Quorum>>,
    /// Who is inside, as far as it fits.
    holders: Vec<Holder>,
    /// How many are inside.
    held: u32,
    /// Who waits, first those at the first member; of very many only the first.
    queue: Vec<Waiter>,
    /// How many wait.
    waiting: u32,
    /// The last grants that the members remember, the newest last.
    grants: Vec<Grant>,
}

/// A member, as it told of itself.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LockMember)]
struct Part {
    member: String,
    /// Whether it has answered.
    answered: bool,
    /// Whether it has heard of the lock.
    known: bool,
    /// How many of its clients are inside.
    held: u32,
    /// How many of them wait.
    waiting: u32,
    /// Its nodes, those first that have something to do.
    nodes: Vec<Node>,
    /// How many more it has.
    more_nodes: u32,
}

/// The nodes that a node asks.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LockQuorum)]
struct Quorum {
    node: String,
    members: Vec<String>,
}

/// A grant that is not long ago.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LockGrant)]
struct Grant {
    /// Its number.
    fence: String,
    /// The member at which it was.
    member: String,
    /// When, by the clock of the node that was asked.
    at: String,
    /// How long the client had waited; nothing if it did not have to.
    waited_ms: Option<u64>,
    /// How long it was held; nothing if it still is, or if nobody looked at the clock.
    held_ms: Option<u64>,
    /// `held`, `released`, `lost`, `forced` or `moved`; nothing if that is not known any more.
    state: Option<&'static str>,
}

/// One lock: what its algorithm knows at every member, who holds it, who waits, what was granted last.
///
/// Each member tells how it stood when it was asked: two of them may tell of different moments. Lists are
/// bounded; the counts beside them are not.
#[utoipa::path(
    get,
    path = "/v1/anatomy",
    params(AnatomyQuery),
    responses((status = 200, description = "What there is to see", body = Anatomy)),
)]
pub(super) async fn look(
    State(api): State<Api>,
    caller: Caller,
    Asked(asked): Asked<AnatomyQuery>,
) -> Result<JsonAnswer<Anatomy>, Problem> {
    let name = named(&asked.name)?;
    caller.may(Role::Observe, [name])?;
    let picture = api.gateway.picture(name).await?;
    Ok(JsonAnswer(anatomy(&picture, unix_millis())))
}

fn anatomy(picture: &Picture, now: u64) -> Anatomy {
    let name_of = |member: &usize| picture.members[*member].clone();
    let known = picture.told.iter().any(|(_, told)| !told.instances.is_empty());
    let instances: Vec<Instance> =
        picture.layouts.iter().map(|layout| instance(picture, layout, now)).collect();
    Anatomy {
        name: picture.name.clone(),
        at: rfc3339(now),
        epoch: picture.epoch.0,
        members: picture.members.clone(),
        silent: picture.silent.iter().map(name_of).collect(),
        known,
        remarks: remarks(known, picture, &instances),
        instances,
    }
}

/// What whoever reads it could take for something else.
fn remarks(known: bool, picture: &Picture, instances: &[Instance]) -> Vec<String> {
    let mut remarks = Vec::new();
    if !known {
        remarks.push(
            "no member that answered has heard of this lock in the present view: nobody has asked for it since the \
             view began, or its name is another one"
                .to_string(),
        );
    }
    for instance in instances.iter().filter(|_| known) {
        match instance.token.as_deref() {
            Some([]) if picture.silent.is_empty() => {
                remarks.push("no member has the token: it is on its way".to_string());
            }
            Some([]) => remarks.push(
                "no member that answered has the token: it is on its way, or at one that did not answer"
                    .to_string(),
            ),
            Some([_]) | None => {}
            Some(_) => remarks.push(
                "several members tell of the token: it has moved while they were asked".to_string(),
            ),
        }
    }
    remarks
}

fn instance(picture: &Picture, layout: &Layout, now: u64) -> Instance {
    let names = Names { picture, layout };
    let of_layout =
        |it: &&catraca_group::Instance| it.name == layout.name && it.permits == layout.permits;
    let told: Vec<_> = picture
        .told
        .iter()
        .map(|(member, told)| (*member, told.instances.iter().find(of_layout)))
        .collect();
    let nodes = || told.iter().flat_map(|(_, it)| it.iter().flat_map(|it| &it.nodes));
    let entry = registry::entry(&layout.algorithm);
    let is_token = entry.is_some_and(|entry| entry.family == Family::Token);
    let has_token = || nodes().filter(|node| node.token == Some(true));
    let lines = || {
        let all = picture.told.iter().flat_map(|(_, told)| &told.page.lines);
        all.filter(|line| line.key.permits == layout.permits).cloned()
    };
    let holders: Vec<Holder> = lines().filter(|line| line.key.place == 0).map(holder).collect();
    let part = |member: usize| {
        let its = told.iter().find(|(it, _)| *it == member);
        part(&names, member, its.is_some(), its.and_then(|(_, it)| *it))
    };
    let counted = |count: fn(&catraca_group::Instance) -> u32| {
        told.iter().filter_map(|(_, it)| *it).map(count).fold(0, u32::saturating_add)
    };
    let quorum = |(node, members): (usize, &Vec<NodeId>)| Quorum {
        node: names.of(NodeId(node as u32)),
        members: members.iter().map(|&node| names.of(node)).collect(),
    };
    Instance {
        guards: layout.name.clone(),
        permits: layout.permits,
        algorithm: layout.algorithm.clone(),
        title: entry.map_or("", |entry| entry.title),
        family: entry.map_or(String::new(), |entry| entry.family.to_string()),
        home: picture.members[layout.home()].clone(),
        seats: layout.seats(),
        token: is_token.then(|| has_token().map(|node| names.of(node.node)).collect()),
        members: (0..picture.members.len()).map(part).collect(),
        arrows: arrows(&names, nodes()),
        quorums: layout.quorums.as_ref().map(|all| all.iter().enumerate().map(quorum).collect()),
        grants: grants(picture, &told, &holders, now),
        holders,
        held: counted(|it| it.held),
        queue: lines().filter(|line| line.key.place > 0).map(waiter).collect(),
        waiting: counted(|it| it.waiting),
    }
}

fn part(
    names: &Names<'_>,
    member: usize,
    answered: bool,
    told: Option<&catraca_group::Instance>,
) -> Part {
    Part {
        member: names.picture.members[member].clone(),
        answered,
        known: told.is_some(),
        held: told.map_or(0, |it| it.held),
        waiting: told.map_or(0, |it| it.waiting),
        nodes: told.map_or(Vec::new(), |it| it.nodes.iter().map(|it| names.node(it)).collect()),
        more_nodes: told.map_or(0, |it| it.more_nodes),
    }
}

/// The grants of all members, by their fences.
fn grants(
    picture: &Picture,
    told: &[(usize, Option<&catraca_group::Instance>)],
    holders: &[Holder],
    now: u64,
) -> Vec<Grant> {
    let all = told.iter().flat_map(|&(member, it)| {
        it.into_iter().flat_map(move |it| it.grants.iter().map(move |grant| (member, grant)))
    });
    let mut all: Vec<(usize, &PastGrant)> = all.collect();
    all.sort_unstable_by_key(|(member, grant)| (grant.fence, *member));
    let newest = all.len().saturating_sub(MOST_GRANTS);
    let grant = |&(member, grant): &(usize, &PastGrant)| {
        let (member, fence) = (picture.members[member].clone(), grant.fence.to_string());
        let is_held = holders.iter().any(|it| it.is(&member, &fence));
        let ended = grant.ending.map(|ending| match ending {
            Ending::Released => "released",
            Ending::Lost => "lost",
            Ending::Forced => "forced",
            Ending::Moved => "moved",
        });
        Grant {
            fence,
            member,
            at: rfc3339(now.saturating_sub(grant.age_millis)),
            waited_ms: grant.waited_millis,
            held_ms: grant.held_millis,
            state: ended.or(is_held.then_some("held")),
        }
    };
    all[newest..].iter().map(grant).collect()
}

#[cfg(test)]
mod tests;
