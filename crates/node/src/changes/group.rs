//! What the members of a group tell each other about changes of their locks.
//!
//! A node that has subscribers asks the other members to be told, and they send it what happens there, in
//! numbered batches. At most so many batches are on their way to a member; what happens beyond that is
//! left out, and the next batch says so. A batch comes at least every so often, if need be an empty one:
//! a member that is silent for longer may be cut off, and what happens there is not known meanwhile. This
//! is a plain value; its owner carries the messages and says what time it is.

use std::collections::BTreeMap;
use std::time::Duration;

use catraca_group::Run;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{Change, What};

/// So many batches are on their way to a member, at the most.
pub(crate) const WINDOW: u64 = 32;
/// So many changes are in a batch, at the most.
pub(crate) const BATCH: usize = 128;
/// A batch comes at least so often.
pub(super) const BEAT: Duration = Duration::from_secs(1);
/// A member that says nothing for so long is not heard.
const SILENCE: Duration = Duration::from_secs(3);
/// A member that takes nothing for so long does not want to know any more.
const UNTAKEN: Duration = Duration::from_secs(60);

/// What one member says to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Message {
    /// Tell me what happens at yours from now on.
    Watch,
    /// Tell me no more.
    Unwatch,
    /// What has happened since the last batch.
    Batch {
        /// One more than that of the last one.
        number: u64,
        /// Whether it is all that has happened.
        is_complete: bool,
        changes: Vec<Told>,
    },
    /// The batches up to this one have come.
    Took(u64),
}

/// A change, as one member tells it to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Told {
    unix_millis: u64,
    what: What,
    name: String,
    permits: u32,
    fence: Option<u64>,
    label: String,
}

impl Told {
    fn of(change: &Change) -> Self {
        let Change { unix_millis, what, permits, fence, .. } = *change;
        let (name, label) = (change.name.clone(), change.label.clone());
        Told { unix_millis, what, name, permits, fence, label }
    }

    pub(super) fn at(self, member: &str) -> Change {
        let Told { unix_millis, what, name, permits, fence, label } = self;
        let (number, member, identity) = (0, member.to_string(), String::new());
        Change { number, unix_millis, member, what, name, permits, fence, label, identity }
    }
}

/// A member that was asked to tell what happens there.
#[derive(Debug)]
struct Source {
    asked: Instant,
    heard: Instant,
    /// The last batch that came.
    last: u64,
    /// Whether everything that happens there is heard.
    is_live: bool,
    /// Whether it was said that it is not.
    is_told: bool,
}

/// A member that wants to know what happens here.
#[derive(Debug)]
struct Watcher {
    sent: u64,
    took: u64,
    sent_at: Instant,
    took_at: Instant,
    /// Whether something was left out since the last batch.
    has_missed: bool,
}

/// What is to be told to subscribers here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    /// Whether something may have been missed before these.
    pub(super) has_gap: bool,
    pub(super) changes: Vec<Told>,
}

/// The other members, as far as changes go.
#[derive(Debug, Default)]
pub(super) struct PeerChanges {
    sources: BTreeMap<Run, Source>,
    watchers: BTreeMap<Run, Watcher>,
}

/// Messages to other members.
pub(super) type Messages = Vec<(Run, Message)>;

impl PeerChanges {
    /// Whether another member wants to know what happens here.
    pub(super) fn has_watchers(&self) -> bool {
        !self.watchers.is_empty()
    }

    /// Looks at the others: these are in the view, and there is somebody here who wants to know of them,
    /// or not. Returns whether something may have been missed.
    pub(super) fn look(
        &mut self,
        peers: &[Run],
        is_wanted: bool,
        now: Instant,
        out: &mut Messages,
    ) -> bool {
        let mut has_gap = false;
        self.sources.retain(|run, source| {
            let is_kept = is_wanted && peers.contains(run);
            has_gap |= is_wanted && !is_kept && source.is_live;
            if !is_wanted {
                out.push((run.clone(), Message::Unwatch));
            }
            is_kept
        });
        for run in peers.iter().filter(|_| is_wanted) {
            has_gap |= self.look_at(run, now, out);
        }
        self.watchers.retain(|run, watcher| {
            peers.contains(run) && now.duration_since(watcher.took_at) < UNTAKEN
        });
        for (run, watcher) in &mut self.watchers {
            if watcher.has_missed || now.duration_since(watcher.sent_at) >= BEAT {
                out.extend(watcher.send(Vec::new(), now).map(|batch| (run.clone(), batch)));
            }
        }
        has_gap
    }

    fn look_at(&mut self, run: &Run, now: Instant, out: &mut Messages) -> bool {
        let Some(source) = self.sources.get_mut(run) else {
            let (last, is_live, is_told) = (0, false, false);
            let source = Source { asked: now, heard: now, last, is_live, is_told };
            self.sources.insert(run.clone(), source);
            out.push((run.clone(), Message::Watch));
            return false;
        };
        if now.duration_since(source.heard) < SILENCE {
            return false;
        }
        if now.duration_since(source.asked) >= SILENCE {
            source.asked = now;
            out.push((run.clone(), Message::Watch));
        }
        source.is_live = false;
        !std::mem::replace(&mut source.is_told, true)
    }

    /// Another member says something.
    pub(super) fn hear(
        &mut self,
        from: &Run,
        message: Message,
        now: Instant,
        out: &mut Messages,
    ) -> Heard {
        match message {
            Message::Watch => {
                let (sent_at, took_at) = (now, now);
                let watcher = Watcher { sent: 0, took: 0, sent_at, took_at, has_missed: true };
                let watcher = self.watchers.entry(from.clone()).insert_entry(watcher).into_mut();
                out.extend(watcher.send(Vec::new(), now).map(|batch| (from.clone(), batch)));
            }
            Message::Unwatch => {
                self.watchers.remove(from);
            }
            Message::Took(number) => {
                if let Some(watcher) = self.watchers.get_mut(from)
                    && (watcher.took..=watcher.sent).contains(&number)
                {
                    (watcher.took, watcher.took_at) = (number, now);
                }
            }
            Message::Batch { number, is_complete, changes } => {
                let Some(source) = self.sources.get_mut(from) else {
                    out.push((from.clone(), Message::Unwatch));
                    return Heard::default();
                };
                out.push((from.clone(), Message::Took(number)));
                let is_next = number == source.last + 1;
                let has_gap = !is_complete || !is_next || !source.is_live;
                (source.heard, source.last) = (now, number);
                (source.is_live, source.is_told) = (true, false);
                return Heard { has_gap, changes };
            }
        }
        Heard::default()
    }

    /// Tells the others what has happened here.
    pub(super) fn share(&mut self, changes: &[Change], now: Instant, out: &mut Messages) {
        for (run, watcher) in &mut self.watchers {
            for part in changes.chunks(BATCH) {
                let batch = watcher.send(part.iter().map(Told::of).collect(), now);
                out.extend(batch.map(|batch| (run.clone(), batch)));
            }
        }
    }

    /// Something has happened here of which nobody can tell.
    pub(super) fn miss(&mut self) {
        self.watchers.values_mut().for_each(|watcher| watcher.has_missed = true);
    }
}

impl Watcher {
    /// The next batch, if it may be sent. Else what is in it is left out.
    fn send(&mut self, changes: Vec<Told>, now: Instant) -> Option<Message> {
        if self.sent - self.took >= WINDOW {
            self.has_missed |= !changes.is_empty();
            return None;
        }
        self.sent += 1;
        self.sent_at = now;
        let is_complete = !std::mem::take(&mut self.has_missed);
        Some(Message::Batch { number: self.sent, is_complete, changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str) -> Run {
        Run { name: name.to_string(), incarnation: 1 }
    }

    fn change(number: u64) -> Change {
        let (member, name) = ("b".to_string(), format!("x{number}"));
        let (what, label) = (What::Granted, String::new());
        let fence = Some(number);
        Change {
            number: 0,
            unix_millis: 1,
            member,
            what,
            name,
            permits: 1,
            fence,
            label,
            identity: String::new(),
        }
    }

    fn batch(number: u64, is_complete: bool, changes: &[Change]) -> Message {
        let changes = changes.iter().map(Told::of).collect();
        Message::Batch { number, is_complete, changes }
    }

    fn of(name: &str, message: Message) -> (Run, Message) {
        (run(name), message)
    }

    #[test]
    fn a_member_is_asked_and_from_its_first_word_on_everything_is_heard() {
        let (mut here, now) = (PeerChanges::default(), Instant::now());
        let mut out = Vec::new();
        assert!(!here.look(&[run("b")], true, now, &mut out));
        assert_eq!(out, [of("b", Message::Watch)]);
        out.clear();
        let heard = here.hear(&run("b"), batch(1, false, &[]), now, &mut out);
        assert!(heard.has_gap, "what happened before is not known");
        let heard = here.hear(&run("b"), batch(2, true, &[change(1)]), now, &mut out);
        assert_eq!(heard, Heard { has_gap: false, changes: vec![Told::of(&change(1))] });
        assert_eq!(out, [of("b", Message::Took(1)), of("b", Message::Took(2))]);
    }

    #[test]
    fn a_batch_that_is_missing_or_not_complete_is_a_gap() {
        let (mut here, now) = (PeerChanges::default(), Instant::now());
        let mut out = Vec::new();
        here.look(&[run("b")], true, now, &mut out);
        here.hear(&run("b"), batch(1, false, &[]), now, &mut out);
        for (number, is_complete, has_gap) in [(2, true, false), (4, true, true), (5, false, true)]
        {
            let message = batch(number, is_complete, &[]);
            assert_eq!(here.hear(&run("b"), message, now, &mut out).has_gap, has_gap, "{number}");
        }
    }

    #[test]
    fn a_member_that_is_silent_is_a_gap_once_and_is_asked_again() {
        let (mut here, now) = (PeerChanges::default(), Instant::now());
        let mut out = Vec::new();
        here.look(&[run("b")], true, now, &mut out);
        here.hear(&run("b"), batch(1, false, &[]), now, &mut out);
        out.clear();
        assert!(!here.look(&[run("b")], true, now + SILENCE / 2, &mut out));
        assert!(here.look(&[run("b")], true, now + SILENCE, &mut out));
        assert_eq!(out, [of("b", Message::Watch)]);
        assert!(!here.look(&[run("b")], true, now + 2 * SILENCE, &mut out), "it was said");
        let heard = here.hear(&run("b"), batch(1, false, &[]), now + 2 * SILENCE, &mut out);
        assert!(heard.has_gap);
        assert!(here.look(&[run("b")], true, now + 3 * SILENCE, &mut out), "it is said again");
    }

    #[test]
    fn a_member_that_has_left_the_view_is_a_gap_and_one_that_nobody_wants_is_none() {
        let (mut here, now) = (PeerChanges::default(), Instant::now());
        let mut out = Vec::new();
        here.look(&[run("b"), run("c")], true, now, &mut out);
        here.hear(&run("b"), batch(1, false, &[]), now, &mut out);
        assert!(here.look(&[run("c")], true, now, &mut out));
        assert!(!here.look(&[run("c")], true, now, &mut out));
        out.clear();
        assert!(!here.look(&[run("c")], false, now, &mut out));
        assert_eq!(out, [of("c", Message::Unwatch)]);
        out.clear();
        here.hear(&run("c"), batch(1, false, &[change(1)]), now, &mut out);
        assert_eq!(out, [of("c", Message::Unwatch)], "it has not heard so");
    }

    #[test]
    fn a_watcher_that_takes_nothing_is_sent_no_more_than_the_window_and_told_what_it_missed() {
        let (mut there, now) = (PeerChanges::default(), Instant::now());
        let mut out = Vec::new();
        there.hear(&run("a"), Message::Watch, now, &mut out);
        assert_eq!(out, [of("a", batch(1, false, &[]))]);
        for number in 0..2 * WINDOW {
            there.share(&[change(number)], now, &mut out);
        }
        assert_eq!(out.len() as u64, WINDOW);
        assert_eq!(out[1], of("a", batch(2, true, &[change(0)])));
        out.clear();
        // It cannot have taken what was not sent.
        there.hear(&run("a"), Message::Took(WINDOW + 1), now, &mut out);
        there.look(&[run("a")], false, now + BEAT, &mut out);
        assert_eq!(out, []);
        there.hear(&run("a"), Message::Took(WINDOW), now, &mut out);
        there.look(&[run("a")], false, now, &mut out);
        assert_eq!(out, [of("a", batch(WINDOW + 1, false, &[]))]);
        there.look(&[run("a")], false, now + UNTAKEN, &mut out);
        assert!(!there.has_watchers(), "it does not want to know");
    }

    #[test]
    fn a_watcher_hears_something_every_so_often_and_nothing_when_it_is_gone() {
        let (mut there, now) = (PeerChanges::default(), Instant::now());
        let mut out = Vec::new();
        there.hear(&run("a"), Message::Watch, now, &mut out);
        there.look(&[run("a")], false, now + BEAT / 2, &mut out);
        assert_eq!(out.len(), 1);
        there.look(&[run("a")], false, now + BEAT, &mut out);
        assert_eq!(out[1], of("a", batch(2, true, &[])));
        there.miss();
        there.share(&[change(1)], now, &mut out);
        assert_eq!(out[2], of("a", batch(3, false, &[change(1)])));
        there.look(&[], false, now, &mut out);
        assert!(!there.has_watchers());
    }

    #[test]
    fn many_changes_are_sent_in_batches_of_a_bounded_size() {
        let (mut there, now) = (PeerChanges::default(), Instant::now());
        let mut out = Vec::new();
        there.hear(&run("a"), Message::Watch, now, &mut out);
        let changes: Vec<Change> = (0..2 * BATCH as u64 + 1).map(change).collect();
        there.share(&changes, now, &mut out);
        let sizes = out[1..].iter().map(|(_, message)| match message {
            Message::Batch { changes, .. } => changes.len(),
            other => panic!("{other:?}"),
        });
        assert_eq!(sizes.collect::<Vec<_>>(), [BATCH, BATCH, 1]);
    }
}
