//! What S3's coordinator gets wrong, shown on a model of its rules, beside ours.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::collections::{BTreeSet, VecDeque};

use catraca_classroom::{CoordinatorState, Kind, Message};
use catraca_core::NodeId;

/// The listing of S3, section 2, line by line. The head of the queue is the one inside.
#[derive(Default)]
struct S3 {
    request_queue: VecDeque<&'static str>,
    /// Connections that are open. The listing never looks at them.
    open: BTreeSet<&'static str>,
    /// GRANTs that reached a process.
    granted: Vec<&'static str>,
    /// GRANTs that were sent to nobody.
    lost: Vec<&'static str>,
}

impl S3 {
    fn on_request(&mut self, process_id: &'static str) {
        self.open.insert(process_id);
        self.request_queue.push_back(process_id); // self.request_queue.put((process_id, conn))
        if self.request_queue.len() == 1 {
            self.enviar_grant(process_id);
        }
    }

    /// Whose RELEASE it is plays no part.
    fn on_release(&mut self) {
        self.request_queue.pop_front(); // self.request_queue.get()
        if let Some(&prox_id) = self.request_queue.front() {
            self.enviar_grant(prox_id);
        }
    }

    /// There is no rule for this.
    fn on_disconnect(&mut self, process_id: &'static str) {
        self.open.remove(process_id);
    }

    fn enviar_grant(&mut self, process_id: &'static str) {
        let reached =
            if self.open.contains(process_id) { &mut self.granted } else { &mut self.lost };
        reached.push(process_id);
    }
}

/// Our coordinator with a client for each name, in the order in which they ask.
struct Ours {
    state: CoordinatorState,
    nodes: Vec<(&'static str, NodeId)>,
    granted: Vec<String>,
}

impl Ours {
    fn asked_by(names: &[&'static str]) -> Self {
        let mut state = CoordinatorState::new(names.len() as u32);
        let nodes = names.iter().map(|&name| (name, state.connect().unwrap())).collect();
        let mut ours = Ours { state, nodes, granted: Vec::new() };
        for name in names {
            assert!(ours.says(Kind::Request, name));
        }
        ours
    }

    fn node(&self, name: &str) -> NodeId {
        self.nodes.iter().find(|(other, _)| *other == name).unwrap().1
    }

    /// Whether it was not refused.
    fn says(&mut self, kind: Kind, name: &str) -> bool {
        let message = Message::new(kind, name.parse().unwrap(), 0);
        let answer = self.state.receive(self.node(name), &message);
        let granted = answer.ok().flatten();
        self.granted.extend(granted.map(|grant| grant.id.to_string()));
        answer.is_ok()
    }

    fn leaves(&mut self, name: &str) {
        let next = self.state.disconnect(self.node(name)).next;
        self.granted.extend(next.map(|grant| grant.id.to_string()));
    }
}

/// Erratum 7. 13 hangs up while it waits. S3 grants to nobody, and 54 waits for ever: no message is
/// on its way, and nobody is inside who could leave.
#[test]
fn s3_grants_to_a_client_that_hung_up_while_waiting_and_then_to_nobody_else() {
    let mut s3 = S3::default();
    for id in ["76", "13", "54"] {
        s3.on_request(id);
    }
    s3.on_disconnect("13");
    s3.on_release();
    assert_eq!((s3.granted, s3.lost), (vec!["76"], vec!["13"]));
    assert_eq!(s3.request_queue, ["13", "54"]);

    let mut ours = Ours::asked_by(&["76", "13", "54"]);
    ours.leaves("13");
    assert!(ours.says(Kind::Release, "76"));
    assert_eq!(ours.granted, ["76", "54"]);
}

/// Erratum 7. 76 hangs up inside: its RELEASE never comes, and everybody behind it waits for ever.
#[test]
fn s3_never_learns_that_the_one_inside_hung_up() {
    let mut s3 = S3::default();
    for id in ["76", "13"] {
        s3.on_request(id);
    }
    s3.on_disconnect("76");
    assert_eq!((s3.granted, s3.lost), (vec!["76"], vec![]));
    assert_eq!(s3.request_queue, ["76", "13"]);

    let mut ours = Ours::asked_by(&["76", "13"]);
    ours.leaves("76");
    assert_eq!(ours.granted, ["76", "13"]);
}

/// S3 takes anybody's RELEASE for that of the one inside: 13, still waiting, sends one, and is let
/// in beside 76.
#[test]
fn s3_lets_two_in_after_a_release_from_somebody_who_waits() {
    let mut s3 = S3::default();
    for id in ["76", "13"] {
        s3.on_request(id);
    }
    s3.on_release();
    assert_eq!(s3.granted, ["76", "13"], "76 has not left");

    let mut ours = Ours::asked_by(&["76", "13"]);
    assert!(!ours.says(Kind::Release, "13"));
    assert_eq!(ours.granted, ["76"]);
}
