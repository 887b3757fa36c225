//! What a member needs of whoever drives it, and what it hands back.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;

use catraca_core::{Fence, NodeId, TimerTag};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::lock::{Owner, Ticket};
use crate::membership::Run;
use crate::refusal::Refusal;
use crate::request::RequestId;
use crate::view::{Epoch, View};
use crate::{Key, Time};

/// A place in a shard. It stays the same for as long as the lock is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockIndex(pub(crate) u32);

impl LockIndex {
    /// That of the first lock of a shard.
    pub const FIRST: LockIndex = LockIndex(0);
}

/// Where somebody who asked is: which lock of which shard, with which ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The shard.
    pub shard: u16,
    /// The lock.
    pub lock: LockIndex,
    /// The ticket.
    pub ticket: Ticket,
}

/// A message from a seat of one member to a seat of another, of the algorithm that guards a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepMessage<'a> {
    /// The view that it belongs to.
    pub epoch: Epoch,
    /// The lock.
    #[serde(borrow)]
    pub key: Key<'a>,
    /// The sending node of the instance.
    pub from: NodeId,
    /// The receiving one.
    pub to: NodeId,
    /// What the algorithm says.
    #[serde(borrow)]
    pub body: &'a [u8],
}

/// A timer of a seat, among those of its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeatTimer {
    pub(crate) epoch: Epoch,
    pub(crate) lock: LockIndex,
    pub(crate) seat: u16,
    pub(crate) tag: TimerTag,
}

/// A timer of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// Of a lock's algorithm, in this shard.
    Seat(u16, SeatTimer),
    /// Of the failure detector.
    Detector(TimerTag),
    /// The end of a session that is not renewed.
    Session(Owner),
    /// The end of a request's patience.
    Request(RequestId),
    /// The end of waiting for other members' answers.
    Question(u64),
    /// Of the lease and the view.
    Membership,
    /// Of a member that is about to leave.
    Departure,
    /// Of durable holds of which something is not known yet.
    Durable,
    /// Of holds that are being ended by force.
    Force,
}

/// Something that happened to a lock, for whoever watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The lock.
    pub key: Key<'a>,
    /// The names of a set, where names are taken in sets; none elsewhere.
    pub names: &'a [Box<str>],
    /// Who asked for it.
    pub owner: Owner,
    /// The request that this is a part of; none for a caller that waits for its ticket itself.
    pub request: Option<RequestId>,
    /// What happened.
    pub change: Change,
}

/// Who has made a request, for whoever watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client<'a> {
    /// What it calls itself; the owner of a durable hold.
    pub label: &'a str,
    /// Who it has shown to be; empty if nobody knows.
    pub identity: &'a str,
}

/// What can happen to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Somebody begins to wait.
    Waits,
    /// Somebody waits no more, and has not got it.
    GivesUp,
    /// Somebody is inside, with this fence.
    Granted(Fence),
    /// Whoever was inside with this fence has left.
    Released(Fence),
    /// Whoever was inside with this fence is not any more, and has not asked for that.
    Lost(Fence),
    /// The same, because somebody has released the lock by force.
    Forced(Fence),
}

/// Why somebody who is inside leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Ending {
    /// It wants to.
    Released,
    /// Its session is over, or the lease of its member.
    Lost,
    /// Somebody has released the lock by force.
    Forced,
    /// The hold goes on at another member.
    Moved,
}

impl Ending {
    /// What is told of a hold with this fence; nothing if it goes on.
    pub(crate) fn change(self, fence: Fence) -> Option<Change> {
        match self {
            Ending::Released => Some(Change::Released(fence)),
            Ending::Lost => Some(Change::Lost(fence)),
            Ending::Forced => Some(Change::Forced(fence)),
            Ending::Moved => None,
        }
    }
}

/// Whoever drives a member. It is called while the member steps, and must not call back into it.
pub trait Driver {
    /// The time now, looked at anew.
    fn now(&mut self) -> Time;

    /// Takes a message to another member. Messages to one member arrive in the order of sending.
    fn send(&mut self, member: usize, message: StepMessage<'_>);

    /// Sets a timer anew, or cancels it where there is no duration.
    fn set_timer(&mut self, timer: Timer, after: Option<Duration>);

    /// Whether locks may be granted at this time: the lease of the member is not over. It is asked at
    /// every grant, about the time of that grant.
    #[inline]
    fn is_valid_at(&mut self, _now: Time) -> bool {
        true
    }

    /// Whether locks may be granted now.
    fn is_valid(&mut self) -> bool {
        let now = self.now();
        self.is_valid_at(now)
    }

    /// From now on locks may be granted until then.
    fn set_validity(&mut self, _until: Time) {}

    /// A view begins, with these runs of its members: from now on the places of members are those of
    /// this view.
    fn begin_view(&mut self, _view: &Arc<View>, _runs: &[Run]) {}

    /// Whether one more lock may be begun for clients of this member. It counts from then on.
    fn take_room(&mut self) -> bool {
        true
    }

    /// So many locks less.
    fn give_room(&mut self, _locks: usize) {}

    /// Whether somebody wants to know of events.
    #[inline]
    fn is_watched(&self) -> bool {
        false
    }

    /// Something happened to a lock. Called only if somebody wants to know.
    #[inline]
    fn event(&mut self, _event: Event<'_>) {}

    /// A request is about to end, and this is who made it. Called only if somebody wants to know.
    fn identify(&mut self, _request: RequestId, _client: Client<'_>) {}
}

/// What somebody who waited has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Who.
    pub place: Place,
    /// The request that it was a part of; none for a caller that waits for its ticket itself.
    pub request: Option<RequestId>,
    /// What.
    pub outcome: Outcome,
}

/// The end of waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is inside, with this fence.
    Granted(Fence),
    /// It will not be.
    Refused(Box<Refusal>),
}

/// What follows from a step of a shard, in a buffer that the driver owns.
pub struct Outputs<'a> {
    pub(crate) driver: &'a mut dyn Driver,
    /// The shard's own place among all.
    pub(crate) shard: u16,
    /// The members for whom there are new messages, one bit each.
    pub sent_to: u64,
    /// Who has come to the end of waiting.
    pub settled: SmallVec<[Settled; 2]>,
    /// What cannot happen in a correct run, and did.
    pub anomalies: SmallVec<[&'static str; 1]>,
    /// Whether somebody was not told of a grant, because the lease was over: the service has to know.
    pub withheld: bool,
    /// A lock that has nearly used up its numbers: the service has to know.
    pub used_up: Option<Box<str>>,
}

impl<'a> Outputs<'a> {
    /// An empty buffer for a step of shard `shard`.
    pub fn new(driver: &'a mut dyn Driver, shard: u16) -> Self {
        let (settled, anomalies) = (SmallVec::new(), SmallVec::new());
        Outputs { driver, shard, sent_to: 0, settled, anomalies, withheld: false, used_up: None }
    }
}
