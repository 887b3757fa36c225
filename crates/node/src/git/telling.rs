//! Who is told what happens to locks: those who watch, webhooks, and the audit log.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Git;
use super::lock::Lock;
use super::taking::Wanted;
use crate::audit::Record;
use crate::calendar::rfc3339;
use crate::changes::unix_millis;
use crate::engine::{ByOthers, Done};

/// What happened to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Locked,
    Unlocked,
    Stolen,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Locked => "locked",
            Kind::Unlocked => "unlocked",
            Kind::Stolen => "stolen",
        }
    }
}

impl Git {
    /// A lock is in the registry, and whoever asked for it is told.
    pub(crate) fn tell_locked(&self, lock: &Arc<Lock>) {
        // The audit log knows of the grant, but not how long the registry took to keep it.
        self.gateway.record(Record {
            what: "git locked",
            name: Some(lock.name.clone()),
            who: Some(lock.owner.clone()),
            ..Record::default()
        });
        self.tell(Kind::Locked, lock, None, &lock.owner);
    }

    /// Tells of locks that are taken and released by other means, until the node stops.
    pub(crate) async fn tell_of_others(self: Arc<Self>) {
        let mut done_by_others = self.gateway.by_others();
        while let Some(ByOthers { hold, done }) = done_by_others.recv().await {
            for lock in self.following.locks_of(&hold).into_iter().map(Arc::new) {
                // Of all of these the audit log knows already.
                match &done {
                    Done::Taken => self.tell(Kind::Locked, &lock, None, &lock.owner),
                    Done::Released(by) => {
                        let by = by.as_deref().unwrap_or(&lock.owner);
                        self.tell(Kind::Unlocked, &lock, None, by);
                    }
                }
            }
        }
    }

    /// `by` may be somebody else than the owner.
    pub(crate) fn tell_unlocked(&self, lock: &Arc<Lock>, by: &str) {
        if by != lock.owner {
            self.write_down("git unlock by force", lock, &lock.owner, by);
        }
        self.tell(Kind::Unlocked, lock, None, by);
    }

    pub(crate) fn tell_stolen(&self, lock: &Arc<Lock>, was: &Lock) {
        self.write_down("git steal", lock, &was.owner, &lock.owner);
        self.tell(Kind::Stolen, lock, Some(was), &lock.owner);
    }

    fn tell(&self, kind: Kind, lock: &Arc<Lock>, was: Option<&Lock>, by: &str) {
        let value = |lock: &Lock| serde_json::from_str::<Value>(&lock.json).unwrap_or_default();
        let mut event = json!({
            "kind": kind.word(), "lock": value(lock), "by": {"name": by},
            "repository": lock.repository.to_string(), "at": rfc3339(unix_millis()),
        });
        if let Some(was) = was {
            event["was"] = value(was);
        }
        self.gateway.say(&lock.name, event.to_string());
        self.webhooks.tell(&lock.repository.to_string(), &event);
    }

    /// Somebody waits for a lock, or does not any more.
    pub(super) fn write_down_wait(&self, what: &'static str, wanted: &Wanted) {
        self.gateway.record(Record {
            what,
            name: Some(wanted.path.name.clone()),
            who: Some(wanted.owner.clone()),
            ..Record::default()
        });
    }

    /// What somebody did to the lock of somebody else.
    fn write_down(&self, what: &'static str, lock: &Lock, whose: &str, by: &str) {
        self.gateway.record(Record {
            what,
            name: Some(lock.name.clone()),
            who: Some(whose.to_string()),
            identity: Some(by.to_string()),
            detail: Some(lock.path.clone()),
            ..Record::default()
        });
    }
}
