//! Checks the coordinator's log and the processes' result file against each other.
//!
//! From the log alone: nobody is granted while another is inside, and grants come in the order of
//! requests. From both: every grant is one entry, in the same order, each entry after its grant and
//! before its release, and no entry before the release of the one before it. From the result file:
//! entries are at least the hold apart. Finally everybody has entered as often as it should.
//!
//! Order is taken from the files, and times only confirm it: the clock of the system may be set.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::{Entry, Event, Kind, Line, Message, ProcessId, Stamp};

/// What a run should have been.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Who took part.
    pub processes: Vec<ProcessId>,
    /// How often each entered.
    pub rounds: u32,
    /// How long each stayed inside, at least.
    pub hold: Duration,
}

/// What a run was, if nothing is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// From the first REQUEST to the last RELEASE.
    pub total: Duration,
    /// How each process fared.
    pub shares: Vec<Share>,
}

/// How one process fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Who.
    pub id: ProcessId,
    /// How often it was inside.
    pub entries: u32,
    /// How long it waited for all its grants together.
    pub waited: Duration,
    /// How long it waited for a grant at most.
    pub longest: Duration,
}

/// A stay inside, as the log has it.
#[derive(Clone, Copy, Debug)]
struct Stay {
    id: ProcessId,
    requested: Stamp,
    granted: Stamp,
    released: Stamp,
}

/// Checks both files. The error is the first defect.
pub fn verify(log: &str, result: &str, expected: &Expected) -> Result<Account, Defect> {
    let stays = stays(log)?;
    let entries = entries(result)?;
    compare(&stays, &entries)?;
    in_time(&stays, &entries)?;
    apart(&entries, expected.hold)?;
    account(&stays, expected)
}

/// Follows the log line by line, as the coordinator should have.
fn stays(log: &str) -> Result<Vec<Stay>, Defect> {
    let mut stays = Vec::new();
    let mut inside: Option<(ProcessId, Stamp, Stamp)> = None;
    let mut waiting: VecDeque<(ProcessId, Stamp)> = VecDeque::new();
    for (index, text) in log.lines().enumerate() {
        let number = index + 1;
        let line: Line = text.parse().map_err(|_| Defect::NoLine { number })?;
        let wrong = |message: Message| Err(Defect::OutOfPlace { number, message });
        match line.event {
            Event::Closed(id, why) => {
                let who = id.map_or("a client".to_string(), |id| id.to_string());
                return Err(Defect::Closed { number, who, why });
            }
            Event::Received(message) => match (message.kind, inside) {
                (Kind::Request, _) if waiting.iter().all(|&(id, _)| id != message.id) => {
                    waiting.push_back((message.id, line.at));
                }
                (Kind::Release, Some((id, requested, granted))) if id == message.id => {
                    stays.push(Stay { id, requested, granted, released: line.at });
                    inside = None;
                }
                _ => return wrong(message),
            },
            Event::Sent(message) => match (inside, waiting.front().copied()) {
                _ if message.kind != Kind::Grant => return wrong(message),
                (Some((holder, ..)), _) => {
                    return Err(Defect::GrantedTwice { number, id: message.id, holder });
                }
                (None, Some((first, requested))) if first == message.id => {
                    waiting.pop_front();
                    inside = Some((first, requested, line.at));
                }
                (None, Some((first, _))) => {
                    return Err(Defect::Overtaken { number, id: message.id, first });
                }
                (None, None) => return wrong(message),
            },
        }
    }
    match inside.map(|(id, ..)| id).or(waiting.front().map(|&(id, _)| id)) {
        Some(id) => Err(Defect::Unfinished { id }),
        None => Ok(stays),
    }
}

fn entries(result: &str) -> Result<Vec<Entry>, Defect> {
    let parse = |(index, text): (usize, &str)| {
        text.parse().map_err(|_| Defect::NoEntry { number: index + 1 })
    };
    result.lines().enumerate().map(parse).collect()
}

/// Every grant is one entry, in the same order.
fn compare(stays: &[Stay], entries: &[Entry]) -> Result<(), Defect> {
    for index in 0..stays.len().max(entries.len()) {
        let granted = stays.get(index).map(|stay| stay.id);
        let entered = entries.get(index).map(|entry| entry.id);
        if granted != entered {
            return Err(Defect::Mismatch { number: index + 1, granted, entered });
        }
    }
    Ok(())
}

/// Grant, entry, release, next entry.
fn in_time(stays: &[Stay], entries: &[Entry]) -> Result<(), Defect> {
    let mut left = None;
    for (index, (stay, entry)) in stays.iter().zip(entries).enumerate() {
        let (number, id) = (index + 1, entry.id);
        if left.is_some_and(|left| entry.at < left) {
            return Err(Defect::Overlap { number, id });
        }
        if entry.at < stay.granted {
            return Err(Defect::BeforeGrant { number, id });
        }
        if stay.released < entry.at {
            return Err(Defect::AfterRelease { number, id });
        }
        left = Some(stay.released);
    }
    Ok(())
}

/// A stay is timed by a clock that is never set, entries by one that is being kept right: a
/// hundredth is left for the difference.
fn apart(entries: &[Entry], hold: Duration) -> Result<(), Defect> {
    for (index, pair) in entries.windows(2).enumerate() {
        let apart = pair[1].at.since(pair[0].at);
        if apart < hold - hold / 100 {
            return Err(Defect::TooClose { number: index + 2, id: pair[1].id, apart, hold });
        }
    }
    Ok(())
}

/// Everybody as often as it should, and nobody else.
fn account(stays: &[Stay], expected: &Expected) -> Result<Account, Defect> {
    let nothing = |&id: &ProcessId| {
        (id, Share { id, entries: 0, waited: Duration::ZERO, longest: Duration::ZERO })
    };
    let mut shares: BTreeMap<ProcessId, Share> = expected.processes.iter().map(nothing).collect();
    for stay in stays {
        let share = shares.get_mut(&stay.id).ok_or(Defect::Stranger { id: stay.id })?;
        let waited = stay.granted.since(stay.requested);
        share.entries += 1;
        share.waited += waited;
        share.longest = share.longest.max(waited);
    }
    let rounds = expected.rounds;
    if let Some(&Share { id, entries, .. }) = shares.values().find(|one| one.entries != rounds) {
        return Err(Defect::Rounds { id, entries, rounds });
    }
    let first = stays.iter().map(|stay| stay.requested).min();
    let last = stays.iter().map(|stay| stay.released).max();
    let total = first.zip(last).map_or(Duration::ZERO, |(first, last)| last.since(first));
    Ok(Account { total, shares: shares.into_values().collect() })
}

/// What is wrong with a run. Numbers of lines, grants and entries begin with 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the texts say it")]
pub enum Defect {
    #[error("line {number} of the log is not in S3's format")]
    NoLine { number: usize },
    #[error("line {number} of the result file is not in S3's format")]
    NoEntry { number: usize },
    #[error("line {number} of the log: the coordinator closed the connection of {who}: {why}")]
    Closed { number: usize, who: String, why: String },
    #[error("line {number} of the log: '{message}' should not come there")]
    OutOfPlace { number: usize, message: Message },
    #[error(
        "no mutual exclusion: line {number} of the log grants to {id} while {holder} is inside"
    )]
    GrantedTwice { number: usize, id: ProcessId, holder: ProcessId },
    #[error("not first come, first served: line {number} of the log grants to {id} before {first}")]
    Overtaken { number: usize, id: ProcessId, first: ProcessId },
    #[error("the log ends before process {id} has left")]
    Unfinished { id: ProcessId },
    #[error("grant {number} went to {}, but entry {number} is by {}", name(granted), name(entered))]
    Mismatch { number: usize, granted: Option<ProcessId>, entered: Option<ProcessId> },
    #[error(
        "no mutual exclusion: entry {number}, by {id}, is before the release of the one before"
    )]
    Overlap { number: usize, id: ProcessId },
    #[error("entry {number}, by {id}, is before its grant")]
    BeforeGrant { number: usize, id: ProcessId },
    #[error("entry {number}, by {id}, is after its release")]
    AfterRelease { number: usize, id: ProcessId },
    #[error("entry {number}, by {id}, is {apart:?} after the one before, which held {hold:?}")]
    TooClose { number: usize, id: ProcessId, apart: Duration, hold: Duration },
    #[error("process {id} entered, but does not take part")]
    Stranger { id: ProcessId },
    #[error("process {id} entered {entries} times instead of {rounds}")]
    Rounds { id: ProcessId, entries: u32, rounds: u32 },
}

fn name(id: &Option<ProcessId>) -> String {
    id.map_or("nobody".to_string(), |id| id.to_string())
}

#[cfg(test)]
mod tests;
