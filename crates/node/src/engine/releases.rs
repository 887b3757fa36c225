//! Durable holds on files of Git repositories that are released by other means than the interface for Git:
//! it is told, as those who watch a repository want to know of that too.

use std::collections::HashMap;
use std::sync::Mutex;

use catraca_group::DurableHold;
use tokio::sync::mpsc;

use crate::mutex::hold;

/// Locks of files begin with this.
const GIT: &str = "git/";
/// So many wait for the interface for Git. It does not wait for anybody, so they are never so many.
const MOST_WAITING: usize = 4096;

/// A hold that was released.
#[derive(Debug)]
pub(crate) struct Released {
    pub(crate) hold: DurableHold,
    /// Who has released it; nothing if its owner has.
    pub(crate) by: Option<String>,
}

/// Who has asked for what is told, and who is.
#[derive(Default)]
pub(super) struct Releases {
    /// By the number of whoever asks: who that is, if not the owner.
    asked: Mutex<HashMap<u64, Option<String>>>,
    listener: Mutex<Option<mpsc::Sender<Released>>>,
}

impl Releases {
    /// Whoever reads this is told from now on, and nobody else.
    pub(super) fn listen(&self) -> mpsc::Receiver<Released> {
        let (tell, told) = mpsc::channel(MOST_WAITING);
        *hold(&self.listener) = Some(tell);
        told
    }

    /// Somebody asks under this number for a release of which the interface for Git does not know.
    pub(super) fn expect(&self, asker: u64, by: Option<String>) {
        if hold(&self.listener).is_some() {
            hold(&self.asked).insert(asker, by);
        }
    }

    /// Something has come of what was asked for under this number.
    pub(super) fn settle<E>(&self, asker: u64, result: &Result<Box<DurableHold>, E>) {
        let Some(by) = hold(&self.asked).remove(&asker) else { return };
        let Ok(released) = result else { return };
        if released.names.iter().any(|name| name.starts_with(GIT))
            && let Some(tell) = &*hold(&self.listener)
        {
            // Where there is no room nobody listens any more.
            tell.try_send(Released { hold: (**released).clone(), by }).ok();
        }
    }
}
