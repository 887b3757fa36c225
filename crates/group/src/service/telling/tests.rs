//! Who holds and who waits, among very many others.

use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::request::{Acquire, Origin};
use crate::service::tests::Member;
use crate::wait::Wait;

fn hold(member: &mut Member, names: &[&str], permits: u32) {
    let names = names.iter().map(|name| name.to_string()).collect();
    let asked = Acquire { names, permits, wait: Wait::Forever };
    let mut out = Vec::new();
    let Member { member, driver } = member;
    member
        .serve(driver, &mut out, |service, host, out| {
            service.acquire(Origin::Program, asked, host, out)
        })
        .unwrap();
}

/// How many locks are looked at for these, and the page.
fn looked_at(member: &mut Member, names: Selection) -> (usize, Page) {
    let query = Query { names, limit: 10, ..Query::default() };
    let Member { member, driver } = member;
    let mut count = 0;
    let page = member.serve(driver, &mut Vec::new(), |service, host, _| {
        service.look_at_locks(&query.names, host, &mut |_| count += 1);
        service.page_here(&query, host)
    });
    (count, page)
}

#[test]
fn a_lock_that_is_named_is_found_without_looking_at_the_others() {
    let mut member = Member::ready(1, "naimi-trehel");
    for other in 0..100_000 {
        hold(&mut member, &[&format!("other-{other}")], 1);
    }
    hold(&mut member, &["x"], 1);
    hold(&mut member, &["x"], 1);
    let (looked_at_all, _) = looked_at(&mut member, Selection::Prefix("x".into()));
    assert_eq!(looked_at_all, 100_001, "the others are there");
    let (count, page) = looked_at(&mut member, Selection::Name("x".into()));
    assert_eq!(count, 1);
    let places: Vec<u32> = page.lines.iter().map(|line| line.key.place).collect();
    assert_eq!((places, page.more), (vec![0, 1], false), "one holds it and one waits");
    let (count, page) = looked_at(&mut member, Selection::Name("nobody".into()));
    assert_eq!((count, page.lines.len()), (0, 0));
}

#[test]
fn the_status_tells_what_its_shards_have_shown_before() {
    let mut member = Member::ready(1, "naimi-trehel");
    for names in [&["x"][..], &["x"], &["y", "z"]] {
        hold(&mut member, names, 1);
    }
    let Member { member, driver } = &mut member;
    let mut tally = Tally::default();
    member.serve(driver, &mut Vec::new(), |_, host, _| host.look(&mut |shard| tally.add(shard)));
    let links = &mut |_: &str| LinkStatus::Connecting;
    let health = Health { group: "g", links, registry: None, anomalies: 0 };
    let status = member.service().status(health, tally, Time(1));
    assert_eq!((status.locks, status.held, status.waiting), (3, 3, 1));
    assert_eq!((status.grants, status.handovers, status.messages), (3, 0, 0));
    let algorithms: Vec<&str> = status.namespaces.iter().map(|it| &*it.algorithm).collect();
    assert_eq!(algorithms, ["naimi-trehel"]);
}

#[test]
fn names_that_are_guarded_together_and_semaphores_are_found_by_name_too() {
    let mut member = Member::ready(1, "bouabdallah-laforest");
    hold(&mut member, &["x", "y"], 1);
    hold(&mut member, &["z"], 3);
    for (name, permits) in [("x", 1), ("y", 1), ("z", 3)] {
        let (_, page) = looked_at(&mut member, Selection::Name(name.into()));
        let lines: Vec<_> = page.lines.iter().map(|it| (&*it.key.name, it.key.permits)).collect();
        assert_eq!(lines, [(name, permits)]);
    }
    let (_, page) = looked_at(&mut member, Selection::Name("*".into()));
    assert_eq!(page.lines.len(), 0, "the pattern is nobody's name");
}
