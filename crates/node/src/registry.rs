//! The registry of a group, as a node uses it: where it is, who asks it, and who votes.

mod calls;
mod place;
mod roster;
mod voters;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use catraca_client::frame;
use catraca_group::{HoldId, Member, Membership};
use catraca_registry::{Embedded, Registry, Txn, Word};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

pub(crate) use self::calls::Calls;
pub(crate) use self::place::Opened;
pub use self::place::{RegistryError, RegistryPlace};
pub(crate) use self::roster::change_roster;
pub(crate) use self::voters::{keep as keep_voters, leave, leave_no_voter_behind};
use crate::engine::Engine;

/// How often the registry is asked how it is doing.
const LOOK: Duration = Duration::from_secs(2);
/// After so long a registry that could not be read is read again.
const AGAIN: Duration = Duration::from_millis(200);

/// Carries out the member's transactions, side by side.
pub(crate) async fn carry_out(
    engine: Arc<Engine>,
    registry: Arc<dyn Registry>,
    mut asked: mpsc::UnboundedReceiver<(u64, Txn)>,
) {
    let mut under_way = JoinSet::new();
    loop {
        tokio::select! {
            ask = asked.recv() => {
                let Some((number, txn)) = ask else { return };
                let (engine, registry) = (Arc::clone(&engine), Arc::clone(&registry));
                under_way.spawn(async move {
                    let sent = Instant::now();
                    let result = registry.txn(txn).await;
                    engine.metrics().ask_registry(sent.elapsed(), result.is_ok());
                    engine.answered(number, result);
                });
            }
            Some(_) = under_way.join_next() => {}
        }
    }
}

/// Tells the member when something has changed that it wants to know of at once.
pub(crate) async fn watch(engine: Arc<Engine>, registry: Arc<dyn Registry>) {
    let first = loop {
        match registry.txn(Txn::read()).await {
            Ok(answer) => break answer.revision,
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    };
    let mut words = registry.watch(first);
    while let Some(word) = words.recv().await {
        match &word {
            Word::Changed { key, at } if HoldId::of_key(key).is_some() => {
                engine.hold_changed(key, *at);
            }
            Word::Changed { key, .. } if !Membership::concerns(key) => {}
            word => engine.hear_word(word),
        }
    }
}

/// Tells the operator when the registry is in trouble, and when it is not any more.
pub(crate) async fn look(registry: Arc<dyn Registry>) {
    let mut told = None;
    loop {
        tokio::time::sleep(LOOK).await;
        let trouble = registry.health().trouble;
        if told != trouble {
            match &trouble {
                Some(why) => tracing::warn!(%why, "the registry is in trouble"),
                None => tracing::info!("the registry is well again"),
            }
            told = trouble;
        }
    }
}

/// What the addresses of all members are noted under.
const ADDRESSES: &str = "members";

/// Keeps in mind where all members are, also for the next run: who votes may not be among those that a
/// node is told of when it starts.
pub(crate) async fn keep_addresses(engine: Arc<Engine>, calls: Arc<Calls>, embedded: Embedded) {
    let noted = embedded.local(ADDRESSES).ok().flatten();
    let noted: Option<Vec<Member>> = noted.and_then(|bytes| frame::read(&bytes).ok());
    let learn = |members: &[Member]| {
        let places = members.iter().map(|it| (it.name.as_str(), it.address.as_str()));
        calls.addresses.learn(places);
    };
    let mut known = noted.unwrap_or_default();
    learn(&known);
    let mut peers = engine.peers.subscribe();
    while peers.changed().await.is_ok() {
        let present = engine.with_membership(|membership| {
            let in_view = membership.record().map(|record| record.members.clone());
            let in_view = in_view.unwrap_or_default().into_iter().map(|entry| entry.member);
            // Those of the view are newer.
            membership.roster().iter().cloned().chain(in_view).collect::<Vec<_>>()
        });
        let Some(present) = present.filter(|present| *present != known) else { continue };
        learn(&present);
        if let Ok(bytes) = frame::encode(&present) {
            // A full disk is told of by the registry itself.
            embedded.put_local(ADDRESSES, bytes).await.ok();
        }
        known = present;
    }
}

/// The last resort when a majority of the voters is lost for good: the registry in this directory goes on
/// alone, with all that it knows. Its node must not run, and the other voters must not come back.
pub fn recover_alone(directory: &Path) -> Result<(), RegistryError> {
    Ok(Embedded::recover_alone(directory)?)
}
