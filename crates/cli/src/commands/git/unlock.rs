//! `catraca git unlock`: gives files back.

use std::io::Write;

use super::api::{Filter, Lock, shown};
use super::repository::{Repository, line_if_any, run};
use super::server::{Server, ServerArguments};
use super::{AMISS, TAKEN, lockable, paths, say, stolen};
use crate::Outcome;
use crate::failure::Failure;
use crate::output::Stdout;
use crate::service::{block_on, ends_with};

/// Unlocks files, so that others can lock and change them.
///
/// A file with changes that are not committed stays locked: commit and push them first. Whoever
/// administers the server may release the locks of others with --force; 'catraca git steal' makes such a
/// lock one's own instead.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    /// The files.
    #[arg(required_unless_present = "id", value_name = "PATH")]
    paths: Vec<String>,
    /// The lock with this id, which 'catraca git locks --json' tells.
    #[arg(long, value_name = "ID", conflicts_with = "paths")]
    id: Option<String>,
    /// Whoever the lock belongs to, and whatever was changed here.
    #[arg(long, short)]
    force: bool,
}

const HELP: &str = "\
Exit codes:
    0  unlocked
    1  it is not locked, or not by you
    2  wrong input
    3  it has changes that are not committed
  122  the server answers, but cannot serve
  125  no server answers";

impl Arguments {
    pub(super) fn run(self, server: &ServerArguments) -> Outcome {
        let repository = match &self.id {
            Some(_) => Repository::find()?,
            None => Repository::with_files()?,
        };
        let paths = paths::of_files(&repository, &self.paths)?;
        let mut server = server.server(&repository.config)?;
        block_on(async {
            let mut code = 0;
            let mut locks = Vec::new();
            if let Some(id) = &self.id {
                let filter = Filter { id: Some(id.clone()), ..Filter::default() };
                locks = server.locks(&filter).await?;
                if locks.is_empty() {
                    return Err(Failure::Own(
                        TAKEN,
                        Some(format!("there is no lock with the id '{id}'")),
                    ));
                }
            }
            for path in &paths {
                match server.lock_of(path).await? {
                    None => {
                        say(&format!("nobody has locked '{path}'"));
                        code = TAKEN;
                    }
                    Some(_) if !self.force && is_changed(&repository, path)? => {
                        say(&format!(
                            "'{path}' has changes that are not committed: commit or undo them, or say --force"
                        ));
                        code = AMISS;
                    }
                    Some(lock) => locks.push(lock),
                }
            }
            let released = self.release(&mut server, &locks, &mut code).await?;
            finish(&repository, &released)?;
            stolen::tell(&mut server, &repository).await;
            ends_with(code)
        })
    }

    async fn release(
        &self,
        server: &mut Server,
        locks: &[Lock],
        code: &mut u8,
    ) -> Result<Vec<Lock>, Failure> {
        let mut released = Vec::new();
        for lock in locks {
            match server.unlock(lock, self.force, None).await {
                Ok(()) => released.push(lock.clone()),
                Err(Failure::Own(TAKEN, Some(why))) => {
                    say(&format!("'{}': {why}", shown(&lock.path)));
                    *code = TAKEN;
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(released)
    }
}

fn finish(repository: &Repository, released: &[Lock]) -> Outcome {
    let mut out = Stdout::lock();
    for lock in released {
        writeln!(out, "unlocked {}", shown(&lock.path))?;
    }
    out.flush()?;
    if repository.top.is_none() {
        return Ok(());
    }
    let paths: Vec<String> = released.iter().map(|lock| lock.path.clone()).collect();
    lockable::is_released(repository, &paths);
    for path in paths.iter().filter(|path| is_unpushed(repository, path)) {
        say(&format!("'{path}' has commits that are not pushed: others will change an older copy"));
    }
    Ok(())
}

/// Whether a file has changes here that are in no commit.
fn is_changed(repository: &Repository, path: &str) -> Result<bool, Failure> {
    let mut status = repository.git();
    status.args(["status", "--porcelain", "-z", "--untracked-files=no", "--", path]);
    Ok(!run(&mut status)?.is_empty())
}

/// Whether a file was changed by commits that no remote is known to have.
fn is_unpushed(repository: &Repository, path: &str) -> bool {
    let has_remote = repository.config.subsections("remote", "url").next().is_some();
    let mut list = repository.git();
    list.args(["rev-list", "-1", "HEAD", "--not", "--remotes", "--", path]);
    has_remote && line_if_any(&mut list).is_some()
}
