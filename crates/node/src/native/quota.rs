//! How much all clients together may take of a node.
//!
//! Whoever may connect may be hostile, or only broken: a node that it fills up serves nobody. So
//! there is a limit to the connections of one machine and of all, to the bytes of messages that have
//! not come to their end, and to those of pages that are not being read.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::mutex::hold;

/// All connections of clients.
pub(crate) const MOST_CONNECTIONS: usize = 16_384;
/// Those of one machine. Programs on the node's own machine share it.
pub(crate) const MOST_OF_ONE: usize = MOST_CONNECTIONS / 2;
/// Bytes that have come of messages that have not come to their end.
pub(crate) const MOST_UNFINISHED: usize = 32 << 20;
/// Bytes of pages that have been made and not been written.
pub(crate) const MOST_PAGES: usize = 64 << 20;

/// What all clients take together.
#[derive(Default)]
pub(crate) struct Quota {
    connections: Mutex<Connections>,
    unfinished: AtomicUsize,
    pages: AtomicUsize,
}

#[derive(Default)]
struct Connections {
    count: usize,
    of_machine: BTreeMap<IpAddr, usize>,
    last: u64,
    /// Those without a session, the oldest first: they make way when there is no room.
    idle: BTreeMap<u64, Arc<Notify>>,
}

/// A place among the connections. Dropping it makes room.
pub(crate) struct Place {
    quota: Arc<Quota>,
    number: u64,
    machine: IpAddr,
    /// It is to make way for others.
    makes_way: Arc<Notify>,
}

/// Bytes that count. Dropping it makes room.
pub(crate) struct Bytes<'a> {
    counter: &'a AtomicUsize,
    count: usize,
}

impl Quota {
    /// A place for a connection from `machine`; nothing if there are too many. If all places are
    /// taken, the connection that has been without a session for longest makes way.
    pub(crate) fn enter(self: &Arc<Self>, machine: IpAddr) -> Option<Place> {
        let mut connections = hold(&self.connections);
        if connections.of_machine.get(&machine).is_some_and(|&count| count >= MOST_OF_ONE) {
            connections.make_way();
            return None;
        }
        if connections.count >= MOST_CONNECTIONS {
            connections.make_way();
            return None;
        }
        connections.count += 1;
        connections.last += 1;
        *connections.of_machine.entry(machine).or_default() += 1;
        let (number, makes_way) = (connections.last, Arc::new(Notify::new()));
        connections.idle.insert(number, Arc::clone(&makes_way));
        Some(Place { quota: Arc::clone(self), number, machine, makes_way })
    }

    /// Counts bytes of unfinished messages; nothing if there are too many.
    pub(crate) fn unfinished(&self) -> Bytes<'_> {
        Bytes { counter: &self.unfinished, count: 0 }
    }

    /// Counts bytes of pages.
    pub(crate) fn pages(&self) -> Bytes<'_> {
        Bytes { counter: &self.pages, count: 0 }
    }
}

impl Connections {
    /// Ends the connection that has been without a session for longest.
    fn make_way(&mut self) {
        if let Some((_, oldest)) = self.idle.pop_first() {
            oldest.notify_one();
        }
    }
}

impl Place {
    /// The connection has a session, and stays.
    pub(crate) fn stay(&self) {
        hold(&self.quota.connections).idle.remove(&self.number);
    }

    /// Waits until the connection is to make way for others.
    pub(crate) async fn makes_way(&self) {
        self.makes_way.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut connections = hold(&self.quota.connections);
        connections.idle.remove(&self.number);
        connections.count -= 1;
        if let Some(count) = connections.of_machine.get_mut(&self.machine) {
            *count -= 1;
            if *count == 0 {
                connections.of_machine.remove(&self.machine);
            }
        }
    }
}

impl Bytes<'_> {
    /// From now on so many bytes count. Returns false if there are too many in all.
    pub(crate) fn set(&mut self, count: usize, most: usize) -> bool {
        let before = self.counter.fetch_add(count, Ordering::Relaxed);
        self.counter.fetch_sub(self.count, Ordering::Relaxed);
        let all = before - self.count + count;
        self.count = count;
        all <= most || count == 0
    }
}

impl Drop for Bytes<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(self.count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn one_machine_cannot_take_all_places_and_all_together_no_more_than_there_are() {
        let quota = Arc::new(Quota::default());
        let mut places: Vec<Place> =
            (0..MOST_OF_ONE).map(|_| quota.enter(machine(1)).unwrap()).collect();
        assert!(quota.enter(machine(1)).is_none());
        places.extend((0..MOST_OF_ONE).map(|_| quota.enter(machine(2)).unwrap()));
        assert!(quota.enter(machine(3)).is_none());
        places.pop();
        assert!(quota.enter(machine(3)).is_some());
    }

    #[tokio::test]
    async fn who_has_been_without_a_session_for_longest_makes_way() {
        let quota = Arc::new(Quota::default());
        let mut places: Vec<Place> =
            (0..MOST_OF_ONE).map(|_| quota.enter(machine(1)).unwrap()).collect();
        places[0].stay();
        assert!(quota.enter(machine(1)).is_none());
        places[1].makes_way().await;
        drop(places.remove(1));
        assert!(quota.enter(machine(1)).is_some());
    }

    #[test]
    fn bytes_count_until_they_are_gone() {
        let quota = Quota::default();
        let (mut one, mut two) = (quota.unfinished(), quota.unfinished());
        assert!(one.set(60, 100) && one.set(70, 100));
        assert!(!two.set(40, 100) && two.set(30, 100));
        drop(one);
        assert!(two.set(100, 100));
    }
}
