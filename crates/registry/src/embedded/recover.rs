//! The last resort: one voter goes on alone.

use std::path::Path;

use catraca_group::ViewRecord;
use openraft::{BasicNode, LogId, Membership, StoredMembership, Vote};
use redb::Durability;

use super::directory::{self, OpenError, Opened};
use super::disk::{COMMITTED, Disk, DiskError, MARK, Mark, PURGED, SNAPSHOT, VOTE};
use super::machine::{self, Kept, State};
use super::wire::Id;
use crate::{Revision, Store, Txn};

/// More revisions than a group has in years.
const FAR: u64 = 1 << 40;

/// Everything that is on the disk, whether or not it was agreed on: nobody is left to ask.
fn all_of(disk: &Disk, me: Id) -> Result<State, DiskError> {
    let corrupt = |error: &dyn std::error::Error| DiskError::Corrupt(error.to_string());
    let kept: Option<Kept> = disk.meta(SNAPSHOT)?;
    let mut state = kept.map(|kept| kept.state(me)).transpose()?.unwrap_or_default();
    let next = state.applied.map_or(0, |applied| applied.index + 1);
    for entry in disk.entries(next.., usize::MAX)? {
        machine::apply(&mut state, entry, me).map_err(|error| corrupt(&error))?;
    }
    Ok(state)
}

/// The others may have gone on without this voter: it does not know how far. Nothing from now on is to be
/// taken for something of theirs: no revision, no view, no message between members, and no fence.
fn go_far(store: &mut Store) -> Option<()> {
    store.skip(FAR);
    if let Some(view) = store.get(ViewRecord::KEY) {
        let later = ViewRecord::far_later(&view.value)?;
        store.apply(&Txn::default().put(ViewRecord::KEY, later));
    }
    Some(())
}

pub(super) fn recover_alone(directory: &Path) -> Result<(), OpenError> {
    let Opened { disk, mark, .. } = directory::open_any(directory)?;
    let failed = |error: DiskError| OpenError::of_disk(directory, error);
    let mut state = all_of(&disk, mark.id).map_err(failed)?;
    if state.store.revision() == Revision::default() {
        return Err(OpenError::Unused(directory.to_path_buf()));
    }
    go_far(&mut state.store).ok_or_else(|| OpenError::Unreadable(directory.to_path_buf()))?;
    // Another voter: what this one has promised to the others does not bind it, nor theirs them.
    let new: Mark = directory::new_mark(&mark.group, &mark.me, false)?;
    let members = [(new.id, BasicNode::new(&mark.me))];
    let members = Membership::new(vec![[new.id].into()], std::collections::BTreeMap::from(members));
    state.members = StoredMembership::new(state.applied, members);
    let kept = Kept::of(&state).map_err(|error| OpenError::Start(error.to_string()))?;
    let rewrite = |writing: &super::disk::Writing| {
        let vote: Option<Vote<Id>> = writing.meta(VOTE)?;
        // Terms go on growing: no entry to come is older than one that is there.
        let of_log = state.applied.map_or(0, |at: LogId<Id>| at.leader_id.term);
        let term = vote.map_or(0, |vote| vote.leader_id.term).max(of_log) + 1;
        writing.put_meta(VOTE, &Vote::new(term, new.id))?;
        writing.delete_meta(COMMITTED)?;
        writing.delete_entries(..)?;
        if let Some(applied) = state.applied {
            writing.put_meta(PURGED, &applied)?;
        }
        writing.put_meta(SNAPSHOT, &kept)?;
        writing.put_meta(MARK, &new)
    };
    disk.write(Durability::Immediate, rewrite).map_err(failed)
}
