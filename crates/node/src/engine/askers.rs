//! Who waits for what the service says, by the numbers under which they asked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use catraca_client::protocol::ServerMessage;
use catraca_group::{DurableHold, Links, Page, Picture, Refusal, TimedHold};
use tokio::sync::oneshot;

use crate::mutex::hold;
use crate::native::Outbox;

/// What comes of a durable hold.
pub(crate) type Durable = Result<Box<DurableHold>, Refusal>;
/// What comes of a timed hold.
pub(crate) type Timed = Result<Box<TimedHold>, Refusal>;

/// Where somebody is told.
pub(super) enum Asker {
    /// Who wants a page.
    Page(oneshot::Sender<Page>),
    /// Who wants to see a lock.
    Picture(oneshot::Sender<Result<Box<Picture>, Refusal>>),
    /// Who wants to know which member reaches which.
    Links(oneshot::Sender<Result<Box<Links>, Refusal>>),
    /// Who wants something done with a durable hold.
    Durable(oneshot::Sender<Durable>),
    /// The same, of a client of the native interface, which has this number for it.
    Native(Arc<Outbox>, u32),
    /// Who has given an order.
    Order(oneshot::Sender<Result<bool, Refusal>>),
    /// Who wants something done with a timed hold.
    Timed(oneshot::Sender<Timed>),
    /// Who wants to know the newest fence of a lock.
    Fence(oneshot::Sender<Result<Option<u64>, Refusal>>),
}

/// Everybody who waits. Whoever is told waits no more.
#[derive(Default)]
pub(super) struct Askers {
    last: AtomicU64,
    waiting: Mutex<Waiting>,
}

/// Who waits, as long as somebody answers.
#[derive(Default)]
struct Waiting {
    askers: HashMap<u64, Asker>,
    is_over: bool,
}

impl Askers {
    /// A number under which nobody has asked.
    pub(super) fn number(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed)
    }

    /// Somebody begins to wait, and has asked under this number.
    pub(super) fn add(&self, number: u64, asker: Asker) {
        let mut waiting = hold(&self.waiting);
        if !waiting.is_over {
            waiting.askers.insert(number, asker);
        }
    }

    /// Nobody is answered any more: whoever waits, or asks from now on, hears so at once.
    pub(super) fn close(&self) {
        let mut waiting = hold(&self.waiting);
        waiting.is_over = true;
        let askers = std::mem::take(&mut waiting.askers);
        drop(waiting);
        drop(askers);
    }

    /// Whoever asked under this number waits no more.
    pub(super) fn take(&self, number: u64) -> Option<Asker> {
        hold(&self.waiting).askers.remove(&number)
    }

    /// The clients behind this outbox wait no more. Returns under which numbers they asked.
    pub(super) fn take_native(&self, outbox: &Arc<Outbox>) -> Vec<u64> {
        let mut gone = Vec::new();
        hold(&self.waiting).askers.retain(|&number, asker| {
            let is_it = matches!(asker, Asker::Native(its, _) if Arc::ptr_eq(its, outbox));
            gone.extend(is_it.then_some(number));
            !is_it
        });
        gone
    }

    /// A page is there.
    pub(super) fn tell_page(&self, number: u64, page: Page) {
        if let Some(Asker::Page(tell)) = self.take(number) {
            // Whoever asked may be gone; here and below.
            tell.send(page).ok();
        }
    }

    /// What there is to see of a lock, or why there is nothing.
    pub(super) fn tell_picture(&self, number: u64, result: Result<Box<Picture>, Refusal>) {
        if let Some(Asker::Picture(tell)) = self.take(number) {
            tell.send(result).ok();
        }
    }

    /// Which member reaches which, or why that is not known.
    pub(super) fn tell_links(&self, number: u64, result: Result<Box<Links>, Refusal>) {
        if let Some(Asker::Links(tell)) = self.take(number) {
            tell.send(result).ok();
        }
    }

    /// Something has come of a durable hold.
    pub(super) fn tell_durable(&self, number: u64, result: Durable) {
        match self.take(number) {
            Some(Asker::Durable(tell)) => drop(tell.send(result)),
            Some(Asker::Native(outbox, request)) => {
                outbox.push(ServerMessage::Durable { request, result });
            }
            _ => {}
        }
    }

    /// Something has come of a timed hold.
    pub(super) fn tell_timed(&self, number: u64, result: Timed) {
        if let Some(Asker::Timed(tell)) = self.take(number) {
            tell.send(result).ok();
        }
    }

    /// An order was carried out, or not.
    pub(super) fn tell_obeyed(&self, number: u64, result: Result<bool, Refusal>) {
        if let Some(Asker::Order(tell)) = self.take(number) {
            tell.send(result).ok();
        }
    }

    /// The newest fence of a lock is known, or cannot be.
    pub(super) fn tell_fence(&self, number: u64, result: Result<Option<u64>, Refusal>) {
        if let Some(Asker::Fence(tell)) = self.take(number) {
            tell.send(result).ok();
        }
    }

    /// How many wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        hold(&self.waiting).askers.len()
    }
}
