//! The command under the locks: it is started, kept, and ended when the locks are lost.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use catraca_client::protocol::Over;
use catraca_client::{Guard, Loss, Time, clock};
use nix::sys::signal::Signal;

use super::child::{Change, Child};
use super::ending::Ending;
use super::entry::at;
use super::{Arguments, LAST_CHANCE};
use crate::commands::guardian::{End, Guardian};
use crate::failure::Failure;
use crate::output::reason;
use crate::service::NO_NODE;
use crate::signals::Signals;

/// When the node stops, nobody gets the lock before it is started again.
const GRACE: Duration = Duration::from_secs(5);
/// After a SIGKILL there is nothing to be done but to wait.
const KILLED: Duration = Duration::from_secs(5);

/// A command that runs under the locks.
struct Work<'a> {
    lock: &'a Arguments,
    guard: &'a mut Guard,
    guardian: Guardian,
    child: Child,
    /// When what is left of the command is killed, if it was asked to end.
    kill_at: Option<Time>,
    /// Why it was asked to end.
    why: Option<Failure>,
}

impl Arguments {
    /// Runs the command.
    pub(super) async fn work(
        &self,
        guard: &mut Guard,
        signals: &mut Signals,
    ) -> Result<Ending, Failure> {
        let validity = guard.validity();
        if !guard.is_valid() || validity.lost_at <= clock::now() {
            return Err(self.lost(guard, "the command was not started").await);
        }
        let (mut guardian, gate) =
            Guardian::start(&validity).map_err(|error| no_guardian("cannot start", &error))?;
        let environment = [
            ("CATRACA_LOCK", self.names.join(" ")),
            ("CATRACA_FENCE", super::list(guard.fences())),
            ("CATRACA_DEADLINE", unix_millis(validity.until).to_string()),
        ];
        let child = match Child::start(gate, &self.command, &environment) {
            Ok(child) => child,
            Err(error) => {
                guardian.dismiss().await;
                let why = format!("cannot start the command: {}", reason(&error));
                return Err(Failure::Own(126, Some(why)));
            }
        };
        // Only now is the command let go: whatever happens to us, its guardian knows it.
        guardian.guard(child.group());
        let work = Work { lock: self, guard, guardian, child, kill_at: None, why: None };
        work.run(signals).await
    }
}

impl Work<'_> {
    async fn run(mut self, signals: &mut Signals) -> Result<Ending, Failure> {
        let mut passed_on = None;
        let ending = loop {
            tokio::select! {
                change = self.child.change() => match change {
                    // The others of our group have got what we have got.
                    Change::Ended(Ending::Typed(which)) if passed_on == Some(which) => {
                        break Ending::Signal(which);
                    }
                    Change::Ended(ending) => break ending,
                    Change::Stopped(which) => self.child.rest(which),
                },
                signal = signals.next() => {
                    self.child.signal(signal);
                    passed_on = Some(signal);
                }
                validity = self.guard.changed() => match self.guard.loss() {
                    None => self.guardian.renew(&validity),
                    Some(loss) => self.lose(&loss, validity.until).await,
                },
                end = self.guardian.ended() => self.replace(end).await,
                () = at(self.kill_at) => {
                    self.child.signal(Signal::SIGKILL);
                    self.kill_at = Some(clock::now() + KILLED);
                }
            }
        };
        self.conclude(ending).await
    }

    /// The locks are lost: the command is asked to end.
    async fn lose(&mut self, loss: &Loss, until: Time) {
        let kill_at = match loss {
            loss if loss.is_taken() => clock::now() + LAST_CHANCE,
            Loss::Unrenewed => until,
            _ => until.min(clock::now() + GRACE),
        };
        let why = self.lock.lost(self.guard, "the command was ended").await;
        self.end(kill_at, why);
    }

    fn end(&mut self, kill_at: Time, why: Failure) {
        if self.why.is_none() {
            self.lock.tell(|| "lost; the command is asked to end".to_string());
            self.child.signal(Signal::SIGTERM);
            self.child.signal(Signal::SIGCONT);
            self.why = Some(why);
        }
        self.kill_at = Some(self.kill_at.map_or(kill_at, |sooner| sooner.min(kill_at)));
    }

    /// The guardian is gone. Without one nobody would end the command if we were stopped.
    async fn replace(&mut self, end: End) {
        if end == End::Acted {
            // It is late itself, or we are.
            let why = self.lock.lost(self.guard, "the command was ended").await;
            return self.end(clock::now() + LAST_CHANCE, why);
        }
        let validity = self.guard.validity();
        match Guardian::replace(&validity, self.child.group()) {
            Ok(guardian) => {
                self.guardian = guardian;
                self.lock.warn("the guardian of the command was killed; another one takes over");
            }
            Err(error) => {
                let what = "the guardian of the command was killed, and the command ended: \
                            cannot start another";
                self.end(validity.until.min(clock::now() + GRACE), no_guardian(what, &error));
            }
        }
    }

    /// The command has ended.
    async fn conclude(mut self, ending: Ending) -> Result<Ending, Failure> {
        let is_late = self.guard.validity().lost_at <= clock::now();
        if self.why.is_some() || is_late {
            // The command has ended, but perhaps not all that it started.
            self.child.signal(Signal::SIGKILL);
        }
        // If we were stopped ourselves, the guardian has seen to it.
        if self.guardian.dismiss().await || is_late {
            let lost = self.lock.lost(self.guard, "the command was ended").await;
            return Err(self.why.take().unwrap_or(lost));
        }
        self.why.map_or(Ok(ending), Err)
    }
}

fn no_guardian(what: &str, error: &io::Error) -> Failure {
    Failure::Own(NO_NODE, Some(format!("{what} the guardian: {}", reason(error))))
}

impl Arguments {
    /// How it ends when the locks are lost, which is noticed now.
    pub(super) async fn lost(&self, guard: &Guard, what: &str) -> Failure {
        // The session may be about to notice; it knows best.
        let loss = tokio::time::timeout(LAST_CHANCE, guard.lost()).await.unwrap_or(Loss::Paused);
        let node = format!("the node at {}", guard.address());
        let why = match loss {
            Loss::Paused => "this process was stopped for longer than --ttl allows".to_string(),
            Loss::Unrenewed => format!("{node} did not answer in time"),
            Loss::Over(Over::Stopping) => format!("{node} has stopped"),
            Loss::Over(Over::Unknown) => format!("{node} was restarted"),
            Loss::Over(over) => over.to_string(),
            loss @ Loss::Forced(_) => loss.to_string(),
        };
        let names = self.names.join(" ");
        Failure::Own(super::LOST, Some(format!("lost the lock '{names}': {why}; {what}")))
    }
}

/// The time of the wall clock at `time`.
fn unix_millis(time: Time) -> u128 {
    let left = time.since(clock::now());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now + left).as_millis()
}
