//! How a member belongs to its group: its lease, the view, and the way from one view to the next.
//!
//! The group runs in numbered views. Within a view an algorithm runs as its paper says. When somebody
//! joins, leaves or is lost, everybody stops the algorithms of the view and begins the next one with
//! those inside who are inside. Tokens are never searched for: they are made anew.
//!
//! [`Membership`] is a plain value. Its inputs are answers of the registry, messages of other members,
//! links that come and go, and the time; what follows is pushed into a buffer of [`Directive`]s. The
//! rules that keep two from being inside are in `rules.rs`.

mod change;
mod deciding;
mod mutants;
mod possible;
mod reach;
mod record;
mod rules;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use catraca_algorithms::hi_adsd;
use serde::{Deserialize, Serialize};

use self::change::Change;
pub use self::mutants::{VIEW_MUTANTS, ViewMutant};
use self::record::BEATS;
pub use self::record::{Beat, Cause, Entry, Roster, Run, ViewRecord};
use self::record::{ROSTER, VIEW};
pub(crate) use self::record::{beat_key, decode, encode};
pub use self::rules::Lease;
pub(crate) use self::rules::{Rules, Sound};
use crate::durable::Adopted;
use crate::registry::{Answer, RELEASED, Revision, Trouble, Txn, Word};
use crate::shard::{Held, HeldLock};
use crate::time::Time;
use crate::timed::TimedCopy;
use crate::view::{Epoch, Member, Namespace, View, stable_hash};

/// So many changes of the view are remembered for operators.
const MOST_HISTORY: usize = 32;

/// What members say to each other about views.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ViewMessage {
    /// There is a view with this number.
    Begin {
        /// The number.
        epoch: Epoch,
    },
    /// What is held at the sender, for the one who makes the table of this view.
    Report {
        /// The number of the view.
        epoch: Epoch,
        /// A part of it.
        part: Vec<HeldLock>,
        /// Whether this is the last part.
        is_last: bool,
    },
    /// Timed holds of members that are not in this view, as the sender remembers them. They come before
    /// its report.
    Orphans {
        /// The number of the view.
        epoch: Epoch,
        /// Some of them.
        copies: Vec<TimedCopy>,
    },
    /// Timed holds that are at the receiver when this view begins, and were not before. They come before
    /// the table.
    TakeOver {
        /// The number of the view.
        epoch: Epoch,
        /// Some of them.
        copies: Vec<TimedCopy>,
    },
    /// What is held in the whole group when this view begins.
    Table {
        /// The number of the view.
        epoch: Epoch,
        /// A part of it.
        part: Vec<HeldLock>,
        /// Whether this is the last part.
        is_last: bool,
    },
    /// Durable holds that are at the receiver when this view begins, and were not before. They come
    /// before the table.
    Adopt {
        /// The number of the view.
        epoch: Epoch,
        /// Some of them.
        holds: Vec<Adopted>,
    },
}

impl ViewMessage {
    fn epoch(&self) -> Epoch {
        match self {
            ViewMessage::Begin { epoch }
            | ViewMessage::Report { epoch, .. }
            | ViewMessage::Orphans { epoch, .. }
            | ViewMessage::TakeOver { epoch, .. }
            | ViewMessage::Table { epoch, .. }
            | ViewMessage::Adopt { epoch, .. } => *epoch,
        }
    }
}

/// What follows from an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    /// A transaction for the registry. Its answer comes back with the number.
    Ask(u64, Txn),
    /// [`Membership::wake`] is to be called at another time than before: see
    /// [`alarm`](Membership::alarm).
    Wake,
    /// Links are to be kept to these members, and to no others.
    Peers(Vec<Entry>),
    /// Something to tell another member.
    Send(Run, ViewMessage),
    /// No algorithm may step any more. [`Membership::report`] is to be called with what is held.
    Freeze(Epoch),
    /// This view begins, with this held.
    Activate(Box<View>, Arc<Held>),
    /// Locks may be granted until then.
    Valid(Time),
    /// The lease is over: nothing is certain that clients of this member hold.
    Lapsed,
    /// The others ask this member to leave, because it does not reach all of them. When nobody is
    /// inside any more, [`Membership::leave`] is to be called.
    MustLeave,
    /// The group goes on without this member, which comes back as another incarnation, and why.
    Out(String),
    /// The member has left in order.
    Left,
    /// Another member has said what it cannot have said in a correct run.
    Anomaly(&'static str),
}

/// Everything about a member that does not change while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Who it is.
    pub member: Member,
    /// How long leases last.
    pub lease: Lease,
    /// Which algorithm guards which names.
    pub namespaces: Vec<Namespace>,
    /// A detector that takes silent members for crashed, for algorithms that want to know. Without one
    /// they hear of crashes by the view, and a member that is cut off lets nobody in.
    pub detector: Option<hi_adsd::Config>,
    /// Who belongs to the group, in it or not, as its founder was told.
    pub roster: Vec<Member>,
    /// Whether this member may become one of them by itself.
    pub may_register: bool,
}

impl Settings {
    /// The view of the member at place `me` of a record.
    fn view(&self, record: &ViewRecord, me: usize) -> View {
        let members = record.members.iter().map(|entry| entry.member.clone()).collect();
        View::new(members, me, self.namespaces.clone(), self.detector).in_epoch(record.epoch)
    }

    /// A number that differs if the configurations of two members do. Leases count: whoever excludes
    /// another goes by its own.
    fn configuration(&self) -> u64 {
        let view = View::new(Vec::new(), 0, self.namespaces.clone(), self.detector);
        let Lease { ttl, margin } = self.lease;
        stable_hash(&format!("lease {ttl:?} {margin:?}"), view.configuration())
    }
}

/// Whether the member is in the view.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Presence {
    Outside,
    /// Its beat's key was created at this revision.
    Inside(Revision),
    /// It has left, and does not come back.
    Gone,
}

/// A beat of another member, and when it was received.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Heard {
    at: Revision,
    since: Time,
    /// When a beat was last seen to be new, while the registry answered.
    moved: Time,
    unreached: Vec<Run>,
}

/// What a transaction is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Read,
    Beat,
    /// Changes the view so that this member is in it.
    Join,
    /// Changes the view in another way: leaves, excludes, marks or renews.
    Propose,
    /// The durable holds, for the table of a view.
    Holds(Epoch),
}

/// A view that the member has been through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// Its number.
    pub epoch: Epoch,
    /// How many members it had.
    pub members: u32,
    /// Why it began.
    pub cause: String,
    /// When this member began it.
    pub at: Time,
    /// How long nothing was granted here, from hearing of the view until it began.
    pub took: Duration,
}

/// How a member belongs to its group.
#[derive(Clone, Debug)]
pub struct Membership {
    settings: Arc<Settings>,
    rules: &'static dyn Rules,
    incarnation: u64,
    presence: Presence,
    /// The revision of the newest answer.
    revision: Revision,
    /// Whether the view is written in a form that this release cannot read.
    is_unreadable: bool,
    /// The newest view, and when it was written.
    view: Option<(Revision, Arc<ViewRecord>)>,
    /// Who belongs to the group, in the view or not, and when that was written.
    roster: Option<(Revision, Roster)>,
    /// The last beat of every member.
    beats: BTreeMap<String, Heard>,
    answered_at: Option<Time>,
    /// What was asked and not answered, and when it was sent.
    asks: BTreeMap<u64, (Purpose, Time)>,
    last_ask: u64,
    /// The transaction that is to change the view, if one is under way.
    proposal: Option<u64>,
    /// Nothing is asked before then, but beats: the registry could not answer.
    retry_at: Time,
    /// When the registry is read next, if nothing else brings news.
    read_at: Time,
    beat_at: Time,
    last_beat: u64,
    valid_until: Time,
    /// Whether the lease was over since the present view began.
    has_lapsed: bool,
    /// The runs of other members that are connected. Two runs of one name may be, for a while.
    links: BTreeSet<Run>,
    /// The members of the view that are not connected, and since when.
    awaited: BTreeMap<Run, Time>,
    /// The view that runs here.
    active: Option<Epoch>,
    /// The last view that began here, or was about to.
    begun: Epoch,
    change: Option<Change>,
    /// Messages about views that this member has not heard of.
    early: Vec<(Run, ViewMessage)>,
    /// The last view of which a message was not kept, because there were too many.
    lost_early: Option<Epoch>,
    /// Another view with the same members is wanted.
    wish: Option<Cause>,
    /// Whether the member leaves, and whether it is to come back.
    leaving: Option<Leaving>,
    was_asked_to_leave: bool,
    /// Whether it has been on the roster: if it is not any more, somebody has taken it off.
    was_registered: bool,
    wake_at: Option<Time>,
    history: VecDeque<Past>,
    /// Why it is not in the view, or the registry does not answer.
    obstacle: Option<String>,
}

/// How a member leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Leaving {
    /// To come back when it reaches everybody.
    ForNow,
    /// Because its process ends. The next run of it comes back.
    ForGood,
    /// It belongs to the group no more.
    ForEver,
}

impl Leaving {
    /// Whether this run of the member does not come back.
    pub fn is_final(self) -> bool {
        self > Leaving::ForNow
    }
}

/// Two are the same if they would do the same. What is kept for operators does not matter, nor do the
/// numbers by which answers find what was asked.
impl Hash for Membership {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.incarnation, &self.presence, self.revision, self.is_unreadable).hash(hasher);
        (&self.view, &self.roster, &self.beats, self.answered_at).hash(hasher);
        for ask in self.asks.values() {
            ask.hash(hasher);
        }
        (self.asks.len(), self.proposal.is_some()).hash(hasher);
        (self.retry_at, self.read_at, self.beat_at, self.last_beat).hash(hasher);
        (self.valid_until, self.has_lapsed, &self.links, &self.awaited).hash(hasher);
        (self.active, self.begun, &self.change, &self.early, self.lost_early).hash(hasher);
        (&self.wish, self.leaving, self.was_asked_to_leave, self.was_registered).hash(hasher);
        self.wake_at.hash(hasher);
    }
}

impl Membership {
    /// A member that has not read the registry yet.
    pub fn new(settings: Settings, incarnation: u64) -> Self {
        Membership {
            settings: Arc::new(settings),
            rules: &Sound,
            incarnation,
            presence: Presence::Outside,
            revision: Revision(0),
            is_unreadable: false,
            view: None,
            roster: None,
            beats: BTreeMap::new(),
            answered_at: None,
            asks: BTreeMap::new(),
            last_ask: 0,
            proposal: None,
            retry_at: Time(0),
            read_at: Time(0),
            beat_at: Time(u64::MAX),
            last_beat: 0,
            valid_until: Time(0),
            has_lapsed: false,
            links: BTreeSet::new(),
            awaited: BTreeMap::new(),
            active: None,
            begun: Epoch(0),
            change: None,
            early: Vec::new(),
            lost_early: None,
            wish: None,
            leaving: None,
            was_asked_to_leave: false,
            was_registered: false,
            wake_at: None,
            history: VecDeque::new(),
            obstacle: None,
        }
    }

    /// The rules that keep two from being inside.
    pub(crate) fn rules(&self) -> &'static dyn Rules {
        self.rules
    }

    /// When the own beat was written last, as far as is known, of a member that is in the view.
    pub(crate) fn own_beat_at(&self) -> Option<Revision> {
        let Presence::Inside(_) = self.presence else { return None };
        self.beats.get(&self.settings.member.name).map(|heard| heard.at)
    }

    /// Beats at once: what was guarded by the beat before is done by then, or never will be.
    pub(crate) fn beat_now(&mut self, now: Time, out: &mut Vec<Directive>) {
        if let Presence::Inside(_) = self.presence {
            self.beat_at = now;
        }
        self.decide(now, out);
    }

    /// Breaks a rule.
    pub(crate) fn mutate(&mut self, name: &str) {
        let mutant = VIEW_MUTANTS.iter().find(|mutant| mutant.name == name);
        self.rules = mutant.map_or(self.rules, |mutant| mutant.rules);
    }

    /// The time has come, or the member has just begun.
    pub fn wake(&mut self, now: Time, out: &mut Vec<Directive>) {
        self.wake_at = None;
        self.decide(now, out);
    }

    /// The lease was found over, although it may have been prolonged meanwhile.
    pub fn lapse(&mut self, now: Time, out: &mut Vec<Directive>) {
        if matches!(self.presence, Presence::Inside(_)) {
            self.stop(out);
        }
        self.decide(now, out);
    }

    /// The registry tells of a change. What it says of others is read; a beat is news by itself.
    pub fn hear_word(&mut self, word: &Word, now: Time, out: &mut Vec<Directive>) {
        match word {
            Word::Changed { key, at } => match key.strip_prefix(BEATS) {
                Some(name) => self.hear_beat(name, *at, now),
                None if Self::concerns(key) => self.read_at = now,
                None => return,
            },
            Word::Gap { .. } => self.read_at = now,
        }
        self.decide(now, out);
    }

    /// The registry has answered a transaction, or not.
    pub fn answered(
        &mut self,
        number: u64,
        result: Result<Answer, Trouble>,
        now: Time,
        out: &mut Vec<Directive>,
    ) {
        let Some((purpose, sent)) = self.asks.remove(&number) else { return };
        if self.proposal == Some(number) {
            self.proposal = None;
        }
        match result {
            Ok(answer) => self.take_in(&purpose, sent, &answer, now, out),
            Err(trouble) => {
                self.obstacle = Some(trouble.to_string());
                self.retry_at = now + self.pause();
                // What was asked may have been done, or be done yet.
                self.read_at = self.retry_at;
            }
        }
        self.decide(now, out);
    }

    /// A link to another member has come or gone.
    pub fn link(&mut self, run: &Run, is_up: bool, now: Time, out: &mut Vec<Directive>) {
        if is_up {
            self.links.insert(run.clone());
        } else {
            self.links.remove(run);
        }
        self.note_awaited(now);
        self.decide(now, out);
    }

    /// Another member says something about a view.
    pub fn hear(&mut self, from: &Run, message: ViewMessage, now: Time, out: &mut Vec<Directive>) {
        let known = self.view.as_ref().map_or(Epoch(0), |(_, record)| record.epoch);
        if message.epoch() > known {
            self.keep_early(from, message);
            self.read_at = now;
        } else {
            self.take_message(from, message, now, out);
        }
        self.decide(now, out);
    }

    /// Another view with the same members is wanted: to forget names, or because numbers are used up.
    pub fn renew(&mut self, cause: Cause, now: Time, out: &mut Vec<Directive>) {
        self.wish.get_or_insert(cause);
        self.decide(now, out);
    }

    /// The member leaves. Nobody may be inside here any more, but by durable holds and by timed holds that
    /// others remember.
    pub fn leave(&mut self, how: Leaving, now: Time, out: &mut Vec<Directive>) {
        self.leaving = self.leaving.max(Some(how));
        if self.presence == Presence::Outside && how.is_final() {
            self.presence = Presence::Gone;
            out.push(Directive::Left);
        }
        self.decide(now, out);
    }

    // What others ask.

    /// Which run of which member this is.
    pub fn run(&self) -> Run {
        Run { name: self.settings.member.name.clone(), incarnation: self.incarnation }
    }

    /// When [`wake`](Self::wake) is to be called.
    pub fn alarm(&self) -> Option<Time> {
        self.wake_at
    }

    /// Until when locks may be granted.
    pub fn valid_until(&self) -> Time {
        self.valid_until
    }

    /// How long leases last.
    pub fn lease(&self) -> Lease {
        self.settings.lease
    }

    /// Whether this run of another member is connected.
    pub(crate) fn reaches(&self, run: &Run) -> bool {
        self.links.contains(run)
    }

    /// The view that the registry has, as far as this member knows.
    pub fn record(&self) -> Option<&ViewRecord> {
        self.view.as_ref().map(|(_, record)| &**record)
    }

    /// Who belongs to the group, in the view or not, as far as this member knows.
    pub fn roster(&self) -> &[Member] {
        self.roster.as_ref().map_or(&[], |(_, roster)| &roster.members)
    }

    /// Whether a change of this key of the registry matters to members at once.
    pub fn concerns(key: &str) -> bool {
        key == VIEW || key == ROSTER || key == RELEASED || key.starts_with(BEATS)
    }

    /// The epoch in which algorithms run here, if they do.
    pub fn active(&self) -> Option<Epoch> {
        self.active
    }

    /// How long ago a new beat of the member called `name` was received.
    pub fn beat_age(&self, name: &str, now: Time) -> Option<Duration> {
        self.beats.get(name).map(|heard| now.since(heard.since))
    }

    /// The last views.
    pub fn history(&self) -> impl Iterator<Item = &Past> {
        self.history.iter()
    }

    /// What keeps this member from being in the view, or from knowing it.
    pub fn obstacle(&self) -> Option<&str> {
        self.obstacle.as_deref()
    }

    /// How long to wait after the registry could not answer.
    fn pause(&self) -> Duration {
        self.settings.lease.ttl / 15
    }

    fn ask(&mut self, purpose: Purpose, txn: Txn, now: Time, out: &mut Vec<Directive>) -> u64 {
        self.last_ask += 1;
        self.asks.insert(self.last_ask, (purpose, now));
        out.push(Directive::Ask(self.last_ask, txn));
        self.last_ask
    }
}
