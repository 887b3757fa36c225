//! What is said to be wrong, and what is not.

use catraca_group::{LongQueue, RegistryStatus};

use super::*;
use crate::observing::rates::Counted;

const LEASE: Duration = Duration::from_secs(6);

/// How a group of three stands that is well.
fn well() -> NodeState {
    let member = |name: &str, link| MemberStatus {
        name: name.to_string(),
        address: String::new(),
        cluster: None,
        is_in_view: true,
        renewed: Some(1500),
        link,
        suspected: None,
    };
    NodeState {
        group: "g".to_string(),
        node: "a".to_string(),
        millis: 1_000_000,
        epoch: 3,
        readiness: Readiness::Ready,
        valid: Some(3000),
        members: vec![
            member("a", LinkStatus::Itself),
            member("b", LinkStatus::Up(9000)),
            member("c", LinkStatus::Down(1000, "reset".to_string())),
        ],
        registry: Some(RegistryStatus::default()),
        views: Vec::new(),
        sessions: 0,
        anomalies: 0,
    }
}

struct Case {
    node_state: NodeState,
    survey: Survey,
    rates: Rates,
    times: Times,
}

impl Case {
    fn well() -> Self {
        let (survey, rates, times) = Default::default();
        Case { node_state: well(), survey, rates, times }
    }

    fn of(change: impl FnOnce(&mut NodeState)) -> Self {
        let mut case = Self::well();
        change(&mut case.node_state);
        case
    }

    fn judged(&self, alerts: &mut Alerts, unix_ms: u64) -> Vec<Alert> {
        let Case { node_state, survey, rates, times } = self;
        alerts.judge(&Seen { node_state, survey, rates, times, lease: LEASE, unix_ms })
    }

    fn kinds(&self) -> Vec<(Severity, Kind)> {
        let all = self.judged(&mut Alerts::default(), 0);
        all.iter().map(|alert| (alert.severity, alert.kind)).collect()
    }

    /// So many wait, for so many seconds.
    fn waiting(&mut self, waiting: u64, seconds: usize) {
        for _ in 0..seconds {
            let counted = Counted { waiting, ..Counted::default() };
            self.rates.add(counted, 0, Duration::from_secs(1));
        }
    }
}

#[test]
fn a_group_that_is_well_has_no_alerts() {
    assert_eq!(Case::well().kinds(), []);
}

#[test]
fn a_member_that_is_not_in_the_view_is_lost_and_nothing_else_is_said_of_it() {
    let lost = Case::of(|node_state| {
        node_state.members[1].is_in_view = false;
        node_state.members[1].link = LinkStatus::Down(60_000, "refused".to_string());
        node_state.members[1].renewed = Some(60_000);
    });
    assert_eq!(lost.kinds(), [(Severity::Critical, Kind::MemberLost)]);
    let alerts = lost.judged(&mut Alerts::default(), 7);
    assert_eq!((alerts[0].member.as_deref(), alerts[0].since_unix_ms), (Some("b"), 7));
}

#[test]
fn a_lease_is_late_when_two_thirds_of_it_are_over() {
    let renewed =
        |millis| Case::of(|node_state| node_state.members[1].renewed = Some(millis)).kinds();
    assert_eq!(renewed(4000), []);
    assert_eq!(renewed(4001), [(Severity::Warning, Kind::LeaseLate)]);
}

#[test]
fn a_link_that_stays_down_or_never_can_be_up_is_told() {
    let link = |link| Case::of(|node_state| node_state.members[2].link = link).kinds();
    assert_eq!(link(LinkStatus::Down(3000, String::new())), []);
    assert_eq!(link(LinkStatus::Connecting), []);
    let down = LinkStatus::Down(3001, String::new());
    assert_eq!(link(down), [(Severity::Warning, Kind::LinkDown)]);
    let refused = LinkStatus::Refused(String::new());
    assert_eq!(link(refused), [(Severity::Critical, Kind::LinkDown)]);
}

#[test]
fn a_node_that_grants_nothing_says_why() {
    for (readiness, why) in [
        (Readiness::Joining("no majority".to_string()), "no majority"),
        (Readiness::Waiting(vec!["b".to_string(), "c".to_string()]), "b, c"),
        (Readiness::Expelled("kicked".to_string()), "kicked"),
        (Readiness::Excluded("b".to_string()), "'b'"),
    ] {
        let case = Case::of(|node_state| node_state.readiness = readiness);
        let alerts = case.judged(&mut Alerts::default(), 0);
        assert_eq!((alerts.len(), alerts[0].kind), (1, Kind::NotReady));
        assert!(alerts[0].text.contains(why), "{}", alerts[0].text);
    }
    let over = Case::of(|node_state| node_state.valid = Some(0));
    assert_eq!(over.kinds(), [(Severity::Critical, Kind::NotReady)]);
}

#[test]
fn a_registry_in_trouble_or_without_a_voter_is_told() {
    let registry = |change: fn(&mut RegistryStatus)| {
        Case::of(|node_state| change(node_state.registry.as_mut().unwrap())).kinds()
    };
    let trouble = registry(|registry| registry.trouble = Some("no leader".to_string()));
    assert_eq!(trouble, [(Severity::Critical, Kind::Registry)]);
    let missing = registry(|registry| registry.missing = vec!["c".to_string()]);
    assert_eq!(missing, [(Severity::Warning, Kind::Registry)]);
}

#[test]
fn a_hold_is_unusually_long_only_beside_those_that_have_ended() {
    let minutes = |count: u64| count * 60_000;
    let hold = |millis| OldHold { name: "x".to_string(), fence: 1, millis };
    let mut case = Case::well();
    case.survey.oldest = vec![hold(minutes(11)), hold(minutes(10))];
    assert_eq!(case.kinds(), [(Severity::Warning, Kind::HeldLong)]);
    case.times.holds.add(Duration::from_secs(120), ENOUGH_HOLDS - 1);
    assert_eq!(case.kinds().len(), 1, "that is too few to know what is usual");
    case.times.holds.add(Duration::from_secs(120), 1);
    assert_eq!(case.kinds(), [], "two minutes are usual, and eleven are not ten times as long");
    case.survey.oldest[0].millis = minutes(60);
    assert_eq!(case.kinds(), [(Severity::Warning, Kind::HeldLong)]);
}

#[test]
fn a_queue_grows_if_twice_as_many_wait_as_a_minute_ago() {
    let mut case = Case::well();
    case.survey.longest = Some(LongQueue { name: "x".to_string(), waiting: 20 });
    case.waiting(15, 1 + RECENT);
    case.waiting(29, MINUTE);
    assert_eq!(case.kinds(), [], "not twice as many");
    case.waiting(15, RECENT);
    case.waiting(0, MINUTE - RECENT);
    case.waiting(30, RECENT);
    assert_eq!(case.kinds(), [(Severity::Warning, Kind::QueueGrows)]);
    let alerts = case.judged(&mut Alerts::default(), 0);
    assert_eq!(alerts[0].lock.as_deref(), Some("x"));
    assert!(alerts[0].text.contains("30 clients"), "{}", alerts[0].text);
    case.waiting(30, MINUTE);
    assert_eq!(case.kinds(), [], "it does not grow any more");
}

#[test]
fn a_few_who_wait_are_no_queue_that_grows() {
    let mut case = Case::well();
    case.waiting(0, 1 + MINUTE);
    case.waiting(9, RECENT);
    assert_eq!(case.kinds(), []);
    case.waiting(1000, RECENT);
    assert_eq!(case.kinds(), [(Severity::Warning, Kind::QueueGrows)]);
}

#[test]
fn an_anomaly_is_told_for_ever() {
    let case = Case::of(|node_state| node_state.anomalies = 2);
    assert_eq!(case.kinds(), [(Severity::Critical, Kind::Anomaly)]);
}

#[test]
fn an_alert_is_known_since_it_was_first_told_and_begins_anew_after_it_was_over() {
    let mut alerts = Alerts::default();
    let late = |renewed| Case::of(|node_state| node_state.members[1].renewed = Some(renewed));
    assert_eq!(late(5000).judged(&mut alerts, 10)[0].since_unix_ms, 10);
    let again = late(5500).judged(&mut alerts, 20);
    assert_eq!(again[0].since_unix_ms, 10, "its text has changed, it has not");
    assert!(late(100).judged(&mut alerts, 30).is_empty());
    assert_eq!(late(5000).judged(&mut alerts, 40)[0].since_unix_ms, 40);
}

#[test]
fn what_is_worst_comes_first() {
    let mut case = Case::of(|node_state| {
        node_state.members[1].renewed = Some(5000);
        node_state.members[2].is_in_view = false;
    });
    case.waiting(0, 1 + MINUTE);
    case.waiting(50, RECENT);
    let severities: Vec<Severity> =
        case.kinds().into_iter().map(|(severity, _)| severity).collect();
    assert_eq!(severities, [Severity::Critical, Severity::Warning, Severity::Warning]);
}

#[test]
fn the_runbook_says_of_every_kind_of_alert_what_to_do() {
    let runbook = include_str!("../../../../../docs/RUNBOOK.md");
    let schema = serde_json::to_value(<Kind as utoipa::PartialSchema>::schema()).unwrap();
    let kinds: Vec<&str> =
        schema["enum"].as_array().unwrap().iter().map(|kind| kind.as_str().unwrap()).collect();
    assert!(kinds.contains(&"held-long"), "{kinds:?}");
    for kind in kinds {
        // That links lead somewhere is a test of the manual.
        let line = runbook.lines().find(|line| line.starts_with(&format!("| `{kind}` | [")));
        assert!(line.is_some_and(|line| line.contains("](#")), "{kind} has no line");
    }
}
