//! What it costs when a group changes, and what durable holds cost: real nodes, and clients as any
//! program has them.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use catraca_client::{
    AcquireDurable, Client, ClientError, Connection, Guard, LinkStatus, Readiness, Wait,
    lock_durable,
};
use catraca_group::Lease;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::child::Started;
use super::{Row, nanos};
use crate::interrupt;

const MEMBERS: usize = 5;
/// That of members which were told nothing.
const LEASE: Duration = Lease::USUAL.ttl;
/// How many locks are held while the group changes.
const HELD: usize = 10_000;
/// How many clients ask for durable holds at once.
const DURABLE_CLIENTS: usize = 64;
/// So many durable grants a second are enough, whatever the disk could do.
const DURABLE_GOAL: f64 = 2000.0;
/// A group is whole, and a client is served, within this time.
const PATIENCE: Duration = Duration::from_secs(60);
const WAIT_GOAL: Duration = Duration::from_millis(250);
const IDLE_GOAL: Duration = Duration::from_millis(50);

/// Everything about groups that change.
pub(super) fn measure(time: Duration) -> Result<Vec<Row>> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        tokio::select! {
            rows = all(time) => rows,
            // What is waited for may never happen: the nodes are ended.
            () = interrupt::asked() => bail!("interrupted"),
        }
    })
}

async fn all(time: Duration) -> Result<Vec<Row>> {
    let mut rows = vec![crash(0).await?, crash(HELD).await?];
    rows.extend(orderly(time).await?);
    for members in [1, 3] {
        rows.push(durable(members, time).await?);
    }
    Ok(rows)
}

/// How long after the end of a crashed member's lease a lock that it had is granted elsewhere.
async fn crash(held: usize) -> Result<Row> {
    let mut group = Group::start(MEMBERS).await?;
    let holders = group.hold(held).await?;
    let last = MEMBERS - 1;
    let there = group.client(last).await?;
    let guard = there.lock("bench/of-the-crashed").await?;
    if held == 0 {
        // Nobody is inside, but the others do not know that.
        guard.release().await?;
    } else {
        std::mem::forget(guard);
    }
    let here = group.client(0).await?;
    group.nodes[last].end(Signal::KILL)?;
    let name = group.nodes[last].name.clone();
    let status = here.status().await?;
    let age = status.members.iter().find(|member| member.name == name);
    let age = age.and_then(|member| member.renewed).context("when the lease was renewed")?;
    let over = Instant::now() + LEASE - Duration::from_millis(age).min(LEASE);
    let guard = tokio::time::timeout(PATIENCE, here.lock("bench/of-the-crashed")).await??;
    let took = Instant::now().saturating_duration_since(over);
    drop((guard, holders));
    let goal = if held == 0 { IDLE_GOAL } else { WAIT_GOAL };
    let what = format!("{MEMBERS} members, {held} locks held, one crashes: usable after its lease");
    Ok(at_most(what, took, goal))
}

/// The longest wait of anybody while members leave, join and are restarted in order.
async fn orderly(time: Duration) -> Result<Vec<Row>> {
    let mut group = Group::start(MEMBERS).await?;
    let holders = group.hold(HELD).await?;
    let askers = Askers::start(&group).await?;
    tokio::time::sleep(time).await;
    let usual = askers.longest_wait().await?;
    let mut rows = vec![Row::plain(
        format!("{MEMBERS} members, {HELD} locks held, nothing changes: longest wait"),
        nanos(usual.as_nanos() as f64),
    )];
    let last = MEMBERS - 1;
    let askers = Askers::start(&group).await?;
    group.nodes[last].end(Signal::TERM)?;
    group.settle(MEMBERS - 1).await?;
    rows.push(at_most("one of them leaves: longest wait", askers.longest_wait().await?, WAIT_GOAL));
    let askers = Askers::start(&group).await?;
    group.restart(last)?;
    group.settle(MEMBERS).await?;
    rows.push(at_most("one joins: longest wait", askers.longest_wait().await?, WAIT_GOAL));
    let askers = Askers::start(&group).await?;
    for member in 0..MEMBERS {
        group.nodes[member].end(Signal::TERM)?;
        group.restart(member)?;
        group.settle(MEMBERS).await?;
    }
    let what = "all are restarted, one after the other: longest wait";
    rows.push(at_most(what, askers.longest_wait().await?, WAIT_GOAL));
    drop(holders);
    Ok(rows)
}

/// Durable grants a second, beside the flushes that the disk can do.
async fn durable(members: usize, time: Duration) -> Result<Row> {
    let group = Group::start(members).await?;
    let flushes = flushes_per_second(group.data.path(), time / 4)?;
    let begin = Instant::now();
    let mut clients = JoinSet::new();
    for client in 0..DURABLE_CLIENTS {
        let addresses = vec![group.nodes[client % members].address.clone()];
        clients.spawn(async move {
            let mut granted = 0u64;
            while begin.elapsed() < time {
                let name = format!("bench/durable/{client}/{granted}");
                let asked = AcquireDurable {
                    names: vec![name.clone()],
                    permits: 1,
                    wait: Wait::Forever,
                    owner: "bench".to_string(),
                    note: String::new(),
                    request: name,
                };
                lock_durable(&addresses, asked).await?;
                granted += 1;
            }
            Ok::<_, ClientError>(granted)
        });
    }
    let mut granted = 0;
    while let Some(client) = clients.join_next().await {
        granted += client??;
    }
    let rate = granted as f64 / begin.elapsed().as_secs_f64();
    let nodes =
        if members == 1 { "a node alone".to_string() } else { format!("{members} members") };
    let what =
        format!("durable grants, {DURABLE_CLIENTS} clients, {nodes} ({flushes:.0} flushes/s)");
    let goal = format!("at least {DURABLE_GOAL:.0}/s, or the flushes");
    let met = rate >= DURABLE_GOAL || rate >= flushes;
    Ok(Row::new(what, format!("{rate:.0}/s"), goal, met))
}

fn at_most(what: impl Into<String>, took: Duration, goal: Duration) -> Row {
    let figure = nanos(took.as_nanos() as f64);
    Row::new(what, figure, format!("at most {} ms", goal.as_millis()), took <= goal)
}

/// How often a second the disk under `folder` takes a small write for good.
fn flushes_per_second(folder: &Path, time: Duration) -> Result<f64> {
    let mut file = File::create(folder.join("flushes"))?;
    let begin = Instant::now();
    let mut flushes = 0;
    while begin.elapsed() < time && !interrupt::requested() {
        file.write_all(&[0; 512])?;
        file.sync_data()?;
        flushes += 1;
    }
    Ok(f64::from(flushes) / begin.elapsed().as_secs_f64())
}

/// Clients that take a lock again and again: at each member one of its own, and one that all share.
struct Askers {
    are_done: Arc<AtomicBool>,
    tasks: JoinSet<Result<Duration>>,
}

impl Askers {
    async fn start(group: &Group) -> Result<Self> {
        let are_done = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for member in 0..MEMBERS {
            if group.nodes[member].child.is_none() {
                continue;
            }
            for name in ["bench/shared".to_string(), format!("bench/own/{member}")] {
                let client = group.client(member).await?;
                let are_done = Arc::clone(&are_done);
                tasks.spawn(async move {
                    let mut longest = Duration::ZERO;
                    while !are_done.load(Ordering::Relaxed) {
                        let begin = Instant::now();
                        let guard = tokio::time::timeout(PATIENCE, client.lock(&name)).await??;
                        longest = longest.max(begin.elapsed());
                        // Its node may leave just now: then the lock is free all the same.
                        let _ = guard.release().await;
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    Ok(longest)
                });
            }
        }
        Ok(Askers { are_done, tasks })
    }

    async fn longest_wait(mut self) -> Result<Duration> {
        self.are_done.store(true, Ordering::Relaxed);
        let mut longest = Duration::ZERO;
        while let Some(task) = self.tasks.join_next().await {
            longest = longest.max(task??);
        }
        Ok(longest)
    }
}

/// A node as a process. It ends with this value.
struct Node {
    name: String,
    address: String,
    child: Option<Started>,
}

impl Node {
    fn start(&mut self, list: &str, data: &Path) -> Result<()> {
        let binary = std::env::current_exe().context("this program cannot be found again")?;
        let mut command = Command::new(binary);
        command.args(["node", "--name", &self.name, "--members", list]);
        // Some locks are held for ever: a node that stops does not wait for those for long.
        command.args(["--drain", "1s"]).arg("--data").arg(data.join(&self.name));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = Started::spawn(&mut command).context("a node cannot be started")?;
        let stdout = child.child().stdout.take();
        let mut line = String::new();
        if let Some(stdout) = stdout {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        self.child = Some(child);
        if line.is_empty() {
            bail!("a node ended too early");
        }
        Ok(())
    }

    /// Sends it a signal that ends it, and waits for that.
    fn end(&mut self, signal: Signal) -> Result<()> {
        let Some(child) = self.child.take() else { return Ok(()) };
        if let Some(pid) = Pid::from_raw(child.child().id() as i32) {
            kill_process(pid, signal)?;
        }
        child.wait()?;
        Ok(())
    }
}

/// Nodes of one group on the loopback interface.
struct Group {
    nodes: Vec<Node>,
    list: String,
    /// It goes after them.
    data: TempDir,
}

impl Group {
    async fn start(members: usize) -> Result<Self> {
        let listeners: Vec<TcpListener> =
            (0..members).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
        let node = |(index, listener): (usize, &TcpListener)| {
            let (name, address) = (format!("n{index}"), listener.local_addr()?.to_string());
            Ok(Node { name, address, child: None })
        };
        let nodes: Vec<Node> = listeners.iter().enumerate().map(node).collect::<Result<_>>()?;
        drop(listeners);
        let entry = |node: &Node| format!("{}={}", node.name, node.address);
        let list = nodes.iter().map(entry).collect::<Vec<String>>().join(",");
        let data = TempDir::new().context("there is no place for the data of the nodes")?;
        let mut group = Group { nodes, list, data };
        for member in 0..members {
            group.restart(member)?;
        }
        group.settle(members).await?;
        Ok(group)
    }

    fn restart(&mut self, member: usize) -> Result<()> {
        self.nodes[member].start(&self.list, self.data.path())
    }

    /// Waits until so many members are in the view of each of them, and linked to each other.
    async fn settle(&self, members: usize) -> Result<()> {
        let begin = Instant::now();
        for node in self.nodes.iter().filter(|node| node.child.is_some()) {
            while !is_whole(&node.address, members).await {
                if begin.elapsed() > PATIENCE {
                    bail!("the group is not whole: {} is not in it", node.name);
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        Ok(())
    }

    /// A client of this member, or of the next one if that is gone.
    async fn client(&self, member: usize) -> Result<Client> {
        let places = (0..self.nodes.len()).map(|step| (member + step) % self.nodes.len());
        let addresses = places.map(|place| self.nodes[place].address.clone());
        Ok(Client::builder().addresses(addresses).connect().await?)
    }

    /// Takes `count` locks, spread over the members.
    async fn hold(&self, count: usize) -> Result<Vec<Guard>> {
        let mut tasks = JoinSet::new();
        for member in 0..MEMBERS {
            let client = self.client(member).await?;
            tasks.spawn(async move {
                let mut held = Vec::new();
                for number in (member..count).step_by(MEMBERS) {
                    held.push(client.lock(format!("bench/held/{number}")).await?);
                }
                Ok::<_, ClientError>(held)
            });
        }
        let mut held = Vec::with_capacity(count);
        while let Some(task) = tasks.join_next().await {
            held.extend(task??);
        }
        Ok(held)
    }
}

async fn is_whole(address: &str, members: usize) -> bool {
    let Ok(mut connection) = Connection::open(address).await else { return false };
    let Ok(status) = connection.status().await else { return false };
    let there = status.members.iter().filter(|member| {
        member.is_in_view && matches!(member.link, LinkStatus::Itself | LinkStatus::Up(_))
    });
    status.readiness == Readiness::Ready && there.count() == members
}
