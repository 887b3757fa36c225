//! A registry among the members themselves: a log that is replicated by openraft, on redb.
//!
//! What to read first: `core.rs` (one voter), `forward.rs` (how a transaction finds the leader),
//! `machine.rs` (what the log is applied to), `directory.rs` and `disk.rs` (what is kept where). Nothing
//! of openraft is seen outside this module.
#![allow(clippy::result_large_err, reason = "openraft's errors are as large as they are")]

mod core;
mod directory;
mod disk;
#[cfg(test)]
mod faulty;
mod forming;
mod forward;
mod log;
mod machine;
mod network;
mod proposals;
mod recover;
mod serve;
mod voters;
mod wire;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use openraft::{Config, SnapshotPolicy};
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::time::Instant;

use self::core::Core;
pub use self::directory::OpenError;
use self::directory::Opened;
use self::disk::{Disk, DiskError};
use self::network::Peers;
pub use self::network::{CallError, Calling, Nobody, Transport};
pub use self::voters::voters;
pub use self::wire::LONGEST_MESSAGE;
use crate::{Answering, Health, Registry, Revision, Trouble, Txn, Word};

/// How often a snapshot is made, unless said otherwise.
const ENTRIES_PER_SNAPSHOT: u64 = 1000;
/// A snapshot is sent in parts of so many bytes.
const PART_OF_SNAPSHOT: u64 = 1 << 20;

/// After so long the others have heard what this member has told them, and have asked what they want to know.
const HEARD: Duration = Duration::from_millis(200);
/// A disk that has failed is told of for so long after it was opened again.
const LATELY: Duration = Duration::from_secs(10);

/// How an embedded registry is opened.
#[derive(Clone)]
pub struct Options {
    /// Where it keeps its data. The directory is for the registry alone.
    pub directory: PathBuf,
    /// The name of the group.
    pub group: String,
    /// The name of this member.
    pub me: String,
    /// All members, the same and in the same order everywhere. [`voters`] says who of them votes; the
    /// first begins the group, once.
    pub members: Vec<String>,
    /// Whether this member may begin the group. One that joins a group may not, nor ever after.
    pub may_form: bool,
    /// How long followers wait for a leader that is silent. Long enough for a disk that hesitates: a
    /// leader is silent while it flushes.
    pub elections: Range<Duration>,
    /// The longest time that a transaction takes.
    pub patience: Duration,
    /// A snapshot is made after so many entries of the log. A fifth of them is kept behind it, for voters
    /// that are late.
    pub entries_per_snapshot: u64,
    /// The way to the others.
    pub transport: Arc<dyn Transport>,
}

impl Options {
    /// A member that is alone.
    pub fn alone(directory: impl Into<PathBuf>, group: &str, me: &str) -> Self {
        Options {
            directory: directory.into(),
            group: group.to_string(),
            me: me.to_string(),
            members: vec![me.to_string()],
            may_form: true,
            elections: Duration::from_millis(400)..Duration::from_millis(800),
            patience: Duration::from_secs(2),
            entries_per_snapshot: ENTRIES_PER_SNAPSHOT,
            transport: Arc::new(Nobody),
        }
    }

    fn config(&self) -> Result<Config, OpenError> {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let config = Config {
            cluster_name: self.group.clone(),
            election_timeout_min: millis(self.elections.start),
            election_timeout_max: millis(self.elections.end),
            heartbeat_interval: (millis(self.elections.start) / 4).max(1),
            install_snapshot_timeout: 10_000,
            max_payload_entries: 64,
            snapshot_policy: SnapshotPolicy::LogsSinceLast(self.entries_per_snapshot),
            snapshot_max_chunk_size: PART_OF_SNAPSHOT,
            max_in_snapshot_log_to_keep: self.entries_per_snapshot / 5,
            ..Config::default()
        };
        config.validate().map_err(|error| OpenError::Options(error.to_string()))
    }
}

/// A registry among the members themselves. One, three or five of them vote; the others reach it
/// through those. Clones are the same registry; it ends with the last of them, or when it is closed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use catraca_registry::embedded::Options;
/// use catraca_registry::{Embedded, Guard, Registry, Txn};
///
/// # let place = tempfile::tempdir()?;
/// # let directory = place.path();
/// let registry = Embedded::open(Options::alone(directory, "offices", "berlin")).await?;
/// let first = Txn::default().given(Guard::Absent("door".into())).put("door", b"open".to_vec());
/// assert!(registry.txn(first.clone()).await?.applied);
/// assert!(!registry.txn(first).await?.applied, "the door is there already");
/// registry.close().await;
/// # Ok(())
/// # }
/// ```
///
/// In a group each member passes the requests of the others to [`serve`](Embedded::serve), and its
/// [`Transport`] carries requests to them.
#[derive(Clone)]
pub struct Embedded(Arc<Inner>);

struct Inner {
    directory: PathBuf,
    group: String,
    me: String,
    members: Vec<String>,
    patience: Duration,
    config: Arc<Config>,
    peers: Arc<Peers>,
    /// The voter that is here now.
    core: RwLock<Arc<Core>>,
    /// Until the registry is closed.
    disk: Mutex<Option<Arc<Disk>>>,
    given_back: AsyncMutex<mpsc::Receiver<()>>,
    /// One change of the voters at a time.
    changing: AsyncMutex<()>,
    /// Whether this member may begin the group, as its directory says.
    may_form: AtomicBool,
    /// Whether this member is about to leave, and lets nobody make it a voter.
    is_leaving: AtomicBool,
    /// When the disk failed last, and why.
    failed: Mutex<Option<(Instant, String)>>,
}

impl Embedded {
    /// Opens the registry of this member, on its directory. Members find each other in the background.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let (at, of, name) = (options.directory.clone(), options.group.clone(), options.me.clone());
        if !options.members.contains(&name) {
            return Err(OpenError::Options(format!("'{name}' is not one of the members")));
        }
        let may_form = options.may_form;
        let opened =
            tokio::task::spawn_blocking(move || directory::open(&at, &of, &name, may_form)).await;
        let opened = opened.map_err(|error| OpenError::Start(error.to_string()))?;
        Embedded::on(opened?, options).await
    }

    /// The registry on a disk that is open.
    async fn on(opened: Opened, options: Options) -> Result<Self, OpenError> {
        let config = Arc::new(options.config()?);
        let Options { directory, group, me, members, patience, transport, .. } = options;
        let Opened { disk, mark, given_back } = opened;
        let (disk, peers) = (Arc::new(disk), Arc::new(Peers::new(&group, transport)));
        let core = Core::start(disk.clone(), mark.id, config.clone(), peers.clone()).await?;
        let inner = Arc::new(Inner {
            directory,
            group,
            me,
            members,
            patience,
            config,
            peers,
            core: RwLock::new(Arc::new(core)),
            disk: Mutex::new(Some(disk)),
            given_back: AsyncMutex::new(given_back),
            changing: AsyncMutex::new(()),
            may_form: AtomicBool::new(mark.may_form),
            is_leaving: AtomicBool::new(false),
            failed: Mutex::new(None),
        });
        inner.clone().begin().await?;
        Ok(Embedded(inner))
    }

    /// The reply to a request that a [`Transport`] has brought here.
    pub async fn serve(&self, request: Vec<u8>) -> Vec<u8> {
        self.0.serve(&request).await
    }

    /// Changes who votes: one, three or five members. Whoever is new catches up first; whoever votes no
    /// more stops. A member that lost its disk is named again to make the new one vote.
    pub async fn change_voters(&self, names: &[String]) -> Result<(), Trouble> {
        self.0.change_voters(names.to_vec()).await
    }

    /// This member is about to leave: nobody makes it a voter any more. Or it stays after all.
    pub fn refuse_votes(&self, is_leaving: bool) {
        self.0.is_leaving.store(is_leaving, Ordering::SeqCst);
    }

    /// Lets the others hear at once of everything that has been agreed on, if this member leads. It is
    /// about to stop, and what only the leader knows to be agreed on waits for the next one.
    pub async fn announce(&self) {
        let core = self.0.core();
        if core.state() == openraft::ServerState::Leader
            && core.raft.trigger().heartbeat().await.is_ok()
        {
            tokio::time::sleep(HEARD).await;
        }
    }

    /// The voters whose disks were lost, as far as they answer: they have to be named again.
    pub async fn replaced_voters(&self) -> Vec<String> {
        self.0.replaced_voters().await
    }

    /// Notes something in the directory of this member, which no other sees. It lasts.
    pub async fn put_local(&self, key: &str, value: Vec<u8>) -> Result<(), Trouble> {
        let (disk, key) = (self.0.disk()?, key.to_string());
        let written = tokio::task::spawn_blocking(move || disk.put_note(&key, &value)).await;
        let written = written.map_err(|error| Trouble::Unknown(error.to_string()))?;
        written.map_err(|error| Trouble::Lost(error.to_string()))
    }

    /// What was noted.
    pub fn local(&self, key: &str) -> Result<Option<Vec<u8>>, Trouble> {
        self.0.disk()?.note(key).map_err(|error: DiskError| Trouble::Lost(error.to_string()))
    }

    /// How often this member has waited for its disk to keep something.
    pub fn flushes(&self) -> u64 {
        self.0.disk().map_or(0, |disk| disk.flushes())
    }

    /// Ends it, and gives the directory back. Transactions from now on are in vain.
    pub async fn close(&self) {
        // It cannot fail, says openraft; then the directory is given back all the same.
        let _ = self.0.core().raft.shutdown().await;
        // Another voter may have begun here meanwhile; from now on none does.
        let _one = self.0.changing.lock().await;
        let _ = self.0.core().raft.shutdown().await;
        let disk = self.0.disk.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(disk);
        self.0.given_back.lock().await.recv().await;
    }

    /// The last resort when a majority of the voters is lost for good: makes the voter of this directory
    /// the only one, with all that it knows. What it had not heard yet is lost. The other voters must
    /// not come back: delete their directories, and let them join again. The registry must not be open.
    pub fn recover_alone(directory: &Path) -> Result<(), OpenError> {
        recover::recover_alone(directory)
    }
}

impl Inner {
    fn core(&self) -> Arc<Core> {
        self.core.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why the disk failed, if it did a moment ago: whether it works for long now is not known.
    fn failed_lately(&self) -> Option<String> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let lately = failed.as_ref().filter(|(at, _)| at.elapsed() < LATELY);
        lately.map(|(_, why)| format!("{why}; it was opened again, and may fail again"))
    }

    /// Others have shown that this member's group has begun: from now on it begins none, also when it is
    /// started again and told something else.
    async fn belong(&self) {
        if !self.may_form.swap(false, Ordering::SeqCst) {
            return;
        }
        let Ok(disk) = self.disk() else { return };
        let written = tokio::task::spawn_blocking(move || disk.forbid_forming()).await;
        if !matches!(written, Ok(Ok(()))) {
            // It is tried again with the next answer.
            self.may_form.store(true, Ordering::SeqCst);
        }
    }

    fn disk(&self) -> Result<Arc<Disk>, Trouble> {
        let disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner).clone();
        disk.ok_or_else(|| Trouble::Lost("the registry is closed".to_string()))
    }
}

impl Registry for Embedded {
    fn txn(&self, txn: Txn) -> Answering<'_> {
        Box::pin(async move {
            txn.check().map_err(|why| Trouble::Refused(why.to_string()))?;
            self.0.carry_out(txn).await
        })
    }

    fn watch(&self, after: Revision) -> mpsc::Receiver<Word> {
        forward::watch(&self.0, after)
    }

    fn health(&self) -> Health {
        let core = self.0.core();
        let voters: Vec<String> = core.voters().into_keys().collect();
        let is_leader = core.state() == openraft::ServerState::Leader;
        let leader = if is_leader { Some(self.0.me.clone()) } else { core.leader() };
        let nobody_leads = || {
            let is_without = leader.is_none() && core.shared.is_inside();
            is_without.then(|| "no leader is known: a majority of the voters is needed".to_string())
        };
        let stopped = core.stopped().map(|error| error.to_string());
        let trouble = stopped.or_else(|| self.0.failed_lately()).or_else(nobody_leads);
        Health {
            place: "among the members".to_string(),
            leader,
            missing: voters.iter().filter(|name| self.0.peers.is_missing(name)).cloned().collect(),
            voters,
            trouble,
        }
    }
}
