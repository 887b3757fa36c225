//! Several locks at once: all of them, or none.
//!
//! Those who have a file in common try one after the other (`turns.rs`). So the locks of one attempt can be
//! taken side by side: nobody else who wants several is in between, and nobody who has a part of them waits for
//! somebody to finish. Whoever has not got a turn takes them one after the other in the order of their names,
//! which is the same for everybody: then, too, one gets them of those who want the same at the same moment. If
//! one lock is missing, those that were taken are given back.
//!
//! A node may be killed in between. So before the first lock a durable hold is taken that says that a set has
//! begun, and after the last one another that says that it is complete; each lock says which set it is of. If
//! the node that began a set is gone, any other node gives the locks back of a set that is not complete.
//! Before that it takes the hold by which the set would be complete, which only one can have: so a node that
//! was only paused, and goes on, cannot complete what is being given back. And whoever has that hold looks
//! whether the set is still said to have begun, which it is not after its locks were given back.
//!
//! To hold the files themselves in a namespace whose algorithm takes sets would not do: there, at most some
//! dozens of sets can be held at a node, and files share resources, so that the lock of one would keep others
//! out for weeks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use catraca_group::{AcquireDurable, DurableHold, HoldId, Refusal, Target, Unlock, Wait};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::Git;
use super::answer::Refused;
use super::lock::Lock;
use super::taking::{Wanted, random_name};
use crate::http::problem::Kind;

/// What the names of holds begin with that say of sets how far they are.
const PREFIX: &str = "git-set/";
/// What the name of a hold ends with that says that a set is complete.
const DONE: &str = "/done";
/// The note of a hold with such a name that keeps a set from being complete.
const TIDIES: &str = "given back";
/// Sets that are not over are looked at so often.
const LOOK: Duration = Duration::from_secs(1);
/// Whoever waits for several locks looks at least so often whether they are free.
const TRY: Duration = Duration::from_secs(2);
/// After so long a lock is given back again that could not be.
const AGAIN: Duration = Duration::from_millis(200);
/// The codes of what a node says that serves nobody any more: to wait for it is of no use.
const FOR_GOOD: [&str; 5] = ["stopped", "leaving", "expelled", "excluded", "no-registry"];
/// So many locks of a set are taken or given back side by side: the registry writes them together.
const SIDE_BY_SIDE: usize = 32;

/// Whether a hold says how far a set is.
pub(crate) fn is_of_set(hold: &DurableHold) -> bool {
    matches!(&hold.names[..], [name] if name.starts_with(PREFIX))
}

/// Which set a hold is about, and whether it says that it is complete.
fn about(hold: &DurableHold) -> Option<(&str, bool)> {
    let set = hold.names.first()?.strip_prefix(PREFIX)?;
    Some(set.strip_suffix(DONE).map_or((set, false), |set| (set, true)))
}

/// The request for the hold that says that a set has begun, or that it is complete.
fn mark(set: &str, owner: &str, is_done: bool) -> AcquireDurable {
    let suffix = if is_done { DONE } else { "" };
    AcquireDurable {
        names: vec![format!("{PREFIX}{set}{suffix}")],
        permits: 1,
        wait: Wait::AtMost(TRY),
        owner: owner.to_string(),
        note: String::new(),
        request: format!("{set}{suffix}"),
    }
}

/// The request for the hold that keeps a set from being complete.
fn tidy_mark(set: &str) -> AcquireDurable {
    let asked = mark(set, "(node)", true);
    AcquireDurable { note: TIDIES.to_string(), request: random_name(), wait: Wait::no(), ..asked }
}

/// Somebody who waits for files, as the audit log is told. Whoever waits for several asks for nothing meanwhile;
/// and of one who waits for a single file, the log would not know that it is one of those who wait for people, and
/// not only for an answer of the group.
pub(super) struct Waiting {
    git: Arc<Git>,
    wanted: Vec<Wanted>,
    is_over: bool,
}

impl Waiting {
    pub(super) fn begin(git: &Arc<Git>, wanted: &[Wanted]) -> Self {
        wanted.iter().for_each(|wanted| git.write_down_wait("git waits", wanted));
        Waiting { git: Arc::clone(git), wanted: wanted.to_vec(), is_over: false }
    }

    /// It has got them.
    pub(super) fn over(mut self) {
        self.is_over = true;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.is_over {
            self.wanted.iter().for_each(|it| self.git.write_down_wait("git gives-up", it));
        }
    }
}

/// Locks on their way to somebody who may go: then they are given back.
struct Handed {
    git: Arc<Git>,
    locks: Vec<Arc<Lock>>,
}

impl Handed {
    /// They have come.
    fn kept(mut self) -> Vec<Arc<Lock>> {
        std::mem::take(&mut self.locks)
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        let locks = std::mem::take(&mut self.locks);
        // With a node that stops this ends, and the locks stay.
        if !locks.is_empty()
            && let Ok(runtime) = Handle::try_current()
        {
            let git = Arc::clone(&self.git);
            runtime.spawn(async move {
                locks.iter().for_each(|lock| git.tell_unlocked(lock, &lock.owner));
                git.end_all(locks).await;
            });
        }
    }
}

/// Whether somebody has a lock that is wanted.
fn is_taken(refused: &Refused) -> bool {
    matches!(refused.problem.kind(), Kind::Taken | Kind::Conflict)
}

/// Whether somebody who waits may get in a while what was refused.
fn may_pass(refused: &Refused) -> bool {
    match refused.problem.kind() {
        Kind::Unavailable | Kind::TimedOut => !FOR_GOOD.contains(&refused.problem.code()),
        _ => refused.locks.is_some(),
    }
}

/// Does all of this, so much of it at a time, until something is refused. What has begun by then is finished.
/// Returns what was done, and why no more.
async fn side_by_side<T, F>(work: Vec<F>, at_once: usize) -> (Vec<T>, Option<Refused>)
where
    T: Send + 'static,
    F: Future<Output = Result<T, Refused>> + Send + 'static,
{
    let mut rest = work.into_iter();
    let mut begun = JoinSet::new();
    let (mut done, mut refused) = (Vec::new(), None);
    loop {
        while refused.is_none()
            && begun.len() < at_once
            && let Some(next) = rest.next()
        {
            begun.spawn(next);
        }
        match begun.join_next().await {
            None => return (done, refused),
            Some(Ok(Ok(one))) => done.push(one),
            Some(Ok(Err(why))) => refused = refused.or(Some(why)),
            // It does not panic, and is aborted only with the whole node.
            Some(Err(_)) => refused = Some(Refusal::Stopped.into()),
        }
    }
}

impl Git {
    /// Takes all of these locks, or none. They are of one repository and one owner, and no two are the same.
    /// This goes on when nobody waits for it any more: let a task of its own do it.
    async fn take_all(
        self: &Arc<Self>,
        mut wanted: Vec<Wanted>,
    ) -> Result<Vec<Arc<Lock>>, Refused> {
        if let [only] = &wanted[..] {
            let named = |refused: Refused| match is_taken(&refused) {
                true => {
                    let locks = refused.lock.iter().cloned().collect();
                    refused.with_locks(locks)
                }
                false => refused,
            };
            return self.take_one(only).await.map(|lock| vec![lock]).map_err(named);
        }
        wanted.sort_by(|one, other| one.path.name.cmp(&other.path.name));
        let Some(owner) = wanted.first().map(|first| first.owner.clone()) else {
            return Ok(Vec::new());
        };
        let turn = self.turn(&wanted).await;
        let at_once = if turn.is_some() { SIDE_BY_SIDE } else { 1 };
        let outcome = self.try_all(&wanted, &owner, at_once).await;
        drop(turn);
        outcome
    }

    /// Tries to take all of these locks, so many of them side by side.
    async fn try_all(
        self: &Arc<Self>,
        wanted: &[Wanted],
        owner: &str,
        at_once: usize,
    ) -> Result<Vec<Arc<Lock>>, Refused> {
        self.following.fresh().await?;
        let in_the_way = self.in_the_way(wanted);
        if !in_the_way.is_empty() {
            return Err(Refused::all_taken(in_the_way, owner));
        }
        let set = random_name();
        let begun = match self.acquire(mark(&set, owner, false)).await {
            Ok(begun) => begun,
            Err(refusal) => {
                self.forget(mark(&set, owner, false)).await;
                return Err(refusal.into());
            }
        };
        let (mut taken, refused) = self.take_each(wanted, &set, at_once).await;
        let outcome = match refused {
            None => self.complete(&set, owner, begun.id).await.map_err(Refused::from),
            Some(refused) => Err(refused),
        };
        match outcome {
            Ok(done) => {
                self.give_back(begun.id).await;
                self.give_back(done.id).await;
                taken.sort_by(|one, other| one.name.cmp(&other.name));
                Ok(taken)
            }
            Err(refused) => {
                let done = HoldId::of(owner, &mark(&set, owner, true).request);
                // It may have been written: if this node is lost now, others have to see that it is not.
                self.end(done, owner).await;
                self.end_all(taken).await;
                if !is_taken(&refused) && self.following.fresh().await.is_ok() {
                    // Of a lock whose registry did not answer nobody knew whether it was taken.
                    self.end_all(self.following.look(|index| index.of_set(&set))).await;
                }
                self.end(begun.id, owner).await;
                Err(self.with_all_in_the_way(refused, wanted, owner).await)
            }
        }
    }

    /// Takes these locks until one is refused. Returns those that were taken, and why no more.
    async fn take_each(
        self: &Arc<Self>,
        wanted: &[Wanted],
        set: &str,
        at_once: usize,
    ) -> (Vec<Arc<Lock>>, Option<Refused>) {
        let take = |wanted: &Wanted| {
            let git = Arc::clone(self);
            let wanted = Wanted { set: Some(set.to_string()), ..wanted.clone() };
            async move { git.take(&wanted).await }
        };
        side_by_side(wanted.iter().map(take).collect(), at_once).await
    }

    /// Says that a set is complete, if nobody has begun to give its locks back.
    async fn complete(
        &self,
        set: &str,
        owner: &str,
        begun: HoldId,
    ) -> Result<DurableHold, Refusal> {
        let done = self.acquire(mark(set, owner, true)).await?;
        self.gateway.durable(Target::Id(begun)).await.map(|_| done)
    }

    /// Whether it is certain that the set is over with which this lock was taken, and that the lock is not given back.
    pub(super) async fn is_of_complete_set(&self, lock: &Lock) -> bool {
        let Some(set) = &lock.set else { return true };
        // It has begun before the lock was taken, and is not over before all locks are kept or given back.
        let begun = HoldId::of(&lock.owner, &mark(set, &lock.owner, false).request);
        let begun = self.gateway.durable(Target::Id(begun)).await;
        matches!(begun, Err(Refusal::NoSuchHold(_)))
            && self.gateway.durable(Target::Id(lock.id)).await.is_ok()
    }

    /// Gives locks back, for as long as it takes.
    async fn end_all(self: &Arc<Self>, locks: Vec<Arc<Lock>>) {
        let end = |lock: Arc<Lock>| {
            let git = Arc::clone(self);
            async move {
                git.end(lock.id, &lock.owner).await;
                Ok(())
            }
        };
        side_by_side(locks.into_iter().map(end).collect(), SIDE_BY_SIDE).await;
    }

    /// Releases a hold of this owner, for as long as it takes.
    async fn end(&self, id: HoldId, owner: &str) {
        loop {
            let unlock = Unlock { target: Target::Id(id), owner: Some(owner.to_string()) };
            match self.gateway.unlock_for_git(unlock).await {
                // Somebody has stolen it meanwhile. A node that stops leaves the rest to others.
                Ok(_) | Err(Refusal::NoSuchHold(_) | Refusal::NotOwner(_) | Refusal::Stopped) => {
                    return;
                }
                Err(error) => {
                    tracing::debug!(%error, %id, "a lock cannot be given back yet");
                    sleep(AGAIN).await;
                }
            }
        }
    }

    fn in_the_way(&self, wanted: &[Wanted]) -> Vec<Arc<Lock>> {
        let holder = |wanted: &Wanted| {
            self.following.look(|index| index.by_path(&wanted.repository, &wanted.path.folded))
        };
        wanted.iter().filter_map(holder).collect()
    }

    /// The same refusal, with all locks that are in the way, where that is the reason.
    async fn with_all_in_the_way(
        &self,
        refused: Refused,
        wanted: &[Wanted],
        owner: &str,
    ) -> Refused {
        match is_taken(&refused) && self.following.fresh().await.is_ok() {
            true => Refused::all_taken(self.in_the_way(wanted), owner),
            false => refused,
        }
    }

    /// Takes all of these locks as soon as all are free, and waits for so long. Nothing is held meanwhile.
    pub(crate) async fn take_all_within(
        self: &Arc<Self>,
        wanted: Vec<Wanted>,
        wait: Duration,
    ) -> Result<Vec<Arc<Lock>>, Refused> {
        let deadline = Instant::now() + wait;
        let waiting = Waiting::begin(self, &wanted);
        loop {
            let mut changes = self.following.changes();
            changes.mark_unchanged();
            let refused = match self.take_all_handed(wanted.clone()).await {
                Err(refused) if may_pass(&refused) && Instant::now() < deadline => refused,
                Ok(locks) => {
                    waiting.over();
                    return Ok(locks.kept());
                }
                Err(refused) => return Err(refused),
            };
            let owner = wanted.first().map(|first| first.owner.as_str()).unwrap_or_default();
            let is_own = |lock: &Arc<Lock>| lock.owner == owner;
            if refused.locks.iter().flatten().any(is_own) {
                // It would wait for itself.
                return Err(refused);
            }
            let tried = Instant::now();
            let is_taken = is_taken(&refused);
            loop {
                let next = deadline.min(tried + TRY);
                let changed = tokio::time::timeout_at(next, changes.changed()).await;
                // While the group cannot say who has what, nothing is known of what is free.
                let all_free = is_taken && self.in_the_way(&wanted).is_empty();
                if changed.is_err() || all_free || Instant::now() >= next {
                    break;
                }
            }
        }
    }

    /// Takes locks in a task of its own: whoever asks for them may go, and then it is finished all the same.
    pub(crate) async fn take_all_apart(
        self: &Arc<Self>,
        wanted: Vec<Wanted>,
    ) -> Result<Vec<Arc<Lock>>, Refused> {
        let git = Arc::clone(self);
        let taking = tokio::spawn(async move {
            let locks = git.take_all(wanted).await?;
            locks.iter().for_each(|lock| git.tell_locked(lock));
            Ok(locks)
        });
        // It does not panic, and is aborted only with the whole node.
        taking.await.unwrap_or_else(|_| Err(Refusal::Stopped.into()))
    }

    /// The same for somebody who waits: if it goes before it has the locks, they are given back.
    async fn take_all_handed(self: &Arc<Self>, wanted: Vec<Wanted>) -> Result<Handed, Refused> {
        let (hand, handed) = oneshot::channel();
        let git = Arc::clone(self);
        tokio::spawn(async move {
            let taken = git.take_all(wanted).await.map(|locks| {
                locks.iter().for_each(|lock| git.tell_locked(lock));
                Handed { git, locks }
            });
            // If nobody waits any more, that is the end of it.
            drop(hand.send(taken));
        });
        // It does not panic, and is aborted only with the whole node.
        handed.await.unwrap_or_else(|_| Err(Refusal::Stopped.into()))
    }

    /// Gives back what is left of sets whose nodes are gone, until the node stops.
    pub(crate) async fn tidy(self: Arc<Self>) {
        let mut seen: BTreeMap<HoldId, DurableHold> = BTreeMap::new();
        loop {
            sleep(LOOK).await;
            let present = self.following.look(|index| index.sets());
            // Most are over before they are seen twice.
            let old = present.iter().filter(|hold| seen.contains_key(&hold.id));
            let old: Vec<DurableHold> = old.cloned().collect();
            seen = present.into_iter().map(|hold| (hold.id, hold)).collect();
            if !old.is_empty() {
                self.tidy_up(&old).await;
            }
        }
    }

    async fn tidy_up(self: &Arc<Self>, marks: &[DurableHold]) {
        let Ok(answer) = self.following.read().await else { return };
        for hold in marks.iter().filter(|hold| !hold.granted_at.beats_in(&answer)) {
            match about(hold) {
                Some((set, false)) => self.tidy_set(set, hold).await,
                Some((set, true)) => {
                    let begun = HoldId::of(&hold.owner, &mark(set, &hold.owner, false).request);
                    let begun = self.gateway.durable(Target::Id(begun)).await;
                    // As long as a set is said to have begun, it has to be said that it is complete.
                    let is_over = matches!(begun, Err(Refusal::NoSuchHold(_)));
                    if is_over || hold.note == TIDIES {
                        self.give_back(hold.id).await;
                    }
                }
                None => {}
            }
        }
    }

    /// A set has begun at a node that is gone.
    async fn tidy_set(self: &Arc<Self>, set: &str, begun: &DurableHold) {
        let tidying = match self.acquire(tidy_mark(set)).await {
            Ok(tidying) => tidying,
            Err(_) => {
                let done = HoldId::of(&begun.owner, &mark(set, &begun.owner, true).request);
                if self.gateway.durable(Target::Id(done)).await.is_ok() {
                    // It is complete: there is nothing to do but to forget it.
                    self.give_back(begun.id).await;
                }
                return;
            }
        };
        // Nobody can complete it now, and whoever tries finds out below.
        if self.following.fresh().await.is_ok() {
            let locks = self.following.look(|index| index.of_set(set));
            for lock in &locks {
                let (path, owner) = (&lock.path, &lock.owner);
                tracing::warn!(
                    path,
                    owner,
                    "a lock was given back: its node was lost before it had all"
                );
                self.tell_unlocked(lock, &lock.owner);
            }
            self.end_all(locks).await;
            self.end(begun.id, &begun.owner).await;
        }
        self.give_back(tidying.id).await;
    }
}

#[cfg(test)]
mod tests {
    use super::super::path::LockPath;
    use super::super::repository::Repository;
    use super::*;
    use crate::changes::{Item, Subscription};
    use crate::config::{Fold, GitConfig};
    use crate::limits::alone;
    use crate::node::Node;

    const LIMIT: Duration = Duration::from_secs(60);

    /// What is served for Git at a node alone, and what happens to the locks of a repository.
    async fn git() -> (Node, Arc<Git>, Subscription) {
        let node = alone().await;
        node.ready().await.unwrap();
        let git = Arc::new(Git::open(&GitConfig::default(), node.gateway(), false).unwrap());
        git.start();
        let changes = node.gateway().git_changes("git/art/game/".to_string(), None);
        (node, git, changes)
    }

    fn wanted(owner: &str, path: &str) -> Wanted {
        let repository = Repository::new("art", "game").unwrap();
        let path = LockPath::new(&repository, path, Fold::default()).unwrap();
        Wanted { repository, path, owner: owner.to_string(), note: String::new(), set: None }
    }

    /// What happens next: the kind, and the path.
    async fn next(changes: &mut Subscription) -> (String, String) {
        loop {
            let item = tokio::time::timeout(LIMIT, changes.next()).await.expect("it comes soon");
            let Item::Change(change) = item.unwrap() else { continue };
            let said: serde_json::Value = serde_json::from_str(&change.label).unwrap();
            let text = |value: &serde_json::Value| value.as_str().unwrap().to_string();
            return (text(&said["kind"]), text(&said["lock"]["path"]));
        }
    }

    #[tokio::test]
    async fn whoever_goes_while_several_locks_are_taken_for_it_keeps_none_of_them() {
        let (_node, git, mut changes) = git().await;
        let mut taking =
            Box::pin(git.take_all_handed(vec![wanted("ann", "x"), wanted("ann", "y")]));
        let has_begun = std::future::poll_fn(|context| {
            std::task::Poll::Ready(taking.as_mut().poll(context).is_pending())
        });
        assert!(has_begun.await);
        drop(taking);
        for kind in ["locked", "unlocked"] {
            let mut paths = Vec::new();
            for _ in 0..2 {
                let (its, path) = next(&mut changes).await;
                assert_eq!(its, kind, "{path}");
                paths.push(path);
            }
            paths.sort();
            assert_eq!(paths, ["x", "y"]);
        }
        let one = wanted("bob", "x");
        let taking = async { while git.take(&one).await.is_err() {} };
        tokio::time::timeout(LIMIT, taking).await.expect("it is given back soon");
        git.stop();
    }

    #[tokio::test]
    async fn a_set_that_is_complete_is_forgotten() {
        let (_node, git, _) = git().await;
        let all = vec![wanted("ann", "x"), wanted("ann", "y")];
        let locks = git.take_all_apart(all).await.unwrap();
        let set = locks[0].set.clone().unwrap();
        let forgotten = async { while !git.is_of_complete_set(&locks[0]).await {} };
        tokio::time::timeout(LIMIT, forgotten).await.expect("it is complete soon");
        // As long as it is said to have begun, nobody knows whether the locks stay.
        let begun = git.acquire(mark(&set, "ann", false)).await.unwrap();
        assert!(!git.is_of_complete_set(&locks[0]).await);
        git.end(begun.id, "ann").await;
        assert!(git.is_of_complete_set(&locks[0]).await);
        git.end(locks[0].id, "ann").await;
        assert!(!git.is_of_complete_set(&locks[0]).await, "it was given back");
        git.stop();
    }

    #[test]
    fn whoever_waits_waits_on_while_the_group_cannot_say_and_not_at_a_node_that_is_gone() {
        let passes = |refusal: Refusal| may_pass(&Refused::from(refusal));
        assert!(passes(Refusal::Unsure) && passes(Refusal::TimedOut) && passes(Refusal::Lapsed));
        assert!(passes(Refusal::Registry("it is away".to_string())));
        for lasting in [Refusal::Stopped, Refusal::Leaving, Refusal::NoRegistry] {
            assert!(!passes(lasting));
        }
        assert!(!passes(Refusal::DurableSize) && !passes(Refusal::Taken));
        assert!(may_pass(&Refused::from(Refusal::Taken).with_locks(Vec::new())));
    }
}
