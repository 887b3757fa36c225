//! How much all clients together may take of a node.
//!
//! Whoever may connect may be hostile, or only broken: a node that it fills up serves nobody. So
//! there is a limit to the connections of one machine and of all, to the bytes of messages that have
//! not come to their end, and to those of pages that are not being read.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
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

/// So many callers for whom there is no room are told so at a time. The others are hung up on.
pub(crate) const MOST_FAREWELLS: usize = 256;

/// What all clients take together.
#[derive(Default)]
pub(crate) struct Quota {
    connections: Mutex<Connections>,
    unfinished: AtomicUsize,
    pages: AtomicUsize,
    farewells: AtomicUsize,
}

#[derive(Default)]
struct Connections {
    count: usize,
    of_machine: BTreeMap<IpAddr, Machine>,
    last: u64,
    /// The machines with connections that can make way, by how many connections they have.
    crowds: BTreeSet<(usize, IpAddr)>,
}

/// The connections of one machine.
#[derive(Default)]
struct Machine {
    count: usize,
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
    /// A place for a connection from `machine`; nothing if there are too many. Then one that has been without a
    /// session for longest makes way: of this machine if that has too many, and else of the machine that has
    /// most. So whoever floods a node pushes out itself.
    pub(crate) fn enter(self: &Arc<Self>, machine: IpAddr) -> Option<Place> {
        let machine = whole(machine);
        let mut connections = hold(&self.connections);
        if connections.of_machine.get(&machine).is_some_and(|its| its.count >= MOST_OF_ONE) {
            connections.make_way(machine);
            return None;
        }
        if connections.count >= MOST_CONNECTIONS {
            if let Some(&(_, crowd)) = connections.crowds.last() {
                connections.make_way(crowd);
            }
            return None;
        }
        connections.count += 1;
        connections.last += 1;
        let (number, makes_way) = (connections.last, Arc::new(Notify::new()));
        connections.change(machine, |its| {
            its.count += 1;
            its.idle.insert(number, Arc::clone(&makes_way));
        });
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

    /// Counts those who are told that there is no room.
    pub(crate) fn farewells(&self) -> Bytes<'_> {
        Bytes { counter: &self.farewells, count: 0 }
    }

    /// Counts the answers over one connection among the pages, whoever writes them.
    pub(crate) fn unread(self: &Arc<Self>) -> Share {
        let (quota, counter, most) = (Arc::clone(self), pages as Counter, MOST_PAGES);
        Share { quota, counter, most, count: AtomicUsize::new(0) }
    }

    /// Counts what has been read ahead over one connection among the unfinished messages.
    pub(crate) fn ahead(self: &Arc<Self>) -> Share {
        let (quota, counter, most) = (Arc::clone(self), unfinished as Counter, MOST_UNFINISHED);
        Share { quota, counter, most, count: AtomicUsize::new(0) }
    }
}

/// Which of the counters.
type Counter = fn(&Quota) -> &AtomicUsize;

fn pages(quota: &Quota) -> &AtomicUsize {
    &quota.pages
}

fn unfinished(quota: &Quota) -> &AtomicUsize {
    &quota.unfinished
}

/// What one connection has of the bytes that count, whoever knows how many. Dropping it makes room.
pub(crate) struct Share {
    quota: Arc<Quota>,
    counter: Counter,
    most: usize,
    count: AtomicUsize,
}

impl Share {
    /// So many bytes more. Returns false if there are too many in all; they count nevertheless.
    pub(crate) fn add(&self, bytes: usize) -> bool {
        self.count.fetch_add(bytes, Ordering::Relaxed);
        (self.counter)(&self.quota).fetch_add(bytes, Ordering::Relaxed) + bytes <= self.most
    }

    /// None of them is left.
    pub(crate) fn clear(&self) {
        let count = self.count.swap(0, Ordering::Relaxed);
        (self.counter)(&self.quota).fetch_sub(count, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Connections {
    /// Ends the connection of this machine that has been without a session for longest.
    fn make_way(&mut self, machine: IpAddr) {
        self.change(machine, |its| {
            if let Some((_, oldest)) = its.idle.pop_first() {
                oldest.notify_one();
            }
        });
    }

    /// Changes what is known of a machine.
    fn change(&mut self, machine: IpAddr, change: impl FnOnce(&mut Machine)) {
        let its = self.of_machine.entry(machine).or_default();
        self.crowds.remove(&(its.count, machine));
        change(its);
        if !its.idle.is_empty() {
            self.crowds.insert((its.count, machine));
        }
        if its.count == 0 {
            self.of_machine.remove(&machine);
        }
    }
}

/// The machine that an address belongs to. One machine has many addresses of IPv6, mostly all that begin in the
/// same way.
fn whole(machine: IpAddr) -> IpAddr {
    match machine.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        other => other,
    }
}

impl Place {
    /// The connection has a session, and stays.
    pub(crate) fn stay(&self) {
        let number = self.number;
        hold(&self.quota.connections).change(self.machine, |its| {
            its.idle.remove(&number);
        });
    }

    /// The machine that it comes from.
    pub(crate) fn machine(&self) -> IpAddr {
        self.machine
    }

    /// Waits until the connection is to make way for others.
    pub(crate) async fn makes_way(&self) {
        self.makes_way.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut connections = hold(&self.quota.connections);
        connections.count -= 1;
        connections.change(self.machine, |its| {
            its.idle.remove(&self.number);
            its.count -= 1;
        });
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

    /// Whether this connection is to make way.
    async fn is_told(place: &Place) -> bool {
        let mut told = std::pin::pin!(place.makes_way());
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(told.as_mut().poll(context).is_ready())
        })
        .await
    }

    #[tokio::test]
    async fn whoever_floods_a_node_pushes_out_itself_and_not_others() {
        let quota = Arc::new(Quota::default());
        let others = [quota.enter(machine(1)).unwrap(), quota.enter(machine(2)).unwrap()];
        let most = MOST_CONNECTIONS - others.len();
        let mut flood: Vec<Place> =
            (0..most).map(|n| quota.enter(machine(3 + (n % 2) as u8)).unwrap()).collect();
        // Of two that flood, whoever has the more connections; then the other one, as the place is not free yet.
        for address in [1, 2, 3, 4, 9] {
            assert!(quota.enter(machine(address)).is_none());
        }
        for place in &others {
            assert!(!is_told(place).await, "an idle connection of another machine");
        }
        let mut told = 0;
        for place in &flood {
            told += usize::from(is_told(place).await);
        }
        assert_eq!(told, 5);
        flood.clear();
        // One machine at its limit takes nothing from others either.
        flood.extend((0..MOST_OF_ONE).map(|_| quota.enter(machine(5)).unwrap()));
        assert!(quota.enter(machine(5)).is_none());
        assert!(is_told(&flood[0]).await);
        for place in &others {
            assert!(!is_told(place).await);
        }
        drop((flood, others));
        let connections = hold(&quota.connections);
        assert!(connections.of_machine.is_empty() && connections.crowds.is_empty());
        assert_eq!(connections.count, 0);
    }

    #[test]
    fn answers_count_until_they_are_written_or_their_connection_is_gone() {
        let quota = Arc::new(Quota::default());
        let (one, other) = (quota.unread(), quota.unread());
        assert!(one.add(MOST_PAGES - 1) && other.add(1));
        assert!(!one.add(1), "that is too much");
        one.clear();
        assert!(other.add(MOST_PAGES - 1));
        drop(other);
        assert!(one.add(MOST_PAGES));
    }

    #[test]
    fn the_addresses_of_one_machine_are_one() {
        let parse = |text: &str| whole(text.parse().unwrap());
        assert_eq!(parse("2001:db8::1"), parse("2001:db8::ffff:2"));
        assert_ne!(parse("2001:db8::1"), parse("2001:db8:0:1::1"));
        assert_eq!(parse("::ffff:10.0.0.1"), parse("10.0.0.1"));
        assert_ne!(parse("10.0.0.1"), parse("10.0.0.2"));
        // The node's own machine, and whoever comes by the socket.
        assert_ne!(parse("::1"), parse("::"));
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
