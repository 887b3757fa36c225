//! What is counted for those who watch a node from outside, in the form of OpenMetrics.
//!
//! Most numbers are counted where they arise, and are read when somebody asks; here are those that arise
//! nowhere else. No lock's name is a label: there may be any number of them.

mod scrape;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use catraca_group::Histogram;

use crate::mutex::hold;
pub(crate) use scrape::text;

/// How somebody talks to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Interface {
    Native,
    Peer,
    Http,
    Resp,
}

impl Interface {
    const ALL: [Interface; 4] =
        [Interface::Native, Interface::Peer, Interface::Http, Interface::Resp];

    fn word(self) -> &'static str {
        match self {
            Interface::Native => "native",
            Interface::Peer => "peer",
            Interface::Http => "http",
            Interface::Resp => "resp",
        }
    }
}

/// What is counted of one interface.
#[derive(Default)]
struct Traffic {
    open: AtomicU64,
    connections: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
}

/// What is counted.
#[derive(Default)]
pub(crate) struct Metrics {
    traffic: [Traffic; Interface::ALL.len()],
    rejected: Mutex<BTreeMap<&'static str, u64>>,
    views: AtomicU64,
    registry: Mutex<Histogram>,
    registry_failures: AtomicU64,
}

/// A connection, for as long as it is open.
pub(crate) struct Connected<'a>(&'a Traffic);

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    fn traffic(&self, interface: Interface) -> &Traffic {
        &self.traffic[interface as usize]
    }

    /// A connection is open until what this returns is dropped.
    pub(crate) fn connect(&self, interface: Interface) -> Connected<'_> {
        let traffic = self.traffic(interface);
        traffic.open.fetch_add(1, Ordering::Relaxed);
        traffic.connections.fetch_add(1, Ordering::Relaxed);
        Connected(traffic)
    }

    /// So many bytes have come.
    pub(crate) fn receive(&self, interface: Interface, bytes: usize) {
        self.traffic(interface).received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// So many bytes were sent.
    pub(crate) fn send(&self, interface: Interface, bytes: usize) {
        self.traffic(interface).sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A request was refused, with this code; codes are a fixed set.
    pub(crate) fn reject(&self, code: &'static str) {
        *hold(&self.rejected).entry(code).or_default() += 1;
    }

    /// How many requests were refused so far.
    pub(crate) fn refused(&self) -> u64 {
        hold(&self.rejected).values().sum()
    }

    /// How long the registry has taken to answer.
    pub(crate) fn registry_times(&self) -> Histogram {
        *hold(&self.registry)
    }

    /// A view begins.
    pub(crate) fn begin_view(&self) {
        self.views.fetch_add(1, Ordering::Relaxed);
    }

    /// The registry has answered after this time, or has not.
    pub(crate) fn ask_registry(&self, took: Duration, is_answered: bool) {
        hold(&self.registry).add(took, 1);
        if !is_answered {
            self.registry_failures.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
