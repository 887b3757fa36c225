//! `catraca locks`: who holds and who waits.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use catraca_node::{Client, ClientError, Line, Listing};
use serde_json::json;

use crate::Outcome;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{Stdout, reason, terminal_width};
use crate::screen::Screen;
use crate::table::{Align, Table, counted, lasting};
use crate::value::at_node;

/// Lists who holds and who waits, in the whole group.
///
/// A waiter's place is its place in the queue of its node: nodes take turns among themselves.
/// Members that do not answer are named on standard error.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Print JSON; with --watch, one line for each look.
    #[arg(long)]
    json: bool,
    /// Look again every second, until Ctrl-C.
    #[arg(short, long)]
    watch: bool,
    /// The node to ask.
    #[arg(long, default_value = catraca_node::DEFAULT_ADDRESS, env = "CATRACA_NODE", value_name = "ADDR", value_parser = at_node)]
    node: String,
}

/// From one look to the next.
const PERIOD: Duration = Duration::from_secs(1);
/// How soon Ctrl-C is noticed.
const TICK: Duration = Duration::from_millis(50);
/// Puts the cursor into the upper left corner and clears the rest of the screen.
const CLEAR: &str = "\x1b[H\x1b[J";

/// The lines below the table: a blank one and the sums.
const FOOT: usize = 2;

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        block_on(self.look())
    }

    async fn look(self) -> Outcome {
        let redraw = self.watch && !self.json && std::io::stdout().is_terminal();
        loop {
            let listing = self.ask().await?;
            let silent = listing.silent.join(", ");
            let missing =
                format!("catraca: no answer from {silent}; their clients are missing here");
            let missing = (!silent.is_empty()).then_some(missing);
            if redraw {
                draw(lines(&listing), missing)?;
            } else {
                self.print(&listing)?;
                if let Some(missing) = missing {
                    // If standard error is closed there is nobody to tell.
                    writeln!(std::io::stderr().lock(), "{missing}").ok();
                }
            }
            if !self.watch || !pause().await {
                return Ok(());
            }
        }
    }

    async fn ask(&self) -> Result<Listing, ClientError> {
        Client::connect(&self.node).await?.locks(true).await
    }

    fn print(&self, listing: &Listing) -> Outcome {
        let text = if self.json {
            let lines: Vec<_> = listing.lines.iter().map(line_json).collect();
            let value = json!({ "locks": lines, "silent": listing.silent });
            if self.watch { value.to_string() } else { format!("{value:#}") }
        } else {
            lines(listing).join("\n")
        };
        let mut out = Stdout::lock();
        writeln!(out, "{text}")?;
        out.flush()?;
        Ok(())
    }
}

/// The live view. Who does not answer is told in it: a line on standard error would push it up.
fn draw(mut lines: Vec<String>, missing: Option<String>) -> Outcome {
    let foot = FOOT + usize::from(missing.is_some());
    lines.extend(missing);
    if let Some(screen) = Screen::of_stdout() {
        lines = screen.fit(&lines, foot);
    }
    let mut out = Stdout::lock();
    write!(out, "{CLEAR}")?;
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(())
}

/// Who holds and who waits, as a table with its sums.
fn lines(listing: &Listing) -> Vec<String> {
    if listing.lines.is_empty() {
        return vec!["Nobody holds a lock, nobody waits.".to_string()];
    }
    let mut table = Table::new(&[
        ("lock", Align::Left),
        ("place", Align::Left),
        ("who", Align::Left),
        ("pid", Align::Right),
        ("host", Align::Left),
        ("node", Align::Left),
        ("for", Align::Right),
        ("fence", Align::Left),
    ]);
    for line in &listing.lines {
        table.row(cells(line));
    }
    let mut lines = table.lines_within(terminal_width(), &["who", "host"]);
    let held = listing.lines.iter().filter(|line| line.place == 0).count();
    let holders = counted(held as u64, "holder", "holders");
    let waiters = counted((listing.lines.len() - held) as u64, "waiter", "waiters");
    lines.extend([String::new(), format!("{holders}, {waiters}")]);
    lines
}

fn cells(line: &Line) -> Vec<String> {
    let name = match line.permits {
        1 => line.name.clone(),
        permits => format!("{} (of {permits})", line.name),
    };
    let place = match line.place {
        0 => "holds".to_string(),
        place => format!("waits {place}"),
    };
    vec![
        name,
        place,
        printable(&line.label),
        line.pid.to_string(),
        printable(&line.host),
        line.node.clone(),
        lasting(line.millis),
        line.fence.map_or("-".to_string(), |fence| fence.to_string()),
    ]
}

/// What a client says of itself, without what would confuse a terminal.
fn printable(text: &str) -> String {
    let cleaned = text.replace(char::is_control, "?");
    if cleaned.is_empty() { "-".to_string() } else { cleaned }
}

fn line_json(line: &Line) -> serde_json::Value {
    let Line { name, permits, place, fence, node, label, pid, host, millis } = line;
    let state = if *place == 0 { "holds" } else { "waits" };
    json!({
        "name": name, "state": state, "place": place, "permits": permits, "fence": fence,
        "label": label, "pid": pid, "host": host, "node": node, "millis": millis,
    })
}

/// Waits for the next look. Returns false if it is not wanted any more.
async fn pause() -> bool {
    let mut left = PERIOD;
    while !left.is_zero() && !interrupt::requested() {
        tokio::time::sleep(TICK).await;
        left -= TICK;
    }
    !interrupt::requested()
}

/// Runs what talks to a node.
pub(crate) fn block_on(work: impl Future<Output = Outcome>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let system = |error: std::io::Error| Failure::System(anyhow::Error::msg(reason(&error)));
    runtime.map_err(system)?.block_on(work)
}
