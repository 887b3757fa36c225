//! `catraca demo`: real nodes on the loopback interface, clients contending, in one terminal.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use catraca_node::{
    Config, DEFAULT_ALGORITHM, LEASE_RANGE, MOST_MEMBERS, Member, Memory, Namespace, Node,
    Readiness, Refusal,
};
use catraca_sim::{Hooks, Scenario, run};
use tokio::net::TcpListener;

use crate::failure::Failure;
use crate::output::Stdout;
use crate::screen::Screen;
use crate::table::{Align, Table, counted, maybe};
use crate::{Outcome, interrupt, value};

/// The lock that everybody wants.
const LOCK: &str = "demo";
/// From one picture to the next.
const BEAT: Duration = Duration::from_millis(500);
/// How often it is looked whether the group is whole.
const LOOK: Duration = Duration::from_millis(2);
/// The lines below the table: a blank one and the figures.
const FOOT: usize = 2;
/// From fewer entries nobody should conclude how many messages an entry takes.
const ENOUGH: u64 = 20;

/// Runs nodes and clients on this machine and shows what happens
#[derive(clap::Args)]
#[command(after_help = "Ctrl-C ends the demonstration early; the summary comes all the same.\n\
    The simulator runs the same load, and its figure stands beside the measured one.")]
pub(crate) struct Arguments {
    /// The algorithm
    #[arg(long, value_name = "NAME", default_value = DEFAULT_ALGORITHM)]
    algorithm: String,
    /// How many nodes
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value::at_least(1usize))]
    nodes: usize,
    /// How many clients, spread over the nodes
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = value::at_least(1usize))]
    clients: usize,
    /// How long a client holds the lock
    #[arg(long, value_name = "TIME", default_value = "2ms", value_parser = value::duration)]
    hold: Duration,
    /// How long the demonstration takes
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = some_time)]
    time: Duration,
}

/// Whether all nodes are in one view, and grant locks.
fn are_together(nodes: &[Node]) -> bool {
    let all: Vec<_> = nodes.iter().map(Node::status).collect();
    all.iter().all(|status| {
        let is_whole = status.members.iter().all(|member| member.is_in_view);
        status.readiness == Readiness::Ready && status.epoch == all[0].epoch && is_whole
    })
}

/// Without any time nobody enters, and there is nothing to show.
fn some_time(text: &str) -> Result<Duration, String> {
    let time = value::duration(text)?;
    let none = || format!("'{text}' is no time to show anything: give one such as 10s");
    if time.is_zero() { Err(none()) } else { Ok(time) }
}

/// What the clients have seen.
#[derive(Default)]
struct Seen {
    entries: AtomicU64,
    by_node: Vec<AtomicU64>,
    waiting: Vec<AtomicU64>,
    /// The node whose client is inside, counted from 1; 0 for nobody.
    holder: AtomicU64,
    last_fence: AtomicU64,
    left_at: Mutex<Option<Instant>>,
    /// Nanoseconds from a release to the next entry, added up, and how many.
    between: AtomicU64,
    changes: AtomicU64,
    broken: AtomicBool,
}

impl Seen {
    fn enter(&self, node: usize, fence: u64) {
        if self.holder.swap(node as u64 + 1, Ordering::SeqCst) != 0
            || self.last_fence.swap(fence, Ordering::SeqCst) >= fence
        {
            self.broken.store(true, Ordering::SeqCst);
        }
        self.entries.fetch_add(1, Ordering::Relaxed);
        self.by_node[node].fetch_add(1, Ordering::Relaxed);
        let left_at = self.left_at.lock().ok().and_then(|mut left_at| left_at.take());
        if let Some(left_at) = left_at {
            self.between.fetch_add(left_at.elapsed().as_nanos() as u64, Ordering::Relaxed);
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn leave(&self) {
        self.holder.store(0, Ordering::SeqCst);
        if let Ok(mut left_at) = self.left_at.lock() {
            *left_at = Some(Instant::now());
        }
    }

    /// The mean time from a release to the next entry, in microseconds, if there was one.
    fn hand_over(&self) -> Option<f64> {
        let changes = self.changes.load(Ordering::Relaxed);
        let between = self.between.load(Ordering::Relaxed) as f64 / 1e3;
        (changes > 0).then(|| between / changes as f64)
    }
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        if self.nodes > MOST_MEMBERS {
            let what = format!("--nodes: a group has at most {MOST_MEMBERS} members");
            return Err(Failure::Input(what));
        }
        let scenario = self.scenario();
        // Wrong algorithms are known before anything is started.
        scenario.setup().map_err(|error| match error {
            catraca_sim::ScenarioError::Spec(error) => Failure::from(error),
            error => Failure::input(error),
        })?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| Failure::System(error.into()))?;
        let shown = runtime.block_on(self.show())?;
        self.conclude(&scenario, &shown)
    }

    /// The same load for the simulator: every node that has clients asks again and again.
    fn scenario(&self) -> Scenario {
        let hold = self.hold.as_secs_f64() * 1e3;
        let asking = self.clients.min(self.nodes);
        let scenario = Scenario::new()
            .with("algorithm", &self.algorithm)
            .with("nodes", self.nodes)
            .with("workload.hold", hold)
            .with("network.delay", 0.05)
            .with("run.warmup", self.warm_up())
            .with("run.entries", 20_000);
        match asking {
            asking if asking < self.nodes => {
                scenario.with("workload.requesters", format!("0..{}", asking - 1))
            }
            _ => scenario,
        }
    }

    /// So many entries are not like the later ones: the first token or queue is on its way.
    fn warm_up(&self) -> u64 {
        2 * self.nodes as u64
    }

    async fn show(&self) -> Result<Shown, Failure> {
        let nodes = tokio::select! {
            nodes = self.start() => Arc::new(nodes.map_err(Failure::System)?),
            () = interrupt::asked() => return Err(Failure::Interrupted),
        };
        let counts = || (0..self.nodes).map(|_| AtomicU64::new(0)).collect();
        let seen = Arc::new(Seen { by_node: counts(), waiting: counts(), ..Seen::default() });
        let over = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..self.clients)
            .map(|client| {
                let (nodes, seen, over) =
                    (Arc::clone(&nodes), Arc::clone(&seen), Arc::clone(&over));
                tokio::spawn(contend(nodes, client % self.nodes, seen, over, self.hold))
            })
            .collect();
        let begin = Instant::now();
        let mut picture = Picture::new();
        while begin.elapsed() < self.time && !interrupt::requested() {
            unless_asked_to_end(BEAT.min(self.time)).await;
            let (entries, messages) = (seen.entries.load(Ordering::Relaxed), messages(&nodes));
            picture.draw(&self.lines(&seen, entries, messages, begin.elapsed()))?;
        }
        let shown = Shown {
            entries: seen.entries.load(Ordering::Relaxed),
            messages: messages(&nodes),
            time: begin.elapsed(),
            hand_over: seen.hand_over(),
            broken: seen.broken.load(Ordering::SeqCst),
        };
        over.store(true, Ordering::Relaxed);
        for client in clients {
            // They end by themselves: whoever waits is let in, and sees that it is over.
            let ended = client.await.map_err(|error| Failure::System(error.into()))?;
            ended.map_err(|error| Failure::System(error.into()))?;
        }
        Ok(shown)
    }

    async fn start(&self) -> Result<Vec<Node>> {
        let mut listeners = Vec::new();
        let mut members = Vec::new();
        for index in 0..self.nodes {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?.to_string();
            members.push(Member { name: format!("n{index:02}"), address, cluster: None });
            listeners.push(listener);
        }
        // All of them are in this process, and so is their registry.
        let registry = Memory::default();
        let mut nodes = Vec::new();
        for (member, listener) in members.iter().zip(listeners) {
            let mut config = Config::new(&member.name, members.clone());
            // Every entry goes through the algorithm, as in the simulator.
            config.turns.handovers = 0;
            let all = Namespace { resources: 1, ..Namespace::new("*", &self.algorithm) };
            config.namespaces.push(all);
            // Clients keep the machine busy, and no node is to lose its lease because of that.
            config.lease = *LEASE_RANGE.end();
            let registry = Arc::new(registry.clone());
            nodes.push(Node::start_with(config, listener, registry).await?);
        }
        while !are_together(&nodes) {
            tokio::time::sleep(LOOK).await;
        }
        Ok(nodes)
    }

    fn lines(&self, seen: &Seen, entries: u64, messages: u64, time: Duration) -> Vec<String> {
        let holder = seen.holder.load(Ordering::Relaxed) as usize;
        let mut table = Table::new(&[
            ("node", Align::Left),
            ("", Align::Left),
            ("waiting", Align::Right),
            ("entries", Align::Right),
        ]);
        for node in 0..self.nodes {
            table.row(vec![
                format!("n{node:02}"),
                if holder == node + 1 { "inside" } else { "" }.to_string(),
                seen.waiting[node].load(Ordering::Relaxed).to_string(),
                seen.by_node[node].load(Ordering::Relaxed).to_string(),
            ]);
        }
        let mut lines = table.lines();
        lines.push(String::new());
        lines.push(format!(
            "{}: {:.0} grants/s, {} messages per entry, hand-over {} us, {:.1} s",
            self.algorithm,
            entries as f64 / time.as_secs_f64(),
            maybe((entries > 0).then(|| messages as f64 / entries as f64)),
            seen.hand_over().map_or("-".to_string(), |micros| format!("{micros:.0}")),
            time.as_secs_f64(),
        ));
        lines
    }

    fn conclude(&self, scenario: &Scenario, shown: &Shown) -> Outcome {
        let mut out = Stdout::lock();
        let who = format!(
            "{} at {}",
            counted(self.clients as u64, "client", "clients"),
            counted(self.nodes as u64, "node", "nodes"),
        );
        let time = shown.time.as_secs_f64();
        writeln!(out)?;
        if shown.entries == 0 {
            writeln!(out, "No entry in {time:.1} s by {who}: give it a longer --time.")?;
            return Ok(());
        }
        let entries = counted(shown.entries, "entry", "entries");
        let hand_over = match shown.hand_over {
            Some(micros) => format!("; hand-over {micros:.0} us on average"),
            None => String::new(),
        };
        writeln!(out, "{entries} in {time:.1} s by {who}{hand_over}.")?;
        self.compare(scenario, shown, &mut out)?;
        if shown.broken {
            writeln!(out, "Two clients were inside at once, or a fence did not grow.")?;
            return Err(Failure::Violation);
        }
        writeln!(
            out,
            "Nobody was inside beside another, and every fence was larger than the last."
        )?;
        Ok(())
    }

    /// The measured messages beside those of the simulator, if enough were measured.
    fn compare(&self, scenario: &Scenario, shown: &Shown, out: &mut Stdout) -> Outcome {
        if shown.entries < ENOUGH.max(self.warm_up()) {
            writeln!(out, "Too few entries to compare their messages with the simulator's.")?;
            return Ok(());
        }
        let setup = scenario.setup().map_err(Failure::input)?;
        let report = run(&setup, Hooks::default())?;
        let measured = shown.messages as f64 / shown.entries as f64;
        let expected = report.messages_per_entry.unwrap_or(0.0);
        writeln!(
            out,
            "Messages per entry: {measured:.2} over TCP, {expected:.2} in the simulator:"
        )?;
        writeln!(out, "  {}", scenario.command())?;
        Ok(())
    }
}

/// What the demonstration has shown.
struct Shown {
    entries: u64,
    messages: u64,
    time: Duration,
    hand_over: Option<f64>,
    broken: bool,
}

fn messages(nodes: &[Node]) -> u64 {
    nodes.iter().map(|node| node.status().messages).sum()
}

/// One client: takes the lock again and again.
async fn contend(
    nodes: Arc<Vec<Node>>,
    node: usize,
    seen: Arc<Seen>,
    over: Arc<AtomicBool>,
    hold: Duration,
) -> Result<(), Refusal> {
    while !over.load(Ordering::Relaxed) {
        seen.waiting[node].fetch_add(1, Ordering::Relaxed);
        let guard = nodes[node].lock(LOCK).await?;
        seen.waiting[node].fetch_sub(1, Ordering::Relaxed);
        seen.enter(node, guard.fence());
        if !hold.is_zero() && !over.load(Ordering::Relaxed) {
            unless_asked_to_end(hold).await;
        }
        seen.leave();
        drop(guard);
    }
    Ok(())
}

/// Lets time pass, until somebody asks us to end.
async fn unless_asked_to_end(time: Duration) {
    tokio::select! {
        () = tokio::time::sleep(time) => {}
        () = interrupt::asked() => {}
    }
}

/// Lines that are drawn over the last ones on a terminal. In a pipe only the last line counts.
struct Picture {
    terminal: bool,
    drawn: usize,
}

impl Picture {
    fn new() -> Self {
        Picture { terminal: std::io::stdout().is_terminal(), drawn: 0 }
    }

    fn draw(&mut self, lines: &[String]) -> std::io::Result<()> {
        let mut out = Stdout::lock();
        if !self.terminal {
            return match lines.last() {
                Some(line) => writeln!(out, "{line}"),
                None => Ok(()),
            };
        }
        let lines = Screen::of_stdout().map_or(lines.to_vec(), |screen| screen.fit(lines, FOOT));
        if self.drawn > 0 {
            write!(out, "\x1b[{}A", self.drawn)?;
        }
        for line in &lines {
            writeln!(out, "\x1b[2K{line}")?;
        }
        // There are fewer lines than last time if the terminal has become smaller.
        write!(out, "\x1b[J")?;
        self.drawn = lines.len();
        out.flush()
    }
}
