//! What one subscriber has yet to be told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::{Change, Item};
use crate::mutex::hold;

/// So many changes wait for a subscriber. One that is slower has a gap instead of all of them.
pub(crate) const MOST_UNREAD: usize = 4096;

#[derive(Default)]
struct State {
    items: VecDeque<Item>,
    is_closed: bool,
}

/// The items that a subscriber has not read.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Notify,
}

impl Queue {
    pub(super) fn push(&self, change: &Arc<Change>) {
        let mut state = hold(&self.state);
        if state.is_closed {
            return;
        }
        if state.items.len() >= MOST_UNREAD {
            state.items.clear();
            state.items.push_back(Item::Gap(change.number));
        } else {
            state.items.push_back(Item::Change(Arc::clone(change)));
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Something was missed, up to this number. One gap is as good as several in a row.
    pub(super) fn gap(&self, number: u64) {
        let mut state = hold(&self.state);
        if state.is_closed {
            return;
        }
        if let Some(Item::Gap(last)) = state.items.back_mut() {
            *last = number;
        } else {
            state.items.push_back(Item::Gap(number));
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Nothing more comes.
    pub(super) fn close(&self) {
        hold(&self.state).is_closed = true;
        self.filled.notify_one();
    }

    pub(super) async fn next(&self) -> Option<Item> {
        loop {
            {
                let mut state = hold(&self.state);
                if let Some(item) = state.items.pop_front() {
                    return Some(item);
                }
                if state.is_closed {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }
}
