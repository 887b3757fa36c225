//! Telling a client what happens to locks.

use serde_json::json;

use crate::changes::{Item, Subscription};

use super::command::{Spec, What};
use super::failure::Failure;
use super::reply::Replies;

/// What the messages are called, as channels are.
const CHANNEL: &str = "catraca";

/// What a client is told that nobody has just asked for.
#[derive(Default)]
pub(crate) struct Watching(Option<Subscription>);

impl Watching {
    /// The client is told from now on what this tells.
    pub(crate) fn begin(&mut self, subscription: Subscription, replies: &mut Replies) {
        self.0 = Some(subscription);
        replies.push(3);
        replies.bulk("subscribe");
        replies.bulk(CHANNEL);
        replies.integer(1);
    }

    /// The client is told nothing any more. It is told so, if that is not known.
    pub(crate) fn end(&mut self, replies: Option<&mut Replies>) {
        self.0 = None;
        if let Some(replies) = replies {
            replies.push(3);
            replies.bulk("unsubscribe");
            replies.bulk(CHANNEL);
            replies.integer(0);
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// What happens next; nothing once the node has stopped.
    pub(crate) async fn next(&mut self) -> Option<Item> {
        match &mut self.0 {
            Some(subscription) => subscription.next().await,
            None => std::future::pending().await,
        }
    }

    /// In version 2 of the protocol answers and messages look the same. So who is told messages may ask
    /// for few things, as in Redis.
    pub(crate) fn check(&self, spec: &Spec, is_resp3: bool) -> Result<(), Failure> {
        let may =
            [What::Watch, What::Unwatch, What::Ping, What::Quit, What::Reset].contains(&spec.what);
        if may || is_resp3 || !self.is_on() {
            return Ok(());
        }
        Err(Failure::Said(format!(
            "ERR Can't execute '{}': only CATRACA.WATCH / CATRACA.UNWATCH / PING / QUIT / RESET are allowed in this context; HELLO 3 allows all",
            spec.name.to_lowercase()
        )))
    }
}

/// Tells something that has happened.
pub(crate) fn tell(item: &Item, replies: &mut Replies) {
    let told = match item {
        Item::Change(change) => json!({
            "what": change.what.word(),
            "name": change.name,
            "member": change.member,
            "label": change.label,
            "permits": change.permits,
            // A text: numbers of some languages end at 2^53.
            "fence": change.fence.map(|fence| fence.to_string()),
            "unix_millis": change.unix_millis,
        }),
        Item::Gap(_) => json!({ "what": "gap" }),
    };
    replies.push(3);
    replies.bulk("message");
    replies.bulk(CHANNEL);
    replies.bulk(told.to_string());
}
