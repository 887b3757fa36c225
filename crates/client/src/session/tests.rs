use super::*;
use crate::request::LATENESS;

const TTL: Duration = Duration::from_secs(60);

fn at(seconds: u64) -> Time {
    Time(0) + Duration::from_secs(1000 + seconds)
}

fn ask(name: &str, wait: Wait) -> Ask {
    Ask { names: vec![name.to_string()], permits: 1, wait }
}

fn acquire(request: u32, name: &str, wait: Wait) -> ClientMessage {
    ClientMessage::Acquire { request, names: vec![name.to_string()], permits: 1, wait }
}

fn granted(request: u32) -> ServerMessage {
    ServerMessage::Granted { request, fences: vec![7] }
}

/// A session that was opened at 0.
fn open() -> Session {
    let mut session = Session::default();
    session.opened(TTL, Duration::MAX, at(0), at(0));
    session
}

/// The same, and it holds 'x', request 1, ticket 10.
fn holding() -> Session {
    let mut session = open();
    session.ask(10, ask("x", Wait::Forever), at(1));
    session.hear(granted(1), at(2)).unwrap();
    assert_eq!(session.take_outcomes(), [(10, Outcome::Granted(vec![7]))]);
    session.take_messages();
    session
}

#[test]
fn requests_are_sent_in_order_and_again_after_another_connection() {
    let mut session = open();
    session.ask(10, ask("x", Wait::Forever), at(1));
    session.ask(11, ask("y", Wait::AtMost(Duration::from_secs(9))), at(1));
    session.ask(12, ask("z", Wait::Forever), at(1));
    let first = acquire(1, "x", Wait::Forever);
    let second = |left| acquire(2, "y", Wait::AtMost(Duration::from_secs(left)));
    let third = acquire(3, "z", Wait::Forever);
    assert_eq!(session.take_messages(), [first.clone(), second(9), third]);
    session.disconnected();
    session.release(12);
    assert_eq!(session.take_messages(), [], "nobody is connected");
    session.resumed(at(4));
    let release = ClientMessage::Release { request: 3 };
    assert_eq!(session.take_messages(), [ClientMessage::Renew, first, second(6), release]);
}

#[test]
fn a_grant_that_is_said_twice_is_had_once() {
    let mut session = holding();
    session.hear(granted(1), at(3)).unwrap();
    assert_eq!(session.take_outcomes(), []);
    session.release(10);
    session.hear(granted(1), at(3)).unwrap();
    assert_eq!(session.take_outcomes(), [], "nor is it had after it was given back");
    session.hear(ServerMessage::Released { request: 1 }, at(4)).unwrap();
    assert_eq!(session.take_outcomes(), [(10, Outcome::Released)]);
}

#[test]
fn a_grant_that_is_heard_late_counts_only_after_a_renewal() {
    let mut session = open();
    session.ask(10, ask("x", Wait::Forever), at(1));
    session.take_messages();
    // The lease of 57 seconds is lost at 38.
    session.hear(granted(1), at(40)).unwrap();
    assert_eq!(session.take_outcomes(), []);
    assert_eq!(session.tend(at(40)), Verdict::Keep);
    assert_eq!(session.take_messages(), [ClientMessage::Renew]);
    session.hear(ServerMessage::Renewed { certain: Duration::MAX }, at(41)).unwrap();
    assert_eq!(session.take_outcomes(), [(10, Outcome::Granted(vec![7]))]);
    assert_eq!(session.validity().unwrap().until, at(97));
}

#[test]
fn a_lease_is_renewed_every_third_of_its_time() {
    let mut session = holding();
    assert_eq!(session.next_time(), Some(at(20)));
    session.tend(at(19));
    assert_eq!(session.take_messages(), []);
    session.tend(at(20));
    assert_eq!(session.take_messages(), [ClientMessage::Renew]);
    session.hear(ServerMessage::Renewed { certain: Duration::MAX }, at(21)).unwrap();
    assert_eq!(session.next_time(), Some(at(40)));
}

#[test]
fn a_lease_that_is_not_renewed_is_lost_while_there_is_time_to_stop() {
    let mut session = holding();
    session.tend(at(20));
    session.tend(at(37));
    assert_eq!(session.loss(), None);
    assert_eq!(session.tend(at(38)), Verdict::Keep);
    assert_eq!(session.loss(), Some(&Loss::Unrenewed));
    let validity = session.validity().unwrap();
    assert_eq!((validity.until, session.next_time()), (at(57), Some(at(57))));
    // What is lost is not held again, even if the node answers now.
    session.hear(ServerMessage::Renewed { certain: Duration::MAX }, at(39)).unwrap();
    assert_eq!(session.loss(), Some(&Loss::Unrenewed));
    session.ask(11, ask("y", Wait::Forever), at(40));
    session.hear(granted(2), at(40)).unwrap();
    assert_eq!(session.take_outcomes(), [], "nor is anything granted in this session");
    // When the holder has stopped, the session is of no use any more.
    session.release(10);
    assert_eq!(session.tend(at(41)), Verdict::Keep, "the node has not confirmed the release");
    session.hear(ServerMessage::Released { request: 1 }, at(41)).unwrap();
    assert_eq!(session.tend(at(41)), Verdict::Close);
}

#[test]
fn a_session_with_a_holder_is_never_closed_before_the_holder_has_stopped() {
    let mut session = holding();
    for second in 38..57 {
        assert_eq!(session.tend(at(second)), Verdict::Keep, "{second}");
    }
    assert_eq!(session.tend(at(57)), Verdict::Abandon);
}

#[test]
fn whoever_did_not_run_is_told_so() {
    let mut session = holding();
    assert_eq!(session.tend(at(500)), Verdict::Abandon);
    assert_eq!(session.loss(), Some(&Loss::Paused));
}

#[test]
fn a_session_without_a_holder_lasts_to_the_end_of_its_lease() {
    let mut session = open();
    session.ask(10, ask("x", Wait::Forever), at(1));
    assert_eq!(session.tend(at(56)), Verdict::Keep);
    assert_eq!(session.loss(), None);
    assert_eq!(session.tend(at(57)), Verdict::Close);
}

#[test]
fn what_waits_is_asked_for_in_the_next_session_and_what_was_held_is_not() {
    let mut session = holding();
    session.ask(11, ask("y", Wait::Forever), at(3));
    session.ask(12, ask("z", Wait::Forever), at(3));
    // A grant and the end of the session: what was just granted is not held.
    session.hear(granted(3), at(4)).unwrap();
    session.ended(&Loss::Over(Over::Expired));
    session.take_outcomes();
    session.take_messages();
    assert!(!session.holds() && session.wants() && !session.is_open());
    session.opened(TTL, Duration::MAX, at(5), at(5));
    assert_eq!(session.take_messages(), [acquire(2, "y", Wait::Forever)]);
    session.release(10);
    assert_eq!(session.take_messages(), [], "it is not in this session");
}

#[test]
fn a_release_is_done_when_the_session_is_over_and_in_doubt_when_it_was_given_up() {
    for (why, outcome) in [
        (Loss::Over(Over::Stopping), Outcome::Released),
        (Loss::Unrenewed, Outcome::Unconfirmed(Loss::Unrenewed)),
    ] {
        let mut session = holding();
        session.release(10);
        session.ended(&why);
        assert_eq!(session.take_outcomes(), [(10, outcome)]);
    }
}

#[test]
fn a_wait_ends_by_itself_if_the_node_does_not_say_so() {
    let mut session = open();
    session.ask(10, ask("x", Wait::AtMost(Duration::from_secs(3))), at(0));
    session.ask(11, ask("y", Wait::No(Duration::from_secs(2))), at(0));
    session.take_messages();
    assert_eq!(session.next_time(), Some(at(3) + LATENESS));
    session.tend(at(3));
    assert_eq!(session.take_outcomes(), []);
    session.tend(at(4));
    assert_eq!(session.take_outcomes(), [(10, Outcome::Refused(Refusal::TimedOut))]);
    session.tend(at(7));
    assert_eq!(session.take_outcomes(), [(11, Outcome::Unanswered)]);
    let release = |request| ClientMessage::Release { request };
    assert_eq!(session.take_messages(), [release(1), release(2)]);
    // The node has granted it meanwhile: it is on its way back.
    session.hear(granted(1), at(8)).unwrap();
    assert_eq!(session.take_outcomes(), []);
}

#[test]
fn a_wait_ends_without_a_session_too() {
    let mut session = open();
    session.ask(10, ask("x", Wait::AtMost(Duration::from_secs(3))), at(0));
    session.ended(&Loss::Over(Over::Unknown));
    session.tend(at(4));
    assert_eq!(session.take_outcomes(), [(10, Outcome::Refused(Refusal::TimedOut))]);
    assert!(!session.wants());
}

#[test]
fn as_many_fences_as_names_are_granted_or_the_node_makes_no_sense() {
    let mut session = open();
    session.ask(10, ask("x", Wait::Forever), at(1));
    let two = ServerMessage::Granted { request: 1, fences: vec![1, 2] };
    assert_eq!(session.hear(two, at(2)), Err(Over::Protocol));
}

#[test]
fn numbers_come_again_but_not_while_they_are_in_use() {
    let mut session = holding();
    session.last_number = u32::MAX;
    session.ask(11, ask("y", Wait::Forever), at(3));
    assert_eq!(session.take_messages(), [acquire(2, "y", Wait::Forever)]);
}

#[test]
fn nobody_waits_after_all_were_dismissed() {
    let mut session = holding();
    session.ask(11, ask("y", Wait::AtMost(TTL)), at(3));
    assert_eq!(session.dismiss(), [11]);
    assert!(!session.wants() && session.holds());
    session.tend(at(3) + TTL);
    assert_eq!(session.take_outcomes(), []);
}
