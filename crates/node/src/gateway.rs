//! What the interfaces other than the native one ask of a node: timed holds, durable holds, lists, status.
//!
//! Every future may be dropped at any time. Whoever waited for locks then waits no more, and a timed hold
//! that was granted meanwhile is released at once; a durable hold that was granted meanwhile stays, as it
//! does when its client crashes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use catraca_client::clock;
use catraca_client::protocol::ForcedHold;
use catraca_group::{
    AcquireDurable, AcquireTimed, DurableHold, HoldId, Links, MOST_REQUESTS, NodeState, Operation,
    Page, Picture, Query, Refusal, Renewal, Selection, Status, Target, TimedHold, Times, Transfer,
    Unlock, Wait, Which, Who,
};
use catraca_registry::Registry;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::yield_now;

use crate::access::Identity;
use crate::audit::Record;
use crate::changes::Subscription;
use crate::engine::{ByOthers, Engine};
use crate::metrics::{self, Metrics};
use crate::mutex::hold;
use crate::observing::Observed;
use crate::program::{Guard, Names, Request};
use crate::secret::secret;

/// A request for a hold that lives by a time to live.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    /// The locks: all of them, or none.
    pub(crate) names: Vec<String>,
    /// How many may be inside each at a time.
    pub(crate) permits: u32,
    /// How long to wait.
    pub(crate) wait: Wait,
    /// How long the hold lives from its grant on, unless it is renewed.
    pub(crate) ttl: Duration,
    /// Who asks, as lists show it.
    pub(crate) who: Who,
    /// What the client proves itself with when it gives the name of the lock; empty if it never does.
    pub(crate) token: Vec<u8>,
}

/// A node, as an interface uses it.
#[derive(Clone)]
pub(crate) struct Gateway {
    engine: Arc<Engine>,
    /// Pages are made one at a time. A page of a node with very many locks takes long, and many who ask
    /// for one at once would have the service to themselves.
    listing: Arc<Semaphore>,
    under_way: Arc<UnderWay>,
}

/// How many requests for locks are under way, by whose they are.
#[derive(Default)]
struct UnderWay(Mutex<HashMap<String, usize>>);

/// One of them. Whoever is nobody in particular has none: of one machine there are only so many connections.
struct Turn<'a> {
    under_way: &'a UnderWay,
    identity: &'a str,
}

impl UnderWay {
    /// One more of `identity`, unless there are as many as a session may have.
    fn begin<'a>(&'a self, identity: &'a str) -> Result<Option<Turn<'a>>, Refusal> {
        if identity.is_empty() {
            return Ok(None);
        }
        let mut all = hold(&self.0);
        match all.get_mut(identity) {
            Some(count) if *count >= MOST_REQUESTS => return Err(Refusal::TooManyRequests),
            Some(count) => *count += 1,
            None => drop(all.insert(identity.to_string(), 1)),
        }
        Ok(Some(Turn { under_way: self, identity }))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut all = hold(&self.under_way.0);
        if let Some(count) = all.get_mut(self.identity) {
            *count -= 1;
            if *count == 0 {
                all.remove(self.identity);
            }
        }
    }
}

impl Gateway {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Gateway { engine, listing: Arc::new(Semaphore::new(1)), under_way: Arc::default() }
    }

    /// A place among the requests of `identity`.
    fn turn<'a>(&'a self, identity: &'a str) -> Result<Option<Turn<'a>>, Refusal> {
        let turn = self.under_way.begin(identity);
        turn.inspect_err(|why| self.engine.metrics().reject(why.code()))
    }

    /// Asks for a timed hold.
    pub(crate) async fn acquire(&self, asked: Asking) -> Result<TimedHold, Refusal> {
        let Asking { names, permits, wait, ttl, who, token } = asked;
        let identity = who.identity.clone();
        let _turn = self.turn(&identity)?;
        let id = HoldId(u128::from_be_bytes(secret()));
        let asked = AcquireTimed { id, names, permits, wait, ttl, who, token };
        self.engine.acquire_timed(asked).await
    }

    /// Looks at a timed hold, wherever it is.
    pub(crate) async fn look(&self, which: &Which) -> Result<TimedHold, Refusal> {
        self.engine.operate(which.clone(), Operation::Look).await
    }

    /// Changes how long a timed hold lives, wherever it is. Returns it as it is then.
    pub(crate) async fn renew(
        &self,
        which: &Which,
        renewal: Renewal,
    ) -> Result<TimedHold, Refusal> {
        self.engine.operate(which.clone(), Operation::Renew(renewal)).await
    }

    /// Releases a timed hold, wherever it is. Returns it as it was.
    pub(crate) async fn release(&self, which: &Which) -> Result<TimedHold, Refusal> {
        self.engine.operate(which.clone(), Operation::Release).await
    }

    /// Does something with a timed hold, wherever it is. Returns it as it is then; of one that is released, as
    /// it was.
    pub(crate) async fn operate(
        &self,
        which: Which,
        operation: Operation,
    ) -> Result<TimedHold, Refusal> {
        self.engine.operate(which, operation).await
    }

    /// The fence of the newest grant of a lock, of which there are so many permits. Nothing if nobody was
    /// inside since the present view of the group began: what was before is not known any more.
    pub(crate) async fn newest_fence(
        &self,
        name: &str,
        permits: u32,
    ) -> Result<Option<u64>, Refusal> {
        self.engine.newest_fence(name, permits).await
    }

    /// Asks for a durable hold, on behalf of `identity`; empty if nobody knows who it is. If it is a lock of a file
    /// those are told who watch its repository.
    pub(crate) async fn acquire_durable(
        &self,
        asked: AcquireDurable,
        identity: &str,
    ) -> Result<DurableHold, Refusal> {
        let _turn = self.turn(identity)?;
        self.engine.acquire_durably(asked, identity, false).await.map(|hold| *hold)
    }

    /// The same, on behalf of the interface for Git, which tells of it itself when it is a lock.
    pub(crate) async fn acquire_for_git(
        &self,
        asked: AcquireDurable,
        identity: &str,
    ) -> Result<DurableHold, Refusal> {
        let _turn = self.turn(identity)?;
        self.engine.acquire_durably(asked, identity, true).await.map(|hold| *hold)
    }

    /// Releases a durable hold, wherever it is, on behalf of `by`. If it is a lock of a file those are told who
    /// watch its repository.
    pub(crate) async fn unlock(&self, unlock: Unlock, by: &str) -> Result<DurableHold, Refusal> {
        self.engine.release_durable(unlock, by).await.map(|hold| *hold)
    }

    /// The same, on behalf of the interface for Git, which tells of it itself if somebody has to know.
    pub(crate) async fn unlock_for_git(&self, unlock: Unlock) -> Result<DurableHold, Refusal> {
        self.engine.unlock_durable(unlock).await.map(|hold| *hold)
    }

    /// Tells of locks of files that are taken and released by other means than the interface for Git. One is told.
    pub(crate) fn by_others(&self) -> mpsc::Receiver<ByOthers> {
        self.engine.by_others()
    }

    /// Gives a durable hold to another owner, wherever it is. Returns it as it is then.
    pub(crate) async fn transfer(&self, transfer: Transfer) -> Result<DurableHold, Refusal> {
        self.engine.transfer_durable(transfer).await.map(|hold| *hold)
    }

    /// Looks at a durable hold, wherever it is.
    pub(crate) async fn durable(&self, target: Target) -> Result<DurableHold, Refusal> {
        self.engine.look_durable(target).await.map(|hold| *hold)
    }

    /// Takes all of these locks for the node itself, and waits for so long. They are released when the guard
    /// is dropped, and are gone with the node.
    pub(crate) async fn hold_for_node(
        &self,
        names: &[String],
        wait: Duration,
    ) -> Result<Guard, Refusal> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Request::new(&self.engine, Names::All(&names)).within(wait).await
    }

    /// A page of who holds and who waits.
    pub(crate) async fn page(&self, query: Query) -> Result<Page, Refusal> {
        // One lock is looked up: that takes no time, and need not wait for those who want long lists.
        if let Selection::Name(_) = query.names {
            return self.engine.list(query).await;
        }
        let turn = self.listing.acquire().await.map_err(|_| Refusal::Stopped)?;
        let made = self.engine.list(query);
        // Whoever wants something else from the service goes first.
        yield_now().await;
        drop(turn);
        made.await
    }

    /// No page is made as long as what this returns is kept.
    #[cfg(test)]
    pub(crate) fn hold_pages(&self) -> tokio::sync::OwnedSemaphorePermit {
        Arc::clone(&self.listing).try_acquire_owned().expect("nobody makes one")
    }

    /// What all members know of the locks called `name`.
    pub(crate) async fn picture(&self, name: &str) -> Result<Picture, Refusal> {
        self.engine.picture(name).await
    }

    /// Which member reaches which.
    pub(crate) async fn links(&self) -> Result<Links, Refusal> {
        self.engine.links().await
    }

    /// Ends whatever holds `name`, at whichever member; of several only those with these fences. The audit log
    /// keeps the note.
    pub(crate) async fn force_release(
        &self,
        name: &str,
        fences: &[u64],
        by: &str,
        note: &str,
    ) -> Result<Vec<ForcedHold>, Refusal> {
        self.engine.force_release(name, fences, by, note).await
    }

    /// Somebody was not allowed what it asked for; see [`Engine::record_denial`].
    pub(crate) fn record_denial(&self, identity: Option<&str>, why: &str) {
        self.engine.record_denial(identity, why);
    }

    /// Somebody shows a token with a request; see [`Engine::record_token_at_times`].
    pub(crate) fn record_token_at_times(&self, identity: &Identity, how: &str) {
        self.engine.record_token_at_times(identity, how);
    }

    /// Tells what happens to locks whose names begin with `prefix`; see [`Engine::changes`].
    pub(crate) fn changes(&self, prefix: String, after: Option<u64>) -> Subscription {
        self.engine.changes(prefix, after)
    }

    /// The same of what the interface for Git says; see [`Gateway::say`].
    pub(crate) fn git_changes(&self, prefix: String, after: Option<u64>) -> Subscription {
        self.engine.git_changes(prefix, after)
    }

    /// The interface for Git says something of a lock, as JSON, to whoever watches at whichever member.
    pub(crate) fn say(&self, lock: &str, text: String) {
        self.engine.watching().say(lock, text);
    }

    /// Writes something into the audit log, if there is one.
    pub(crate) fn record(&self, record: Record) {
        let epoch = self.engine.epoch();
        self.engine.record(Record { epoch, ..record });
    }

    /// The registry, once it is open and until the node stops.
    pub(crate) fn registry(&self) -> Option<Arc<dyn Registry>> {
        hold(&self.engine.registry).clone()
    }

    /// The label of the cluster that a member is in, if it is known and carries one.
    pub(crate) fn cluster_of(&self, member: &str) -> Option<String> {
        self.engine.cluster_of(member)
    }

    /// What is counted of the interfaces.
    pub(crate) fn metrics(&self) -> &Metrics {
        self.engine.metrics()
    }

    /// Everything that is counted, in the form of OpenMetrics.
    pub(crate) fn metrics_text(&self) -> String {
        metrics::text(&self.engine)
    }

    /// What the member is called.
    pub(crate) fn own_name(&self) -> &str {
        &self.engine.shape.own().name
    }

    /// How long clients have waited for locks and held them, and how long hand-overs took.
    pub(crate) fn times(&self) -> Times {
        self.engine.counts().1
    }

    /// Looks at the node once a second, for whoever wants to know, until `stop` says so.
    pub(crate) fn observe(&self, stop: watch::Receiver<bool>) -> Arc<Observed> {
        Observed::start(Arc::clone(&self.engine), stop)
    }

    /// How the node stands in its group. Takes no look at its locks.
    pub(crate) fn node_state(&self) -> NodeState {
        self.engine.node_state()
    }

    /// For how long from now on nobody else is let into what is held here, whatever happens to the node.
    pub(crate) fn certain(&self) -> Duration {
        self.engine.serve(|service, _, _| service.certain(clock::now()))
    }

    /// How the node is doing.
    pub(crate) fn status(&self) -> Status {
        self.engine.status()
    }
}

#[cfg(test)]
mod tests;
