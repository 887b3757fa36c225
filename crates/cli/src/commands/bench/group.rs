//! Three node processes on the loopback interface, with clients inside them.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use catraca_node::{
    Config, Guard, LinkStatus, MemberStatus, Node, Readiness, Refusal, RegistryPlace,
};
use tempfile::TempDir;

use super::peer::{Cores, Peer};
use super::{Row, median, nanos, ping};

const NODES: usize = 3;
/// How many locks are held at once.
const LOCKS: usize = 100_000;

/// One entry of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    fence: u64,
    entered: u64,
    left: u64,
    node: usize,
    client: usize,
}

/// From one process's release to another's entry, and how many entries a second.
pub(super) fn hand_over(time: Duration) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (cores, where_) in [(Cores::One, "pinned"), (Cores::Any, "free")] {
        let mut group = Group::start(cores)?;
        let slice = |_| Slice::measure(&mut group, time / SLICES, cores);
        let slices: Vec<Slice> = (0..SLICES).map(slice).collect::<Result<_>>()?;
        let middle = |figure: fn(&Slice) -> f64| {
            let mut figures: Vec<f64> = slices.iter().map(figure).collect();
            figures.sort_unstable_by(f64::total_cmp);
            figures[figures.len() / 2]
        };
        let (c, delay) = (nanos(middle(|slice| slice.c)), nanos(middle(|slice| slice.delay)));
        let ratio = middle(|slice| slice.delay / slice.c);
        let what = format!("hand-over between processes, {where_} (c = {c})");
        let figure = format!("{delay} = {ratio:.2} c");
        rows.push(Row::new(what, figure, "at most 3 c".to_string(), ratio <= 3.0));
        let (rate, between) = (middle(|slice| slice.rate), middle(|slice| slice.between));
        let share = middle(|slice| slice.rate * slice.c / 1e9);
        let what = format!("grants per second, {where_} ({between:.0} between processes)");
        let figure = format!("{rate:.0}/s = {share:.2} / c");
        rows.push(Row::new(what, figure, "at least 0.3 / c".to_string(), share >= 0.3));
    }
    Ok(rows)
}

/// A machine's speed changes from one moment to the next: hand-overs are measured in so many slices,
/// each right after the raw exchange that it is compared with. The middle one counts.
const SLICES: u32 = 9;

struct Slice {
    /// One way of the raw exchange, in nanoseconds.
    c: f64,
    /// The median from a release to the next entry in another process, in nanoseconds.
    delay: f64,
    /// Entries per second, and of these between processes.
    rate: f64,
    between: f64,
}

impl Slice {
    fn measure(group: &mut Group, time: Duration, cores: Cores) -> Result<Self> {
        let c = ping::one_way(time / 2, cores)? as f64;
        let entries = group.contend(NODES, time)?;
        let mut delays: Vec<u64> = entries
            .windows(2)
            .filter(|pair| pair[0].node != pair[1].node)
            .map(|pair| pair[1].entered.saturating_sub(pair[0].left))
            .collect();
        let rate = rate(&entries);
        let between = rate * delays.len() as f64 / entries.len().max(1) as f64;
        Ok(Slice { c, delay: median(&mut delays) as f64, rate, between })
    }
}

/// Many clients on one lock, beside few. The few are not spread evenly: 3, 3 and 2.
pub(super) fn crowd(time: Duration) -> Result<Vec<Row>> {
    let contend = |clients: usize| Group::start(Cores::Any)?.contend(clients, time);
    let (few, many) = (contend(8)?, contend(64)?);
    let (few_rate, many_rate) = (rate(&few), rate(&many));
    let ratio = many_rate / few_rate;
    let what = format!("64 clients on one lock of 3 nodes, beside 8 ({few_rate:.0}/s)");
    let figure = format!("{many_rate:.0}/s = {ratio:.2}");
    let fair = |entries: &[Entry], clients: usize, least: f64| {
        let jain = jain(entries, clients);
        let what = format!("Jain's index of the {clients}");
        Row::new(what, format!("{jain:.4}"), format!("at least {least}"), jain >= least)
    };
    Ok(vec![
        Row::plain("8 clients on one lock of 3 nodes", format!("{few_rate:.0}/s")),
        fair(&few, 8, 0.98),
        Row::new(what, figure, "at least 0.80".to_string(), ratio >= 0.8),
        fair(&many, 64, 0.99),
    ])
}

/// How evenly the entries are spread over the clients: 1 if all have as many.
fn jain(entries: &[Entry], clients: usize) -> f64 {
    let mut by_client: BTreeMap<usize, u64> = BTreeMap::new();
    for entry in entries {
        *by_client.entry(entry.client).or_default() += 1;
    }
    let counts = by_client.values().map(|&count| count as f64);
    let (sum, squares) =
        counts.fold((0.0, 0.0), |(sum, squares), count| (sum + count, squares + count * count));
    sum * sum / (clients as f64 * squares)
}

/// Very many locks held at once.
pub(super) fn memory(_time: Duration) -> Result<Vec<Row>> {
    let mut group = Group::start(Cores::Any)?;
    let before = group.memory()?;
    group.peers[0].tell(&format!("hold {LOCKS}"))?;
    let times = group.peers[0].line()?;
    let (first, last) = times.split_once(' ').context("two times")?;
    let (first, last): (u64, u64) = (first.parse()?, last.parse()?);
    let after = group.memory()?;
    let each = |(before, after): (&u64, &u64)| after.saturating_sub(*before) / LOCKS as u64;
    let each: Vec<u64> = before.iter().zip(&after).map(each).collect();
    let most = each.iter().copied().max().unwrap_or(0);
    let texts: Vec<String> = each.iter().map(u64::to_string).collect();
    let what = format!("bytes per lock and member, {LOCKS} held by the first");
    let ratio = last as f64 / first as f64;
    Ok(vec![
        Row::new(what, texts.join(", "), "under 300".to_string(), most < 300),
        Row::new(
            format!(
                "acquiring the last 1 % of them, beside the first 1 % ({})",
                nanos(first as f64)
            ),
            format!("{} = {ratio:.2}", nanos(last as f64)),
            "about 1".to_string(),
            ratio < 1.5,
        ),
    ])
}

fn rate(entries: &[Entry]) -> f64 {
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return 0.0 };
    entries.len() as f64 / ((last.entered - first.entered).max(1) as f64 / 1e9)
}

/// The processes.
struct Group {
    peers: Vec<Peer>,
    /// Where they keep their registry. It goes after them.
    _data: TempDir,
}

impl Group {
    fn start(cores: Cores) -> Result<Self> {
        let listeners: Vec<TcpListener> =
            (0..NODES).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
        let member = |(index, listener): (usize, &TcpListener)| {
            Ok(format!("n{index}={}", listener.local_addr()?))
        };
        let members: Vec<String> =
            listeners.iter().enumerate().map(member).collect::<Result<_>>()?;
        drop(listeners);
        let members = members.join(",");
        let word = if cores == Cores::One { "one" } else { "any" };
        let data = TempDir::new().context("there is no place for the data of the nodes")?;
        let start = |index| {
            let name = format!("n{index}");
            let own = data.path().join(&name);
            let own = own.to_str().context("the folder for temporary files has no plain name")?;
            Peer::start(&["node", word, &name, &members, own], cores)
        };
        let mut peers: Vec<Peer> = (0..NODES).map(start).collect::<Result<_>>()?;
        for peer in &mut peers {
            peer.line()?;
        }
        Ok(Group { peers, _data: data })
    }

    /// Lets `clients` clients, spread over the nodes, take one lock again and again.
    fn contend(&mut self, clients: usize, time: Duration) -> Result<Vec<Entry>> {
        for (index, peer) in self.peers.iter_mut().enumerate() {
            let own = (index..clients).step_by(NODES).count();
            peer.tell(&format!("contend {own} {}", time.as_secs_f64()))?;
        }
        let mut entries = Vec::new();
        for (node, peer) in self.peers.iter_mut().enumerate() {
            loop {
                let line = peer.line()?;
                if line == "end" {
                    break;
                }
                let numbers: Vec<u64> =
                    line.split(' ').map(str::parse).collect::<Result<_, _>>()?;
                let [fence, entered, left, client] = numbers[..] else { bail!("'{line}'") };
                let client = client as usize * NODES + node;
                entries.push(Entry { fence, entered, left, node, client });
            }
        }
        entries.sort_unstable();
        Ok(entries)
    }

    /// The resident bytes of each process.
    fn memory(&mut self) -> Result<Vec<u64>> {
        let ask = |peer: &mut Peer| {
            peer.tell("memory")?;
            Ok(peer.line()?.parse()?)
        };
        self.peers.iter_mut().map(ask).collect()
    }
}

/// One of the processes.
pub(super) fn node(
    name: &str,
    members: &str,
    data: &str,
    cores: Cores,
    say: fn(&str),
) -> Result<()> {
    let runtime = match cores {
        Cores::One => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        Cores::Any => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?
        }
    };
    let (lines, mut orders) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        // It ends with the input, or with the process.
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    runtime.block_on(async {
        let mut config = Config::new(name, Config::members_from(members)?);
        config.registry = RegistryPlace::Directory(data.into());
        // The processes keep the machine busy.
        config.lease = Duration::from_secs(60);
        let node = Arc::new(Node::start(config).await?);
        while !is_whole(&node) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        say("ready");
        let mut held = Vec::new();
        while let Some(line) = orders.recv().await {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["contend", clients, seconds] => {
                    let time = Duration::from_secs_f64(seconds.parse()?);
                    contend(&node, clients.parse()?, time, say).await?;
                }
                ["hold", count] => held.extend(hold(&node, count.parse()?, say).await?),
                ["memory"] => say(&resident()?.to_string()),
                _ => bail!("'{line}' cannot be done"),
            }
        }
        Ok(())
    })
}

fn is_whole(node: &Node) -> bool {
    let is_there = |link: &LinkStatus| matches!(link, LinkStatus::Itself | LinkStatus::Up(_));
    let status = node.status();
    let is_in = |member: &MemberStatus| member.is_in_view && is_there(&member.link);
    status.readiness == Readiness::Ready && status.members.iter().all(is_in)
}

async fn contend(node: &Arc<Node>, clients: usize, time: Duration, say: fn(&str)) -> Result<()> {
    let begin = Instant::now();
    let client = |_| {
        let node = Arc::clone(node);
        tokio::spawn(async move {
            let mut entries = Vec::new();
            while begin.elapsed() < time {
                let guard = node.lock("bench/shared").await?;
                let entered = now();
                let fence = guard.fence();
                let left = now();
                drop(guard);
                entries.push((fence, entered, left));
            }
            Ok::<_, Refusal>(entries)
        })
    };
    let clients: Vec<_> = (0..clients).map(client).collect();
    let mut lines = String::new();
    for (number, client) in clients.into_iter().enumerate() {
        for (fence, entered, left) in client.await?? {
            lines.push_str(&format!("{fence} {entered} {left} {number}\n"));
        }
    }
    lines.push_str("end");
    // The pipe may be full until the other processes are done, and they may need this node.
    tokio::task::spawn_blocking(move || say(&lines)).await?;
    Ok(())
}

/// Holds `count` locks, and says how long one of the first and of the last hundredth took, by the
/// median.
async fn hold(node: &Arc<Node>, count: usize, say: fn(&str)) -> Result<Vec<Guard>> {
    let mut held = Vec::with_capacity(count);
    let part = (count / 100).max(1);
    let (mut first, mut last) = (0, 0);
    while held.len() < count {
        let mut times = Vec::with_capacity(part);
        for _ in 0..part {
            let name = format!("bench/held/{}", held.len());
            let start = Instant::now();
            held.push(node.lock(&name).await?);
            times.push(start.elapsed().as_nanos() as u64);
        }
        last = median(&mut times);
        if first == 0 {
            first = last;
        }
    }
    say(&format!("{first} {last}"));
    Ok(held)
}

/// The same clock in all processes.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

fn resident() -> Result<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").context("memory cannot be read")?;
    let pages: u64 = statm.split(' ').nth(1).context("pages")?.parse()?;
    Ok(pages * 4096)
}
