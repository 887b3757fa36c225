//! A lock with its queue and its seats, step by step.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use catraca_algorithms::Spec;
use catraca_core::{NodeId, ResourceId, Start};

use super::*;
use crate::kind::kind_of;

const ONCE: Turns = Turns { handovers: 2, rounds: 1 };
const RULES: Rules = Rules { epoch: Epoch(1), turns: ONCE, sets: false };
const SETS: Rules = Rules { epoch: Epoch(1), turns: ONCE, sets: true };

fn lock(seats: u32) -> Lock {
    let mut kind = kind_of(&Spec::new("naimi-trehel", 8)).unwrap();
    Lock::new("a", 1, 0, 0, (0..seats).map(|seat| kind.create(NodeId(seat), &Start::idle())))
}

fn asker(set: Option<Box<Set>>) -> Asker {
    Asker { owner: Owner::PROGRAM, request: None, set }
}

fn now() -> Time {
    Time(0)
}

fn want(lock: &mut Lock, ticket: Ticket, resources: &[u32]) {
    let claim = claim(resources);
    lock.join(ticket, asker(Some(Box::new(Set { names: Box::default(), claim }))), now());
}

fn claim(resources: &[u32]) -> Claim {
    Claim::of(resources.iter().copied().map(ResourceId))
}

fn join(lock: &mut Lock, tickets: impl IntoIterator<Item = Ticket>) {
    for ticket in tickets {
        lock.join(ticket, asker(None), now());
    }
}

fn inside(lock: &Lock) -> Vec<(Ticket, u64)> {
    lock.holds().map(|hold| (hold.ticket, hold.fence.0 & 0xff_ffff)).collect()
}

#[test]
fn the_group_is_asked_once_for_all_clients_of_a_seat() {
    let mut lock = lock(1);
    join(&mut lock, 1..=3);
    assert_eq!(lock.next_request(RULES), Some((0, Claim::single())));
    assert_eq!(lock.next_request(RULES), None);
    assert!(matches!(lock.admit(0, Fence(7), RULES, &mut None, now), Admitted::Client(_)));
    assert_eq!(inside(&lock), [(1, 7 << 6)]);
}

#[test]
fn a_lock_is_handed_over_here_so_often_and_then_given_back() {
    let mut lock = lock(1);
    join(&mut lock, 1..=4);
    lock.next_request(RULES);
    lock.admit(0, Fence(7), RULES, &mut None, now);
    for (ticket, handover) in [(1, 1), (2, 2)] {
        assert!(matches!(lock.leave(ticket, RULES, now), Left::HandedOver(_)));
        assert_eq!(inside(&lock), [(ticket + 1, 7 << 6 | handover)]);
    }
    assert!(matches!(lock.leave(3, RULES, now), Left::Release(0)));
    assert_eq!(lock.next_request(RULES), Some((0, Claim::single())), "the fourth still waits");
}

#[test]
fn nobody_leaves_twice() {
    let mut lock = lock(1);
    join(&mut lock, [1]);
    assert!(matches!(lock.leave(1, RULES, now), Left::NotInside));
    lock.next_request(RULES);
    lock.admit(0, Fence(1), RULES, &mut None, now);
    assert!(matches!(lock.leave(1, RULES, now), Left::Release(0)));
    assert!(matches!(lock.leave(1, RULES, now), Left::NotInside));
    assert!(matches!(lock.admit(0, Fence(2), RULES, &mut None, now), Admitted::Unasked));
}

#[test]
fn a_grant_that_nobody_wants_any_more_is_given_back() {
    let mut lock = lock(1);
    join(&mut lock, [1]);
    lock.next_request(RULES);
    assert!(lock.forget(1) && !lock.forget(1));
    assert!(matches!(lock.admit(0, Fence(1), RULES, &mut None, now), Admitted::Nobody));
    assert!(lock.is_free_here());
}

#[test]
fn several_seats_let_several_clients_in() {
    let mut lock = lock(2);
    join(&mut lock, 1..=3);
    assert_eq!(lock.next_request(RULES).map(|(seat, _)| seat), Some(0));
    assert_eq!(lock.next_request(RULES).map(|(seat, _)| seat), Some(1));
    assert_eq!(lock.next_request(RULES), None);
    lock.admit(1, Fence(1), RULES, &mut None, now);
    lock.admit(0, Fence(2), RULES, &mut None, now);
    assert_eq!(inside(&lock), [(2, 2 << 6), (1, 1 << 6)]);
    assert!(!lock.is_free_here());
}

#[test]
fn a_set_is_granted_to_whom_it_was_asked_for() {
    let mut lock = lock(2);
    want(&mut lock, 1, &[1]);
    want(&mut lock, 2, &[2]);
    assert_eq!(lock.next_request(SETS), Some((0, claim(&[1]))));
    assert_eq!(lock.next_request(SETS), Some((1, claim(&[2]))));
    lock.admit(1, Fence(1), SETS, &mut None, now);
    assert_eq!(inside(&lock), [(2, 1 << 6)]);
    lock.forget(1);
    assert!(matches!(lock.admit(0, Fence(2), SETS, &mut None, now), Admitted::Nobody));
}

#[test]
fn sets_that_wait_for_others_here_take_no_seat_and_bar_only_what_they_want() {
    let mut lock = lock(4);
    for (ticket, set) in [(1, &[1][..]), (2, &[1, 2]), (3, &[2]), (4, &[3])] {
        want(&mut lock, ticket, set);
    }
    assert_eq!(lock.next_request(SETS), Some((0, claim(&[1]))));
    assert_eq!(lock.next_request(SETS), Some((1, claim(&[3]))), "2 waits for 1, and 3 for 2");
    assert_eq!(lock.next_request(SETS), None);
    lock.forget(2);
    assert_eq!(lock.next_request(SETS), Some((2, claim(&[2]))));
}

#[test]
fn a_set_that_was_given_up_goes_to_the_next_who_wants_the_same() {
    let mut lock = lock(2);
    want(&mut lock, 1, &[1, 2]);
    lock.next_request(SETS);
    lock.forget(1);
    want(&mut lock, 2, &[2]);
    want(&mut lock, 3, &[1, 2]);
    assert_eq!(lock.next_request(SETS), None, "the group has been asked for it already");
    lock.admit(0, Fence(1), SETS, &mut None, now);
    assert_eq!(inside(&lock), [(3, 1 << 6)]);
}

#[test]
fn who_comes_after_the_grant_waits_for_the_next_turn() {
    let mut lock = lock(1);
    join(&mut lock, 1..=2);
    lock.next_request(RULES);
    lock.admit(0, Fence(7), RULES, &mut None, now);
    join(&mut lock, [3]);
    assert!(matches!(lock.leave(1, RULES, now), Left::HandedOver(Grant { ticket: 2, .. })));
    assert_eq!(lock.leave(2, RULES, now), Left::Release(0), "3 came too late for this turn");
    lock.next_request(RULES);
    lock.admit(0, Fence(8), RULES, &mut None, now);
    assert_eq!(inside(&lock), [(3, 8 << 6)]);
}

/// Everybody asks again at once. Who is served in the turn that begins with the first of `clients`.
fn turn_of(clients: u64, turns: Turns) -> Vec<Ticket> {
    let rules = Rules { turns, ..RULES };
    let mut lock = lock(1);
    join(&mut lock, 0..clients);
    lock.next_request(rules);
    lock.admit(0, Fence(7), rules, &mut None, now);
    let (mut served, mut ticket) = (vec![0], 0);
    for newcomer in clients.. {
        join(&mut lock, [newcomer]);
        let Left::HandedOver(grant) = lock.leave(ticket, rules, now) else { break };
        ticket = grant.ticket;
        served.push(ticket % clients);
    }
    served
}

#[test]
fn in_a_turn_everybody_is_served_as_often_and_in_turns_of_all_members_equally_often() {
    let turns = Turns { handovers: 11, rounds: 3 };
    assert_eq!(turn_of(1, turns), [0, 0, 0]);
    assert_eq!(turn_of(2, turns), [0, 1, 0, 1, 0, 1]);
    assert_eq!(turn_of(3, turns), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert_eq!(turn_of(5, turns), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1], "the bound");
    assert_eq!(turn_of(3, Turns { handovers: 0, ..turns }), [0]);
    assert_eq!(turn_of(3, Turns { handovers: 63, rounds: 64 }).len(), 64, "a fence counts so far");
}

/// Everybody asks again when the next one is about to leave, or when the one after that is. Who is served in
/// a turn that may have three rounds.
fn turn_of_slow(clients: u64, is_slower: bool) -> Vec<Ticket> {
    let rules = Rules { turns: Turns { handovers: 23, rounds: 3 }, ..RULES };
    let mut lock = lock(1);
    join(&mut lock, 0..clients);
    lock.next_request(rules);
    lock.admit(0, Fence(7), rules, &mut None, now);
    let (mut served, mut away, mut ticket) = (vec![0], VecDeque::new(), 0);
    loop {
        away.push_back(ticket);
        while away.len() > 1 + usize::from(is_slower) {
            let back = away.pop_front().unwrap();
            join(&mut lock, [back + clients]);
        }
        let Left::HandedOver(grant) = lock.leave(ticket, rules, now) else { break };
        ticket = grant.ticket;
        served.push(ticket % clients);
    }
    served
}

#[test]
fn where_clients_take_a_while_to_come_back_turns_of_three_are_no_longer_than_their_share() {
    // The one before is back when somebody leaves: all rounds are served.
    assert_eq!(turn_of_slow(2, false), [0, 1, 0, 1, 0, 1]);
    assert_eq!(turn_of_slow(3, false), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    // It is not: of two nobody is there, and of three only one.
    for clients in 1..=5 {
        assert_eq!(turn_of_slow(clients, true), Vec::from_iter(0..clients), "once each");
    }
}

#[test]
fn who_comes_in_a_turn_does_not_make_it_longer() {
    let rules = Rules { turns: Turns { handovers: 9, rounds: 2 }, ..RULES };
    let mut lock = lock(1);
    join(&mut lock, [1]);
    lock.next_request(rules);
    lock.admit(0, Fence(7), rules, &mut None, now);
    join(&mut lock, 2..=9);
    assert!(matches!(lock.leave(1, rules, now), Left::HandedOver(Grant { ticket: 2, .. })));
    assert_eq!(lock.leave(2, rules, now), Left::Release(0), "it began with one, who had two");
    lock.next_request(rules);
    lock.admit(0, Fence(8), rules, &mut None, now);
    assert_eq!(inside(&lock), [(3, 8 << 6)]);
}

#[test]
fn who_gives_up_leaves_its_place_in_the_turn_to_the_next() {
    let mut lock = lock(1);
    join(&mut lock, 1..=2);
    lock.next_request(RULES);
    lock.admit(0, Fence(7), RULES, &mut None, now);
    join(&mut lock, 3..=4);
    lock.forget(2);
    assert!(matches!(lock.leave(1, RULES, now), Left::HandedOver(Grant { ticket: 3, .. })));
    assert_eq!(lock.leave(3, RULES, now), Left::Release(0));
}

/// A node may have a million locks: each byte here is a megabyte.
#[test]
fn a_lock_takes_no_more_memory_than_it_has_to() {
    use core::mem::size_of;
    assert_eq!((size_of::<Asker>(), size_of::<Hold>()), (24, 48));
    assert_eq!((size_of::<Seat>(), size_of::<Lock>()), (64, 120));
}

#[test]
fn a_number_that_is_too_large_lets_nobody_in_and_the_seat_is_free_if_it_is_declined() {
    let mut lock = lock(1);
    join(&mut lock, [1]);
    lock.next_request(RULES);
    let admitted = lock.admit(0, Fence(1 << 31), RULES, &mut None, now);
    assert_eq!(admitted, Admitted::Exhausted);
    assert_eq!(lock.next_request(RULES), None);
    lock.decline(0);
    assert_eq!(lock.next_request(RULES), Some((0, Claim::single())));
}

#[test]
fn in_another_view_who_is_inside_stays_and_who_waits_has_yet_to_ask() {
    let mut lock = lock(2);
    join(&mut lock, 1..=2);
    lock.next_request(RULES);
    lock.next_request(RULES);
    lock.admit(0, Fence(7), RULES, &mut None, now);
    let slots: Vec<Slot> = [1, 0].iter().map(|&seat| lock.slot(seat).unwrap()).collect();
    lock.reseat(0, 0, slots.into_iter());
    assert_eq!(inside(&lock), [(1, 7 << 6)]);
    assert_eq!(lock.next_request(RULES), Some((1, Claim::single())));
}
