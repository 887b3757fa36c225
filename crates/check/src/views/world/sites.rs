//! Machines, the members that run there, and what they have asked the registry.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use ahash::RandomState;
use catraca_group::registry::{Answer, Trouble, Txn};
use catraca_group::{Run, Time, Timer, View, WholeMember};
use smallvec::SmallVec;

/// A transaction that is under way.
#[derive(Clone, Debug)]
pub(super) enum Pending {
    /// It has yet to be carried out. The number is gone if nobody waits for the answer.
    Sent(Option<u64>, Arc<Txn>),
    /// It was carried out, and the answer has yet to arrive.
    Answered(u64, Arc<Result<Answer, Trouble>>),
}

/// The numbers by which answers find what was asked say nothing.
impl Hash for Pending {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match self {
            Pending::Sent(number, txn) => (0, number.is_some(), txn).hash(hasher),
            Pending::Answered(_, result) => (1, result).hash(hasher),
        }
    }
}

/// Whether a member is cut off from the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cut {
    No,
    /// One more beat is carried out, whose answer comes late.
    AfterOneBeat,
    Yes,
}

/// A machine, and the member that runs there.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) member: Option<Arc<WholeMember>>,
    /// Which run of the member it is: one that was excluded goes on as another.
    pub(super) incarnation: u64,
    pub(super) is_paused: bool,
    pub(super) cut: Cut,
    pub(super) timers: BTreeMap<Timer, Time>,
    pub(super) valid_until: Time,
    /// The view that runs there. The member knows it too.
    pub(super) view: Option<Arc<View>>,
    /// With whom it wants connections, and with whom it has them.
    pub(super) wanted: Vec<Run>,
    pub(super) up: Vec<Run>,
    /// Whether there is a view that it has not heard of.
    pub(super) has_news: bool,
    pub(super) pending: VecDeque<Pending>,
    /// Whether the group goes on without this run.
    pub(super) is_excluded: bool,
}

impl Hash for Site {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (&self.member, self.incarnation, self.is_paused, self.cut).hash(hasher);
        (&self.timers, self.valid_until, &self.wanted, &self.up).hash(hasher);
        (self.has_news, &self.pending, self.is_excluded).hash(hasher);
    }
}

impl Site {
    /// A machine on which nothing runs.
    pub(super) fn empty() -> Self {
        Site {
            member: None,
            incarnation: 0,
            is_paused: false,
            cut: Cut::No,
            timers: BTreeMap::new(),
            valid_until: Time(0),
            view: None,
            wanted: Vec::new(),
            up: Vec::new(),
            has_news: false,
            pending: VecDeque::new(),
            is_excluded: false,
        }
    }

    /// Whether the member is there and does something.
    pub(super) fn runs(&self) -> bool {
        self.member.is_some() && !self.is_paused
    }

    /// Whether it may hear of a view that is new to it.
    pub(super) fn can_hear(&self) -> bool {
        self.runs() && self.has_news && self.cut == Cut::No
    }

    pub(super) fn is_late(&self, now: Time) -> bool {
        self.runs() && self.timers.values().any(|&at| at <= now)
    }
}

/// All machines. Worlds share those that a step did not touch, and the hashes of them: a member is large,
/// and most steps touch one. That two different machines have the same hash is as improbable as it is of
/// whole worlds.
#[derive(Clone)]
pub(super) struct Sites(SmallVec<[(Arc<Site>, Option<u64>); 4]>);

impl Sites {
    /// So many machines on which nothing runs.
    pub(super) fn empty(count: usize) -> Self {
        let empty = Arc::new(Site::empty());
        Sites((0..count).map(|_| (Arc::clone(&empty), None)).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Site> {
        self.0.iter().map(|(site, _)| &**site)
    }

    /// Computes the hashes of the machines that have been touched.
    pub(super) fn hash_touched(&mut self) {
        // Fixed, so that a run can be repeated, and other seeds than those of the search.
        let hasher = RandomState::with_seeds(5, 6, 7, 8);
        for (site, print) in &mut self.0 {
            print.get_or_insert_with(|| hasher.hash_one(&**site));
        }
    }
}

impl Index<usize> for Sites {
    type Output = Site;

    fn index(&self, place: usize) -> &Site {
        &self.0[place].0
    }
}

impl IndexMut<usize> for Sites {
    fn index_mut(&mut self, place: usize) -> &mut Site {
        let (site, print) = &mut self.0[place];
        *print = None;
        Arc::make_mut(site)
    }
}

impl Hash for Sites {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for (_, print) in &self.0 {
            print.hash(hasher);
        }
    }
}
