//! What the registry says of a group: its view, and a beat of every member.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::registry::{Answer, Item, Revision};
use crate::view::{Epoch, Member};

/// The key of the view.
pub(crate) const VIEW: &str = "view";
/// The key of the roster.
pub(crate) const ROSTER: &str = "members";
/// What the keys of beats begin with.
pub(super) const BEATS: &str = "beat/";
/// The form in which values are written. It changes when their types do.
const FORM: u8 = 2;
/// More views than a group has in days, whatever befalls it, and few enough to be skipped a thousand times.
const FAR: u32 = 1 << 16;

/// The key of a member's beat.
pub(crate) fn beat_key(name: &str) -> String {
    format!("{BEATS}{name}")
}

/// One run of a member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Run {
    /// The member's name.
    pub name: String,
    /// A number that no other run of it has.
    pub incarnation: u64,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl Run {
    /// Whether it keeps its lease up, as an answer of the registry shows it. One that does not any more will
    /// never write a durable hold again.
    pub fn beats_in(&self, answer: &Answer) -> bool {
        let beat = answer.state.get(&beat_key(&self.name));
        let beat = beat.and_then(|item| decode::<Beat>(&item.value));
        beat.is_some_and(|beat| beat.incarnation == self.incarnation)
    }
}

/// A member of a view.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// Who it is.
    pub member: Member,
    /// Which run of it.
    pub incarnation: u64,
    /// Whether it has to leave: it cannot reach some of the others.
    pub is_leaving: bool,
}

impl Entry {
    /// Which run of the member it is.
    pub fn run(&self) -> Run {
        Run { name: self.member.name.clone(), incarnation: self.incarnation }
    }
}

/// Why a view began.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cause {
    /// The group began with this member.
    Founded(String),
    /// A member joined.
    Joined(String),
    /// A member left in order.
    Left(String),
    /// Members were excluded: they had not renewed their leases.
    Lost(Vec<String>),
    /// A member had lost its lease, and got it back before it was excluded.
    Recovered(String),
    /// To forget names that nobody uses.
    Forgetting,
    /// The numbers of a lock's fences were nearly used up.
    UsedUp(String),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Founded(name) => write!(f, "'{name}' founded the group"),
            Cause::Joined(name) => write!(f, "'{name}' joined"),
            Cause::Left(name) => write!(f, "'{name}' left"),
            Cause::Lost(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
                write!(f, "{} did not renew the lease", names.join(", "))
            }
            Cause::Recovered(name) => write!(f, "'{name}' got its lease back"),
            Cause::Forgetting => f.write_str("unused names were forgotten"),
            Cause::UsedUp(name) => write!(f, "the fences of '{name}' were nearly used up"),
        }
    }
}

/// The view, as the registry has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ViewRecord {
    /// Its number.
    pub epoch: Epoch,
    /// Every member, in the order of joining. The first one makes the table of what is held.
    pub members: Vec<Entry>,
    /// Why it began.
    pub cause: Cause,
    /// A number that differs if the configurations of two members do.
    pub configuration: u64,
}

impl ViewRecord {
    /// The member called `name`.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.members.iter().find(|entry| entry.member.name == name)
    }

    /// Whether this run of a member is in it.
    pub fn has(&self, run: &Run) -> bool {
        self.entry(&run.name).is_some_and(|entry| entry.incarnation == run.incarnation)
    }

    /// Its key in the registry.
    pub const KEY: &str = VIEW;

    /// The same view as the registry has it, so many numbers later that no view which others may have had
    /// meanwhile, in a registry that is lost, had a later one; nothing if it cannot be read, or there are
    /// no more numbers.
    pub fn far_later(value: &[u8]) -> Option<Vec<u8>> {
        let mut record: ViewRecord = decode(value)?;
        record.epoch = record.epoch.later(FAR)?;
        Some(encode(&record))
    }

    /// The next view, with other members; nothing when there are no more numbers.
    pub(crate) fn next(&self, members: Vec<Entry>, cause: Cause) -> Option<ViewRecord> {
        let epoch = self.epoch.next()?;
        Some(ViewRecord { epoch, members, cause, configuration: self.configuration })
    }
}

/// Who belongs to the group, whether it is in the view or not. A member that is lost for a while stays
/// on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Roster {
    /// Every member, in the order of joining.
    pub members: Vec<Member>,
}

impl Roster {
    /// Its key in the registry.
    pub const KEY: &str = ROSTER;

    /// The roster that an answer shows, and when it was written.
    pub fn of(answer: &Answer) -> Option<(Revision, Roster)> {
        let item = answer.state.get(ROSTER)?;
        Some((item.at, decode(&item.value)?))
    }

    /// As the registry keeps it.
    pub fn encoded(&self) -> Vec<u8> {
        encode(self)
    }

    /// The same with this member as it is now.
    pub fn with(&self, member: &Member) -> Roster {
        let mut members = self.members.clone();
        match members.iter_mut().find(|known| known.name == member.name) {
            Some(known) => known.clone_from(member),
            None => members.push(member.clone()),
        }
        Roster { members }
    }

    /// The same without the member called `name`.
    pub fn without(&self, name: &str) -> Roster {
        let mut members = self.members.clone();
        members.retain(|member| member.name != name);
        Roster { members }
    }

    /// Whether the member called `name` is on it.
    pub fn has(&self, name: &str) -> bool {
        self.members.iter().any(|member| member.name == name)
    }
}

/// What a member writes to prolong its lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Beat {
    /// Which run of the member.
    pub incarnation: u64,
    /// Beats differ, so that each of them is a change.
    pub number: u64,
    /// The members that it has not reached for the length of a lease.
    pub unreached: Vec<Run>,
}

/// A value as the registry keeps it.
pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    // Writing to memory does not fail.
    postcard::to_extend(value, Vec::from([FORM])).unwrap_or_default()
}

/// Reads a value; nothing if it was written in another form.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    match bytes.split_first() {
        Some((&FORM, rest)) => postcard::from_bytes(rest).ok(),
        _ => None,
    }
}

/// The beats among the keys of the registry, by member.
pub(crate) fn beats(
    state: &BTreeMap<String, Item>,
) -> impl Iterator<Item = (&str, Revision, Revision, Option<Beat>)> {
    state.range(String::from(BEATS)..).map_while(|(key, item)| {
        let name = key.strip_prefix(BEATS)?;
        Some((name, item.born, item.at, decode(&item.value)))
    })
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    #[test]
    fn a_value_of_another_form_is_not_read() {
        let other = Run { name: "b".to_string(), incarnation: 3 };
        let beat = Beat { incarnation: 1, number: 2, unreached: vec![other] };
        let mut bytes = encode(&beat);
        assert_eq!(decode(&bytes), Some(beat));
        bytes[0] = 9;
        assert_eq!(decode::<Beat>(&bytes), None);
        assert_eq!(decode::<Beat>(&[]), None);
    }

    #[test]
    fn a_view_far_later_is_the_same_but_for_its_number() {
        let entry = |epoch| ViewRecord {
            epoch: Epoch(epoch),
            members: vec![],
            cause: Cause::Founded("a".to_string()),
            configuration: 7,
        };
        let later = ViewRecord::far_later(&encode(&entry(3))).unwrap();
        assert_eq!(decode(&later), Some(entry(3 + 65_536)));
        assert_eq!(ViewRecord::far_later(&encode(&entry(u32::MAX >> 6))), None, "no more numbers");
        assert_eq!(ViewRecord::far_later(&[9, 1]), None);
    }

    #[test]
    fn causes_are_told_in_words() {
        let lost = Cause::Lost(vec!["a".to_string(), "b".to_string()]);
        assert_eq!(lost.to_string(), "'a', 'b' did not renew the lease");
        assert_eq!(Cause::Joined("c".to_string()).to_string(), "'c' joined");
    }
}
