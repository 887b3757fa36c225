//! Asking for locks within the program that runs the node, and holding them.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use catraca_client::clock;
use catraca_core::Fence;
use catraca_group::{
    Acquire as Asking, Asked, Key, LockName, MOST_PERMITS, Origin, Place, Refusal, RequestId, Time,
    Wait,
};

use crate::engine::Engine;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Names<'a> {
    One(&'a str),
    All(&'a [&'a str]),
}

/// A request for locks that has not been made yet: awaiting it makes it.
#[derive(Clone, Copy)]
#[must_use = "a request is made when it is awaited"]
pub struct Request<'a> {
    engine: &'a Arc<Engine>,
    names: Names<'a>,
    permits: u32,
    wait: Wait,
}

impl<'a> Request<'a> {
    pub(crate) fn new(engine: &'a Arc<Engine>, names: Names<'a>) -> Self {
        Request { engine, names, permits: 1, wait: Wait::Forever }
    }

    pub(crate) fn permits(mut self, permits: u32) -> Self {
        self.permits = permits;
        self
    }

    /// Waits no longer than this; later is [`Refusal::TimedOut`].
    pub fn within(mut self, limit: Duration) -> Self {
        self.wait = Wait::AtMost(limit);
        self
    }

    /// Does not wait for others to leave: if somebody has it, this is [`Refusal::Taken`], at once
    /// if that is a client of this node, and otherwise as soon as the member where it is says so.
    ///
    /// A lock that is free comes when the group's algorithm brings it. If neither happens within
    /// [`Wait::ANSWER`], because the lock is on its way to somebody else, this is
    /// [`Refusal::Taken`] too, or [`Refusal::Silent`] if a member is not connected. For a semaphore
    /// that is always the way to learn that others have all of its permits: members are not counted
    /// at one instant, so their counts could not be added up.
    pub fn or_refuse(self) -> Self {
        self.or_refuse_after(Wait::ANSWER)
    }

    /// As [`or_refuse`](Self::or_refuse), with another limit than [`Wait::ANSWER`]: a larger one for
    /// a group whose members are far apart.
    pub fn or_refuse_after(mut self, limit: Duration) -> Self {
        self.wait = Wait::No(limit);
        self
    }

    /// Asks the lock's shard, where one lock is asked for and the group grants locks.
    #[inline]
    fn ask_directly(&self) -> Result<Option<Asked>, Refusal> {
        let Names::One(name) = self.names else { return Ok(None) };
        let name = LockName::new(name)?.as_str();
        if !(1..=MOST_PERMITS).contains(&self.permits) {
            return Err(Refusal::Permits(self.permits));
        }
        if self.engine.is_stopped() {
            return Err(Refusal::Stopped);
        }
        let view = &self.engine.shape;
        if !self.engine.is_ready() || view.knows_sets(view.namespace(name), self.permits) {
            return Ok(None);
        }
        let key = Key { name, permits: self.permits };
        let asked = match self.wait {
            Wait::No(_) => self.engine.acquire_if_free(key)?,
            Wait::Forever | Wait::AtMost(_) => self.engine.acquire(key)?,
        };
        // Looked at after asking: from here on whoever waits for what never comes is refused.
        if let Some(why) = self.engine.exclusion(asked.place) {
            self.engine.release(asked.place);
            return Err(why);
        }
        Ok(Some(asked))
    }

    /// Asks the service, which knows requests of any form.
    fn ask_service(&self) -> Result<RequestId, Refusal> {
        let names = match self.names {
            Names::One(name) => vec![name.to_string()],
            Names::All(names) => names.iter().map(|name| name.to_string()).collect(),
        };
        let asking = Asking { names, permits: self.permits, wait: self.wait };
        self.engine.serve(|service, parts, out| {
            let asked = service.acquire(Origin::Program, asking, parts, out);
            service.absorb(parts, out);
            asked
        })
    }
}

impl<'a> IntoFuture for Request<'a> {
    type Output = Result<Guard, Refusal>;
    type IntoFuture = Acquire<'a>;

    fn into_future(self) -> Acquire<'a> {
        Acquire { request: self, progress: Progress::NotAsked }
    }
}

/// The future of a [`Request`]. Dropping it takes the request back.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Acquire<'a> {
    request: Request<'a>,
    progress: Progress,
}

enum Progress {
    NotAsked,
    /// In the queue of one lock, and for how long at the most.
    Queued(Place, Option<Pin<Box<tokio::time::Sleep>>>),
    /// The service knows of it.
    Known(RequestId),
    Done,
}

impl Acquire<'_> {
    /// Makes the request. Returns the guard if the locks are had at once.
    #[inline]
    fn ask(&mut self) -> Result<Option<Guard>, Refusal> {
        let request = &self.request;
        self.progress = match (request.ask_directly()?, request.wait) {
            (Some(Asked { place, fence: Some(fence) }), _) => {
                self.progress = Progress::Done;
                return Ok(Some(Guard::simple(request.engine, place, fence)));
            }
            (Some(Asked { place, .. }), Wait::Forever) => Progress::Queued(place, None),
            (Some(Asked { place, .. }), Wait::AtMost(limit)) => {
                Progress::Queued(place, Some(Box::pin(tokio::time::sleep(limit))))
            }
            // Others have to be asked, which is the service's business.
            (Some(Asked { place, .. }), Wait::No(_)) => {
                request.engine.release(place);
                Progress::Known(request.ask_service()?)
            }
            (None, _) => Progress::Known(request.ask_service()?),
        };
        Ok(None)
    }

    /// What has become of the request.
    fn look(&mut self, context: &mut Context<'_>) -> Poll<Result<Guard, Refusal>> {
        let engine = self.request.engine;
        match &mut self.progress {
            Progress::NotAsked | Progress::Done => Poll::Ready(Err(Refusal::Stopped)),
            Progress::Queued(place, limit) => {
                let place = *place;
                let polled = engine.poll(place, context.waker());
                if let Poll::Ready(result) = polled {
                    // Whoever is refused is not in the queue any more.
                    self.progress = Progress::Done;
                    let fence = result?;
                    if let Some(why) = engine.exclusion(place) {
                        engine.release(place);
                        return Poll::Ready(Err(why));
                    }
                    return Poll::Ready(Ok(Guard::simple(engine, place, fence)));
                }
                match limit.as_mut().map(|limit| limit.as_mut().poll(context)) {
                    Some(Poll::Ready(())) => Poll::Ready(Err(Refusal::TimedOut)),
                    _ => Poll::Pending,
                }
            }
            Progress::Known(id) => {
                let id = *id;
                let result = ready!(engine.poll_program(id, context.waker()));
                self.progress = Progress::Done;
                Poll::Ready(result.map(|fences| Guard::known(engine, id, fences)))
            }
        }
    }
}

impl Future for Acquire<'_> {
    type Output = Result<Guard, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // A lock that is here is had at once, again and again: now and then others get their turn,
        // the tasks that read messages among them.
        let turn = ready!(tokio::task::coop::poll_proceed(context));
        if let Progress::NotAsked = self.progress {
            turn.made_progress();
            if let Some(guard) = self.ask()? {
                return Poll::Ready(Ok(guard));
            }
        }
        self.look(context)
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        match self.progress {
            Progress::NotAsked | Progress::Done => {}
            Progress::Queued(place, _) => self.request.engine.release(place),
            Progress::Known(id) => self.request.engine.release_program(id),
        }
    }
}

/// Where what a guard holds is written down.
enum Hold {
    /// With the lock itself.
    Simple(Place, Fence),
    /// In the service's table, with a fence for each name.
    Known(RequestId, Vec<u64>),
}

/// Locks that are held. It tells of them in the same words as [the guard](catraca_client::Guard) of a client in
/// another process.
///
/// They are released when the guard is dropped, or by [`release`](Self::release).
///
/// If others wait at another member, the lock is sent to them at once; or, if this node's last
/// release of it was followed within microseconds by a new request, together with the next request,
/// but not later than the task has to wait for something. So as everywhere in tokio, do not block a
/// task, nor compute for long in it.
#[must_use = "a lock is released when its guard is dropped"]
pub struct Guard {
    engine: Arc<Engine>,
    hold: Hold,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("fence", &self.fence()).finish_non_exhaustive()
    }
}

impl Guard {
    #[inline]
    fn simple(engine: &Arc<Engine>, place: Place, fence: Fence) -> Self {
        Guard { engine: Arc::clone(engine), hold: Hold::Simple(place, fence) }
    }

    fn known(engine: &Arc<Engine>, id: RequestId, fences: Vec<u64>) -> Self {
        Guard { engine: Arc::clone(engine), hold: Hold::Known(id, fences) }
    }

    /// The number of this entry, larger than that of every earlier holder of the lock. Of several
    /// locks, that of the first that was named; see [`fences`](Self::fences).
    pub fn fence(&self) -> u64 {
        match &self.hold {
            Hold::Simple(_, fence) => fence.0,
            Hold::Known(_, fences) => fences.first().copied().unwrap_or_default(),
        }
    }

    /// One number for each name that was asked for, in the same order. The locks of a namespace that
    /// knows sets have one number together.
    pub fn fences(&self) -> &[u64] {
        match &self.hold {
            Hold::Simple(_, fence) => std::slice::from_ref(&fence.0),
            Hold::Known(_, fences) => fences,
        }
    }

    /// Until when nobody else can hold the locks, by [`clock::now`], if the
    /// node hears nothing more from its group. While it does, this moves on.
    pub fn valid_until(&self) -> Time {
        if self.is_lost() { Time(0) } else { self.engine.valid_until() }
    }

    /// Whether the locks are held for certain. Look at this right before every action that must not be done
    /// without them; only a check of the fence where the action takes place is better.
    pub fn is_valid(&self) -> bool {
        clock::now() < self.valid_until()
    }

    /// Returns when the locks are no longer held although they were not released: the node has
    /// stopped, or has lost its lease, or the group goes on without it, or somebody has released them by
    /// force. In that last case nobody else is let in before the guard is dropped, or the time is over that
    /// [`valid_until`](Self::valid_until) said last.
    pub async fn lost(&self) {
        self.engine.lost(|| self.is_lost()).await;
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.engine.is_stopped()
            || match self.hold {
                Hold::Simple(place, _) => {
                    !self.engine.is_inside(place)
                        || self.engine.is_forced(place)
                        || self.engine.exclusion(place).is_some()
                }
                Hold::Known(id, _) => self.engine.is_lost(id),
            }
    }

    /// Releases the locks. The next holder may be inside before this returns.
    pub async fn release(self) {
        drop(self);
    }
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        // Somebody may not have noticed yet that the locks of a stopped node are lost.
        if self.engine.is_stopped() {
            return;
        }
        match self.hold {
            Hold::Simple(place, _) => {
                self.engine.release(place);
                self.engine.forget_forced(place);
            }
            Hold::Known(id, _) => self.engine.release_program(id),
        }
        if self.engine.is_stopped() {
            // It was stopped meanwhile, and nobody else sends what waits.
            self.engine.send_departing();
        }
    }
}
