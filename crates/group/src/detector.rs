//! The failure detector of a group: Hi-ADSD between its members, one for all locks of a member.
//!
//! It is the component that `robust-k` carries in the simulator and the checker; here it stands
//! beside the locks and tells those that listen. It begins when every other member has been connected
//! once: one that has not been started yet has not crashed. A suspicion is for ever, as the
//! algorithms that listen to it want it; a new group forgets it.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use catraca_algorithms::hi_adsd::{self, HiAdsd, Msg, News};
use catraca_core::{Effect, Effects, NodeId, NodeSet, TimerTag};
use catraca_topology::Hypercube;

use crate::driver::{Driver, Timer};
use crate::time::Time;
use crate::view::View;

/// How a detector works that was told nothing. The times are long, because a member that only
/// pauses must not be taken for crashed, and no client's time to live may be longer.
pub const USUAL: hi_adsd::Config = hi_adsd::Config {
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
#[derive(Clone, Debug)]
pub(crate) struct Detector {
    pub(crate) config: hi_adsd::Config,
    me: NodeId,
    members: u32,
    cube: Hypercube,
    hi_adsd: HiAdsd,
    has_begun: bool,
    /// Which timers are set: when they run out, and for how long they were set.
    timers: BTreeMap<TimerTag, (Time, Duration)>,
    /// Who is suspected, and since when.
    pub(crate) suspects: BTreeMap<usize, Time>,
    /// How many messages it has sent.
    pub(crate) messages: u64,
}

impl Detector {
    /// The detector of the member whose view this is, if the group runs one. It has not begun.
    pub(crate) fn of(view: &View) -> Option<Self> {
        let config = view.detector_of_listeners().filter(|_| view.members.len() > 1)?;
        Some(Detector::new(view.me, view.members.len(), config))
    }

    /// A detector that has not begun.
    pub(crate) fn new(me: usize, members: usize, config: hi_adsd::Config) -> Self {
        let (me, members) = (NodeId(me as u32), members as u32);
        Detector {
            config,
            me,
            members,
            cube: Hypercube::new(members),
            hi_adsd: HiAdsd::new(me),
            has_begun: false,
            timers: BTreeMap::new(),
            suspects: BTreeMap::new(),
            messages: 0,
        }
    }

    /// Begins to test, if it has not begun.
    pub(crate) fn begin(&mut self, driver: &mut dyn Driver) -> Findings {
        let mut effects = Effects::new();
        if !core::mem::replace(&mut self.has_begun, true) {
            self.hi_adsd.start(&self.cube, &self.config, &mut effects);
        }
        self.carry_out(NodeSet::new(), effects, driver)
    }

    /// A timer has run out.
    ///
    /// If it ran out long ago, this member has not been running: what the others have said
    /// meanwhile has yet to be read. The timer starts again, so that they are heard first.
    pub(crate) fn run_out(&mut self, tag: TimerTag, driver: &mut dyn Driver) -> Findings {
        let Some((due, after)) = self.timers.remove(&tag) else { return Findings::default() };
        let now = driver.now();
        if now.since(due) > self.config.timeout / 2 {
            self.timers.insert(tag, (now + after, after));
            driver.set_timer(Timer::Detector(tag), Some(after));
            return Findings::default();
        }
        let mut effects = Effects::new();
        let crashed = self.hi_adsd.on_timer(&self.cube, &self.config, tag, &mut effects);
        self.carry_out(crashed, effects, driver)
    }

    /// Another member's detector says something.
    pub(crate) fn hear(&mut self, from: usize, bytes: &[u8], driver: &mut dyn Driver) -> Findings {
        let unreadable = || Findings {
            anomalies: vec!["a message of a detector cannot be read"],
            ..Findings::default()
        };
        let Ok(message) = postcard::from_bytes(bytes) else { return unreadable() };
        let (is_possible, excludes) = match &message {
            Msg::IAmAlive(theirs) => {
                (theirs.iter().all(|node| node.0 < self.members), theirs.contains(self.me))
            }
            Msg::News(crashed) => (crashed.0 < self.members, *crashed == self.me),
            Msg::AreYouAlive => (true, false),
        };
        if !is_possible {
            return unreadable();
        }
        let mut effects = Effects::new();
        let from_node = NodeId(from as u32);
        let crashed = self.hi_adsd.on_message(&self.cube, from_node, message, &mut effects);
        let findings = self.carry_out(crashed, effects, driver);
        Findings { excluded_by: excludes.then_some(from), ..findings }
    }

    fn carry_out(
        &mut self,
        crashed: NodeSet,
        mut effects: Effects<Msg>,
        driver: &mut dyn Driver,
    ) -> Findings {
        let mut findings = Findings::default();
        for node in crashed.iter() {
            self.suspects.insert(node.index(), driver.now());
            findings.crashed.push(node.index());
        }
        for effect in effects.drain() {
            match effect {
                Effect::Send { to, message } => match postcard::to_allocvec(&message) {
                    Ok(bytes) => {
                        self.messages += 1;
                        findings.sent.push((to.index(), bytes));
                    }
                    Err(_) => findings.anomalies.push("a message cannot be written as bytes"),
                },
                Effect::SetTimer { tag, after } => {
                    self.timers.insert(tag, (driver.now() + after, after));
                    driver.set_timer(Timer::Detector(tag), Some(after));
                }
                Effect::CancelTimer(tag) => {
                    self.timers.remove(&tag);
                    driver.set_timer(Timer::Detector(tag), None);
                }
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
    use crate::testing::Recorder;

    fn says(message: &Msg) -> Vec<u8> {
        postcard::to_allocvec(message).unwrap()
    }

    /// The timers that are set, the first to run out first.
    fn set(driver: &Recorder) -> Vec<(Duration, TimerTag)> {
        let mut set: Vec<_> = driver
            .timers
            .iter()
            .filter_map(|(timer, after)| match timer {
                Timer::Detector(tag) => after.map(|after| (after, *tag)),
                _ => None,
            })
            .collect();
        set.sort();
        set
    }

    #[test]
    fn it_begins_once_and_tests_one_member_of_each_cluster() {
        let (mut detector, mut driver) = (Detector::new(0, 4, USUAL), Recorder::default());
        let tests =
            |findings: Findings| findings.sent.into_iter().map(|(to, _)| to).collect::<Vec<_>>();
        assert_eq!(tests(detector.begin(&mut driver)), [1, 2]);
        assert!(tests(detector.begin(&mut driver)).is_empty());
        assert_eq!(detector.messages, 2);
    }

    #[test]
    fn who_does_not_answer_in_time_is_suspected_and_who_does_is_not() {
        let (mut detector, mut driver) = (Detector::new(0, 4, USUAL), Recorder::default());
        detector.begin(&mut driver);
        detector.hear(1, &says(&Msg::IAmAlive(NodeSet::new())), &mut driver);
        driver.now = driver.now + USUAL.timeout;
        let due: Vec<TimerTag> = set(&driver).into_iter().map(|(_, tag)| tag).collect();
        let crashed: Vec<usize> =
            due.into_iter().flat_map(|tag| detector.run_out(tag, &mut driver).crashed).collect();
        assert_eq!(crashed, [2]);
        assert_eq!(detector.suspects.into_keys().collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_member_that_has_not_been_running_hears_the_others_before_it_suspects_them() {
        let (mut detector, mut driver) = (Detector::new(0, 4, USUAL), Recorder::default());
        detector.begin(&mut driver);
        // It is stopped for far longer than anybody has to answer, and finds its timers first.
        driver.now = driver.now + USUAL.timeout * 10;
        for (_, tag) in set(&driver) {
            assert_eq!(detector.run_out(tag, &mut driver).crashed, []);
        }
        for member in [1, 2] {
            detector.hear(member, &says(&Msg::IAmAlive(NodeSet::new())), &mut driver);
        }
        driver.now = driver.now + USUAL.timeout;
        for (_, tag) in set(&driver) {
            assert_eq!(detector.run_out(tag, &mut driver).crashed, []);
        }
    }

    #[test]
    fn a_member_learns_that_it_is_taken_for_crashed() {
        let (mut detector, mut driver) = (Detector::new(1, 2, USUAL), Recorder::default());
        let theirs = NodeSet::from_iter([NodeId(1)]);
        let heard = detector.hear(0, &says(&Msg::IAmAlive(theirs)), &mut driver);
        assert_eq!(heard.excluded_by, Some(0));
        let heard = detector.hear(0, &says(&Msg::AreYouAlive), &mut driver);
        assert_eq!(heard.excluded_by, None);
    }

    #[test]
    fn what_cannot_be_read_or_cannot_be_is_an_anomaly() {
        let (mut detector, mut driver) = (Detector::new(1, 2, USUAL), Recorder::default());
        let strangers = NodeSet::from_iter([NodeId(9)]);
        for bytes in [vec![99], says(&Msg::News(NodeId(7))), says(&Msg::IAmAlive(strangers))] {
            assert_eq!(detector.hear(0, &bytes, &mut driver).anomalies.len(), 1);
        }
    }
}
