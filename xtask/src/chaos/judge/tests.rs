use std::time::Duration;

use super::*;

/// Histories of clients c0, c1, and so on; lines without their request number, which is 1.
fn histories(clients: &[&str]) -> Vec<History> {
    let read = |(number, text): (usize, &&str)| {
        let mut history = History::new(&format!("c{number}"));
        let lines = text.split(", ").map(|line| {
            let (at, rest) = line.split_once(' ').unwrap();
            format!("{at} 1 {rest}\n")
        });
        history.extend(&lines.collect::<String>()).unwrap();
        history
    };
    clients.iter().enumerate().map(read).collect()
}

fn broken(clients: &[&str]) -> Vec<Rule> {
    judge(&histories(clients), None).into_iter().map(|violation| violation.rule).collect()
}

fn broken_after_healing(client: &str) -> Vec<Rule> {
    let healing = Healing { at: Time(100), limit: Duration::from_nanos(50) };
    judge(&histories(&[client]), Some(healing)).into_iter().map(|found| found.rule).collect()
}

#[test]
fn one_after_the_other_is_right() {
    let clients = [
        "0 asked 1 x, 10 granted 100 1, 40 releasing, 45 released",
        "5 asked 1 x, 40 granted 140 2, 50 releasing",
    ];
    assert_eq!(broken(&clients), []);
}

#[test]
fn two_inside_a_lock_are_found() {
    let clients = [
        "0 asked 1 x, 10 granted 100 1, 40 releasing",
        "5 asked 1 x, 39 granted 140 2, 50 releasing",
    ];
    assert_eq!(broken(&clients), [Rule::Exclusion]);
    let violation = &judge(&histories(&clients), None)[0];
    assert_eq!((violation.at, &violation.requests[..]), (Time(39), &[(0, 1), (1, 1)][..]));
}

#[test]
fn whoever_is_not_certain_any_more_is_not_inside() {
    let second = "5 asked 1 x, 39 granted 140 2, 50 releasing";
    assert_eq!(broken(&["0 asked 1 x, 10 granted 39 1", second]), []);
    assert_eq!(broken(&["0 asked 1 x, 10 granted 40 1", second]), [Rule::Exclusion]);
}

#[test]
fn whoever_has_renewed_is_inside_for_longer() {
    let second = "5 asked 1 x, 39 granted 140 2, 50 releasing";
    let first = "0 asked 1 x, 10 granted 20 1, 15 renewed 38";
    assert_eq!(broken(&[first, second]), []);
    let first = "0 asked 1 x, 10 granted 20 1, 15 renewed 40";
    assert_eq!(broken(&[first, second]), [Rule::Exclusion]);
}

#[test]
fn whoever_was_not_certain_for_a_while_was_not_inside_then() {
    let first = "0 asked 1 x, 10 granted 20 1, 60 renewed 80";
    assert_eq!(broken(&[first, "5 asked 1 x, 30 granted 140 2, 50 releasing"]), []);
    assert_eq!(broken(&[first, "5 asked 1 x, 30 granted 140 2, 61 releasing"]), [Rule::Exclusion]);
}

#[test]
fn whoever_was_told_of_a_loss_may_use_the_time_that_is_left() {
    let second = "5 asked 1 x, 39 granted 140 2, 50 releasing";
    assert_eq!(broken(&["0 asked 1 x, 10 granted 90 1, 30 lost 30 gone", second]), []);
    assert_eq!(
        broken(&["0 asked 1 x, 10 granted 90 1, 30 lost 60 late", second]),
        [Rule::Exclusion]
    );
    assert_eq!(
        broken(&["0 asked 1 x, 10 granted 90 1, 30 lost 60 late, 38 releasing", second]),
        []
    );
}

#[test]
fn a_semaphore_lets_as_many_in_as_it_has_permits() {
    let client = |from: u64, fence: u64| format!("0 asked 2 s, {from} granted 100 {fence}");
    let [one, two, three] = [client(10, 7), client(20, 5), client(30, 6)];
    assert_eq!(broken(&[&one, &two]), []);
    assert_eq!(broken(&[&one, &two, &three]), [Rule::Exclusion]);
}

#[test]
fn every_name_of_a_set_counts() {
    let both = "0 asked 1 x y, 10 granted 100 1 1, 40 releasing";
    assert_eq!(broken(&[both, "5 asked 1 z, 20 granted 90 1"]), []);
    assert_eq!(broken(&[both, "5 asked 1 y, 20 granted 90 2"]), [Rule::Exclusion]);
}

#[test]
fn a_fence_that_is_smaller_than_an_earlier_one_is_found() {
    let clients = [
        "0 asked 1 x, 10 granted 100 9, 20 releasing",
        "5 asked 1 x, 40 granted 140 8, 50 releasing",
    ];
    assert_eq!(broken(&clients), [Rule::FencesGrow]);
}

#[test]
fn the_order_says_nothing_of_whoever_looked_at_the_clock_too_late() {
    let clients = [
        "5 asked 1 x, 40 granted 140 9, 50 releasing",
        "0 asked 1 x, 60 granted 30 8, 61 releasing",
    ];
    assert_eq!(broken(&clients), []);
}

#[test]
fn a_fence_that_was_given_twice_is_found() {
    let clients = [
        "0 asked 2 s, 10 granted 100 9, 20 releasing",
        "5 asked 2 s, 40 granted 140 9, 50 releasing",
    ];
    assert_eq!(broken(&clients), [Rule::FencesDiffer]);
    let clients = clients.map(|client| client.replace("asked 2", "asked 1"));
    assert_eq!(broken(&[&clients[0], &clients[1]]), [Rule::FencesDiffer]);
}

#[test]
fn a_durable_hold_that_is_another_one_when_asked_for_again_is_found() {
    let never = NEVER.0;
    let same = format!("0 asked 1 d, 10 granted {never} 3, 20 granted {never} 3, 30 releasing");
    assert_eq!(broken(&[&same]), []);
    let other = format!("0 asked 1 d, 10 granted {never} 3, 20 granted {never} 4, 30 releasing");
    assert_eq!(broken(&[&other]), [Rule::DurableStays]);
}

#[test]
fn a_durable_hold_that_is_lost_is_found() {
    let never = NEVER.0;
    let lost = format!("0 asked 1 d, 10 granted {never} 3, 20 releasing, 30 lost {never} gone");
    assert_eq!(broken(&[&lost]), [Rule::DurableStays]);
}

#[test]
fn a_durable_hold_lasts_until_its_owner_releases_it() {
    let never = NEVER.0;
    let durable = format!("0 asked 1 d, 10 granted {never} 3, 5000 releasing");
    assert_eq!(broken(&[&durable, "0 asked 1 d, 5000 granted 6000 4"]), []);
    assert_eq!(broken(&[&durable, "0 asked 1 d, 4999 granted 6000 4"]), [Rule::DurableStays]);
}

#[test]
fn whoever_is_not_served_after_healing_is_found() {
    let broken = |rest: &str| broken_after_healing(&format!("100 asked 1 x, {rest}, 160 done"));
    assert_eq!(broken("100 insisted, 150 granted 900 1"), []);
    assert_eq!(broken("100 insisted, 151 granted 900 1"), [Rule::Served]);
    assert_eq!(broken("100 insisted, 120 refused late"), [Rule::Served]);
    assert_eq!(broken("120 refused late"), []);
}

#[test]
fn a_client_that_does_not_come_to_its_end_is_found_unless_it_was_killed() {
    let healing = Healing { at: Time(100), limit: Duration::from_nanos(50) };
    let mut histories = histories(&["0 asked 1 x, 10 granted 20 1"]);
    let rules = |histories: &[History]| {
        judge(histories, Some(healing)).into_iter().map(|found| found.rule).collect::<Vec<_>>()
    };
    assert_eq!(rules(&histories), [Rule::Served]);
    histories[0].was_killed = true;
    assert_eq!(rules(&histories), []);
}

#[test]
fn memory_that_has_grown_by_more_than_is_allowed_is_found() {
    let memory = |after| Memory { member: "a".to_string(), before: 100, after };
    assert_eq!(judge_memory(&[memory(150)], 50, Time(0)), []);
    let violations = judge_memory(&[memory(150), memory(151)], 50, Time(0));
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].rule, Rule::Memory);
}

#[test]
fn what_is_kept_of_clients_that_have_gone_is_found() {
    let in_use = |counts: &[(&str, u64)]| {
        let counts = counts.iter().map(|&(what, count)| (what.to_string(), count)).collect();
        InUse { member: "a".to_string(), counts: Some(counts) }
    };
    let nothing = [("sessions", 0), ("held", 0), ("waiting", 0), ("locks", 0), ("grants", 7)];
    assert_eq!(judge_in_use(&[in_use(&nothing)], Time(0)), []);
    for place in 0..4 {
        let mut counts = nothing;
        counts[place].1 = 3;
        let found = judge_in_use(&[in_use(&nothing), in_use(&counts)], Time(0));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].rule, Rule::NothingLeft);
        let left = format!("{} 3", counts[place].0);
        assert!(found[0].what.ends_with(&left), "{}", found[0].what);
    }
    let silent = InUse { member: "b".to_string(), counts: None };
    for unclear in [silent, in_use(&[("sessions", 0)])] {
        assert_eq!(judge_in_use(&[unclear], Time(0)).len(), 1);
    }
}

#[test]
fn what_happened_is_counted() {
    let histories = histories(&[
        "0 asked 1 x, 10 granted 100 1, 40 lost 40 gone",
        "0 asked 1 x, 5 refused taken",
    ]);
    assert_eq!(count(&histories), Counts { asked: 2, granted: 1, lost: 1, refused: 1 });
}
