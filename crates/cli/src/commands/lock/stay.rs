//! Locks that are held without a command, until a signal or the end of input.

use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;

use catraca_client::Guard;
use nix::sys::signal::Signal;
use nix::sys::stat::{SFlag, fstat};
use tokio::sync::oneshot;

use super::Arguments;
use super::ending::{Ending, has_terminal};
use crate::failure::Failure;
use crate::output::{Stdout, reason};
use crate::service::NO_NODE;
use crate::signals::Signals;

impl Arguments {
    /// Holds the locks without a command.
    pub(super) async fn stay(
        &self,
        guard: &Guard,
        signals: &mut Signals,
    ) -> Result<Ending, Failure> {
        let mut out = Stdout::lock();
        let said = writeln!(out, "{}", super::list(guard.fences())).and_then(|()| out.flush());
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
                _ = guard.lost() => return Err(self.lost(guard, "it is no longer held").await),
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
