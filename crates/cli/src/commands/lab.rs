//! `catraca lab`: the algorithms, step by step, in a browser.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use catraca_explorer::serve;
use clap::Subcommand;
use nix::sys::signal::Signal;
use tokio::net::TcpListener;

use super::node::from_here;
use crate::Outcome;
use crate::failure::Failure;
use crate::output::{Stdout, reason};
use crate::signals::Signals;

/// Where the lab is unless said otherwise: lessons link there.
const ADDRESS: &str = "127.0.0.1:7890";

/// Work that is still going on when the lab ends is dropped after this time.
const FAREWELL: Duration = Duration::from_millis(200);

const EXAMPLES: &str = "\
Examples:
  catraca lab serve
  catraca lab serve --listen 127.0.0.1:0

Then open the address that it prints. docs/LAB.md describes the page and the links to states.";

/// The algorithms in a browser: you choose what happens next.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Serve(Serve),
}

/// Serves a page in which you choose which message arrives, who asks, leaves and crashes.
///
/// The checker says on demand what can still happen. Ctrl-C ends it; nothing is kept.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
struct Serve {
    /// Where to listen. Port 0 lets the system choose. The page asks for no password: other machines
    /// should reach it only where everybody may use this one's processors.
    #[arg(long, value_name = "ADDR", default_value = ADDRESS, value_parser = address)]
    listen: SocketAddr,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("'{text}' is no address and port; say one such as {ADDRESS} or 127.0.0.1:0")
    })
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        match self.command {
            Command::Serve(arguments) => arguments.run(),
        }
    }
}

impl Serve {
    fn run(self) -> Outcome {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).max_blocking_threads(8).enable_all().build();
        let runtime = runtime.map_err(|error| Failure::System(error.into()))?;
        let outcome = runtime.block_on(self.serve());
        runtime.shutdown_timeout(FAREWELL);
        outcome
    }

    async fn serve(self) -> Outcome {
        let mut signals = Signals::listen().map_err(|error| Failure::System(error.into()))?;
        let listener = TcpListener::bind(self.listen).await.map_err(|error| {
            let why = reason(&error);
            Failure::input(format!(
                "--listen: cannot listen at {}: {why}; take another port, or 0 for a free one",
                self.listen
            ))
        })?;
        let address = listener.local_addr().map_err(|error| Failure::System(error.into()))?;
        greet(address)?;
        let end = async {
            while let Signal::SIGHUP | Signal::SIGUSR1 | Signal::SIGUSR2 = signals.next().await {}
        };
        serve(listener, end).await;
        Ok(())
    }
}

fn greet(address: SocketAddr) -> Outcome {
    let mut out = Stdout::lock();
    writeln!(out, "The lab is at http://{}/ (Ctrl-C ends it)", from_here(address))?;
    if !address.ip().is_loopback() {
        writeln!(out, "Whoever reaches {address} can use it: it asks for no password.")?;
    }
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_an_ip_and_a_port() {
        assert!(address("127.0.0.1:0").is_ok() && address("[::1]:7890").is_ok());
        for text in ["", "7890", ":7890", "127.0.0.1", "localhost:7890", "127.0.0.1:99999"] {
            assert!(address(text).unwrap_err().contains("is no address and port"), "{text}");
        }
    }
}
