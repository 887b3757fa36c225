//! Sessions, requests, questions and exclusions of one member, step by step.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use catraca_algorithms::hi_adsd::Msg;
use catraca_core::{NodeId, NodeSet};

use super::*;
use crate::listing::{Line, LineKey, Query};
use crate::member::{Input, WholeMember};
use crate::question::PeerMessage;
use crate::request::Acquire;
use crate::session::{
    BYTES_OF_A_NAME, MOST_NAME_BYTES, MOST_REQUESTS, MOST_SESSIONS, SessionId, TTL_RANGE, Who,
};
use crate::status::Readiness;
use crate::testing::Recorder;
use crate::turns::Turns;
use crate::view::Epoch;
use crate::view::tests::view;
use crate::wait::Wait;

const TTL: Duration = Duration::from_secs(10);

pub(super) struct Member {
    pub(super) member: WholeMember,
    pub(super) driver: Recorder,
}

impl Member {
    /// Member 0 of a group.
    pub(super) fn of(count: usize, algorithm: &str) -> Self {
        let member = WholeMember::new(view(count, 0, algorithm), 1, Turns::USUAL, Time(0));
        Member { member, driver: Recorder::default() }
    }

    /// The same, after all others have been connected.
    pub(super) fn ready(count: usize, algorithm: &str) -> Self {
        let mut member = Self::of(count, algorithm);
        for other in 1..count {
            member.step(Input::LinkUp(other, 1));
        }
        member
    }

    pub(super) fn step(&mut self, input: Input<'_>) -> Vec<Output> {
        let mut out = Vec::new();
        self.member.step(input, &mut self.driver, &mut out);
        out
    }

    pub(super) fn open(&mut self, ttl: Option<Duration>) -> Owner {
        assert_eq!(self.step(Input::Open(Who::default(), ttl)), []);
        Owner(self.member.last_session().unwrap().number)
    }

    fn ask(&mut self, owner: Owner, number: u32, names: &[&str], wait: Wait) -> Vec<Output> {
        self.step(Input::Request(owner, number, acquire(names, wait)))
    }

    pub(super) fn answer(&mut self, member: usize, number: u64, answer: Answer) -> Vec<Output> {
        let epoch = Epoch::FIRST;
        self.step(Input::Message(member, PeerMessage::Answer { epoch, number, answer }))
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.driver.now = self.driver.now + time;
    }

    /// A name whose token begins at `member`.
    pub(super) fn name_at(&self, member: usize) -> String {
        let mut names = (0..).map(|number: u32| alloc::format!("lock/{number}"));
        names.find(|name| self.member.service().view().home(name) == member).unwrap()
    }
}

fn acquire(names: &[&str], wait: Wait) -> Acquire {
    Acquire { names: names.iter().map(|name| name.to_string()).collect(), permits: 1, wait }
}

fn granted(owner: Owner, outputs: &[Output]) -> Vec<u32> {
    let granted = |output: &Output| match output {
        Output::Notice(to, Notice::Granted { request, .. }) if *to == owner => Some(*request),
        _ => None,
    };
    outputs.iter().filter_map(granted).collect()
}

fn refused(owner: Owner, request: u32, why: Refusal) -> Output {
    Output::Notice(owner, Notice::Refused { request, why })
}

fn over(owner: Owner, why: Over) -> Output {
    Output::Notice(owner, Notice::Over(why))
}

#[test]
fn requests_of_a_session_are_served_in_the_order_of_asking_and_released_by_number() {
    let mut member = Member::ready(1, "naimi-trehel");
    let owner = member.open(None);
    let first = member.ask(owner, 1, &["x"], Wait::Forever);
    assert_eq!(granted(owner, &first), [1]);
    assert_eq!(member.ask(owner, 2, &["x"], Wait::Forever), []);
    assert_eq!(member.ask(owner, 3, &["x"], Wait::Forever), []);
    let released = member.step(Input::Release(owner, 1));
    assert_eq!(released[0], Output::Notice(owner, Notice::Released { request: 1 }));
    assert_eq!(granted(owner, &released), [2]);
    // One that is taken back is never granted.
    member.step(Input::Release(owner, 3));
    assert_eq!(granted(owner, &member.step(Input::Release(owner, 2))), []);
    assert_eq!(member.member.service().holds().count(), 0);
}

#[test]
fn a_hold_is_an_entry_in_the_table_with_a_fence_for_each_name() {
    let mut member = Member::ready(1, "naimi-trehel");
    let owner = member.open(None);
    member.pass(Duration::from_secs(3));
    member.ask(owner, 1, &["b", "a"], Wait::Forever);
    let holds: Vec<Hold> = member.member.service().holds().collect();
    let Hold { names, fences, since, owner: whose, permits, .. } = &holds[0];
    assert_eq!((names.len(), fences.len(), *permits, *whose), (2, 2, 1, owner));
    assert_eq!(*since, member.driver.now);
    assert_eq!(member.member.service().hold(holds[0].id).as_ref(), Some(&holds[0]));
}

#[test]
fn asking_again_under_the_same_number_asks_for_nothing_new() {
    let mut member = Member::ready(1, "naimi-trehel");
    let owner = member.open(Some(TTL));
    let first = member.ask(owner, 1, &["x"], Wait::Forever);
    assert_eq!(member.ask(owner, 1, &["x"], Wait::Forever), first, "it is told again");
    member.ask(owner, 2, &["x"], Wait::Forever);
    assert_eq!(member.ask(owner, 2, &["x"], Wait::Forever), [], "it waits already");
    assert_eq!(member.member.shard().sizes(), [1, 1, 1]);
}

#[test]
fn a_session_that_is_not_renewed_in_time_ends_and_gives_everything_back() {
    let mut member = Member::ready(1, "naimi-trehel");
    let (owner, other) = (member.open(Some(TTL)), member.open(Some(TTL)));
    member.ask(owner, 1, &["x"], Wait::Forever);
    member.ask(other, 1, &["x"], Wait::Forever);
    member.pass(TTL / 2);
    assert_eq!(member.step(Input::Renew(other)), []);
    // A timer that comes early, or after a renewal, ends nothing.
    assert_eq!(member.step(Input::Timer(Timer::Session(owner))), []);
    member.pass(TTL / 2);
    assert_eq!(member.step(Input::Renew(owner)), [over(owner, Over::Expired)], "it is too late");
    let ended = member.step(Input::Timer(Timer::Session(owner)));
    assert_eq!(ended[0], over(owner, Over::Expired));
    assert_eq!(granted(other, &ended), [1]);
    assert_eq!(member.step(Input::Renew(owner)), [over(owner, Over::Unknown)]);
}

#[test]
fn a_time_to_live_out_of_its_range_and_too_many_sessions_are_refused() {
    let mut member = Member::ready(1, "naimi-trehel");
    let program = Owner::PROGRAM;
    for ttl in [Duration::from_millis(99), Duration::from_secs(86_401), Duration::MAX] {
        let told = member.step(Input::Open(Who::default(), Some(ttl)));
        assert_eq!(told, [refused(program, 0, Refusal::Ttl { ttl, least: *TTL_RANGE.start() })]);
    }
    for _ in 0..MOST_SESSIONS {
        member.open(None);
    }
    let told = member.step(Input::Open(Who::default(), None));
    assert_eq!(told, [refused(program, 0, Refusal::TooManySessions)]);
}

#[test]
fn a_session_has_a_limited_number_of_requests() {
    let mut member = Member::ready(1, "naimi-trehel");
    let owner = member.open(None);
    let one_more = MOST_REQUESTS as u32;
    for number in 0..one_more {
        member.ask(owner, number, &["x"], Wait::Forever);
    }
    let told = member.ask(owner, one_more, &["x"], Wait::Forever);
    assert_eq!(told, [refused(owner, one_more, Refusal::TooManyRequests)]);
    assert_eq!(member.step(Input::Close(owner)), [over(owner, Over::Closed)]);
    assert_eq!(member.member.shard().sizes(), [1, 0, 0]);
}

#[test]
fn the_names_of_all_requests_together_are_bounded_whoever_asks() {
    let mut member = Member::ready(1, "naimi-trehel");
    let (owner, other) = (member.open(None), member.open(None));
    assert_eq!(granted(owner, &member.ask(owner, 1, &["a", "b"], Wait::Forever)), [1]);
    let bytes = |member: &Member| member.member.service().name_bytes;
    let kept = bytes(&member);
    assert_eq!(kept, 2 * (1 + BYTES_OF_A_NAME));
    // As if others had asked for so much that there is room for one name more.
    let others = MOST_NAME_BYTES - kept - (1 + BYTES_OF_A_NAME);
    let Member { member: whole, driver } = &mut member;
    whole.serve(driver, &mut Vec::new(), |service, _, _| service.name_bytes += others);
    for (session, number) in [(owner, 2), (other, 1)] {
        let told = member.ask(session, number, &["c", "d"], Wait::Forever);
        assert_eq!(told, [refused(session, number, Refusal::Busy)]);
    }
    assert_eq!(granted(other, &member.ask(other, 2, &["c"], Wait::Forever)), [2]);
    let told = member.ask(other, 3, &["d"], Wait::Forever);
    assert_eq!(told, [refused(other, 3, Refusal::Busy)]);
    member.step(Input::Close(owner));
    assert_eq!(granted(other, &member.ask(other, 3, &["d"], Wait::Forever)), [3]);
    member.step(Input::Close(other));
    assert_eq!(bytes(&member), others, "whoever is gone has no names");
}

#[test]
fn what_was_asked_for_before_the_group_is_ready_begins_in_order_when_it_is() {
    let mut member = Member::of(2, "naimi-trehel");
    let owner = member.open(None);
    let name = member.name_at(0);
    for number in 1..=2 {
        assert_eq!(member.ask(owner, number, &[&name], Wait::Forever), []);
    }
    let absent = Readiness::Waiting(vec!["b".to_string()]);
    assert_eq!(member.member.service().readiness(), absent);
    let begun = member.step(Input::LinkUp(1, 1));
    assert_eq!(begun[0], Output::Ready);
    assert_eq!(granted(owner, &begun), [1]);
    assert_eq!(member.member.service().readiness(), Readiness::Ready);
}

#[test]
fn patience_ends_with_the_reason() {
    let mut member = Member::of(2, "naimi-trehel");
    let owner = member.open(None);
    let (own, theirs) = (member.name_at(0), member.name_at(1));
    let wait = Wait::AtMost(TTL);
    let give_up = |member: &mut Member| {
        let timers = core::mem::take(&mut member.driver.timers);
        let set = timers.into_iter().find_map(|(timer, after)| match timer {
            Timer::Request(_) if after.is_some() => Some(timer),
            _ => None,
        });
        member.step(Input::Timer(set.unwrap()))
    };
    member.ask(owner, 1, &[&own], wait);
    let not_ready = Refusal::NotReady("'b'".to_string());
    assert_eq!(give_up(&mut member), [refused(owner, 1, not_ready)]);
    member.step(Input::LinkUp(1, 1));
    member.ask(owner, 2, &[&theirs], wait);
    assert_eq!(give_up(&mut member), [refused(owner, 2, Refusal::TimedOut)]);
    // Without an answer to a question, it depends on whether everybody could answer.
    member.ask(owner, 3, &[&theirs], Wait::no());
    assert_eq!(give_up(&mut member), [refused(owner, 3, Refusal::Taken)]);
    member.step(Input::LinkDown(1));
    member.ask(owner, 4, &[&theirs], Wait::no());
    let silent = Refusal::Silent("b".to_string());
    assert_eq!(give_up(&mut member), [refused(owner, 4, silent)]);
    // A member without a lease grants nothing, so it does not know whether somebody has it.
    member.driver.is_lapsed = true;
    for wait in [wait, Wait::no()] {
        member.ask(owner, 5, &[&theirs], wait);
        assert_eq!(give_up(&mut member), [refused(owner, 5, Refusal::Lapsed)]);
    }
    member.driver.is_lapsed = false;
    assert_eq!(member.member.shard().sizes()[2], 0, "nobody waits any more");
}

#[test]
fn who_does_not_wait_is_refused_here_at_once_and_elsewhere_by_the_first_yes() {
    let mut member = Member::ready(3, "naimi-trehel");
    let owner = member.open(None);
    let (own, theirs) = (member.name_at(0), member.name_at(1));
    member.ask(owner, 1, &[&own], Wait::Forever);
    let told = member.ask(owner, 2, &[&own], Wait::no());
    assert_eq!(told, [refused(owner, 2, Refusal::Taken)]);
    let asked = member.ask(owner, 3, &[&theirs], Wait::no());
    let question = || Question::IsHeld(vec![theirs.clone()]);
    assert_eq!(asked, [Output::Ask(1, 1, question()), Output::Ask(2, 1, question())]);
    assert_eq!(member.answer(2, 1, Answer::IsHeld(false)), []);
    let told = member.answer(1, 1, Answer::IsHeld(true));
    assert_eq!(told, [refused(owner, 3, Refusal::Taken)]);
    assert_eq!(member.answer(2, 1, Answer::IsHeld(true)), [], "it comes too late");
}

#[test]
fn who_is_inside_before_the_answer_comes_stays_inside() {
    let mut member = Member::ready(2, "naimi-trehel");
    let owner = member.open(None);
    let own = member.name_at(0);
    // Somebody at the other member holds it; its release and its answer cross.
    let mut other = WholeMember::new(view(2, 1, "naimi-trehel"), 1, Turns::USUAL, Time(0));
    let mut there = Recorder::default();
    let mut out = Vec::new();
    other.step(Input::LinkUp(0, 1), &mut there, &mut out);
    let theirs = acquire(&[&own], Wait::Forever);
    other.step(Input::Acquire(theirs), &mut there, &mut out);
    let request = there.sent.remove(0);
    member.step(Input::Message(1, PeerMessage::Step(request.message())));
    let token = member.driver.sent.remove(0);
    other.step(Input::Message(0, PeerMessage::Step(token.message())), &mut there, &mut out);
    assert!(out.iter().any(|output| matches!(output, Output::Settled(_, Ok(_)))));

    member.ask(owner, 1, &[&own], Wait::no());
    let request = member.driver.sent.remove(0);
    other.step(Input::Message(0, PeerMessage::Step(request.message())), &mut there, &mut out);
    let held = other.service().holds().next().unwrap().id;
    other.serve(&mut there, &mut out, |service, host, out| service.release(held, host, out));
    let token = there.sent.remove(0);
    let told = member.step(Input::Message(1, PeerMessage::Step(token.message())));
    assert_eq!(granted(owner, &told), [1]);
    assert_eq!(member.answer(1, 1, Answer::IsHeld(true)), []);
    assert_eq!(member.member.service().holds().count(), 1);
}

#[test]
fn a_member_answers_whether_somebody_is_inside_and_no_nonsense() {
    let mut member = Member::ready(2, "naimi-trehel");
    let owner = member.open(None);
    let own = member.name_at(0);
    let is_held = |member: &mut Member, names: &[&str]| {
        let names = names.iter().map(|name| name.to_string()).collect();
        let (epoch, question) = (Epoch::FIRST, Question::IsHeld(names));
        let message = PeerMessage::Ask { epoch, number: 7, question };
        member.step(Input::Message(1, message))
    };
    assert_eq!(is_held(&mut member, &[&own]), [Output::Answer(1, 7, Answer::IsHeld(false))]);
    member.ask(owner, 1, &[&own], Wait::Forever);
    let yes = Output::Answer(1, 7, Answer::IsHeld(true));
    assert_eq!(is_held(&mut member, &["free", &own]), [yes]);
    for nonsense in [&[][..], &["a b"], &["x"; 257]] {
        let told = is_held(&mut member, nonsense);
        assert_eq!(told, [Output::Anomaly("a question came that cannot be asked")]);
    }
}

#[test]
fn a_list_of_the_whole_group_waits_for_everybody_but_not_for_ever() {
    let mut member = Member::ready(3, "naimi-trehel");
    let owner = member.open(None);
    let own = member.name_at(0);
    member.ask(owner, 1, &[&own], Wait::Forever);
    let theirs = || {
        let (name, node) = ("theirs".to_string(), "b".to_string());
        let key = LineKey { name, permits: 1, place: 0, node, ticket: 1 };
        let empty = String::new;
        let (label, host) = (empty(), empty());
        let line = Line { key, fence: None, label, pid: 1, host, millis: 0, durable: None };
        Answer::List(Page { lines: vec![line], ..Page::default() })
    };
    let query = || Query { whole_group: true, limit: 10, ..Query::default() };
    let list = |member: &mut Member| {
        let mut out = Vec::new();
        let Member { member, driver } = member;
        member.serve(driver, &mut out, |service, host, out| service.list(9, query(), host, out));
        assert_eq!(out.len(), 2, "both are asked: {out:?}");
    };
    let page = |outputs: Vec<Output>| match &outputs[..] {
        [Output::Page(9, page)] => (page.lines.len(), page.silent.clone()),
        other => panic!("{other:?}"),
    };
    list(&mut member);
    assert_eq!(member.answer(1, 1, theirs()), []);
    let none = || Answer::List(Page::default());
    assert_eq!(page(member.answer(2, 1, none())), (2, vec![]));
    // One does not answer in time; one is cut off meanwhile.
    list(&mut member);
    member.answer(1, 2, theirs());
    let late = member.step(Input::Timer(Timer::Question(2)));
    assert_eq!(page(late), (2, vec!["c".to_string()]));
    list(&mut member);
    member.answer(1, 3, theirs());
    assert_eq!(page(member.step(Input::LinkDown(2))), (2, vec!["c".to_string()]));
    assert_eq!(member.answer(2, 3, none()), [], "it comes too late");
}

#[test]
fn who_is_expelled_refuses_everybody() {
    let mut member = Member::of(2, "naimi-trehel");
    let owner = member.open(None);
    member.ask(owner, 1, &["x"], Wait::Forever);
    let mut told = Vec::new();
    member.member.serve(&mut member.driver, &mut told, |service, host, out| {
        service.expel("restarted", host, out);
    });
    let why = Refusal::Expelled("restarted".to_string());
    assert!(told.contains(&refused(owner, 1, why.clone())));
    assert_eq!(member.ask(owner, 2, &["x"], Wait::Forever), [refused(owner, 2, why)]);
}

/// What member 1 says that takes this one for crashed.
fn exclusion() -> Vec<u8> {
    postcard::to_allocvec(&Msg::IAmAlive(NodeSet::from_iter([NodeId(0)]))).unwrap()
}

#[test]
fn an_excluded_member_ends_the_sessions_that_hold_what_may_be_given_away() {
    let mut member = Member::ready(2, "robust-k");
    let (holds, waits) = (member.open(Some(TTL)), member.open(Some(TTL)));
    // Both members ask; the other one acknowledges nothing yet, so the first waits.
    member.ask(holds, 1, &["x"], Wait::Forever);
    member.ask(waits, 1, &["y"], Wait::Forever);
    let body = &exclusion()[..];
    let message = PeerMessage::Detector { epoch: Epoch::FIRST, body };
    let told = member.step(Input::Message(1, message));
    let why = Refusal::Excluded("b".to_string());
    assert!(told.contains(&Output::Excluded(1)));
    for owner in [holds, waits] {
        assert!(told.contains(&refused(owner, 1, why.clone())), "{told:?}");
    }
    assert_eq!(member.ask(waits, 2, &["z"], Wait::Forever), [refused(waits, 2, why)]);
    assert_eq!(member.member.service().readiness(), Readiness::Excluded("b".to_string()));
}

#[test]
fn a_grant_and_an_exclusion_in_one_go_leave_nobody_inside() {
    // Alone in its group of two the lock is granted as soon as the other has replied.
    let mut member = Member::ready(2, "robust-k");
    let owner = member.open(Some(TTL));
    let mut other = WholeMember::new(view(2, 1, "robust-k"), 1, Turns::USUAL, Time(0));
    let (mut there, mut out) = (Recorder::default(), Vec::new());
    other.step(Input::LinkUp(0, 1), &mut there, &mut out);
    member.ask(owner, 1, &["x"], Wait::Forever);
    let mut told = Vec::new();
    for _ in 0..20 {
        for sent in core::mem::take(&mut member.driver.sent) {
            let message = PeerMessage::Step(sent.message());
            other.step(Input::Message(0, message), &mut there, &mut out);
        }
        for sent in core::mem::take(&mut there.sent) {
            told.extend(member.step(Input::Message(1, PeerMessage::Step(sent.message()))));
        }
    }
    assert_eq!(granted(owner, &told), [1]);
    let body = &exclusion()[..];
    let message = PeerMessage::Detector { epoch: Epoch::FIRST, body };
    let told = member.step(Input::Message(1, message));
    let why = Refusal::Excluded("b".to_string());
    assert!(told.contains(&over(owner, Over::Excluded(why))), "{told:?}");
    assert!(!member.member.service().is_open(owner));
}

#[test]
fn a_time_to_live_longer_than_the_detectors_patience_is_refused_where_it_matters() {
    let mut member = Member::ready(2, "robust-k");
    let ttl = Duration::from_secs(11);
    let owner = member.open(Some(ttl));
    let most = crate::USUAL_DETECTOR.timeout;
    let told = member.ask(owner, 1, &["x"], Wait::Forever);
    assert_eq!(told, [refused(owner, 1, Refusal::LongTtl { ttl, most })]);
}

#[test]
fn a_member_that_stops_tells_its_sessions_and_gives_nothing_away() {
    let mut member = Member::ready(1, "naimi-trehel");
    let owner = member.open(Some(TTL));
    member.ask(owner, 1, &["x"], Wait::Forever);
    member.step(Input::Acquire(acquire(&["x"], Wait::Forever)));
    let mut out = Vec::new();
    member.member.serve(&mut member.driver, &mut out, |service, _, out| service.stop(out));
    assert_eq!(out[0], over(owner, Over::Stopping));
    assert!(matches!(&out[1], Output::Settled(_, Err(Refusal::Stopped))));
    assert_eq!(member.member.shard().sizes(), [1, 1, 1], "what is held stays held");
}

#[test]
fn a_resumed_session_is_told_again_what_it_holds_and_only_by_its_own_id() {
    let mut member = Member::ready(1, "naimi-trehel");
    let owner = member.open(Some(TTL));
    member.ask(owner, 1, &["x"], Wait::Forever);
    member.ask(owner, 2, &["x"], Wait::Forever);
    let id = member.member.last_session().unwrap();
    let resume = |member: &mut Member, id: SessionId| {
        let mut told = Vec::new();
        let Member { member, driver } = member;
        let resume = |service: &mut Service, host: &mut dyn Host, out: &mut Vec<Output>| {
            service.resume(id, host, out)
        };
        (member.serve(driver, &mut told, resume), told)
    };
    let (resumed, told) = resume(&mut member, id);
    assert_eq!((resumed, granted(owner, &told)), (Ok(owner), vec![1]));
    let wrong = SessionId::new(id.incarnation, id.number, [1; 16]);
    let restarted = SessionId::new(id.incarnation + 1, id.number, [0; 16]);
    for id in [wrong, restarted] {
        let (resumed, told) = resume(&mut member, id);
        assert_eq!((resumed, told), (Err(Over::Unknown), vec![]));
    }
}
