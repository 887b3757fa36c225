//! Looks at the node once a second, for whoever looks at the dashboard: rates, alerts, and how it stands.
//!
//! One task does it, however many look on, and what it has seen is shared. What it costs does not grow with
//! what happens at the node, but for one pass over its locks; where they are so many that this takes
//! noticeable time, it is done more seldom.

pub(crate) mod alerts;
pub(crate) mod rates;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use catraca_group::{NodeState, Survey, Times};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use self::alerts::{Alert, Alerts, Seen};
use self::rates::{Counted, Rates, Sample};
use crate::changes::unix_millis;
use crate::engine::Engine;
use crate::mutex::hold;

/// How often the node is looked at.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);
/// At most one part of so many of the time is spent on passes over all locks.
const SURVEY_SHARE: u32 = 100;

/// What is known after one look.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) node_state: NodeState,
    /// Nothing after the first look: there is nothing to compare it with.
    pub(crate) sample: Option<Sample>,
    pub(crate) alerts: Arc<[Alert]>,
    pub(crate) lease: Duration,
}

/// What was seen of a node, for whoever wants to know.
pub(crate) struct Observed {
    rates: Mutex<Rates>,
    looks: watch::Receiver<Option<Arc<Look>>>,
}

impl Observed {
    /// Looks at the node until it stops, or `stop` says so.
    pub(crate) fn start(engine: Arc<Engine>, stop: watch::Receiver<bool>) -> Arc<Self> {
        let (sender, looks) = watch::channel(None);
        let observed = Arc::new(Observed { rates: Mutex::default(), looks });
        tokio::spawn(observe(engine, Arc::downgrade(&observed), sender, stop));
        observed
    }

    /// What the newest look shows, and what every later one does; its sender is gone when the node stops.
    pub(crate) fn looks(&self) -> watch::Receiver<Option<Arc<Look>>> {
        self.looks.clone()
    }

    /// The newest `count` samples, the oldest first.
    pub(crate) fn samples(&self, count: usize) -> Vec<Sample> {
        let rates = hold(&self.rates);
        let samples = rates.samples();
        samples.iter().skip(samples.len().saturating_sub(count)).cloned().collect()
    }
}

/// One pass over all locks, and when the next one is due.
#[derive(Default)]
struct Surveyed {
    survey: Survey,
    due: Option<Instant>,
}

impl Surveyed {
    fn refresh(&mut self, engine: &Engine) {
        let began = Instant::now();
        if self.due.is_some_and(|due| began < due) {
            return;
        }
        self.survey = engine.survey();
        self.due = Some(began + began.elapsed() * SURVEY_SHARE);
    }
}

async fn observe(
    engine: Arc<Engine>,
    observed: std::sync::Weak<Observed>,
    sender: watch::Sender<Option<Arc<Look>>>,
    mut stop: watch::Receiver<bool>,
) {
    let mut ticks = interval(INTERVAL);
    // After a pause of the machine one look is enough.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut alerts, mut surveyed) = (Alerts::default(), Surveyed::default());
    let mut last = Instant::now();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            // If nobody is there to stop it, the node is gone.
            _ = stop.wait_for(|&is_over| is_over) => return,
        }
        let Some(observed) = observed.upgrade() else { return };
        if engine.is_stopped() {
            return;
        }
        surveyed.refresh(&engine);
        let took = std::mem::replace(&mut last, Instant::now()).elapsed();
        let look = look(&engine, &observed, &mut alerts, &surveyed.survey, took);
        sender.send_replace(Some(Arc::new(look)));
    }
}

fn look(
    engine: &Engine,
    observed: &Observed,
    alerts: &mut Alerts,
    survey: &Survey,
    took: Duration,
) -> Look {
    let (node_state, lease) = (engine.node_state(), engine.lease());
    let (counts, times) = engine.counts();
    let counted = counted(engine, survey, &node_state, counts, times);
    let unix_ms = unix_millis();
    let mut rates = hold(&observed.rates);
    let is_first = rates.add(counted, unix_ms, took);
    let sample = rates.samples().back().filter(|_| !is_first).cloned();
    let seen =
        Seen { node_state: &node_state, survey, rates: &rates, times: &times, lease, unix_ms };
    let alerts = alerts.judge(&seen).into();
    drop(rates);
    Look { node_state, sample, alerts, lease }
}

fn counted(
    engine: &Engine,
    survey: &Survey,
    node_state: &NodeState,
    counts: catraca_group::Counts,
    times: Times,
) -> Counted {
    Counted {
        grants: counts.grants,
        handovers: counts.handovers,
        sent: counts.messages,
        arrived: counts.arrived,
        refused: engine.metrics().refused(),
        times,
        registry: engine.metrics().registry_times(),
        locks: survey.locks,
        held: survey.held,
        waiting: survey.waiting,
        longest_queue: survey.longest.as_ref().map_or(0, |longest| longest.waiting),
        sessions: node_state.sessions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LIMIT, alone};

    #[tokio::test]
    async fn what_happens_at_a_node_is_seen_and_the_looks_end_with_it() {
        let node = alone().await;
        let (_stop, stopped) = watch::channel(false);
        let observed = Observed::start(Arc::clone(&node.engine), stopped);
        let held = node.lock("held").await.unwrap();
        let mut looks = observed.looks();
        let seen = looks.wait_for(|look| {
            let sample = look.as_ref().and_then(|look| look.sample.as_ref());
            sample.is_some_and(|sample| sample.held == 1)
        });
        let look = tokio::time::timeout(LIMIT, seen).await.expect("it is seen").unwrap().clone();
        let look = look.unwrap();
        assert_eq!((look.node_state.epoch, &look.alerts[..]), (node.status().epoch, &[][..]));
        assert!(!observed.samples(1).is_empty() && observed.samples(0).is_empty());
        drop((held, node));
        let end = async { while looks.changed().await.is_ok() {} };
        tokio::time::timeout(LIMIT, end).await.expect("they end");
    }

    #[tokio::test]
    async fn the_looks_end_when_they_are_told_to() {
        let node = alone().await;
        let (stop, stopped) = watch::channel(false);
        let observed = Observed::start(Arc::clone(&node.engine), stopped);
        let mut looks = observed.looks();
        stop.send_replace(true);
        let end = async { while looks.changed().await.is_ok() {} };
        tokio::time::timeout(LIMIT, end).await.expect("they end");
    }
}
