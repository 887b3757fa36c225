//! Keeps the index of all locks of files up to date, by following what changes in the registry.
//!
//! Whoever is shown locks must not miss any that was there when it asked. So each request reads from the
//! registry when a hold was written or released last, and waits until the index knows that change. Mostly
//! it does already. What the registry tells of changes may be late; then everything is read anew.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use catraca_group::registry::{LARGEST_PAGE, RELEASED, TAKEN};
use catraca_group::{DurableHold, HoldId};
use catraca_registry::{Answer, Registry, Revision, Trouble, Txn, Word};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::answer::Refused;
use super::index::Index;
use super::lock::Lock;
use crate::config::GitConfig;
use crate::gateway::Gateway;
use crate::http::problem::Kind;
use crate::mutex::hold;

/// After so long a registry that is not open or cannot be read is tried again.
const AGAIN: Duration = Duration::from_millis(100);
/// When what the registry tells is so late, everything is read anew.
const LATE: Duration = Duration::from_millis(500);
/// Nobody waits longer for the index.
const PATIENCE: Duration = Duration::from_secs(8);
/// So many words are taken at once.
const WORDS: usize = 256;
/// So many holds are read side by side.
const READS: usize = 32;

/// The index, and how far it is.
pub(crate) struct Following {
    gateway: Gateway,
    config: Arc<GitConfig>,
    index: Mutex<Index>,
    /// Everything up to this revision is in the index; nothing before it was read for the first time.
    known: watch::Sender<Option<Revision>>,
    /// Somebody needs what has not come.
    is_late: Notify,
}

/// Why the index is read anew.
enum Anew {
    /// Nobody tells any more.
    Over,
    /// Something may have been missed.
    Missed,
    Unreadable,
}

impl Following {
    pub(crate) fn new(gateway: &Gateway, config: &Arc<GitConfig>) -> Self {
        Following {
            gateway: gateway.clone(),
            config: Arc::clone(config),
            index: Mutex::default(),
            known: watch::Sender::new(None),
            is_late: Notify::new(),
        }
    }

    /// Looks at the index, as far as it is.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Index) -> T) -> T {
        look(&hold(&self.index))
    }

    /// The locks of files that a hold is.
    pub(crate) fn locks_of(&self, hold: &DurableHold) -> Vec<Lock> {
        Lock::of(hold, &self.config, |member| self.gateway.cluster_of(member))
    }

    /// Waits until everything is in the index that was there when this was called.
    pub(crate) async fn fresh(&self) -> Result<(), Refused> {
        self.read().await.map(drop)
    }

    /// The same. Returns what the registry has said.
    pub(crate) async fn read(&self) -> Result<Answer, Refused> {
        let unknown = |why: &str| {
            let detail = format!("it is not known now which locks there are: {why}; try again");
            Refused::new(Kind::Unavailable, "registry-unavailable", detail)
        };
        let registry = self.gateway.registry();
        let registry = registry.ok_or_else(|| unknown("the registry is not open"))?;
        let unread = |trouble: Trouble| unknown(&trouble.to_string());
        let answer = registry.txn(Txn::read()).await.map_err(unread)?;
        let changed = |key: &str| answer.state.get(key).map(|item| item.at);
        let needed = changed(TAKEN).max(changed(RELEASED)).unwrap_or_default();
        let mut known = self.known.subscribe();
        let knows = |known: &Option<Revision>| known.is_some_and(|known| known >= needed);
        if timeout(LATE, known.wait_for(knows)).await.is_ok() {
            return Ok(answer);
        }
        self.is_late.notify_one();
        let came = timeout(PATIENCE, known.wait_for(knows)).await;
        came.map(|_| answer).map_err(|_| unknown("this node has not heard of the last changes"))
    }

    /// Follows the registry, until the node stops.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let Some(registry) = self.gateway.registry() else {
                sleep(AGAIN).await;
                continue;
            };
            match self.follow(&registry).await {
                Anew::Missed => {}
                Anew::Over | Anew::Unreadable => sleep(AGAIN).await,
            }
        }
    }

    /// Reads everything, and then what changes.
    async fn follow(&self, registry: &Arc<dyn Registry>) -> Anew {
        let Ok(first) = registry.txn(Txn::read()).await else { return Anew::Unreadable };
        let mut words = registry.watch(first.revision);
        let Ok(index) = self.load(registry).await else { return Anew::Unreadable };
        *hold(&self.index) = index;
        self.known.send_replace(Some(first.revision));
        let mut heard = Vec::new();
        loop {
            heard.clear();
            tokio::select! {
                count = words.recv_many(&mut heard, WORDS) => if count == 0 { return Anew::Over },
                () = self.is_late.notified() => return Anew::Missed,
            }
            let mut changed = BTreeSet::new();
            let mut last = Revision(0);
            for word in &heard {
                let Word::Changed { key, at } = word else { return Anew::Missed };
                // A transaction changes one hold at the most, and that comes before its other keys.
                changed.extend(HoldId::of_key(key));
                last = *at;
            }
            if self.take_in(registry, changed).await.is_err() {
                return Anew::Unreadable;
            }
            self.known.send_if_modified(|known| {
                let is_newer = *known < Some(last);
                *known = (*known).max(Some(last));
                is_newer
            });
        }
    }

    /// Everything that there is now.
    async fn load(&self, registry: &Arc<dyn Registry>) -> Result<Index, Trouble> {
        let mut index = Index::default();
        let mut after = String::new();
        loop {
            let txn = Txn::read().with_page(after, LARGEST_PAGE);
            let answer = registry.txn(txn).await?;
            let read = answer.holds.iter().filter_map(|(_, item)| self.read_hold(&item.value));
            read.for_each(|(hold, locks)| index.put(hold, locks));
            match answer.holds.last().filter(|_| answer.more) {
                Some((key, _)) => after = key.clone(),
                None => return Ok(index),
            }
        }
    }

    fn read_hold(&self, value: &[u8]) -> Option<(DurableHold, Vec<Lock>)> {
        let hold = DurableHold::read(value)?;
        let locks = self.locks_of(&hold);
        Some((hold, locks))
    }

    /// Reads these holds.
    async fn take_in(
        &self,
        registry: &Arc<dyn Registry>,
        changed: BTreeSet<HoldId>,
    ) -> Result<(), Trouble> {
        let mut changed = changed.into_iter();
        let mut reading = JoinSet::new();
        loop {
            while reading.len() < READS
                && let Some(id) = changed.next()
            {
                let registry = Arc::clone(registry);
                reading.spawn(async move {
                    let before = id.0.checked_sub(1).map(|id| HoldId(id).key());
                    let txn = Txn::read().with_page(before.unwrap_or_default(), 1);
                    (id, registry.txn(txn).await)
                });
            }
            let Some(read) = reading.join_next().await else { return Ok(()) };
            // It is not aborted, and does not panic.
            let Ok((id, answer)) = read else { continue };
            let answer = answer?;
            let found = answer.holds.first().filter(|(key, _)| *key == id.key());
            let read = found.and_then(|(_, item)| self.read_hold(&item.value));
            let mut index = hold(&self.index);
            match read {
                Some((hold, locks)) => index.put(hold, locks),
                None => index.remove(id),
            }
        }
    }

    /// Tells when the index has changed.
    pub(crate) fn changes(&self) -> watch::Receiver<Option<Revision>> {
        self.known.subscribe()
    }
}
