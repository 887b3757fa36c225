//! Shards of a small group that talk to each other, step by step.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use catraca_core::{NodeId, TimerTag};

use super::*;
use crate::lock::MOST_WAITERS;
use crate::survey::{MOST_OLD, Survey};
use crate::testing::{Recorder, Sent};
use crate::time::Time;
use crate::view::Epoch;
use crate::view::tests::view;

/// The members of a group, and the messages between them in the order of sending.
struct Group {
    members: Vec<Shard>,
    drivers: Vec<Recorder>,
    settled: Vec<Settled>,
    anomalies: Vec<&'static str>,
    /// The locks whose numbers are nearly used up.
    used_up: Vec<String>,
}

const TURNS: Turns = Turns { handovers: 2, rounds: 1 };

impl Group {
    fn of(count: usize, algorithm: &str) -> Self {
        let hasher = RandomState::with_seeds(1, 2, 3, 4);
        let shard = |me| Shard::new(Arc::new(view(count, me, algorithm)), hasher.clone(), TURNS);
        Group {
            members: (0..count).map(shard).collect(),
            drivers: (0..count).map(|_| Recorder::default()).collect(),
            settled: Vec::new(),
            anomalies: Vec::new(),
            used_up: Vec::new(),
        }
    }

    fn step<T>(
        &mut self,
        member: usize,
        step: impl FnOnce(&mut Shard, &mut Outputs<'_>) -> T,
    ) -> T {
        let mut out = Outputs::new(&mut self.drivers[member], member as u16);
        let done = step(&mut self.members[member], &mut out);
        self.settled.extend(out.settled);
        self.anomalies.extend(out.anomalies);
        self.used_up.extend(out.used_up.map(String::from));
        done
    }

    fn hash(&self, name: &str) -> u64 {
        self.members[0].hasher.hash_one(name)
    }

    fn ask_with(&mut self, member: usize, key: Key<'_>, ask: Ask) -> Result<Asked, Refusal> {
        let hash = self.hash(key.name);
        self.step(member, |shard, out| shard.acquire(key, hash, ask, out))
    }

    fn ask(&mut self, member: usize, name: &str) -> Asked {
        self.ask_with(member, Key { name, permits: 1 }, Ask::default()).unwrap()
    }

    fn release(&mut self, member: usize, place: Place) {
        self.step(member, |shard, out| shard.release(place, out));
    }

    /// Delivers messages, the oldest of the first member first, until there are none.
    fn settle(&mut self) {
        while let Some((from, sent)) = self.next_message() {
            let hash = self.hash(&sent.name);
            self.step(sent.member, |shard, out| shard.deliver(hash, from, sent.message(), out));
        }
    }

    fn next_message(&mut self) -> Option<(usize, Sent)> {
        let from = self.drivers.iter().position(|driver| !driver.sent.is_empty())?;
        Some((from, self.drivers[from].sent.remove(0)))
    }

    fn granted(&mut self) -> Vec<Place> {
        let granted = |settled: Settled| match settled.outcome {
            Outcome::Granted(_) => Some(settled.place),
            Outcome::Refused(_) => None,
        };
        core::mem::take(&mut self.settled).into_iter().filter_map(granted).collect()
    }

    /// A name whose home is at `member`.
    fn name_at(&self, member: usize) -> String {
        let mut names = (0..).map(|number: u32| alloc::format!("lock/{number}"));
        names.find(|name| self.members[0].view.home(name) == member).unwrap()
    }
}

#[test]
fn a_lock_whose_token_is_here_is_granted_without_a_message() {
    let mut group = Group::of(3, "naimi-trehel");
    let name = group.name_at(1);
    let mut last = Fence::NONE;
    for _ in 0..10 {
        let Asked { place, fence } = group.ask(1, &name);
        let fence = fence.unwrap();
        assert!(fence > last);
        last = fence;
        group.release(1, place);
    }
    assert!(group.drivers.iter().all(|driver| driver.sent.is_empty()));
    assert!(group.settled.is_empty(), "the answer has said it");
}

#[test]
fn clients_wait_in_order_and_members_take_turns() {
    let mut group = Group::of(2, "naimi-trehel");
    let name = group.name_at(0);
    let first = group.ask(0, &name).place;
    let here: Vec<Place> = (0..4).map(|_| group.ask(0, &name).place).collect();
    let there = group.ask(1, &name).place;
    group.settle();
    group.release(0, first);
    // Those who waited when the lock came here: none. So the other member has its turn.
    group.settle();
    assert_eq!(group.granted(), [there]);
    group.release(1, there);
    group.settle();
    assert_eq!(group.granted(), [here[0]]);
    // Now four wait, and the bound is two hand-overs.
    let again = group.ask(1, &name).place;
    group.settle();
    for turn in 0..2 {
        group.release(0, here[turn]);
        group.settle();
        assert_eq!(group.granted(), [here[turn + 1]]);
    }
    group.release(0, here[2]);
    group.settle();
    assert_eq!(group.granted(), [again], "the bound is reached");
    assert!(group.anomalies.is_empty());
}

#[test]
fn whoever_gives_up_is_never_granted_and_the_next_one_is() {
    let mut group = Group::of(2, "naimi-trehel");
    let name = group.name_at(0);
    let first = group.ask(0, &name).place;
    let gives_up = group.ask(1, &name).place;
    let stays = group.ask(1, &name).place;
    group.settle();
    group.release(1, gives_up);
    group.release(0, first);
    group.settle();
    assert_eq!(group.granted(), [stays]);
    assert_eq!(group.members[1].progress(gives_up), Progress::Gone);
    group.release(1, stays);
    group.settle();
    // A request that nobody waits for any more gives the lock back when it comes.
    let first = group.ask(0, &name).place;
    group.settle();
    let gives_up = group.ask(1, &name).place;
    group.settle();
    group.release(1, gives_up);
    group.release(0, first);
    group.settle();
    group.granted();
    let next = group.ask(0, &name);
    group.settle();
    assert!(next.fence.is_some() || group.granted() == [next.place]);
}

#[test]
fn a_name_is_used_with_one_number_of_permits_at_a_time() {
    let mut group = Group::of(1, "naimi-trehel");
    let semaphore = Key { name: "x", permits: 2 };
    let held = group.ask_with(0, semaphore, Ask::default()).unwrap().place;
    let other = group.ask_with(0, Key { name: "x", permits: 1 }, Ask::default()).unwrap_err();
    let expected = Refusal::OtherPermits { name: "x".to_string(), permits: 1, other: 2 };
    assert_eq!(other, expected);
    group.release(0, held);
    assert!(group.ask_with(0, Key { name: "x", permits: 1 }, Ask::default()).is_ok());
}

#[test]
fn so_many_wait_for_one_lock_and_those_for_others_are_not_refused() {
    let mut group = Group::of(1, "naimi-trehel");
    let (one, other) = (Key { name: "x", permits: 1 }, Key { name: "y", permits: 1 });
    let held = group.ask_with(0, one, Ask::default()).unwrap().place;
    for _ in 0..MOST_WAITERS {
        assert!(group.ask_with(0, one, Ask::default()).unwrap().fence.is_none());
    }
    let refused = group.ask_with(0, one, Ask::default()).unwrap_err();
    assert_eq!(refused, Refusal::Crowded("x".to_string()));
    assert!(group.ask_with(0, other, Ask::default()).is_ok());
    // Whoever is inside leaves, the next one comes in, and there is room for one more.
    group.release(0, held);
    assert!(group.ask_with(0, one, Ask::default()).is_ok());
    assert!(group.ask_with(0, one, Ask::default()).is_err());
}

#[test]
fn locks_are_begun_while_there_is_room() {
    let mut group = Group::of(2, "naimi-trehel");
    group.drivers[0].room = Some(2);
    for name in ["a", "b"] {
        assert!(group.ask_with(0, Key { name, permits: 1 }, Ask::default()).is_ok());
    }
    let full = group.ask_with(0, Key { name: "c", permits: 1 }, Ask::default());
    assert_eq!(full.unwrap_err(), Refusal::Full);
    // Those of others come on top: their messages may not be lost.
    let name = group.name_at(0);
    let theirs = group.ask(1, &name).place;
    group.settle();
    assert!(group.granted().contains(&theirs));
}

#[test]
fn a_member_that_takes_no_messages_stops_only_what_would_send_it_one() {
    let mut group = Group::of(2, "naimi-trehel");
    let (own, theirs) = (group.name_at(0), group.name_at(1));
    let full = || Ask::single(Owner::PROGRAM, None, 1 << 1);
    let behind = group.ask_with(0, Key { name: &theirs, permits: 1 }, full());
    assert_eq!(behind.unwrap_err(), Refusal::Behind("b".to_string()));
    let here = group.ask_with(0, Key { name: &own, permits: 1 }, full()).unwrap();
    assert!(here.fence.is_some());
    assert!(group.drivers[0].sent.is_empty());
}

#[test]
fn messages_of_another_view_or_for_nobody_change_nothing() {
    let mut group = Group::of(2, "naimi-trehel");
    let name = group.name_at(0);
    group.ask(1, &name);
    let (from, sent) = group.next_message().unwrap();
    let hash = group.hash(&name);
    for epoch in [Epoch(0), Epoch(2)] {
        let other = Sent { epoch, ..sent.clone() };
        group.step(0, |shard, out| shard.deliver(hash, from, other.message(), out));
    }
    assert!(group.anomalies.is_empty() && group.drivers[0].sent.is_empty());
    let wrong = [
        Sent { to: NodeId(7), ..sent.clone() },
        Sent { from: NodeId(0), ..sent.clone() },
        Sent { permits: 99, ..sent.clone() },
    ];
    for (count, sent) in (1..).zip(wrong) {
        group.step(0, |shard, out| shard.deliver(hash, from, sent.message(), out));
        assert_eq!(group.anomalies.len(), count);
    }
    assert!(group.drivers[0].sent.is_empty());
    group.step(0, |shard, out| shard.deliver(hash, from, sent.message(), out));
    group.settle();
    assert_eq!(group.granted().len(), 1);
}

#[test]
fn a_lock_whose_fences_are_used_up_refuses_and_is_not_stuck() {
    let mut group = Group::of(1, "naimi-trehel");
    // No fence has so many bits for the epoch.
    let mut late = view(1, 0, "naimi-trehel");
    late.epoch = Epoch(1 << 26);
    group.members[0] = Shard::new(Arc::new(late), RandomState::with_seeds(1, 2, 3, 4), TURNS);
    for _ in 0..3 {
        let refused = group.ask_with(0, Key { name: "x", permits: 1 }, Ask::default());
        assert_eq!(refused.unwrap_err(), Refusal::Exhausted("x".to_string()));
    }
    assert_eq!(group.members[0].sizes(), [1, 0, 0]);
}

#[test]
fn a_lock_that_nearly_used_up_its_numbers_says_so_once_and_then_its_clients_wait_for_the_next_view()
{
    let mut group = Group::of(2, "naimi-trehel");
    next_view(&mut group, &[0, 1]);
    let name = group.name_at(0);
    for shard in &mut group.members {
        shard.count_from((1 << 31) - 3);
    }
    let mut fences = Vec::new();
    for _ in 0..2 {
        let Asked { place, fence } = group.ask(0, &name);
        fences.extend(fence);
        group.release(0, place);
    }
    assert_eq!(group.used_up, [name.as_str()]);
    // The next number does not fit. Nobody is refused, here or at the other member.
    let waiting = [group.ask(0, &name), group.ask(1, &name)];
    group.settle();
    assert!(waiting.iter().all(|asked| asked.fence.is_none()));
    assert!(group.settled.is_empty());
    next_view(&mut group, &[0, 1]);
    group.settle();
    assert_eq!(group.granted(), [waiting[0].place]);
    fences.extend(
        group.members[0]
            .lock(Key { name: &name, permits: 1 }, group.hash(&name))
            .unwrap()
            .fence_of(waiting[0].place.ticket),
    );
    group.release(0, waiting[0].place);
    group.settle();
    assert_eq!(group.granted(), [waiting[1].place]);
    assert!(fences.len() == 3 && fences.is_sorted_by(|one, two| one < two), "{fences:?}");
    assert!(group.anomalies.is_empty());
}

#[test]
fn a_timer_of_an_earlier_view_is_nobodys() {
    let mut group = Group::of(1, "naimi-trehel");
    let place = group.ask(0, "x").place;
    let timer = SeatTimer { epoch: Epoch(7), lock: place.lock, seat: 0, tag: TimerTag(0) };
    group.step(0, |shard, out| shard.run_out(timer, out));
    assert!(group.anomalies.is_empty());
    let timer = SeatTimer { epoch: Epoch::FIRST, ..timer };
    group.step(0, |shard, out| shard.run_out(timer, out));
    assert_eq!(group.anomalies, ["a timer ran out that was never set"]);
}

#[test]
fn who_watches_hears_of_everything_in_order() {
    let mut group = Group::of(1, "naimi-trehel");
    group.drivers[0].events = Some(Vec::new());
    let first = group.ask(0, "x");
    let second = group.ask(0, "x").place;
    let third = group.ask(0, "x").place;
    group.release(0, third);
    group.release(0, first.place);
    group.release(0, second);
    let changes: Vec<Change> =
        group.drivers[0].events.take().unwrap().into_iter().map(|(_, change)| change).collect();
    let fence = first.fence.unwrap();
    let second = Fence(fence.0 + (1 << 6));
    let expected = [
        Change::Granted(fence),
        Change::Waits,
        Change::Waits,
        Change::GivesUp,
        Change::Released(fence),
        Change::Granted(second),
        Change::Released(second),
    ];
    assert_eq!(changes, expected);
}

/// The next view for the members that are left, with everything that they hold.
fn next_view(group: &mut Group, left: &[usize]) {
    let members: Vec<_> =
        left.iter().map(|&member| group.members[0].view.members[member].clone()).collect();
    let held: Held = left.iter().flat_map(|&member| group.members[member].held()).collect();
    let held = Arc::new(held);
    for &member in left {
        group.drivers[member].sent.clear();
        let view = Arc::new(group.members[member].view.next(members.clone()).unwrap());
        let held = Arc::clone(&held);
        group.step(member, |shard, out| shard.change_view(view, held, out));
    }
}

#[test]
fn the_next_view_begins_with_whoever_is_inside_and_serves_whoever_waits() {
    for algorithm in ["naimi-trehel", "ricart-agrawala", "suzuki-kasami", "maekawa", "raymond"] {
        let mut group = Group::of(3, algorithm);
        let name = group.name_at(2);
        let holder = group.ask(0, &name);
        group.settle();
        let first = holder.fence.unwrap_or_else(|| match group.settled.pop().unwrap().outcome {
            Outcome::Granted(fence) => fence,
            other => panic!("{other:?}"),
        });
        let waits = [group.ask(1, &name).place, group.ask(0, &name).place];
        group.settle();
        group.granted();
        // The home of the lock is gone, and with it perhaps a part of the algorithm's state.
        next_view(&mut group, &[0, 1]);
        group.settle();
        assert_eq!(group.granted(), [], "{algorithm}: it is held");
        assert_eq!(group.members[0].progress(holder.place), Progress::Inside(first));
        group.release(0, holder.place);
        let mut last = first;
        for _ in waits {
            group.settle();
            let settled = group.settled.pop().unwrap_or_else(|| panic!("{algorithm}: stuck"));
            let Outcome::Granted(fence) = settled.outcome else { panic!("{settled:?}") };
            assert!(fence > last, "{algorithm}: {fence} after {last}");
            last = fence;
            group.release(usize::from(settled.place.shard), settled.place);
        }
        assert!(group.anomalies.is_empty(), "{algorithm}: {:?}", group.anomalies);
    }
}

#[test]
fn a_lock_that_is_first_used_in_the_new_view_begins_with_its_holder_inside() {
    let mut group = Group::of(2, "naimi-trehel");
    let name = group.name_at(0);
    let holder = group.ask(0, &name).place;
    next_view(&mut group, &[0, 1]);
    // The other member has never heard of the lock.
    let waits = group.ask(1, &name).place;
    group.settle();
    assert_eq!(group.granted(), []);
    group.release(0, holder);
    group.settle();
    assert_eq!(group.granted(), [waits]);
}

#[test]
fn a_new_view_forgets_the_locks_that_nobody_uses() {
    let mut group = Group::of(1, "naimi-trehel");
    group.drivers[0].room = Some(10);
    let held = group.ask(0, "held").place;
    for number in 0..9 {
        let place = group.ask(0, &alloc::format!("idle/{number}")).place;
        group.release(0, place);
    }
    next_view(&mut group, &[0]);
    assert_eq!(group.members[0].sizes(), [1, 1, 0]);
    assert_eq!(group.drivers[0].room, Some(9));
    for number in 0..9 {
        group.ask(0, &alloc::format!("other/{number}"));
    }
    group.release(0, held);
    assert!(group.ask(0, "held").fence.is_some());
    assert!(group.anomalies.is_empty());
}

#[test]
fn equal_shards_have_equal_hashes_and_different_ones_do_not() {
    let hash = |group: &Group| RandomState::with_seeds(5, 6, 7, 8).hash_one(&group.members[0]);
    let (mut one, mut other) = (Group::of(2, "naimi-trehel"), Group::of(2, "naimi-trehel"));
    assert_eq!(hash(&one), hash(&other));
    one.ask(0, "x");
    assert_ne!(hash(&one), hash(&other));
    other.ask(0, "x");
    assert_eq!(hash(&one), hash(&other));
    let copy = one.members[0].clone();
    let name = one.name_at(0);
    one.ask(0, &name);
    assert_ne!(hash(&one), hash(&other));
    one.members[0] = copy;
    assert_eq!(hash(&one), hash(&other), "a copy is not changed by the original");
}

#[test]
fn suspected_members_are_told_of_also_to_locks_that_are_begun_later() {
    let mut group = Group::of(3, "robust-k");
    group.step(0, |shard, out| shard.suspect(2, out));
    group.step(1, |shard, out| shard.suspect(2, out));
    let place = group.ask(0, "x").place;
    group.drivers[0].sent.retain(|sent| sent.member != 2);
    let mut rounds = 0;
    while !group.settled.iter().any(|settled| settled.place == place) && rounds < 10 {
        for driver in &mut group.drivers {
            driver.sent.retain(|sent| sent.member != 2);
        }
        if let Some((from, sent)) = group.next_message() {
            let hash = group.hash(&sent.name);
            group.step(sent.member, |shard, out| shard.deliver(hash, from, sent.message(), out));
        }
        rounds += 1;
    }
    assert_eq!(group.granted(), [place]);
    let why = Refusal::Excluded("b".to_string());
    let waits = group.ask(0, "x").place;
    group.step(0, |shard, out| shard.exclude(&why, out));
    let refused = Settled { place: waits, request: None, outcome: Outcome::Refused(Box::new(why)) };
    assert_eq!(group.settled, vec![refused]);
}

#[test]
fn times_come_from_the_driver_alone() {
    let mut group = Group::of(1, "naimi-trehel");
    group.drivers[0].now = Time(7) + Duration::from_secs(1);
    let place = group.ask(0, "x").place;
    let lock = &group.members[0].locks[place.lock.0 as usize];
    assert_eq!(lock.holds().next().unwrap().since, group.drivers[0].now);
}

#[test]
fn a_survey_counts_locks_and_names_the_longest_queue_and_the_oldest_holds() {
    let mut group = Group::of(1, "naimi-trehel");
    for number in 0..MOST_OLD + 4 {
        group.drivers[0].now = Time(number as u64 * 1_000_000_000);
        group.ask(0, &format!("x{number:02}"));
    }
    for _ in 0..3 {
        group.ask(0, "x07");
    }
    group.ask(0, "x01");
    let durable = Ask { owner: Owner::DURABLE, ..Ask::default() };
    group.drivers[0].now = Time(0);
    group.ask_with(0, Key { name: "old", permits: 1 }, durable).unwrap();
    let mut survey = Survey::default();
    let now = Time(60_000_000_000);
    group.members[0].survey(now, &mut survey);
    let count = MOST_OLD as u64 + 5;
    assert_eq!((survey.locks, survey.held, survey.waiting), (count, count, 4));
    let longest = survey.longest.unwrap();
    assert_eq!((longest.name.as_str(), longest.waiting), ("x07", 3));
    let oldest: Vec<(&str, u64)> =
        survey.oldest.iter().map(|old| (old.name.as_str(), old.millis)).collect();
    let expected: Vec<String> = (0..MOST_OLD).map(|number| format!("x{number:02}")).collect();
    let expected: Vec<(&str, u64)> =
        expected.iter().zip(0..).map(|(name, n)| (name.as_str(), 60_000 - n * 1000)).collect();
    assert_eq!(oldest, expected, "a durable hold is meant to be old");
}
