//! `catraca git post-receive`: the hook that releases locks when changes have arrived.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use catraca_node::unix_millis_of;

use super::api::{Lock, Policy, Whoami, shown};
use super::changed::{Moved, Paths, Telling, Update, received};
use super::config::Config;
use super::pusher::Pusher;
use super::repository::{by_zeros, git, line_of, run_with};
use super::say;
use super::server::{Server, ServerArguments};
use crate::Outcome;
use crate::failure::Failure;
use crate::output::Stdout;
use crate::service::block_on;

/// A hook for bare repositories: releases locks when the changes they were for have been pushed, as the
/// server for locks is configured to.
///
/// 'catraca git init' in the bare repository sets it up. It reads what git tells a hook of this name: OLD-ID
/// NEW-ID REF on each line. Where no hook can be set up, a job that runs after each push may call it in a
/// clone, with these lines.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {}

const HELP: &str = "\
Policies, of the repository at the server for locks:
  hand   nothing is released: whoever locked a file unlocks it
  push   a lock is released when its owner pushes a change of the file, to any branch
  merge  a lock is released when a change of the file has reached the default branch, whoever
         merges it, and no other branch has a change since the lock that has not

The settings and variables are those of 'catraca git pre-receive'. The token needs the role 'administer',
to release locks for their owners.

Exit codes:
    0  done
    1  a lock could not be released; the push has happened all the same
    2  the hook is not set up rightly
  122  the server answers, but cannot serve
  125  no server answers";

impl Arguments {
    pub(super) fn run(self, server: &ServerArguments) -> Outcome {
        let updates = received(std::io::stdin().lock())?;
        let config = Config::read(None)?;
        let pusher = Pusher::of_environment(&config)?;
        let mut server = server.server_for_hook(&config, pusher.first_owner())?;
        block_on(async {
            let about = server.whoami().await?;
            let locks = match about.policy {
                Policy::Hand => return Ok(()),
                Policy::Push => pushed(&mut server, &updates, &pusher.owners).await?,
                Policy::Merge => merged(&mut server, &updates, &about).await?,
            };
            release(&mut server, &locks).await
        })
    }
}

/// The pusher's locks on files that the commits of this push change.
async fn pushed(
    server: &mut Server,
    updates: &[Update],
    owners: &[String],
) -> Result<Vec<Lock>, Failure> {
    let branches: Vec<&Update> =
        updates.iter().filter(|it| it.name.starts_with("refs/heads/")).collect();
    let news: Vec<&str> = branches.iter().filter_map(|it| it.new.as_deref()).collect();
    if news.is_empty() {
        return Ok(Vec::new());
    }
    let known = known_before(updates)?;
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let paths = Telling::of_commits(&news, &known, &[])?.paths()?;
    let locks = locks_on(server, &paths).await?;
    Ok(locks.into_iter().filter(|lock| owners.contains(&lock.owner.name)).collect())
}

/// Everything that the repository had before this push: the refs are moved already.
fn known_before(updates: &[Update]) -> Result<Vec<String>, Failure> {
    let moved: BTreeSet<&str> = updates.iter().map(|update| update.name.as_str()).collect();
    let refs = line_of(git().args(["for-each-ref", "--format=%(objectname) %(refname)"]))?;
    let others = refs.lines().filter_map(|line| line.split_once(' '));
    let others = others.filter(|(_, name)| !moved.contains(name)).map(|(id, _)| id.to_string());
    let olds = updates.iter().filter_map(|update| update.old.clone());
    Ok(others.chain(olds).collect::<BTreeSet<String>>().into_iter().collect())
}

/// The locks on files that this push has changed on the default branch, unless other branches have changes
/// of them since the lock that are not there yet.
async fn merged(
    server: &mut Server,
    updates: &[Update],
    about: &Whoami,
) -> Result<Vec<Lock>, Failure> {
    let name = format!("refs/heads/{}", about.default_branch);
    let Some(update) = updates.iter().find(|it| it.name == name) else { return Ok(Vec::new()) };
    let Some(new) = update.new.as_deref() else { return Ok(Vec::new()) };
    let paths = match update.old.as_deref() {
        Some(old) => {
            let mut paths = Telling::of_tips(&[Moved { old, new, name: &name }])?.paths()?;
            paths.extend(Telling::of_commits(&[new], &[old], &[])?.paths()?);
            paths
        }
        None => Telling::of_commits(&[new], &[], &[])?.paths()?,
    };
    let locks = locks_on(server, &paths).await?;
    let times = locks.iter().filter_map(|lock| unix_millis_of(&lock.locked_at));
    let Some(first) = times.min() else { return Ok(locks) };
    let fold = about.fold;
    let mut elsewhere: BTreeMap<String, u64> = BTreeMap::new();
    for (path, time) in changed_elsewhere(new, first)? {
        // However the commits write a path: it is the same file to the server for locks.
        let last = elsewhere.entry(fold.path(&path)).or_default();
        *last = time.max(*last);
    }
    let is_pending = |lock: &Lock| {
        let since = unix_millis_of(&lock.locked_at).unwrap_or(0) / 1000;
        elsewhere.get(&fold.path(&lock.path)).is_some_and(|&last| last >= since)
    };
    let (kept, free): (Vec<Lock>, Vec<Lock>) = locks.into_iter().partition(is_pending);
    for lock in kept {
        say(&format!("'{}' stays locked: another branch has a change of it", shown(&lock.path)));
    }
    Ok(free)
}

/// The files that branches change without the default branch, since so many milliseconds after 1970: when
/// they were changed last, in seconds.
fn changed_elsewhere(default: &str, since: u64) -> Result<BTreeMap<String, u64>, Failure> {
    let mut list = git();
    list.args(["rev-list", "--timestamp", "--branches", "--not", default]);
    let list = line_of(list.arg(format!("--since=@{}", since / 1000)))?;
    let times: BTreeMap<&str, u64> = list
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(time, id)| Some((id, time.parse().ok()?)))
        .collect();
    let input: String = times.keys().map(|id| format!("{id}\n")).collect();
    let mut compare = git();
    compare.args([
        "diff-tree",
        "--stdin",
        "-r",
        "-z",
        "-c",
        "--root",
        "--no-renames",
        "--name-only",
    ]);
    let told = run_with(&mut compare, input.into_bytes())?;
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    let mut time = 0;
    for part in by_zeros(&told) {
        let part = String::from_utf8_lossy(part);
        match times.get(part.as_ref()) {
            Some(&its) => time = its,
            None => {
                let known = last.entry(part.into_owned()).or_default();
                *known = time.max(*known);
            }
        }
    }
    Ok(last)
}

async fn locks_on(server: &mut Server, paths: &Paths) -> Result<Vec<Lock>, Failure> {
    let paths: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
    let paths: Vec<&str> = paths.into_iter().collect();
    if paths.is_empty() { Ok(Vec::new()) } else { server.locks_on(&paths).await }
}

async fn release(server: &mut Server, locks: &[Lock]) -> Outcome {
    let mut failed = None;
    for lock in locks {
        let path = shown(&lock.path);
        match server.unlock(lock, false, Some(&lock.owner.name)).await {
            Ok(()) => writeln!(Stdout::lock(), "catraca: unlocked '{path}'")?,
            Err(Failure::Own(code, Some(why))) => {
                say(&format!("'{path}' stays locked: {why}"));
                failed = Some(code);
            }
            Err(failure) => return Err(failure),
        }
    }
    Stdout::lock().flush()?;
    failed.map_or(Ok(()), |code| Err(Failure::Own(code, None)))
}
