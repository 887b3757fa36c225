//! `catraca lock`: runs a command while holding locks.

mod child;
mod ending;
mod entry;
mod keeper;
mod lease;
mod signals;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use catraca_node::{ClientError, Denial, LockName, MOST_NAMES, MOST_PERMITS};
use nix::sys::signal::Signal;
use nix::sys::stat::{SFlag, fstat};
use tokio::sync::oneshot;

use self::child::{Change, Child};
use self::ending::{Ending, has_terminal};
use self::keeper::{Keeper, Loss, News};
pub(crate) use self::lease::Lease;
use self::signals::Signals;
use super::guardian::Guardian;
use crate::Outcome;
use crate::failure::Failure;
use crate::output::{Stdout, reason};
use crate::value::{at_node, seconds};

/// Runs a command while holding locks, or holds them until Ctrl-C.
///
/// Waits until all of the locks are had, runs the command, and releases them however it ends.
/// Signals are passed on to the command's whole process group. If the locks are lost, because the
/// node stops or cannot be reached, the command gets SIGTERM and then SIGKILL before anybody else can
/// hold them.
///
/// Without a command it prints the fences, one for each name, and holds the locks until Ctrl-C,
/// SIGTERM, or the end of its input, if that is a terminal or a pipe.
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
    /// How long the locks stay held after the last sign of life of this process: 10, or less where
    /// the group takes a silent node for crashed sooner.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds(0.5..=86_400.0))]
    ttl: Option<Duration>,
    /// How many may hold the lock at a time, 1 to 64: a semaphore. All who use it say the same.
    #[arg(long, default_value = "1", value_name = "K", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_PERMITS)))]
    permits: u32,
    /// The node to ask.
    #[arg(long, default_value = catraca_node::DEFAULT_ADDRESS, env = "CATRACA_NODE", value_name = "ADDR", value_parser = at_node)]
    node: String,
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
                    hand it to what the lock protects, which refuses smaller numbers
  CATRACA_DEADLINE  until when the locks are certain, in milliseconds of Unix time; signs of life
                    prolong it while the command runs

Exit codes:
  that of the command, or 128 + N if signal N ended it; otherwise
    1  somebody else has the lock (--nonblock); see -E
    2  wrong input; the message says what to change
  123  the locks were lost; the command was ended
  124  the locks were not had in time (--wait); see -E
  125  no node answers, or it cannot serve; or the fences cannot be printed
  126  the command cannot be run
  127  the command was not found
  128 + N  signal N came while waiting
    0  the locks were held without a command until Ctrl-C, SIGTERM or the end of input

Examples:
  catraca lock deploy -- ./deploy.sh
  catraca lock -n nightly -- make report
  catraca lock -w 2.5 db/orders db/stock -- ./migrate
  catraca lock --permits 3 downloads -- curl -O https://example.org/large";

const LOST: u8 = 123;
const TIMED_OUT: u8 = 124;
const NO_NODE: u8 = 125;

/// The node answers a request that does not wait in much less time.
const ANSWER: Duration = Duration::from_secs(5);
/// Whoever notices so late that a lock is lost has been stopped meanwhile.
const STOPPED: Duration = Duration::from_millis(500);
/// The time to live, unless said otherwise.
const USUAL_TTL: Duration = Duration::from_secs(10);
/// Whoever waits for so long is told if a member is not there.
const LONG_WAIT: Duration = Duration::from_secs(3);
/// How long the node is given to free everything.
const FAREWELL: Duration = Duration::from_secs(2);
/// When the node stops, nobody gets the lock before it is started again.
const GRACE: Duration = Duration::from_secs(5);
/// A lock that may be somebody else's already leaves no time for an orderly end.
const LAST_CHANCE: Duration = Duration::from_millis(100);

impl Arguments {
    pub(crate) fn run(mut self) -> Outcome {
        let mut known = BTreeSet::new();
        self.names.retain(|name| known.insert(name.clone()));
        self.check()?;
        let system = |error: io::Error| Failure::Own(NO_NODE, Some(reason(&error)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(system)?.block_on(self.hold())?.conclude()
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
        if self.names.len() > MOST_NAMES {
            return Err(Failure::input(format!("at most {MOST_NAMES} locks at once")));
        }
        if self.permits > 1 && self.names.len() > 1 {
            return Err(Failure::input("--permits is for one name at a time"));
        }
        Ok(())
    }

    async fn hold(self) -> Result<Ending, Failure> {
        let begin = Instant::now();
        let mut signals =
            Signals::listen().map_err(|error| Failure::Own(NO_NODE, Some(reason(&error))))?;
        let (mut keeper, mut lease, fences) = match self.enter(begin, &mut signals).await {
            Ok(inside) => inside,
            Err(end) => return end,
        };
        let waited = begin.elapsed().as_secs_f64();
        self.tell(|| format!("inside after {waited:.3} s, fence {}", list(&fences)));
        let ending = if self.command.is_empty() {
            self.stay(&fences, &mut keeper, &mut lease, &mut signals).await
        } else {
            self.work(&fences, &mut keeper, &mut lease, &mut signals).await
        };
        let is_lost = matches!(ending, Err(Failure::Own(LOST, _)));
        let free = keeper.close(if is_lost { LAST_CHANCE } else { FAREWELL }).await;
        if !is_lost {
            let released = if free { "released" } else { "the node did not confirm the release" };
            self.tell(|| released.to_string());
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

    fn denied(&self, why: &Denial) -> Result<Ending, Failure> {
        let (usual, what) = match why {
            Denial::Taken => (1, "somebody else has it"),
            Denial::TimedOut => (TIMED_OUT, "not had in time"),
            Denial::Input(why) | Denial::LongTtl(_, why) => return Err(Failure::input(why)),
            Denial::Node(why) => return Err(Failure::Own(NO_NODE, Some(why.clone()))),
        };
        self.tell(|| what.to_string());
        Ok(Ending::Code(self.conflict_exit_code.unwrap_or(usual)))
    }

    /// Runs the command.
    async fn work(
        &self,
        fences: &[u64],
        keeper: &mut Keeper,
        lease: &mut Lease,
        signals: &mut Signals,
    ) -> Result<Ending, Failure> {
        let mut guardian = Guardian::start().map_err(|error| {
            let why = format!("cannot start the command's guardian: {}", reason(&error));
            Failure::Own(NO_NODE, Some(why))
        })?;
        let environment = [
            ("CATRACA_LOCK", self.names.join(" ")),
            ("CATRACA_FENCE", list(fences)),
            ("CATRACA_DEADLINE", unix_millis(lease.deadline()).to_string()),
            guardian.mark(),
        ];
        guardian.renew(lease);
        let mut child = match Child::start(&self.command, &environment) {
            Ok(child) => child,
            Err(error) => {
                guardian.dismiss();
                return Err(self.not_run(&error));
            }
        };
        guardian.guard(child.group());
        let mut lost: Option<Instant> = None;
        let mut why = None;
        let mut passed_on = None;
        let ending = loop {
            let next = lost.unwrap_or_else(|| lease.warning());
            tokio::select! {
                change = child.change() => match change {
                    // The others of our group have got what we have got.
                    Change::Ended(Ending::Typed(which)) if passed_on == Some(which) => {
                        break Ending::Signal(which);
                    }
                    Change::Ended(ending) => break ending,
                    Change::Stopped(which) => child.rest(which),
                },
                signal = signals.next() => {
                    child.signal(signal);
                    passed_on = Some(signal);
                }
                news = keeper.news() => match news {
                    News::Renewed(renewed) if lost.is_none() => {
                        *lease = renewed;
                        guardian.renew(lease);
                    }
                    News::Lost(how) => {
                        let kill = match how {
                            Loss::Over => Instant::now() + GRACE,
                            Loss::Unknown => Instant::now() + LAST_CHANCE,
                        };
                        why.get_or_insert_with(|| self.why_lost(lease, Some(how)));
                        self.end(&child);
                        lost = Some(kill.min(lost.unwrap_or_else(|| lease.deadline())));
                    }
                    _ => {}
                },
                () = tokio::time::sleep_until(next.into()) => match lost {
                    None => {
                        why.get_or_insert_with(|| self.why_lost(lease, None));
                        self.end(&child);
                        lost = Some(lease.deadline());
                    }
                    Some(_) => {
                        child.signal(Signal::SIGKILL);
                        // Nothing is left to be done but to wait for its end.
                        lost = Some(Instant::now() + ANSWER);
                    }
                },
            }
        };
        // If we were stopped ourselves, the guardian has seen to it.
        let is_lost = lost.is_some() || lease.warning() <= Instant::now();
        if is_lost {
            // The command has ended, but perhaps not all that it started.
            child.signal(Signal::SIGKILL);
        }
        guardian.dismiss();
        if !is_lost {
            return Ok(ending);
        }
        let why = why.unwrap_or_else(|| self.why_lost(lease, None));
        Err(self.lost(&why, "the command was ended"))
    }

    /// Asks the command to end because the locks are lost.
    fn end(&self, child: &Child) {
        self.tell(|| "lost; the command is asked to end".to_string());
        child.signal(Signal::SIGTERM);
        child.signal(Signal::SIGCONT);
    }

    fn lost(&self, why: &str, what: &str) -> Failure {
        let names = self.names.join(" ");
        Failure::Own(LOST, Some(format!("lost the lock '{names}': {why}; {what}")))
    }

    /// Why the locks are lost, which is noticed now.
    fn why_lost(&self, lease: &Lease, how: Option<Loss>) -> String {
        let late = Instant::now().saturating_duration_since(lease.warning());
        match how {
            _ if late > STOPPED => "this process was stopped for longer than --ttl allows".into(),
            Some(Loss::Over) => {
                format!("the node at {} has stopped, or its group goes on without it", self.node)
            }
            Some(Loss::Unknown) => format!("the node at {} was restarted", self.node),
            None => format!("the node at {} did not answer in time", self.node),
        }
    }

    fn not_run(&self, error: &io::Error) -> Failure {
        let program = self.command.first().map(|program| program.to_string_lossy());
        let program = program.unwrap_or_default();
        let (code, why) = match error.kind() {
            ErrorKind::NotFound => (127, "command not found".to_string()),
            kind => (126, kind.to_string()),
        };
        Failure::Own(code, Some(format!("{program}: {why}")))
    }

    /// Holds the locks without a command.
    async fn stay(
        &self,
        fences: &[u64],
        keeper: &mut Keeper,
        lease: &mut Lease,
        signals: &mut Signals,
    ) -> Result<Ending, Failure> {
        let mut out = Stdout::lock();
        let said = writeln!(out, "{}", list(fences)).and_then(|()| out.flush());
        drop(out);
        said.map_err(|error| {
            let what = format!("cannot write to standard output: {}", reason(&error));
            Failure::Own(NO_NODE, Some(format!("{what}; the lock is not held")))
        })?;
        let mut end_of_input = end_of_input();
        // Whoever has forgotten '--' in a script would wonder.
        if io::stderr().is_terminal() || end_of_input.is_none() {
            self.warn("held until Ctrl-C or SIGTERM; to run a command, put '--' before it");
        }
        loop {
            let ended = async {
                match &mut end_of_input {
                    Some(end) => end.await.unwrap_or_default(),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                signal = signals.next() => match signal {
                    Signal::SIGUSR1 | Signal::SIGUSR2 => {}
                    _ => return Ok(Ending::Code(0)),
                },
                () = ended => return Ok(Ending::Code(0)),
                news = keeper.news() => match news {
                    News::Renewed(renewed) => *lease = renewed,
                    News::Lost(how) => {
                        let why = self.why_lost(lease, Some(how));
                        return Err(self.lost(&why, "it is no longer held"));
                    }
                    _ => {}
                },
                () = tokio::time::sleep_until(lease.warning().into()) => {
                    let why = self.why_lost(lease, None);
                    return Err(self.lost(&why, "it is no longer held"));
                }
            }
        }
    }
}

/// Says when standard input ends. Nobody can end `/dev/null` or a file, and a terminal that is not
/// ours must not be read: then there is nothing to wait for.
fn end_of_input() -> Option<oneshot::Receiver<()>> {
    let stdin = io::stdin();
    let is_pipe = fstat(stdin.as_fd()).is_ok_and(|stat| {
        let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
        kind == SFlag::S_IFIFO || kind == SFlag::S_IFSOCK
    });
    if !is_pipe && !has_terminal() {
        return None;
    }
    let (end, ended) = oneshot::channel();
    // A thread that reads cannot be interrupted; the process ends without waiting for it.
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while io::stdin().lock().read(&mut bytes).is_ok_and(|read| read > 0) {}
        // Whoever waited may have ended for another reason.
        let _ = end.send(());
    });
    Some(ended)
}

fn list(fences: &[u64]) -> String {
    fences.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

/// The time of the wall clock at `instant`.
fn unix_millis(instant: Instant) -> u128 {
    let left = instant.saturating_duration_since(Instant::now());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now + left).as_millis()
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Failure::System(anyhow::Error::msg(error.to_string()))
    }
}
