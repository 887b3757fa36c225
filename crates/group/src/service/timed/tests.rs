//! Timed holds of one member, step by step; and what it asks the others about them.

use alloc::string::ToString;
use alloc::vec;
use core::time::Duration;

use super::*;
use crate::listing::Query;
use crate::lock::Owner;
use crate::member::Input;
use crate::question::{ANSWER_TIME, Answer, PeerMessage, Question};
use crate::service::Notice;
use crate::service::tests::Member;
use crate::session::{SessionId, Who};
use crate::timed::{LONGEST_TOKEN, MOST_QUESTIONS, Operation, Renewal, TIMED_TTL_RANGE};
use crate::view::Epoch;
use crate::wait::Wait;

const TTL: Duration = Duration::from_secs(10);
const TOKEN: &[u8] = b"mine";

fn asked(id: u128, names: &[&str], wait: Wait) -> AcquireTimed {
    let names = names.iter().map(|name| name.to_string()).collect();
    let who = Who { label: "job".into(), pid: 7, host: "there".into(), ..Who::default() };
    let (id, token) = (HoldId(id), TOKEN.to_vec());
    AcquireTimed { id, names, permits: 1, wait, ttl: TTL, who, token }
}

fn by_id(id: u128) -> Which {
    Which::Id(HoldId(id))
}

fn by_name(name: &str, token: Option<&[u8]>) -> Which {
    Which::Name { name: name.into(), token: token.map(<[u8]>::to_vec) }
}

fn alone(name: &str, token: Option<&[u8]>) -> Which {
    Which::Alone { name: name.into(), token: token.map(<[u8]>::to_vec) }
}

impl Member {
    /// Asks for a timed hold; the asker has the same number as the hold.
    fn hold(&mut self, id: u128, names: &[&str]) -> Vec<Output> {
        self.step(Input::AcquireTimed(id as u64, asked(id, names, Wait::Forever)))
    }

    fn run(&mut self, which: Which, operation: Operation) -> Vec<Output> {
        self.step(Input::Timed(99, which, operation))
    }

    /// What is said of a hold that is here, or not.
    fn result(&mut self, which: Which, operation: Operation) -> Result<TimedHold, Refusal> {
        match self.run(which, operation).remove(0) {
            Output::Timed(99, result) => result.map(|hold| *hold),
            other => panic!("{other:?}"),
        }
    }

    fn is_here(&mut self, id: u128) -> bool {
        self.result(by_id(id), Operation::Look).is_ok()
    }

    /// The time of the session that was opened last may be over.
    fn expire(&mut self) -> Vec<Output> {
        let owner = self.member.last_session().unwrap().number;
        self.step(Input::Timer(Timer::Session(Owner(owner))))
    }
}

fn hold(id: u128, name: &str, fence: u64, left: Duration) -> TimedHold {
    let AcquireTimed { id, names, permits, ttl, who, token, .. } =
        asked(id, &[name], Wait::Forever);
    let member = "a".into();
    TimedHold { id, names, permits, fences: vec![fence], who, token, member, ttl, left }
}

fn told(asker: u64, hold: TimedHold) -> Output {
    Output::Timed(asker, Ok(Box::new(hold)))
}

#[test]
fn a_hold_lives_for_its_time_and_then_the_next_one_has_the_lock() {
    let mut member = Member::ready(1, "naimi-trehel");
    let first = hold(1, "x", member_fence(0), TTL);
    assert_eq!(member.hold(1, &["x"]), [told(1, first)]);
    let owner = Owner(member.member.last_session().unwrap().number);
    assert_eq!(member.driver.timers[&Timer::Session(owner)], Some(TTL));
    assert_eq!(member.hold(2, &["x"]), []);
    member.pass(TTL - Duration::from_secs(1));
    assert_eq!(member.result(by_id(1), Operation::Look).unwrap().left, Duration::from_secs(1));
    assert_eq!(member.step(Input::Timer(Timer::Session(owner))), []);
    member.pass(Duration::from_secs(1));
    // Nobody has noticed yet, but it is over. What the next one has left counts from its grant.
    let second = hold(2, "x", member_fence(1), TTL);
    let why = Refusal::NoSuchHold(HoldId(1).to_string());
    let gone = Output::Timed(99, Err(why));
    assert_eq!(member.run(by_id(1), Operation::Look), [gone, told(2, second)]);
    member.pass(TTL);
    assert_eq!(member.expire(), []);
    assert!(member.member.is_at_rest());
}

/// The fence of a lock that was handed over so often.
fn member_fence(handovers: u64) -> u64 {
    let mut member = Member::ready(1, "naimi-trehel");
    let owner = member.open(None);
    let names = vec!["x".to_string()];
    let asked = Acquire { names, permits: 1, wait: Wait::Forever };
    let out = member.step(Input::Request(owner, 1, asked));
    let [Output::Notice(_, Notice::Granted { fences, .. })] = &out[..] else { panic!("{out:?}") };
    fences[0] + handovers
}

#[test]
fn a_hold_is_found_by_its_lock_and_its_token() {
    let mut member = Member::ready(1, "naimi-trehel");
    member.step(Input::AcquireTimed(1, asked(1, &["x", "y"], Wait::Forever)));
    for name in ["x", "y"] {
        for token in [None, Some(TOKEN)] {
            let found = member.result(by_name(name, token), Operation::Look);
            assert_eq!(found.unwrap().id, HoldId(1));
        }
        for token in [&b""[..], b"min", b"mine ", b"yours"] {
            for operation in
                [Operation::Look, Operation::Release, Operation::Renew(Renewal::To(TTL))]
            {
                let refused = member.result(by_name(name, Some(token)), operation);
                assert_eq!(refused, Err(Refusal::OtherHolder(name.to_string())));
            }
        }
    }
    assert!(matches!(member.result(by_name("a b", None), Operation::Look), Err(Refusal::Name(_))));
    let none = Refusal::NoSuchHold("z".to_string());
    assert_eq!(member.result(by_name("z", None), Operation::Look), Err(none));
    let released = member.result(by_name("y", Some(TOKEN)), Operation::Release).unwrap();
    assert_eq!(released.names, ["x", "y"]);
    for name in ["x", "y"] {
        let none = Refusal::NoSuchHold(name.to_string());
        assert_eq!(member.result(by_name(name, Some(TOKEN)), Operation::Look), Err(none));
    }
}

#[test]
fn one_lock_is_compared_and_released_or_renewed_in_one_step() {
    let mut member = Member::ready(1, "naimi-trehel");
    let first = hold(1, "x", member_fence(0), TTL);
    assert_eq!(member.hold(1, &["x"]), [told(1, first.clone())]);
    let other = || [Output::Timed(99, Err(Refusal::OtherHolder("x".into())))];
    for operation in [Operation::Release, Operation::Renew(Renewal::To(2 * TTL))] {
        for token in [&b""[..], b"min", b"mine ", b"yours"] {
            assert_eq!(member.run(alone("x", Some(token)), operation), other());
        }
    }
    let renewed = TimedHold { ttl: 2 * TTL, left: 2 * TTL, ..first };
    let renewal = Operation::Renew(Renewal::To(2 * TTL));
    assert_eq!(member.run(alone("x", Some(TOKEN)), renewal), [told(99, renewed.clone())]);
    assert_eq!(member.run(alone("x", Some(TOKEN)), Operation::Release), [told(99, renewed)]);
    let gone = [Output::Timed(99, Err(Refusal::NoSuchHold("x".into())))];
    assert_eq!(member.run(alone("x", Some(TOKEN)), Operation::Release), gone);
    // Whatever the token is, but there has to be one.
    member.hold(2, &["x"]);
    assert!(member.result(alone("x", None), Operation::Release).is_ok());
    let nameless = AcquireTimed { token: Vec::new(), ..asked(3, &["x"], Wait::Forever) };
    member.step(Input::AcquireTimed(3, nameless));
    for token in [None, Some(&b""[..])] {
        assert_eq!(member.run(alone("x", token), Operation::Release), other());
    }
    assert!(member.is_here(3));
}

#[test]
fn whoever_names_one_lock_alone_never_ends_a_hold_of_several() {
    let mut member = Member::ready(1, "naimi-trehel");
    member.hold(1, &["x", "y"]);
    for name in ["x", "y"] {
        for token in [None, Some(TOKEN)] {
            let refused = member.result(alone(name, token), Operation::Release);
            assert_eq!(refused, Err(Refusal::OtherHolder(name.to_string())));
        }
    }
    assert!(member.is_here(1));
}

#[test]
fn whoever_holds_a_lock_otherwise_is_another_holder() {
    for algorithm in ["naimi-trehel", "bouabdallah-laforest"] {
        let mut member = Member::ready(1, algorithm);
        let owner = member.open(None);
        let acquire = Acquire { names: vec!["x".into()], permits: 1, wait: Wait::Forever };
        member.step(Input::Request(owner, 1, acquire));
        let other = Err(Refusal::OtherHolder("x".to_string()));
        for which in [by_name("x", Some(TOKEN)), alone("x", Some(TOKEN)), alone("x", None)] {
            assert_eq!(member.result(which, Operation::Release), other);
        }
        assert_eq!(member.result(by_name("x", None), Operation::Look), other);
        assert!(matches!(
            member.result(by_name("free", None), Operation::Look),
            Err(Refusal::NoSuchHold(_))
        ));
    }
}

#[test]
fn a_renewal_sets_what_is_left_or_adds_to_it() {
    let mut member = Member::ready(1, "naimi-trehel");
    member.hold(1, &["x"]);
    let second = Duration::from_secs(1);
    member.pass(9 * second);
    let renewed = member.result(by_id(1), Operation::Renew(Renewal::To(3 * second))).unwrap();
    assert_eq!((renewed.ttl, renewed.left), (3 * second, 3 * second));
    member.pass(second);
    let renewed = member.result(by_id(1), Operation::Renew(Renewal::By(5 * second))).unwrap();
    assert_eq!((renewed.ttl, renewed.left), (7 * second, 7 * second));
    let most = *TIMED_TTL_RANGE.end();
    let renewed = member.result(by_id(1), Operation::Renew(Renewal::By(most))).unwrap();
    assert_eq!(renewed.left, most);
    let long = member.result(by_id(1), Operation::Renew(Renewal::To(most + second)));
    assert!(matches!(long, Err(Refusal::Ttl { .. })), "{long:?}");
    // A renewal may also shorten it.
    member.result(by_id(1), Operation::Renew(Renewal::To(second))).unwrap();
    member.pass(second);
    let late = member.result(by_id(1), Operation::Renew(Renewal::To(second)));
    assert!(matches!(late, Err(Refusal::NoSuchHold(_))), "{late:?}");
}

#[test]
fn whoever_releases_is_told_before_the_next_one_is_inside() {
    let mut member = Member::ready(1, "naimi-trehel");
    let first = hold(1, "x", member_fence(0), TTL);
    let second = hold(2, "x", member_fence(1), TTL);
    assert_eq!(member.hold(1, &["x"]), [told(1, first.clone())]);
    assert_eq!(member.hold(2, &["x"]), []);
    let released = member.run(by_name("x", Some(TOKEN)), Operation::Release);
    assert_eq!(released, [told(99, first), told(2, second.clone())]);
    assert!(!member.is_here(1));
    assert_eq!(member.result(by_name("x", None), Operation::Look), Ok(second));
}

#[test]
fn who_goes_away_waits_no_more_and_keeps_nothing() {
    let mut member = Member::ready(1, "naimi-trehel");
    for id in 1..=3 {
        member.hold(id, &["x"]);
    }
    assert_eq!(member.step(Input::CancelTimed(HoldId(2))), []);
    // It was granted, but its client is gone.
    let third = hold(3, "x", member_fence(1), TTL);
    assert_eq!(member.step(Input::CancelTimed(HoldId(1))), [told(3, third)]);
    assert_eq!(member.step(Input::CancelTimed(HoldId(3))), []);
    assert_eq!(member.step(Input::CancelTimed(HoldId(4))), []);
    assert!(member.member.is_at_rest());
    assert_eq!(member.member.last_session(), None);
}

#[test]
fn what_cannot_be_asked_for_leaves_nothing_behind() {
    let mut member = Member::ready(1, "naimi-trehel");
    let wrong = |change: &dyn Fn(&mut AcquireTimed)| {
        let mut asked = asked(1, &["x"], Wait::Forever);
        change(&mut asked);
        asked
    };
    let (least, most) = (*TIMED_TTL_RANGE.start(), *TIMED_TTL_RANGE.end());
    let cases = [
        (wrong(&|it| it.ttl = Duration::ZERO), "bad-ttl"),
        (wrong(&|it| it.ttl = least - Duration::from_nanos(1)), "bad-ttl"),
        (wrong(&|it| it.ttl = most + least), "bad-ttl"),
        (wrong(&|it| it.token = vec![0; LONGEST_TOKEN + 1]), "long-token"),
        (wrong(&|it| it.names = vec![]), "no-names"),
        (wrong(&|it| it.names = vec!["a b".into()]), "bad-name"),
        (wrong(&|it| it.permits = 0), "bad-permits"),
    ];
    for (asked, code) in cases {
        let out = member.step(Input::AcquireTimed(5, asked));
        let [Output::Timed(5, Err(why))] = &out[..] else { panic!("{out:?}") };
        assert_eq!(why.code(), code);
        assert_eq!(member.member.last_session(), None);
    }
    for ttl in [least, most] {
        let token = vec![0; LONGEST_TOKEN];
        let out = member
            .step(Input::AcquireTimed(5, wrong(&|it| (it.ttl, it.token) = (ttl, token.clone()))));
        assert!(matches!(&out[..], [Output::Timed(5, Ok(_))]), "{out:?}");
        let again = member.hold(1, &["y"]);
        assert!(matches!(&again[..], [Output::Timed(1, Err(Refusal::OtherRequest(_)))]));
        member.result(by_id(1), Operation::Release).unwrap();
    }
    assert!(member.member.is_at_rest());
}

#[test]
fn a_request_that_does_not_wait_is_refused_and_one_with_patience_gives_up() {
    let mut member = Member::ready(1, "naimi-trehel");
    member.hold(1, &["x"]);
    let taken = member.step(Input::AcquireTimed(2, asked(2, &["x"], Wait::no())));
    assert_eq!(taken, [Output::Timed(2, Err(Refusal::Taken))]);
    let patient = asked(3, &["x"], Wait::AtMost(TTL / 2));
    assert_eq!(member.step(Input::AcquireTimed(3, patient)), []);
    let set =
        |(timer, after): (&Timer, &Option<Duration>)| (*after == Some(TTL / 2)).then_some(*timer);
    let timer = member.driver.timers.iter().find_map(set).unwrap();
    assert_eq!(member.step(Input::Timer(timer)), [Output::Timed(3, Err(Refusal::TimedOut))]);
    assert!(member.is_here(1) && !member.is_here(3));
}

#[test]
fn permits_are_found_by_id_and_not_by_name() {
    let mut member = Member::ready(1, "naimi-trehel");
    for id in [1, 2] {
        let asked = AcquireTimed { permits: 2, ..asked(id, &["x"], Wait::Forever) };
        let out = member.step(Input::AcquireTimed(id as u64, asked));
        assert!(matches!(&out[..], [Output::Timed(_, Ok(_))]), "{out:?}");
    }
    let none = member.result(by_name("x", Some(TOKEN)), Operation::Release);
    assert_eq!(none, Err(Refusal::NoSuchHold("x".into())));
    assert!(member.is_here(1) && member.is_here(2));
    member.result(by_id(1), Operation::Release).unwrap();
    assert!(!member.is_here(1) && member.is_here(2));
}

#[test]
fn nobody_resumes_the_session_of_a_timed_hold() {
    let mut member = Member::ready(1, "naimi-trehel");
    member.hold(5, &["x"]);
    let SessionId { incarnation, number, .. } = member.member.last_session().unwrap();
    let id = SessionId::new(incarnation, number, 5u128.to_be_bytes());
    assert_eq!(member.member.last_session(), Some(id));
    let mut out = Vec::new();
    let Member { member: whole, driver } = &mut member;
    let resumed = whole.serve(driver, &mut out, |service, host, out| service.resume(id, host, out));
    assert_eq!((resumed, out), (Err(Over::Unknown), vec![]));
}

#[test]
fn lists_show_who_has_a_timed_hold_and_who_waits_for_one() {
    let mut member = Member::ready(1, "naimi-trehel");
    member.hold(1, &["x"]);
    member.hold(2, &["x"]);
    let mut out = Vec::new();
    let Member { member: whole, driver } = &mut member;
    let query = Query { limit: 10, ..Query::default() };
    whole.serve(driver, &mut out, |service, host, out| service.list(1, query, host, out));
    let [Output::Page(1, page)] = &out[..] else { panic!("{out:?}") };
    let lines = page.lines.iter().map(|it| (it.key.place, &*it.label, it.pid, &*it.host));
    assert_eq!(lines.collect::<Vec<_>>(), [(0, "job", 7, "there"), (1, "job", 7, "there")]);
}

#[test]
fn a_member_that_stops_leaves_nobody_without_an_answer() {
    let mut member = Member::ready(2, "naimi-trehel");
    let name = member.name_at(0);
    member.hold(1, &[&name]);
    member.hold(2, &[&name]);
    member.run(by_id(9), Operation::Look);
    let mut out = Vec::new();
    let Member { member: whole, driver } = &mut member;
    whole.serve(driver, &mut out, |service, _, out| service.stop(out));
    let stopped = |asker| Output::Timed(asker, Err(Refusal::Stopped));
    assert_eq!(out, [stopped(2), stopped(99)]);
    assert_eq!(member.run(by_id(9), Operation::Look), [stopped(99)]);
    for which in [by_id(1), alone(&name, Some(TOKEN))] {
        assert_eq!(member.run(which, Operation::Release), [stopped(99)], "it may be elsewhere");
    }
    assert_eq!(member.hold(3, &[&name]), [stopped(3)]);
}

// What is not here.

fn ask(member: usize, number: u64, which: &Which, operation: Operation) -> Output {
    Output::Ask(member, number, Question::Timed(which.clone(), operation))
}

#[test]
fn what_is_not_here_is_asked_of_all_others_and_the_one_that_has_it_answers() {
    let mut member = Member::ready(3, "naimi-trehel");
    let which = alone("x", Some(TOKEN));
    let out = member.run(which.clone(), Operation::Release);
    assert_eq!(out, [1, 2].map(|it| ask(it, 1, &which, Operation::Release)));
    assert_eq!(member.driver.timers[&Timer::Question(1)], Some(ANSWER_TIME));
    let none = || Answer::Timed(Err(Refusal::NoSuchHold("x".into())));
    assert_eq!(member.answer(1, 1, none()), []);
    let found = hold(1, "x", 5, TTL);
    let answer = Answer::Timed(Ok(Box::new(found.clone())));
    assert_eq!(member.answer(2, 1, answer.clone()), [told(99, found)]);
    assert_eq!(member.driver.timers[&Timer::Question(1)], None);
    assert_eq!(member.answer(2, 1, answer), []);
}

#[test]
fn there_is_no_hold_only_when_all_have_said_so() {
    let none = || Answer::Timed(Err(Refusal::NoSuchHold("x".into())));
    let gone = |why| [Output::Timed(99, Err(why))];
    let mut member = Member::ready(3, "naimi-trehel");
    member.run(by_name("x", None), Operation::Look);
    assert_eq!(member.answer(1, 1, none()), []);
    // The same member twice is not two.
    assert_eq!(member.answer(1, 1, none()), []);
    assert_eq!(member.answer(2, 1, none()), gone(Refusal::NoSuchHold("x".into())));

    member.run(by_name("x", None), Operation::Look);
    let other = Refusal::OtherHolder("x".into());
    assert_eq!(member.answer(2, 2, Answer::Timed(Err(other.clone()))), []);
    assert_eq!(member.answer(1, 2, none()), gone(other));

    member.run(by_name("x", None), Operation::Look);
    assert_eq!(member.answer(2, 3, none()), []);
    let silent = Refusal::Silent("b".into());
    assert_eq!(member.step(Input::Timer(Timer::Question(3))), gone(silent.clone()));

    member.run(by_name("x", None), Operation::Look);
    assert_eq!(member.answer(2, 4, none()), []);
    assert_eq!(member.step(Input::LinkDown(1)), gone(silent.clone()));

    // Whoever is not connected may have it.
    member.run(by_name("x", None), Operation::Look);
    assert_eq!(member.answer(2, 5, none()), gone(silent));
    member.step(Input::LinkDown(2));
    assert_eq!(member.run(by_name("x", None), Operation::Look), gone(Refusal::Silent("c".into())));
}

#[test]
fn a_member_does_what_another_one_asks_for() {
    let mut member = Member::ready(2, "naimi-trehel");
    let name = member.name_at(0);
    member.hold(1, &[&name]);
    let mut hear = |which: &Which, operation| {
        let question = Question::Timed(which.clone(), operation);
        let (epoch, number) = (Epoch::FIRST, 4);
        let out = member.step(Input::Message(1, PeerMessage::Ask { epoch, number, question }));
        let [Output::Answer(1, 4, Answer::Timed(result))] = &out[..] else { panic!("{out:?}") };
        result.clone().map(|hold| *hold)
    };
    let which = by_name(&name, Some(TOKEN));
    let renewed = hear(&which, Operation::Renew(Renewal::To(2 * TTL))).unwrap();
    assert_eq!((renewed.left, &*renewed.member), (2 * TTL, "a"));
    assert_eq!(hear(&which, Operation::Look), Ok(renewed.clone()));
    assert_eq!(hear(&which, Operation::Release), Ok(renewed));
    // It is not asked of the others again.
    assert_eq!(hear(&which, Operation::Release), Err(Refusal::NoSuchHold(name.clone())));
}

#[test]
fn a_member_asks_only_so_many_questions_at_a_time() {
    let mut member = Member::ready(2, "naimi-trehel");
    for _ in 0..MOST_QUESTIONS {
        assert_eq!(member.run(by_id(1), Operation::Look).len(), 1);
    }
    let busy = [Output::Timed(99, Err(Refusal::Busy))];
    assert_eq!(member.run(by_id(1), Operation::Look), busy);
    let none = Answer::Timed(Err(Refusal::NoSuchHold("x".into())));
    assert_eq!(member.answer(1, 1, none).len(), 1);
    assert_ne!(member.run(by_id(1), Operation::Look), busy);
}

#[test]
fn before_the_group_begins_nobody_can_say_where_a_hold_is() {
    let mut member = Member::of(2, "naimi-trehel");
    let refused = member.result(by_id(1), Operation::Look).unwrap_err();
    assert_eq!(refused.code(), "not-ready");
}

#[test]
fn a_release_is_done_although_the_next_one_has_the_lock_by_the_time_that_all_have_answered() {
    let mut member = Member::ready(3, "naimi-trehel");
    let other = Answer::Timed(Err(Refusal::OtherHolder("x".into())));
    member.run(by_name("x", Some(TOKEN)), Operation::Release);
    assert_eq!(member.answer(2, 1, other.clone()), []);
    let found = hold(1, "x", 5, TTL);
    assert_eq!(member.answer(1, 1, Answer::Timed(Ok(Box::new(found.clone())))), [told(99, found)]);
    // Whoever does not answer may have released it.
    for (operation, code) in
        [(Operation::Release, "member-silent"), (Operation::Look, "other-holder")]
    {
        let out = member.run(by_name("x", Some(TOKEN)), operation);
        let Output::Ask(_, number, _) = &out[0] else { panic!("{out:?}") };
        assert_eq!(member.answer(2, *number, other.clone()), []);
        let out = member.step(Input::Timer(Timer::Question(*number)));
        let [Output::Timed(99, Err(why))] = &out[..] else { panic!("{out:?}") };
        assert_eq!(why.code(), code);
    }
}
