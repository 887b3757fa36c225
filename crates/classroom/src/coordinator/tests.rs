use proptest::prelude::*;

use super::*;

fn id(text: &str) -> ProcessId {
    text.parse().unwrap()
}

/// A coordinator to which processes of these names are connected, in this order.
fn state(names: &[&str]) -> (CoordinatorState, Vec<NodeId>) {
    let mut state = CoordinatorState::new(names.len() as u32);
    let nodes = names.iter().map(|_| state.connect().unwrap()).collect();
    (state, nodes)
}

fn say(
    state: &mut CoordinatorState,
    node: NodeId,
    kind: Kind,
    name: &str,
) -> Result<Option<Grant>, Refusal> {
    state.receive(node, &Message::new(kind, id(name), 0))
}

fn request(state: &mut CoordinatorState, node: NodeId, name: &str) -> Option<Grant> {
    say(state, node, Kind::Request, name).unwrap()
}

fn release(state: &mut CoordinatorState, node: NodeId, name: &str) -> Option<Grant> {
    say(state, node, Kind::Release, name).unwrap()
}

fn grant(node: NodeId, name: &str) -> Option<Grant> {
    Some(Grant { node, id: id(name) })
}

fn waiting(state: &CoordinatorState) -> Vec<String> {
    state.waiting().map(|id| id.unwrap().to_string()).collect()
}

fn served(state: &CoordinatorState) -> Vec<(String, u64)> {
    state.served().each().map(|(id, entries)| (id.to_string(), entries)).collect()
}

/// The messages of the excerpt from 'coordenador_log.txt', in its order: 76, 13, 54, 23 and 16 ask,
/// 76 leaves and asks again. Reference: S3, section 3.
#[test]
fn paper_the_excerpt_of_the_log_is_answered_as_it_says() {
    let (mut state, s) = state(&["76", "13", "54", "23", "16"]);
    assert_eq!(request(&mut state, s[0], "76"), grant(s[0], "76"));
    for (node, name) in [(s[1], "13"), (s[2], "54"), (s[3], "23"), (s[4], "16")] {
        assert_eq!(request(&mut state, node, name), None);
    }
    assert_eq!(release(&mut state, s[0], "76"), grant(s[1], "13"));
    assert_eq!(request(&mut state, s[0], "76"), None);
    assert_eq!(state.inside(), Some(id("13")));
    assert_eq!(waiting(&state), ["54", "23", "16", "76"]);
    assert_eq!(served(&state), [("76".to_string(), 1)]);
}

#[test]
fn who_leaves_while_waiting_is_gone_and_the_others_keep_their_order() {
    let (mut state, s) = state(&["1", "2", "3", "4"]);
    for (&node, name) in s.iter().zip(["1", "2", "3", "4"]) {
        request(&mut state, node, name);
    }
    let disconnection = state.disconnect(s[1]);
    let expected = Disconnection { id: Some(id("2")), phase: Phase::Waiting, next: None };
    assert_eq!(disconnection, expected);
    assert_eq!((state.inside(), waiting(&state)), (Some(id("1")), vec!["3".into(), "4".into()]));
    assert_eq!(release(&mut state, s[0], "1"), grant(s[2], "3"));
    assert_eq!(release(&mut state, s[2], "3"), grant(s[3], "4"));
    assert_eq!(release(&mut state, s[3], "4"), None);
    assert_eq!(served(&state), [("1".to_string(), 1), ("3".to_string(), 1), ("4".to_string(), 1)]);
}

#[test]
fn who_leaves_while_inside_lets_the_next_one_in() {
    let (mut state, s) = state(&["1", "2"]);
    request(&mut state, s[0], "1");
    request(&mut state, s[1], "2");
    let disconnection = state.disconnect(s[0]);
    let next = grant(s[1], "2");
    assert_eq!(disconnection, Disconnection { id: Some(id("1")), phase: Phase::Inside, next });
    assert_eq!(served(&state), [("1".to_string(), 1)]);
}

#[test]
fn who_leaves_while_idle_changes_nothing_for_the_others() {
    let (mut state, s) = state(&["1", "2"]);
    request(&mut state, s[0], "1");
    assert_eq!(state.disconnect(s[1]), Disconnection { id: None, phase: Phase::Idle, next: None });
    assert_eq!(state.inside(), Some(id("1")));
}

#[test]
fn a_seat_and_a_name_are_free_again_as_soon_as_they_are_left() {
    let (mut state, s) = state(&["1", "2"]);
    request(&mut state, s[0], "1");
    request(&mut state, s[1], "2");
    assert_eq!(state.connect(), None);
    state.disconnect(s[1]);
    assert_eq!(state.connect(), Some(s[1]));
    assert_eq!(request(&mut state, s[1], "2"), None);
    assert_eq!(release(&mut state, s[0], "1"), grant(s[1], "2"));
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let (mut state, s) = state(&["1", "2", "3"]);
    request(&mut state, s[0], "1");
    request(&mut state, s[1], "2");
    let taken = Refusal::NameTaken(id("1"));
    for (node, kind, name, refusal) in [
        (s[0], Kind::Request, "1", Refusal::AlreadyInside),
        (s[1], Kind::Request, "2", Refusal::AlreadyWaiting),
        (s[1], Kind::Release, "2", Refusal::NotInside),
        (s[2], Kind::Release, "3", Refusal::NotInside),
        (s[0], Kind::Grant, "1", Refusal::NotTheCoordinator),
        (s[0], Kind::Release, "7", Refusal::OtherName(id("1"))),
        (s[2], Kind::Request, "1", taken),
        (s[2], Kind::Release, "1", taken),
        (NodeId(9), Kind::Request, "9", Refusal::NotConnected),
    ] {
        assert_eq!(say(&mut state, node, kind, name), Err(refusal), "{kind} of {name}");
        assert_eq!((state.inside(), waiting(&state)), (Some(id("1")), vec!["2".into()]));
    }
    assert_eq!(release(&mut state, s[0], "1"), grant(s[1], "2"));
}

#[test]
fn processes_beyond_the_limit_are_counted_together() {
    let mut served = Served::default();
    for number in 0..COUNTED + 3 {
        served.count(id(&number.to_string()));
    }
    served.count(id("0"));
    assert_eq!((served.each().len(), served.others()), (COUNTED, 3));
    assert_eq!(served.each().next(), Some((id("0"), 2)));
}

/// What a client may do next; refused unless it fits.
#[derive(Clone, Copy, Debug)]
enum Move {
    Request,
    Release,
    Leave,
}

proptest! {
    /// Our coordinator against the plainest queue there is: the one inside in front.
    #[test]
    fn any_coming_and_going_is_served_first_come_first_served(
        moves in prop::collection::vec((0usize..6, prop::sample::select(vec![
            Move::Request, Move::Request, Move::Release, Move::Release, Move::Leave,
        ])), 0..200),
    ) {
        let names = ["1", "2", "3", "4", "5", "6"];
        let (mut state, mut nodes) = state(&names);
        let mut line: Vec<usize> = Vec::new();
        for (who, what) in moves {
            let before = line.first().copied();
            let is_in_line = line.contains(&who);
            let granted = match what {
                Move::Request => say(&mut state, nodes[who], Kind::Request, names[who]).ok(),
                Move::Release => say(&mut state, nodes[who], Kind::Release, names[who]).ok(),
                Move::Leave => Some(state.disconnect(nodes[who]).next),
            };
            match what {
                Move::Request => {
                    prop_assert_eq!(granted.is_some(), !is_in_line);
                    if !is_in_line {
                        line.push(who);
                    }
                }
                Move::Release => {
                    prop_assert_eq!(granted.is_some(), before == Some(who));
                    line.retain(|&other| other != who || before != Some(who));
                }
                Move::Leave => {
                    nodes[who] = state.connect().unwrap();
                    line.retain(|&other| other != who);
                }
            }
            let front = line.first().copied();
            let expected = front.filter(|_| front != before).and_then(|n| grant(nodes[n], names[n]));
            prop_assert_eq!(granted.flatten(), expected);
            let queue: Vec<&str> = line.iter().skip(1).map(|&n| names[n]).collect();
            prop_assert_eq!(waiting(&state), queue);
        }
    }
}
