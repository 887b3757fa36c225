//! What no run may show to its clients.
//!
//! The judge knows who asked for what, who was told that it has it, and who has let go. It knows
//! neither members nor algorithms from inside, but for one thing: a fence says which grant of the
//! group it belongs to, so those who were served in one turn of a member can be told.

use std::collections::BTreeMap;

use catraca_core::{Claim, Fence, property};
use catraca_group::{Epoch, Turns, unpack_fence};

use crate::monitor::{Broken, Fences};

/// So many turns of a lock are remembered. A turn that is older is over: a semaphore has at most 64
/// at a time.
const TURNS_KEPT: usize = 256;
/// How many waiting clients a report names.
const NAMED: usize = 8;

/// A request: the client, and its number for it.
pub(super) type RequestKey = (usize, u32);

#[derive(Clone, Debug)]
struct Request {
    locks: Vec<u32>,
    member: usize,
    is_held: bool,
}

/// A lock at one member, from the group's grant until it goes back.
#[derive(Clone, Copy, Debug)]
struct Turn {
    member: usize,
    /// How often the lock may be handed over in it.
    handovers: u8,
}

#[derive(Debug)]
struct Lock {
    holders: Vec<RequestKey>,
    fences: Fences,
    turns: BTreeMap<(Epoch, Fence), Turn>,
}

/// Watches what clients see.
#[derive(Debug)]
pub(super) struct Judge {
    permits: usize,
    turns: Turns,
    locks: Vec<Lock>,
    requests: BTreeMap<RequestKey, Request>,
    /// How many requests for a lock wait at a member, at the most: the member may not know yet of those
    /// that were taken back, so they count for good.
    queues: BTreeMap<(u32, usize), usize>,
}

impl Judge {
    pub(super) fn new(locks: u32, permits: u32, turns: Turns) -> Self {
        let lock = |_| Lock {
            holders: Vec::new(),
            fences: Fences::new(1, permits),
            turns: BTreeMap::new(),
        };
        Judge {
            permits: permits as usize,
            turns,
            locks: (0..locks).map(lock).collect(),
            requests: BTreeMap::new(),
            queues: BTreeMap::new(),
        }
    }

    /// A client of `member` asks for these locks.
    pub(super) fn asks(&mut self, key: RequestKey, member: usize, locks: Vec<u32>) {
        for &lock in &locks {
            *self.queues.entry((lock, member)).or_default() += 1;
        }
        let request = Request { locks, member, is_held: false };
        self.requests.insert(key, request);
    }

    /// A client is told that it has what it asked for, with a fence for each lock.
    pub(super) fn grants(&mut self, key: RequestKey, fences: &[u64]) -> Result<(), Broken> {
        let (client, number) = key;
        let anomaly = |what| Err(Broken { invariant: property::NO_ANOMALY, what });
        let Some(request) = self.requests.get(&key).cloned() else {
            return anomaly(format!("client {client} is granted request {number}, which it lacks"));
        };
        if request.is_held {
            return anomaly(format!("client {client} is granted request {number} twice"));
        }
        if request.locks.len() != fences.len() {
            let count = fences.len();
            return anomaly(format!("client {client} has {count} fences for request {number}"));
        }
        self.check_order(key, &request)?;
        for (&lock, &fence) in request.locks.iter().zip(fences) {
            self.enter(lock, key, fence)?;
            self.check_turn(lock, client, &request, fence)?;
            if let Some(queue) = self.queues.get_mut(&(lock, request.member)) {
                *queue -= 1;
            }
        }
        if let Some(request) = self.requests.get_mut(&key) {
            request.is_held = true;
        }
        Ok(())
    }

    /// Nothing that the client has asked for before, the same locks, is still waiting.
    fn check_order(&self, (client, number): RequestKey, request: &Request) -> Result<(), Broken> {
        let earlier = self.requests.range((client, 0)..(client, number));
        let overtaken =
            |(_, other): &(&RequestKey, &Request)| !other.is_held && other.locks == request.locks;
        match earlier.into_iter().find(overtaken) {
            None => Ok(()),
            Some(((_, first), _)) => Err(Broken {
                invariant: property::ORDER_OF_ASKING,
                what: format!("request {number} of client {client} overtakes its request {first}"),
            }),
        }
    }

    /// At most so many have a lock, and its fences grow.
    fn enter(&mut self, lock: u32, key: RequestKey, fence: u64) -> Result<(), Broken> {
        let Lock { holders, fences, .. } = &mut self.locks[lock as usize];
        holders.push(key);
        if holders.len() > self.permits {
            let others: Vec<String> = holders
                .iter()
                .filter(|&&holder| holder != key)
                .map(|(client, _)| client.to_string())
                .collect();
            let (client, others) = (key.0, others.join(", "));
            let what = format!("client {client} gets lock {lock} while client {others} has it");
            return Err(Broken { invariant: property::MUTUAL_EXCLUSION, what });
        }
        let fence = fences.grant(&Claim::single(), Fence(fence));
        fence.map_err(|Broken { invariant, what }| {
            let what = format!("of lock {lock} at client {}, {what}", key.0);
            Broken { invariant, what }
        })
    }

    /// A turn of a member is as long as its queue was when it began, so many times over, up to the
    /// bound.
    fn check_turn(
        &mut self,
        lock: u32,
        client: usize,
        request: &Request,
        fence: u64,
    ) -> Result<(), Broken> {
        let (epoch, number, handover) = unpack_fence(Fence(fence));
        let turns = &mut self.locks[lock as usize].turns;
        let queue = self.queues.get(&(lock, request.member)).copied().unwrap_or(0);
        let handovers = self.turns.handovers_for(queue);
        let now = Turn { member: request.member, handovers };
        let Turn { member, handovers } = *turns.entry((epoch, number)).or_insert(now);
        if turns.len() > TURNS_KEPT {
            turns.pop_first();
        }
        let broken = |what| Err(Broken { invariant: property::BOUNDED_HANDOVER, what });
        if handover > handovers {
            return broken(format!(
                "lock {lock} comes to client {client} by hand-over {handover} of at most {handovers}"
            ));
        }
        if member != request.member {
            let here = request.member;
            return broken(format!(
                "lock {lock} is handed over from member {member} to client {client} of member {here}"
            ));
        }
        Ok(())
    }

    /// A client lets go of a request, whether it was granted or not.
    pub(super) fn ends(&mut self, key: RequestKey) {
        let Some(request) = self.requests.remove(&key) else { return };
        for lock in request.locks {
            self.locks[lock as usize].holders.retain(|&holder| holder != key);
        }
    }

    /// How many requests wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = RequestKey> {
        self.requests.iter().filter(|(_, request)| !request.is_held).map(|(&key, _)| key)
    }

    /// Called when nothing more can happen.
    pub(super) fn nobody_waits(&self) -> Result<(), Broken> {
        let mut waiting: Vec<usize> = self.waiting().map(|(client, _)| client).collect();
        waiting.dedup();
        if waiting.is_empty() {
            return Ok(());
        }
        let mut named: Vec<String> = waiting.iter().take(NAMED).map(usize::to_string).collect();
        if waiting.len() > NAMED {
            named.push(format!("and {} more", waiting.len() - NAMED));
        }
        let what = format!("nothing more can happen, but these clients wait: {}", named.join(", "));
        Err(Broken { invariant: property::NOBODY_WAITS_FOR_EVER, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fence of the group's grant with this number, after so many hand-overs.
    fn fence(number: u64, handover: u64) -> [u64; 1] {
        [number << 6 | handover]
    }

    fn turns(handovers: u8) -> Turns {
        Turns { handovers, rounds: 1 }
    }

    fn asking(judge: &mut Judge, clients: &[usize]) {
        for &client in clients {
            judge.asks((client, 1), client % 2, vec![0]);
        }
    }

    fn broken(result: Result<(), Broken>) -> (&'static str, String) {
        result.map_err(|Broken { invariant, what }| (invariant, what)).unwrap_err()
    }

    #[test]
    fn one_holder_too_many_is_noticed_and_one_who_has_left_does_not_count() {
        let mut judge = Judge::new(1, 2, turns(3));
        asking(&mut judge, &[0, 1, 2, 3]);
        assert_eq!(judge.grants((0, 1), &fence(1, 0)), Ok(()));
        assert_eq!(judge.grants((1, 1), &fence(2, 0)), Ok(()));
        judge.ends((0, 1));
        assert_eq!(judge.grants((2, 1), &fence(3, 0)), Ok(()));
        let (property, what) = broken(judge.grants((3, 1), &fence(4, 0)));
        assert_eq!(property, property::MUTUAL_EXCLUSION);
        assert_eq!(what, "client 3 gets lock 0 while client 1, 2 has it");
    }

    #[test]
    fn fences_that_do_not_grow_are_noticed() {
        let mut judge = Judge::new(1, 1, turns(3));
        asking(&mut judge, &[0, 1]);
        assert_eq!(judge.grants((0, 1), &fence(5, 0)), Ok(()));
        judge.ends((0, 1));
        let (property, _) = broken(judge.grants((1, 1), &fence(4, 0)));
        assert_eq!(property, property::FENCES_INCREASE);
    }

    #[test]
    fn a_request_that_overtakes_an_earlier_one_of_its_client_is_noticed() {
        let mut judge = Judge::new(2, 1, turns(3));
        judge.asks((0, 1), 0, vec![0]);
        judge.asks((0, 2), 0, vec![1]);
        judge.asks((0, 3), 0, vec![0]);
        assert_eq!(judge.grants((0, 2), &fence(1, 0)), Ok(()), "it is for another lock");
        let (property, what) = broken(judge.grants((0, 3), &fence(1, 0)));
        assert_eq!(property, property::ORDER_OF_ASKING);
        assert_eq!(what, "request 3 of client 0 overtakes its request 1");
    }

    #[test]
    fn too_many_handovers_are_noticed() {
        let mut judge = Judge::new(1, 1, turns(1));
        asking(&mut judge, &[0, 2, 4]);
        assert_eq!(judge.grants((0, 1), &fence(1, 0)), Ok(()));
        judge.ends((0, 1));
        assert_eq!(judge.grants((2, 1), &fence(1, 1)), Ok(()));
        judge.ends((2, 1));
        assert_eq!(broken(judge.grants((4, 1), &fence(1, 2))).0, property::BOUNDED_HANDOVER);
    }

    #[test]
    fn a_turn_that_grows_with_its_queue_is_noticed() {
        let mut judge = Judge::new(1, 1, Turns { handovers: 9, rounds: 2 });
        asking(&mut judge, &[0]);
        assert_eq!(judge.grants((0, 1), &fence(1, 0)), Ok(()));
        asking(&mut judge, &[2, 4]);
        judge.ends((0, 1));
        assert_eq!(judge.grants((2, 1), &fence(1, 1)), Ok(()));
        judge.ends((2, 1));
        let (property, what) = broken(judge.grants((4, 1), &fence(1, 2)));
        assert_eq!(property, property::BOUNDED_HANDOVER);
        assert!(what.ends_with("by hand-over 2 of at most 1"), "{what}");
    }

    #[test]
    fn a_handover_to_another_member_is_noticed() {
        let mut judge = Judge::new(1, 1, turns(3));
        asking(&mut judge, &[0, 1]);
        assert_eq!(judge.grants((0, 1), &fence(1, 0)), Ok(()));
        judge.ends((0, 1));
        assert_eq!(broken(judge.grants((1, 1), &fence(1, 1))).0, property::BOUNDED_HANDOVER);
    }

    #[test]
    fn grants_that_nobody_asked_for_or_that_come_twice_are_noticed() {
        let mut judge = Judge::new(1, 1, turns(3));
        asking(&mut judge, &[0]);
        assert_eq!(broken(judge.grants((1, 1), &fence(1, 0))).0, property::NO_ANOMALY);
        assert_eq!(broken(judge.grants((0, 1), &[1, 2])).0, property::NO_ANOMALY);
        assert_eq!(judge.grants((0, 1), &fence(1, 0)), Ok(()));
        assert_eq!(broken(judge.grants((0, 1), &fence(2, 0))).0, property::NO_ANOMALY);
    }

    #[test]
    fn who_waits_at_the_end_is_named() {
        let mut judge = Judge::new(1, 1, turns(3));
        assert_eq!(judge.nobody_waits(), Ok(()));
        asking(&mut judge, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let (property, what) = broken(judge.nobody_waits());
        assert_eq!(property, property::NOBODY_WAITS_FOR_EVER);
        assert!(what.ends_with("0, 1, 2, 3, 4, 5, 6, 7, and 2 more"), "{what}");
    }
}
