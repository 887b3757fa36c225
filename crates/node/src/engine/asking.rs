//! Asking for pages, durable holds and timed holds, on behalf of clients of any interface.

use std::sync::Arc;

use catraca_group::{
    AcquireDurable, AcquireTimed, Behalf, HoldId, Links, Operation, Output, Page, Picture, Query,
    Refusal, Service, Target, TimedHold, Transfer, Unlock, Which,
};
use tokio::sync::{mpsc, oneshot};

use super::askers::{Asker, Durable, Timed};
use super::parts::Parts;
use super::{ByOthers, Engine};
use crate::changes::unix_millis;
use crate::native::Outbox;

/// Somebody who waits for what the service says. When it is dropped, nobody waits any more.
pub(crate) struct Waiting<'a, T> {
    engine: &'a Engine,
    pub(super) number: u64,
    answer: oneshot::Receiver<T>,
}

impl<T> Waiting<'_, T> {
    /// What the service says.
    pub(super) async fn answer(&mut self) -> Result<T, Refusal> {
        // Whoever is not answered asked a node that has stopped.
        (&mut self.answer).await.map_err(|_| Refusal::Stopped)
    }
}

impl<T> Drop for Waiting<'_, T> {
    fn drop(&mut self) {
        let asker = self.engine.askers.take(self.number);
        drop(asker);
    }
}

/// Who releases a hold, if that is not its owner.
fn releaser(unlock: &Unlock, by: &str) -> Option<String> {
    unlock.owner.is_none().then(|| by.to_string())
}

/// What comes of asking for something that has to do with a timed hold.
enum Answer<'a> {
    Now(Timed),
    Later(Waiting<'a, Timed>),
}

impl Engine {
    pub(super) fn wait<T>(
        &self,
        asker: impl FnOnce(oneshot::Sender<T>) -> Asker,
    ) -> Waiting<'_, T> {
        self.wait_as(self.askers.number(), asker)
    }

    /// The same, under this number.
    fn wait_as<T>(
        &self,
        number: u64,
        asker: impl FnOnce(oneshot::Sender<T>) -> Asker,
    ) -> Waiting<'_, T> {
        let (tell, answer) = oneshot::channel();
        self.askers.add(number, asker(tell));
        Waiting { engine: self, number, answer }
    }

    /// Asks for a page of who holds and who waits. The page is made when this returns, but for what other
    /// members say.
    pub(crate) fn list(&self, query: Query) -> impl Future<Output = Result<Page, Refusal>> {
        let mut waiting = self.wait(Asker::Page);
        let asker = waiting.number;
        self.serve(|service, parts, out| service.list(asker, query, parts, out));
        async move { waiting.answer().await }
    }

    /// What all members know of the locks called `name`.
    pub(crate) async fn picture(&self, name: &str) -> Result<Picture, Refusal> {
        let mut waiting = self.wait(Asker::Picture);
        let asker = waiting.number;
        self.serve(|service, parts, out| service.anatomy(asker, name, parts, out));
        waiting.answer().await?.map(|picture| *picture)
    }

    /// Which member reaches which.
    pub(crate) async fn links(&self) -> Result<Links, Refusal> {
        let mut waiting = self.wait(Asker::Links);
        let asker = waiting.number;
        self.serve(|service, parts, out| service.links(asker, parts, out));
        waiting.answer().await?.map(|links| *links)
    }

    // Durable holds.

    /// Asks for a durable hold, on behalf of `identity`. What is granted when nobody waits any more is there nevertheless.
    /// If it is a lock of a file the interface for Git is told, unless that asks itself.
    pub(crate) async fn acquire_durably(
        &self,
        asked: AcquireDurable,
        identity: &str,
        is_for_git: bool,
    ) -> Durable {
        /// Whoever goes before it is answered does not want it.
        struct Cancel<'a>(&'a Engine, u64);
        impl Drop for Cancel<'_> {
            fn drop(&mut self) {
                let Cancel(engine, asker) = *self;
                engine.others.forget(asker);
                engine.serve(|service, parts, out| service.cancel_durable(asker, parts, out));
            }
        }
        let mut waiting = self.wait(Asker::Durable);
        let asker = waiting.number;
        if !is_for_git {
            self.others.expect_hold(asker, &asked.names);
        }
        self.ask_durably(asker, asked, identity.to_string());
        let cancel = Cancel(self, asker);
        let answer = waiting.answer().await;
        std::mem::forget(cancel);
        answer?
    }

    /// Releases a durable hold, on behalf of the interface for Git.
    pub(crate) async fn unlock_durable(&self, unlock: Unlock) -> Durable {
        let mut waiting = self.wait(Asker::Durable);
        let asker = waiting.number;
        self.serve(|service, parts, out| service.unlock(asker, unlock, parts, out));
        waiting.answer().await?
    }

    /// Releases a durable hold, on behalf of `by`. If it is a lock of a file the interface for Git is told.
    pub(crate) async fn release_durable(&self, unlock: Unlock, by: &str) -> Durable {
        let mut waiting = self.wait(Asker::Durable);
        let asker = waiting.number;
        self.others.expect_release(asker, releaser(&unlock, by));
        self.serve(|service, parts, out| service.unlock(asker, unlock, parts, out));
        waiting.answer().await?
    }

    /// Tells of locks of files that are taken and released by other means than the interface for Git.
    pub(crate) fn by_others(&self) -> mpsc::Receiver<ByOthers> {
        self.others.listen()
    }

    /// Looks at a durable hold.
    pub(crate) async fn look_durable(&self, target: Target) -> Durable {
        let mut waiting = self.wait(Asker::Durable);
        let asker = waiting.number;
        self.serve(|service, parts, out| service.look_durable(asker, target, parts, out));
        waiting.answer().await?
    }

    /// Gives a durable hold to another owner.
    pub(crate) async fn transfer_durable(&self, transfer: Transfer) -> Durable {
        let mut waiting = self.wait(Asker::Durable);
        let asker = waiting.number;
        self.serve(|service, parts, out| {
            service.transfer(asker, transfer, unix_millis(), parts, out);
        });
        waiting.answer().await?
    }

    fn ask_durably(&self, asker: u64, asked: AcquireDurable, identity: String) {
        let behalf = Behalf { identity, ..Behalf::default() };
        let unix_millis = unix_millis();
        self.serve(|service, parts, out| {
            service.acquire_durable(asker, behalf, asked, unix_millis, parts, out);
        });
    }

    /// Asks for a durable hold, on behalf of `identity`. What comes of it is told there, under this number, and to
    /// the interface for Git if it is a lock of a file.
    pub(crate) fn acquire_durable(
        &self,
        asked: AcquireDurable,
        identity: String,
        outbox: &Arc<Outbox>,
        number: u32,
    ) {
        let asker = self.add_native(outbox, number);
        self.others.expect_hold(asker, &asked.names);
        self.ask_durably(asker, asked, identity);
    }

    /// Releases a durable hold, on behalf of `by`. What comes of it is told there, under this number.
    pub(crate) fn unlock(&self, unlock: Unlock, by: &str, outbox: &Arc<Outbox>, number: u32) {
        let asker = self.add_native(outbox, number);
        self.others.expect_release(asker, releaser(&unlock, by));
        self.serve(|service, parts, out| service.unlock(asker, unlock, parts, out));
    }

    fn add_native(&self, outbox: &Arc<Outbox>, number: u32) -> u64 {
        let asker = self.askers.number();
        self.askers.add(asker, Asker::Native(Arc::clone(outbox), number));
        asker
    }

    /// Nobody listens there any more: what was asked for and not granted is not wanted.
    pub(crate) fn cancel_durables(&self, outbox: &Arc<Outbox>) {
        for asker in self.askers.take_native(outbox) {
            self.others.forget(asker);
            self.serve(|service, parts, out| service.cancel_durable(asker, parts, out));
        }
    }

    // Timed holds.

    /// Asks for a timed hold. Whoever goes before it has it does not want it: it is released.
    pub(crate) async fn acquire_timed(&self, asked: AcquireTimed) -> Result<TimedHold, Refusal> {
        struct Cancel<'a>(&'a Engine, HoldId);
        impl Drop for Cancel<'_> {
            fn drop(&mut self) {
                let Cancel(engine, id) = *self;
                engine.serve(|service, parts, out| service.cancel_timed(id, parts, out));
            }
        }
        let id = asked.id;
        let answer = match self.ask_timed(|asker, service, parts, out| {
            service.acquire_timed(asker, asked, parts, out);
        }) {
            Answer::Now(answer) => answer,
            Answer::Later(mut waiting) => {
                let cancel = Cancel(self, id);
                let answer = waiting.answer().await?;
                std::mem::forget(cancel);
                answer
            }
        };
        answer.map(|hold| *hold)
    }

    /// Asks the service for something that has to do with a timed hold. Mostly it answers at once, and nobody
    /// has to wait.
    fn ask_timed(
        &self,
        ask: impl FnOnce(u64, &mut Service, &mut Parts<'_>, &mut Vec<Output>),
    ) -> Answer<'_> {
        let asker = self.askers.number();
        self.serve(|service, parts, out| {
            ask(asker, service, parts, out);
            let is_answer =
                |output: &Output| matches!(output, Output::Timed(its, _) if *its == asker);
            let answer = out.iter().position(is_answer).map(|place| out.remove(place));
            let Some(Output::Timed(_, answer)) = answer else {
                // Whatever comes later is told after this: both are under the mutex of the service.
                return Answer::Later(self.wait_as(asker, Asker::Timed));
            };
            self.count_refusal(&answer);
            Answer::Now(answer)
        })
    }

    /// Looks at a timed hold, renews it or releases it, wherever it is.
    pub(crate) async fn operate(
        &self,
        which: Which,
        operation: Operation,
    ) -> Result<TimedHold, Refusal> {
        let answer = match self.ask_timed(|asker, service, parts, out| {
            service.timed(asker, which, operation, parts, out);
        }) {
            Answer::Now(answer) => answer,
            Answer::Later(mut waiting) => waiting.answer().await?,
        };
        answer.map(|hold| *hold)
    }

    /// The fence of the newest grant of a lock.
    pub(crate) async fn newest_fence(
        &self,
        name: &str,
        permits: u32,
    ) -> Result<Option<u64>, Refusal> {
        let mut waiting = self.wait(Asker::Fence);
        let asker = waiting.number;
        self.serve(|service, parts, out| {
            service.newest_fence(asker, name, permits, parts, out);
        });
        waiting.answer().await?
    }

    /// How many wait for what the service says.
    #[cfg(test)]
    pub(crate) fn waiting_askers(&self) -> usize {
        self.askers.len()
    }
}
