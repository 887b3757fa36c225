//! What must hold whatever was done to the group, judged by the histories of its clients alone.
//!
//! A client is inside from the moment it saw the grant until it is about to release, or until it is not
//! certain any more, whichever comes first. It may be certain for a while, not certain, and never again.

mod exclusion;
mod fences;
mod served;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use catraca_client::Time;

use super::history::{Event, History, NEVER};

/// What can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    /// No more are inside than may be.
    Exclusion,
    /// Fences grow from grant to grant of a lock.
    FencesGrow,
    /// No two grants of a name have the same fence.
    FencesDiffer,
    /// A durable hold is the same when it is asked for again.
    DurableStays,
    /// After healing, everybody who asks is served.
    Served,
    /// The memory of every node returns to where it was.
    Memory,
    /// When nobody wants anything any more, no node keeps anything of anybody.
    NothingLeft,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::Exclusion => "no more are inside than may be",
            Rule::FencesGrow => "fences grow",
            Rule::FencesDiffer => "no fence is given twice",
            Rule::DurableStays => "a durable hold is neither lost nor doubled",
            Rule::Served => "everybody is served after healing",
            Rule::Memory => "memory returns to where it was",
            Rule::NothingLeft => "nothing is left when nobody wants anything",
        })
    }
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) rule: Rule,
    pub(crate) what: String,
    pub(crate) at: Time,
    /// The requests that it is about: which history, and the number in it.
    pub(crate) requests: Vec<(usize, u64)>,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) asked: usize,
    pub(crate) granted: usize,
    pub(crate) lost: usize,
    pub(crate) refused: usize,
}

/// When the faults were over, and how long it may take from then on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Healing {
    pub(crate) at: Time,
    pub(crate) limit: Duration,
}

/// A name that was granted to a request.
#[derive(Clone, Debug)]
struct Hold {
    request: (usize, u64),
    permits: u32,
    fence: u64,
    granted: Time,
    is_durable: bool,
    /// When its client was inside, in order.
    inside: Vec<Range<Time>>,
}

impl Hold {
    /// Whether its client was certain of it when it saw the grant. One that was stopped between the
    /// grant and the look at the clock was not: nothing follows from its time.
    fn was_certain(&self) -> bool {
        self.inside.first().is_some_and(|first| first.start == self.granted)
    }
}

/// Everything that the histories break. After `healing`, if it is given, everybody must be served.
pub(crate) fn judge(histories: &[History], healing: Option<Healing>) -> Vec<Violation> {
    let (holds, mut violations) = holds(histories);
    for (name, holds) in &holds {
        violations.extend(exclusion::check(name, holds));
        violations.extend(fences::check(name, holds));
    }
    if let Some(healing) = healing {
        violations.extend(served::check(histories, healing));
    }
    violations.sort_by_key(|violation| violation.at);
    violations
}

/// What happened how often.
pub(crate) fn count(histories: &[History]) -> Counts {
    let mut counts = Counts::default();
    for record in histories.iter().flat_map(|history| &history.records) {
        match record.event {
            Event::Asked { .. } => counts.asked += 1,
            Event::Granted { .. } => counts.granted += 1,
            Event::Lost { .. } => counts.lost += 1,
            Event::Refused { .. } => counts.refused += 1,
            _ => {}
        }
    }
    counts
}

/// The memory of a member in bytes, before the faults and after them.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(crate) member: String,
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// The members whose memory has grown by more than `allowance` bytes.
pub(crate) fn judge_memory(members: &[Memory], allowance: u64, at: Time) -> Vec<Violation> {
    let has_grown = |memory: &&Memory| memory.after > memory.before + allowance;
    let violation = |memory: &Memory| {
        let Memory { member, before, after } = memory;
        let mib = |bytes: &u64| bytes >> 20;
        let what = format!(
            "the memory of {member} was {} MiB before the faults and is {} MiB after them",
            mib(before),
            mib(after)
        );
        Violation { rule: Rule::Memory, what, at, requests: Vec::new() }
    };
    members.iter().filter(has_grown).map(violation).collect()
}

/// What a member keeps of clients, as its status says; nothing if it does not answer.
#[derive(Clone, Debug)]
pub(crate) struct InUse {
    pub(crate) member: String,
    pub(crate) counts: Option<BTreeMap<String, u64>>,
}

/// What of a status has to be nothing when all clients have gone and a view has begun since: sessions and
/// what belongs to them, and names, which a new view forgets.
const OF_CLIENTS: [&str; 4] = ["sessions", "held", "waiting", "locks"];

/// The members that still keep something although nobody wants anything any more.
pub(crate) fn judge_in_use(members: &[InUse], at: Time) -> Vec<Violation> {
    let violation = |InUse { member, counts }: &InUse| {
        let left: Vec<String> = match counts {
            None => vec!["no answer".to_string()],
            Some(counts) => {
                let left = OF_CLIENTS.iter().filter_map(|&what| match counts.get(what) {
                    Some(0) => None,
                    Some(count) => Some(format!("{what} {count}")),
                    None => Some(format!("nothing is said of {what}")),
                });
                left.collect()
            }
        };
        let what = format!("all clients have gone, and of {member} there is {}", left.join(", "));
        let is_left = !left.is_empty();
        is_left.then(|| Violation { rule: Rule::NothingLeft, what, at, requests: Vec::new() })
    };
    members.iter().filter_map(violation).collect()
}

/// A request while its history is read.
struct Open<'a> {
    permits: u32,
    names: &'a [String],
    fences: Option<&'a [u64]>,
    is_durable: bool,
    granted: Time,
    inside: Vec<Range<Time>>,
    is_over: bool,
}

impl Open<'_> {
    /// From `at` on, the client is certain until `until`, whatever it believed before.
    fn believes(&mut self, at: Time, until: Time) {
        if self.is_over || self.fences.is_none() {
            return;
        }
        self.ends(at);
        match self.inside.last_mut() {
            Some(last) if last.end == at => last.end = until.max(at),
            _ if at < until => self.inside.push(at..until),
            _ => {}
        }
    }

    /// From `at` on, the client is not inside.
    fn ends(&mut self, at: Time) {
        if let Some(last) = self.inside.last_mut() {
            last.end = last.end.min(at);
        }
    }
}

/// Who has held what, by name, and the durable holds that were not the same when asked for again.
fn holds(histories: &[History]) -> (BTreeMap<&str, Vec<Hold>>, Vec<Violation>) {
    let (mut holds, mut violations) = (BTreeMap::<&str, Vec<Hold>>::new(), Vec::new());
    for (number, history) in histories.iter().enumerate() {
        for (request, open) in requests(number, history, &mut violations) {
            let Open { permits, is_durable, granted, inside, .. } = open;
            for (name, &fence) in open.names.iter().zip(open.fences.unwrap_or_default()) {
                let request = (number, request);
                let inside = inside.clone();
                let hold = Hold { request, permits, fence, granted, is_durable, inside };
                holds.entry(name).or_default().push(hold);
            }
        }
    }
    (holds, violations)
}

fn requests<'a>(
    number: usize,
    history: &'a History,
    violations: &mut Vec<Violation>,
) -> BTreeMap<u64, Open<'a>> {
    let mut requests = BTreeMap::<u64, Open<'a>>::new();
    for record in &history.records {
        let at = record.at;
        if let Event::Asked { permits, names } = &record.event {
            let open = Open {
                permits: *permits,
                names,
                fences: None,
                is_durable: false,
                granted: at,
                inside: Vec::new(),
                is_over: false,
            };
            requests.insert(record.request, open);
        }
        let Some(open) = requests.get_mut(&record.request) else { continue };
        match &record.event {
            Event::Granted { until, fences } => match open.fences {
                None => {
                    (open.granted, open.fences) = (at, Some(fences.as_slice()));
                    open.is_durable = *until == NEVER;
                    open.believes(at, *until);
                }
                Some(first) if first != fences.as_slice() => {
                    let what = format!(
                        "{} has a durable hold of {} with fence {first:?}, asked for it again, and was \
                         given fence {fences:?}",
                        history.client,
                        open.names.join(" ")
                    );
                    let requests = vec![(number, record.request)];
                    violations.push(Violation { rule: Rule::DurableStays, what, at, requests });
                }
                Some(_) => {}
            },
            Event::Lost { why, .. } if open.is_durable => {
                let names = open.names.join(" ");
                let what = format!("{} has lost a durable hold of {names}: {why}", history.client);
                let requests = vec![(number, record.request)];
                violations.push(Violation { rule: Rule::DurableStays, what, at, requests });
            }
            Event::Renewed { until } | Event::Lost { until, .. } => open.believes(at, *until),
            Event::Releasing => {
                open.ends(at);
                open.is_over = true;
            }
            _ => {}
        }
    }
    requests
}
