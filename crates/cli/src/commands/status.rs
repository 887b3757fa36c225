//! `catraca status`: how a node and its group are doing.

use std::io::Write;
use std::time::Duration;

use catraca_client::{Connection, DEFAULT_ADDRESS, DetectorStatus, LinkStatus, Readiness, Status};
use serde_json::json;

use crate::Outcome;
use crate::output::{Stdout, terminal_width};
use crate::service::{block_on, ends_with};
use crate::table::{Align, Table, grouped, lasting};
use crate::value::at_node;

/// Tells how a node is doing: members, links, algorithms, counters.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The nodes to ask: the first that answers, in this order.
    #[arg(long, default_value = DEFAULT_ADDRESS, env = "CATRACA_NODE", value_name = "ADDR,...", value_delimiter = ',', value_parser = at_node)]
    node: Vec<String>,
}

const HELP: &str = "\
Exit codes, for monitoring:
    0  the node is ready, and all links are up
    2  wrong input
    3  degraded: a member is not connected, refused or taken for crashed, or the node waits for
       members before it grants locks
    4  the node grants nothing: it was expelled, or the group goes on without it
  125  no node answers";

const DEGRADED: u8 = 3;
const USELESS: u8 = 4;

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        block_on(async {
            let status = Connection::open_any(&self.node).await?.status().await?;
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
    match status.readiness {
        Readiness::Expelled(_) | Readiness::Excluded(_) => USELESS,
        Readiness::Waiting(_) | Readiness::Joining(_) => DEGRADED,
        Readiness::Ready => {
            let is_whole =
                members.all(|member| is_well(&member.link) && member.suspected.is_none());
            if is_whole { 0 } else { DEGRADED }
        }
    }
}

/// A word for programs, and one for people that says why.
fn readiness_words(readiness: &Readiness) -> (&'static str, String) {
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
        ("link", Align::Left),
    ]);
    for member in &status.members {
        let cluster = member.cluster.clone().unwrap_or("-".to_string());
        let (word, millis, why) = link_words(&member.link);
        let since = millis.map_or(String::new(), |millis| format!(" for {}", lasting(millis)));
        let why = why.map_or(String::new(), |why| format!(": {why}"));
        let crashed = member
            .suspected
            .map_or(String::new(), |millis| format!("; taken for crashed {} ago", lasting(millis)));
        let link = format!("{word}{since}{why}{crashed}");
        members.row(vec![member.name.clone(), member.address.clone(), cluster, link]);
    }
    let mut namespaces = Table::new(&[
        ("names", Align::Left),
        ("algorithm", Align::Left),
        ("messages sent", Align::Left),
    ]);
    for namespace in &status.namespaces {
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
    if let Some(detector) = &status.detector {
        writeln!(out, "{}\n", detector_words(detector))?;
    }
    for (what, count) in counters(status) {
        writeln!(out, "{what:<10} {}", grouped(count))?;
    }
    Ok(())
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

fn link_words(link: &LinkStatus) -> (&'static str, Option<u64>, Option<&str>) {
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
                "millis": millis, "why": why, "suspected_millis": member.suspected })
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
    json!({
        "group": status.group, "node": status.node, "millis": status.millis,
        "epoch": status.epoch, "readiness": readiness_words(&status.readiness).0,
        "waits_for": waits_for, "why": why,
        "members": members.collect::<Vec<_>>(), "detector": detector, "namespaces": namespaces.collect::<Vec<_>>(),
        "counters": counters,
    })
}
