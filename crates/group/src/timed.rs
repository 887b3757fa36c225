//! Timed holds: they live by a time to live and not by a connection, and whoever knows the id, or the name
//! of the lock and the token, renews or releases them at whichever member it asks.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::time::Duration;

use catraca_core::Claim;
use serde::{Deserialize, Serialize};

use crate::durable::{DurablePart, HoldId};
use crate::refusal::Refusal;
use crate::session::{Who, is_same_secret};
use crate::shard::HeldLock;
use crate::view::{Epoch, View};
use crate::wait::Wait;

/// How long a timed hold may live unless it is renewed.
pub const TIMED_TTL_RANGE: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(86_400);
/// The longest token, in bytes.
pub const LONGEST_TOKEN: usize = 1024;
/// A member asks at most so many questions about timed holds at a time.
pub const MOST_QUESTIONS: usize = 10_000;

/// A request for a hold that lives by a time to live and not by a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcquireTimed {
    /// Which hold it is to be: drawn by the driver, so that nobody can guess it.
    pub id: HoldId,
    /// The locks: all of them, or none.
    pub names: Vec<String>,
    /// How many may be inside each at a time.
    pub permits: u32,
    /// How long to wait.
    pub wait: Wait,
    /// How long the hold lives from its grant on, unless it is renewed.
    pub ttl: Duration,
    /// Who asks, as lists show it.
    pub who: Who,
    /// What the client proves with that a hold is its own when it gives the name of the lock and not the
    /// id; empty if it never does.
    pub token: Vec<u8>,
}

impl AcquireTimed {
    /// Checks the time to live and the token.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check_ttl(self.ttl)?;
        match self.token.len() > LONGEST_TOKEN {
            true => Err(Refusal::LongToken(self.token.len())),
            false => Ok(()),
        }
    }
}

/// Whether a timed hold can live so long.
pub(crate) fn check_ttl(ttl: Duration) -> Result<(), Refusal> {
    match TIMED_TTL_RANGE.contains(&ttl) {
        true => Ok(()),
        false => Err(Refusal::Ttl { ttl, least: *TIMED_TTL_RANGE.start() }),
    }
}

/// A timed hold as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TimedHold {
    /// Which one.
    pub id: HoldId,
    /// The locks, in the order of asking.
    pub names: Vec<String>,
    /// How many may be inside each at a time.
    pub permits: u32,
    /// A fence for each name.
    pub fences: Vec<u64>,
    /// Who has it.
    pub who: Who,
    /// What its client proves itself with.
    pub token: Vec<u8>,
    /// The member where it is.
    pub member: String,
    /// How long it was to live when it was granted or renewed last.
    pub ttl: Duration,
    /// How long it lives from now on, unless it is renewed.
    pub left: Duration,
}

/// A timed hold as another member remembers it, so that it is not lost with its member.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TimedCopy {
    /// In which view it was told of, and when in it: of two copies the larger is the newer one.
    pub version: (Epoch, u64),
    /// The hold. What it has left counts from when this comes.
    pub hold: TimedHold,
    /// What it holds of each instance.
    pub parts: Vec<DurablePart>,
}

impl TimedCopy {
    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let TimedHold { names, who, token, .. } = &self.hold;
        // Each name may be there twice, with a fence and a claim.
        let names: usize = names.iter().map(|name| 2 * name.len() + 64).sum();
        128 + names + token.len() + 4 * (who.label.len() + who.host.len() + who.identity.len())
    }

    /// What it holds of each instance, with the fence.
    fn fenced(&self, view: &View) -> Vec<(&DurablePart, u64)> {
        let permits = self.hold.permits;
        let mut fences: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, &fence) in self.hold.names.iter().zip(&self.hold.fences) {
            let namespace = view.namespace(name);
            let is_set = view.knows_sets(namespace, permits);
            fences.insert(if is_set { &view.namespaces[namespace].pattern } else { name }, fence);
        }
        let fence = |part: &DurablePart| fences.get(part.key.as_str()).copied().unwrap_or(0);
        self.parts.iter().map(|part| (part, fence(part))).collect()
    }
}

/// A timed hold that changes its member: who has it from now on, and where.
pub(crate) type Moved = (String, TimedCopy, Vec<HeldLock>);

/// Finds seats for the timed holds of members that are gone: at whoever remembers them, if it has seats.
///
/// A copy that contradicts what is held is of no use: the hold was released, and its member could not say
/// so any more. Of two copies that contradict each other, the one with the smaller fence is.
pub(crate) fn take_over(
    view: &View,
    held: &[HeldLock],
    orphans: Vec<(String, TimedCopy)>,
) -> Vec<Moved> {
    let mut newest: BTreeMap<HoldId, (String, TimedCopy)> = BTreeMap::new();
    for (member, copy) in orphans {
        let known = newest.get(&copy.hold.id);
        if known.is_none_or(|(_, known)| known.version < copy.version) {
            newest.insert(copy.hold.id, (member, copy));
        }
    }
    let mut seats: BTreeMap<(String, u32), Vec<Seat>> = BTreeMap::new();
    for lock in held {
        let seat = Seat { member: lock.member.clone(), seat: lock.seat, claim: lock.claim.clone() };
        seats.entry((lock.name.clone(), lock.permits)).or_default().push(seat);
    }
    let mut fences: BTreeMap<&str, Vec<(&Claim, u64)>> = BTreeMap::new();
    for (_, copy) in newest.values().filter(|(_, copy)| copy.hold.permits == 1) {
        for (part, fence) in copy.fenced(view) {
            fences.entry(&part.key).or_default().push((&part.claim, fence));
        }
    }
    let is_over = |copy: &TimedCopy| {
        let permits = copy.hold.permits;
        copy.fenced(view).into_iter().any(|(part, fence)| {
            let taken = seats.get(&(part.key.clone(), permits)).map_or(&[][..], |taken| taken);
            let later = fences.get(part.key.as_str()).map_or(&[][..], |later| later);
            match permits {
                1 => {
                    taken.iter().any(|taken| taken.claim.overlaps(&part.claim))
                        || later
                            .iter()
                            .any(|&(claim, it)| it > fence && claim.overlaps(&part.claim))
                }
                permits => taken.len() >= permits as usize,
            }
        })
    };
    let valid: Vec<HoldId> =
        newest.iter().filter(|(_, (_, copy))| !is_over(copy)).map(|(&id, _)| id).collect();
    let mut moved = Vec::new();
    for id in valid {
        if let Some((member, copy)) = newest.get(&id)
            && let Some(locks) = find_seats(view, member, copy, &mut seats)
        {
            let to = locks.first().map_or_else(|| member.clone(), |lock| lock.member.clone());
            moved.push((to, copy.clone(), locks));
        }
    }
    moved
}

/// A seat that somebody has.
struct Seat {
    member: String,
    seat: u16,
    claim: Claim,
}

/// Seats for all parts of a hold at one member: the one that remembers it, or the next one that has them.
fn find_seats(
    view: &View,
    member: &str,
    copy: &TimedCopy,
    seats: &mut BTreeMap<(String, u32), Vec<Seat>>,
) -> Option<Vec<HeldLock>> {
    let permits = copy.hold.permits;
    let first = view.members.iter().position(|it| it.name == member).unwrap_or(0);
    let count = view.members.len();
    let free = |name: &str, part: &DurablePart, seats: &BTreeMap<(String, u32), Vec<Seat>>| {
        let taken = seats.get(&(part.key.clone(), permits)).map_or(&[][..], |taken| taken);
        let many = view.seating(view.namespace(&part.key), permits, view.home(&part.key)).seats;
        (0..many as u16).find(|&seat| !taken.iter().any(|it| it.member == name && it.seat == seat))
    };
    let at = |place: usize| -> Option<Vec<HeldLock>> {
        let name = view.members[place].name.as_str();
        let lock = |part: &DurablePart| {
            Some(HeldLock {
                name: part.key.clone(),
                permits,
                member: name.into(),
                seat: free(name, part, seats)?,
                claim: part.claim.clone(),
                durable: None,
                timed: Some(copy.hold.id),
            })
        };
        copy.parts.iter().map(lock).collect()
    };
    let locks = (0..count).find_map(|step| at((first + step) % count))?;
    for lock in &locks {
        let seat = Seat { member: lock.member.clone(), seat: lock.seat, claim: lock.claim.clone() };
        seats.entry((lock.name.clone(), permits)).or_default().push(seat);
    }
    Some(locks)
}

/// Which timed hold is meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Which {
    /// The one with this id.
    Id(HoldId),
    /// The one that holds this lock, of which there is one permit.
    Name {
        /// The lock.
        name: String,
        /// The token that it has to have; nothing if it does not matter.
        token: Option<Vec<u8>>,
    },
    /// The same, if it holds no other lock and can be proven by a token. So whoever knows of one lock only
    /// compares and ends in one step, and never ends what it did not name.
    Alone {
        /// The lock.
        name: String,
        /// The token that it has to have; nothing if it may be any.
        token: Option<Vec<u8>>,
    },
}

impl Which {
    /// What it is called in a refusal.
    pub(crate) fn called(&self) -> String {
        match self {
            Which::Id(id) => id.to_string(),
            Which::Name { name, .. } | Which::Alone { name, .. } => name.clone(),
        }
    }

    /// The lock, if it is meant by one.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Which::Id(_) => None,
            Which::Name { name, .. } | Which::Alone { name, .. } => Some(name),
        }
    }

    /// Whether a hold with this token and so many locks may be meant.
    pub(crate) fn admits(&self, held: &[u8], locks: usize) -> bool {
        let (token, is_fit) = match self {
            Which::Id(_) => (&None, true),
            Which::Name { token, .. } => (token, true),
            // Who has no token proves nothing by saying none.
            Which::Alone { token, .. } => (token, locks == 1 && !held.is_empty()),
        };
        is_fit && token.as_ref().is_none_or(|token| is_same_secret(token, held))
    }
}

/// How the time that a timed hold has left changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Renewal {
    /// It lives so long from now on.
    To(Duration),
    /// It lives so much longer, but never longer than the longest time to live.
    By(Duration),
}

impl Renewal {
    /// How long a hold lives from now on that had so much left.
    pub(crate) fn left(self, before: Duration) -> Result<Duration, Refusal> {
        match self {
            Renewal::To(ttl) => check_ttl(ttl).map(|()| ttl),
            Renewal::By(more) => Ok(before.saturating_add(more).min(*TIMED_TTL_RANGE.end())),
        }
    }
}

/// What is to be done with a timed hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// To tell how it is.
    Look,
    /// To change how long it lives.
    Renew(Renewal),
    /// To end it.
    Release,
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::view::tests::view;

    #[test]
    fn a_renewal_never_leaves_more_than_the_longest_time_to_live() {
        let (second, most) = (Duration::from_secs(1), *TIMED_TTL_RANGE.end());
        assert_eq!(Renewal::To(second).left(most), Ok(second));
        assert_eq!(Renewal::By(second).left(second), Ok(2 * second));
        assert_eq!(Renewal::By(most).left(second), Ok(most));
        assert_eq!(Renewal::By(Duration::MAX).left(Duration::MAX), Ok(most));
        assert_eq!(Renewal::By(Duration::ZERO).left(second), Ok(second));
        for ttl in [Duration::ZERO, Duration::from_micros(999), most + second, Duration::MAX] {
            let least = *TIMED_TTL_RANGE.start();
            assert_eq!(Renewal::To(ttl).left(second), Err(Refusal::Ttl { ttl, least }));
        }
    }

    /// A hold of these locks with these fences, as it was told of for the `version`th time.
    fn copy(id: u128, names: &[(&str, u64)], permits: u32, version: u64) -> TimedCopy {
        let part = |name: &str| DurablePart { key: name.into(), claim: Claim::single() };
        TimedCopy {
            version: (Epoch::FIRST, version),
            parts: names.iter().map(|(name, _)| part(name)).collect(),
            hold: TimedHold {
                id: HoldId(id),
                names: names.iter().map(|(name, _)| name.to_string()).collect(),
                permits,
                fences: names.iter().map(|(_, fence)| *fence).collect(),
                who: Who::default(),
                token: Vec::new(),
                member: "gone".into(),
                ttl: Duration::from_secs(1),
                left: Duration::from_secs(version),
            },
        }
    }

    fn held(name: &str, permits: u32, member: &str, seat: u16) -> HeldLock {
        let (claim, member) = (Claim::single(), member.to_string());
        HeldLock { name: name.into(), permits, member, seat, claim, durable: None, timed: None }
    }

    /// Who has which hold from now on, by its id, and in which seats.
    fn moved(held: &[HeldLock], copies: &[(&str, TimedCopy)]) -> Vec<(u128, String, Vec<u16>)> {
        let view = view(3, 0, "raymond-k");
        let copies = copies.iter().map(|(member, copy)| (member.to_string(), copy.clone()));
        let moved = take_over(&view, held, copies.collect());
        let line = |(member, copy, locks): &Moved| {
            assert!(locks.iter().all(|lock| lock.member == *member));
            let seats = locks.iter().map(|lock| lock.seat).collect();
            (copy.hold.id.0, member.clone(), seats)
        };
        moved.iter().map(line).collect()
    }

    #[test]
    fn whoever_remembers_a_hold_has_it_and_of_several_the_newest() {
        let (old, new) = (copy(1, &[("x", 5)], 1, 1), copy(1, &[("x", 5)], 1, 2));
        for copies in [[("a", old.clone()), ("b", new.clone())], [("b", new), ("a", old)]] {
            assert_eq!(moved(&[], &copies), [(1, "b".to_string(), vec![0])]);
        }
    }

    #[test]
    fn a_copy_that_contradicts_what_is_held_is_of_no_use() {
        let both = copy(1, &[("x", 5), ("y", 6)], 1, 1);
        let copies = [("a", both)];
        assert_eq!(moved(&[], &copies), [(1, "a".to_string(), vec![0, 0])]);
        for name in ["x", "y"] {
            assert_eq!(moved(&[held(name, 1, "c", 0)], &copies), []);
        }
        assert_eq!(moved(&[held("z", 1, "c", 0)], &copies).len(), 1);
    }

    #[test]
    fn of_two_copies_of_one_lock_the_one_with_the_smaller_fence_is_of_no_use() {
        // The largest fence of the first one is that of another lock.
        let first = copy(1, &[("x", 100), ("y", 6)], 1, 9);
        let second = copy(2, &[("y", 7), ("z", 1)], 1, 1);
        let copies = [("a", first), ("b", second)];
        assert_eq!(moved(&[], &copies), [(2, "b".to_string(), vec![0, 0])]);
    }

    #[test]
    fn every_permit_gets_a_seat_of_its_own() {
        let copies = [("a", copy(1, &[("x", 5)], 3, 1)), ("a", copy(2, &[("x", 6)], 3, 1))];
        let seats = moved(&[held("x", 3, "a", 0)], &copies);
        let (one, two) = ((1, "a".to_string(), vec![1]), (2, "a".to_string(), vec![2]));
        assert_eq!(seats, [one, two]);
    }
}
