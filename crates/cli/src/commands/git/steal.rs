//! `catraca git steal`: makes the lock of somebody else one's own.

use std::io::Write;

use super::api::shown;
use super::repository::Repository;
use super::server::ServerArguments;
use super::{TAKEN, lockable, paths, say};
use crate::Outcome;
use crate::failure::Failure;
use crate::output::Stdout;
use crate::service::{block_on, ends_with};

/// Makes locks of others your own, in one step: nobody else comes in between.
///
/// It is for locks whose owners cannot be asked. It is written to the audit log, and whoever watches the
/// repository is told.
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
            let me = server.whoami().await?.name;
            let mut code = 0;
            let mut stolen = Vec::new();
            for path in &paths {
                let Some(lock) = server.lock_of(path).await? else {
                    say(&format!("nobody has locked '{path}': lock it with 'catraca git lock'"));
                    code = TAKEN;
                    continue;
                };
                if lock.owner.name == me {
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
            ends_with(code)
        })
    }
}
