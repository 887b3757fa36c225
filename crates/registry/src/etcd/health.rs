//! How etcd is doing, as far as it can be told from here.
//!
//! Operators ask at any time and do not wait: they get what the last look brought. There is a look every
//! few seconds, and at once when transactions begin to fail or succeed again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::timeout;

use super::cluster::{Cluster, Experience, patience};
use super::fault::Fault;
use super::link::{Link, address, method};
use super::wire::{Empty, Member, MembersResponse, RangeRequest, RangeResponse, StatusResponse};
use crate::Health;

const LOOK_EVERY: Duration = Duration::from_secs(15);
const LOOK_EVERY_IN_TROUBLE: Duration = Duration::from_secs(3);
/// An etcd that remembers so many revisions is not compacted, or far too rarely: the beats of three
/// members make as many in a week.
const TOO_MANY_REVISIONS: i64 = 1_000_000;

/// What the last look brought.
#[derive(Default)]
pub(super) struct Look(Mutex<Health>);

impl Look {
    pub(super) fn last(&self, cluster: &Cluster) -> Health {
        let mut health = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        health.place = place(cluster);
        let experience = cluster.experience();
        health.trouble = join([experience.trouble, health.trouble]);
        health
    }

    fn replace(&self, health: Health) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = health;
    }
}

/// Looks again and again.
pub(super) async fn keep_looking(cluster: Arc<Cluster>, look: Arc<Look>) {
    loop {
        let health = look_at(&cluster).await;
        let pause = if health.trouble.is_some() { LOOK_EVERY_IN_TROUBLE } else { LOOK_EVERY };
        look.replace(health);
        // It is time for the next look, whichever of both it was.
        let _ = timeout(pause, cluster.turned.notified()).await;
    }
}

/// What one member says.
struct Report {
    endpoint: String,
    /// Of itself, if it answers.
    status: Result<StatusResponse, Fault>,
    /// Whom it knows.
    members: Vec<Member>,
}

async fn look_at(cluster: &Cluster) -> Health {
    let mut reports = Vec::new();
    for endpoint in &cluster.options.endpoints {
        reports.push(ask(cluster, endpoint).await);
    }
    let keeps_too_much = match cluster.link_at_hand() {
        Some(link) => keeps_too_much(cluster, &link).await,
        None => false,
    };
    describe(&reports, &cluster.experience(), keeps_too_much)
}

/// Each member is asked on a connection of its own: transactions use one member only.
async fn ask(cluster: &Cluster, endpoint: &(String, u16)) -> Report {
    let until = patience(cluster);
    let address = address(endpoint);
    let link = match Link::open(endpoint, cluster.tls.as_ref(), until).await {
        Ok(link) => link.with_token_of(cluster.link_at_hand().as_deref()),
        Err(fault) => return Report { endpoint: address, status: Err(fault), members: Vec::new() },
    };
    let status = link.call(method::STATUS, Empty {}, until).await;
    let known: Result<MembersResponse, Fault> = link.call(method::MEMBERS, Empty {}, until).await;
    let members = known.map(|known| known.members).unwrap_or_default();
    Report { endpoint: address, status, members }
}

/// Whether a revision of long ago can still be read.
async fn keeps_too_much(cluster: &Cluster, link: &Link) -> bool {
    let revision = cluster.experience().revision - TOO_MANY_REVISIONS;
    if revision <= 0 {
        return false;
    }
    let (key, range_end) = (cluster.prefix.key(""), cluster.prefix.end());
    let range = RangeRequest {
        key,
        range_end,
        limit: 1,
        revision,
        keys_only: true,
        ..RangeRequest::default()
    };
    let answer: Result<RangeResponse, Fault> =
        link.call(method::RANGE, range, patience(cluster)).await;
    answer.is_ok()
}

fn describe(reports: &[Report], experience: &Experience, keeps_too_much: bool) -> Health {
    let members = reports.iter().map(|report| report.members.as_slice());
    let members = members.max_by_key(|members| members.len()).unwrap_or_default();
    let name = |id: u64| match members.iter().find(|member| member.id == id) {
        Some(member) if !member.name.is_empty() => member.name.clone(),
        _ => format!("{id:x}"),
    };
    // By the address that it gives to clients; that need not be the one that is used here.
    let whose = |report: &Report| {
        let url = format!("//{}", report.endpoint);
        let is_its = |member: &&Member| member.client_urls.iter().any(|its| its.ends_with(&url));
        members.iter().find(is_its).map_or(report.endpoint.clone(), |member| name(member.id))
    };
    let answered: Vec<&StatusResponse> =
        reports.iter().filter_map(|report| report.status.as_ref().ok()).collect();
    let leader = answered.iter().map(|status| status.leader).find(|leader| *leader != 0);
    let mut trouble: Vec<String> = Vec::new();
    for status in &answered {
        trouble.extend(status.errors.iter().map(|error| alarm(error)));
    }
    trouble.sort();
    trouble.dedup();
    if answered.is_empty() {
        trouble.push("no member of etcd answers".to_string());
    } else if leader.is_none() {
        trouble.push("etcd has no leader: a majority of its members has to run".to_string());
    }
    if experience.is_open {
        trouble.push("etcd lets everybody in: 'etcdctl auth enable' makes it ask".to_string());
    }
    if keeps_too_much {
        trouble.push(format!(
            "etcd remembers more than {TOO_MANY_REVISIONS} revisions, and every beat adds one: start \
             it with '--auto-compaction-retention=1h'"
        ));
    }
    let is_silent = |report: &&Report| report.status.is_err();
    Health {
        place: String::new(),
        leader: leader.map(name),
        voters: members.iter().filter(|m| !m.is_learner).map(|m| name(m.id)).collect(),
        missing: reports.iter().filter(is_silent).map(whose).collect(),
        trouble: (!trouble.is_empty()).then(|| trouble.join("; ")),
    }
}

/// What an alarm means, and what to do.
fn alarm(said: &str) -> String {
    if said.contains("NOSPACE") {
        return "etcd is full and takes no writes (NOSPACE): compact it, then 'etcdctl defrag' and \
                'etcdctl alarm disarm'; '--auto-compaction-retention=1h' keeps it small"
            .to_string();
    }
    if said.contains("CORRUPT") {
        return "etcd says that a member's data is corrupt (CORRUPT): replace that member"
            .to_string();
    }
    said.to_string()
}

fn place(cluster: &Cluster) -> String {
    let endpoints: Vec<String> = cluster.options.endpoints.iter().map(address).collect();
    format!("etcd at {}", endpoints.join(", "))
}

fn join(parts: [Option<String>; 2]) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(leader: u64, errors: &[&str]) -> Report {
        let errors = errors.iter().map(ToString::to_string).collect();
        let status = Ok(StatusResponse { leader, errors, ..StatusResponse::default() });
        Report { endpoint: "a:1".to_string(), status, members: Vec::new() }
    }

    fn silent(endpoint: &str) -> Report {
        let status = Err(Fault::NotDone(String::new()));
        Report { endpoint: endpoint.to_string(), status, members: Vec::new() }
    }

    fn well() -> Experience {
        Experience { trouble: None, is_open: false, revision: 1 }
    }

    #[test]
    fn members_have_their_names_and_learners_do_not_vote() {
        let member = |id, name: &str, is_learner| {
            let client_urls = vec![format!("http://host{id}:2379")];
            Member { id, name: name.to_string(), client_urls, is_learner }
        };
        let members =
            vec![member(7, "seven", false), member(8, "", false), member(9, "nine", true)];
        let reports =
            [silent("elsewhere:1"), silent("host8:2379"), Report { members, ..report(7, &[]) }];
        let health = describe(&reports, &well(), false);
        assert_eq!(health.leader.as_deref(), Some("seven"));
        assert_eq!(health.voters, ["seven", "8"]);
        assert_eq!(
            (health.missing, health.trouble),
            (vec!["elsewhere:1".into(), "8".into()], None)
        );
    }

    #[test]
    fn each_trouble_is_told_once_with_what_to_do() {
        let alarm = "memberID:1 alarm:NOSPACE ";
        let reports = [report(7, &[alarm]), report(7, &[alarm])];
        let full = describe(&reports, &well(), true).trouble.unwrap();
        assert_eq!(full.matches("NOSPACE").count(), 1);
        assert!(full.contains("defrag") && full.contains("every beat adds one"), "{full}");
        let open = Experience { is_open: true, ..well() };
        let open = describe(&[report(0, &[])], &open, false).trouble.unwrap();
        assert!(open.contains("no leader") && open.contains("auth enable"), "{open}");
        let nobody = describe(&[silent("a:1")], &well(), false).trouble.unwrap();
        assert!(nobody.contains("no member"), "{nobody}");
    }
}
