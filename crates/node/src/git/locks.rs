//! The locks of a repository: taken, listed, verified, released, stolen.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use catraca_group::{HoldId, MOST_NAMES, Refusal, Target, Transfer, Unlock};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Git;
use super::answer::{Refused, json, list, one};
use super::asking::Asking;
use super::index::Selection;
use super::lock::{Lock, Said, id_of};
use super::path::folded;
use super::sets::Waiting;
use super::taking::Wanted;
use super::waiting::waits;
use crate::access::{Denied, Role};
use crate::calendar::unix_millis_of;
use crate::config::StealRole;
use crate::http::input::whole;
use crate::http::problem::{Kind, Problem};

/// How many locks a page has if nothing was said.
const USUAL_LOCKS: usize = 1000;
/// The most locks of a page, also if more are asked for.
const MOST_LOCKS: usize = 10_000;
/// The most paths that are looked for at once.
const MOST_PATHS: usize = 100_000;
/// The longest body with paths that are looked for, in bytes.
const LONGEST_PATHS: usize = 32 << 20;
/// It has come to its end after this time, or is not waited for.
const PATHS_TIME: Duration = Duration::from_secs(60);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LockBody {
    path: String,
    note: String,
    wait_ms: Option<u64>,
    owner: Option<String>,
}

/// Takes a lock.
pub(crate) async fn lock(asking: Asking, body: Body) -> Result<Response, Refused> {
    let asked: LockBody = asking.body(body).await?;
    let wanted = Wanted {
        path: asking.path(&asked.path, Role::Lock)?,
        repository: asking.repository.clone(),
        owner: asking.owner(asked.owner.as_deref())?,
        note: asked.note,
        set: None,
    };
    let wait = asking.wait(asked.wait_ms)?;
    let is_own =
        |refused: &Refused| refused.lock.as_ref().is_some_and(|lock| lock.owner == wanted.owner);
    match take_apart(&asking.git, wanted.clone()).await {
        Ok(lock) => {
            still_may(&asking, &[&lock]).await?;
            Ok(json(StatusCode::CREATED, one("lock", &lock)))
        }
        Err(refused) if refused.problem.kind() != Kind::Taken => Err(refused),
        Err(refused) if wait.is_zero() || is_own(&refused) => Err(refused),
        Err(_) => Ok(waits(asking, move |asking| async move {
            let asked = wanted.asked(catraca_group::Wait::AtMost(wait))?;
            let waiting = Waiting::begin(&asking.git, std::slice::from_ref(&wanted));
            let forgetting =
                Forgetting { git: Arc::clone(&asking.git), asked: Some(asked.clone()) };
            let lock = asking.git.take_asked(&wanted, asked).await;
            forgetting.over();
            let lock = lock?;
            waiting.over();
            asking.git.tell_locked(&lock);
            still_may(&asking, &[&lock]).await?;
            Ok(one("lock", &lock))
        })),
    }
}

/// Takes a lock in a task of its own: if the client goes, those who watch are told all the same.
async fn take_apart(git: &Arc<Git>, wanted: Wanted) -> Result<Arc<Lock>, Refused> {
    let git = Arc::clone(git);
    let taking = tokio::spawn(async move {
        let lock = git.take_one(&wanted).await?;
        git.tell_locked(&lock);
        Ok(lock)
    });
    // It does not panic, and is aborted only with the whole node.
    taking.await.unwrap_or_else(|_| Err(Refusal::Stopped.into()))
}

/// Somebody who waits and may go: what it is granted in that moment is given back.
struct Forgetting {
    git: Arc<Git>,
    asked: Option<catraca_group::AcquireDurable>,
}

impl Forgetting {
    fn over(mut self) {
        self.asked = None;
    }
}

impl Drop for Forgetting {
    fn drop(&mut self) {
        if let Some(asked) = self.asked.take() {
            let git = Arc::clone(&self.git);
            tokio::spawn(async move { git.forget(asked).await });
        }
    }
}

/// A token may have been revoked while its holder waited: then it does not keep the locks.
async fn still_may(asking: &Asking, locks: &[&Arc<Lock>]) -> Result<(), Refused> {
    let names = locks.iter().map(|lock| lock.name.as_str());
    if asking.caller.may(Role::Lock, names).is_ok() {
        return Ok(());
    }
    for lock in locks {
        asking.git.give_back(lock.id).await;
        asking.git.tell_unlocked(lock, &lock.owner);
    }
    Err(Problem::from(Denied::UnknownToken).into())
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BatchBody {
    paths: Vec<String>,
    note: String,
    wait_ms: Option<u64>,
    owner: Option<String>,
}

/// Takes several locks: all of them, or none.
pub(crate) async fn batch(asking: Asking, body: Body) -> Result<Response, Refused> {
    let asked: BatchBody = asking.body(body).await?;
    if !(1..=MOST_NAMES).contains(&asked.paths.len()) {
        let detail = format!("'paths' has 1 to {MOST_NAMES} paths, not {}", asked.paths.len());
        return Err(Refused::new(Kind::BadRequest, "bad-paths", detail));
    }
    let owner = asking.owner(asked.owner.as_deref())?;
    let mut names = BTreeSet::new();
    let mut wanted = Vec::new();
    for path in &asked.paths {
        let path = asking.path(path, Role::Lock)?;
        if names.insert(path.name.clone()) {
            let (repository, owner) = (asking.repository.clone(), owner.clone());
            let (note, set) = (asked.note.clone(), None);
            wanted.push(Wanted { repository, path, owner, note, set });
        }
    }
    let wait = asking.wait(asked.wait_ms)?;
    let is_own = |refused: &Refused| refused.locks.iter().flatten().any(|lock| lock.owner == owner);
    match asking.git.take_all_apart(wanted.clone()).await {
        Ok(locks) => {
            still_may(&asking, &locks.iter().collect::<Vec<_>>()).await?;
            Ok(json(StatusCode::CREATED, format!("{{\"locks\":{}}}", list(&locks))))
        }
        Err(refused) if refused.problem.kind() != Kind::Taken => Err(refused),
        Err(refused) if wait.is_zero() || is_own(&refused) => Err(refused),
        Err(_) => Ok(waits(asking, move |asking| async move {
            let locks = asking.git.take_all_within(wanted, wait).await?;
            still_may(&asking, &locks.iter().collect::<Vec<_>>()).await?;
            Ok(format!("{{\"locks\":{}}}", list(&locks)))
        })),
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListQuery {
    path: Option<String>,
    id: Option<String>,
    cursor: Option<String>,
    limit: Option<String>,
    under: Option<String>,
    owner: Option<String>,
    before: Option<String>,
    stolen: Option<bool>,
}

/// A part of the locks.
pub(crate) async fn locks(asking: Asking) -> Result<Response, Refused> {
    asking.may(Role::Observe)?;
    let asked: ListQuery = query(&asking)?;
    let stolen_from = match asked.stolen {
        Some(true) => Some(asking.owner(None)?),
        _ => None,
    };
    let fold = asking.settings.fold;
    let under = asked.under.as_deref().map(|folder| folder.trim_end_matches('/'));
    let under = under.filter(|folder| !folder.is_empty()).map(|folder| folded(folder, fold));
    let before = asked.before.as_deref().map(|text| {
        unix_millis_of(text).ok_or_else(|| {
            let detail = "'before' is a time as in 2026-11-17T20:56:03Z";
            Refused::new(Kind::BadRequest, "bad-query", detail)
        })
    });
    let cursor = asked.cursor.as_deref().filter(|cursor| !cursor.is_empty());
    let selection = Selection {
        under: under.transpose()?,
        owner: asked.owner.clone(),
        before: before.transpose()?,
        stolen_from,
        after: cursor.map(position).transpose()?,
    };
    let limit = asked.limit.as_deref().map(limit_of).transpose()?;
    if let Some(found) = lookup(&asking, &asked).await? {
        let wanted = found.filter(|lock| asking.caller.sees(&lock.name) && selection.fits(lock));
        return Ok(json(StatusCode::OK, format!("{{\"locks\":{}}}", list(&wanted))));
    }
    let (locks, next) = page(&asking, &selection, limit).await?;
    let next = next.map_or_else(String::new, |next| format!(",\"next_cursor\":\"{next}\""));
    Ok(json(StatusCode::OK, format!("{{\"locks\":{}{next}}}", list(&locks))))
}

/// The one lock that is asked for by path or id, if it is asked for so. What the index knows is confirmed
/// by the registry, which is sooner than to wait for the index where much is changed.
async fn lookup(asking: &Asking, asked: &ListQuery) -> Result<Option<Option<Arc<Lock>>>, Refused> {
    let (git, repository) = (&asking.git, &asking.repository);
    if let Some(text) = &asked.id {
        let Some(id) = id_of(text) else { return Ok(Some(None)) };
        return Ok(Some(git.confirmed(repository, id).await?));
    }
    let Some(path) = &asked.path else { return Ok(None) };
    let path = folded(path, asking.settings.fold)?;
    let known = || git.following.look(|index| index.by_path(repository, &path));
    if let Some(lock) = known()
        && let Some(lock) = git.confirmed(repository, lock.id).await?
    {
        return Ok(Some(Some(lock)));
    }
    git.following.fresh().await?;
    Ok(Some(known()))
}

/// How many locks are asked for.
fn limit_of(text: &str) -> Result<usize, Refused> {
    text.parse().ok().filter(|&limit| limit > 0).ok_or_else(|| {
        let detail = format!("'limit' is a number from 1 to {MOST_LOCKS}");
        Refused::new(Kind::BadRequest, "bad-query", detail)
    })
}

/// How many locks a page has.
fn length(limit: Option<usize>) -> usize {
    limit.unwrap_or(USUAL_LOCKS).min(MOST_LOCKS)
}

/// Locks that the caller may see, and what leads to the next ones.
async fn page(
    asking: &Asking,
    selection: &Selection,
    limit: Option<usize>,
) -> Result<(Vec<Arc<Lock>>, Option<String>), Refused> {
    asking.git.following.fresh().await?;
    let most = length(limit);
    let (mut locks, more) =
        asking.git.following.look(|index| index.page(&asking.repository, selection, most));
    let next = locks.last().filter(|_| more).map(|last| cursor(last));
    if !asking.caller.sees(&asking.repository.all()) {
        locks.retain(|lock| asking.caller.sees(&lock.name));
    }
    Ok((locks, next))
}

/// What leads to the locks after this one.
fn cursor(lock: &Lock) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}{}", lock.id, lock.folded))
}

fn position(cursor: &str) -> Result<(String, HoldId), Refused> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    let parts = text.split_at_checked(32);
    let place = parts.and_then(|(id, folded)| Some((folded.to_string(), id_of(id)?)));
    place.ok_or_else(|| {
        let detail = "the cursor is not one that a list has given; begin without one";
        Refused::new(Kind::BadRequest, "bad-cursor", detail)
    })
}

fn query<T: DeserializeOwned>(asking: &Asking) -> Result<T, Refused> {
    let query = Query::<T>::try_from_uri(&asking.parts.uri);
    query.map(|Query(query)| query).map_err(|error| {
        let detail = format!("the query cannot be read: {error}");
        Refused::new(Kind::BadRequest, "bad-query", detail)
    })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct VerifyBody {
    cursor: Option<String>,
    limit: Option<usize>,
    owner: Option<String>,
}

/// The own locks and those of others, for whoever is about to push.
pub(crate) async fn verify(asking: Asking, body: Body) -> Result<Response, Refused> {
    asking.may(Role::Observe)?;
    let asked: VerifyBody = asking.body(body).await?;
    let owner = asking.owner(asked.owner.as_deref())?;
    let cursor = asked.cursor.filter(|cursor| !cursor.is_empty());
    let after = cursor.as_deref().map(position).transpose()?;
    let selection = Selection { after, ..Selection::default() };
    let limit = asked.limit.filter(|&limit| limit > 0);
    let (locks, next) = page(&asking, &selection, limit).await?;
    let (ours, theirs): (Vec<_>, Vec<_>) = locks.iter().partition(|lock| lock.owner == owner);
    let next = next.map_or_else(String::new, |next| format!(",\"next_cursor\":\"{next}\""));
    let (ours, theirs) = (list(ours), list(theirs));
    Ok(json(StatusCode::OK, format!("{{\"ours\":{ours},\"theirs\":{theirs}{next}}}")))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MatchBody {
    paths: Vec<String>,
}

/// Those locks whose paths are among these, for hooks.
pub(crate) async fn matching(asking: Asking, body: Body) -> Result<Response, Refused> {
    asking.may(Role::Observe)?;
    // A body may be large, so few are read at a time.
    let turn = asking.git.bodies.acquire().await.map_err(|_| Refusal::Stopped)?;
    let bytes = whole(body, LONGEST_PATHS, PATHS_TIME, None).await?;
    let asked: MatchBody = asking.read(&bytes)?;
    if asked.paths.len() > MOST_PATHS {
        let detail = format!("'paths' has at most {MOST_PATHS} paths");
        return Err(Refused::new(Kind::TooLarge, "too-many-paths", detail));
    }
    asking.git.following.fresh().await?;
    let fold = asking.settings.fold;
    // What is no path has no lock: a tree may have any names in it.
    let folded: BTreeSet<String> =
        asked.paths.iter().filter_map(|path| folded(path, fold).ok()).collect();
    let (all, _) = asking
        .git
        .following
        .look(|index| index.page(&asking.repository, &Selection::default(), usize::MAX));
    let locks = all.iter().filter(|lock| folded.contains(&lock.folded));
    let sees_all = asking.caller.sees(&asking.repository.all());
    let locks = locks.filter(|lock| sees_all || asking.caller.sees(&lock.name));
    let answer = format!("{{\"locks\":{}}}", list(locks));
    drop(turn);
    Ok(json(StatusCode::OK, answer))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UnlockBody {
    force: bool,
    owner: Option<String>,
}

/// Releases a lock.
pub(crate) async fn unlock(asking: Asking, id: &str, body: Body) -> Result<Response, Refused> {
    let asked: UnlockBody = asking.body(body).await?;
    let lock = found(&asking, id).await?;
    asking.caller.may(Role::Lock, [lock.name.as_str()])?;
    let owner = asking.owner(asked.owner.as_deref())?;
    let is_own = lock.owner == owner;
    if !is_own && !asked.force {
        let holder = lock.holder(&owner);
        let detail = format!("{holder}; it can be released by force, or stolen");
        return Err(Refused::new(Kind::Forbidden, "not-owner", detail).about(&lock));
    }
    if !is_own {
        let may = asking.caller.may(Role::Administer, [lock.name.as_str()]);
        may.map_err(|problem| Refused::from(problem).about(&lock))?;
    }
    let by = asking.name.clone();
    let git = Arc::clone(&asking.git);
    // Whoever watches is told also if the client goes meanwhile.
    let unlocking = tokio::spawn(async move {
        let unlock = Unlock { target: Target::Id(lock.id), owner: is_own.then_some(owner) };
        let hold = match git.gateway.unlock_for_git(unlock).await {
            Err(Refusal::NoSuchHold(_)) => return Err(no_such_lock()),
            released => released?,
        };
        let lock = git.granted(hold)?;
        git.tell_unlocked(&lock, if is_own { &lock.owner } else { &by });
        Ok(lock)
    });
    // It does not panic, and is aborted only with the whole node.
    let lock = unlocking.await.unwrap_or_else(|_| Err(Refusal::Stopped.into()))?;
    Ok(json(StatusCode::OK, one("lock", &lock)))
}

/// The lock with this id, as the registry has it.
async fn found(asking: &Asking, id: &str) -> Result<Arc<Lock>, Refused> {
    let id = id_of(id).ok_or_else(no_such_lock)?;
    asking.git.confirmed(&asking.repository, id).await?.ok_or_else(no_such_lock)
}

fn no_such_lock() -> Refused {
    let detail = "there is no such lock in this repository, or not any more";
    Refused::new(Kind::NotFound, "no-such-lock", detail)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StealBody {
    note: String,
    owner: Option<String>,
}

/// Makes the lock of somebody else one's own, in one step.
pub(crate) async fn steal(asking: Asking, id: &str, body: Body) -> Result<Response, Refused> {
    let asked: StealBody = asking.body(body).await?;
    let was = found(&asking, id).await?;
    asking.caller.may(Role::Lock, [was.name.as_str()])?;
    if asking.settings.steal == StealRole::Administer {
        let may = asking.caller.may(Role::Administer, [was.name.as_str()]);
        may.map_err(|problem| Refused::from(problem).about(&was))?;
    }
    let owner = asking.owner(asked.owner.as_deref())?;
    if was.owner == owner {
        return Err(Refused::taken(&was, &owner));
    }
    let note = Said::of_stolen(&was, &owner, asked.note).ok_or_else(|| {
        Refused::new(Kind::BadRequest, "long-note", "the note is too long; say it in fewer words")
    })?;
    let git = Arc::clone(&asking.git);
    let (transfer, repository) = (
        Transfer { id: was.id, from: was.owner.clone(), to: owner.clone(), note },
        asking.repository.clone(),
    );
    let stealing = tokio::spawn(async move {
        match git.gateway.transfer(transfer).await {
            Ok(hold) => {
                let lock = git.granted(hold)?;
                git.tell_stolen(&lock, &was);
                Ok(format!("{{\"lock\":{},\"was\":{}}}", lock.json, was.json))
            }
            // Somebody else was faster.
            Err(Refusal::NotOwner(_)) => match git.confirmed(&repository, was.id).await? {
                Some(lock) => Err(Refused::taken(&lock, &owner)),
                None => Err(no_such_lock()),
            },
            Err(Refusal::NoSuchHold(_)) => Err(no_such_lock()),
            Err(refusal) => Err(refusal.into()),
        }
    });
    // It does not panic, and is aborted only with the whole node.
    let answer = stealing.await.unwrap_or_else(|_| Err(Refusal::Stopped.into()))?;
    Ok(json(StatusCode::OK, answer))
}

#[cfg(test)]
mod tests {
    use super::super::lock::tests::hold;
    use super::*;
    use crate::config::GitConfig;

    #[test]
    fn a_page_has_so_many_locks_as_are_asked_for_and_never_more_than_the_most() {
        assert_eq!(length(None), USUAL_LOCKS);
        assert_eq!(length(Some(limit_of("1").unwrap())), 1);
        assert_eq!(length(Some(limit_of("20000").unwrap())), MOST_LOCKS);
        for bad in ["", "0", "-1", "x", "1.5", "99999999999999999999"] {
            assert_eq!(limit_of(bad).unwrap_err().problem.kind(), Kind::BadRequest, "{bad}");
        }
    }

    #[test]
    fn a_cursor_leads_back_to_its_lock_and_nothing_else_is_one() {
        let hold = hold(0xfeed, &["git/art/game/%C3%BC/x"], "ann", "");
        let lock = Lock::of(&hold, &GitConfig::default(), |_| None).remove(0);
        assert_eq!(position(&cursor(&lock)).unwrap(), ("ü/x".to_string(), HoldId(0xfeed)));
        for bad in ["", "x", "AAAA", "../..", "e30"] {
            assert_eq!(position(bad).unwrap_err().problem.kind(), Kind::BadRequest, "{bad}");
        }
    }
}
