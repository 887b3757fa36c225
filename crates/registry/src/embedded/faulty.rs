//! A disk for tests that fills up, and that loses its power.

use std::io;
use std::sync::{Arc, Mutex};

use openraft::{CommittedLeaderId, Entry, EntryPayload, LogId, Vote};
use redb::{Database, Durability, StorageBackend};

use super::directory::{OpenError, Opened, new_mark};
use super::disk::{Disk, DiskError, MARK, Mark, SNAPSHOT, VOTE, Writing};
use super::machine::{Kept, State};
use super::wire::{Batch, Id, Types};
use super::{Embedded, Options};
use crate::{Registry, Revision, Trouble, Txn, Word};

/// What a disk consists of. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct DiskContent(Arc<Mutex<Bytes>>);

#[derive(Clone, Debug, Default)]
struct Bytes {
    /// What a reader sees.
    seen: Vec<u8>,
    /// What the last flush has made certain.
    certain: Vec<u8>,
    /// What was written since.
    uncertain: Vec<(usize, Vec<u8>)>,
    /// Power is lost after so many more writes and flushes.
    left: Option<u64>,
    /// It has room for so many bytes.
    room: Option<u64>,
}

impl Bytes {
    fn spend(&mut self) -> io::Result<()> {
        match &mut self.left {
            Some(0) => Err(io::Error::other("there is no power")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl StorageBackend for DiskContent {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.0.lock().unwrap();
        out.copy_from_slice(&bytes.seen[offset as usize..][..out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut bytes = self.0.lock().unwrap();
        bytes.spend()?;
        if bytes.room.is_some_and(|room| room < len) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        bytes.seen.resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut bytes = self.0.lock().unwrap();
        bytes.spend()?;
        bytes.certain = bytes.seen.clone();
        bytes.uncertain.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut bytes = self.0.lock().unwrap();
        bytes.spend()?;
        bytes.seen[offset as usize..][..data.len()].copy_from_slice(data);
        bytes.uncertain.push((offset as usize, data.to_vec()));
        Ok(())
    }
}

impl DiskContent {
    /// What is left after the power was lost: of what was not flushed any part, in any order, torn.
    fn after_loss(&self, random: &mut impl FnMut(u64) -> u64) -> DiskContent {
        let bytes = self.0.lock().unwrap();
        let mut left = bytes.certain.clone();
        if random(2) == 0 {
            left.resize(bytes.seen.len(), 0);
        }
        let mut uncertain = bytes.uncertain.clone();
        while !uncertain.is_empty() {
            let (offset, data) = uncertain.swap_remove(random(uncertain.len() as u64) as usize);
            let length = match random(3) {
                0 => 0,
                1 => data.len(),
                // A sector is written whole or not at all.
                _ => random(data.len() as u64 / 512 + 1) as usize * 512,
            };
            let end = (offset + length.min(data.len())).min(left.len());
            if offset < end {
                left[offset..end].copy_from_slice(&data[..end - offset]);
            }
        }
        let bytes = Bytes { seen: left.clone(), certain: left, ..Bytes::default() };
        DiskContent(Arc::new(Mutex::new(bytes)))
    }
}

/// Opens what is on a platter, like a directory.
pub(super) fn disk(platter: &DiskContent) -> Result<(Arc<Disk>, Mark), OpenError> {
    let Opened { disk, mark, .. } = opened(platter)?;
    Ok((Arc::new(disk), mark))
}

fn opened(platter: &DiskContent) -> Result<Opened, OpenError> {
    let failed = |error: DiskError| OpenError::Start(error.to_string());
    let platter = platter.clone();
    let open = move || -> Result<Database, DiskError> {
        let mut db = Database::builder();
        let mut db = db.set_cache_size(1 << 20).create_with_backend(platter.clone())?;
        assert!(db.check_integrity()?);
        Ok(db)
    };
    let (disk, given_back) = Disk::new(Box::new(open), None).map_err(failed)?;
    let prepared = disk.write(Durability::Immediate, |writing| {
        writing.prepare()?;
        writing.meta::<Mark>(MARK)
    });
    let mark = match prepared.map_err(failed)? {
        Some(mark) => mark,
        None => {
            let mark = new_mark("g", "a", true)?;
            disk.write(Durability::Immediate, |writing| writing.put_meta(MARK, &mark))
                .map_err(failed)?;
            mark
        }
    };
    disk.check().map_err(failed)?;
    Ok(Opened { disk, mark, given_back })
}

fn entry(index: u64) -> Entry<Types> {
    let txn = Txn::default().put(format!("k{index}"), vec![index as u8; 700]);
    let log_id = LogId::new(CommittedLeaderId::new(1, 1), index);
    Entry { log_id, payload: EntryPayload::Normal(Batch(vec![txn])) }
}

/// In half a second hundreds of losses; which, is the same in every run.
const LOSSES: u64 = 300;

#[test]
fn what_was_written_before_a_loss_of_power_is_there_after_it() {
    let mut random = numbers(11);
    let mut platter = DiskContent::default();
    drop(disk(&platter).unwrap());
    let (mut next, mut in_vain) = (0, 0);
    for loss in 0..LOSSES {
        let (disk, _) = disk(&platter).unwrap_or_else(|error| panic!("loss {loss}: {error}"));
        let there = disk.entries(.., usize::MAX).unwrap();
        let end = there.last().map_or(0, |entry| entry.log_id.index + 1);
        assert!(end == next || end == next + 1, "loss {loss}: {end} of {next} entries");
        assert!(there.iter().all(|found| *found == entry(found.log_id.index)));
        next = end;
        platter.0.lock().unwrap().left = Some(random(40));
        let append = |index: u64| {
            disk.write(Durability::Immediate, |writing| {
                // The log does not grow for ever.
                writing.delete_entries(..index.max(5) - 5)?;
                writing.append(&[entry(index)])
            })
        };
        while append(next).is_ok() {
            next += 1;
        }
        in_vain += u64::from(next == end);
        let left = platter.after_loss(&mut random);
        drop(disk);
        platter = left;
    }
    assert!(next > LOSSES && in_vain > 0, "{next} written, {in_vain} times none");
}

/// A number below `below`; which, is the same in every run.
fn numbers(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    }
}

/// A snapshot of this many entries.
fn snapshot(index: u64) -> Kept {
    let mut state = State::default();
    state.store.apply(&Txn::default().put("long", vec![index as u8; 30_000]));
    state.applied = Some(LogId::new(CommittedLeaderId::new(1, 1), index));
    Kept::of(&state).unwrap()
}

#[test]
fn a_vote_and_a_snapshot_are_there_as_they_were_before_a_loss_of_power_or_as_they_were_to_be() {
    let mut random = numbers(5);
    let mut platter = DiskContent::default();
    let first = disk(&platter).unwrap().1;
    let (mut votes, mut snapshots) = (0_u64, 0_u64);
    for loss in 0..LOSSES {
        let (disk, mark) = disk(&platter).unwrap_or_else(|error| panic!("loss {loss}: {error}"));
        assert_eq!(mark, first, "loss {loss}: it is the same voter");
        let vote: Option<Vote<Id>> = disk.meta(VOTE).unwrap();
        let voted = vote.map_or(0, |vote| vote.leader_id.term);
        assert!(voted == votes || voted == votes + 1, "loss {loss}: vote {voted}, not {votes}");
        let kept: Option<Kept> = disk.meta(SNAPSHOT).unwrap();
        let there = kept.as_ref().and_then(|kept| kept.meta.last_log_id).map_or(0, |at| at.index);
        assert!(
            there == snapshots || there == snapshots + 1,
            "loss {loss}: snapshot {there}, not {snapshots}"
        );
        if let Some(kept) = kept {
            assert_eq!(kept.store, snapshot(there).store, "loss {loss}: it is whole");
            kept.state(mark.id).unwrap();
        }
        (votes, snapshots) = (voted, there);
        platter.0.lock().unwrap().left = Some(random(60));
        loop {
            let vote = Vote::<Id>::new(votes + 1, mark.id);
            let voting = |writing: &Writing| writing.put_meta(VOTE, &vote);
            if disk.write(Durability::Immediate, voting).is_err() {
                break;
            }
            votes += 1;
            let keeping = |writing: &Writing| writing.put_meta(SNAPSHOT, &snapshot(snapshots + 1));
            if disk.write(Durability::Immediate, keeping).is_err() {
                break;
            }
            snapshots += 1;
        }
        let left = platter.after_loss(&mut random);
        drop(disk);
        platter = left;
    }
    assert!(votes > LOSSES / 2 && snapshots > LOSSES / 2, "{votes} votes, {snapshots} snapshots");
}

#[test]
fn a_directory_whose_making_was_cut_short_by_a_loss_of_power_is_made_again() {
    let mut random = numbers(9);
    let (mut finished, mut cut) = (0, 0);
    for writes in (0..60).step_by(3) {
        let platter = DiskContent::default();
        platter.0.lock().unwrap().left = Some(writes);
        match disk(&platter) {
            Ok(_) => finished += 1,
            Err(_) => cut += 1,
        }
        let left = platter.after_loss(&mut random).0.lock().unwrap().seen.clone();
        // A file has its name when it is whole, so this is under the other one.
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("registry.redb.new"), left).unwrap();
        let opened = super::directory::open(place.path(), "g", "a", true);
        let mark = opened.unwrap_or_else(|error| panic!("{writes} writes: {error}")).mark;
        assert!(mark.may_form, "it is a new one");
        assert!(!place.path().join("registry.redb.new").exists());
    }
    assert!(cut > 3, "{finished} finished, {cut} cut");
}

#[tokio::test]
async fn a_voter_that_panics_goes_on_with_what_is_on_its_disk() {
    let place = DiskContent::default();
    let options = Options::alone("/none", "g", "a");
    let registry = Embedded::on(opened(&place).unwrap(), options).await.unwrap();
    insist(&registry, &Txn::default().put("before", vec![1])).await;
    let panicked = registry.0.core();
    panicked.raft.external_request(|_| panic!("a defect, for a test"));
    insist(&registry, &Txn::default().put("after", vec![2])).await;
    let there = insist(&registry, &Txn::read()).await.state;
    assert!(there.contains_key("before") && there.contains_key("after"));
    assert!(!Arc::ptr_eq(&panicked, &registry.0.core()), "it is not the one of before");
    drop(panicked);
    registry.close().await;
}

#[tokio::test]
async fn a_full_disk_ends_the_registry_and_says_so() {
    let place = DiskContent::default();
    let (disk, mark) = disk(&place).unwrap();
    place.0.lock().unwrap().room = Some(4 << 20);
    let options = Options::alone("/none", "g", "a");
    let config = Arc::new(options.config().unwrap());
    let peers = Arc::new(super::network::Peers::new("g", options.transport));
    let core = super::core::Core::start(disk, mark.id, config, peers).await.unwrap();
    let members = std::collections::BTreeMap::from([(mark.id, openraft::BasicNode::new("a"))]);
    core.raft.initialize(members).await.unwrap();
    let mut outcomes = Vec::new();
    for number in 0..500 {
        let txn = Txn::default().put(format!("k{number}"), vec![7; 60_000]);
        let deadline = tokio::time::Instant::now() + options.patience;
        match core.attempt(&txn, deadline).await {
            super::core::Tried::Settled(Ok(_)) => outcomes.push("done"),
            super::core::Tried::Settled(Err(Trouble::Unknown(_))) => outcomes.push("unknown"),
            super::core::Tried::Settled(Err(Trouble::Lost(why))) => {
                assert!(why.contains("the disk is full"), "{why}");
                outcomes.push("lost");
                break;
            }
            _ => core.pause().await,
        }
    }
    outcomes.dedup();
    assert_eq!(outcomes, ["done", "unknown", "lost"]);
}

/// Asks until it is answered.
async fn insist(registry: &Embedded, txn: &Txn) -> crate::Answer {
    let end = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        match registry.txn(txn.clone()).await {
            Ok(answer) => return answer,
            Err(why) => assert!(tokio::time::Instant::now() < end, "in vain: {why}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_registry_whose_disk_was_full_goes_on_by_itself_when_there_is_room() {
    let place = DiskContent::default();
    let options = Options::alone("/none", "g", "a");
    let registry = Embedded::on(opened(&place).unwrap(), options).await.unwrap();
    insist(&registry, &Txn::default().put("first", vec![1])).await;
    let mut words = registry.watch(Revision(1));
    place.0.lock().unwrap().room = Some(4 << 20);
    let mut kept = Vec::new();
    for number in 0..500 {
        let (key, value) = (format!("k{number}"), vec![7; 60_000]);
        match registry.txn(Txn::default().put(key.clone(), value)).await {
            Ok(_) => kept.push(key),
            Err(_) => break,
        }
    }
    // It says why, and goes on to do so however often the disk is tried again.
    let mut refused = 0;
    for number in 0..40 {
        let (key, value) = (format!("more{number}"), vec![7; 60_000]);
        match registry.txn(Txn::default().put(key.clone(), value)).await {
            Ok(_) => kept.push(key),
            Err(_) => refused += 1,
        }
        let trouble = registry.health().trouble;
        if trouble.is_some_and(|why| why.contains("the disk is full")) && refused > 3 {
            break;
        }
        assert!(number < 39, "{refused} of 40 were refused");
    }
    place.0.lock().unwrap().room = None;
    insist(&registry, &Txn::default().put("last", vec![2])).await;
    let end = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    while registry.health().trouble.is_some() {
        assert!(tokio::time::Instant::now() < end, "{:?}", registry.health());
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let there = insist(&registry, &Txn::read()).await.state;
    assert!(!kept.is_empty() && kept.iter().all(|key| there.contains_key(key)), "{}", there.len());
    // Whoever watched goes on watching.
    while words.recv().await.is_some_and(|word| match word {
        Word::Changed { key, .. } => key != "last",
        Word::Gap { .. } => true,
    }) {}
    registry.close().await;
}
