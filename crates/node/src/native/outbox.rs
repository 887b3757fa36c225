//! What a client has yet to be told.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use catraca_client::protocol::ServerMessage;
use catraca_group::Notice;
use tokio::sync::Notify;

use crate::mutex::hold;

/// The messages to one connection that have yet to be written. Nothing waits for room in it: what a
/// session can be told is bounded by its requests, and a client that does not read is not listened to.
#[derive(Default)]
pub(crate) struct Outbox {
    messages: Mutex<VecDeque<ServerMessage>>,
    /// There is something to write.
    filled: Notify,
    is_closed: AtomicBool,
    closed: Notify,
}

impl Outbox {
    /// Puts a message behind all others.
    pub(crate) fn push(&self, message: ServerMessage) {
        if !self.is_closed.load(Ordering::SeqCst) {
            hold(&self.messages).push_back(message);
            self.filled.notify_one();
        }
    }

    /// Takes the first message, if there is one.
    pub(crate) fn pop(&self) -> Option<ServerMessage> {
        let mut messages = hold(&self.messages);
        let first = messages.pop_front();
        if messages.is_empty() {
            // An idle connection keeps no memory of what it was once told.
            *messages = VecDeque::new();
        }
        first
    }

    /// How many messages wait.
    pub(crate) fn len(&self) -> usize {
        hold(&self.messages).len()
    }

    /// Waits until there may be a message.
    pub(crate) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Nobody will write what is in it.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let unread = std::mem::take(&mut *hold(&self.messages));
        drop(unread);
        self.closed.notify_waiters();
    }

    /// Waits until it is closed.
    pub(crate) async fn closed(&self) {
        loop {
            let closed = self.closed.notified();
            if self.is_closed.load(Ordering::SeqCst) {
                return;
            }
            closed.await;
        }
    }
}

/// Every notice of a session is one message.
pub(crate) fn message(notice: Notice) -> ServerMessage {
    match notice {
        Notice::Granted { request, fences } => ServerMessage::Granted { request, fences },
        Notice::Refused { request, why } => ServerMessage::Refused { request, why },
        Notice::Lost { request, why } => ServerMessage::Lost { request, why },
        Notice::Released { request } => ServerMessage::Released { request },
        Notice::Over(why) => ServerMessage::Over(why),
    }
}
