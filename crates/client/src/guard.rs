//! What a client holds.

use std::fmt;
use std::sync::{Arc, OnceLock};

use catraca_group::{Refusal, Time};
use tokio::sync::{Notify, oneshot, watch};

use crate::clock;
use crate::driver::{Command, Handle};
use crate::error::ClientError;
use crate::protocol::Over;
use crate::request::Ticket;

/// Why locks are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The node has not answered the renewals. Nobody else gets the locks before
    /// [`Guard::valid_until`].
    Unrenewed,
    /// This process, or its machine, did not run for longer than the lease allows.
    Paused,
    /// The session is over.
    Over(Over),
    /// Whoever administers the group has ended the hold. Nobody else gets the locks before they are
    /// released, or before [`Guard::valid_until`].
    Forced(Refusal),
}

impl Loss {
    /// Whether somebody else may hold the locks already. Otherwise there is time until
    /// [`Guard::valid_until`] to stop in an orderly way.
    pub fn is_taken(&self) -> bool {
        !matches!(self, Loss::Unrenewed | Loss::Forced(_) | Loss::Over(Over::Stopping))
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::Unrenewed => f.write_str("the node did not answer in time"),
            Loss::Paused => f.write_str("this process was stopped for longer than its lease"),
            Loss::Over(why) => why.fmt(f),
            Loss::Forced(why) => why.fmt(f),
        }
    }
}

/// How certain the locks of a session are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Unless the lease is renewed before, the locks are reported lost then, so that there is time
    /// left to stop what relies on them.
    pub lost_at: Time,
    /// Unless the lease is renewed before, nobody may rely on the locks from then on.
    pub until: Time,
    /// Why they are lost, if they are.
    pub(crate) lost: Option<Loss>,
}

impl Validity {
    /// The session is over. Nobody may rely on its locks, unless they are given to nobody yet.
    pub(crate) fn end(&mut self, why: Loss, now: Time) {
        if why.is_taken() {
            self.until = self.until.min(now);
        }
        self.lost.get_or_insert(why);
    }
}

/// Whether what was granted together is lost although the session goes on.
#[derive(Default)]
pub(crate) struct Own {
    /// As certain as it was then, and no more.
    lost: OnceLock<Validity>,
    told: Notify,
}

impl Own {
    /// It is lost. Whoever was told before was told as much.
    pub(crate) fn lose(&self, validity: Validity) {
        if self.lost.set(validity).is_ok() {
            self.told.notify_waiters();
        }
    }

    /// Waits until it is lost.
    async fn lost(&self) {
        let told = self.told.notified();
        if self.lost.get().is_none() {
            told.await;
        }
    }
}

/// Locks that this client holds, until it is dropped, released or lost.
///
/// Dropping it releases the locks in the background; [`release`](Self::release) waits until they are
/// free. A program that ends right after dropping a guard should [close](crate::Client::close) its
/// client, or others wait until the session has run out.
pub struct Guard {
    pub(crate) ticket: Ticket,
    pub(crate) handle: Arc<Handle>,
    pub(crate) address: Arc<str>,
    pub(crate) names: Vec<String>,
    pub(crate) fences: Vec<u64>,
    pub(crate) validity: watch::Receiver<Validity>,
    /// How certain these locks are, if that is not how certain the session is: they are lost.
    pub(crate) own: Arc<Own>,
    /// Whether [`changed`](Self::changed) has said that they are lost.
    pub(crate) is_told: bool,
}

impl Guard {
    /// The fence of the lock; of the first one, if these are several. Fences of a lock grow from one
    /// holder to the next, so whatever the lock protects can refuse smaller ones. Those of a semaphore
    /// are different from each other and have no order.
    pub fn fence(&self) -> u64 {
        // There are as many fences as names, and no request is without a name.
        self.fences.first().copied().unwrap_or_default()
    }

    /// One fence for each of the [names](Self::names).
    pub fn fences(&self) -> &[u64] {
        &self.fences
    }

    /// The names, in the order of asking.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Where the node is that has granted them.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Until when nobody else can hold the locks, by [`clock::now`], if the lease is not renewed
    /// again. While the session is alive it is, and this moves on.
    pub fn valid_until(&self) -> Time {
        self.validity().until
    }

    /// When the locks are given up and when they are not valid any more, if the lease is not renewed
    /// again.
    pub fn validity(&self) -> Validity {
        let own = self.own.lost.get().cloned();
        own.unwrap_or_else(|| self.validity.borrow().clone())
    }

    /// Whether the locks are held for certain. Look at this right before every action that must not
    /// be done without them; only a check of the fence where the action takes place is better.
    pub fn is_valid(&self) -> bool {
        let validity = self.validity();
        validity.lost.is_none() && clock::now() < validity.until
    }

    /// Why the locks are lost, if they are known to be.
    pub fn loss(&self) -> Option<Loss> {
        self.validity().lost
    }

    /// Waits until the locks are lost, and says why. There is time until
    /// [`valid_until`](Self::valid_until) to stop what relies on them. This may be dropped and called
    /// again.
    pub async fn lost(&self) -> Loss {
        let mut validity = self.validity.clone();
        // Without its task a session is not renewed; the runtime is being shut down.
        tokio::select! {
            () = self.own.lost() => {}
            _ = validity.wait_for(|validity| validity.lost.is_some()) => {}
        }
        self.loss().unwrap_or(Loss::Over(Over::Closed))
    }

    /// Waits until the lease was renewed, or the locks are lost, and returns what is certain now.
    pub async fn changed(&mut self) -> Validity {
        let has_changed = tokio::select! {
            () = self.own.lost(), if !self.is_told => {
                self.is_told = true;
                true
            }
            changed = self.validity.changed() => changed.is_ok(),
        };
        if !has_changed && self.loss().is_some() {
            // Nothing changes any more.
            return std::future::pending().await;
        }
        self.validity()
    }

    /// Releases the locks, and returns when they are free.
    pub async fn release(self) -> Result<(), ClientError> {
        if let Some(why) = self.loss() {
            return Err(ClientError::Lost(why));
        }
        let (reply, released) = oneshot::channel();
        self.handle.tell(Command::Release { ticket: self.ticket, reply: Some(reply) });
        released.await.unwrap_or(Err(ClientError::Closed))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.handle.tell(Command::Release { ticket: self.ticket, reply: None });
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Guard { names, fences, .. } = self;
        f.debug_struct("Guard").field("names", names).field("fences", fences).finish()
    }
}
