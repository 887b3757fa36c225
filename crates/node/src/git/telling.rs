//! Who is told what happens to locks: those who watch, webhooks, and the audit log.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Git;
use super::lock::Lock;
use super::taking::Wanted;
use crate::audit::Record;
use crate::calendar::rfc3339;
use crate::changes::unix_millis;

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
    pub(crate) fn tell_locked(&self, lock: &Arc<Lock>) {
        self.tell(Kind::Locked, lock, None, &lock.owner);
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

    /// Somebody waits for a lock with others, or does not any more.
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
