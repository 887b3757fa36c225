//! What a client has yet to be told.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use catraca_client::frame;
use catraca_client::protocol::ServerMessage;
use catraca_group::Notice;
use tokio::sync::Notify;

use crate::mutex::hold;

/// An idle connection keeps room for so many messages, and not for all that it was once told at a time.
const USUAL_ROOM: usize = 4;

/// The messages to one connection that have yet to be written. Nothing waits for room in it: what a
/// session can be told is bounded by its requests, and a client that does not read is not listened to.
#[derive(Default)]
pub(crate) struct Outbox {
    messages: Mutex<Messages>,
    /// There is something to write.
    filled: Notify,
    is_closed: AtomicBool,
    closed: Notify,
}

/// Those messages, and about how many bytes they have.
#[derive(Default)]
struct Messages {
    queue: VecDeque<ServerMessage>,
    bytes: usize,
}

impl Outbox {
    /// Puts a message behind all others.
    pub(crate) fn push(&self, message: ServerMessage) {
        if !self.is_closed.load(Ordering::SeqCst) {
            let bytes = size(&message);
            let mut messages = hold(&self.messages);
            messages.bytes += bytes;
            messages.queue.push_back(message);
            drop(messages);
            self.filled.notify_one();
        }
    }

    /// Takes the first message, if there is one.
    pub(crate) fn pop(&self) -> Option<ServerMessage> {
        let mut messages = hold(&self.messages);
        let first = messages.queue.pop_front();
        if let Some(first) = &first {
            messages.bytes -= size(first);
        }
        if messages.queue.is_empty() && messages.queue.capacity() > USUAL_ROOM {
            messages.queue = VecDeque::new();
        }
        first
    }

    /// How many messages wait.
    pub(crate) fn len(&self) -> usize {
        hold(&self.messages).queue.len()
    }

    /// Whether there is so much in it that nothing more is to be asked for: so many messages, or so many bytes.
    pub(crate) fn has_more_than(&self, most: usize, most_bytes: usize) -> bool {
        let messages = hold(&self.messages);
        messages.queue.len() > most || messages.bytes > most_bytes
    }

    /// Waits until there is a message.
    pub(crate) async fn filled(&self) {
        loop {
            let filled = self.filled.notified();
            // What was pushed may have been taken already by somebody who did not wait.
            if self.len() > 0 {
                return;
            }
            filled.await;
        }
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

/// About how many bytes a message has. Most are small, and of one size.
fn size(message: &ServerMessage) -> usize {
    let more = match message {
        ServerMessage::Granted { fences, .. } => fences.len() * size_of::<u64>(),
        // These are long, and seldom.
        ServerMessage::Page(_)
        | ServerMessage::Status(_)
        | ServerMessage::Durable { .. }
        | ServerMessage::Description(_)
        | ServerMessage::Forced(_)
        | ServerMessage::Done(_) => frame::encode(message).map_or(0, |body| body.len()),
        ServerMessage::Opened { .. }
        | ServerMessage::Over(_)
        | ServerMessage::Renewed { .. }
        | ServerMessage::Refused { .. }
        | ServerMessage::Lost { .. }
        | ServerMessage::Released { .. } => 0,
    };
    size_of::<ServerMessage>() + more
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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    async fn is_filled(outbox: &Outbox) -> bool {
        let mut filled = pin!(outbox.filled());
        poll_fn(|context| Poll::Ready(filled.as_mut().poll(context).is_ready())).await
    }

    fn released(request: u32) -> ServerMessage {
        ServerMessage::Released { request }
    }

    #[tokio::test]
    async fn whoever_waits_for_a_message_is_not_woken_for_one_that_was_taken() {
        let outbox = Outbox::default();
        assert!(!is_filled(&outbox).await);
        outbox.push(released(1));
        assert_eq!(outbox.pop(), Some(released(1)));
        assert!(!is_filled(&outbox).await, "nothing is in it");
        for request in [2, 3] {
            outbox.push(released(request));
        }
        assert_eq!(outbox.pop(), Some(released(2)));
        assert!(is_filled(&outbox).await, "one is left");
        assert!(is_filled(&outbox).await, "and nobody has taken it");
        let waiting = async {
            assert_eq!(outbox.pop(), Some(released(3)));
            outbox.filled().await;
            outbox.pop()
        };
        let pushing = async {
            tokio::task::yield_now().await;
            outbox.push(released(4));
        };
        assert_eq!(tokio::join!(waiting, pushing).0, Some(released(4)));
    }

    #[test]
    fn what_is_long_counts_for_as_much_as_it_is() {
        let outbox = Outbox::default();
        let granted = || ServerMessage::Granted { request: 1, fences: vec![7; 256] };
        let all = size(&granted()) + size(&released(1));
        assert!(size(&granted()) >= 256 * 8);
        outbox.push(granted());
        outbox.push(released(1));
        assert!(!outbox.has_more_than(2, all));
        assert!(outbox.has_more_than(1, all) && outbox.has_more_than(2, all - 1));
        while outbox.pop().is_some() {}
        assert!(!outbox.has_more_than(0, 0));
    }

    #[test]
    fn an_idle_connection_keeps_little_room() {
        let outbox = Outbox::default();
        (0..1000).for_each(|request| outbox.push(released(request)));
        while outbox.pop().is_some() {}
        assert!(hold(&outbox.messages).queue.capacity() <= USUAL_ROOM);
        outbox.push(released(1));
        outbox.pop();
        assert!(hold(&outbox.messages).queue.capacity() <= USUAL_ROOM);
    }
}
