//! Ending holds of one member by force, step by step.

use alloc::string::ToString;
use alloc::vec;

use super::*;
use crate::driver::Change;
use crate::durable::HoldId;
use crate::member::Input;
use crate::question::PeerMessage;
use crate::request::Acquire;
use crate::service::tests::Member;
use crate::session::Who;
use crate::timed::{AcquireTimed, Operation, Renewal, Which};
use crate::wait::Wait;

const TTL: Duration = Duration::from_secs(10);

fn acquire(names: &[&str], permits: u32) -> Acquire {
    let names = names.iter().map(|name| name.to_string()).collect();
    Acquire { names, permits, wait: Wait::Forever }
}

fn force(name: &str, fence: u64) -> Order {
    Order::Force(Force { name: name.into(), fence, by: "ana".into() })
}

fn why() -> Refusal {
    Refusal::Forced("ana".into())
}

fn lost(owner: Owner, request: u32) -> Output {
    Output::Notice(owner, Notice::Lost { request, why: why() })
}

fn released(owner: Owner, request: u32) -> Output {
    Output::Notice(owner, Notice::Released { request })
}

fn done(asker: u64) -> Output {
    Output::Obeyed(asker, Ok(true))
}

impl Member {
    /// A session asks for locks. Returns the fence of the first, if it has them.
    fn take(&mut self, owner: Owner, number: u32, asked: Acquire) -> Option<u64> {
        match self.step(Input::Request(owner, number, asked)).pop() {
            Some(Output::Notice(_, Notice::Granted { fences, .. })) => Some(fences[0]),
            _ => None,
        }
    }

    fn force(&mut self, asker: u64, name: &str, fence: u64) -> Vec<Output> {
        self.step(Input::Order(asker, "a", force(name, fence)))
    }

    fn look(&mut self) -> Vec<Output> {
        self.step(Input::Timer(Timer::Force))
    }

    fn granted(&mut self, owner: Owner, request: u32, fence: u64) -> Output {
        Output::Notice(owner, Notice::Granted { request, fences: vec![fence] })
    }
}

/// A member with two sessions: the first one has `x`, the second one waits for it.
fn contended() -> (Member, [Owner; 2], u64) {
    let mut member = Member::ready(1, "naimi-trehel");
    let owners = [member.open(Some(TTL)), member.open(Some(2 * TTL))];
    let fence = member.take(owners[0], 1, acquire(&["x"], 1)).unwrap();
    assert_eq!(member.take(owners[1], 1, acquire(&["x"], 1)), None);
    (member, owners, fence)
}

#[test]
fn the_next_one_is_let_in_when_the_holder_has_released_what_it_was_told_to_give_up() {
    let (mut member, [first, second], fence) = contended();
    member.driver.events = Some(Vec::new());
    assert_eq!(member.force(7, "x", fence), [lost(first, 1)]);
    assert_eq!(member.look(), [], "nobody is let in while the holder may act");
    let next = member.granted(second, 1, fence + 1);
    assert_eq!(member.step(Input::Release(first, 1)), [released(first, 1), done(7), next]);
    let events = member.driver.events.take().unwrap();
    let changes: Vec<Change> = events.into_iter().map(|(_, change)| change).collect();
    let (old, new) = (catraca_core::Fence(fence), catraca_core::Fence(fence + 1));
    assert_eq!(changes, [Change::Forced(old), Change::Granted(new)]);
    // Its session goes on.
    assert!(member.member.service().is_open(first));
}

#[test]
fn the_next_one_is_let_in_when_the_holder_cannot_be_certain_any_more_and_not_before() {
    let (mut member, [first, second], fence) = contended();
    member.pass(TTL / 2);
    member.step(Input::Renew(first));
    member.pass(TTL / 2);
    assert_eq!(member.force(7, "x", fence), [lost(first, 1)]);
    // What it is told from now on comes after it was told to give up.
    assert_eq!(member.step(Input::Renew(first)), [lost(first, 1)]);
    member.pass(TTL / 2 - Duration::from_nanos(1));
    assert_eq!(member.look(), []);
    member.pass(Duration::from_nanos(1));
    let next = member.granted(second, 1, fence + 1);
    assert_eq!(member.look(), [done(7), next]);
    assert!(member.member.service().is_open(first));
    assert_eq!(member.step(Input::Release(first, 1)), [released(first, 1)]);
}

#[test]
fn who_is_told_again_what_it_holds_is_told_to_give_it_up() {
    let (mut member, [first, _], fence) = contended();
    let session = crate::SessionId::new(1, first.0, [0; 16]);
    member.force(7, "x", fence);
    assert_eq!(member.step(Input::Request(first, 1, acquire(&["x"], 1))), [lost(first, 1)]);
    let (mut out, mut told) = (Vec::new(), Vec::new());
    let resumed = member.member.serve(&mut member.driver, &mut out, |service, host, out| {
        let resumed = service.resume(session, host, out);
        told.append(out);
        resumed
    });
    assert_eq!(resumed, Ok(first));
    assert!(!told.is_empty() && told.iter().all(|output| *output == lost(first, 1)), "{told:?}");
}

#[test]
fn nobody_is_meant_who_has_the_lock_later() {
    let (mut member, [first, second], fence) = contended();
    member.step(Input::Release(first, 1));
    assert_eq!(member.force(7, "x", fence), [Output::Obeyed(7, Ok(false))]);
    assert_eq!(member.force(8, "y", 1), [Output::Obeyed(8, Ok(false))]);
    assert_eq!(member.force(9, "x", fence + 1), [lost(second, 1)]);
}

#[test]
fn everybody_who_wants_one_hold_to_end_hears_of_it_once() {
    let (mut member, [first, second], fence) = contended();
    assert_eq!(member.force(7, "x", fence), [lost(first, 1)]);
    assert_eq!(member.force(8, "x", fence), [], "the client was told");
    let next = member.granted(second, 1, fence + 1);
    let all = [released(first, 1), done(7), done(8), next];
    assert_eq!(member.step(Input::Release(first, 1)), all);
    assert_eq!(member.look(), []);
}

#[test]
fn a_hold_of_several_locks_ends_as_a_whole() {
    for algorithm in ["naimi-trehel", "bouabdallah-laforest"] {
        let mut member = Member::ready(1, algorithm);
        let owner = member.open(Some(TTL));
        let out = member.step(Input::Request(owner, 1, acquire(&["a", "b"], 1)));
        let Some(Output::Notice(_, Notice::Granted { fences, .. })) = out.last() else {
            panic!("{out:?}")
        };
        assert_eq!(member.force(7, "b", fences[1]), [lost(owner, 1)], "{algorithm}");
        member.pass(TTL);
        assert_eq!(member.look(), [done(7)]);
        assert_eq!(member.member.shard().sizes()[1], 0, "nothing is held");
    }
}

#[test]
fn one_permit_of_a_semaphore_ends_and_the_others_stay() {
    let mut member = Member::ready(1, "naimi-trehel");
    let owner = member.open(Some(TTL));
    let fence = |member: &mut Member, number| member.take(owner, number, acquire(&["s"], 2));
    let (_, second) = (fence(&mut member, 1).unwrap(), fence(&mut member, 2).unwrap());
    assert_eq!(member.force(7, "s", second), [lost(owner, 2)]);
    assert_eq!(member.step(Input::Release(owner, 2)), [released(owner, 2), done(7)]);
    assert_eq!(member.member.service().holds().count(), 1);
}

#[test]
fn what_the_program_holds_ends_when_it_lets_go() {
    let mut member = Member::ready(1, "naimi-trehel");
    let out = member.step(Input::Acquire(acquire(&["x"], 1)));
    let [Output::Settled(id, Ok(fences))] = &out[..] else { panic!("{out:?}") };
    assert_eq!(member.force(7, "x", fences[0]), [Output::Lost(*id)]);
    assert_eq!(member.look(), []);
    let mut out = Vec::new();
    let id = *id;
    member.member.serve(&mut member.driver, &mut out, |it, host, out| it.release(id, host, out));
    assert_eq!(member.look(), [done(7)]);
}

#[test]
fn a_timed_hold_ends_when_its_client_asks_about_it_or_its_time_is_over() {
    let which = Which::Id(HoldId(1));
    for operation in [Operation::Look, Operation::Renew(Renewal::To(TTL))] {
        let (mut member, fence) = timed();
        assert_eq!(member.force(7, "x", fence), []);
        assert_eq!(member.look(), []);
        let told = Output::Timed(9, Err(why()));
        assert_eq!(member.step(Input::Timed(9, which.clone(), operation)), [told]);
        assert_eq!(member.look(), [done(7)]);
        assert_eq!(member.member.shard().sizes()[1], 0, "nothing is held");
    }
    let (mut member, fence) = timed();
    member.force(7, "x", fence);
    member.pass(TTL);
    assert_eq!(member.look(), [done(7)]);
}

/// A member with a timed hold of `x`.
fn timed() -> (Member, u64) {
    let mut member = Member::ready(1, "naimi-trehel");
    let (names, who) = (vec!["x".to_string()], Who::default());
    let (id, wait, token) = (HoldId(1), Wait::Forever, Vec::new());
    let asked = AcquireTimed { id, names, permits: 1, wait, ttl: TTL, who, token };
    match &member.step(Input::AcquireTimed(1, asked))[..] {
        [Output::Timed(1, Ok(hold))] => (member, hold.fences[0]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_member_is_asked_and_asks() {
    let mut member = Member::ready(2, "naimi-trehel");
    let ask = member.step(Input::Order(7, "b", force("x", 5)));
    assert_eq!(ask, [Output::Ask(1, 1, Question::Order(force("x", 5)))]);
    assert_eq!(member.answer(1, 1, Answer::Obeyed(Ok(true))), [done(7)]);
    assert_eq!(member.answer(1, 1, Answer::Obeyed(Ok(true))), [], "once");

    let silent = |asker| Output::Obeyed(asker, Err(Refusal::Silent("b".into())));
    member.step(Input::Order(8, "b", force("x", 5)));
    assert_eq!(member.step(Input::Timer(Timer::Question(2))), [silent(8)]);
    member.step(Input::Order(9, "b", force("x", 5)));
    assert_eq!(member.step(Input::LinkDown(1)), [silent(9)]);
    assert_eq!(member.step(Input::Order(10, "b", force("x", 5))), [silent(10)]);
    let unknown = Output::Obeyed(11, Err(Refusal::Silent("z".into())));
    assert_eq!(member.step(Input::Order(11, "z", force("x", 5))), [unknown]);

    let mut member = Member::ready(2, "naimi-trehel");
    let (owner, name) = (member.open(Some(TTL)), member.name_at(0));
    let fence = member.take(owner, 1, acquire(&[&name], 1)).unwrap();
    let (epoch, question) = (Epoch::FIRST, Question::Order(force(&name, fence)));
    let ask = PeerMessage::Ask { epoch, number: 4, question };
    assert_eq!(member.step(Input::Message(1, ask)), [lost(owner, 1)]);
    let answer = Output::Answer(1, 4, Answer::Obeyed(Ok(true)));
    assert_eq!(member.step(Input::Release(owner, 1)), [released(owner, 1), answer]);
}

#[test]
fn a_member_ends_only_so_many_holds_by_force_at_a_time() {
    let mut member = Member::ready(1, "naimi-trehel");
    let owner = member.open(Some(TTL));
    for number in 0..=MOST_FORCED as u32 {
        let name = alloc::format!("x{number}");
        let fence = member.take(owner, number, acquire(&[&name], 1)).unwrap();
        let out = member.force(7, &name, fence);
        match number {
            0..1024 => assert_eq!(out, [lost(owner, number)]),
            _ => assert_eq!(out, [Output::Obeyed(7, Err(Refusal::Busy))]),
        }
    }
}
