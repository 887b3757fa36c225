//! The processes of a run: members, servers of etcd, clients.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use rustix::process::Signal;

use super::fault::{Host, Target, member_name};
use super::history::History;
use super::judge::InUse;
use super::network::{at_host, call};
use super::options::{DRAIN, Inside, LEASE, Options, RegistryKind};
use super::process::{Process, Seen};
use super::workload::Workload;

const PORT: u16 = 7800;
const ETCD_PORT: u16 = 2379;
const ETCD_PEER_PORT: u16 = 2380;
/// The disk of a member: as large as a registry needs, and quickly filled.
const DISK: &str = "64m";
const ETCD_DISK: &str = "1g";
/// Sessions of clients live for this long, each client in its turn.
const TTLS: [u64; 3] = [1_000, 2_000, 5_000];
const WORKERS: usize = 4;
/// The clients that keep durable holds.
const DURABLE_CLIENTS: usize = 2;

/// A history that is being written.
struct Written {
    path: PathBuf,
    file: Option<File>,
    rest: String,
}

/// All of them.
pub(crate) struct Processes {
    inside: Inside,
    members: Vec<Process>,
    etcd: Vec<Process>,
    clients: Vec<Process>,
    /// The last history of each client.
    current: Vec<Option<usize>>,
    written: Vec<Written>,
    pub(crate) histories: Vec<History>,
    /// Processes that ended although nobody told them to.
    pub(crate) ended_by_themselves: usize,
}

impl Processes {
    /// Nothing runs yet; disks and configuration are there.
    pub(crate) fn prepare(inside: &Inside) -> Result<Self> {
        let (options, folder) = (&inside.options, &inside.folder);
        let layout = options.layout();
        let workload = Workload::of(&options.algorithm)?;
        let group = format!("{}{}", members(layout.members), workload.namespaces());
        std::fs::write(folder.join("group.toml"), group)?;
        for number in 0..layout.members {
            mount(&disk(folder, Host::Member(number)), DISK)?;
        }
        for number in 0..layout.etcd {
            mount(&disk(folder, Host::Etcd(number)), ETCD_DISK)?;
        }
        let process = |name: String| {
            let log = folder.join(format!("{name}.log"));
            Process::new(name, log)
        };
        let named = |count: usize, target: fn(usize) -> Target| -> Vec<Process> {
            (0..count).map(|number| process(target(number).to_string())).collect()
        };
        let keepers = if knows_durable_holds(&inside.catraca)? { DURABLE_CLIENTS } else { 0 };
        let clients = layout.clients + keepers;
        Ok(Processes {
            inside: inside.clone(),
            members: named(layout.members, Target::Member),
            etcd: named(layout.etcd, Target::Etcd),
            clients: named(clients, Target::Client),
            current: vec![None; clients],
            written: Vec::new(),
            histories: Vec::new(),
            ended_by_themselves: 0,
        })
    }

    fn options(&self) -> &Options {
        &self.inside.options
    }

    fn target(&mut self, target: Target) -> &mut Process {
        match target {
            Target::Member(number) => &mut self.members[number],
            Target::Etcd(number) => &mut self.etcd[number],
            Target::Client(number) => &mut self.clients[number],
        }
    }

    fn targets(&self) -> Vec<Target> {
        let etcd = (0..self.etcd.len()).map(Target::Etcd);
        let members = (0..self.members.len()).map(Target::Member);
        etcd.chain(members).chain((0..self.clients.len()).map(Target::Client)).collect()
    }

    /// Starts what is to run and does not. Returns what to say about it.
    pub(crate) fn tend(&mut self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for target in self.targets() {
            match self.target(target).look()? {
                Seen::Nothing => {}
                Seen::Due => {
                    let command = self.command(target)?;
                    self.target(target).start(command)?;
                }
                Seen::EndedByItself(how) => {
                    self.ended_by_themselves += 1;
                    lines.push(format!("{target} ended by itself ({how}); see {target}.log"));
                }
            }
        }
        Ok(lines)
    }

    fn command(&mut self, target: Target) -> Result<Command> {
        match target {
            Target::Member(number) => Ok(self.node(number)),
            Target::Etcd(number) => Ok(self.etcd_server(number)),
            Target::Client(number) => self.client(number),
        }
    }

    fn node(&self, number: usize) -> Command {
        let (options, folder) = (self.options(), &self.inside.folder);
        let host = Host::Member(number);
        let mut command = at_host(host, &self.inside.catraca.to_string_lossy());
        command.args(["node", "--name", &host.to_string()]);
        command.arg("--config").arg(folder.join("group.toml"));
        // Its network is of its own: nobody else reaches it.
        command.arg("--insecure");
        command.args(["--lease", &format!("{}s", LEASE.as_secs())]);
        command.args(["--drain", &format!("{}s", DRAIN.as_secs())]);
        match options.registry {
            RegistryKind::Embedded => {
                command.arg("--data").arg(disk(folder, host));
            }
            RegistryKind::Etcd => {
                let endpoint = |number| format!("{}:{ETCD_PORT}", Host::Etcd(number).address());
                let endpoints: Vec<String> = (0..self.etcd.len()).map(endpoint).collect();
                command.args(["--registry", &format!("etcd://{}", endpoints.join(","))]);
            }
        }
        if let Some(rule) = &options.broken {
            command.env("CATRACA_BROKEN_RULE", rule);
        }
        command
    }

    fn addresses(&self) -> Vec<String> {
        (0..self.members.len()).map(address).collect()
    }

    fn etcd_server(&self, number: usize) -> Command {
        let host = Host::Etcd(number);
        let url =
            |number: usize, port: u16| format!("http://{}:{port}", Host::Etcd(number).address());
        let peer = |number| format!("{}={}", Host::Etcd(number), url(number, ETCD_PEER_PORT));
        let cluster: Vec<String> = (0..self.etcd.len()).map(peer).collect();
        let mut command = at_host(host, "etcd");
        command.args(["--name", &host.to_string(), "--data-dir"]);
        command.arg(disk(&self.inside.folder, host));
        for flag in ["--listen-client-urls", "--advertise-client-urls"] {
            command.args([flag, &url(number, ETCD_PORT)]);
        }
        for flag in ["--listen-peer-urls", "--initial-advertise-peer-urls"] {
            command.args([flag, &url(number, ETCD_PEER_PORT)]);
        }
        command.args(["--initial-cluster", &cluster.join(","), "--initial-cluster-state", "new"]);
        // Beats add revisions: without this a long run would fill the disk.
        command.args(["--auto-compaction-mode", "revision", "--auto-compaction-retention", "1000"]);
        command
    }

    /// A client, with a history of its own in each of its runs.
    fn client(&mut self, number: usize) -> Result<Command> {
        let name = Target::Client(number).to_string();
        let run = self.histories.iter().filter(|history| history.client == name).count();
        let path = self.inside.folder.join(format!("{name}-{run}.history"));
        self.current[number] = Some(self.histories.len());
        let mut nodes = self.addresses();
        let count = nodes.len();
        nodes.rotate_left((number + run) % count);
        let options = self.options();
        let seed = options.seed().wrapping_mul(10_000) + (number * 100 + run) as u64;
        let program = std::env::current_exe().context("this program does not know where it is")?;
        let mut command = at_host(Host::Clients, &program.to_string_lossy());
        command.args(["chaos-client", "--node", &nodes.join(","), "--log"]).arg(&path);
        command.args(["--seed", &seed.to_string(), "--algorithm", &options.algorithm]);
        command.args(["--ttl", &TTLS[number % TTLS.len()].to_string()]);
        command.args(["--workers", &WORKERS.to_string()]);
        if number >= options.layout().clients {
            command.arg("--durable").arg(&self.inside.catraca);
        }
        self.histories.push(History::new(&name));
        self.written.push(Written { path, file: None, rest: String::new() });
        Ok(command)
    }

    /// Takes over what clients have written.
    pub(crate) fn read(&mut self) -> Result<()> {
        for (written, history) in self.written.iter_mut().zip(&mut self.histories) {
            written.read(history)?;
        }
        Ok(())
    }

    /// Tells a process to end, or ends it.
    pub(crate) fn end(&mut self, target: Target, signal: Signal) -> Result<()> {
        if let Target::Client(number) = target
            && let Some(current) = self.current[number]
        {
            self.histories[current].was_killed = true;
        }
        self.target(target).end(signal)
    }

    pub(crate) fn want(&mut self, target: Target) {
        self.target(target).want();
    }

    pub(crate) fn signal(&mut self, target: Target, signal: Signal) -> Result<()> {
        self.target(target).signal(signal)
    }

    /// Tells clients to come to their end.
    pub(crate) fn finish_clients(&mut self) {
        for client in &mut self.clients {
            client.finish();
        }
    }

    pub(crate) fn keep_durable_holds(&self) -> bool {
        self.clients.len() > self.options().layout().clients
    }

    pub(crate) fn clients_run(&self) -> bool {
        self.clients.iter().any(Process::is_running)
    }

    /// Tells members to end, and ends what is left of the clients. The registry stays: members use it to
    /// leave in order.
    pub(crate) fn finish(&mut self) -> Result<()> {
        for member in &mut self.members {
            member.end(Signal::TERM)?;
        }
        for client in &mut self.clients {
            client.end(Signal::KILL)?;
        }
        Ok(())
    }

    pub(crate) fn members_run(&self) -> bool {
        self.members.iter().any(Process::is_running)
    }

    pub(crate) fn memory(&self) -> Vec<Option<u64>> {
        self.members.iter().map(Process::memory).collect()
    }

    /// What a member says that it keeps of clients.
    pub(crate) fn in_use(&self, number: usize) -> Result<InUse> {
        let mut command = at_host(Host::Clients, &self.inside.catraca.to_string_lossy());
        command.args(["status", "--json", "--node", &address(number)]);
        let output = command.output().context("'catraca status' cannot be started")?;
        let status = serde_json::from_slice::<serde_json::Value>(&output.stdout).ok();
        let counts = status
            .and_then(|mut status| serde_json::from_value(status.get_mut("counters")?.take()).ok());
        Ok(InUse { member: member_name(number).to_string(), counts })
    }

    /// Fills up the disk of a member.
    pub(crate) fn fill(&self, number: usize) -> Result<()> {
        let path = disk(&self.inside.folder, Host::Member(number)).join("filler");
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        for chunk in [1 << 20, 1 << 12, 1 << 6, 1] {
            while file.write_all(&vec![0; chunk]).is_ok() {}
        }
        Ok(())
    }

    /// Makes room on it again.
    pub(crate) fn free(&self, number: usize) -> Result<()> {
        let path = disk(&self.inside.folder, Host::Member(number)).join("filler");
        std::fs::remove_file(path).context("the disk cannot be freed")
    }
}

impl Written {
    fn read(&mut self, history: &mut History) -> Result<()> {
        use std::io::Read;
        if self.file.is_none() {
            // It is there as soon as the client has started.
            self.file = File::open(&self.path).ok();
        }
        if let Some(file) = &mut self.file {
            file.read_to_string(&mut self.rest).context("a history cannot be read")?;
            let taken = history.extend(&self.rest)?;
            self.rest.drain(..taken);
        }
        Ok(())
    }
}

/// Whether this build of the members has durable holds.
fn knows_durable_holds(catraca: &Path) -> Result<bool> {
    let output = Command::new(catraca).args(["lock", "--help"]).output();
    let output = output.with_context(|| format!("{} cannot be started", catraca.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).contains("--durable"))
}

fn address(member: usize) -> String {
    format!("{}:{PORT}", Host::Member(member).address())
}

/// The part of the members' configuration that says who they are.
fn members(count: usize) -> String {
    let line = |number| format!("{} = \"{}\"\n", member_name(number), address(number));
    format!("[members]\n{}\n", (0..count).map(line).collect::<String>())
}

fn disk(folder: &Path, host: Host) -> PathBuf {
    folder.join(format!("disk-{host}"))
}

fn mount(path: &Path, size: &str) -> Result<()> {
    std::fs::create_dir_all(path)?;
    call(&format!("mount -t tmpfs -o size={size},mode=0700 none {}", path.display()))
}
