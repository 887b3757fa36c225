//! Those who want several files at once take turns.
//!
//! Whoever tries to lock several files has some of them for a moment before it is refused at the next. Somebody
//! else who wants one of these in that moment would be refused because of somebody who has nothing in the end.
//! So an attempt first takes the turn of all its files: a set of locks of the node itself, through the group's
//! algorithm for sets, which knows no deadlock. Those who have a file in common try one after the other.
//!
//! A turn lasts as long as one attempt, never as long as somebody keeps a file. It decides nothing: the durable
//! holds do. It is gone with its node, and whoever does not get it in time goes on without it. Files share
//! resources, and few sets fit at a node: for that somebody waits a moment longer.

use std::sync::Arc;
use std::time::Duration;

use super::Git;
use super::answer::Refused;
use super::lock::Lock;
use super::path::turn_name;
use super::taking::Wanted;
use crate::program::Guard;

/// A turn is waited for so long. Whoever holds such names for longer, by other means, is in nobody's way.
const PATIENCE: Duration = Duration::from_secs(10);

impl Git {
    /// The turn of these files; nothing if others have it for very long.
    pub(super) async fn turn(&self, wanted: &[Wanted]) -> Option<Guard> {
        let names: Vec<String> = wanted.iter().map(|it| turn_name(&it.path.name)).collect();
        match self.gateway.hold_for_node(&names, PATIENCE).await {
            Ok(turn) => Some(turn),
            Err(error) => {
                tracing::warn!(%error, "several files are locked without a turn");
                None
            }
        }
    }

    /// Takes one lock, if nobody has it. If somebody has it who is taking several, that may be given back
    /// at once: so what comes of that is waited for.
    pub(crate) async fn take_one(&self, wanted: &Wanted) -> Result<Arc<Lock>, Refused> {
        match self.take(wanted).await {
            Err(Refused { lock: Some(lock), .. })
                if lock.set.is_some() && lock.owner != wanted.owner =>
            {
                if self.is_of_complete_set(&lock).await {
                    return Err(Refused::taken(&lock, &wanted.owner));
                }
                let turn = self.turn(std::slice::from_ref(wanted)).await;
                let taken = self.take(wanted).await;
                drop(turn);
                taken
            }
            taken => taken,
        }
    }
}
