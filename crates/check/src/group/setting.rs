//! What is explored: the group, its clients, and what they may do.

use catraca_algorithms::SpecError;
use catraca_group::{
    Acquire, Input, Member, Namespace, Notice, Output, Refusal, USUAL_DETECTOR, View, Wait, Who,
    WholeMember,
};
use catraca_group::{MOST_HANDOVERS, Owner, Time, Turns};

use super::mutants::{self, Mutant};
use super::world::Recorder;

/// The most members and clients of each that have names: A to Z, and 1 to 9.
const MOST_MEMBERS: usize = 26;
const MOST_CLIENTS: usize = 9;

/// A group of members, the clients of each, and what may happen.
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
    /// How many may be inside a lock at once.
    pub permits: u32,
    /// How long the turns of members are.
    pub turns: Turns,
    /// What is asked for: client i, counting those of all members, asks for the names at place i,
    /// going round.
    pub names: Vec<Vec<String>>,
    /// Into how many resources names are put, where the algorithm knows sets.
    pub resources: u32,
    /// How long each request waits. If not for ever, patience may end at any moment.
    pub wait: Wait,
    /// How many requests may be taken back while they wait, in all.
    pub cancels: u32,
    /// Which view may follow the first, at any moment.
    pub next_view: Option<NextView>,
    /// What is broken on purpose.
    pub mutant: Option<&'static Mutant>,
}

/// Who is in the second view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NextView {
    /// All members.
    Same,
    /// All but this one: its clients are gone, with all that they held.
    Without(usize),
}

/// Why a setting cannot be explored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The algorithm cannot run in such a group.
    #[error(transparent)]
    Algorithm(#[from] SpecError),
    /// A member refuses what the clients ask for.
    #[error("no member takes such requests: {0}")]
    Refused(Refusal),
    /// Too many, or none.
    #[error("there are {0} {1}; say 1 to {2}")]
    Count(usize, &'static str, usize),
    /// A next view without a member that is not there.
    #[error("member {0} cannot be left out of the next view: members are numbered from 0 to {1}")]
    NoSuchMember(usize, usize),
    /// The only member cannot go.
    #[error("the only member cannot be left out of the next view; explore at least two")]
    NobodyLeft,
    /// More hand-overs than a fence can count.
    #[error("a lock is handed over at most {MOST_HANDOVERS} times in a row; say no more")]
    Handovers,
    /// No rounds, or more than a turn can have.
    #[error("a turn has 1 to {} rounds", Turns::MOST_ROUNDS)]
    Rounds,
    /// There is no such mutant.
    #[error("there is no broken member '{0}'; there are {1}")]
    UnknownMutant(String, String),
}

impl Setting {
    /// Two members with two clients each, one request by each for one lock, the usual turns, and
    /// one request that may be taken back.
    pub fn new(algorithm: &str) -> Self {
        Setting {
            algorithm: algorithm.to_string(),
            members: 2,
            clients: 2,
            requests: 1,
            permits: 1,
            turns: Turns::USUAL,
            names: vec![vec!["x".to_string()]],
            resources: 8,
            wait: Wait::Forever,
            cancels: 1,
            next_view: None,
            mutant: None,
        }
    }

    /// The same with what the mutant of this name breaks.
    pub fn mutated(self, name: &str) -> Result<Self, SettingError> {
        let Some(mutant) = mutants::ALL.iter().find(|mutant| mutant.name == name) else {
            let names: Vec<&str> = mutants::ALL.iter().map(|mutant| mutant.name).collect();
            return Err(SettingError::UnknownMutant(name.to_string(), names.join(", ")));
        };
        Ok(Setting { mutant: Some(mutant), ..self })
    }

    /// Whether such a group can be explored.
    pub(super) fn check(&self) -> Result<(), SettingError> {
        let counts = [
            (self.members, "members", MOST_MEMBERS),
            (self.clients, "clients of a member", MOST_CLIENTS),
            (self.names.len(), "sets of names", usize::MAX),
            (self.resources as usize, "resources", catraca_group::MOST_RESOURCES as usize),
        ];
        for (count, what, most) in counts {
            if count == 0 || count > most {
                return Err(SettingError::Count(count, what, most));
            }
        }
        if self.turns.handovers > MOST_HANDOVERS {
            return Err(SettingError::Handovers);
        }
        if !(1..=Turns::MOST_ROUNDS).contains(&self.turns.rounds) {
            return Err(SettingError::Rounds);
        }
        match self.next_view {
            Some(NextView::Without(member)) if member >= self.members => {
                return Err(SettingError::NoSuchMember(member, self.members - 1));
            }
            Some(NextView::Without(_)) if self.members == 1 => {
                return Err(SettingError::NobodyLeft);
            }
            _ => {}
        }
        self.view(0).check().map_err(|(_, error)| error)?;
        (0..self.names.len()).try_for_each(|client| self.check_request(client))
    }

    /// Whether a member takes the requests of a client, tried on one that is the whole group.
    fn check_request(&self, client: usize) -> Result<(), SettingError> {
        let (mut driver, mut out) = (Recorder::default(), Vec::new());
        let mut member = self.member(0);
        for other in 1..self.members {
            member.step(Input::LinkUp(other, 1), &mut driver, &mut out);
        }
        member.step(Input::Open(Who::default(), None), &mut driver, &mut out);
        member.step(Input::Request(Owner(1), 0, self.asked(client)), &mut driver, &mut out);
        let refused = out.into_iter().find_map(|output| match output {
            Output::Notice(_, Notice::Refused { why, .. }) => Some(why),
            _ => None,
        });
        refused.map_or(Ok(()), |why| Err(SettingError::Refused(why)))
    }

    /// The first view, as `me` sees it.
    fn view(&self, me: usize) -> View {
        let members = (0..self.members).map(|member| {
            let name = member_name(member);
            Member { address: format!("{name}:1"), name, cluster: None }
        });
        let resources = self.resources;
        let namespace = Namespace { resources, ..Namespace::new("*", &self.algorithm) };
        View::new(members.collect(), me, vec![namespace], Some(USUAL_DETECTOR))
    }

    /// Whether sets are asked for whole.
    pub(super) fn knows_sets(&self) -> bool {
        self.view(0).knows_sets(0, self.permits)
    }

    /// A member that has just begun.
    pub(super) fn member(&self, me: usize) -> WholeMember {
        let member = WholeMember::new(self.view(me), 1, self.turns, Time(0));
        match self.mutant.and_then(Mutant::of_lock) {
            Some(mutant) => member.mutated(mutant),
            None => member,
        }
    }

    /// What a client asks for.
    pub(super) fn asked(&self, client: usize) -> Acquire {
        Acquire { names: self.names_of(client).to_vec(), permits: self.permits, wait: self.wait }
    }

    /// The names that a client asks for.
    pub(super) fn names_of(&self, client: usize) -> &[String] {
        &self.names[client % self.names.len()]
    }

    /// The member of a client.
    pub(super) fn member_of(&self, client: usize) -> usize {
        client / self.clients
    }

    /// The clients of a member.
    pub(super) fn clients_of(&self, member: usize) -> std::ops::Range<usize> {
        member * self.clients..(member + 1) * self.clients
    }

    /// The session of a client at its member.
    pub(super) fn owner_of(&self, client: usize) -> Owner {
        Owner((client % self.clients) as u64 + 1)
    }

    /// The client behind a session, if it is one of these.
    pub(super) fn client_of(&self, member: usize, owner: Owner) -> Option<usize> {
        let place = usize::try_from(owner.0.checked_sub(1)?).ok()?;
        (place < self.clients).then_some(member * self.clients + place)
    }
}

/// A to Z.
pub(super) fn member_name(member: usize) -> String {
    char::from(b'A' + member as u8).to_string()
}
