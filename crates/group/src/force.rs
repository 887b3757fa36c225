//! Holds that somebody ends by force, on behalf of whoever administers a group.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// Which hold is to be ended. A fence is given once, so nobody is meant who gets the lock later.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Force {
    /// One of its locks.
    pub name: String,
    /// The fence of that lock.
    pub fence: u64,
    /// Who says so.
    pub by: String,
}

/// What one member asks of another on behalf of whoever administers the group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Order {
    /// To end a hold that is there.
    Force(Force),
    /// To leave the view, on behalf of whom.
    Leave(String),
}
