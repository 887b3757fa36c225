//! What a member shows of a lock, and what it hears of others.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use catraca_core::Value;

use super::*;
use crate::driver::Ending;
use crate::lock::{Owner, Stand};
use crate::member::Input;
use crate::question::Answer;
use crate::request::Acquire;
use crate::service::tests::Member;
use crate::wait::Wait;

fn ask(member: &mut Member, owner: Owner, number: u32, name: &str, permits: u32) {
    let asked = Acquire { names: vec![name.to_string()], permits, wait: Wait::Forever };
    member.step(Input::Request(owner, number, asked));
}

fn look(member: &mut Member, name: &str) -> Vec<Output> {
    let mut out = Vec::new();
    let Member { member, driver } = member;
    member.serve(driver, &mut out, |service, host, out| service.anatomy(9, name, host, out));
    out
}

fn picture(mut out: Vec<Output>) -> Picture {
    match out.pop() {
        Some(Output::Picture(9, Ok(picture))) => *picture,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_member_shows_its_node_its_clients_and_its_last_grants() {
    let mut member = Member::ready(1, "naimi-trehel");
    member.member.remember(16);
    let owner = member.open(None);
    for number in 1..=3 {
        ask(&mut member, owner, number, "x", 1);
    }
    member.pass(Duration::from_millis(40));
    member.step(Input::Release(owner, 1));
    member.pass(Duration::from_millis(2));
    let seen = picture(look(&mut member, "x"));
    let (0, anatomy) = &seen.told[0] else { panic!("{seen:?}") };
    let [instance] = &anatomy.instances[..] else { panic!("{anatomy:?}") };
    assert_eq!((instance.held, instance.waiting, instance.more_nodes), (1, 1, 0));
    let node = &instance.nodes[0];
    assert_eq!((node.stand, node.token), (Stand::Inside, Some(true)));
    let phase = node.variables.iter().find(|variable| variable.name == "phase").unwrap();
    assert_eq!(phase.value, Value::Text("inside".into()));
    let lines: Vec<(u32, u64)> =
        anatomy.page.lines.iter().map(|line| (line.key.place, line.millis)).collect();
    assert_eq!(lines, [(0, 2), (1, 42)]);
    let [first, second] = &instance.grants[..] else { panic!("{instance:?}") };
    assert_eq!((first.held_millis, first.ending), (Some(40), Some(Ending::Released)));
    assert_eq!((second.waited_millis, second.held_millis), (Some(40), None));
    assert_eq!((seen.layouts[0].algorithm.as_str(), seen.silent), ("naimi-trehel", vec![]));
}

#[test]
fn a_name_that_nobody_has_used_says_what_would_guard_it() {
    let mut member = Member::ready(1, "maekawa");
    let seen = picture(look(&mut member, "nobody"));
    assert_eq!(seen.told[0].1, Anatomy::default());
    assert_eq!((seen.layouts.len(), seen.layouts[0].algorithm.as_str()), (1, "maekawa"));
}

#[test]
fn whoever_does_not_answer_is_named_and_an_answer_that_was_not_asked_for_is_none() {
    let mut member = Member::ready(3, "naimi-trehel");
    let asked = look(&mut member, "x");
    let question = || Question::Anatomy("x".to_string());
    assert_eq!(asked, [Output::Ask(1, 1, question()), Output::Ask(2, 1, question())]);
    let told = || Answer::Anatomy(Box::default());
    assert_eq!(member.answer(1, 1, told()), []);
    assert_eq!(member.answer(1, 1, told()), [], "it has answered");
    let late = picture(member.step(Input::Timer(Timer::Question(1))));
    let who: Vec<usize> = late.told.iter().map(|(member, _)| *member).collect();
    assert_eq!((who, late.silent), (vec![0, 1], vec![2]));
    // One that is known to be gone is not waited for.
    member.step(Input::LinkDown(1));
    look(&mut member, "x");
    assert_eq!(picture(member.step(Input::LinkDown(2))).silent, [1, 2]);
    assert_eq!(picture(look(&mut member, "x")).silent, [1, 2]);
}

#[test]
fn another_member_cannot_make_up_instances() {
    let mut member = Member::ready(2, "naimi-trehel");
    look(&mut member, "x");
    let instance = |name: &str, permits| crate::anatomy::Instance {
        name: name.to_string(),
        permits,
        held: 0,
        waiting: 0,
        nodes: Vec::new(),
        more_nodes: 0,
        grants: Vec::new(),
    };
    let instances = vec![instance("y", 1), instance("x", 0), instance("x", 65), instance("x", 2)];
    let told = Answer::Anatomy(Box::new(Anatomy { instances, ..Anatomy::default() }));
    let seen = picture(member.answer(1, 1, told));
    let keys: Vec<(&str, u32)> =
        seen.layouts.iter().map(|layout| (layout.name.as_str(), layout.permits)).collect();
    assert_eq!(keys, [("x", 2)]);
}

#[test]
fn of_many_seats_those_are_shown_that_have_something_to_do() {
    let mut member = Member::ready(1, "naimi-trehel");
    let owner = member.open(None);
    for number in 1..=3 {
        ask(&mut member, owner, number, "pool", 60);
    }
    let seen = picture(look(&mut member, "pool"));
    let instance = &seen.told[0].1.instances[0];
    let inside = instance.nodes.iter().filter(|node| node.stand == Stand::Inside).count();
    assert_eq!((inside, instance.nodes.len(), instance.more_nodes), (3, 8, 52));
    assert_eq!(seen.layouts[0].algorithm, "raymond-k");
}

#[test]
fn names_that_are_taken_in_sets_are_shown_with_what_guards_them_together() {
    let mut member = Member::ready(1, "bouabdallah-laforest");
    member.member.remember(16);
    let owner = member.open(None);
    let names = vec!["x".to_string(), "y".to_string()];
    member.step(Input::Request(owner, 1, Acquire { names, permits: 1, wait: Wait::Forever }));
    let seen = picture(look(&mut member, "y"));
    let anatomy = &seen.told[0].1;
    assert_eq!((seen.layouts[0].name.as_str(), anatomy.instances[0].held), ("*", 1));
    assert_eq!(anatomy.page.lines[0].key.name, "y");
    assert_eq!(anatomy.instances[0].grants.len(), 1);
}

#[test]
fn a_queue_that_is_very_long_is_cut_and_counted() {
    let mut member = Member::ready(1, "naimi-trehel");
    let owner = member.open(None);
    for number in 0..500 {
        ask(&mut member, owner, number, "x", 1);
    }
    let seen = picture(look(&mut member, "x"));
    let anatomy = &seen.told[0].1;
    assert_eq!((anatomy.page.lines.len(), anatomy.page.more), (MOST_LINES as usize, true));
    assert_eq!(anatomy.instances[0].waiting, 499);
}
