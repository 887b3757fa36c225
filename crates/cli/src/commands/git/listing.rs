//! `catraca git locks` and `catraca git whohas`: who has which file.

use std::io::Write;
use std::time::Duration;

use serde_json::json;

use super::api::{Filter, Lock, shown};
use super::repository::Repository;
use super::server::ServerArguments;
use super::{TAKEN, now, paths, stolen};
use crate::Outcome;
use crate::failure::Failure;
use crate::output::{Stdout, end_when_unread, terminal_width};
use crate::service::{block_on, ends_with};
use crate::table::{Align, Table, counted, lasting};
use crate::value::span;

/// Lists who has locked which files, since when and why.
#[derive(clap::Args)]
#[command(after_help = LOCKS_HELP)]
pub(super) struct Locks {
    /// Only yours.
    #[arg(long, conflicts_with = "owner")]
    mine: bool,
    /// Only those of this owner.
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Only files in this folder.
    #[arg(long, value_name = "DIR")]
    under: Option<String>,
    /// Only those that have been locked for longer, as in 3d or 2w.
    #[arg(long, value_name = "TIME", value_parser = span)]
    older: Option<Duration>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

const LOCKS_HELP: &str = "\
Exit codes:
    0  the list was printed
    2  wrong input
  122  the server answers, but cannot serve
  125  no server answers

Examples:
  catraca git locks --mine
  catraca git locks --under art --older 2w";

impl Locks {
    pub(super) fn run(self, server: &ServerArguments) -> Outcome {
        end_when_unread();
        let repository = Repository::find()?;
        let under = match &self.under {
            Some(folder) => Some(paths::within(&repository, folder)?),
            None => None,
        };
        let mut server = server.server(&repository.config)?;
        let locks = block_on(async {
            let owner = match self.mine {
                true => Some(server.whoami().await?.name),
                false => self.owner.clone(),
            };
            let age = |older: Duration| now().saturating_sub(older.as_millis() as u64);
            let under = under.filter(|folder| !folder.is_empty());
            let before = self.older.map(age);
            let filter = Filter { owner, under, before, ..Filter::default() };
            let locks = server.locks(&filter).await?;
            stolen::tell(&mut server, &repository).await;
            Ok::<_, Failure>(locks)
        })?;
        let mut out = Stdout::lock();
        if self.json {
            writeln!(out, "{:#}", json!({ "locks": locks }))?;
        } else if locks.is_empty() {
            writeln!(out, "No file is locked{}.", self.in_words())?;
        } else {
            for line in table(&locks) {
                writeln!(out, "{line}")?;
            }
            writeln!(out, "\n{}", counted(locks.len() as u64, "lock", "locks"))?;
        }
        out.flush()?;
        Ok(())
    }

    /// What was asked for, after 'No file is locked'.
    fn in_words(&self) -> String {
        let mut words = String::new();
        if self.mine {
            words += " by you";
        }
        if let Some(owner) = &self.owner {
            words += &format!(" by '{owner}'");
        }
        if let Some(folder) = &self.under {
            words += &format!(" in '{folder}'");
        }
        if let Some(older) = self.older {
            words += &format!(" for longer than {}", lasting(older.as_millis() as u64));
        }
        words
    }
}

fn table(locks: &[Lock]) -> Vec<String> {
    let with_teams = locks.iter().any(|lock| lock.team.is_some());
    let mut columns = vec![("file", Align::Left), ("who", Align::Left), ("for", Align::Right)];
    if with_teams {
        columns.push(("team", Align::Left));
    }
    columns.push(("note", Align::Left));
    let mut table = Table::new(&columns);
    for lock in locks {
        let age = lock.age_millis().map_or("-".to_string(), lasting);
        let mut row = vec![shown(&lock.path), shown(&lock.owner.name), age];
        if with_teams {
            row.push(lock.team.as_deref().map_or("-".to_string(), shown));
        }
        row.push(lock.note.as_deref().map_or(String::new(), shown));
        table.row(row);
    }
    table.lines_within(terminal_width(), &["who", "team"])
}

/// Tells who has locked a file, since when and why.
#[derive(clap::Args)]
#[command(after_help = WHOHAS_HELP)]
pub(super) struct Whohas {
    /// The file.
    #[arg(value_name = "PATH")]
    path: String,
    /// Print the lock as JSON, or null.
    #[arg(long)]
    json: bool,
}

const WHOHAS_HELP: &str = "\
Exit codes:
    0  somebody has locked it
    1  nobody has
    2  wrong input
  122  the server answers, but cannot serve
  125  no server answers";

impl Whohas {
    pub(super) fn run(self, server: &ServerArguments) -> Outcome {
        let repository = Repository::with_files()?;
        let path = paths::within(&repository, &self.path)?;
        let mut server = server.server(&repository.config)?;
        let lock = block_on(server.lock_of(&path))?;
        let mut out = Stdout::lock();
        match &lock {
            _ if self.json => writeln!(out, "{:#}", json!(lock))?,
            Some(lock) => writeln!(out, "{}", lock.in_words())?,
            None => writeln!(out, "nobody has locked '{path}'")?,
        }
        out.flush()?;
        ends_with(if lock.is_some() { 0 } else { TAKEN })
    }
}
