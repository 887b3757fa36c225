//! Names that nobody uses: a new view forgets them.
//!
//! A lock that was used once stays, for its token is somewhere. Only when a view begins can it be
//! forgotten everywhere at once, because then every token is made anew. So a member that has too many of
//! them asks for a view with the same members.

use alloc::vec::Vec;

use super::{Host, Output, Service};
use crate::membership::Cause;
use crate::time::Time;

/// A member with more names than this that nobody uses there asks for them to be forgotten, unless it is
/// told otherwise.
pub const USUAL_IDLE_NAMES: usize = 100_000;

/// When names are forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Forgetting {
    most_idle: usize,
    /// Not before then: a view is not made for it more often than once in the length of a lease.
    not_before: Time,
}

impl Default for Forgetting {
    fn default() -> Self {
        Forgetting { most_idle: USUAL_IDLE_NAMES, not_before: Time(0) }
    }
}

impl Service {
    /// From now on the group is asked to forget names when more than so many are not in use here.
    pub fn forget_beyond(&mut self, idle_names: usize) {
        if let Some(views) = &mut self.views {
            views.forgetting.most_idle = idle_names;
        }
    }

    /// Asks for another view if there are too many names that nobody uses.
    pub(super) fn forget_if_due(&mut self, host: &mut dyn Host, out: &mut Vec<Output>) {
        let now = host.now();
        let Some(views) = &mut self.views else { return };
        let Forgetting { most_idle, not_before } = views.forgetting;
        if now < not_before || views.membership.active().is_none() {
            return;
        }
        let mut kept = 0;
        host.look(&mut |shard| kept += shard.kept());
        if kept <= most_idle {
            return;
        }
        // Only now is it worth looking at each of them.
        let mut idle = 0;
        host.look(&mut |shard| idle += shard.idle());
        if idle > most_idle {
            views.forgetting.not_before = now + views.membership.lease().ttl;
            self.renew_view(Cause::Forgetting, host, out);
        }
    }
}
