//! `catraca locks`: who holds and who waits.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use catraca_client::{Connection, DurableLine, Line, LineKey, Pages, Query};
use serde_json::json;

use crate::Outcome;
use crate::failure::Failure;
use crate::nodes::NodeArguments;
use crate::output::{Stdout, terminal_width};
use crate::screen::Screen;
use crate::service::block_on;
use crate::table::{Align, Table, counted, lasting};

/// Lists who holds and who waits, in the whole group.
///
/// A waiter's place is its place in the queue of its node: nodes take turns among themselves.
/// Members that do not answer are named on standard error.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Arguments {
    /// Print JSON; with --watch, one line for each look.
    #[arg(long)]
    json: bool,
    /// Look again every second, until Ctrl-C.
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    nodes: NodeArguments,
}

const HELP: &str = "\
Exit codes:
    0  the list was printed
    2  wrong input
  122  a node answers, but stops
  125  no node answers
  130  interrupted";

/// From one look to the next.
const PERIOD: Duration = Duration::from_secs(1);
/// Puts the cursor into the upper left corner and clears the rest of the screen.
const CLEAR: &str = "\x1b[H\x1b[J";

/// The lines below the table: a blank one and the sums.
const FOOT: usize = 2;
/// The lines above its rows: the head and a rule.
const HEAD: usize = 2;

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let is_idle = Cell::new(false);
        match block_on(self.look(&is_idle)) {
            // Between two looks there is nothing that is not whole.
            Err(Failure::Interrupted) if is_idle.get() => Ok(()),
            outcome => outcome,
        }
    }

    /// Looks once, or again and again: then it is idle from one look to the next.
    async fn look(self, is_idle: &Cell<bool>) -> Outcome {
        let redraw = self.watch && !self.json && std::io::stdout().is_terminal();
        loop {
            let mut pages = self.pages().await?;
            let mut sums = Sums::default();
            if redraw {
                draw(&mut pages, &mut sums).await?;
            } else {
                match self.json {
                    true => print_json(&mut pages, &mut sums, !self.watch).await?,
                    false => print_table(&mut pages, &mut sums).await?,
                }
                if let Some(missing) = sums.missing() {
                    // If standard error is closed there is nobody to tell.
                    writeln!(std::io::stderr().lock(), "{missing}").ok();
                }
            }
            if !self.watch {
                return Ok(());
            }
            is_idle.set(true);
            tokio::time::sleep(PERIOD).await;
            is_idle.set(false);
        }
    }

    async fn pages(&self) -> Result<Pages, Failure> {
        let connection = Connection::open_any(self.nodes.nodes()?).await?;
        let query = Query { whole_group: true, limit: u32::MAX, ..Query::default() };
        Ok(Pages::new(connection, query))
    }
}

/// What is left of pages that have been printed: a group may have more lines than fit into memory.
#[derive(Default)]
struct Sums {
    holders: u64,
    waiters: u64,
    silent: BTreeSet<String>,
}

impl Sums {
    /// The lines of the next page, which are counted.
    async fn count(&mut self, pages: &mut Pages) -> Result<Option<Vec<Line>>, Failure> {
        let Some(page) = pages.next_page().await? else { return Ok(None) };
        let held = page.lines.iter().filter(|line| line.key.place == 0).count();
        self.holders += held as u64;
        self.waiters += (page.lines.len() - held) as u64;
        self.silent.extend(page.silent);
        Ok(Some(page.lines))
    }

    fn foot(&self) -> [String; FOOT] {
        let holders = counted(self.holders, "holder", "holders");
        let waiters = counted(self.waiters, "waiter", "waiters");
        [String::new(), format!("{holders}, {waiters}")]
    }

    fn missing(&self) -> Option<String> {
        let silent = self.silent.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        (!silent.is_empty())
            .then(|| format!("catraca: no answer from {silent}; their clients are missing here"))
    }
}

/// Said instead of an empty table.
const NOBODY: &str = "Nobody holds a lock, nobody waits.";

async fn print_table(pages: &mut Pages, sums: &mut Sums) -> Outcome {
    let mut is_begun = false;
    while let Some(page) = sums.count(pages).await? {
        let mut out = Stdout::lock();
        let lines = if page.is_empty() { Vec::new() } else { table(&page) };
        // The rows of all pages are one table.
        for line in lines.iter().skip(if is_begun { HEAD } else { 0 }) {
            writeln!(out, "{line}")?;
        }
        is_begun |= !page.is_empty();
    }
    let mut out = Stdout::lock();
    match is_begun {
        true => sums.foot().iter().try_for_each(|line| writeln!(out, "{line}"))?,
        false => writeln!(out, "{NOBODY}")?,
    }
    out.flush()?;
    Ok(())
}

/// Prints the pages as one object, for people, or on one line.
async fn print_json(pages: &mut Pages, sums: &mut Sums, for_people: bool) -> Outcome {
    let (line_end, indent) = if for_people { ("\n", "    ") } else { ("", "") };
    write!(Stdout::lock(), "{{{line_end}\"locks\":[")?;
    let mut separator = "";
    while let Some(page) = sums.count(pages).await? {
        let mut out = Stdout::lock();
        for line in &page {
            write!(out, "{separator}{line_end}{indent}{}", line_json(line))?;
            separator = ",";
        }
    }
    let mut out = Stdout::lock();
    writeln!(out, "],{line_end}\"silent\":{}{line_end}}}", json!(sums.silent))?;
    out.flush()?;
    Ok(())
}

/// The live view. Who does not answer is told in it: a line on standard error would push it up.
async fn draw(pages: &mut Pages, sums: &mut Sums) -> Outcome {
    let mut rows = Vec::new();
    let mut left_out = 0;
    while let Some(page) = sums.count(pages).await? {
        // No screen shows more than the first page.
        if rows.is_empty() { rows = page } else { left_out += page.len() }
    }
    let mut lines = if rows.is_empty() { vec![NOBODY.to_string()] } else { table(&rows) };
    if !rows.is_empty() {
        if left_out > 0 {
            lines.push(format!("and {left_out} more"));
        }
        lines.extend(sums.foot());
    }
    let missing = sums.missing();
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

/// A page as a table.
fn table(page: &[Line]) -> Vec<String> {
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
    for line in page {
        table.row(cells(line));
    }
    table.lines_within(terminal_width(), &["who", "host"])
}

fn cells(line: &Line) -> Vec<String> {
    let key = &line.key;
    let name = match key.permits {
        1 => key.name.clone(),
        permits => format!("{} (of {permits})", key.name),
    };
    let place = match key.place {
        0 => "holds".to_string(),
        place => format!("waits {place}"),
    };
    let pid = if line.durable.is_some() { "-".to_string() } else { line.pid.to_string() };
    vec![
        name,
        place,
        who(line),
        pid,
        printable(&line.host),
        key.node.clone(),
        lasting(age_of(line)),
        line.fence.map_or("-".to_string(), |fence| fence.to_string()),
    ]
}

/// Who holds or waits, for people.
pub(crate) fn who(line: &Line) -> String {
    printable(&match &line.durable {
        Some(DurableLine { owner, note, .. }) if note.is_empty() => format!("{owner} (durable)"),
        Some(DurableLine { owner, note, .. }) => format!("{owner}: {note} (durable)"),
        None => line.label.clone(),
    })
}

/// For how long somebody has held or waited, in milliseconds.
pub(crate) fn age_of(line: &Line) -> u64 {
    line.durable.as_ref().map_or(line.millis, |durable| age(durable, line.millis))
}

/// For how long a durable hold has been held: longer than at the node where it is now. Of somebody who
/// waits for one, for how long it has waited.
fn age(durable: &DurableLine, waited: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_millis() as u64);
    if durable.unix_millis == 0 { waited } else { now.saturating_sub(durable.unix_millis) }
}

/// What a client says of itself, without what would confuse a terminal.
pub(crate) fn printable(text: &str) -> String {
    let cleaned = text.replace(char::is_control, "?");
    if cleaned.is_empty() { "-".to_string() } else { cleaned }
}

fn line_json(line: &Line) -> serde_json::Value {
    let Line { key, fence, label, pid, host, millis, durable } = line;
    let LineKey { name, permits, place, node, .. } = key;
    let state = if *place == 0 { "holds" } else { "waits" };
    let mut value = json!({
        "name": name, "state": state, "place": place, "permits": permits, "fence": fence,
        "label": label, "pid": pid, "host": host, "node": node, "millis": millis,
    });
    if let Some(durable) = durable {
        value["durable"] = json!({
            "id": durable.id.to_string(), "owner": durable.owner, "note": durable.note,
            "unix_millis": durable.unix_millis,
        });
    }
    value
}
