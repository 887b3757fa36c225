//! A request for locks.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use catraca_group::{LockName, Refusal, Wait};
use tokio::sync::oneshot;

use crate::client::Client;
use crate::clock;
use crate::driver::{Command, Grant, Handle};
use crate::error::ClientError;
use crate::frame;
use crate::guard::Guard;
use crate::protocol::ClientMessage;
use crate::request::{Ask, Ticket};

/// A request for locks, which begins when it is awaited. It waits until the locks are granted, unless
/// it is told otherwise. Dropping the future takes the request back.
#[must_use = "nothing is asked for until this is awaited"]
pub struct Acquire {
    handle: Arc<Handle>,
    ask: Ask,
}

impl Acquire {
    pub(crate) fn new(client: &Client, names: Vec<String>, permits: u32) -> Self {
        let ask = Ask { names, permits, wait: Wait::Forever };
        Acquire { handle: Arc::clone(&client.handle), ask }
    }

    /// Waits no longer than `limit`; then it is [`Refusal::TimedOut`].
    pub fn within(self, limit: Duration) -> Self {
        self.wait(Wait::AtMost(limit))
    }

    /// Of a semaphore that lets so many in; only for one name at a time.
    pub fn permits(mut self, permits: u32) -> Self {
        self.ask.permits = permits;
        self
    }

    /// Waits in this way.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.ask.wait = wait;
        self
    }

    async fn acquire(self) -> Result<Guard, ClientError> {
        let Acquire { handle, ask } = self;
        check(&ask)?;
        let begin = clock::now();
        loop {
            // All that was waited before counts, however often it is asked for.
            let wait = ask.wait.after(clock::now().since(begin));
            let guard = acquire_once(&handle, &Ask { wait, ..ask.clone() }).await?;
            // This task may have been kept waiting: what was granted may be lost again.
            if guard.is_valid() {
                return Ok(guard);
            }
        }
    }
}

impl IntoFuture for Acquire {
    type Output = Result<Guard, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquire())
    }
}

/// Refuses what a node would not even read.
fn check(ask: &Ask) -> Result<(), Refusal> {
    let Ask { names, permits, wait } = ask;
    if names.is_empty() {
        return Err(Refusal::NoNames);
    }
    for name in names {
        LockName::new(name)?;
    }
    // A length, and whatever is not a name.
    let most: usize = names.iter().map(|name| name.len() + 8).sum();
    if most + 64 <= frame::LONGEST_CLIENT_FRAME {
        return Ok(());
    }
    let (names, permits, wait) = (names.clone(), *permits, *wait);
    let message = ClientMessage::Acquire { request: u32::MAX, names, permits, wait };
    let mut bytes = Vec::new();
    let fits = frame::write(&message, &mut bytes).is_ok()
        && bytes.len() - frame::PREFIX <= frame::LONGEST_CLIENT_FRAME;
    if fits { Ok(()) } else { Err(Refusal::TooManyNames(ask.names.len())) }
}

async fn acquire_once(handle: &Arc<Handle>, ask: &Ask) -> Result<Guard, ClientError> {
    let (ticket, (reply, granted)) = (handle.ticket(), oneshot::channel());
    let mut pending = Pending { ticket, handle, is_settled: false };
    handle.tell(Command::Ask { ticket, ask: ask.clone(), reply });
    let granted = granted.await.unwrap_or(Err(ClientError::Closed));
    // From here on there is nothing to take back, or the guard does it.
    pending.is_settled = true;
    let (handle, names) = (Arc::clone(handle), ask.names.clone());
    let Grant { fences, address, validity, own } = granted?;
    let is_told = false;
    Ok(Guard { ticket, handle, address, names, fences, validity, own, is_told })
}

/// A request that is taken back when nobody waits for it any more.
struct Pending<'a> {
    ticket: Ticket,
    handle: &'a Handle,
    is_settled: bool,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.handle.tell(Command::Release { ticket: self.ticket, reply: None });
        }
    }
}
