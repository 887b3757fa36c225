//! `catraca git lock`: takes files for their owner.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::api::{Asked, Lock, Whoami, shown};
use super::paths;
use super::repository::{Repository, succeeds};
use super::server::{Server, ServerArguments};
use super::stale::{self, Copies};
use super::{AMISS, LATE, TAKEN, lockable, say, stolen};
use crate::Outcome;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::Stdout;
use crate::service::{block_on_to_the_end, until_interrupted};
use crate::value::span;

/// Locks files, so that nobody else changes them, on any branch, until you unlock them.
///
/// Several files are locked one after the other, and those that can be had are; with --all-or-none, or
/// with --wait, all of them or none. Files that 'lockable' makes read-only become writable. A file whose
/// copy here is older than what the remote has is not locked: what you changed in it would be lost, or
/// would undo what others did.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    /// The files. They need not be there yet.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
    /// Wait so long for others to unlock them, as in 90s, 5m or 2h; at most 24h.
    #[arg(long, value_name = "TIME", value_parser = wait)]
    wait: Option<Duration>,
    /// What others should know: why, or until when.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// All of the files or none, at most 256.
    #[arg(long)]
    all_or_none: bool,
    /// Lock files although their copies here are older than what the remote has, and do not ask it.
    #[arg(long)]
    even_if_stale: bool,
    /// Print the locks as JSON.
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Whether a copy is stale is seen by 'git fetch' from the remote of the branch: a file is stale if it was
changed since in the branch that is pulled from, or in the default branch of the remote. Whoever has
waited keeps the lock, and is told to pull. Who is interrupted before it is told what is locked has
locked nothing.

Exit codes:
    0  locked
    1  somebody has locked one of them
    2  wrong input
    3  a copy here is stale
  122  the server answers, but cannot serve
  124  not had in time (--wait)
  125  no server answers

Examples:
  catraca git lock art/hero.psd --note 'new helmet'
  catraca git lock --all-or-none --wait 10m level1.map level1.lights
  catraca git lock -- -odd.bin";

/// So many files are locked at once.
const MOST: usize = 256;

fn wait(text: &str) -> Result<Duration, String> {
    match span(text)? {
        time if time > Duration::from_secs(86_400) => {
            Err(format!("'{text}' is too long: a request waits at most 24h"))
        }
        time => Ok(time),
    }
}

impl Arguments {
    pub(super) fn run(self, server: &ServerArguments) -> Outcome {
        let repository = Repository::with_files()?;
        let paths = paths::of_files(&repository, &self.paths)?;
        let is_whole = self.all_or_none || self.wait.is_some();
        if is_whole && paths.len() > MOST {
            return Err(Failure::input(format!(
                "{} files are too many to lock at once: at most {MOST}",
                paths.len()
            )));
        }
        let server = server.server(&repository.config)?;
        let (about, own, locked) = (None, Vec::new(), Vec::new());
        let arguments = &self;
        let repository = &repository;
        let mut asking = Asking { repository, server, arguments, about, own, locked };
        block_on_to_the_end(async {
            let outcome = until_interrupted(asking.take(&paths, is_whole)).await;
            if outcome.is_err() {
                asking.give_back().await;
            }
            if let Ok(()) | Err(Failure::Own(TAKEN | AMISS | LATE, _)) = outcome {
                until_interrupted(asking.tell_of_stolen()).await?;
            }
            outcome
        })
    }
}

struct Asking<'a> {
    repository: &'a Repository,
    server: Server,
    arguments: &'a Arguments,
    /// What the server says of the user and of the repository, once it was asked.
    about: Option<Whoami>,
    /// What the user has locked before.
    own: Vec<Lock>,
    /// What was locked now, and of which the user was not told yet: it is not left behind.
    locked: Vec<Lock>,
}

impl Asking<'_> {
    async fn take(&mut self, paths: &[String], is_whole: bool) -> Outcome {
        if !self.arguments.even_if_stale {
            // What it takes to compare copies is known before anything is locked.
            self.about().await?;
        }
        match is_whole {
            true => self.whole(paths).await,
            false => self.one_by_one(paths).await,
        }
    }

    async fn one_by_one(&mut self, paths: &[String]) -> Outcome {
        let mut code = 0;
        for path in paths {
            match self.ask(std::slice::from_ref(path), None).await? {
                Asked::Locked(locks) => self.has_locked(locks),
                Asked::Taken(_, locks) if !self.own_of(&locks).await?.is_empty() => {
                    self.own.extend(locks);
                }
                Asked::Taken(message, locks) | Asked::Late(message, locks) => {
                    say(&taken(path, &message, &locks));
                    code = TAKEN;
                }
            }
        }
        let stale = self.release_stale().await?;
        self.finish()?;
        let code = if stale { AMISS } else { code };
        crate::service::ends_with(code)
    }

    async fn whole(&mut self, paths: &[String]) -> Outcome {
        let wait = self.arguments.wait.filter(|wait| !wait.is_zero());
        if wait.is_some() {
            self.refuse_stale(paths).await?;
        }
        let mut asked = self.ask(paths, None).await?;
        let mut paths = paths.to_vec();
        if let Asked::Taken(_, locks) = &asked {
            self.own = self.own_of(locks).await?;
            if !self.own.is_empty() {
                // Nobody waits for what is theirs, however they write it.
                let fold = self.about().await?.fold;
                let own: BTreeSet<String> =
                    self.own.iter().map(|lock| fold.path(&lock.path)).collect();
                paths.retain(|path| !own.contains(&fold.path(path)));
                if paths.is_empty() {
                    return self.finish();
                }
                asked = self.ask(&paths, None).await?;
            }
        }
        let paths = &paths[..];
        let mut has_waited = false;
        if let (Asked::Taken(message, locks), Some(wait)) = (&asked, wait) {
            if locks.is_empty() {
                say(message);
            }
            for lock in locks {
                say(&format!("waits for '{}': {} has it", lock.path, lock.in_words()));
            }
            asked = self.ask(paths, Some(wait)).await?;
            has_waited = true;
        }
        match asked {
            Asked::Locked(locked) => {
                self.has_locked(locked);
                let is_stale = match has_waited {
                    true => {
                        self.warn_of_stale(paths).await?;
                        false
                    }
                    false => self.release_stale().await?,
                };
                self.finish()?;
                crate::service::ends_with(if is_stale { AMISS } else { 0 })
            }
            Asked::Taken(message, locks) => {
                for lock in &locks {
                    say(&taken(&lock.path, &message, std::slice::from_ref(lock)));
                }
                let nothing = if paths.len() > 1 { "; nothing was locked" } else { "" };
                let words = match locks.is_empty() {
                    true => Some(format!("{message}{nothing}")),
                    false if paths.len() > 1 => Some("nothing was locked".to_string()),
                    false => None,
                };
                Err(Failure::Own(TAKEN, words))
            }
            Asked::Late(message, _) => {
                Err(Failure::Own(LATE, Some(format!("not had in time: {message}"))))
            }
        }
    }

    /// Asks. A request that waits ends when its client hangs up.
    async fn ask(&mut self, paths: &[String], wait: Option<Duration>) -> Result<Asked, Failure> {
        self.server.lock(paths, self.arguments.note.as_deref(), wait).await
    }

    fn has_locked(&mut self, locks: Vec<Lock>) {
        self.locked.extend(locks);
        interrupt::has_to_undo(true);
    }

    /// Unlocks what the user was not told of: whatever went wrong, or whoever has stopped us.
    async fn give_back(&mut self) {
        let locked = std::mem::take(&mut self.locked);
        let unlocking = async {
            for lock in &locked {
                self.server.unlock(lock, false, None).await?;
            }
            Ok::<_, Failure>(())
        };
        if !matches!(timeout(interrupt::UNDOING, unlocking).await, Ok(Ok(()))) {
            let paths: Vec<String> = locked.iter().map(|lock| shown(&lock.path)).collect();
            let paths = paths.join("', '");
            say(&format!("'{paths}' may still be locked: 'catraca git locks --mine' tells"));
        }
    }

    async fn tell_of_stolen(&mut self) -> Outcome {
        stolen::tell(&mut self.server, self.repository).await;
        Ok(())
    }

    /// Who the user is for the server, and which paths are the same file there.
    async fn about(&mut self) -> Result<&Whoami, Failure> {
        let about = match self.about.take() {
            Some(about) => about,
            None => self.server.whoami().await?,
        };
        Ok(self.about.insert(about))
    }

    /// Those that the user has already.
    async fn own_of(&mut self, locks: &[Lock]) -> Result<Vec<Lock>, Failure> {
        if locks.is_empty() {
            return Ok(Vec::new());
        }
        let me = &self.about().await?.name;
        Ok(locks.iter().filter(|lock| lock.owner.name == *me).cloned().collect())
    }

    /// How old the copies here are. Git may take its time: whoever does not want to wait is heard meanwhile.
    async fn copies(&mut self, paths: &[String]) -> Result<Copies, Failure> {
        let fold = self.about().await?.fold;
        let (repository, paths) = (self.repository.clone(), paths.to_vec());
        let looking = spawn_blocking(move || stale::look(&repository, &paths, fold));
        looking.await.unwrap_or_else(|_| Ok(Copies::Unknown("git was not asked".to_string())))
    }

    /// Nobody waits for a file that could not be used.
    async fn refuse_stale(&mut self, paths: &[String]) -> Outcome {
        if self.arguments.even_if_stale {
            return Ok(());
        }
        match self.copies(paths).await? {
            Copies::Current => Ok(()),
            Copies::Stale(found) => Err(Failure::Own(AMISS, Some(stale::words(&found)))),
            Copies::Unknown(why) => Err(unknown(&why)),
        }
    }

    /// Unlocks those whose copies are stale again; whether there were some.
    async fn release_stale(&mut self) -> Result<bool, Failure> {
        if self.arguments.even_if_stale || self.locked.is_empty() {
            return Ok(false);
        }
        let paths: Vec<String> = self.locked.iter().map(|lock| lock.path.clone()).collect();
        let found = match self.copies(&paths).await? {
            Copies::Current => return Ok(false),
            Copies::Stale(found) => found,
            Copies::Unknown(why) => return Err(unknown(&why)),
        };
        let is_whole = self.arguments.all_or_none;
        let is_gone = |lock: &&Lock| is_whole || found.contains(&lock.path);
        let gone: Vec<Lock> = self.locked.iter().filter(is_gone).cloned().collect();
        for lock in gone {
            self.server.unlock(&lock, false, None).await?;
            self.locked.retain(|kept| kept.path != lock.path);
        }
        say(&stale::words(&found));
        Ok(true)
    }

    /// Whoever has waited keeps its lock.
    async fn warn_of_stale(&mut self, paths: &[String]) -> Outcome {
        if !self.arguments.even_if_stale
            && let Copies::Stale(found) = self.copies(paths).await?
        {
            let files = found.join("', '");
            say(&format!("'{files}' was changed while you waited: pull before you change it"));
        }
        Ok(())
    }

    /// Tells the user what is locked now.
    fn finish(&mut self) -> Outcome {
        let locked = std::mem::take(&mut self.locked);
        interrupt::has_to_undo(false);
        let all: Vec<&Lock> = self.own.iter().chain(&locked).collect();
        let paths: Vec<String> = all.iter().map(|lock| lock.path.clone()).collect();
        lockable::is_held(self.repository, &paths);
        let mut out = Stdout::lock();
        if self.arguments.json {
            writeln!(out, "{:#}", serde_json::json!({ "locks": all }))?;
        } else {
            for lock in &self.own {
                writeln!(out, "'{}' is yours already", shown(&lock.path))?;
            }
            for lock in &locked {
                writeln!(out, "locked {}", shown(&lock.path))?;
            }
        }
        out.flush()?;
        for path in paths.iter().filter(|path| !is_known(self.repository, path)) {
            say(&format!("there is no file '{path}' yet, neither here nor in the last commit"));
        }
        Ok(())
    }
}

fn unknown(why: &str) -> Failure {
    Failure::Own(
        AMISS,
        Some(format!(
            "cannot tell whether your copy is current: {why}; say --even-if-stale to lock it all the same"
        )),
    )
}

/// Why a file is not to be had.
fn taken(path: &str, message: &str, locks: &[Lock]) -> String {
    match locks {
        [lock] => format!("'{}' is locked: {} has it", lock.path, lock.in_words()),
        _ => format!("'{path}': {message}"),
    }
}

/// Whether a file is here, or in the last commit.
fn is_known(repository: &Repository, path: &str) -> bool {
    repository.root().join(path).symlink_metadata().is_ok()
        || succeeds(repository.git().args(["cat-file", "-e"]).arg(format!("HEAD:{path}")))
}
