//! Asking for locks, and holding them.

use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use catraca_core::{Claim, Fence};
use smallvec::SmallVec;

use crate::host::{Asked, LockPlace};
use crate::inquiry;
use crate::lock::{Owner, Set, Ticket};
use crate::name::{LockName, NameError};
use crate::node::Running;
use crate::plan::{MOST_PERMITS, Plan};
use crate::shard::{Key, Refusal, Wish};

/// How long a request that does not want to wait waits for the group's answer at most.
pub const ANSWER_TIME: Duration = Duration::from_millis(250);
/// The most locks that one request asks for.
pub const MOST_NAMES: usize = 256;

/// Why a lock was not had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// A text that names no lock.
    #[error(transparent)]
    Name(#[from] NameError),
    /// No names at all.
    #[error("name at least one lock")]
    NoNames,
    /// Too many.
    #[error("{0} locks at once are too many; {MOST_NAMES} are the most")]
    Names(usize),
    /// A semaphore that cannot be.
    #[error("a semaphore has 1 to {MOST_PERMITS} permits, not {0}")]
    Permits(u32),
    /// Too many seats for the algorithm.
    #[error(
        "a semaphore of {0} permits is more than the algorithm of '{1}' can seat in this group"
    )]
    Seats(u32, String),
    /// Somebody counts the permits of a semaphore differently.
    #[error(
        "'{name}' was asked for with {permits} permits, but is in use with {other}; all who use it say the same (--permits)"
    )]
    OtherPermits {
        /// The name.
        name: String,
        /// How many this request said.
        permits: u32,
        /// How many those said who have it, or wait for it, at this node.
        other: u32,
    },
    /// A set of semaphores.
    #[error("permits are for one name at a time; leave out --permits, or all names but one")]
    SetOfSemaphores,
    /// Somebody else has it.
    #[error("somebody else has the lock")]
    Taken,
    /// It did not come in time.
    #[error("the lock did not come in time")]
    TimedOut,
    /// The node keeps no more locks.
    #[error("this node keeps no more locks; raise 'locks' in its configuration")]
    Full,
    /// A member has not taken messages for long.
    #[error("member '{0}' is too far behind to begin anything new; see 'catraca status'")]
    Behind(String),
    /// It did not come at once, and that may be because a member is not there.
    #[error(
        "nobody at this node has the lock, but member '{0}' does not answer; see 'catraca status'"
    )]
    Silent(String),
    /// The group is not whole yet.
    #[error(
        "a group hands out locks once all members have been there, and {0} has not been there yet; see 'catraca status'"
    )]
    NotWhole(String),
    /// A client that could go on after the group has taken its node for crashed.
    #[error(
        "this group takes a silent member for crashed after {timeout:?}: say a time to live (--ttl) of at most that, not of {ttl:?}"
    )]
    LongTtl {
        /// The client's.
        ttl: Duration,
        /// The detector's.
        timeout: Duration,
    },
    /// The node does not belong to its group any more.
    #[error("{0}")]
    CastOut(String),
    /// The others go on without this member.
    #[error(
        "member '{0}' takes this node for crashed, and the group goes on without it; restart the whole group"
    )]
    Excluded(String),
    /// The node has stopped.
    #[error("the node has stopped")]
    Stopped,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Names<'a> {
    One(&'a str),
    All(&'a [&'a str]),
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
enum Patience {
    Endless,
    For(Duration),
    /// Not for others to leave: so long for the group's answer.
    None(Duration),
}

/// A request for locks that has not been made yet: awaiting it makes it.
#[derive(Clone, Copy)]
#[must_use = "a request is made when it is awaited"]
pub struct Request<'a> {
    running: &'a Arc<Running>,
    names: Names<'a>,
    permits: u32,
    owner: Owner,
    patience: Patience,
}

impl<'a> Request<'a> {
    pub(crate) fn new(running: &'a Arc<Running>, names: Names<'a>) -> Self {
        let (owner, patience) = (Owner::default(), Patience::Endless);
        Request { running, names, permits: 1, owner, patience }
    }

    pub(crate) fn permits(mut self, permits: u32) -> Self {
        self.permits = permits;
        self
    }

    pub(crate) fn owned_by(mut self, owner: Owner) -> Self {
        self.owner = owner;
        self
    }

    /// Waits no longer than this; later is [`LockError::TimedOut`].
    pub fn within(mut self, limit: Duration) -> Self {
        self.patience = Patience::For(limit);
        self
    }

    /// Does not wait for others to leave: if somebody has it, this is [`LockError::Taken`], at once
    /// if that is a client of this node, and otherwise as soon as the member where it is says so.
    ///
    /// A lock that is free comes when the group's algorithm brings it. If neither happens within
    /// [`ANSWER_TIME`], because the lock is on its way to somebody else, this is
    /// [`LockError::Taken`] too, or [`LockError::Silent`] if a member is not connected. For a semaphore that is always the way to learn that
    /// others have all of its permits: members are not counted at one instant, so their counts
    /// could not be added up.
    pub fn or_refuse(self) -> Self {
        self.or_refuse_after(ANSWER_TIME)
    }

    /// As [`or_refuse`](Self::or_refuse), with another limit than [`ANSWER_TIME`]: a larger one for
    /// a group whose members are far apart.
    pub fn or_refuse_after(mut self, limit: Duration) -> Self {
        self.patience = Patience::None(limit);
        self
    }

    /// The first half of a request: asks the group, where one lock is asked for.
    fn begin(&self) -> Result<Option<Waiting<'a>>, LockError> {
        let Names::One(name) = self.names else { return Ok(None) };
        let name = LockName::new(name)?.as_str();
        let plan = &self.running.host.plan;
        self.check_permits()?;
        if !self.running.host.is_whole() {
            return Ok(None);
        }
        let key = Key { name, permits: self.permits };
        if plan.knows_sets(plan.namespace(name), self.permits) {
            return Ok(None);
        }
        if matches!(self.patience, Patience::None(_)) && !self.running.host.is_free_here(key) {
            return Err(LockError::Taken);
        }
        let wish = Wish { owner: self.owner, set: None };
        self.take(key, wish).map(Some)
    }

    /// The second half: waits as long as the asker does.
    async fn go_on(self, begun: Option<Waiting<'a>>) -> Result<Guard, LockError> {
        let all = async {
            match begun {
                Some(waiting) => Ok(Guard::of(self.running, waiting.await?)),
                None => self.take_all().await,
            }
        };
        match self.patience {
            Patience::Endless => all.await,
            Patience::For(limit) => {
                let late = |_| Err(self.not_whole().unwrap_or(LockError::TimedOut));
                tokio::time::timeout(limit, all).await.unwrap_or_else(late)
            }
            Patience::None(limit) => {
                let answered = async {
                    tokio::select! {
                        // What comes at once makes no question; and whoever is inside by the time
                        // that the answer is read is not sent away.
                        biased;
                        granted = all => granted,
                        () = self.held_elsewhere() => Err(LockError::Taken),
                    }
                };
                tokio::time::timeout(limit, answered)
                    .await
                    .unwrap_or_else(|_| Err(self.no_answer()))
            }
        }
    }

    /// What it means that nothing was heard in time.
    fn no_answer(&self) -> LockError {
        let missing = self.running.host.missing();
        let silent = missing.map(|member| LockError::Silent(member.to_string()));
        self.not_whole().or(silent).unwrap_or(LockError::Taken)
    }

    /// What it means that nothing was heard, if the group has not begun.
    fn not_whole(&self) -> Option<LockError> {
        let host = &self.running.host;
        if host.is_whole() { None } else { host.absent().map(LockError::NotWhole) }
    }

    /// Returns when another member has said that somebody there has one of the locks; otherwise
    /// never.
    async fn held_elsewhere(&self) {
        match self.sorted() {
            Ok(names) if self.permits == 1 => self.running.inquiries.held_elsewhere(&names).await,
            _ => std::future::pending().await,
        }
    }

    /// Takes what could not be asked for at once: several locks, or a lock of a group that is not
    /// whole yet. Dropping the future gives everything back.
    async fn take_all(self) -> Result<Guard, LockError> {
        self.running.host.whole().await.map_err(LockError::CastOut)?;
        if let Some(waiting) = self.begin()? {
            return Ok(Guard::of(self.running, waiting.await?));
        }
        let plan = &self.running.host.plan;
        let names = self.sorted()?;
        // Nothing of this request is held yet: these are others.
        if matches!(self.patience, Patience::None(_))
            && inquiry::is_held_here(&self.running.host, &names)
        {
            return Err(LockError::Taken);
        }
        let mut guard = Guard { running: Arc::clone(self.running), parts: SmallVec::new() };
        for ((key, namespace), names) in steps(plan, &names) {
            let set = plan.knows_sets(namespace, 1).then(|| {
                let claim = Claim::of(names.iter().map(|name| plan.resource(namespace, name)));
                Box::new(Set { names: names.iter().map(|&name| name.into()).collect(), claim })
            });
            let wish = Wish { owner: self.owner, set };
            let part = self.take(Key { name: key, permits: 1 }, wish)?.await?;
            guard.parts.push(part);
        }
        Ok(guard)
    }

    /// Asks for one instance.
    fn take(&self, key: Key<'_>, wish: Wish) -> Result<Waiting<'a>, LockError> {
        if self.running.is_stopped() {
            return Err(LockError::Stopped);
        }
        if let Some(behind) = self.behind() {
            return Err(LockError::Behind(behind));
        }
        match self.running.host.acquire(key, wish) {
            Ok(asked) => {
                let waiting = Waiting { running: self.running, asked: Some(asked) };
                // Looked at after asking: from here on whoever waits in vain is dismissed.
                match excluded(self.running, asked.place) {
                    Some(error) => Err(error),
                    None => Ok(waiting),
                }
            }
            Err(Refusal::OtherPermits(other)) => {
                let (name, permits) = (key.name.to_string(), key.permits);
                Err(LockError::OtherPermits { name, permits, other })
            }
            Err(Refusal::Permits) => Err(LockError::Seats(key.permits, key.name.to_string())),
            Err(Refusal::Full | Refusal::NoSuchSeat | Refusal::NoSuchLock) => Err(LockError::Full),
        }
    }

    /// A member that takes no messages any more, if there is one.
    fn behind(&self) -> Option<String> {
        let host = &self.running.host;
        let links = host.links.0.iter().enumerate();
        let full = |(member, link): (usize, &Option<crate::link::Link>)| {
            link.as_ref().is_some_and(|link| link.is_full()).then_some(member)
        };
        links.filter_map(full).next().map(|member| host.plan.members[member].name.clone())
    }

    fn check_permits(&self) -> Result<(), LockError> {
        match self.permits {
            1..=MOST_PERMITS => Ok(()),
            permits => Err(LockError::Permits(permits)),
        }
    }

    /// The names, ascending, each once.
    fn sorted(&self) -> Result<Vec<&'a str>, LockError> {
        let given = match self.names {
            Names::One(name) => return Ok(vec![LockName::new(name)?.as_str()]),
            Names::All(names) => names,
        };
        match given.len() {
            0 => return Err(LockError::NoNames),
            many if many > MOST_NAMES => return Err(LockError::Names(many)),
            _ if self.permits != 1 => return Err(LockError::SetOfSemaphores),
            _ => {}
        }
        let checked = given.iter().map(|name| Ok(LockName::new(name)?.as_str()));
        let mut names: Vec<&str> = checked.collect::<Result<_, LockError>>()?;
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }
}

/// In which order the instances that guard `names` are asked for, and for which of the names.
///
/// Single locks in ascending order: no circle of waiting can close. The names of a namespace that
/// knows sets are taken as one, in the place of its pattern.
pub(crate) fn steps<'a>(
    plan: &'a Plan,
    names: &[&'a str],
) -> BTreeMap<(&'a str, usize), Vec<&'a str>> {
    let mut steps: BTreeMap<(&str, usize), Vec<&str>> = BTreeMap::new();
    for &name in names {
        let namespace = plan.namespace(name);
        let sets = plan.knows_sets(namespace, 1);
        let key = if sets { plan.namespaces[namespace].pattern.as_str() } else { name };
        steps.entry((key, namespace)).or_default().push(name);
    }
    steps
}

impl<'a> IntoFuture for Request<'a> {
    type Output = Result<Guard, LockError>;
    type IntoFuture = Acquire<'a>;

    fn into_future(self) -> Acquire<'a> {
        Acquire { request: Some(self), going: Going::Nowhere }
    }
}

/// The future of a [`Request`]. Dropping it takes the request back.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Acquire<'a> {
    request: Option<Request<'a>>,
    going: Going<'a>,
}

/// What could not be had at once.
enum Going<'a> {
    Nowhere,
    /// One lock, however long it takes.
    Simply(Waiting<'a>),
    /// Boxed: most requests do without.
    Otherwise(Pin<Box<dyn Future<Output = Result<Guard, LockError>> + Send + 'a>>),
}

impl Future for Acquire<'_> {
    type Output = Result<Guard, LockError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // A lock that is here is had at once, again and again: now and then others get their turn,
        // the tasks that read messages among them.
        let turn = ready!(tokio::task::coop::poll_proceed(context));
        if let Some(request) = self.request.take() {
            turn.made_progress();
            let begun = match request.begin()?.map(Waiting::inside) {
                Some(Ok(part)) => return Poll::Ready(Ok(Guard::of(request.running, part))),
                Some(Err(waiting)) => Some(waiting),
                None => None,
            };
            self.going = match (begun, request.patience) {
                (Some(waiting), Patience::Endless) => Going::Simply(waiting),
                (begun, _) => Going::Otherwise(Box::pin(request.go_on(begun))),
            };
        }
        match &mut self.going {
            Going::Simply(waiting) => {
                let running = waiting.running;
                let part = ready!(Pin::new(waiting).poll(context));
                Poll::Ready(part.map(|part| Guard::of(running, part)))
            }
            Going::Otherwise(going) => going.as_mut().poll(context),
            Going::Nowhere => Poll::Ready(Err(LockError::Stopped)),
        }
    }
}

/// Somebody in a queue, or just granted. Dropping it leaves.
struct Waiting<'a> {
    running: &'a Arc<Running>,
    asked: Option<Asked>,
}

impl Waiting<'_> {
    /// What is held, if it was granted at once.
    fn inside(mut self) -> Result<Part, Self> {
        match self.asked {
            Some(Asked { place, ticket, fence: Some(fence) }) => {
                self.asked = None;
                Ok(Part { place, ticket, fence })
            }
            _ => Err(self),
        }
    }
}

impl Future for Waiting<'_> {
    type Output = Result<Part, LockError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(Asked { place, ticket, fence }) = self.asked else {
            return Poll::Ready(Err(LockError::Stopped));
        };
        let polled = match fence {
            Some(fence) => Poll::Ready(Some(fence)),
            None => self.running.host.poll(place, ticket, context.waker()),
        };
        polled.map(|fence| {
            self.asked = None;
            let dismissed = || excluded(self.running, place).unwrap_or(LockError::Stopped);
            Ok(Part { place, ticket, fence: fence.ok_or_else(dismissed)? })
        })
    }
}

/// Why nothing can be had at `place`, if the others go on without this member there.
fn excluded(running: &Running, place: LockPlace) -> Option<LockError> {
    let by = running.host.excluded_by()?;
    running.host.listens(place).then(|| LockError::Excluded(by.to_string()))
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(asked) = &self.asked {
            self.running.host.release(asked.place, asked.ticket);
        }
    }
}

/// One instance that is held.
#[derive(Clone, Copy, Debug)]
struct Part {
    place: LockPlace,
    ticket: Ticket,
    fence: Fence,
}

/// Locks that are held. They are released when the guard is dropped, or by [`release`](Self::release).
///
/// If others wait at another member, the lock is sent to them at once; or, if this node's last
/// release of it was followed within microseconds by a new request, together with the next request,
/// but not later than the task has to wait for something. So as everywhere in tokio, do not block a
/// task, nor compute for long in it.
#[must_use = "a lock is released when its guard is dropped"]
pub struct Guard {
    running: Arc<Running>,
    parts: SmallVec<[Part; 1]>,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("fence", &self.fence()).finish_non_exhaustive()
    }
}

impl Guard {
    fn of(running: &Arc<Running>, part: Part) -> Self {
        Guard { running: Arc::clone(running), parts: SmallVec::from_buf([part]) }
    }

    /// The number of this entry, larger than that of every earlier holder of the lock. Of several
    /// locks, that of the first; see [`fences`](Self::fences).
    pub fn fence(&self) -> u64 {
        self.parts.first().map_or(0, |part| part.fence.0)
    }

    /// One number for each lock that is held, in the ascending order of the names. The locks of a
    /// namespace that knows sets have one number together.
    pub fn fences(&self) -> impl Iterator<Item = u64> + '_ {
        self.parts.iter().map(|part| part.fence.0)
    }

    /// The fence of each of `names`, which are what was asked for, in any order.
    pub(crate) fn fences_of(&self, names: &[String]) -> Vec<u64> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let steps = steps(&self.running.host.plan, &names);
        let fences = steps.into_values().zip(self.fences());
        let by_name: BTreeMap<&str, u64> = fences
            .flat_map(|(names, fence)| names.into_iter().map(move |name| (name, fence)))
            .collect();
        names.iter().map(|name| by_name.get(name).copied().unwrap_or_default()).collect()
    }

    /// Returns when the locks are no longer held although they were not released: the node has
    /// stopped, or the group goes on without it.
    pub async fn lost(&self) {
        loop {
            let losses = self.running.host.losses.notified();
            if self.is_lost() {
                return;
            }
            losses.await;
        }
    }

    pub(crate) fn is_lost(&self) -> bool {
        let is_excluded = |part: &Part| excluded(&self.running, part.place).is_some();
        self.running.is_stopped() || self.parts.iter().any(is_excluded)
    }

    /// Releases the locks. The next holder may be inside before this returns.
    pub async fn release(self) {
        drop(self);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Somebody may not have noticed yet that the locks of a stopped node are lost.
        if self.running.is_stopped() {
            return;
        }
        for part in self.parts.drain(..).rev() {
            self.running.host.release(part.place, part.ticket);
        }
        if self.running.is_stopped() {
            // It was stopped meanwhile, and nobody else sends what waits.
            self.running.host.send_departing();
        }
    }
}
