//! A run of members before it starts: everything that determines it.

use std::time::Duration;

use catraca_algorithms::{Spec, SpecError, hi_adsd, registry};
use catraca_core::NodeId;
use catraca_group::{
    MOST_HANDOVERS, MOST_MEMBERS, MOST_PERMITS, Member, Namespace, TTL_RANGE, Turns,
    USUAL_DETECTOR, View,
};
use catraca_topology::Clusters;

use super::flaw::Flaw;
use crate::claims::Claims;
use crate::distribution::Distribution;
use crate::faults::Faults;
use crate::network::Latency;
use crate::setup::{Limits, MOST_EVENTS};
use crate::time::Time;

/// The most clients. More would make a run no more telling.
const MOST_CLIENTS: u32 = 100_000;
/// The most requests that a client makes at a time.
const MOST_AT_ONCE: u32 = 64;
/// The most locks.
const MOST_LOCKS: u32 = 100_000;

/// How clients wait. Shares are those of their requests, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waiting {
    /// Who does not wait for others to leave.
    pub tries: f64,
    /// Who waits for a limited time.
    pub limited: f64,
    /// For how long these two wait.
    pub limit: Distribution,
    /// Who takes the request back if it takes too long.
    pub cancels: f64,
    /// When that is.
    pub patience: Distribution,
    /// Who is gone for good instead of releasing, and comes back with a new session.
    pub vanishes: f64,
}

impl Waiting {
    /// Everybody waits until it is granted, and releases.
    pub const PATIENT: Waiting = Waiting {
        tries: 0.0,
        limited: 0.0,
        limit: Distribution::Exponential(Time::units(5)),
        cancels: 0.0,
        patience: Distribution::Exponential(Time::units(5)),
        vanishes: 0.0,
    };
}

/// Everything that determines a run of members. A unit of time is a second of theirs.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// How many members.
    pub members: u32,
    /// How many clients, all members together: one after the other goes to the next member.
    pub clients: u32,
    /// How many requests each client makes at a time.
    pub at_once: u32,
    /// The algorithm that guards every lock.
    pub algorithm: String,
    /// How many locks there are.
    pub locks: u32,
    /// How many clients may hold one lock.
    pub permits: u32,
    /// How many locks a request asks for, and which.
    pub claims: Claims,
    /// How long the turns of members are.
    pub turns: Turns,
    /// How long clients hold.
    pub hold: Distribution,
    /// From a release to the next request.
    pub think: Distribution,
    /// How many requests each client makes, of those that it makes at a time; without limit if not
    /// given. Whoever makes the last one waits until it is granted, and releases.
    pub rounds: Option<u32>,
    /// How clients wait.
    pub waiting: Waiting,
    /// How long sessions last that are not renewed. Without, they end with their clients.
    pub ttl: Option<Time>,
    /// How long messages between members take. They keep their order, as links do.
    pub latency: Latency,
    /// The clusters of the members.
    pub clusters: Option<Clusters>,
    /// How crashes are found, by algorithms that want to know.
    pub detector: hi_adsd::Config,
    /// What goes wrong. Links keep what a partition holds back.
    pub faults: Faults,
    /// The seed of the generator.
    pub seed: u64,
    /// When the run ends.
    pub limits: Limits,
    /// How many events the run may take before it gives up.
    pub most_events: u64,
    /// A deliberately broken driver.
    pub flaw: Option<Flaw>,
}

/// Why there is no run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// A number out of its range.
    #[error("there are {least} to {most} {what}, not {given}")]
    Range {
        /// Of what.
        what: &'static str,
        /// The least.
        least: u64,
        /// The most.
        most: u64,
        /// What was given.
        given: u64,
    },
    /// A request would ask for more locks than there are.
    #[error("a request asks for up to {asked} locks, but there are {locks}")]
    Claim {
        /// The most that a request asks for.
        asked: u32,
        /// How many there are.
        locks: u32,
    },
    /// Sets of semaphores.
    #[error("a request for several locks cannot have several permits; give one of them as 1")]
    SetOfSemaphores,
    /// Shares that are none.
    #[error("the shares of requests that do not wait, or only so long, make more than 1 together")]
    Shares,
    /// A time to live that cannot be kept.
    #[error("a session lasts {least} to {most}, not {given}")]
    Ttl {
        /// The least.
        least: Time,
        /// The most.
        most: Time,
        /// What was given.
        given: Time,
    },
    /// Members would refuse every request of such a session.
    #[error(
        "a session that lasts {ttl} outlives its member, which is taken for crashed after {timeout}; \
         let it last no longer than that"
    )]
    LongTtl {
        /// How long a session lasts.
        ttl: Time,
        /// When a member that does not answer is taken for crashed.
        timeout: Time,
    },
    /// The run would not end.
    #[error("clients ask again for ever; say how often they ask, how many entries, or how long")]
    Endless,
    /// The algorithm does not run in such a group.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl Setup {
    /// As many clients as members, one lock, messages and holds of one unit, a thousand entries.
    pub fn new(algorithm: &str, members: u32) -> Self {
        let one = Distribution::Constant(Time::units(1));
        Setup {
            members,
            clients: members,
            at_once: 1,
            algorithm: algorithm.to_string(),
            locks: 1,
            permits: 1,
            claims: Claims::default(),
            turns: Turns::USUAL,
            hold: one,
            think: Distribution::ZERO,
            rounds: None,
            waiting: Waiting::PATIENT,
            ttl: Some(Time::units(10)),
            latency: Latency::Uniform(one),
            clusters: None,
            detector: USUAL_DETECTOR,
            faults: Faults::default(),
            seed: 1,
            limits: Limits { entries: Some(1000), time: None },
            most_events: MOST_EVENTS,
            flaw: None,
        }
    }

    /// Checks that there can be such a run.
    pub fn check(&self) -> Result<(), SetupError> {
        let within = |what, given: u32, least: u64, most: u64| match u64::from(given) {
            given if (least..=most).contains(&given) => Ok(()),
            given => Err(SetupError::Range { what, least, most, given }),
        };
        within("members", self.members, 1, MOST_MEMBERS as u64)?;
        within("clients", self.clients, 1, MOST_CLIENTS.into())?;
        within("requests at once", self.at_once, 1, MOST_AT_ONCE.into())?;
        within("locks", self.locks, 1, MOST_LOCKS.into())?;
        within("permits", self.permits, 1, MOST_PERMITS.into())?;
        within("hand-overs", self.turns.handovers.into(), 0, MOST_HANDOVERS.into())?;
        within("rounds of a turn", self.turns.rounds.into(), 1, Turns::MOST_ROUNDS.into())?;
        let asked = self.claims.size.most();
        if asked > self.locks {
            return Err(SetupError::Claim { asked, locks: self.locks });
        }
        if asked > 1 && self.permits > 1 {
            return Err(SetupError::SetOfSemaphores);
        }
        if self.waiting.tries + self.waiting.limited > 1.0 {
            return Err(SetupError::Shares);
        }
        self.check_algorithm()?;
        self.check_ttl()?;
        if self.rounds.is_none() && self.limits == Limits::default() {
            return Err(SetupError::Endless);
        }
        Ok(())
    }

    fn check_ttl(&self) -> Result<(), SetupError> {
        let time = |duration: &Duration| Time(duration.as_micros() as u64);
        let (least, most) = (time(TTL_RANGE.start()), time(TTL_RANGE.end()));
        let timeout = time(&self.detector.timeout);
        match self.ttl {
            Some(ttl) if ttl > timeout && self.survives_crashes() => {
                Err(SetupError::LongTtl { ttl, timeout })
            }
            Some(given) if !(least..=most).contains(&given) => {
                Err(SetupError::Ttl { least, most, given })
            }
            _ => Ok(()),
        }
    }

    fn check_algorithm(&self) -> Result<(), SetupError> {
        let Some(_) = registry::entry(&self.algorithm) else {
            return Err(SpecError::UnknownAlgorithm(self.algorithm.clone()).into());
        };
        let view = self.view(0);
        view.check().map_err(|(_, error)| error)?;
        // A member has a seat for each permit.
        let mut spec = Spec::new(view.algorithm(0, self.permits), self.members * self.permits);
        if spec.entry()?.parameters.contains(&"k") {
            spec.k = Some(self.permits);
        }
        Ok(spec.check()?)
    }

    /// The group as member `me` sees it.
    pub(super) fn view(&self, me: usize) -> View {
        let member = |member: NodeId| Member {
            name: format!("m{member}"),
            address: String::new(),
            cluster: self.clusters.as_ref().map(|clusters| clusters.of(member).to_string()),
        };
        let members = NodeId::all(self.members).map(member).collect();
        let namespaces = vec![Namespace::new("*", &self.algorithm)];
        View::new(members, me, namespaces, Some(self.detector))
    }

    /// Whether the group goes on when members crash.
    pub(super) fn survives_crashes(&self) -> bool {
        self.view(0).listens(0, self.permits)
    }

    /// How long a quiet group may still have something to do: sessions run out, and crashes are
    /// found.
    pub(super) fn grace(&self) -> Time {
        let ttl = self.ttl.map_or(0, |ttl| ttl.0 * 2);
        let tests = u64::from(self.members.ilog2()) + 3;
        let detector = match self.survives_crashes() {
            true => (self.detector.interval + self.detector.timeout).as_micros() as u64 * tests * 2,
            false => 0,
        };
        Time(ttl.max(detector))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(change: impl FnOnce(&mut Setup)) -> String {
        let mut setup = Setup::new("naimi-trehel", 3);
        assert_eq!(setup.check(), Ok(()));
        change(&mut setup);
        setup.check().unwrap_err().to_string()
    }

    #[test]
    fn impossible_setups_say_what_is_wrong() {
        assert_eq!(error(|setup| setup.members = 65), "there are 1 to 64 members, not 65");
        assert_eq!(error(|setup| setup.members = 0), "there are 1 to 64 members, not 0");
        assert_eq!(error(|setup| setup.clients = 0), "there are 1 to 100000 clients, not 0");
        assert_eq!(error(|setup| setup.permits = 65), "there are 1 to 64 permits, not 65");
        assert!(error(|setup| setup.claims.size = "2".parse().unwrap()).contains("there are 1"));
        assert!(error(|setup| setup.ttl = Some(Time(1))).contains("lasts 0.1 to 86400"));
        assert!(error(|setup| setup.limits = Limits::default()).contains("for ever"));
        assert!(error(|setup| setup.algorithm = "x".to_string()).contains("no algorithm 'x'"));
        assert!(error(|setup| setup.waiting.tries = 1.5).contains("more than 1"));
        let several = |setup: &mut Setup| {
            (setup.locks, setup.permits) = (2, 2);
            setup.claims.size = "2".parse().unwrap();
        };
        assert!(error(several).contains("several permits"));
        let outliving = |setup: &mut Setup| {
            setup.algorithm = "robust-k".to_string();
            setup.ttl = Some(Time::units(11));
        };
        assert!(error(outliving).contains("after 10"));
    }
}
