use proptest::prelude::*;

use super::*;

fn id(text: &str) -> ProcessId {
    text.parse().unwrap()
}

/// A desk at which processes of these names sit, in this order.
fn desk(names: &[&str]) -> (Desk, Vec<NodeId>) {
    let mut desk = Desk::new(names.len() as u32);
    let seats = names.iter().map(|_| desk.seat().unwrap()).collect();
    (desk, seats)
}

fn say(desk: &mut Desk, seat: NodeId, kind: Kind, name: &str) -> Result<Option<Grant>, Refusal> {
    desk.receive(seat, &Message::new(kind, id(name), 0))
}

fn request(desk: &mut Desk, seat: NodeId, name: &str) -> Option<Grant> {
    say(desk, seat, Kind::Request, name).unwrap()
}

fn release(desk: &mut Desk, seat: NodeId, name: &str) -> Option<Grant> {
    say(desk, seat, Kind::Release, name).unwrap()
}

fn grant(seat: NodeId, name: &str) -> Option<Grant> {
    Some(Grant { seat, id: id(name) })
}

fn waiting(desk: &Desk) -> Vec<String> {
    desk.waiting().map(|id| id.unwrap().to_string()).collect()
}

fn served(desk: &Desk) -> Vec<(String, u64)> {
    desk.served().each().map(|(id, entries)| (id.to_string(), entries)).collect()
}

/// The messages of the excerpt from 'coordenador_log.txt', in its order: 76, 13, 54, 23 and 16 ask,
/// 76 leaves and asks again. Reference: S3, section 3.
#[test]
fn paper_the_excerpt_of_the_log_is_answered_as_it_says() {
    let (mut desk, s) = desk(&["76", "13", "54", "23", "16"]);
    assert_eq!(request(&mut desk, s[0], "76"), grant(s[0], "76"));
    for (seat, name) in [(s[1], "13"), (s[2], "54"), (s[3], "23"), (s[4], "16")] {
        assert_eq!(request(&mut desk, seat, name), None);
    }
    assert_eq!(release(&mut desk, s[0], "76"), grant(s[1], "13"));
    assert_eq!(request(&mut desk, s[0], "76"), None);
    assert_eq!(desk.inside(), Some(id("13")));
    assert_eq!(waiting(&desk), ["54", "23", "16", "76"]);
    assert_eq!(served(&desk), [("76".to_string(), 1)]);
}

#[test]
fn who_leaves_while_waiting_is_gone_and_the_others_keep_their_order() {
    let (mut desk, s) = desk(&["1", "2", "3", "4"]);
    for (&seat, name) in s.iter().zip(["1", "2", "3", "4"]) {
        request(&mut desk, seat, name);
    }
    let departure = desk.leave(s[1]);
    let expected = Departure { id: Some(id("2")), phase: Phase::Waiting, next: None };
    assert_eq!(departure, expected);
    assert_eq!((desk.inside(), waiting(&desk)), (Some(id("1")), vec!["3".into(), "4".into()]));
    assert_eq!(release(&mut desk, s[0], "1"), grant(s[2], "3"));
    assert_eq!(release(&mut desk, s[2], "3"), grant(s[3], "4"));
    assert_eq!(release(&mut desk, s[3], "4"), None);
    assert_eq!(served(&desk), [("1".to_string(), 1), ("3".to_string(), 1), ("4".to_string(), 1)]);
}

#[test]
fn who_leaves_while_inside_lets_the_next_one_in() {
    let (mut desk, s) = desk(&["1", "2"]);
    request(&mut desk, s[0], "1");
    request(&mut desk, s[1], "2");
    let departure = desk.leave(s[0]);
    let next = grant(s[1], "2");
    assert_eq!(departure, Departure { id: Some(id("1")), phase: Phase::Inside, next });
    assert_eq!(served(&desk), [("1".to_string(), 1)]);
}

#[test]
fn who_leaves_while_idle_changes_nothing_for_the_others() {
    let (mut desk, s) = desk(&["1", "2"]);
    request(&mut desk, s[0], "1");
    assert_eq!(desk.leave(s[1]), Departure { id: None, phase: Phase::Idle, next: None });
    assert_eq!(desk.inside(), Some(id("1")));
}

#[test]
fn a_seat_and_a_name_are_free_again_as_soon_as_they_are_left() {
    let (mut desk, s) = desk(&["1", "2"]);
    request(&mut desk, s[0], "1");
    request(&mut desk, s[1], "2");
    assert_eq!(desk.seat(), None);
    desk.leave(s[1]);
    assert_eq!(desk.seat(), Some(s[1]));
    assert_eq!(request(&mut desk, s[1], "2"), None);
    assert_eq!(release(&mut desk, s[0], "1"), grant(s[1], "2"));
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let (mut desk, s) = desk(&["1", "2", "3"]);
    request(&mut desk, s[0], "1");
    request(&mut desk, s[1], "2");
    let taken = Refusal::NameTaken(id("1"));
    for (seat, kind, name, refusal) in [
        (s[0], Kind::Request, "1", Refusal::AlreadyInside),
        (s[1], Kind::Request, "2", Refusal::AlreadyWaiting),
        (s[1], Kind::Release, "2", Refusal::NotInside),
        (s[2], Kind::Release, "3", Refusal::NotInside),
        (s[0], Kind::Grant, "1", Refusal::NotTheCoordinator),
        (s[0], Kind::Release, "7", Refusal::OtherName(id("1"))),
        (s[2], Kind::Request, "1", taken),
        (s[2], Kind::Release, "1", taken),
        (NodeId(9), Kind::Request, "9", Refusal::NoSeat),
    ] {
        assert_eq!(say(&mut desk, seat, kind, name), Err(refusal), "{kind} of {name}");
        assert_eq!((desk.inside(), waiting(&desk)), (Some(id("1")), vec!["2".into()]));
    }
    assert_eq!(release(&mut desk, s[0], "1"), grant(s[1], "2"));
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
    /// The desk against the plainest queue there is: the one inside in front.
    #[test]
    fn any_coming_and_going_is_served_first_come_first_served(
        moves in prop::collection::vec((0usize..6, prop::sample::select(vec![
            Move::Request, Move::Request, Move::Release, Move::Release, Move::Leave,
        ])), 0..200),
    ) {
        let names = ["1", "2", "3", "4", "5", "6"];
        let (mut desk, mut seats) = desk(&names);
        let mut line: Vec<usize> = Vec::new();
        for (who, what) in moves {
            let before = line.first().copied();
            let is_in_line = line.contains(&who);
            let granted = match what {
                Move::Request => say(&mut desk, seats[who], Kind::Request, names[who]).ok(),
                Move::Release => say(&mut desk, seats[who], Kind::Release, names[who]).ok(),
                Move::Leave => Some(desk.leave(seats[who]).next),
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
                    seats[who] = desk.seat().unwrap();
                    line.retain(|&other| other != who);
                }
            }
            let front = line.first().copied();
            let expected = front.filter(|_| front != before).and_then(|n| grant(seats[n], names[n]));
            prop_assert_eq!(granted.flatten(), expected);
            let queue: Vec<&str> = line.iter().skip(1).map(|&n| names[n]).collect();
            prop_assert_eq!(waiting(&desk), queue);
        }
    }
}
