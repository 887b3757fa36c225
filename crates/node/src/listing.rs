//! What a node says about itself and its locks.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::link::Health;
use crate::lock::{Owner, Set};
use crate::node::Running;
use crate::plan::Namespace;
use crate::protocol::{
    DetectorStatus, Line, LinkStatus, Listing, MemberStatus, NamespaceStatus, Status, Who,
};
use crate::session::Sessions;

/// A member that does not answer in this time is silent.
const PATIENCE: Duration = Duration::from_secs(2);

/// Who holds and who waits at this node.
pub(crate) fn here(running: &Running) -> Listing {
    let plan = &running.host.plan;
    let node = &plan.members[plan.me].name;
    let mut known: BTreeMap<Owner, Who> = BTreeMap::new();
    let mut lines = Vec::new();
    let mut line = |name: &str, permits, owner: Owner, place, fence, since: Option<Instant>| {
        let who = known.entry(owner).or_insert_with(|| who(&running.sessions, owner));
        let Who { label, pid, host } = who.clone();
        let millis = since.map_or(0, |since| since.elapsed().as_millis() as u64);
        let (name, node) = (name.to_string(), node.clone());
        lines.push(Line { name, permits, place, fence, node, label, pid, host, millis });
    };
    running.host.look(|shard| {
        for lock in shard.locks() {
            let names = |set: &Option<Box<Set>>| match set {
                Some(set) => set.names.to_vec(),
                None => vec![lock.name.clone()],
            };
            for hold in lock.holds() {
                for name in names(&hold.set) {
                    let (fence, since) = (Some(hold.fence.0), Some(hold.since));
                    line(&name, lock.permits, hold.owner, 0, fence, since);
                }
            }
            for (place, (_, waiter)) in (1..).zip(lock.waiters()) {
                for name in names(&waiter.set) {
                    line(&name, lock.permits, waiter.owner, place, None, waiter.since);
                }
            }
        }
    });
    lines.sort();
    Listing { lines, silent: Vec::new() }
}

fn who(sessions: &Sessions, owner: Owner) -> Who {
    match sessions.find(owner) {
        Some(session) => session.who.clone(),
        None => Who { label: "(node)".to_string(), pid: std::process::id(), host: String::new() },
    }
}

/// Who holds and who waits in the whole group.
pub(crate) async fn everywhere(running: &Running) -> Listing {
    let mut listing = here(running);
    let plan = &running.host.plan;
    let others = plan.members.iter().enumerate().filter(|(member, _)| *member != plan.me);
    let asked: Vec<_> = others
        .map(|(_, member)| {
            let (name, address) = (member.name.clone(), member.address.clone());
            tokio::spawn(async move {
                let answer = tokio::time::timeout(PATIENCE, async {
                    Client::connect(&address).await?.locks(false).await
                });
                (name, answer.await)
            })
        })
        .collect();
    for answer in asked {
        match answer.await {
            Ok((_, Ok(Ok(theirs)))) => listing.lines.extend(theirs.lines),
            Ok((name, _)) => listing.silent.push(name),
            Err(_) => {}
        }
    }
    listing.lines.sort();
    listing
}

/// How this node is doing.
pub(crate) fn status(running: &Running) -> Status {
    let host = &running.host;
    let plan = &host.plan;
    let (mut locks, mut held, mut waiting) = (0, 0, 0);
    let (mut grants, mut handovers, mut messages, mut arrived) = (0, 0, 0, 0);
    // Every namespace with its own algorithm, and with that of its semaphores if it has any.
    let own = |(index, namespace): (usize, &Namespace)| (index, namespace.algorithm.clone());
    let mut by_kind: BTreeMap<(usize, String), BTreeMap<&'static str, u64>> =
        plan.namespaces.iter().enumerate().map(|it| (own(it), BTreeMap::new())).collect();
    host.look(|shard| {
        locks += shard.locks().len() as u64;
        held += shard.locks().iter().map(|lock| lock.holds().count() as u64).sum::<u64>();
        waiting += shard.locks().iter().map(|lock| lock.waiters().count() as u64).sum::<u64>();
        grants += shard.counts.grants;
        handovers += shard.counts.handovers;
        messages += shard.counts.messages;
        arrived += shard.counts.arrived;
        for ((namespace, algorithm), counts) in shard.messages() {
            let sum = by_kind.entry((namespace, algorithm.to_string())).or_default();
            for (kind, count) in counts {
                *sum.entry(kind).or_default() += count;
            }
        }
    });
    let detector = host.detector.as_ref();
    let suspects = detector.map(|detector| detector.suspects()).unwrap_or_default();
    let member = |(index, member): (usize, &crate::Member)| MemberStatus {
        name: member.name.clone(),
        address: member.address.clone(),
        cluster: member.cluster.clone(),
        link: host.links.to(index).map_or(LinkStatus::Itself, |link| link_status(link.health())),
        suspected: suspects.get(&index).map(|&since| millis(since)),
    };
    let namespaces = by_kind.into_iter().map(|((namespace, algorithm), counts)| NamespaceStatus {
        pattern: plan.namespaces[namespace].pattern.clone(),
        semaphores: algorithm != plan.namespaces[namespace].algorithm,
        algorithm,
        messages: counts.into_iter().map(|(kind, count)| (kind.to_string(), count)).collect(),
    });
    Status {
        group: running.group.clone(),
        node: plan.members[plan.me].name.clone(),
        millis: running.started.elapsed().as_millis() as u64,
        members: plan.members.iter().enumerate().map(member).collect(),
        detector: detector.map(|detector| DetectorStatus {
            interval: detector.config.interval.as_millis() as u64,
            timeout: detector.config.timeout.as_millis() as u64,
            messages: detector.messages(),
            excluded_by: host.excluded_by().map(str::to_string),
        }),
        namespaces: namespaces.collect(),
        locks,
        held,
        waiting,
        sessions: running.sessions.count() as u64,
        grants,
        handovers,
        messages,
        arrived,
        anomalies: host.anomalies(),
    }
}

fn millis(since: Instant) -> u64 {
    since.elapsed().as_millis() as u64
}

fn link_status(health: Health) -> LinkStatus {
    match health {
        Health::Never => LinkStatus::Connecting,
        Health::Up(since) => LinkStatus::Up(millis(since)),
        Health::Down(since, why) => LinkStatus::Down(millis(since), why),
        Health::Refused(why) => LinkStatus::Refused(why),
    }
}
