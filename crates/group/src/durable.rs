//! Durable holds: they have an owner instead of a session, are written to the registry before they are
//! confirmed, and survive everything that the registry survives.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use catraca_core::Claim;
use serde::{Deserialize, Serialize};

use crate::membership::Run;
use crate::registry::HOLDS;
use crate::shard::HeldLock;
use crate::view::View;

/// Which durable hold. It is drawn at random, and stays the same wherever the hold is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HoldId(pub u128);

impl fmt::Display for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl HoldId {
    /// Its key in the registry.
    pub fn key(self) -> String {
        format!("{HOLDS}{self}")
    }
}

/// A durable hold, as the registry has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DurableHold {
    /// Which one.
    pub id: HoldId,
    /// The locks, in the order of asking.
    pub names: Vec<String>,
    /// How many may be inside each at a time.
    pub permits: u32,
    /// Who it belongs to.
    pub owner: String,
    /// What the owner has to say about it.
    pub note: String,
    /// The client's own name for the request: asking again with it gives the same hold.
    pub request: String,
    /// A fence for each name.
    pub fences: Vec<u64>,
    /// When it was granted, in milliseconds since 1970 by the clock of the member.
    pub unix_millis: u64,
    /// Where it was granted.
    pub granted_at: Run,
    /// What it holds of each instance.
    pub parts: Vec<DurablePart>,
}

/// What a durable hold has of one instance.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DurablePart {
    /// The name of the lock, or the pattern of a namespace whose names are taken in sets.
    pub key: String,
    /// What it holds of the instance.
    pub claim: Claim,
}

/// Finds a seat for every part of a durable hold that nobody has reported: the member where it was is
/// gone. From now on it is held by the home member of its name, or the next one that has a free seat.
pub(crate) fn adopt(view: &View, reported: &[HeldLock], holds: &[DurableHold]) -> Vec<HeldLock> {
    let mut adopted: Vec<HeldLock> = Vec::new();
    for hold in holds {
        for part in &hold.parts {
            let is_it = |held: &&HeldLock| held.name == part.key && held.permits == hold.permits;
            let known = || reported.iter().chain(&adopted).filter(is_it);
            if known().any(|held| held.durable == Some(hold.id)) {
                continue;
            }
            let home = view.home(&part.key);
            let namespace = view.namespace(&part.key);
            let seats = view.seating(namespace, hold.permits, home).seats as u16;
            let members = view.members.len();
            let places = (0..members).flat_map(|step| {
                let member = &view.members[(home + step) % members].name;
                (0..seats).map(move |seat| (member, seat))
            });
            let is_taken = |member: &String, seat| {
                known().any(|held| held.member == *member && held.seat == seat)
            };
            let free = places.into_iter().find(|(member, seat)| !is_taken(member, *seat));
            // There are as many seats as can be inside.
            let Some((member, seat)) = free.map(|(member, seat)| (member.clone(), seat)) else {
                continue;
            };
            adopted.push(HeldLock {
                name: part.key.clone(),
                permits: hold.permits,
                member,
                seat,
                claim: part.claim.clone(),
                durable: Some(hold.id),
            });
        }
    }
    adopted
}
