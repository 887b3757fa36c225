//! `catraca node`: a member of a group that grants locks.

mod git;
mod http;
mod operations;
mod resp;
mod security;

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use catraca_algorithms::SpecError;
use catraca_client::protocol::{Description, RegistryKind};
use catraca_client::{Connection, Member, Nodes};
use catraca_node::{
    Config, ConfigError, Namespace, Node, RegistryError, RegistryPlace, SecurityConfig, StartError,
    Status,
};
use nix::sys::signal::Signal;
use tracing::Level;

use self::git::GitArguments;
use self::http::HttpArguments;
use self::resp::RespArguments;
use self::security::SecurityArguments;
use crate::Outcome;
use crate::failure::Failure;
use crate::log;
use crate::manager::Manager;
use crate::open_files;
use crate::output::{Stdout, reason};
use crate::service::block_on;
use crate::signals::Signals;
use crate::value::{at_node, duration};

/// Runs a node that grants locks: alone, or as a member of a group.
///
/// Without arguments it is a group of one, for this machine. A group is described by a file that all
/// members can share, or by --name and --members. It runs until Ctrl-C, SIGTERM, or the end of its
/// terminal, which all stop it in an orderly way: the exit code is 0. SIGHUP makes it read its tokens
/// and certificates again, and open its audit log anew; at a terminal, and without such files, it is the end of the terminal.
/// SIGUSR1 makes it log how it is doing. Where it listens goes to standard output, everything after that to standard
/// error.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A file that describes the group; 'catraca config check FILE' explains it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Which member this node is.
    #[arg(long)]
    name: Option<String>,
    /// All members, this one too: NAME=HOST:PORT or NAME=HOST:PORT@CLUSTER, with commas between.
    #[arg(long, value_name = "LIST", conflicts_with = "config")]
    members: Option<String>,
    /// Where to listen, if not at the member's own address. Port 0 lets the system choose.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// The cluster that this member is in. The others must be told the same, by @CLUSTER.
    #[arg(long, value_name = "LABEL")]
    cluster: Option<String>,
    /// The group's name. Members of different groups do not talk to each other.
    #[arg(long)]
    group: Option<String>,
    /// Join a group by one of its nodes, or by the first of several that answers. Says --name and --listen,
    /// at an address where the others reach this node; the rest is what the group says.
    #[arg(long, value_name = "ADDR,...", value_delimiter = ',', value_parser = at_node, conflicts_with_all = ["config", "members"], requires = "name", requires = "listen")]
    join: Vec<String>,
    /// Where this node keeps its part of the registry: who the members are, their leases, durable holds.
    /// A directory for each node; by default in $XDG_DATA_HOME/catraca, or ~/.local/share/catraca.
    #[arg(long, value_name = "DIR", conflicts_with = "registry")]
    data: Option<PathBuf>,
    /// Keep the registry in an etcd cluster instead: etcd://HOST:PORT,..., or etcds://...?ca=FILE
    /// with TLS; docs/SERVICE.md tells the rest.
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
    /// How long a member that is silent stays in the group, as in 5s. The same at all members.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    lease: Option<Duration>,
    /// How long whoever holds a lock here may finish when the node is stopped, as in 5s.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    drain: Option<Duration>,
    /// The algorithm that guards all names; 'catraca algorithms' lists them.
    #[arg(long, value_name = "NAME")]
    algorithm: Option<String>,
    #[command(flatten)]
    http: HttpArguments,
    #[command(flatten)]
    git: GitArguments,
    #[command(flatten)]
    operations: operations::OperationArguments,
    #[command(flatten)]
    security: SecurityArguments,
    #[command(flatten)]
    resp: RespArguments,
    /// Tell more.
    #[arg(short, long)]
    verbose: bool,
}

/// How often a group that cannot be reached is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// The user that the service runs as.
const SERVICE_USER: &str = "catraca";

const EXAMPLES: &str = "\
Examples:
  catraca node
  catraca node --name a --members a=10.0.0.1:7800,b=10.0.0.2:7800,c=10.0.0.3:7800
  catraca node --config group.toml --name b
  catraca node --join 10.0.0.1:7800 --name d --listen 10.0.0.4:7800
A node that other machines reach takes --tokens or --tls-ca as well, or --insecure.";

/// Half of the cores. What a node does for a request is short; the system's part of it is longer, and so is
/// that of clients on the same machine. More threads would mostly wake each other.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let config = self.config()?;
        let level = if self.verbose { Level::DEBUG } else { Level::INFO };
        log::install(level, self.operations.log_format);
        if let Some(files) = open_files::allow(u64::MAX) {
            tracing::debug!("at most {files} open files, and nearly as many connections");
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads())
            .enable_all()
            .build();
        let system = |error: io::Error| Failure::System(anyhow::Error::msg(reason(&error)));
        let runtime = runtime.map_err(system)?;
        let served = runtime.block_on(serve(config));
        // A thread of its own may still look up a name, or wait for a disk: nobody waits for that any more.
        runtime.shutdown_background();
        served
    }

    /// What the flags and the file say together; flags win.
    fn config(&self) -> Result<Config, Failure> {
        let mut config = match (&self.config, &self.members) {
            (Some(file), _) => read(file, self.name.as_deref())?,
            (None, Some(list)) => {
                let members = Config::members_from(list).map_err(Failure::input)?;
                Config::new(self.name.as_deref().unwrap_or_default(), members)
            }
            (None, None) if !self.join.is_empty() => self.joining()?,
            (None, None) => self.alone(),
        };
        if config.name.is_empty() {
            let names: Vec<&str> = config.members.iter().map(|it| it.name.as_str()).collect();
            let names = names.join(", ");
            return Err(Failure::Input(format!(
                "which member is this node? Say --name with one of: {names}"
            )));
        }
        config.group = self.group.clone().unwrap_or(config.group);
        config.listen = self.listen.clone().or(config.listen);
        if let Some(label) = &self.cluster {
            let own = config.members.iter_mut().find(|member| member.name == config.name);
            if let Some(own) = own {
                if own.cluster.as_ref().is_some_and(|told| told != label) {
                    return Err(Failure::input("--cluster: the list of members says otherwise"));
                }
                own.cluster = Some(label.clone());
            }
        }
        if let Some(algorithm) = &self.algorithm {
            config.namespaces = vec![Namespace::new("*", algorithm)];
        }
        config.lease = self.lease.unwrap_or(config.lease);
        config.drain = self.drain.unwrap_or(config.drain);
        self.http.add_to(&mut config.http);
        self.git.add_to(&mut config.git);
        self.resp.add_to(&mut config.resp);
        config.registry = self.registry_place(&config)?;
        config.audit = self.operations.audit(config.audit);
        self.security.apply(&mut config)?;
        match config.check() {
            Err(ConfigError::Namespace { error, .. }) if self.algorithm.is_some() => {
                Err(error.into())
            }
            checked => checked.map(|()| config).map_err(of_config),
        }
    }

    /// Where the registry is: what the flags say, or else the file, or else the usual directory.
    fn registry_place(&self, config: &Config) -> Result<RegistryPlace, Failure> {
        Ok(match (&self.data, &self.registry) {
            (Some(data), _) => RegistryPlace::Directory(data.clone()),
            (None, Some(url)) => RegistryPlace::Etcd(url.clone()),
            (None, None) if config.registry == RegistryPlace::Memory => {
                RegistryPlace::Directory(usual_directory()?.join(&config.group).join(&config.name))
            }
            (None, None) => config.registry.clone(),
        })
    }

    /// One more member of a group that is there already.
    fn joining(&self) -> Result<Config, Failure> {
        let nodes = self.security.to_join(&self.join)?;
        let description = block_on(async { describe(&nodes).await })?;
        let Description { group, mut members, namespaces, lease, registry } = description;
        match (registry, &self.registry) {
            (RegistryKind::Etcd, None) => {
                return Err(Failure::Input(format!(
                    "group '{group}' keeps its registry in etcd: say --registry with the same URL as its members"
                )));
            }
            // Another registry would be another group, of the same name.
            (RegistryKind::Members, Some(_)) => {
                return Err(Failure::Input(format!(
                    "--registry: group '{group}' keeps its registry among its members: leave the flag out"
                )));
            }
            _ => {}
        }
        let (name, listen) = (self.name.clone().unwrap_or_default(), self.listen.clone());
        if !members.iter().any(|member| member.name == name) {
            let address = listen.unwrap_or_default();
            members.push(Member { name: name.clone(), address, cluster: self.cluster.clone() });
        }
        let config = Config::new(&name, members);
        Ok(Config { group, namespaces, lease, may_register: true, ..config })
    }

    /// A group of one, at the address that it listens at.
    fn alone(&self) -> Config {
        let mut config = Config::alone();
        if let Some(name) = &self.name {
            config.name.clone_from(name);
            config.members[0].name.clone_from(name);
        }
        if let Some(listen) = &self.listen {
            config.members[0].address.clone_from(listen);
        }
        config
    }
}

/// Asks until one of the nodes says what their group is.
async fn describe(nodes: &Nodes) -> Result<Description, Failure> {
    let mut told = false;
    loop {
        let error = match Connection::open_any(nodes).await {
            Ok(mut connection) => match connection.describe().await {
                Ok(description) if !description.members.is_empty() => return Ok(description),
                Ok(_) => "its group has not begun yet".to_string(),
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        if !std::mem::replace(&mut told, true) {
            // If standard error is closed there is nobody to tell.
            writeln!(io::stderr(), "catraca: waits for a group to join: {error}").ok();
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Where programs of this user keep their data, by the XDG rules; a service has a place of its own.
pub(super) fn usual_directory() -> Result<PathBuf, Failure> {
    let none = || Failure::input("this user has no home directory: say --data DIR");
    directory_of(|name| std::env::var_os(name)).ok_or_else(none)
}

/// The same for a user with these variables. The rules ignore paths that are not absolute.
fn directory_of(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if variable("USER").is_some_and(|user| user == SERVICE_USER) {
        return Some(PathBuf::from("/var/lib/catraca"));
    }
    let absolute = |name| variable(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let data =
        absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("catraca"))
}

/// What is wrong with a configuration, with the nearest name to a wrong one.
pub(crate) fn of_config(error: ConfigError) -> Failure {
    match error {
        ConfigError::Line { line, error } => match of_config(*error) {
            Failure::Input(message) => Failure::Input(format!("line {line}: {message}")),
            failure => failure,
        },
        ConfigError::Namespace { pattern, error: error @ SpecError::UnknownAlgorithm(_) } => {
            match Failure::from(error) {
                Failure::Input(message) => {
                    Failure::Input(format!("namespace '{pattern}': {message}"))
                }
                failure => failure,
            }
        }
        other => Failure::input(other),
    }
}

/// Reads a file that describes a group.
pub(crate) fn read(file: &Path, name: Option<&str>) -> Result<Config, Failure> {
    let place = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::Input(format!("cannot read '{place}': {}", reason(&error))))?;
    Config::from_shared_toml(&text, name).map_err(|error| match of_config(error) {
        Failure::Input(message) => Failure::Input(format!("{place}: {message}")),
        failure => failure,
    })
}

async fn serve(config: Config) -> Outcome {
    let system = |error: io::Error| Failure::System(anyhow::Error::msg(reason(&error)));
    // Before anybody is told that there is a node to stop.
    let mut signals = Signals::listen().map_err(system)?;
    let (name, group) = (config.name.clone(), config.group.clone());
    let (members, drain) = (config.members.len(), config.drain);
    let is_among_two = members == 2 && matches!(config.registry, RegistryPlace::Directory(_));
    let reloads = security::reloads(&config.security) || config.audit.file.is_some();
    let security = config.security.clone();
    let mut manager = Manager::of_environment();
    let started = tokio::select! {
        started = Node::start(config) => started,
        signal = end_of(&mut signals, reloads) => {
            // It is in no group yet: there is nobody to tell.
            tracing::info!(signal = signal.as_str(), "stopped while it was starting");
            return Ok(());
        }
    };
    let node = started.map_err(of_start)?;
    if is_among_two {
        tracing::warn!(
            "a group of two goes on only while the one that keeps the registry is there; three go on without any one"
        );
    }
    greet(&name, &group, members, &node, &security)?;
    loop {
        let signal = tokio::select! {
            signal = signals.next() => signal,
            () = manager.is_due() => {
                manager.tell(&node.status());
                continue;
            }
            () = node.left() => {
                tracing::info!("this node has left its group");
                break;
            }
        };
        match signal {
            Signal::SIGUSR1 => tell(&node.status()),
            Signal::SIGHUP if reloads => {
                manager.reloading();
                reload(&node);
            }
            // It has no meaning here, but must not end a node.
            Signal::SIGUSR2 => {}
            which => {
                tracing::info!(signal = which.as_str(), "stopping");
                break;
            }
        }
    }
    manager.stopping(drain);
    let fast_stop = node.fast_stop();
    let stopping = node.stop();
    tokio::pin!(stopping);
    loop {
        tokio::select! {
            () = &mut stopping => return Ok(()),
            () = manager.is_due() => manager.alive(),
            signal = signals.next() => match signal {
                Signal::SIGUSR1 | Signal::SIGUSR2 => {}
                Signal::SIGHUP if reloads => {}
                _ => fast_stop.stop(),
            }
        }
    }
}

/// Waits for a signal that ends a node which has not started yet.
async fn end_of(signals: &mut Signals, reloads: bool) -> Signal {
    loop {
        match signals.next().await {
            Signal::SIGUSR1 | Signal::SIGUSR2 => {}
            Signal::SIGHUP if reloads => {}
            signal => return signal,
        }
    }
}

/// Why a node did not start.
fn of_start(error: StartError) -> Failure {
    match error {
        StartError::Insecure(_)
        | StartError::Tokens(_)
        | StartError::Tls(_)
        | StartError::Socket(_) => security::of_start(&error),
        StartError::Config(error) => of_config(error),
        StartError::Registry(RegistryError::Url(error)) => Failure::input(error),
        error => Failure::System(anyhow::Error::msg(error.to_string())),
    }
}

/// Reads tokens and certificates again, and opens the audit log anew.
fn reload(node: &Node) {
    node.reopen_logs();
    match node.reload() {
        Ok(()) => tracing::info!("tokens and certificates were read again"),
        Err(why) => tracing::error!(%why, "goes on with what it has read before"),
    }
}

/// Logs how the node is doing.
fn tell(status: &Status) {
    let Status { locks, held, waiting, sessions, grants, anomalies, readiness, .. } = status;
    tracing::info!(?readiness, locks, held, waiting, sessions, grants, anomalies, "status");
}

/// Says where the node is and what to type next.
fn greet(
    name: &str,
    group: &str,
    members: usize,
    node: &Node,
    security: &SecurityConfig,
) -> Outcome {
    let address = node.address();
    let flag = security::way_to(node, &from_here(address).to_string(), security);
    let what = match members {
        1 => format!("Node '{name}', alone in group '{group}'"),
        _ => format!("Node '{name}' of {members} in group '{group}'"),
    };
    let mut out = Stdout::lock();
    let when = if members == 1 { "Now try" } else { "When all members are there, try" };
    writeln!(out, "{what}, listens at {address}. {when}, elsewhere:")?;
    writeln!(out, "  catraca lock{flag} deploy -- ./deploy.sh   # run a command under a lock")?;
    writeln!(out, "  catraca locks{flag}                        # who holds, who waits")?;
    writeln!(out, "  catraca status{flag}                       # members and counters")?;
    let has_tls = security.tls.is_some();
    if let Some(http) = node.http_address() {
        let (scheme, http) = (if has_tls { "https" } else { "http" }, from_here(http));
        writeln!(out, "  curl {scheme}://{http}/v1/locks   # HTTP; its page is at /")?;
    }
    if let Some(resp) = node.resp_address() {
        let (host, port) = (from_here(resp).ip(), resp.port());
        let tls = if has_tls { " --tls" } else { "" };
        writeln!(out, "  redis-cli{tls} -h {host} -p {port} CATRACA.HELP   # the Redis protocol")?;
    }
    out.flush()?;
    Ok(())
}

/// Where what listens at `address` can be called on its own machine.
pub(super) fn from_here(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_where_the_rules_of_xdg_say_and_that_of_the_service_in_its_own_place() {
        let directory = |variables: &[(&str, &str)]| {
            let found = directory_of(|name| {
                let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
                Some(OsString::from(value))
            });
            found.map(|path| path.display().to_string()).unwrap_or_default()
        };
        let (home, data) = (("HOME", "/home/ana"), ("XDG_DATA_HOME", "/data"));
        assert_eq!(directory(&[home]), "/home/ana/.local/share/catraca");
        assert_eq!(directory(&[home, data]), "/data/catraca");
        assert_eq!(directory(&[data]), "/data/catraca");
        for no_path in ["", "data", "./data"] {
            let relative = ("XDG_DATA_HOME", no_path);
            assert_eq!(directory(&[home, relative]), "/home/ana/.local/share/catraca");
            assert_eq!(directory(&[relative]), "");
        }
        assert_eq!(directory(&[("USER", "ana")]), "");
        assert_eq!(directory(&[("USER", "catraca"), home, data]), "/var/lib/catraca");
    }

    #[test]
    fn whoever_listens_everywhere_is_called_at_the_loopback_address() {
        let here = |text: &str| from_here(text.parse().unwrap()).to_string();
        assert_eq!(here("0.0.0.0:7813"), "127.0.0.1:7813");
        assert_eq!(here("[::]:7813"), "[::1]:7813");
        assert_eq!(here("10.0.0.0:7813"), "10.0.0.0:7813");
    }
}
