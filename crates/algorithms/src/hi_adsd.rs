//! Hi-ADSD, the failure detector of S4 (section 3.1; E. P. Duarte Jr. and T. Nanya, 1998), as a
//! component of its own: it knows no driver and no lock.
//!
//! Once an interval every node tests the nodes of each of its clusters, in the order of C(i,s), until
//! one answers, and takes over what that one knows of the rest of the cluster. So without crashes a
//! node makes log N tests an interval, and news of a crash reaches everybody within log N intervals,
//! which are log² N rounds of one cluster each. Known crashes are tested again, as in the paper's
//! figures; the clusters are tested side by side, and a cluster whose tests take longer than the
//! interval does not start again before they are done.
//!
//! A node that does not answer in time is suspected, for ever: in this model crashes are permanent,
//! messages arrive within the time-out, so no suspicion is wrong. Where that is not so, the
//! detector is no longer perfect, and algorithms that rely on it may break.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use alloc::string::{String, ToString};
use catraca_core::{Effects, NodeId, NodeSet, TimerTag, Variables};
use catraca_topology::Hypercube;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// The timer of the interval. That of the test in cluster s has tag s.
const INTERVAL: TimerTag = TimerTag(0);

/// How news of a crash spreads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum News {
    /// Only with the answers to tests.
    #[default]
    Rounds,
    /// A node that finds a crash by its own test also sends the news to everybody at once.
    Immediate,
}

/// Why a text is no way of spreading news.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no way of spreading news: say rounds or immediate")]
pub struct NewsError(String);

impl FromStr for News {
    type Err = NewsError;

    fn from_str(text: &str) -> Result<Self, NewsError> {
        match text {
            "rounds" => Ok(News::Rounds),
            "immediate" => Ok(News::Immediate),
            _ => Err(NewsError(text.to_string())),
        }
    }
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            News::Rounds => "rounds",
            News::Immediate => "immediate",
        })
    }
}

/// How often to test, how long to wait, how to spread the news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// From one test of a cluster to the next.
    pub interval: Duration,
    /// How long a tested node has to answer.
    pub timeout: Duration,
    /// How news of a crash spreads.
    pub news: News,
}

/// What detectors say to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Msg {
    /// A test.
    AreYouAlive,
    /// The answer, and whom the tested node takes for crashed.
    IAmAlive(NodeSet),
    /// 'This one has crashed.'
    News(NodeId),
}

/// The detector of one node. The handlers return whom it has begun to suspect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HiAdsd {
    me: NodeId,
    suspects: NodeSet,
    /// Who is being tested in cluster s, at place s-1.
    testing: SmallVec<[Option<NodeId>; 2]>,
}

impl HiAdsd {
    /// A detector that suspects nobody and tests nobody yet.
    pub fn new(me: NodeId) -> Self {
        HiAdsd { me, suspects: NodeSet::new(), testing: SmallVec::new() }
    }

    /// Everybody it takes for crashed.
    pub fn suspects(&self) -> &NodeSet {
        &self.suspects
    }

    /// The driver says that `node` has crashed. Returns false if that was known.
    pub fn suspect(&mut self, node: NodeId) -> bool {
        node != self.me && self.suspects.insert(node)
    }

    /// Begins to test.
    pub fn start<M: From<Msg>>(&mut self, cube: &Hypercube, config: &Config, out: &mut Effects<M>) {
        self.testing = SmallVec::from_elem(None, cube.dimension() as usize);
        self.test_all(cube, config, out);
    }

    /// A timer has run out.
    pub fn on_timer<M: From<Msg>>(
        &mut self,
        cube: &Hypercube,
        config: &Config,
        tag: TimerTag,
        out: &mut Effects<M>,
    ) -> NodeSet {
        let mut found = NodeSet::new();
        if tag == INTERVAL {
            self.test_all(cube, config, out);
            return found;
        }
        let s = tag.0;
        let tested = self.testing.get_mut(s as usize - 1).and_then(Option::take);
        let Some(silent) = tested else {
            out.anomaly("a test has timed out that was never made");
            return found;
        };
        if self.suspect(silent) {
            found.insert(silent);
            if config.news == News::Immediate {
                self.tell_everybody(cube, silent, out);
            }
        }
        self.test_next(cube, config, s, Some(silent), out);
        found
    }

    /// A message has arrived.
    pub fn on_message<M: From<Msg>>(
        &mut self,
        cube: &Hypercube,
        from: NodeId,
        message: Msg,
        out: &mut Effects<M>,
    ) -> NodeSet {
        match message {
            Msg::AreYouAlive => out.send(from, Msg::IAmAlive(self.suspects.clone()).into()),
            Msg::IAmAlive(theirs) => return self.on_alive(cube, from, &theirs, out),
            Msg::News(crashed) if crashed.0 >= cube.nodes() => {
                out.anomaly("news came of a node that does not exist");
            }
            Msg::News(crashed) if self.suspect(crashed) => return NodeSet::from_iter([crashed]),
            Msg::News(_) => {}
        }
        NodeSet::new()
    }

    /// Takes over the news of the cluster from a node that has answered in time.
    fn on_alive<M>(
        &mut self,
        cube: &Hypercube,
        from: NodeId,
        theirs: &NodeSet,
        out: &mut Effects<M>,
    ) -> NodeSet {
        // The answer of a suspect comes too late; its test goes on with the next node.
        let is_tested = |test: &&mut Option<NodeId>| **test == Some(from);
        let Some(test) = self.testing.iter_mut().find(is_tested) else { return NodeSet::new() };
        if self.suspects.contains(from) {
            return NodeSet::new();
        }
        *test = None;
        let s = cube.cluster_with(self.me, from);
        out.cancel_timer(TimerTag(s));
        let in_cluster =
            |&node: &NodeId| node.0 < cube.nodes() && cube.cluster_with(self.me, node) == s;
        let crashed = theirs.iter().filter(in_cluster);
        let found: NodeSet = crashed.filter(|node| !self.suspects.contains(*node)).collect();
        for node in found.iter() {
            self.suspects.insert(node);
        }
        found
    }

    /// Begins the tests of an interval.
    fn test_all<M: From<Msg>>(&mut self, cube: &Hypercube, config: &Config, out: &mut Effects<M>) {
        for s in 1..=cube.dimension() {
            if self.testing[s as usize - 1].is_none() {
                self.test_next(cube, config, s, None, out);
            }
        }
        out.set_timer(INTERVAL, config.interval);
    }

    /// Tests the node of cluster `s` that comes after `last`, if there is one.
    fn test_next<M: From<Msg>>(
        &mut self,
        cube: &Hypercube,
        config: &Config,
        s: u32,
        last: Option<NodeId>,
        out: &mut Effects<M>,
    ) {
        let mut cluster = cube.cluster(self.me, s);
        let next = match last {
            None => cluster.next(),
            Some(last) => cluster.skip_while(|&node| node != last).nth(1),
        };
        self.testing[s as usize - 1] = next;
        if let Some(node) = next {
            out.send(node, Msg::AreYouAlive.into());
            out.set_timer(TimerTag(s), config.timeout);
        }
    }

    fn tell_everybody<M: From<Msg>>(
        &self,
        cube: &Hypercube,
        crashed: NodeId,
        out: &mut Effects<M>,
    ) {
        let others = NodeId::all(cube.nodes()).filter(|&node| node != self.me);
        for node in others.filter(|&node| !self.suspects.contains(node)) {
            out.send(node, Msg::News(crashed).into());
        }
    }

    /// What this part knows.
    pub fn variables(&self, out: &mut Variables) {
        out.set("suspects", self.suspects.iter());
        out.queue("testing", self.testing.iter().copied().flatten());
    }
}

#[cfg(test)]
mod tests;
