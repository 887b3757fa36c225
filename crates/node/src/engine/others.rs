//! Durable holds on files of Git repositories that are taken and released by other means than the interface for
//! Git: it is told, as those who watch a repository want to know of that too.

use std::collections::HashMap;
use std::sync::Mutex;

use catraca_group::DurableHold;
use tokio::sync::mpsc;

use crate::mutex::hold;

/// Locks of files begin with this.
const GIT: &str = "git/";
/// So many wait for the interface for Git. It does not wait for anybody, so they are never so many.
const MOST_WAITING: usize = 4096;

/// What somebody has done by other means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Taken,
    /// Who has released it; nothing if its owner has.
    Released(Option<String>),
}

/// A hold that was taken or released by other means.
#[derive(Debug)]
pub(crate) struct ByOthers {
    pub(crate) hold: DurableHold,
    pub(crate) done: Done,
}

/// Who has asked for what is told, and who is.
#[derive(Default)]
pub(super) struct Others {
    /// By the number of whoever asks: for what.
    asked: Mutex<HashMap<u64, Done>>,
    listener: Mutex<Option<mpsc::Sender<ByOthers>>>,
}

impl Others {
    /// Whoever reads this is told from now on, and nobody else.
    pub(super) fn listen(&self) -> mpsc::Receiver<ByOthers> {
        let (tell, told) = mpsc::channel(MOST_WAITING);
        *hold(&self.listener) = Some(tell);
        told
    }

    /// Somebody asks under this number for a release of which the interface for Git does not know.
    pub(super) fn expect_release(&self, asker: u64, by: Option<String>) {
        self.expect(asker, Done::Released(by));
    }

    /// Somebody asks under this number for a hold of these names, of which the interface for Git does not know.
    pub(super) fn expect_hold(&self, asker: u64, names: &[String]) {
        if names.iter().any(|name| name.starts_with(GIT)) {
            self.expect(asker, Done::Taken);
        }
    }

    fn expect(&self, asker: u64, done: Done) {
        if hold(&self.listener).is_some() {
            hold(&self.asked).insert(asker, done);
        }
    }

    /// Nothing more is said to whoever asked under this number.
    pub(super) fn forget(&self, asker: u64) {
        hold(&self.asked).remove(&asker);
    }

    /// Something has come of what was asked for under this number.
    pub(super) fn settle<E>(&self, asker: u64, result: &Result<Box<DurableHold>, E>) {
        let Some(done) = hold(&self.asked).remove(&asker) else { return };
        let Ok(its) = result else { return };
        if its.names.iter().any(|name| name.starts_with(GIT))
            && let Some(tell) = &*hold(&self.listener)
        {
            // Where there is no room nobody listens any more.
            tell.try_send(ByOthers { hold: (**its).clone(), done }).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use catraca_group::{HoldId, Refusal, Run};

    use super::*;

    fn held(name: &str) -> Result<Box<DurableHold>, Refusal> {
        Ok(Box::new(DurableHold {
            id: HoldId(7),
            names: vec![name.to_string()],
            permits: 1,
            owner: "ann".to_string(),
            note: String::new(),
            request: "1".to_string(),
            fences: vec![1],
            unix_millis: 0,
            granted_at: Run { name: "a".to_string(), incarnation: 1 },
            parts: Vec::new(),
        }))
    }

    #[test]
    fn what_comes_of_locks_of_files_is_told_once_and_nothing_else_is() {
        let others = Others::default();
        let names = |name: &str| vec![name.to_string()];
        others.expect_hold(1, &names("git/art/game/x"));
        let mut told = others.listen();
        others.settle(1, &held("git/art/game/x"));
        assert!(told.try_recv().is_err(), "nobody listened when it was asked for");
        others.expect_hold(2, &names("git/art/game/x"));
        others.expect_hold(3, &names("other"));
        others.expect_hold(4, &names("git/art/game/y"));
        others.expect_hold(5, &names("git/art/game/z"));
        others.expect_release(6, Some("root".to_string()));
        others.forget(5);
        others.settle(4, &Err(Refusal::Taken));
        for (asker, name) in [(2, "x"), (2, "x"), (5, "z"), (6, "x"), (9, "x")] {
            others.settle(asker, &held(&format!("git/art/game/{name}")));
        }
        others.settle(3, &held("other"));
        assert_eq!(told.try_recv().unwrap().done, Done::Taken);
        assert_eq!(told.try_recv().unwrap().done, Done::Released(Some("root".to_string())));
        assert!(told.try_recv().is_err());
        assert!(hold(&others.asked).is_empty());
    }
}
