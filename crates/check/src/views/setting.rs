//! What is explored: the group, its clients, and what goes wrong.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use catraca_group::{
    Acquire, Lease, Member, Namespace, Settings, Time, Turns, VIEW_MUTANTS, View, Wait, WholeMember,
};

use crate::group;
use crate::group::setting::member_name;

/// More members or clients are out of reach.
const MOST_MEMBERS: usize = 5;
const MOST_CLIENTS: usize = 3;
/// How much time passes in one step: as much as between two beats.
pub(super) const STEP: Duration = Duration::from_secs(1);
/// Members are valid for two and a half steps after a beat, and may be excluded after three.
const LEASE: Lease = Lease { ttl: Duration::from_secs(3), margin: Duration::from_millis(500) };

/// What happens to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It is gone, and does not come back.
    Crash,
    /// It is gone, and is started again at any later step.
    Restart,
    /// It does nothing, and goes on at any later step.
    Pause,
    /// It does not reach the registry, and does again at any later step.
    Cut,
}

/// All of them, by name.
const KINDS: [(&str, Kind); 4] = [
    ("crash", Kind::Crash),
    ("restart", Kind::Restart),
    ("pause", Kind::Pause),
    ("cut", Kind::Cut),
];

/// What goes wrong, once, at any step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// What happens.
    pub kind: Kind,
    /// To which member; any of them, if none is named.
    pub member: Option<usize>,
}

impl Failure {
    /// Of this member.
    pub fn of(kind: Kind, member: usize) -> Self {
        Failure { kind, member: Some(member) }
    }

    /// Of any member.
    pub fn of_any(kind: Kind) -> Self {
        Failure { kind, member: None }
    }

    /// Whether it may happen to this member.
    pub(super) fn can_hit(self, member: usize) -> bool {
        self.member.is_none_or(|one| one == member)
    }
}

impl FromStr for Failure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, member) = match text.split_once(':') {
            Some((kind, member)) => (kind, Some(member.parse())),
            None => (text, None),
        };
        let known = KINDS.iter().find(|(name, _)| *name == kind);
        match (known, member.transpose()) {
            (Some(&(_, kind)), Ok(member)) => Ok(Failure { kind, member }),
            _ => Err(format!(
                "'{text}' is no fault: say crash, restart, pause or cut, of any member, or of one as \
                 in crash:1"
            )),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or("", |(name, _)| name);
        match self.member {
            Some(member) => write!(f, "{name}:{member}"),
            None => f.write_str(name),
        }
    }
}

/// A group that has begun, the clients of each member, and what goes wrong.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The algorithm that guards the locks.
    pub algorithm: String,
    /// How many members there are.
    pub members: usize,
    /// How many clients each member has.
    pub clients: usize,
    /// How many requests each client makes.
    pub requests: u32,
    /// Only so many of the clients ask at all, the first of each member first.
    pub askers: usize,
    /// How many may be inside a lock at once.
    pub permits: u32,
    /// How long the turns of members are.
    pub turns: Turns,
    /// What is asked for: client i, counting those of all members, asks for the names at place i,
    /// going round.
    pub names: Vec<Vec<String>>,
    /// Into how many resources names are put, where the algorithm knows sets.
    pub resources: u32,
    /// Whether the first client is inside when the exploration begins.
    pub begins_inside: bool,
    /// What goes wrong.
    pub failure: Failure,
    /// The rule that is broken on purpose, one of [`VIEW_MUTANTS`].
    pub mutant: Option<&'static str>,
}

/// Why a setting cannot be explored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The group cannot be explored, whether it changes or not.
    #[error(transparent)]
    Group(#[from] group::SettingError),
    /// Too few, or too many.
    #[error("there are {0} {1} in a group that changes; say {2} to {3}")]
    Count(usize, &'static str, usize, usize),
    /// A member that is not there.
    #[error("there is no member {0} that could fail: members are numbered from 0 to {1}")]
    NoSuchMember(usize, usize),
    /// There is no such mutant.
    #[error("there is no broken rule of views '{0}'; there are {1}")]
    UnknownMutant(String, String),
}

impl Setting {
    /// Three members with a client each, which asks for one lock once.
    pub fn new(algorithm: &str, failure: Failure) -> Self {
        Setting {
            algorithm: algorithm.to_string(),
            members: 3,
            clients: 1,
            requests: 1,
            askers: usize::MAX,
            permits: 1,
            turns: Turns::USUAL,
            names: vec![vec!["x".to_string()]],
            resources: 8,
            begins_inside: false,
            failure,
            mutant: None,
        }
    }

    /// The same with the broken rule of this name.
    pub fn mutated(self, name: &str) -> Result<Self, SettingError> {
        let Some(mutant) = VIEW_MUTANTS.iter().find(|mutant| mutant.name == name) else {
            let names: Vec<&str> = VIEW_MUTANTS.iter().map(|mutant| mutant.name).collect();
            return Err(SettingError::UnknownMutant(name.to_string(), names.join(", ")));
        };
        Ok(Setting { mutant: Some(mutant.name), ..self })
    }

    /// Whether such a group can be explored.
    pub(super) fn check(&self) -> Result<(), SettingError> {
        let counts = [
            (self.members, "members", 2, MOST_MEMBERS),
            (self.clients, "clients of a member", 1, MOST_CLIENTS),
            (self.requests as usize, "requests of a client", 1, usize::MAX),
            (self.askers, "clients that ask", 1, usize::MAX),
        ];
        for (count, what, least, most) in counts {
            if !(least..=most).contains(&count) {
                return Err(SettingError::Count(count, what, least, most));
            }
        }
        match self.failure.member {
            Some(member) if member >= self.members => {
                return Err(SettingError::NoSuchMember(member, self.members - 1));
            }
            _ => {}
        }
        // What members refuse, they refuse in groups that do not change, too.
        let Setting { members, clients, permits, turns, resources, .. } = *self;
        let names = self.names.clone();
        let fixed = group::Setting::new(&self.algorithm);
        group::Setting { members, clients, permits, turns, resources, names, ..fixed }.check()?;
        Ok(())
    }

    fn settings(&self, me: usize) -> Settings {
        let name = member_name(me);
        let namespace =
            Namespace { resources: self.resources, ..Namespace::new("*", &self.algorithm) };
        Settings {
            member: Member { address: String::new(), name, cluster: None },
            lease: LEASE,
            namespaces: vec![namespace],
            detector: None,
            roster: Vec::new(),
            may_register: true,
        }
    }

    /// A member that is about to join.
    pub(super) fn member(&self, me: usize, incarnation: u64, now: Time) -> WholeMember {
        let member = WholeMember::joining(self.settings(me), incarnation, self.turns, now);
        match self.mutant {
            Some(mutant) => member.with_rules(mutant),
            None => member,
        }
    }

    /// Whether sets are asked for whole.
    pub(super) fn knows_sets(&self) -> bool {
        let Settings { member, namespaces, detector, .. } = self.settings(0);
        View::new(vec![member], 0, namespaces, detector).knows_sets(0, self.permits)
    }

    /// What a client asks for.
    pub(super) fn asked(&self, client: usize) -> Acquire {
        let (names, permits) = (self.names_of(client).to_vec(), self.permits);
        Acquire { names, permits, wait: Wait::Forever }
    }

    /// The names that a client asks for.
    pub(super) fn names_of(&self, client: usize) -> &[String] {
        &self.names[client % self.names.len()]
    }

    /// The member of a client.
    pub(super) fn member_of(&self, client: usize) -> usize {
        client / self.clients
    }

    /// Whether a client asks at all.
    pub(super) fn asks(&self, client: usize) -> bool {
        let rank = client % self.clients * self.members + self.member_of(client);
        rank < self.askers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_read_as_it_is_written() {
        for text in ["crash", "restart:0", "pause:2", "cut"] {
            assert_eq!(text.parse::<Failure>().map(|failure| failure.to_string()), Ok(text.into()));
        }
        for text in ["", "crash:", "crash:x", "crash:-1", "burn", "crash:1:2"] {
            assert!(text.parse::<Failure>().is_err(), "{text}");
        }
    }
}
