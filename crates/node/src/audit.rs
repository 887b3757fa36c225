//! The audit log: an append-only file of who held what and who administered what.
//!
//! Each line is a JSON object. Whoever writes one puts it into a bounded queue and goes on: a disk that
//! is slow or full never holds up a grant. A thread of its own writes the file. What there was no room
//! for is counted, and the log itself says how much is missing.

mod file;
mod pace;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use catraca_core::Fence;
use catraca_group::unpack_fence;
use serde::Serialize;

use self::file::File;
pub(crate) use self::pace::Pace;
use self::pace::Paces;
use crate::calendar::rfc3339;
use crate::changes::{Change, What, unix_millis};
use crate::config::AuditConfig;
use crate::mutex::hold;

/// So many records wait to be written.
pub(crate) const MOST_WAITING: usize = 16 << 10;
/// So many are written at once.
const BATCH: usize = 1024;
/// A disk that could not be written is tried again after this time.
const AGAIN: Duration = Duration::from_secs(1);

/// Locks on files of Git repositories begin with this: `catraca git report` asks what people waited for.
const GIT: &str = "git/";

/// One line of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// When, in milliseconds since 1970; now, if nothing.
    pub(crate) unix_millis: Option<u64>,
    pub(crate) epoch: u32,
    pub(crate) what: &'static str,
    pub(crate) name: Option<String>,
    pub(crate) permits: Option<u32>,
    pub(crate) fence: Option<u64>,
    /// What the client calls itself.
    pub(crate) who: Option<String>,
    /// Who it is, by its token or certificate.
    pub(crate) identity: Option<String>,
    pub(crate) detail: Option<String>,
    pub(crate) count: Option<u64>,
}

/// A record as it is written. Fences are texts: they are larger than what many programs read as numbers.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    member: &'a str,
    epoch: u32,
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permits: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    who: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
}

#[derive(Default)]
struct Waiting {
    records: VecDeque<Record>,
    /// How many there was no room for since the last line was written.
    dropped: u64,
    is_reopened: bool,
    is_closed: bool,
}

struct Shared {
    member: String,
    waiting: Mutex<Waiting>,
    changed: Condvar,
    /// Of all time, for the metrics.
    dropped: AtomicU64,
    /// Whether the last attempt to write has failed.
    is_failing: AtomicBool,
}

/// Where records go.
pub(crate) struct Audit {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// How often somebody was denied lately.
    pub(crate) denials: Paces,
    /// Who has used its token lately, where it comes with every request.
    pub(crate) tokens: Paces,
}

/// So many denials of one identity are written in a minute, and of all that have none together.
const MOST_DENIALS: u64 = 60;

impl Audit {
    /// Opens the log of a member, if the configuration asks for one.
    pub(crate) fn open(config: &AuditConfig, member: &str) -> io::Result<Option<Self>> {
        let Some(path) = &config.file else { return Ok(None) };
        let file = File::open(path.clone(), config.max_bytes, config.keep)?;
        let shared = Arc::new(Shared {
            member: member.to_string(),
            waiting: Mutex::default(),
            changed: Condvar::new(),
            dropped: AtomicU64::new(0),
            is_failing: AtomicBool::new(false),
        });
        let its = Arc::clone(&shared);
        let writer = std::thread::Builder::new().name("audit".to_string());
        let writer = Mutex::new(Some(writer.spawn(move || its.write_all(file))?));
        let (denials, tokens) = (Paces::new(MOST_DENIALS), Paces::new(1));
        Ok(Some(Audit { shared, writer, denials, tokens }))
    }

    /// Puts a record behind all others, if there is room.
    pub(crate) fn write(&self, record: Record) {
        let time = record.unix_millis.unwrap_or_else(unix_millis);
        let mut waiting = hold(&self.shared.waiting);
        if waiting.records.len() >= MOST_WAITING || waiting.is_closed {
            waiting.dropped += 1;
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.records.push_back(Record { unix_millis: Some(time), ..record });
        self.shared.changed.notify_one();
    }

    /// Writes down what happened to a lock, if that is of interest: waiting is not, unless people wait.
    pub(crate) fn write_change(&self, change: &Change) {
        match change.what {
            What::Waits | What::GivesUp if change.name.starts_with(GIT) => {}
            What::Waits | What::GivesUp | What::Git => return,
            What::Granted | What::Released | What::Lost | What::Forced => {}
        }
        self.write(Record {
            unix_millis: Some(change.unix_millis),
            epoch: change.fence.map_or(0, epoch_of),
            what: change.what.word(),
            name: Some(change.name.clone()),
            permits: Some(change.permits),
            fence: change.fence,
            who: Some(change.label.clone()),
            identity: Some(change.identity.clone()).filter(|identity| !identity.is_empty()),
            ..Record::default()
        });
    }

    /// So many records never came here, and are missing.
    pub(crate) fn miss(&self, count: u64) {
        hold(&self.shared.waiting).dropped += count;
        self.shared.dropped.fetch_add(count, Ordering::Relaxed);
        self.shared.changed.notify_one();
    }

    /// How many records were not written.
    pub(crate) fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// The file was moved away, or its disk has room again: it is opened anew.
    pub(crate) fn reopen(&self) {
        hold(&self.shared.waiting).is_reopened = true;
        self.shared.changed.notify_one();
    }

    /// Nothing more comes: what waits is written, if the disk takes it.
    pub(crate) fn close(&self) {
        hold(&self.shared.waiting).is_closed = true;
        self.shared.changed.notify_one();
    }

    /// Returns when everything is written that can be. This blocks.
    pub(crate) fn finish(&self) {
        self.close();
        let writer = hold(&self.writer).take();
        if let Some(writer) = writer {
            // A panic there has been reported.
            writer.join().ok();
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// Writes whatever comes, until nothing more does.
    fn write_all(&self, mut file: File) {
        let opened = || Record { what: "log opened", ..Record::default() };
        let mut result = self.put(&mut file, opened()).and_then(|()| file.flush());
        loop {
            self.see(&mut file, &result);
            let (records, dropped, is_reopened, is_closed) = self.next();
            result = Ok(());
            if is_reopened {
                result = file.reopen().and_then(|()| self.put(&mut file, opened()));
            }
            if dropped > 0 {
                let missing = Record { what: "dropped", count: Some(dropped), ..Record::default() };
                let said = self.put(&mut file, missing).and_then(|()| file.flush());
                if said.is_err() {
                    // The line itself does not count.
                    file.take_lost();
                    hold(&self.waiting).dropped += dropped;
                }
                result = result.and(said);
            }
            let is_empty = records.is_empty();
            for record in records {
                result = result.and(self.put(&mut file, record));
            }
            result = result.and(file.flush());
            if is_closed && is_empty {
                return;
            }
        }
    }

    /// What could not be written is said when the disk takes something again. The operator is told once,
    /// and nothing is tried again at once.
    fn see(&self, file: &mut File, result: &io::Result<()>) {
        let lost = file.take_lost();
        self.dropped.fetch_add(lost, Ordering::Relaxed);
        hold(&self.waiting).dropped += lost;
        let Err(error) = result else {
            return self.is_failing.store(false, Ordering::Relaxed);
        };
        if !self.is_failing.swap(true, Ordering::Relaxed) {
            tracing::error!(%error, "the audit log cannot be written");
        }
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |waiting: &mut Waiting| !waiting.is_closed && !waiting.is_reopened;
        drop(self.changed.wait_timeout_while(waiting, AGAIN, waits));
    }

    /// Waits until there is something to write.
    fn next(&self) -> (Vec<Record>, u64, bool, bool) {
        let mut waiting: MutexGuard<'_, Waiting> =
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.records.is_empty()
            && waiting.dropped == 0
            && !waiting.is_reopened
            && !waiting.is_closed
        {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let count = waiting.records.len().min(BATCH);
        let records = waiting.records.drain(..count).collect();
        let dropped = std::mem::take(&mut waiting.dropped);
        (records, dropped, std::mem::take(&mut waiting.is_reopened), waiting.is_closed)
    }

    fn put(&self, file: &mut File, record: Record) -> io::Result<()> {
        let Record { unix_millis: at, epoch, what, name, permits, who, identity, .. } = record;
        let line = Line {
            time: rfc3339(at.unwrap_or_else(unix_millis)),
            member: &self.member,
            epoch,
            what,
            name,
            permits,
            fence: record.fence.map(|fence| fence.to_string()),
            who,
            identity,
            detail: record.detail,
            count: record.count,
        };
        file.write(&serde_json::to_vec(&line)?)
    }
}

/// The view in which a lock was granted with this fence.
pub(crate) fn epoch_of(fence: u64) -> u32 {
    unpack_fence(Fence(fence)).0.0
}

#[cfg(test)]
mod tests;
