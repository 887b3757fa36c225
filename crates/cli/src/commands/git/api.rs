//! What a server for locks says and is told: docs/GIT-API.md.

use catraca_node::{Fold, unix_millis_of};
use serde::{Deserialize, Serialize};

use super::now;
use crate::table::lasting;

/// A lock on a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lock {
    pub(super) id: String,
    pub(super) path: String,
    #[serde(default)]
    pub(super) owner: Owner,
    #[serde(default)]
    pub(super) locked_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fence: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) member: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) team: Option<String>,
    /// Who has had it before and did not release it, the last one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) stolen_from: Vec<String>,
}

/// Whose a lock is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    pub(super) name: String,
}

impl Lock {
    /// For how long it has been held; nothing if the server does not say it in a way that can be read.
    pub(super) fn age_millis(&self) -> Option<u64> {
        Some(now().saturating_sub(unix_millis_of(&self.locked_at)?))
    }

    /// Who has it, for how long, and why: 'ana, for 5 min (new helmet)'.
    pub(super) fn in_words(&self) -> String {
        let age = self.age_millis().map_or(String::new(), |age| format!(", for {}", lasting(age)));
        format!("{}{age}{}", shown(&self.owner.name), self.remark())
    }

    /// What whoever had it before is told: 'bo has stolen 'a.psd' from you (ana is away)'.
    pub(super) fn stolen_in_words(&self) -> String {
        let (thief, path) = (shown(&self.owner.name), shown(&self.path));
        format!("{thief} has stolen '{path}' from you{}", self.remark())
    }

    /// What the owner has to say about it, behind something else.
    fn remark(&self) -> String {
        let note = self.note.as_deref().filter(|note| !note.is_empty());
        note.map_or(String::new(), |note| format!(" ({})", shown(note)))
    }
}

/// What others wrote, without what would confuse a terminal.
pub(super) fn shown(text: &str) -> String {
    text.replace(char::is_control, "?")
}

/// Who the server takes the caller for, and what it knows of the repository.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Whoami {
    pub(super) name: String,
    #[serde(default)]
    pub(super) roles: Vec<String>,
    #[serde(default)]
    pub(super) repository: String,
    #[serde(default)]
    pub(super) policy: Policy,
    #[serde(default = "main_branch")]
    pub(super) default_branch: String,
    /// Which paths are the same file.
    #[serde(default)]
    pub(super) fold: Fold,
    #[serde(default)]
    pub(super) objects: String,
}

fn main_branch() -> String {
    "main".to_string()
}

/// When locks are released without being asked to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Policy {
    /// Never.
    #[default]
    Hand,
    /// When a change of the file is pushed.
    Push,
    /// When a change of the file is on the default branch.
    Merge,
}

impl Policy {
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Policy::Hand => "by hand",
            Policy::Push => "when a change of the file is pushed",
            Policy::Merge => "when a change of the file has reached the default branch",
        }
    }
}

/// What became of asking for locks.
pub(super) enum Asked {
    Locked(Vec<Lock>),
    /// These are in the way.
    Taken(String, Vec<Lock>),
    /// Not within the time.
    Late(String, Vec<Lock>),
}

/// Which locks are listed.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    pub(super) path: Option<String>,
    pub(super) id: Option<String>,
    pub(super) under: Option<String>,
    pub(super) owner: Option<String>,
    /// Locked before this moment, in milliseconds since 1970.
    pub(super) before: Option<u64>,
    /// Those that were stolen from whoever asks.
    pub(super) stolen: bool,
}
