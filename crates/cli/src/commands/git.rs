//! `catraca git`: locks on the files of Git repositories, for people.

mod address;
mod api;
mod changed;
mod config;
mod credentials;
mod doctor;
mod hook_files;
mod http;
mod init;
mod listing;
mod lock;
mod lockable;
mod paths;
mod post_receive;
mod pre_push;
mod pre_receive;
mod pusher;
mod report;
mod repository;
mod server;
mod stale;
mod steal;
mod stolen;
mod taken_over;
mod unlock;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use self::server::ServerArguments;
use crate::Outcome;

/// Locks files of Git repositories, one person at a time, beside or without 'git lfs lock'.
///
/// A node with an HTTP interface serves the locks of any number of repositories, at
/// http(s)://HOST:PORT/git/TEAM/REPOSITORY. A lock is for one file, on all branches, and stays until
/// it is released. All of this is also 'git catraca ...', where 'git-catraca' is on the path.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    server: ServerArguments,
}

const HELP: &str = "\
Which server: --url, or else 'catraca.url' of git's configuration, or what 'git lfs' would ask:
'remote.NAME.lfsurl' or 'lfs.url' of git's configuration or of the file .lfsconfig.

Who you are: a token (--token-file, CATRACA_TOKEN; shown only to a server that --url or git's own
configuration names, never to one that only a file of the repository names), an 'Authorization' of
'http.extraHeader', the name and password in the URL, or what 'git credential' says, as for git.

Exit codes:
    0  done
    1  somebody else has the lock, or nobody; or a push is refused
    2  wrong input; the message says what to change
    3  'doctor' has found something to mend; or your copy of a file is stale
  122  the server answers, but cannot serve
  124  the lock was not had in time (--wait)
  125  no server answers
  130  interrupted

Examples:
  catraca git init --url https://locks.example.org:7880/git/art/game '*.psd' '*.blend'
  catraca git lock art/hero.psd --wait 5m --note 'new helmet'
  catraca git locks --under art --older 2w
  catraca git unlock art/hero.psd";

#[derive(clap::Subcommand)]
enum Action {
    Init(init::Arguments),
    Doctor(doctor::Arguments),
    Lock(lock::Arguments),
    Unlock(unlock::Arguments),
    Steal(steal::Arguments),
    Locks(listing::Locks),
    Whohas(listing::Whohas),
    PreReceive(pre_receive::Arguments),
    PostReceive(post_receive::Arguments),
    PrePush(pre_push::Arguments),
    Report(report::Arguments),
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let server = &self.server;
        match self.action {
            Action::Init(arguments) => arguments.run(server),
            Action::Doctor(arguments) => arguments.run(server),
            Action::Lock(arguments) => arguments.run(server),
            Action::Unlock(arguments) => arguments.run(server),
            Action::Steal(arguments) => arguments.run(server),
            Action::Locks(arguments) => arguments.run(server),
            Action::Whohas(arguments) => arguments.run(server),
            Action::PreReceive(arguments) => arguments.run(server),
            Action::PostReceive(arguments) => arguments.run(server),
            Action::PrePush(arguments) => arguments.run(server),
            Action::Report(arguments) => arguments.run(),
        }
    }
}

/// Somebody else has the lock, or nobody.
const TAKEN: u8 = 1;
/// Something has to be mended first.
const AMISS: u8 = 3;
/// The lock was not had in time.
const LATE: u8 = 124;

/// Milliseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_millis() as u64)
}

/// Tells the user something beside the result.
fn say(words: &str) {
    // If standard error is closed there is nobody to tell.
    writeln!(std::io::stderr().lock(), "catraca: {words}").ok();
}

/// The words of a command line. The program called `git-catraca`, as git calls it, is `catraca git`.
pub(crate) fn as_called(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    let is_git =
        |word: &OsString| Path::new(word).file_name().is_some_and(|it| it == "git-catraca");
    if words.first().is_some_and(is_git) {
        words.insert(1, "git".into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_git_calls_is_the_same_command() {
        let called = |line: &str| as_called(line.split(' ').map(OsString::from)).join(" ".as_ref());
        assert_eq!(called("/usr/bin/git-catraca lock x"), "/usr/bin/git-catraca git lock x");
        assert_eq!(called("git-catraca"), "git-catraca git");
        assert_eq!(called("catraca lock git-catraca"), "catraca lock git-catraca");
    }
}
