//! The links of one member to runs of others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use catraca_group::{Epoch, Run};

use crate::link::Link;
use crate::mutex::hold;

/// The links of one view, by the places of its members; nothing at one's own place.
pub(crate) type Seats = Arc<[Option<Arc<Link>>]>;

/// Every link that there is, and those of the view that runs.
#[derive(Default)]
pub(crate) struct Links {
    by_run: Mutex<BTreeMap<Run, Arc<Link>>>,
    /// Changed only while no lock may step.
    seats: RwLock<Seats>,
    /// How many links take nothing more: looked at before every request.
    full: Arc<AtomicUsize>,
    /// How many bytes were written over links that are gone.
    sent_before: AtomicU64,
}

impl Links {
    /// The link to a run of another member. It may have yet to be connected.
    pub(crate) fn to(&self, run: &Run) -> Arc<Link> {
        let mut by_run = hold(&self.by_run);
        let fresh = || Arc::new(Link::new(run.clone(), Arc::clone(&self.full)));
        Arc::clone(by_run.entry(run.clone()).or_insert_with(fresh))
    }

    /// The link to a run of another member, if there is one.
    pub(crate) fn known(&self, run: &Run) -> Option<Arc<Link>> {
        hold(&self.by_run).get(run).cloned()
    }

    /// The link to a run as if there had been none before.
    pub(crate) fn begin_anew(&self, run: &Run) -> Arc<Link> {
        let fresh = Arc::new(Link::new(run.clone(), Arc::clone(&self.full)));
        if let Some(old) = hold(&self.by_run).insert(run.clone(), Arc::clone(&fresh)) {
            self.sent_before.fetch_add(old.sent(), Ordering::Relaxed);
            old.close();
        }
        fresh
    }

    /// How many bytes were written, and how many links are connected.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        let by_run = hold(&self.by_run);
        let sent = by_run.values().map(|link| link.sent()).sum::<u64>();
        let up = by_run.values().filter(|link| link.is_up()).count() as u64;
        (sent + self.sent_before.load(Ordering::Relaxed), up)
    }

    /// Every link.
    pub(crate) fn all(&self) -> Vec<Arc<Link>> {
        hold(&self.by_run).values().cloned().collect()
    }

    /// Gives up the links that are not wanted.
    pub(crate) fn retain(&self, is_wanted: impl Fn(&Link) -> bool) {
        hold(&self.by_run).retain(|_, link| {
            let is_wanted = is_wanted(link);
            if !is_wanted {
                self.sent_before.fetch_add(link.sent(), Ordering::Relaxed);
                link.close();
            }
            is_wanted
        });
    }

    /// A view begins, with these runs of its members; `me` is the own place.
    pub(crate) fn begin_view(&self, runs: &[Run], me: usize) {
        let link = |(place, run)| (place != me).then(|| self.to(run));
        let seats: Seats = runs.iter().enumerate().map(link).collect();
        *self.seats.write().unwrap_or_else(PoisonError::into_inner) = seats;
    }

    /// Messages of this view go to its locks directly from now on.
    pub(crate) fn open_view(&self, epoch: Epoch) {
        for (place, link) in self.seats().iter().enumerate() {
            if let Some(link) = link {
                link.seat(epoch, place);
            }
        }
    }

    #[inline]
    fn seats(&self) -> RwLockReadGuard<'_, Seats> {
        self.seats.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The links of the view that runs, to be kept.
    pub(crate) fn present(&self) -> Seats {
        Arc::clone(&self.seats())
    }

    /// Does something with the link to a member of the view that runs.
    #[inline]
    pub(super) fn with<T>(&self, member: usize, work: impl FnOnce(&Link) -> T) -> Option<T> {
        self.seats().get(member)?.as_deref().map(work)
    }

    /// Sends off what was put behind for the members whose bits are set.
    #[inline]
    pub(super) fn flush(&self, members: u64) {
        if members != 0 {
            self.each(members, Link::flush);
        }
    }

    /// Does something with the links to the members whose bits are set.
    pub(super) fn each(&self, mut members: u64, mut work: impl FnMut(&Link)) {
        let seats = self.seats();
        while members != 0 {
            let member = members.trailing_zeros() as usize;
            members &= members - 1;
            if let Some(Some(link)) = seats.get(member) {
                work(link);
            }
        }
    }

    /// The members that take no messages any more, one bit each.
    #[inline]
    pub(super) fn full(&self) -> u64 {
        if self.full.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        let is_full = |link: &Option<Arc<Link>>| link.as_ref().is_some_and(|link| link.is_full());
        let seats = self.seats();
        seats
            .iter()
            .enumerate()
            .fold(0, |full, (member, link)| full | u64::from(is_full(link)) << member)
    }
}
