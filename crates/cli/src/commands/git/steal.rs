//! `catraca git steal`: makes the lock of somebody else one's own.

use std::io::Write;

use catraca_node::Fold;

use super::api::shown;
use super::repository::Repository;
use super::server::ServerArguments;
use super::stale::{self, Copies};
use super::{TAKEN, lockable, paths, say};
use crate::Outcome;
use crate::failure::Failure;
use crate::output::Stdout;
use crate::service::{block_on, ends_with};

/// Makes locks of others your own, in one step: nobody else comes in between.
///
/// It is for locks whose owners cannot be asked. It is written to the audit log, and whoever watches the
/// repository is told. The lock is yours also if your copy of the file is older than what the remote has: you are
/// told to pull.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    /// The files.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
    /// What others should know: why.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

const HELP: &str = "\
Exit codes:
    0  the locks are yours
    1  one of the files is not locked, or you may not steal its lock
    2  wrong input
  122  the server answers, but cannot serve
  125  no server answers

Example:
  catraca git steal art/hero.psd --note 'bo is on holiday, ask me'";

impl Arguments {
    pub(super) fn run(self, server: &ServerArguments) -> Outcome {
        let repository = Repository::with_files()?;
        let paths = paths::of_files(&repository, &self.paths)?;
        let mut server = server.server(&repository.config)?;
        block_on(async {
            let about = server.whoami().await?;
            let mut code = 0;
            let mut stolen = Vec::new();
            for path in &paths {
                let Some(lock) = server.lock_of(path).await? else {
                    say(&format!("nobody has locked '{path}': lock it with 'catraca git lock'"));
                    code = TAKEN;
                    continue;
                };
                if lock.owner.name == about.name {
                    writeln!(Stdout::lock(), "'{}' is yours already", shown(&lock.path))?;
                    continue;
                }
                match server.steal(&lock, self.note.as_deref()).await {
                    Ok((now, was)) => {
                        let was = was.unwrap_or(lock);
                        let (path, who) = (shown(&now.path), was.in_words());
                        writeln!(Stdout::lock(), "'{path}' is yours now; before, {who} had it")?;
                        stolen.push(now.path);
                    }
                    Err(Failure::Own(TAKEN, Some(why))) => {
                        say(&format!("'{path}': {why}"));
                        code = TAKEN;
                    }
                    Err(failure) => return Err(failure),
                }
            }
            Stdout::lock().flush()?;
            lockable::is_held(&repository, &stolen);
            if !stolen.is_empty() {
                warn_of_stale(&repository, &stolen, about.fold);
            }
            ends_with(code)
        })
    }
}

/// Whoever had a lock has probably pushed changes, or was about to.
fn warn_of_stale(repository: &Repository, stolen: &[String], fold: Fold) {
    match stale::look(repository, stolen, fold) {
        Ok(Copies::Current) => {}
        Ok(Copies::Stale(found)) => {
            let files = found.join("', '");
            say(&format!(
                "your copy of '{files}' is older than what the remote has: pull before you change it"
            ));
        }
        Ok(Copies::Unknown(why)) => {
            say(&format!("cannot tell whether your copy is current: {why}"));
        }
        Err(_) => say("cannot tell whether your copy is current: git could not be run"),
    }
}
