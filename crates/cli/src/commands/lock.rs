//! `catraca lock`: runs a command while holding locks.

mod child;
mod durable;
mod ending;
mod entry;
mod separator;
mod stay;
mod work;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Write};
use std::time::Duration;

use catraca_client::{Client, LockName, clock};
use catraca_group::{MOST_NAMES, MOST_PERMITS};

use self::ending::Ending;

use crate::Outcome;
use crate::failure::Failure;
use crate::nodes::NodeArguments;
use crate::service::{block_on, of_system};
use crate::signals::Signals;
use crate::value::seconds;

/// Runs a command while holding locks, or holds them until Ctrl-C.
///
/// Waits until all of the locks are had, runs the command, and releases them however it ends.
/// Signals are passed on to the command's whole process group. If the locks are lost, because the
/// node stops or cannot be reached, the command gets SIGTERM and then SIGKILL before anybody else can
/// hold them.
///
/// Without a command it prints the fences, one for each name, and holds the locks until Ctrl-C,
/// SIGTERM, or the end of its input, if that is a terminal or a pipe. Several names could be a command
/// then, and are refused: put '--' before the command, or say --hold.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Arguments {
    /// The locks: all of them are held, or none. Names have 1 to 255 bytes and no spaces.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// The command and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Fail rather than wait for others to leave.
    #[arg(short, long, visible_alias = "nb", conflicts_with = "wait")]
    nonblock: bool,
    /// Fail if the locks are not had within SECONDS. Fractions are allowed; 0 is as --nonblock.
    #[arg(short, long, visible_alias = "timeout", value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds(0.0..=1e9))]
    wait: Option<Duration>,
    /// The exit code if the locks are not had, instead of 1 (--nonblock) or 124 (--wait).
    #[arg(short = 'E', long, value_name = "CODE")]
    conflict_exit_code: Option<u8>,
    /// How long the locks stay held after the last renewal by this process, at most a day: 10, or less
    /// where the group takes a silent node for crashed sooner.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds(0.5..=86_400.0))]
    ttl: Option<Duration>,
    /// How many may hold the lock at a time, 1 to 64: a semaphore. All who use it say the same. Its
    /// fences differ from each other, but have no order.
    #[arg(long, default_value = "1", value_name = "K", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_PERMITS)))]
    permits: u32,
    /// Hold the locks without a command. One lock is held without a command anyway.
    #[arg(long, conflicts_with = "command")]
    hold: bool,
    /// Take the locks for their owner and leave: they stay held, whatever is restarted, until 'catraca
    /// unlock' releases them. Prints the hold's id and its fences.
    #[arg(long, conflicts_with_all = ["command", "hold", "ttl", "label"])]
    durable: bool,
    /// Who a durable hold belongs to; by default whoever the token or the certificate names.
    #[arg(long, value_name = "TEXT", requires = "durable")]
    owner: Option<String>,
    /// What others should know of a durable hold.
    #[arg(long, value_name = "TEXT", requires = "durable")]
    note: Option<String>,
    /// A name for this request. Asking again with it gives the same hold: say it in scripts that may be
    /// run again after they were cut off.
    #[arg(long, value_name = "TEXT", requires = "durable")]
    request: Option<String>,
    #[command(flatten)]
    nodes: NodeArguments,
    /// What lists of locks call this client: the user and the command, unless said otherwise.
    #[arg(long)]
    label: Option<String>,
    /// Say how long it waited, and what happens to the locks.
    #[arg(short, long)]
    verbose: bool,
}

const HELP: &str = "\
The command finds in its environment:
  CATRACA_LOCK      the names, each once, with a space between them
  CATRACA_FENCE     a number for each of them that is larger than that of every earlier holder:
                    hand it to what the lock protects, which refuses smaller numbers; for a
                    semaphore a number that no other holder has
  CATRACA_DEADLINE  until when the locks are certain, in milliseconds of Unix time; renewals
                    prolong it while the command runs

Exit codes:
  that of the command, or 128 + N if signal N ended it; otherwise
    1  somebody else has the lock (--nonblock); see -E
    2  wrong input; the message says what to change
  122  a node answers, but cannot serve: the group is not complete, or goes on without it,
       or a limit is reached; the message says which
  123  the locks were lost; the command was ended, or not started
  124  the locks were not had in time (--wait); see -E
  125  no node answers; or the fences cannot be printed, or the guardian cannot be started
  126  the command cannot be run
  127  the command was not found
  128 + N  signal N came while waiting
    0  the locks were held without a command until Ctrl-C, SIGTERM or the end of input

Examples:
  catraca lock deploy -- ./deploy.sh
  catraca lock -n nightly -- make report
  catraca lock -w 2.5 db/orders db/stock -- ./migrate
  catraca lock --durable --owner ana --note 'new hair' art/hero.psd
  catraca lock --permits 3 downloads -- curl -O https://example.org/large";

/// The locks were lost.
pub(crate) const LOST: u8 = 123;
const TIMED_OUT: u8 = 124;

/// How long the node is given to free everything.
const FAREWELL: Duration = Duration::from_secs(2);
/// A lock that may be somebody else's already leaves no time for an orderly end.
const LAST_CHANCE: Duration = Duration::from_millis(100);

impl Arguments {
    pub(crate) fn run(mut self) -> Outcome {
        self.check()?;
        let mut known = BTreeSet::new();
        self.names.retain(|name| known.insert(name.clone()));
        if self.durable {
            return block_on(self.take_durably());
        }
        block_on(self.keep())?.conclude()
    }

    fn check(&self) -> Outcome {
        for name in &self.names {
            LockName::new(name).map_err(Failure::input)?;
        }
        if self.command.is_empty() && std::env::args_os().next_back().is_some_and(|it| it == "--") {
            return Err(Failure::input(
                "no command stands after '--'; without '--' the lock is held until Ctrl-C",
            ));
        }
        if self.command.is_empty()
            && !self.hold
            && !self.durable
            && let Some(meant) =
                separator::missing(&self.names, std::env::var_os("PATH").as_deref())
        {
            return Err(Failure::Input(meant));
        }
        if self.names.len() > MOST_NAMES {
            return Err(Failure::input(format!("at most {MOST_NAMES} locks at once")));
        }
        if self.permits > 1 && self.names.len() > 1 {
            return Err(Failure::input("--permits is for one name at a time"));
        }
        Ok(())
    }

    async fn keep(self) -> Result<Ending, Failure> {
        let begin = clock::now();
        let mut signals = Signals::listen().map_err(|error| of_system(&error))?;
        let (client, mut guard) = match self.enter(begin, &mut signals).await {
            Ok(inside) => inside,
            Err(end) => return end,
        };
        let waited = clock::now().since(begin).as_secs_f64();
        self.tell(|| format!("inside after {waited:.3} s, fence {}", list(guard.fences())));
        let ending = if self.command.is_empty() {
            self.stay(&guard, &mut signals).await
        } else {
            self.work(&mut guard, &mut signals).await
        };
        let is_lost = matches!(ending, Err(Failure::Own(LOST, _)));
        let limit = if is_lost { LAST_CHANCE } else { FAREWELL };
        let is_free = farewell(client, limit, &mut signals).await;
        if !is_lost {
            let free = if is_free { "released" } else { "the node did not confirm the release" };
            self.tell(|| free.to_string());
        }
        ending
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            self.warn(&what());
        }
    }

    fn warn(&self, what: &str) {
        // If standard error is closed there is nobody to tell.
        writeln!(io::stderr().lock(), "catraca: '{}': {what}", self.names.join(" ")).ok();
    }
}

/// Gives the node so long to free everything; not much longer, if another signal comes. Returns whether it
/// has confirmed that.
async fn farewell(client: Client, limit: Duration, signals: &mut Signals) -> bool {
    let mut closing = std::pin::pin!(tokio::time::timeout(limit, client.close()));
    let closed = tokio::select! {
        closed = &mut closing => closed,
        _ = signals.next() => {
            let hurried = tokio::time::timeout(limit.min(LAST_CHANCE), closing).await;
            hurried.unwrap_or_else(Err)
        }
    };
    matches!(closed, Ok(Ok(())))
}

fn list(fences: &[u64]) -> String {
    fences.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}
