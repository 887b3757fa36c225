//! What a person would want to know at once.
//!
//! A plain value: it is shown how the node stands, what its locks look like and what has happened lately, and
//! says what is wrong. Thresholds are constants, so that everybody knows them; docs/DASHBOARD.md lists them.

use std::collections::BTreeMap;
use std::time::Duration;

use catraca_group::{LinkStatus, MemberStatus, NodeState, OldHold, Readiness, Survey, Times};
use serde::Serialize;
use utoipa::ToSchema;

use super::rates::Rates;

/// A lease that was not renewed for this share of its time is late. Members renew it three times as often as
/// they must, so one renewal has failed then.
const LATE: f64 = 2.0 / 3.0;
/// A hold is not unusual before this time, whatever the others are like.
const LONG_HOLD: Duration = Duration::from_secs(10 * 60);
/// And not before so many times as long as 99 of 100 holds last.
const TIMES_AS_LONG: u32 = 10;
/// What is usual is known from so many holds on.
const ENOUGH_HOLDS: u64 = 100;
/// Fewer who wait are nothing to speak of.
const MANY_WAITING: f64 = 10.0;
/// A queue that has so many times as many as a minute ago grows.
const GROWTH: f64 = 2.0;
/// The seconds that are compared: those before now, and those a minute before.
const RECENT: usize = 10;
const MINUTE: usize = 60;
/// A link may be down for so long: it is made anew by itself.
const LINK_DOWN: Duration = Duration::from_secs(3);

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Somebody has to act, or locks are not granted.
    Critical,
    /// Somebody should have a look.
    Warning,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// This node grants no locks.
    NotReady,
    /// A member of the group is not in the view.
    MemberLost,
    /// A member of the view cannot be reached from here.
    LinkDown,
    /// A member was not heard to renew its lease when it should have.
    LeaseLate,
    /// The registry is in trouble, or one of its voters is missing.
    Registry,
    /// A lock is held for much longer than others.
    HeldLong,
    /// More and more clients wait here.
    QueueGrows,
    /// Something came that cannot come in a correct run.
    Anomaly,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Alert {
    /// How bad it is.
    pub(crate) severity: Severity,
    /// What it is.
    pub(crate) kind: Kind,
    /// The same for people.
    pub(crate) text: String,
    /// The lock, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lock: Option<String>,
    /// The member, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) member: Option<String>,
    /// Since when it is known here, in milliseconds since 1970.
    pub(crate) since_unix_ms: u64,
}

/// What alerts are judged by.
pub(crate) struct Seen<'a> {
    pub(crate) node_state: &'a NodeState,
    pub(crate) survey: &'a Survey,
    pub(crate) rates: &'a Rates,
    /// How long clients have held locks and waited for them since the node began.
    pub(crate) times: &'a Times,
    /// How long a lease lasts.
    pub(crate) lease: Duration,
    pub(crate) unix_ms: u64,
}

/// What is one alert, however its text changes: its kind, and the member or lock.
type Identity = (Severity, Kind, Option<String>, Option<String>);

/// What is wrong, and since when.
#[derive(Debug, Default)]
pub(crate) struct Alerts {
    since: BTreeMap<Identity, u64>,
}

impl Alerts {
    /// What is wrong now, the worst first. What was wrong before is known since then.
    pub(crate) fn judge(&mut self, seen: &Seen<'_>) -> Vec<Alert> {
        let mut all = Vec::new();
        add_readiness(seen, &mut all);
        for member in &seen.node_state.members {
            add_member(seen, member, &mut all);
        }
        add_registry(seen, &mut all);
        add_long_holds(seen, &mut all);
        add_queue(seen, &mut all);
        add_anomalies(seen, &mut all);
        let identity =
            |alert: &Alert| (alert.severity, alert.kind, alert.lock.clone(), alert.member.clone());
        let mut since = BTreeMap::new();
        for alert in &mut all {
            let known = self.since.get(&identity(alert)).copied();
            alert.since_unix_ms = known.unwrap_or(seen.unix_ms);
            since.insert(identity(alert), alert.since_unix_ms);
        }
        self.since = since;
        all.sort_by_key(identity);
        all
    }
}

fn alert(severity: Severity, kind: Kind, text: String) -> Alert {
    Alert { severity, kind, text, lock: None, member: None, since_unix_ms: 0 }
}

fn add_readiness(seen: &Seen<'_>, all: &mut Vec<Alert>) {
    let why = match &seen.node_state.readiness {
        Readiness::Ready if seen.node_state.valid == Some(0) => "its lease is over".to_string(),
        Readiness::Ready => return,
        Readiness::Joining(why) => why.clone(),
        Readiness::Waiting(members) => format!("it waits for {}", members.join(", ")),
        Readiness::Expelled(why) => format!("it does not belong to its group any more: {why}"),
        Readiness::Excluded(by) => format!("member '{by}' takes it for crashed"),
    };
    let text = format!("this node grants no locks: {why}");
    all.push(alert(Severity::Critical, Kind::NotReady, text));
}

fn add_member(seen: &Seen<'_>, member: &MemberStatus, all: &mut Vec<Alert>) {
    let name = &member.name;
    let mut add = |severity, kind, text| {
        all.push(Alert { member: Some(name.clone()), ..alert(severity, kind, text) });
    };
    if !member.is_in_view {
        let text =
            format!("member '{name}' is not in the view: start it, or take it out of the group");
        return add(Severity::Critical, Kind::MemberLost, text);
    }
    if let Some(renewed) = member.renewed.map(Duration::from_millis)
        && renewed > seen.lease.mul_f64(LATE)
    {
        let (renewed, lease) = (renewed.as_secs_f64(), seen.lease.as_secs_f64());
        let text = format!(
            "member '{name}' renewed its lease {renewed:.1} s ago; it is taken for lost after {lease:.1} s"
        );
        add(Severity::Warning, Kind::LeaseLate, text);
    }
    match &member.link {
        LinkStatus::Down(millis, why) if Duration::from_millis(*millis) > LINK_DOWN => {
            let seconds = millis / 1000;
            let text =
                format!("member '{name}' cannot be reached from here for {seconds} s: {why}");
            add(Severity::Warning, Kind::LinkDown, text);
        }
        LinkStatus::Refused(why) => {
            let text = format!("member '{name}' and this node do not belong together: {why}");
            add(Severity::Critical, Kind::LinkDown, text);
        }
        _ => {}
    }
}

fn add_registry(seen: &Seen<'_>, all: &mut Vec<Alert>) {
    let Some(registry) = &seen.node_state.registry else { return };
    if let Some(trouble) = &registry.trouble {
        let text = format!("the registry is in trouble: {trouble}");
        all.push(alert(Severity::Critical, Kind::Registry, text));
    }
    for member in &registry.missing {
        let text = format!("member '{member}', which votes on the registry, cannot be reached");
        let member = Some(member.clone());
        all.push(Alert { member, ..alert(Severity::Warning, Kind::Registry, text) });
    }
}

/// From when on a hold is unusually long, by what holds have been like.
fn unusual(times: &Times) -> Duration {
    let holds = &times.holds;
    let usual = holds.quantile(0.99).filter(|_| holds.count() >= ENOUGH_HOLDS);
    usual.map_or(LONG_HOLD, |usual| LONG_HOLD.max(usual * TIMES_AS_LONG))
}

fn add_long_holds(seen: &Seen<'_>, all: &mut Vec<Alert>) {
    let limit = unusual(seen.times);
    let is_long = |hold: &&OldHold| Duration::from_millis(hold.millis) > limit;
    for hold in seen.survey.oldest.iter().filter(is_long) {
        let minutes = hold.millis / 60_000;
        let text = format!("lock '{}' has been held for {minutes} min", hold.name);
        let lock = Some(hold.name.clone());
        all.push(Alert { lock, ..alert(Severity::Warning, Kind::HeldLong, text) });
    }
}

fn add_queue(seen: &Seen<'_>, all: &mut Vec<Alert>) {
    let waiting = |range| seen.rates.average(range, |sample| sample.waiting);
    let (Some(now), Some(then)) = (waiting(0..RECENT), waiting(MINUTE..MINUTE + RECENT)) else {
        return;
    };
    if now < MANY_WAITING || now < GROWTH * then {
        return;
    }
    let text = format!("{now:.0} clients of this node wait, a minute ago it was {then:.0}");
    let queue = seen.survey.longest.as_ref();
    let lock = queue.map(|queue| queue.name.clone());
    let text = match queue {
        Some(queue) => format!("{text}; most of all for '{}': {}", queue.name, queue.waiting),
        None => text,
    };
    all.push(Alert { lock, ..alert(Severity::Warning, Kind::QueueGrows, text) });
}

fn add_anomalies(seen: &Seen<'_>, all: &mut Vec<Alert>) {
    let count = seen.node_state.anomalies;
    if count > 0 {
        let text = format!(
            "{count} things came that cannot come in a correct run: please report what the log says"
        );
        all.push(alert(Severity::Critical, Kind::Anomaly, text));
    }
}

#[cfg(test)]
mod tests;
