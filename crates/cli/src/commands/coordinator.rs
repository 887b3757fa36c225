//! `catraca coordinator`: S3's coordinator.

use std::io::{Write, stdin};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use anyhow::Context;
use catraca_classroom::{
    Connections, Ended, InputEnd, LOG, Limits, Log, Server, answer_terminal, listen, may_read,
};

use crate::Outcome;
use crate::failure::Failure;
use crate::interrupt;
use crate::open_files;
use crate::output::{Stdout, append, reason};

/// Where coordinator and processes meet unless they are told otherwise.
pub(crate) const ADDRESS: &str = "127.0.0.1:7880";

/// Files that are no connections: the log, the terminal, those of the runtime.
const OTHER_FILES: u64 = 64;

const NOTES: &str = "\
A message has 10 bytes: 1|ID|digits is a REQUEST, 2|ID|digits a GRANT, 3|ID|digits a RELEASE. An id
has 1 to 7 ASCII characters other than '|' and belongs to one connection at a time. Who hangs up
while waiting leaves the queue; who hangs up inside releases. What is wrong is answered by closing
the connection, and the log says why. Times are UTC.

On standard input, from a terminal or a pipe: queue (fila), served (atendimentos), quit (sair), help
(ajuda). The end of the input ends nothing, so it runs as a daemon too.

Examples:
  catraca coordinator
  catraca coordinator --listen 0.0.0.0:7880 --log log.txt < /dev/null &
  (sleep 5; echo served; echo quit) | catraca coordinator";

/// Runs S3's coordinator: one critical section, over TCP, first come first served.
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub(crate) struct Arguments {
    /// Where to listen; port 0 is any free port.
    #[arg(long, value_name = "ADDR", default_value = ADDRESS)]
    listen: String,
    /// The log, one line a message; lines are added to a file that exists.
    #[arg(long, value_name = "FILE", default_value = LOG)]
    log: PathBuf,
    /// Quits when standard input ends.
    #[arg(long)]
    until_input_ends: bool,
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let listener = listen(&self.listen).map_err(|error| match error.is_wrong_input() {
            true => Failure::input(format!("--listen: {error}")),
            false => Failure::System(error.into()),
        })?;
        let address = listener.local_addr().context("cannot tell where it listens");
        let address = address.map_err(Failure::System)?;
        let log = Log::new(append(&self.log)?);
        let limits = Limits::default();
        open_files::allow(u64::from(limits.clients) + OTHER_FILES);
        let server = Server::new(listener, log, limits);
        let log = self.log.display();
        writeln!(Stdout::lock(), "listening at {address}, log in {log}; say help")?;
        answer_commands(server.connections(), self.until_input_ends);
        match server.run(&interrupt::flag()) {
            Ok(Ended::Quit) => Ok(()),
            Ok(Ended::Interrupted) => Err(Failure::Interrupted),
            Err(error) => {
                let what = format!("cannot write the log '{log}': {}", reason(&error));
                Err(Failure::System(anyhow::Error::msg(what)))
            }
        }
    }
}

/// In a thread of its own, which may wait for a line until the process ends.
fn answer_commands(connections: Arc<Connections>, until_input_ends: bool) {
    if !may_read(stdin()) {
        return;
    }
    thread::spawn(move || match answer_terminal(stdin().lock(), Stdout::lock(), &connections) {
        InputEnd::EndOfInput if !until_input_ends => {}
        InputEnd::EndOfInput | InputEnd::Quit => connections.quit(),
    });
}
