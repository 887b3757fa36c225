//! Durable holds: they have an owner instead of a session, are written to the registry before they are
//! confirmed, and survive everything that the registry survives.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use catraca_core::Claim;
use serde::{Deserialize, Serialize};

use crate::membership::{Run, decode};
use crate::refusal::Refusal;
use crate::registry::{HOLDS, Revision};
use crate::shard::HeldLock;
use crate::view::{View, stable_hash};
use crate::wait::Wait;

/// Which durable hold. It stays the same wherever the hold is.
///
/// It follows from the owner and the name of the request, so that whoever asks again finds the hold by
/// its key, at every member and after every restart; there is no second key that could say otherwise.
/// What is found is compared with what was asked for, so two requests with the same id would not get
/// each other's holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HoldId(pub u128);

impl fmt::Display for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl HoldId {
    /// The hold of this owner by the request of this name.
    pub fn of(owner: &str, request: &str) -> Self {
        let text = format!("{}:{owner}{request}", owner.len());
        let high = stable_hash(&text, 1);
        HoldId(u128::from(high) << 64 | u128::from(stable_hash(&text, high)))
    }

    /// Its key in the registry.
    pub fn key(self) -> String {
        format!("{HOLDS}{self}")
    }

    /// The hold with this key, if it is one of a hold.
    pub fn of_key(key: &str) -> Option<Self> {
        u128::from_str_radix(key.strip_prefix(HOLDS)?, 16).ok().map(HoldId)
    }

    /// What a page of holds begins after whose first one is this, if it is there.
    pub(crate) fn before(self) -> String {
        self.0.checked_sub(1).map_or_else(String::new, |before| HoldId(before).key())
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

/// The longest owner, and the longest name of a request, in bytes.
pub const LONGEST_OWNER: usize = 255;
/// The longest note, in bytes.
pub const LONGEST_NOTE: usize = 1024;

/// A request for a durable hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AcquireDurable {
    /// The locks: all of them, or none.
    pub names: Vec<String>,
    /// How many may be inside each at a time.
    pub permits: u32,
    /// How long to wait.
    pub wait: Wait,
    /// Who it is to belong to.
    pub owner: String,
    /// What the owner has to say about it.
    pub note: String,
    /// The client's own name for the request. Each request of an owner has another one; asking again
    /// with it gives the same hold.
    pub request: String,
}

impl AcquireDurable {
    /// Which hold this asks for.
    pub fn id(&self) -> HoldId {
        HoldId::of(&self.owner, &self.request)
    }

    /// Checks the texts.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let text = |what: &str, most| Refusal::DurableText(what.into(), most);
        match self {
            _ if !(1..=LONGEST_OWNER).contains(&self.owner.len()) => {
                Err(text("an owner", LONGEST_OWNER))
            }
            _ if !(1..=LONGEST_OWNER).contains(&self.request.len()) => {
                Err(text("the name of a request", LONGEST_OWNER))
            }
            _ if self.note.len() > LONGEST_NOTE => Err(text("a note", LONGEST_NOTE)),
            _ => Ok(()),
        }
    }
}

/// Which durable hold is to be released, and by whom.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Unlock {
    /// Which one.
    pub target: Target,
    /// Who says so: it has to be the owner. Nothing if it is released by force.
    pub owner: Option<String>,
}

/// A durable hold that is to belong to somebody else from now on. Its locks are never free meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// Which one.
    pub id: HoldId,
    /// Who it belongs to now: if that is somebody else, nothing is done.
    pub from: String,
    /// Who it is to belong to.
    pub to: String,
    /// What the new owner has to say about it.
    pub note: String,
}

impl Transfer {
    /// Checks the texts.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let text = |what: &str, most| Refusal::DurableText(what.into(), most);
        match self {
            _ if !(1..=LONGEST_OWNER).contains(&self.to.len()) => {
                Err(text("an owner", LONGEST_OWNER))
            }
            _ if self.note.len() > LONGEST_NOTE => Err(text("a note", LONGEST_NOTE)),
            _ => Ok(()),
        }
    }
}

/// What names a durable hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Target {
    /// Its id.
    Id(HoldId),
    /// One of its locks.
    Name(String),
}

impl DurableHold {
    /// Whether this is what `asked` asks for: another request of the same name is not.
    pub(crate) fn answers(&self, asked: &DurableHold) -> bool {
        let of = |hold: &DurableHold| {
            let DurableHold { id, names, permits, owner, request, .. } = hold.clone();
            (id, names, permits, owner, request)
        };
        of(self) == of(asked)
    }

    /// Reads what the registry keeps of a durable hold; nothing if that is something else.
    pub fn read(value: &[u8]) -> Option<Self> {
        decode(value)
    }

    /// Whether this is the grant that `written` was written for, whoever it belongs to by now.
    pub(crate) fn is_grant_of(&self, written: &DurableHold) -> bool {
        let of = |hold: &DurableHold| {
            let DurableHold { id, names, permits, fences, granted_at, .. } = hold.clone();
            (id, names, permits, fences, granted_at)
        };
        of(self) == of(written)
    }
}

/// A durable hold whose member is gone, and when it was written. Another member has it from now on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Adopted {
    /// When it was written.
    pub born: Revision,
    /// What was written.
    pub hold: DurableHold,
}

/// Finds a seat for every part of a durable hold that nobody has reported: the member where it was is
/// gone. From now on it is held by the home member of its name, or the next one that has a free seat.
pub(crate) fn adopt(view: &View, reported: &[HeldLock], holds: &[Adopted]) -> Vec<HeldLock> {
    let mut known: BTreeMap<(&str, u32), Vec<Taken<'_>>> = BTreeMap::new();
    for held in reported {
        let taken = Taken { member: &held.member, seat: held.seat, durable: held.durable };
        known.entry((&held.name, held.permits)).or_default().push(taken);
    }
    let mut adopted: Vec<HeldLock> = Vec::new();
    for Adopted { hold, .. } in holds {
        for part in &hold.parts {
            let taken = known.entry((&part.key, hold.permits)).or_default();
            if taken.iter().any(|taken| taken.durable == Some(hold.id)) {
                continue;
            }
            // There are as many seats as can be inside.
            let Some((member, seat)) = free_seat(view, &part.key, hold.permits, taken) else {
                continue;
            };
            taken.push(Taken { member, seat, durable: Some(hold.id) });
            adopted.push(HeldLock {
                name: part.key.clone(),
                permits: hold.permits,
                member: member.into(),
                seat,
                claim: part.claim.clone(),
                durable: Some(hold.id),
                timed: None,
            });
        }
    }
    adopted
}

/// A seat that somebody has.
struct Taken<'a> {
    member: &'a str,
    seat: u16,
    durable: Option<HoldId>,
}

/// The first seat that nobody has, from the home member on.
fn free_seat<'a>(
    view: &'a View,
    key: &str,
    permits: u32,
    taken: &[Taken<'_>],
) -> Option<(&'a str, u16)> {
    let home = view.home(key);
    let seats = view.seating(view.namespace(key), permits, home).seats as u16;
    let members = view.members.len();
    let mut places = (0..members).flat_map(|step| {
        let member = view.members[(home + step) % members].name.as_str();
        (0..seats).map(move |seat| (member, seat))
    });
    places.find(|place| !taken.iter().any(|taken| (taken.member, taken.seat) == *place))
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::view::tests::view;

    #[test]
    fn requests_that_differ_have_different_holds() {
        let ids = [("a", "b"), ("ab", ""), ("", "ab"), ("a", "c"), ("b", "a"), ("1:a", "b")];
        let ids = ids.map(|(owner, request)| HoldId::of(owner, request));
        for (place, id) in ids.iter().enumerate() {
            assert!(!ids[..place].contains(id));
            assert_eq!(id.key().len(), HOLDS.len() + 32);
            assert!(id.before() < id.key());
            assert_eq!(HoldId::of_key(&id.key()), Some(*id));
        }
        assert_eq!(HoldId::of("a", "b"), HoldId::of("a", "b"));
    }

    fn adopted(id: u128, permits: u32) -> Adopted {
        let names = Vec::from(["x".to_string()]);
        let parts = Vec::from([DurablePart { key: "x".into(), claim: Claim::single() }]);
        let text = String::new;
        let granted_at = Run { name: "z".into(), incarnation: 1 };
        let hold = DurableHold {
            id: HoldId(id),
            names,
            permits,
            owner: text(),
            note: text(),
            request: text(),
            fences: Vec::from([1]),
            unix_millis: 0,
            granted_at,
            parts,
        };
        Adopted { born: Revision(1), hold }
    }

    #[test]
    fn what_nobody_reports_is_adopted_once_and_each_gets_a_seat_of_its_own() {
        let view = view(2, 0, "raymond-k");
        let holds = [adopted(1, 3), adopted(2, 3), adopted(3, 3)];
        let all = adopt(&view, &[], &holds);
        let mut places: Vec<_> = all.iter().map(|held| (held.member.clone(), held.seat)).collect();
        places.sort();
        places.dedup();
        assert_eq!((all.len(), places.len()), (3, 3));
        assert!(adopt(&view, &all, &holds).is_empty());
        assert_eq!(adopt(&view, &all[..2], &holds), all[2..]);
    }
}
