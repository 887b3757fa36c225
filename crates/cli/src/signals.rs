//! Signals that a long-running command listens to.

use std::io;
use std::task::Poll;

use nix::sys::signal::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// Those that ask a process to end, or to do something; `catraca lock` passes them on.
const FORWARDED: [Signal; 6] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// Signals that have come.
pub(crate) struct Signals(Vec<(Signal, Stream)>);

impl Signals {
    /// Begins to listen. Signals that whoever started us had ignored stay ignored, here and in the
    /// command: `nohup` relies on it.
    pub(crate) fn listen() -> io::Result<Self> {
        let ignored = ignored();
        let heard = FORWARDED.into_iter().filter(|&which| ignored & mask(which) == 0);
        let stream = |which: Signal| Ok((which, signal(SignalKind::from_raw(which as i32))?));
        heard.map(stream).collect::<io::Result<_>>().map(Signals)
    }

    /// The next one. Nothing is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            for (which, stream) in &mut self.0 {
                if stream.poll_recv(context).is_ready() {
                    return Poll::Ready(*which);
                }
            }
            Poll::Pending
        })
        .await
    }
}

fn mask(which: Signal) -> u64 {
    1 << (which as i32 - 1)
}

/// The signals that this process ignores, as far as the system tells.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
