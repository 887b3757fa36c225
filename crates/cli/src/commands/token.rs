//! `catraca token`: who may use a node, by a token.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use catraca_node::{Role, TokenError, TokenFile};
use serde_json::json;

use super::node::usual_directory;
use crate::Outcome;
use crate::failure::Failure;
use crate::output::Stdout;
use crate::table::{Align, Table};

/// Makes, lists and revokes the tokens by which callers of a node prove themselves.
///
/// The file has no token itself, only what it takes to recognise one. Give it to every node with
/// 'catraca node --tokens FILE'; they read it again on SIGHUP.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
    /// The file; by default 'tokens' in $XDG_DATA_HOME/catraca, or ~/.local/share/catraca.
    #[arg(long, global = true, value_name = "FILE", env = "CATRACA_TOKENS")]
    file: Option<PathBuf>,
}

const HELP: &str = "\
Roles, each with all before it:
  observe     look at locks, members and counters
  lock        take locks, and release the own ones
  administer  release what others hold, change the group, speak as a member of it

Examples:
  catraca token add ci --names 'ci/*' > ci.token
  catraca token add ana --role administer
  catraca token revoke ci && kill -HUP $(pidof catraca)";

#[derive(clap::Subcommand)]
enum Action {
    /// Makes a token and prints it, this once.
    Add {
        /// Whose it is: letters, digits, '-', '_' and '.'.
        name: String,
        /// What it is good for: observe, lock or administer.
        #[arg(long, default_value = "lock", value_parser = role)]
        role: Role,
        /// The locks it is good for, as in 'ci/*'. May be said several times; all locks if it is not said.
        #[arg(long, value_name = "PATTERN")]
        names: Vec<String>,
    },
    /// Every token: whose it is and what it is good for.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Takes a token out. Nodes that run refuse it once they have read the file again.
    Revoke {
        /// Whose it is.
        name: String,
    },
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let file = match self.file {
            Some(file) => file,
            None => usual_directory()?.join("tokens"),
        };
        let mut out = Stdout::lock();
        match self.action {
            Action::Add { name, role, names } => {
                if let Some(parent) = file.parent().filter(|it| !it.as_os_str().is_empty()) {
                    let system = |reason| {
                        of_tokens(TokenError::System { doing: "make", path: parent.into(), reason })
                    };
                    std::fs::create_dir_all(parent).map_err(system)?;
                }
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
                let created = catraca_node::rfc3339(now.as_millis() as u64);
                let added =
                    TokenFile::change(&file, |tokens| tokens.add(&name, role, &names, &created));
                writeln!(out, "{}", added.map_err(of_tokens)?)?;
            }
            Action::List { json } => list(&mut out, &file, json)?,
            Action::Revoke { name } => {
                let revoked = TokenFile::change(&file, |tokens| tokens.revoke(&name));
                revoked.map_err(of_tokens)?;
                writeln!(out, "revoked '{name}'; tell the nodes that run: kill -HUP PID")?;
            }
        }
        out.flush()?;
        Ok(())
    }
}

fn list(out: &mut impl Write, file: &Path, as_json: bool) -> Outcome {
    let entries = TokenFile::read(file).map_err(of_tokens)?.entries;
    if as_json {
        let of = |entry: &catraca_node::TokenEntry| json!({"name": entry.name, "role": entry.role, "names": entry.names, "created": entry.created});
        let all: Vec<_> = entries.iter().map(of).collect();
        writeln!(out, "{:#}", json!(all))?;
        return Ok(());
    }
    let columns = ["token", "role", "names", "created"].map(|name| (name, Align::Left));
    let mut table = Table::new(&columns);
    for entry in entries {
        let names = if entry.names.is_empty() { "*".to_string() } else { entry.names.join(" ") };
        table.row(vec![entry.name, entry.role.to_string(), names, entry.created]);
    }
    for line in table.lines() {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn of_tokens(error: TokenError) -> Failure {
    Failure::input(error)
}

fn role(text: &str) -> Result<Role, String> {
    let all = [Role::Observe, Role::Lock, Role::Administer];
    let known = all.into_iter().find(|role| role.to_string() == text);
    known.ok_or_else(|| format!("'{text}' is no role: say observe, lock or administer"))
}
