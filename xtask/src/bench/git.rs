//! What Git locks cost people: locking with the stock client, lists, what is asked before a push, and the hook of a
//! repository for a large push with many locks. All of it against a real node that keeps them on disk, and is alone
//! in its group unless a row says otherwise.

mod http;
mod memory;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use self::http::Connection;
use super::{TRIES, print, print_at_most};

/// The files of the repository.
const FILES: usize = 50_000;
/// Those that the push changes.
const CHANGED: usize = 10_000;
/// Those that somebody else has locked.
const LOCKED: usize = 10_000;
/// So many are locked at once.
const AT_ONCE: usize = 250;
/// The stock client locks so many with one command.
const WITH_STOCK: usize = 200;
/// A push of so many refs asks so often whether it may.
const REFS: usize = 4_000;
/// The members of a group that is no node alone.
const MEMBERS: [&str; 3] = ["a", "b", "c"];
/// A group is together in much less time.
const GENEROUS: Duration = Duration::from_secs(60);
/// Where the files of the push are.
const LARGE: &str = "bench/large";

/// Prints how long the hook takes, and git alone.
pub(super) fn measure(binary: &Path) -> Result<()> {
    let bench = Bench::set_up(binary)?;
    println!("{:<62} {:>14} {:>14} {:>8}", "figure", "measured", "goal", "ratio");
    println!("a node alone:");
    bench.measure_stock()?;
    bench.measure_lists()?;
    let push = format!("push of {CHANGED} of {FILES} files");
    let alone = bench.fastest(|| bench.git_alone())?;
    print_at_most(&format!("git alone, {push}, ms"), alone, 100.0);
    let hook = bench.fastest(|| bench.hook())?;
    print_at_most(&format!("pre-receive, {push}, {LOCKED} locks, ms"), hook, 300.0);
    println!("a group of three nodes on this machine:");
    bench.measure_group()
}

/// A node, a bare repository with its hook, and a clone that has something to push.
struct Bench {
    folder: TempDir,
    binary: PathBuf,
    _node: Node,
    /// Where the node serves HTTP.
    address: String,
    line: String,
}

/// Ends with the benchmark.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Bench {
    fn set_up(binary: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let free = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let http = free.to_string();
        let words = ["--listen", "127.0.0.1:0", "--http", &http, "--data", "data"];
        let node = start(binary, folder.path(), &words)?;
        let (address, line) = (free.to_string(), String::new());
        let url = format!("http://{free}/git/{LARGE}");
        let mut bench = Bench { folder, binary: binary.into(), _node: node, address, line };
        let root = bench.folder.path();
        run(git(root).args(["init", "--quiet", "--bare", "bare.git"]))?;
        run(git(root).args(["init", "--quiet", "clone"]))?;
        let clone = bench.clone();
        for number in 0..FILES {
            let file = clone.join(path(number));
            if number % 100 == 0 {
                std::fs::create_dir_all(file.parent().context("it is in a folder")?)?;
            }
            std::fs::write(file, format!("{number}\n"))?;
        }
        commit(&clone)?;
        run(git(&clone).args(["push", "--quiet", "../bare.git", "HEAD:refs/heads/main"]))?;
        let old = said(git(&clone).args(["rev-parse", "HEAD"]))?;
        run(bench.catraca(&bench.bare()).args(["git", "init", "--url", &url]))?;
        for number in 0..CHANGED {
            std::fs::write(clone.join(path(number)), format!("changed {number}\n"))?;
        }
        commit(&clone)?;
        let new = said(git(&clone).args(["rev-parse", "HEAD"]))?;
        bench.line = format!("{old} {new} refs/heads/main\n");
        let url = url.replace("http://", "http://ana:x@");
        let locked: Vec<String> = (CHANGED..CHANGED + LOCKED).map(path).collect();
        for part in locked.chunks(AT_ONCE) {
            let words = ["git", "lock", "--all-or-none", "--even-if-stale", "--url", &url];
            run(bench.catraca(&clone).args(words).args(part))?;
        }
        Ok(bench)
    }

    /// How long the stock client takes to lock files, beside a server that only answers from memory.
    fn measure_stock(&self) -> Result<()> {
        let memory = format!("http://ana:x@{}/memory", memory::serve()?);
        let (mut ours, mut least) = (f64::INFINITY, f64::INFINITY);
        for round in 0..TRIES {
            let node = format!("http://ana:x@{}/git/{}", self.address, small(round));
            // One after the other, so that what else the machine does is the same for both.
            ours = ours.min(self.lock_with_stock(&node, round)?);
            least = least.min(self.lock_with_stock(&memory, round)?);
        }
        println!(
            "{:<62} {least:>14.1}",
            format!("git lfs lock, {WITH_STOCK} paths, from memory, ms")
        );
        let goal = 1.3 * least;
        print_at_most(&format!("git lfs lock, {WITH_STOCK} paths, ms"), ours, goal);
        println!("{:<62} {:>14.2} {:>14.2}", "  times as long as from memory", ours / least, 1.3);
        Ok(())
    }

    /// Milliseconds for files that nobody has locked before.
    fn lock_with_stock(&self, url: &str, round: usize) -> Result<f64> {
        let paths: Vec<String> =
            (0..WITH_STOCK).map(|number| format!("round{round}/{number}.bin")).collect();
        let mut command = git(&self.clone());
        command.args(["-c", &format!("lfs.url={url}"), "lfs", "lock"]).args(&paths);
        command.env("GIT_TERMINAL_PROMPT", "0");
        let began = Instant::now();
        let said = said(&mut command)?;
        let millis = began.elapsed().as_secs_f64() * 1000.0;
        let locked = said.lines().filter(|line| line.starts_with("Locked ")).count();
        ensure!(locked == WITH_STOCK, "{locked} of {WITH_STOCK} paths were locked: {said}");
        Ok(millis)
    }

    /// How fast locks are listed, and how long it takes to ask before a push. The time to read the answers is in it.
    fn measure_lists(&self) -> Result<()> {
        let mut large = Connection::open(&self.address, LARGE)?;
        let mut best: f64 = 0.0;
        for _ in 0..TRIES {
            let began = Instant::now();
            let answer = large.ask("GET", &format!("/locks?limit={LOCKED}"), "")?;
            let seconds = began.elapsed().as_secs_f64();
            let answer: serde_json::Value = serde_json::from_slice(&answer)?;
            let listed = answer["locks"].as_array().map_or(0, Vec::len);
            ensure!(listed == LOCKED, "{listed} of {LOCKED} locks were listed");
            best = best.max(listed as f64 / seconds);
        }
        print(&format!("list of {LOCKED} locks, locks/s"), best, 100_000.0);
        let mut small = Connection::open(&self.address, &small(0))?;
        let began = Instant::now();
        for number in 0..REFS {
            let body = format!("{{\"ref\":{{\"name\":\"refs/tags/v{number}\"}}}}");
            small.ask("POST", "/locks/verify", &body)?;
        }
        let each = began.elapsed().as_secs_f64() * 1000.0 / REFS as f64;
        print_at_most(&format!("verify, each of {REFS} refs, {WITH_STOCK} locks, ms"), each, 1.0);
        let mut whole = f64::INFINITY;
        for _ in 0..TRIES {
            let began = Instant::now();
            let verified = verify(&mut large)?;
            whole = whole.min(began.elapsed().as_secs_f64() * 1000.0);
            ensure!(verified == LOCKED, "{verified} of {LOCKED} locks were verified");
        }
        println!("{:<62} {whole:>14.1}", format!("verify, one ref, all {LOCKED} locks, ms"));
        Ok(())
    }

    /// How long the stock client takes where a majority of three nodes has to keep each lock.
    fn measure_group(&self) -> Result<()> {
        let free = (0..2 * MEMBERS.len()).map(|_| TcpListener::bind("127.0.0.1:0"));
        let free: Vec<TcpListener> = free.collect::<std::io::Result<_>>()?;
        let places: Vec<String> = free
            .iter()
            .map(|it| it.local_addr().map(|it| it.to_string()))
            .collect::<std::io::Result<_>>()?;
        drop(free);
        let (peers, http) = places.split_at(MEMBERS.len());
        let members: Vec<String> =
            MEMBERS.iter().zip(peers).map(|(name, at)| format!("{name}={at}")).collect();
        let members = members.join(",");
        let mut nodes = Vec::new();
        for (&name, http) in MEMBERS.iter().zip(http) {
            let words = ["--name", name, "--members", &members, "--http", http, "--data", name];
            nodes.push(start(&self.binary, self.folder.path(), &words)?);
        }
        wait_until_it_locks(&http[0])?;
        let mut best = f64::INFINITY;
        for round in 0..TRIES {
            let node = format!("http://ana:x@{}/git/{}", http[0], small(round));
            best = best.min(self.lock_with_stock(&node, round)?);
        }
        println!("{:<62} {best:>14.1}", format!("git lfs lock, {WITH_STOCK} paths, ms"));
        Ok(())
    }

    fn bare(&self) -> PathBuf {
        self.folder.path().join("bare.git")
    }

    fn clone(&self) -> PathBuf {
        self.folder.path().join("clone")
    }

    fn catraca(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.binary);
        command.current_dir(folder).env("CATRACA_PUSHER", "bo");
        command
    }

    /// In the bare repository, where what is pushed can be seen although no ref has it.
    fn in_quarantine(&self, program: &Path) -> Result<Command> {
        let told = self.folder.path().join("told");
        std::fs::write(&told, &self.line)?;
        let mut command = Command::new(program);
        command.current_dir(self.bare()).env("GIT_DIR", ".").env("CATRACA_PUSHER", "bo");
        command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.clone().join(".git/objects"));
        command.stdin(std::fs::File::open(told)?).stdout(Stdio::null());
        Ok(command)
    }

    fn hook(&self) -> Result<()> {
        run(&mut self.in_quarantine(&self.bare().join("hooks/pre-receive"))?)
    }

    fn git_alone(&self) -> Result<()> {
        let line = "cut -d' ' -f2 | git rev-list --stdin --not --all | git diff-tree --stdin -r -z -c --root \
                    --no-renames --name-only";
        run(self.in_quarantine(Path::new("sh"))?.args(["-c", line]))
    }

    /// Milliseconds of the fastest try.
    fn fastest(&self, work: impl Fn() -> Result<()>) -> Result<f64> {
        let mut best = f64::INFINITY;
        for _ in 0..TRIES {
            let began = Instant::now();
            work()?;
            best = best.min(began.elapsed().as_secs_f64() * 1000.0);
        }
        Ok(best)
    }
}

/// Waits until the node says where it listens.
fn start(binary: &Path, folder: &Path, words: &[&str]) -> Result<Node> {
    let mut command = Command::new(binary);
    command.arg("node").args(words);
    let child = command.current_dir(folder).stdout(Stdio::piped()).spawn();
    let mut node = Node(child.context("the node cannot be started")?);
    let said = node.0.stdout.take().context("it has an output")?;
    let mut lines = BufReader::new(said).lines();
    let is_ready =
        |line: &std::io::Result<String>| line.as_ref().is_ok_and(|it| it.contains("listens at"));
    ensure!(lines.any(|line| is_ready(&line)), "the node did not start");
    Ok(node)
}

/// Waits until the group of a node is together and grants locks.
fn wait_until_it_locks(address: &str) -> Result<()> {
    let began = Instant::now();
    loop {
        let asked = Connection::open(address, "bench/first")
            .and_then(|mut node| node.ask("POST", "/locks", "{\"path\":\"first\"}"));
        match asked {
            Ok(_) => return Ok(()),
            Err(error) if began.elapsed() > GENEROUS => {
                return Err(error.context("the group grants no lock"));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// What the stock client asks before it pushes a ref: all locks, in parts as the node gives them. How many there are.
fn verify(node: &mut Connection) -> Result<usize> {
    let (mut count, mut cursor) = (0, String::new());
    loop {
        let body = match cursor.is_empty() {
            true => serde_json::json!({"ref": {"name": "refs/heads/main"}}),
            false => serde_json::json!({"ref": {"name": "refs/heads/main"}, "cursor": cursor}),
        };
        let answer = node.ask("POST", "/locks/verify", &body.to_string())?;
        let answer: serde_json::Value = serde_json::from_slice(&answer)?;
        let listed = |key: &str| answer[key].as_array().map_or(0, Vec::len);
        count += listed("ours") + listed("theirs");
        match answer["next_cursor"].as_str() {
            Some(next) if !next.is_empty() => cursor = next.to_string(),
            _ => return Ok(count),
        }
    }
}

/// A repository of which the stock client has locked some files.
fn small(round: usize) -> String {
    format!("bench/small{round}")
}

/// A hundred files a folder.
fn path(number: usize) -> String {
    format!("folder{:03}/file{number:05}.bin", number / 100)
}

fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "user.name=bo", "-c", "user.email=bo@example.org"]);
    command
}

fn commit(clone: &Path) -> Result<()> {
    run(git(clone).args(["add", "--all"]))?;
    run(git(clone).args(["commit", "--quiet", "--message", "files"]))
}

fn run(command: &mut Command) -> Result<()> {
    said(command).map(drop)
}

fn said(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?} cannot be run"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}
