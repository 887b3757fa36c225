//! The terminal that `catraca top` draws on, which is given back as it was.

use std::io;
use std::thread;

use ratatui::backend::Backend;
use ratatui::crossterm::event::{self, Event};
use ratatui::{DefaultTerminal, restore, try_init};
use tokio::sync::mpsc;

/// So many keys may wait to be looked at; whoever holds one down types no faster than they are.
const MOST_EVENTS: usize = 64;

/// A terminal in raw mode, with a screen of its own. It is restored when this is dropped, and before a panic
/// is told.
pub(super) struct Terminal(DefaultTerminal);

impl Terminal {
    pub(super) fn take() -> io::Result<Self> {
        try_init().map(Terminal)
    }

    /// Gives the terminal back, stops this process as Ctrl-Z does, and takes the terminal again when it goes on.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        restore();
        nix::sys::signal::raise(nix::sys::signal::Signal::SIGTSTP)?;
        self.0 = try_init()?;
        // Not the terminal's own way to clear it, which asks where the cursor is: the answer would be taken
        // for keys by whoever reads them.
        self.0.backend_mut().clear()
    }
}

impl std::ops::Deref for Terminal {
    type Target = DefaultTerminal;

    fn deref(&self) -> &DefaultTerminal {
        &self.0
    }
}

impl std::ops::DerefMut for Terminal {
    fn deref_mut(&mut self) -> &mut DefaultTerminal {
        &mut self.0
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// What is typed, and how the window changes, until the terminal is gone. Reading blocks, so a thread does it;
/// it ends with the process.
pub(super) fn events() -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel(MOST_EVENTS);
    thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.blocking_send(event).is_err() {
                return;
            }
        }
    });
    receiver
}
