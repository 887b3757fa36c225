//! `catraca status`: how a node and its group are doing.

use std::io::Write;
use std::time::Duration;

use catraca_client::{
    Connection, DetectorStatus, LinkStatus, NamespaceStatus, PastView, Readiness, RegistryStatus,
    Status,
};
use catraca_node::GIT_TURNS;
use serde_json::json;

use crate::Outcome;
use crate::nodes::NodeArguments;
use crate::output::{Stdout, terminal_width};
use crate::service::{block_on, ends_with};
use crate::table::{Align, Table, grouped, lasting};

/// Tells how a node is doing: members, links, algorithms, counters.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    nodes: NodeArguments,
}

const HELP: &str = "\
Exit codes, for monitoring:
    0  the node is ready, every member is in the view, and all links are up
    2  wrong input
    3  degraded: a member is not in the view, or not connected, or the registry is in trouble
    4  the node grants nothing: it is not in its group, or its lease is over
  125  no node answers
  130  interrupted";

const DEGRADED: u8 = 3;
const USELESS: u8 = 4;

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        block_on(async {
            let status = Connection::open_any(self.nodes.nodes()?).await?.status().await?;
            let mut out = Stdout::lock();
            if self.json {
                writeln!(out, "{:#}", status_json(&status))?;
            } else {
                print(&mut out, &status)?;
            }
            out.flush()?;
            ends_with(code(&status))
        })
    }
}

/// What a monitor is told.
fn code(status: &Status) -> u8 {
    let is_well = |link: &LinkStatus| matches!(link, LinkStatus::Itself | LinkStatus::Up(_));
    let mut members = status.members.iter();
    let is_troubled = status.registry.as_ref().is_some_and(|registry| registry.trouble.is_some());
    match status.readiness {
        Readiness::Expelled(_) | Readiness::Excluded(_) | Readiness::Joining(_) => USELESS,
        Readiness::Ready if status.valid == Some(0) => USELESS,
        Readiness::Ready if is_troubled => DEGRADED,
        Readiness::Waiting(_) => DEGRADED,
        Readiness::Ready => {
            let is_whole = members.all(|member| {
                member.is_in_view && is_well(&member.link) && member.suspected.is_none()
            });
            if is_whole { 0 } else { DEGRADED }
        }
    }
}

/// A word for programs, and one for people that says why.
pub(crate) fn readiness_words(readiness: &Readiness) -> (&'static str, String) {
    match readiness {
        Readiness::Ready => ("ready", "ready".to_string()),
        Readiness::Joining(why) => ("joining", format!("not in its group yet: {why}")),
        Readiness::Waiting(members) => {
            ("waiting", format!("waiting for {} before it grants locks", members.join(", ")))
        }
        Readiness::Expelled(why) => ("expelled", format!("expelled, grants nothing: {why}")),
        Readiness::Excluded(by) => {
            ("excluded", format!("taken for crashed by '{by}', grants nothing under robust-k"))
        }
    }
}

fn print(out: &mut Stdout, status: &Status) -> Outcome {
    let Status { node, group, epoch, .. } = status;
    let running = lasting(status.millis);
    writeln!(out, "Node '{node}' of group '{group}', running for {running}, epoch {epoch}")?;
    writeln!(out, "{}\n", readiness_words(&status.readiness).1)?;
    let mut members = Table::new(&[
        ("member", Align::Left),
        ("address", Align::Left),
        ("cluster", Align::Left),
        ("view", Align::Left),
        ("renewed", Align::Left),
        ("link", Align::Left),
    ]);
    for member in &status.members {
        let cluster = member.cluster.clone().unwrap_or("-".to_string());
        let (word, millis, why) = match &member.link {
            LinkStatus::Connecting if !member.is_in_view => ("-", None, None),
            link => link_words(link),
        };
        let since = millis.map_or(String::new(), |millis| format!(" for {}", lasting(millis)));
        let why = why.map_or(String::new(), |why| format!(": {why}"));
        let crashed = member
            .suspected
            .map_or(String::new(), |millis| format!("; taken for crashed {} ago", lasting(millis)));
        let link = format!("{word}{since}{why}{crashed}");
        let view = if member.is_in_view { "in" } else { "out" }.to_string();
        let renewed = match member.renewed {
            Some(millis) => format!("{} ago", lasting(millis)),
            None => "-".to_string(),
        };
        let (name, address) = (member.name.clone(), member.address.clone());
        members.row(vec![name, address, cluster, view, renewed, link]);
    }
    let mut namespaces = Table::new(&[
        ("names", Align::Left),
        ("algorithm", Align::Left),
        ("messages sent", Align::Left),
    ]);
    // What every group has is shown where it is used.
    let is_shown = |it: &&NamespaceStatus| {
        it.pattern != GIT_TURNS || it.messages.iter().any(|(_, count)| *count > 0)
    };
    for namespace in status.namespaces.iter().filter(is_shown) {
        let one = |(kind, count): &(String, u64)| format!("{kind} {}", grouped(*count));
        let sent = namespace.messages.iter().filter(|(_, count)| *count > 0);
        let sent = sent.map(one).collect::<Vec<_>>().join(", ");
        let messages = if sent.is_empty() { "none".to_string() } else { sent };
        let which = if namespace.semaphores { " (semaphores)" } else { "" };
        let names = format!("{}{which}", namespace.pattern);
        namespaces.row(vec![names, namespace.algorithm.clone(), messages]);
    }
    let lines = |table: Table| table.lines_within(terminal_width(), &[]);
    for line in lines(members).into_iter().chain([String::new()]).chain(lines(namespaces)) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    if let Some(registry) = &status.registry {
        writeln!(out, "{}", registry_words(registry))?;
        if let Some(notice) = notice_of_two(status.members.len(), &registry.voters) {
            writeln!(out, "{notice}")?;
        }
    }
    if let Some(millis) = status.valid {
        writeln!(out, "Without it locks are granted here for another {}.", lasting(millis))?;
    }
    writeln!(out)?;
    print_views(out, &status.views)?;
    if let Some(detector) = &status.detector {
        writeln!(out, "{}\n", detector_words(detector))?;
    }
    for (what, count) in counters(status) {
        writeln!(out, "{what:<10} {}", grouped(count))?;
    }
    Ok(())
}

/// So many of the last views are shown to people.
const SHOWN_VIEWS: usize = 5;

fn print_views(out: &mut Stdout, views: &[PastView]) -> Outcome {
    let mut table = Table::new(&[
        ("epoch", Align::Right),
        ("members", Align::Right),
        ("began", Align::Left),
        ("took", Align::Left),
        ("because", Align::Left),
    ]);
    for view in views.iter().rev().take(SHOWN_VIEWS) {
        let PastView { epoch, members, cause, age, took } = view;
        let (age, took) = (format!("{} ago", lasting(*age)), format!("{took} ms"));
        table.row(vec![epoch.to_string(), members.to_string(), age, took, cause.clone()]);
    }
    for line in table.lines_within(terminal_width(), &[]) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    Ok(())
}

fn registry_words(registry: &RegistryStatus) -> String {
    let RegistryStatus { place, leader, voters, missing, trouble } = registry;
    let mut words = format!("The registry is {place}");
    if !voters.is_empty() {
        let vote = if voters.len() == 1 { "votes" } else { "vote" };
        words += &format!("; {} {vote}", voters.join(", "));
    }
    if let Some(leader) = leader {
        words += &format!(", {leader} leads");
    }
    if !missing.is_empty() {
        words += &format!("; not reached: {}", missing.join(", "));
    }
    match trouble {
        Some(why) => format!("{words}. In trouble: {why}."),
        None => words + ".",
    }
}

/// What nobody expects of a group of two that keeps its registry among its members.
fn notice_of_two(members: usize, voters: &[String]) -> Option<String> {
    match (members, voters) {
        (2, [voter]) => Some(format!(
            "A group of two does not go on without {voter}.\n\
             Three members go on without any one of them."
        )),
        _ => None,
    }
}

fn detector_words(detector: &DetectorStatus) -> String {
    let DetectorStatus { interval, timeout, messages, excluded_by } = detector;
    let seconds = |millis: u64| Duration::from_millis(millis);
    let verdict = match excluded_by {
        None => String::new(),
        Some(by) => format!(
            "\nMember '{by}' takes this node for crashed, and the group goes on without it:\n\
             its locks under robust-k are lost. Restart the whole group."
        ),
    };
    format!(
        "Hi-ADSD tests every {:?} and waits {:?} for an answer; {} messages sent.{verdict}",
        seconds(*interval),
        seconds(*timeout),
        grouped(*messages)
    )
}

pub(crate) fn link_words(link: &LinkStatus) -> (&'static str, Option<u64>, Option<&str>) {
    match link {
        LinkStatus::Itself => ("this node", None, None),
        LinkStatus::Connecting => ("connecting", None, None),
        LinkStatus::Up(millis) => ("up", Some(*millis), None),
        LinkStatus::Down(millis, why) => ("down", Some(*millis), Some(why)),
        LinkStatus::Refused(why) => ("refused", None, Some(why)),
    }
}

fn counters(status: &Status) -> [(&'static str, u64); 8] {
    [
        ("locks", status.locks),
        ("held", status.held),
        ("waiting", status.waiting),
        ("sessions", status.sessions),
        ("grants", status.grants),
        ("handovers", status.handovers),
        ("messages", status.messages),
        ("anomalies", status.anomalies),
    ]
}

fn status_json(status: &Status) -> serde_json::Value {
    let members = status.members.iter().map(|member| {
        let (link, millis, why) = link_words(&member.link);
        let (name, address, cluster) = (&member.name, &member.address, &member.cluster);
        json!({ "name": name, "address": address, "cluster": cluster, "link": link,
                "millis": millis, "why": why, "suspected_millis": member.suspected,
                "in_view": member.is_in_view, "renewed_millis": member.renewed })
    });
    let namespaces = status.namespaces.iter().map(|namespace| {
        let messages: serde_json::Map<_, _> =
            namespace.messages.iter().map(|(kind, count)| (kind.clone(), json!(count))).collect();
        json!({ "names": namespace.pattern, "semaphores": namespace.semaphores,
                "algorithm": namespace.algorithm, "messages": messages })
    });
    let detector = status.detector.as_ref().map(|detector| {
        json!({ "interval_millis": detector.interval, "timeout_millis": detector.timeout,
                "messages": detector.messages, "excluded_by": detector.excluded_by })
    });
    let counters: serde_json::Map<_, _> = counters(status)
        .into_iter()
        .map(|(what, count)| (what.to_string(), json!(count)))
        .collect();
    let (waits_for, why) = match &status.readiness {
        Readiness::Ready => (None, None),
        Readiness::Waiting(members) => (Some(members), None),
        Readiness::Joining(why) | Readiness::Expelled(why) | Readiness::Excluded(why) => {
            (None, Some(why))
        }
    };
    let registry = status.registry.as_ref().map(|registry| {
        json!({ "place": registry.place, "leader": registry.leader, "voters": registry.voters,
                "missing": registry.missing, "trouble": registry.trouble })
    });
    let views = status.views.iter().map(|view| {
        json!({ "epoch": view.epoch, "members": view.members, "cause": view.cause,
                "age_millis": view.age, "took_millis": view.took })
    });
    json!({
        "valid_millis": status.valid, "registry": registry, "views": views.collect::<Vec<_>>(),
        "group": status.group, "node": status.node, "millis": status.millis,
        "epoch": status.epoch, "readiness": readiness_words(&status.readiness).0,
        "waits_for": waits_for, "why": why,
        "members": members.collect::<Vec<_>>(), "detector": detector, "namespaces": namespaces.collect::<Vec<_>>(),
        "counters": counters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_two_with_one_voter_is_told_what_it_cannot_do_without() {
        let voters = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        let notice = notice_of_two(2, &voters(&["a"])).unwrap();
        assert!(notice.contains("does not go on without a."), "{notice}");
        for (members, names) in [(1, &["a"][..]), (3, &["a", "b", "c"]), (2, &[]), (3, &["a"])] {
            assert_eq!(notice_of_two(members, &voters(names)), None, "{members} {names:?}");
        }
    }
}
