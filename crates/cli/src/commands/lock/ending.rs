//! How `catraca lock` ends: with an exit code, or of the signal that was typed.

use std::io;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::{getpgrp, tcgetpgrp};
use signal_hook::low_level::emulate_default_handler;

use crate::Outcome;
use crate::service::ends_with;

/// How it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With this exit code.
    Code(u8),
    /// This signal came to us, and ended us or the command.
    Signal(Signal),
    /// This signal ended the command while it had the terminal, and did not come to us.
    Typed(Signal),
}

impl Ending {
    /// The command was ended by `which`, and had the terminal, or not.
    pub(crate) fn of(which: Signal, has_terminal: bool) -> Self {
        if has_terminal && is_typed(which) { Ending::Typed(which) } else { Ending::Signal(which) }
    }

    /// Ends as the caller expects. A script goes on after a command that exits with 130; it stops if
    /// Ctrl-C comes to it and the command has died of it. So at a terminal we die of it too, and if
    /// only the command's process group has got it, ours gets it now.
    pub(crate) fn conclude(self) -> Outcome {
        let code = match self {
            Ending::Code(code) => code,
            Ending::Signal(which) | Ending::Typed(which) => {
                if self == Ending::Typed(which) {
                    killpg(getpgrp(), which).ok();
                }
                if is_typed(which) && has_terminal() {
                    emulate_default_handler(which as i32).ok();
                }
                128 + which as u8
            }
        };
        ends_with(code)
    }
}

/// Whether it is one that the terminal sends for a key, to end what runs there.
fn is_typed(which: Signal) -> bool {
    matches!(which, Signal::SIGINT | Signal::SIGQUIT)
}

/// Whether the terminal, if there is one, belongs to our process group.
pub(crate) fn has_terminal() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground == getpgrp())
}
