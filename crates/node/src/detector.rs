//! The failure detector of a group: Hi-ADSD between its members, one for all locks of a node.
//!
//! It is the component that `robust-k` carries in the simulator and the checker; here it stands
//! beside the locks and tells those that listen. It begins when every other member has been there
//! once: one that has not been started yet has not crashed. A suspicion is for ever, as the
//! algorithms that listen to it want it; a new group forgets it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use catraca_algorithms::hi_adsd::{self, HiAdsd, Msg, News};
use catraca_core::{Effect, Effects, NodeId, NodeSet, TimerTag};
use catraca_topology::Hypercube;

use crate::timers::Timers;

/// How a detector works that was told nothing. The times are long, because a member that only
/// pauses must not be taken for crashed, and no client's time to live may be longer.
pub(crate) const USUAL: hi_adsd::Config = hi_adsd::Config {
    interval: Duration::from_secs(10),
    timeout: Duration::from_secs(10),
    news: News::Immediate,
};

/// What follows from a step of the detector.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// What to send, and to which member.
    pub(crate) sent: Vec<(usize, Vec<u8>)>,
    /// Members that are taken for crashed from now on.
    pub(crate) crashed: Vec<usize>,
    /// A member that takes this one for crashed.
    pub(crate) excluded_by: Option<usize>,
    pub(crate) anomalies: Vec<&'static str>,
}

/// The detector of one member.
pub(crate) struct Detector {
    pub(crate) config: hi_adsd::Config,
    me: NodeId,
    cube: Hypercube,
    pub(crate) timers: Timers<TimerTag>,
    state: Mutex<State>,
    excluded_by: OnceLock<usize>,
}

struct State {
    hi_adsd: HiAdsd,
    has_begun: bool,
    /// Who is suspected, and since when.
    suspects: BTreeMap<usize, Instant>,
    messages: u64,
    effects: Effects<Msg>,
}

impl Detector {
    /// A detector that has not begun.
    pub(crate) fn new(me: usize, members: usize, config: hi_adsd::Config) -> Self {
        let me = NodeId(me as u32);
        let state = State {
            hi_adsd: HiAdsd::new(me),
            has_begun: false,
            suspects: BTreeMap::new(),
            messages: 0,
            effects: Effects::new(),
        };
        let cube = Hypercube::new(members as u32);
        let (state, timers) = (Mutex::new(state), Timers::new());
        Detector { config, me, cube, timers, state, excluded_by: OnceLock::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to test, if it has not begun.
    pub(crate) fn begin(&self) -> Findings {
        let mut state = self.state();
        let State { hi_adsd, has_begun, effects, .. } = &mut *state;
        if !std::mem::replace(has_begun, true) {
            hi_adsd.start(&self.cube, &self.config, effects);
        }
        self.carry_out(&mut state, NodeSet::new())
    }

    /// A timer may have run out.
    pub(crate) fn run_out(&self, tag: TimerTag) -> Findings {
        let mut state = self.state();
        if !self.timers.claim(tag) {
            return Findings::default();
        }
        let State { hi_adsd, effects, .. } = &mut *state;
        let crashed = hi_adsd.on_timer(&self.cube, &self.config, tag, effects);
        self.carry_out(&mut state, crashed)
    }

    /// Another member's detector says something.
    pub(crate) fn hear(&self, from: usize, bytes: &[u8]) -> Findings {
        let mut state = self.state();
        let Ok(message) = postcard::from_bytes(bytes) else {
            return Findings {
                anomalies: vec!["a message of a detector cannot be read"],
                ..Findings::default()
            };
        };
        let excludes = match &message {
            Msg::IAmAlive(theirs) => theirs.contains(self.me),
            Msg::News(crashed) => *crashed == self.me,
            Msg::AreYouAlive => false,
        };
        let State { hi_adsd, effects, .. } = &mut *state;
        let crashed = hi_adsd.on_message(&self.cube, NodeId(from as u32), message, effects);
        let findings = self.carry_out(&mut state, crashed);
        Findings { excluded_by: excludes.then_some(from), ..findings }
    }

    /// `member` takes this one for crashed; false if that is no news.
    pub(crate) fn exclude(&self, member: usize) -> bool {
        self.excluded_by.set(member).is_ok()
    }

    /// The member that takes this one for crashed, if there is one.
    pub(crate) fn excluded_by(&self) -> Option<usize> {
        self.excluded_by.get().copied()
    }

    /// Who is suspected, and since when.
    pub(crate) fn suspects(&self) -> BTreeMap<usize, Instant> {
        self.state().suspects.clone()
    }

    /// How many messages it has sent.
    pub(crate) fn messages(&self) -> u64 {
        self.state().messages
    }

    fn carry_out(&self, state: &mut State, crashed: NodeSet) -> Findings {
        let mut findings = Findings::default();
        let State { effects, suspects, messages, .. } = state;
        for node in crashed.iter() {
            suspects.insert(node.index(), Instant::now());
            findings.crashed.push(node.index());
        }
        for effect in effects.drain() {
            match effect {
                Effect::Send { to, message } => match postcard::to_stdvec(&message) {
                    Ok(bytes) => {
                        *messages += 1;
                        findings.sent.push((to.index(), bytes));
                    }
                    Err(_) => findings.anomalies.push("a message cannot be written as bytes"),
                },
                Effect::SetTimer { tag, after } => self.timers.change(tag, Some(after)),
                Effect::CancelTimer(tag) => self.timers.change(tag, None),
                Effect::Anomaly(what) => findings.anomalies.push(what),
                Effect::Granted(_) => findings.anomalies.push("a detector grants nothing"),
            }
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: hi_adsd::Config = hi_adsd::Config {
        interval: Duration::from_millis(2),
        timeout: Duration::from_millis(1),
        news: News::Rounds,
    };

    fn says(message: &Msg) -> Vec<u8> {
        postcard::to_stdvec(message).unwrap()
    }

    #[test]
    fn it_begins_once_and_tests_one_member_of_each_cluster() {
        let detector = Detector::new(0, 4, USUAL);
        let tests = |findings: Findings| findings.sent.into_iter().map(|(to, _)| to).collect();
        let first: Vec<usize> = tests(detector.begin());
        assert_eq!(first, [1, 2]);
        let again: Vec<usize> = tests(detector.begin());
        assert!(again.is_empty());
        assert_eq!(detector.messages(), 2);
    }

    #[tokio::test]
    async fn who_does_not_answer_in_time_is_suspected_and_who_does_is_not() {
        let detector = Detector::new(0, 4, QUICK);
        detector.begin();
        detector.hear(1, &says(&Msg::IAmAlive(NodeSet::new())));
        let mut crashed = Vec::new();
        while crashed.is_empty() {
            let tag = detector.timers.next().await;
            crashed = detector.run_out(tag).crashed;
        }
        assert_eq!(crashed, [2]);
        assert_eq!(detector.suspects().into_keys().collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_member_learns_that_it_is_taken_for_crashed() {
        let detector = Detector::new(1, 2, USUAL);
        let theirs = NodeSet::from_iter([NodeId(1)]);
        assert_eq!(detector.hear(0, &says(&Msg::IAmAlive(theirs))).excluded_by, Some(0));
        assert_eq!(detector.hear(0, &says(&Msg::AreYouAlive)).excluded_by, None);
    }

    #[test]
    fn what_cannot_be_read_is_an_anomaly() {
        let detector = Detector::new(1, 2, USUAL);
        assert_eq!(detector.hear(0, &[99]).anomalies.len(), 1);
    }
}
