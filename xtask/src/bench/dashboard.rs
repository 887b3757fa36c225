//! What an open dashboard costs: a node with very many locks, of which many change every second, without a page
//! and with one in a real browser.

#[allow(clippy::unwrap_used, clippy::panic, reason = "a browser that fails ends the measurement")]
#[allow(dead_code, reason = "tests use more of it")]
#[path = "../../../crates/cli/tests/support/browser.rs"]
mod browser;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use catraca_client::{Client, Guard};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::interval;

use self::browser::Browser;
use crate::shell;

/// No event of a browser takes nearly so long.
const GENEROUS: Duration = Duration::from_secs(300);
/// So many locks are held by one session, which may have some more.
const HELD_EACH: usize = 9000;
/// The names of those that change.
const BUSY: usize = 2000;
/// One of them, whose own page is looked at.
const ONE_OF_THEM: &str = "lock/held%2F000000x";
/// A page that draws nothing for longer has stalled, in milliseconds.
const LONGEST_FRAME: f64 = 1000.0;
/// A page whose script goes on for longer does not answer whoever uses it meanwhile, in milliseconds.
const LONGEST_TASK: f64 = 500.0;
/// With a page open the node still does this share of the changes that are wanted of it.
const LEAST_SHARE: f64 = 0.95;
/// A lock is not to take longer than so many times what it takes when nobody looks, and never longer than the
/// second bound says.
const MOST_SLOWED: f64 = 5.0;
const LEAST_BOUND: Duration = Duration::from_millis(20);
/// Before something is measured it has gone on for so long.
const WARM_UP: Duration = Duration::from_secs(5);
/// What the page itself keeps in mind of its frames and tasks.
const WATCH: &str = "
    window.seen = { frame: 0, task: 0 };
    let last = performance.now();
    const frame = now => { seen.frame = Math.max(seen.frame, now - last); last = now; requestAnimationFrame(frame); };
    requestAnimationFrame(now => { last = now; frame(now); });
    new PerformanceObserver(list => {
        for (const entry of list.getEntries()) seen.task = Math.max(seen.task, entry.duration);
    }).observe({ type: 'longtask' });";
const BEGIN: &str = "seen.frame = 0; seen.task = 0";
const SEEN: &str = "return { ...seen, heap: performance.memory.usedJSHeapSize,
    elements: document.querySelectorAll('*').length, live: document.getElementById('live').dataset.state }";

/// How much there is, and for how long.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many locks are held all the time
    #[arg(long, default_value_t = 100_000)]
    locks: usize,
    /// How many changes of other locks there are in a second: half of them grants, half releases
    #[arg(long, default_value_t = 1000)]
    changes: usize,
    /// How long each part is measured, in seconds
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Measures this binary, and not one that is built for it
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// Prints a table, and fails if the page or the node stalls.
pub(crate) fn measure(options: &Options) -> Result<()> {
    crate::packages::install(&["chromium", "chromium-driver"], "cargo xtask bench dashboard")?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => {
            shell::run("cargo build --quiet --release --package catraca")?;
            shell::built("release/catraca")
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure_all(&binary, options))
}

async fn measure_all(binary: &Path, options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let node = Node::start(binary, folder.path())?;
    let held = hold(&node.address, options.locks).await?;
    println!("{} locks are held, {} changes a second", options.locks, options.changes);
    println!(
        "{:<28} {:>9} {:>9} {:>9} {:>10} {:>10} {:>10} {:>10} {:>9}",
        "",
        "node CPU",
        "p50 ms",
        "p99 ms",
        "node MiB",
        "frame ms",
        "task ms",
        "heap MiB",
        "changes/s"
    );
    let time = Duration::from_secs(options.seconds);
    let alone = node.under_load(options.changes, time, None).await?;
    alone.print("no page");
    let mut stalled = Vec::new();
    for (what, view) in [
        ("overview", ""),
        ("locks, by name", "locks"),
        ("locks, held longest", "locks?order=held"),
        ("one lock that changes", ONE_OF_THEM),
        ("members", "members"),
    ] {
        let http = node.http.clone();
        // It waits for the browser, so it needs a thread of its own.
        let browser = tokio::task::spawn_blocking(move || open(&http, view)).await?;
        let row = node.under_load(options.changes, time, Some(browser)).await?;
        row.print(what);
        stalled.extend(row.stalls(&alone, options.changes).map(|why| format!("{what}: {why}")));
    }
    drop(held);
    ensure!(stalled.is_empty(), "the page or the node stalls: {}", stalled.join("; "));
    println!("Neither the page nor the node stalls.");
    Ok(())
}

fn open(http: &str, view: &str) -> Browser {
    let browser = Browser::start();
    browser.resize(1400, 900);
    browser.goto(&format!("http://{http}/#/{view}"));
    browser
        .wait_for("it is live", "return document.getElementById('live')?.dataset.state === 'live'");
    let is_read = "return !document.getElementById('said')?.textContent.includes('reading')";
    browser.wait_for("the list is read", is_read);
    browser.run_script(WATCH);
    browser
}

/// A node, which ends with this.
struct Node {
    process: Child,
    address: String,
    http: String,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

impl Node {
    fn start(binary: &Path, folder: &Path) -> Result<Self> {
        let free =
            || Ok::<_, std::io::Error>(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string());
        let (address, http) = (free()?, free()?);
        let mut command = Command::new(binary);
        command.args([
            "node", "--listen", &address, "--http", &http, "--data", "data", "--lease", "60s",
        ]);
        let process = command.current_dir(folder).stdout(Stdio::piped()).spawn();
        let mut process = process.context("the node cannot be started")?;
        let said = process.stdout.take().context("it has an output")?;
        let mut lines = BufReader::new(said).lines();
        let is_ready =
            |line: std::io::Result<String>| line.is_ok_and(|it| it.contains("listens at"));
        ensure!(lines.any(is_ready), "the node did not start");
        Ok(Node { process, address, http })
    }

    /// What it costs while locks are taken and given back.
    async fn under_load(
        &self,
        changes: usize,
        time: Duration,
        page: Option<Browser>,
    ) -> Result<Row> {
        let client = Client::builder().addresses([&self.address]).connect().await?;
        load(&client, changes, WARM_UP).await?;
        if let Some(page) = &page {
            page.run_script(BEGIN);
        }
        let (cpu, began) = (self.cpu()?, Instant::now());
        let mut took = load(&client, changes, time).await?;
        let share = (self.cpu()? - cpu) / began.elapsed().as_secs_f64();
        let rate = 2.0 * took.len() as f64 / began.elapsed().as_secs_f64();
        took.sort_unstable();
        let at = |share: f64| {
            let index = (share * took.len() as f64) as usize;
            took.get(index.min(took.len().saturating_sub(1))).copied().unwrap_or_default()
        };
        let (p50, p99) = (at(0.5), at(0.99));
        let (memory, seen) = (self.memory()?, page.map(|page| page.run_script(SEEN)));
        client.close().await?;
        Ok(Row { share, p50, p99, memory, seen, rate })
    }

    /// Seconds of a processor that it has used.
    fn cpu(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        // Its name, which may have spaces in it, is in brackets.
        let rest = stat.rsplit_once(')').context("it has a name")?.1;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|it| it.parse::<f64>().ok());
        let sum = ticks(11).zip(ticks(12)).map(|(user, system)| user + system);
        // The system counts in hundredths of a second for everybody.
        Ok(sum.context("its times are told")? / 100.0)
    }

    fn memory(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(kib.context("its memory is told")? / 1024.0)
    }
}

struct Row {
    share: f64,
    p50: Duration,
    p99: Duration,
    memory: f64,
    seen: Option<Value>,
    rate: f64,
}

impl Row {
    /// What is worse than it may be, beside what the node does when nobody looks.
    fn stalls(&self, alone: &Row, changes: usize) -> impl Iterator<Item = String> {
        let of = |name: &str| self.seen.as_ref().and_then(|seen| seen[name].as_f64());
        let over = |name: &str, most: f64| of(name).is_none_or(|value| value > most);
        let is_live = self.seen.as_ref().is_some_and(|seen| seen["live"] == "live");
        let slowest = LEAST_BOUND.max(alone.p99.mul_f64(MOST_SLOWED));
        let wanted = LEAST_SHARE * alone.rate.min(changes as f64);
        let found = [
            (!is_live, "it is not live any more".to_string()),
            (over("frame", LONGEST_FRAME), format!("no frame for over {LONGEST_FRAME} ms")),
            (over("task", LONGEST_TASK), format!("a task of over {LONGEST_TASK} ms")),
            (self.p99 > slowest, format!("99 of 100 locks take up to {:?}", self.p99)),
            (self.rate < wanted, format!("{:.0} changes a second only", self.rate)),
        ];
        found.into_iter().filter_map(|(is_so, what)| is_so.then_some(what))
    }

    fn print(&self, what: &str) {
        let millis = |time: Duration| time.as_secs_f64() * 1000.0;
        let of = |name: &str| self.seen.as_ref().and_then(|seen| seen[name].as_f64());
        let shown =
            |value: Option<f64>| value.map_or("–".to_string(), |value| format!("{value:.0}"));
        println!(
            "{what:<28} {:>8.1}% {:>9.2} {:>9.2} {:>10.0} {:>10} {:>10} {:>10} {:>9.0}",
            100.0 * self.share,
            millis(self.p50),
            millis(self.p99),
            self.memory,
            shown(of("frame")),
            shown(of("task")),
            shown(of("heap").map(|bytes| bytes / f64::from(1 << 20))),
            self.rate
        );
        if let Some(seen) = &self.seen {
            println!("{:<28} {} elements, {}", "", seen["elements"], seen["live"]);
        }
    }
}

/// Takes so many locks, and keeps them.
async fn hold(address: &str, count: usize) -> Result<Vec<(Client, Vec<Guard>)>> {
    let mut tasks = JoinSet::new();
    for begin in (0..count).step_by(HELD_EACH) {
        let address = address.to_string();
        tasks.spawn(async move {
            let client = Client::builder().addresses([address]).connect().await?;
            let mut held = Vec::with_capacity(HELD_EACH);
            for number in begin..count.min(begin + HELD_EACH) {
                held.push(client.lock(format!("held/{number:06}")).await?);
            }
            anyhow::Ok((client, held))
        });
    }
    let mut all = Vec::new();
    while let Some(task) = tasks.join_next().await {
        all.push(task??);
    }
    Ok(all)
}

/// Takes locks and gives them back, so often a second, whatever the others take. Returns how long each took.
async fn load(client: &Client, changes: usize, time: Duration) -> Result<Vec<Duration>> {
    let mut tasks = JoinSet::new();
    let mut ticks = interval(Duration::from_secs(2) / u32::try_from(changes)?.max(2));
    let mut took = Vec::new();
    let began = Instant::now();
    let mut number = 0;
    while began.elapsed() < time {
        ticks.tick().await;
        // Beside those that are held, all over the list.
        let name = format!("held/{:06}x", (number * 7919) % BUSY * 50);
        number += 1;
        let lock = client.lock(name);
        tasks.spawn(async move {
            let began = Instant::now();
            let guard = lock.await?;
            let took = began.elapsed();
            guard.release().await?;
            anyhow::Ok(took)
        });
        while let Some(done) = tasks.try_join_next() {
            took.push(done??);
        }
    }
    while let Some(done) = tasks.join_next().await {
        took.push(done??);
    }
    Ok(took)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(p99_ms: u64, rate: f64, seen: Option<Value>) -> Row {
        let p99 = Duration::from_millis(p99_ms);
        Row { share: 0.1, p50: p99 / 2, p99, memory: 1.0, seen, rate }
    }

    #[test]
    fn a_page_or_a_node_that_stalls_is_found_and_others_are_not() {
        let alone = row(3, 1000.0, None);
        let seen = |frame: u32, task: u32, live: &str| {
            Some(json!({"frame": frame, "task": task, "live": live}))
        };
        let found = |row: Row| row.stalls(&alone, 1000).count();
        assert_eq!(found(row(19, 990.0, seen(90, 0, "live"))), 0);
        assert_eq!(found(row(3, 1000.0, seen(1200, 0, "live"))), 1);
        assert_eq!(found(row(3, 1000.0, seen(20, 700, "lost"))), 2);
        assert_eq!(found(row(40, 700.0, seen(20, 0, "live"))), 2);
        assert_eq!(found(row(3, 1000.0, None)), 3, "nobody has looked");
    }
}
