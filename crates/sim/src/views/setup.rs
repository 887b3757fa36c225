//! What determines a run, beside its seed.

use std::time::Duration;

use catraca_group::{Lease, MOST_PERMITS, Member, Namespace, Settings};

use crate::members::{self, SetupError};
use crate::time::Time;

/// Larger runs are no more telling, and take long.
const MOST_MEMBERS: u64 = 16;
const MOST_CLIENTS: u64 = 1000;
const MOST_LOCKS: u64 = 1000;

/// How much the rates of clocks differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// As much as the margin of the lease allows.
    Allowed,
    /// More than that, to see it fail.
    Excessive,
}

/// One thing that goes wrong at one step of a change of the view, and nothing else: a member crashes
/// first, so that there is a change, and then the one that makes the table of the next view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strike {
    /// At which of its steps, counted from the crash of the first one.
    pub step: u64,
    /// Whether it is paused for longer than its lease, instead of crashing.
    pub is_pause: bool,
}

/// A group, its clients, and how much goes wrong.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The algorithm that guards every lock.
    pub algorithm: String,
    /// How many members.
    pub members: usize,
    /// How many clients.
    pub clients: usize,
    /// How many locks.
    pub locks: u32,
    /// How many of the clients ask for durable holds.
    pub durable: usize,
    /// How many of the others use timed holds.
    pub timed: usize,
    /// Whether one thing goes wrong after the other, and not several at a time.
    pub one_by_one: bool,
    /// Whether the group falls into two parts again and again, and nothing else goes wrong.
    pub splits: bool,
    /// What the numbers of grants begin after in every view, to see what happens when they are used up.
    pub first_number: u64,
    /// How many may be inside each.
    pub permits: u32,
    /// How many locks a request asks for.
    pub claim: u32,
    /// For how long things go wrong.
    pub faulty: Time,
    /// How often somebody must be served after everything has healed.
    pub rounds: u32,
    /// Everybody is served so long after everything has healed.
    pub patience: Time,
    /// The leases of members.
    pub lease: Lease,
    /// The rates of clocks.
    pub drift: Drift,
    /// How often somebody ends a hold by force while things go wrong.
    pub forces: u32,
    /// Whether clients go on although they are told that their holds are ended, to see it fail.
    pub deaf: bool,
    /// Where the one that makes the table is struck, instead of the faults that a seed draws.
    pub strike: Option<Strike>,
    /// Whether the first two members do not reach each other when everything else has healed, although both
    /// reach the others and the registry.
    pub lasting_cut: bool,
    /// A rule of views that is broken, to see it caught.
    pub mutant: Option<&'static str>,
}

impl Setup {
    /// Two clients for each member, two locks, half a minute of faults.
    pub fn new(algorithm: &str, members: usize) -> Self {
        Setup {
            algorithm: algorithm.to_string(),
            members,
            clients: 2 * members,
            locks: 2,
            durable: 0,
            timed: 0,
            one_by_one: false,
            splits: false,
            first_number: 0,
            permits: 1,
            claim: 1,
            faulty: Time::units(30),
            rounds: 2,
            patience: Time::units(60),
            lease: Lease::of(Duration::from_secs(2)),
            drift: Drift::Allowed,
            forces: 0,
            deaf: false,
            strike: None,
            lasting_cut: false,
            mutant: None,
        }
    }

    /// Checks that there can be such a run.
    pub fn check(&self) -> Result<(), SetupError> {
        let within = |what, given: u64, most: u64| match given {
            given if (1..=most).contains(&given) => Ok(()),
            given => Err(SetupError::Range { what, least: 1, most, given }),
        };
        within("members", self.members as u64, MOST_MEMBERS)?;
        within("clients", self.clients as u64, MOST_CLIENTS)?;
        within("locks", self.locks.into(), MOST_LOCKS)?;
        within("permits", self.permits.into(), MOST_PERMITS.into())?;
        within("locks in a request", self.claim.into(), MOST_LOCKS)?;
        if self.claim > self.locks {
            return Err(SetupError::Claim { asked: self.claim, locks: self.locks });
        }
        if self.claim > 1 && self.permits > 1 {
            return Err(SetupError::SetOfSemaphores);
        }
        let permits = self.permits;
        let group = members::Setup { permits, ..members::Setup::new(&self.algorithm, 1) };
        members::Setup { members: self.members as u32, ttl: None, ..group }.check()
    }

    /// The settings of member `site`.
    pub(super) fn settings(&self, site: usize) -> Settings {
        Settings {
            member: Member { name: format!("m{site}"), address: String::new(), cluster: None },
            lease: self.lease,
            namespaces: vec![Namespace::new("*", &self.algorithm)],
            detector: None,
            roster: Vec::new(),
            may_register: true,
        }
    }

    /// How many millionths a clock may differ from true time.
    pub(super) fn drift(&self) -> i64 {
        let margin = self.lease.margin.as_secs_f64() / self.lease.ttl.as_secs_f64();
        match self.drift {
            // The margin suffices if it is at least 2r/(1+r).
            Drift::Allowed => (margin / (2.0 - margin) * 0.9 * 1e6) as i64,
            Drift::Excessive => (margin * 2.0 * 1e6) as i64,
        }
    }
}
