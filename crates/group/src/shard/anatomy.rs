//! What there is to see of one lock at this member.

use alloc::string::ToString;
use alloc::vec::Vec;

use catraca_core::Claim;

use super::Shard;
use crate::anatomy::{Instance, MOST_GRANTS, MOST_NODES, ShownNode, bounded};
use crate::driver::LockIndex;
use crate::kind::Slot;
use crate::lock::{Lock, Stand};
use crate::time::Time;
use crate::view::Seating;

impl Shard {
    /// The instances called `name`, one for each number of permits. Of sets, grants are told that have
    /// something in common with `claim`.
    pub(crate) fn instances(
        &self,
        name: &str,
        hash: u64,
        claim: Option<&Claim>,
        now: Time,
    ) -> Vec<Instance> {
        let instance = |(index, lock): (u32, &Lock)| {
            let mut grants = self.recent.of_lock(LockIndex(index), claim, now);
            grants.drain(..grants.len().saturating_sub(MOST_GRANTS));
            let nodes = self.shown_nodes(lock);
            Instance {
                name: name.to_string(),
                permits: lock.permits,
                held: lock.holds().count() as u32,
                waiting: lock.waiters().count() as u32,
                more_nodes: (lock.seats() - nodes.len()) as u32,
                nodes,
                grants,
            }
        };
        let mut instances: Vec<Instance> = self.named(name, hash).map(instance).collect();
        instances.sort_unstable_by_key(|instance| instance.permits);
        instances
    }

    fn shown_nodes(&self, lock: &Lock) -> Vec<ShownNode> {
        // Before the first view begins there are none.
        let Some(family) = self.families.get(usize::from(lock.kind)) else { return Vec::new() };
        let seating = Seating { home: lock.home, ..family.seating };
        // A seat whose view has yet to begin has no state.
        let slot = |seat: usize| lock.slot(seat).filter(|slot| *slot != Slot::NONE);
        let token = |seat: usize| family.kind.has_token(slot(seat)?);
        let seats = 0..lock.seats();
        let has_work = |&seat: &usize| lock.stand(seat) != Stand::Idle || token(seat) == Some(true);
        let (mut shown, rest): (Vec<usize>, Vec<usize>) = seats.partition(has_work);
        shown.extend(rest);
        shown.truncate(MOST_NODES);
        let node = |seat: usize| {
            let shown = family.kind.show(slot(seat)?);
            let (variables, is_cut) = bounded(shown.variables);
            Some(ShownNode {
                node: seating.node(self.view.me, seat),
                stand: lock.stand(seat),
                token: token(seat),
                points_to: shown.points_to,
                variables,
                is_cut,
            })
        };
        shown.into_iter().filter_map(node).collect()
    }
}
