//! How a node is told what to be: by flags, by a file, or by a program.

mod audit;
mod error;
mod file;
mod git;
mod http;
mod resp;
mod security;

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use catraca_algorithms::hi_adsd;
use catraca_client::DEFAULT_ADDRESS;
use catraca_group::{Lease, MOST_MEMBERS, Member, Namespace, Settings, Turns, View};

pub use self::resp::RespConfig;
pub use self::security::{SecurityConfig, TlsFiles};
use crate::registry::RegistryPlace;
pub use audit::AuditConfig;
pub use error::ConfigError;
pub use git::{
    Fold, GIT_TURNS, GitConfig, Policy, RepositoryConfig, RepositorySettings, StealRole,
    WebhookConfig,
};

pub use http::HttpConfig;

/// The group of a node that was told nothing.
const DEFAULT_GROUP: &str = "catraca";
/// The algorithm of names for which none was chosen.
pub const DEFAULT_ALGORITHM: &str = "naimi-trehel";
/// The same, where members carry the labels of clusters.
pub const CLUSTER_ALGORITHM: &str = "bertier";
const DEFAULT_LOCKS: usize = 1_000_000;
/// How long whoever is inside may finish when a node stops that was told nothing.
const USUAL_DRAIN: Duration = Duration::from_secs(5);
/// A lease is not shorter, as a busy machine could not keep it up, and not longer, as nobody would wait
/// for it.
pub const LEASE_RANGE: RangeInclusive<Duration> =
    Duration::from_millis(500)..=Duration::from_secs(60);
/// More would not fit into any memory.
const MOST_LOCKS: u64 = 1_000_000_000;

/// What a node is told.
///
/// ```
/// use catraca_node::Config;
///
/// let alone = Config::alone();
/// assert_eq!(alone.members.len(), 1);
/// let of_three = Config::from_toml(
///     r#"
///     name = "a"
///     [members]
///     a = "10.0.0.1:7800"
///     b = "10.0.0.2:7800"
///     c = "10.0.0.3:7800"
///     [[namespace]]
///     names = "ci/*"
///     algorithm = "raymond"
///     "#,
/// )?;
/// assert_eq!(of_three.name, "a");
/// # Ok::<(), catraca_node::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The group's name. Members of different groups do not talk to each other.
    pub group: String,
    /// Which member this node is.
    pub name: String,
    /// Every member, in any order.
    pub members: Vec<Member>,
    /// Where to listen, if not at the member's own address.
    pub listen: Option<String>,
    /// Which algorithm guards which names; the first pattern that fits counts.
    pub namespaces: Vec<Namespace>,
    /// How long this node keeps a lock, before clients of other nodes get their turn.
    pub turns: Turns,
    /// How many locks the clients of this node may begin. Those of other members come on top.
    pub most_locks: usize,
    /// A detector that takes a member for crashed that does not answer in time, for the algorithm that
    /// wants to know, `robust-k`. It can be wrong about a member that is cut off, and both sides may be
    /// let in then. Without one, crashes are heard of by the view, which is never wrong.
    pub detector: Option<hi_adsd::Config>,
    /// Where the group keeps its registry.
    pub registry: RegistryPlace,
    /// How long a member that is silent stays in the group; the same at all members.
    pub lease: Duration,
    /// How long a node that stops lets whoever is inside finish.
    pub drain: Duration,
    /// Whether this member may join a group whose members have not been told of it.
    pub may_register: bool,
    /// Where and how HTTP is served.
    pub http: HttpConfig,
    /// What is to be known of Git repositories, whose locks are served over HTTP.
    pub git: GitConfig,
    /// Where it writes down who holds what and who administers what.
    pub audit: AuditConfig,
    /// Where and how the Redis protocol is served.
    pub resp: RespConfig,
    /// Who may use it.
    pub security: SecurityConfig,
}

impl Config {
    /// A group of one, on this machine only.
    pub fn alone() -> Self {
        Self::new("alone", vec![member("alone", DEFAULT_ADDRESS)])
    }

    /// Member `name` of a group.
    pub fn new(name: &str, members: Vec<Member>) -> Self {
        Config {
            group: DEFAULT_GROUP.to_string(),
            name: name.to_string(),
            members,
            listen: None,
            namespaces: Vec::new(),
            turns: Turns::USUAL,
            most_locks: DEFAULT_LOCKS,
            detector: None,
            registry: RegistryPlace::Memory,
            lease: Lease::USUAL.ttl,
            drain: USUAL_DRAIN,
            may_register: false,
            http: HttpConfig::default(),
            git: GitConfig::default(),
            audit: AuditConfig::default(),
            resp: RespConfig::default(),
            security: SecurityConfig::default(),
        }
    }

    /// Reads a list of members as on the command line: `a=127.0.0.1:7801,b=127.0.0.1:7802`, or with
    /// the labels of clusters: `a=10.0.0.1:7800@paris,b=10.1.0.1:7800@rio`.
    pub fn members_from(text: &str) -> Result<Vec<Member>, ConfigError> {
        let one = |part: &str| match part.trim().split_once('=') {
            Some((name, place)) => Ok(match place.split_once('@') {
                None => member(name.trim(), place.trim()),
                Some((address, label)) => {
                    let cluster = Some(label.trim().to_string());
                    Member { cluster, ..member(name.trim(), address.trim()) }
                }
            }),
            None => Err(ConfigError::Unreadable(part.trim().to_string())),
        };
        text.split(',').map(one).collect()
    }

    /// Reads a file that says which member this node is.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let config = Self::from_shared_toml(text, None)?;
        if config.name.is_empty() { Err(ConfigError::Nameless) } else { Ok(config) }
    }

    /// Reads a file that all members may share. Which one this node is, is said beside it, or by the
    /// file; if nobody says so, the configuration has no name yet.
    pub fn from_shared_toml(text: &str, name: Option<&str>) -> Result<Self, ConfigError> {
        file::read(text, name)
    }

    /// Which algorithm guards which names, to the last: the usual one for all that is left.
    pub fn all_namespaces(&self) -> Vec<Namespace> {
        let labelled = self.members.iter().any(|member| member.cluster.is_some());
        let usual = if labelled { CLUSTER_ALGORITHM } else { DEFAULT_ALGORITHM };
        let is_covered = self.namespaces.iter().any(|namespace| namespace.covers("*"));
        let rest = (!is_covered).then(|| Namespace::new("*", usual));
        self.namespaces.iter().cloned().chain(rest).collect()
    }

    /// Checks everything. A configuration that all members share has no name yet.
    pub fn check(&self) -> Result<(), ConfigError> {
        let first = self.members.first().map(|member| member.name.clone()).unwrap_or_default();
        let name = if self.name.is_empty() { first } else { self.name.clone() };
        Config { name, ..self.clone() }.view().map(drop)
    }

    /// The member at which the lock `name` begins: its token starts there, or its coordinator is
    /// there.
    pub fn home_of(&self, name: &str) -> Result<String, ConfigError> {
        let view = self.view()?;
        let namespace = view.namespace(name);
        // The names of a namespace that knows sets are guarded together.
        let sets = view.knows_sets(namespace, 1);
        let name = if sets { &view.namespaces[namespace].pattern } else { name };
        Ok(view.members[view.home(name)].name.clone())
    }

    /// Checks everything, and makes of it what all members agree on.
    pub(crate) fn view(&self) -> Result<View, ConfigError> {
        self.check_members()?;
        if !is_plain(&self.group) {
            return Err(ConfigError::Group(self.group.clone()));
        }
        let unknown = || ConfigError::UnknownMember {
            name: self.name.clone(),
            members: list(self.members.iter().map(|member| member.name.as_str())),
        };
        let mut members = self.members.clone();
        // Places in the group must be the same everywhere, whatever order each was told.
        members.sort_by(|one, other| one.name.cmp(&other.name));
        let is_me = |member: &Member| member.name == self.name;
        let me = members.iter().position(is_me).ok_or_else(unknown)?;
        // It comes first: a namespace that fits these names too cannot take them away.
        let turns = git::turns();
        let mut namespaces = self.all_namespaces();
        if let Some(own) = namespaces.iter().find(|own| turns.covers(&own.pattern)) {
            return Err(ConfigError::Reserved(own.pattern.clone()));
        }
        namespaces.insert(0, turns);
        if namespaces.iter().any(|namespace| namespace.pattern.is_empty()) {
            return Err(ConfigError::NoNames);
        }
        for (index, Namespace { pattern, .. }) in namespaces.iter().enumerate() {
            if let Some(first) = namespaces[..index].iter().find(|first| first.covers(pattern)) {
                let (pattern, before) = (pattern.clone(), first.pattern.clone());
                return Err(ConfigError::NeverApplies { pattern, before });
            }
        }
        if let Some(hi_adsd::Config { interval, timeout, .. }) = self.detector
            && interval < timeout
        {
            return Err(ConfigError::Detector { interval, timeout });
        }
        if !LEASE_RANGE.contains(&self.lease) {
            return Err(ConfigError::Lease(self.lease));
        }
        if let Some((key, given, least, most)) = self.audit.fault() {
            return Err(ConfigError::Range { key, given, least, most });
        }
        self.security.check(&members)?;
        let view = View::new(members, me, namespaces, self.detector);
        view.check().map_err(|(namespace, error)| ConfigError::Namespace {
            pattern: view.namespaces[namespace].pattern.clone(),
            error,
        })?;
        Ok(view)
    }

    /// This member, as the others are to know it.
    pub(crate) fn own(&self) -> Result<Member, ConfigError> {
        Ok(self.view()?.own().clone())
    }

    /// Checks everything, and makes of it what the member has to know.
    pub(crate) fn settings(&self) -> Result<Settings, ConfigError> {
        let view = self.view()?;
        Ok(Settings {
            member: view.own().clone(),
            lease: Lease::of(self.lease),
            namespaces: view.namespaces,
            detector: self.detector,
            roster: view.members,
            may_register: self.may_register,
        })
    }

    fn check_members(&self) -> Result<(), ConfigError> {
        if let Some(listen) = self.listen.as_ref().filter(|listen| !is_address(listen)) {
            return Err(ConfigError::Address(listen.clone()));
        }
        self.http.check()?;
        self.resp.check()?;
        self.git.check()?;
        match self.members.len() {
            0 => return Err(ConfigError::Empty),
            many if many > MOST_MEMBERS => return Err(ConfigError::Members(many)),
            _ => {}
        }
        for (index, Member { name, address, .. }) in self.members.iter().enumerate() {
            check_member(&self.members[index])?;
            for other in &self.members[..index] {
                if other.name == *name {
                    return Err(ConfigError::Twice(name.clone()));
                }
                // Port 0 is for tests: the system picks one.
                if other.address == *address && !address.ends_with(":0") {
                    let (one, two) = (other.name.clone(), name.clone());
                    return Err(ConfigError::SameAddress(one, two, address.clone()));
                }
            }
        }
        Ok(())
    }
}

/// Whether this can be a member of a group.
pub(crate) fn check_member(member: &Member) -> Result<(), ConfigError> {
    let Member { name, address, cluster } = member;
    if !is_plain(name) {
        return Err(ConfigError::Name(name.clone()));
    }
    if !is_address(address) {
        return Err(ConfigError::Address(address.clone()));
    }
    match cluster.as_ref().filter(|label| !is_plain(label)) {
        Some(label) => Err(ConfigError::Cluster(label.clone())),
        None => Ok(()),
    }
}

fn member(name: &str, address: &str) -> Member {
    Member { name: name.to_string(), address: address.to_string(), cluster: None }
}

fn is_plain(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

fn is_address(address: &str) -> bool {
    if address.parse::<SocketAddr>().is_ok() {
        return true;
    }
    match address.rsplit_once(':') {
        Some((host, port)) => {
            let is_name = !host.is_empty() && !host.contains([':', '/', ' ']);
            is_name && host.parse::<IpAddr>().is_err() && port.parse::<u16>().is_ok()
        }
        None => false,
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Config::from_toml(text).unwrap_err().to_string()
    }

    #[test]
    fn a_file_says_who_belongs_to_the_group_and_what_guards_what() {
        let config = Config::from_toml(
            "group = 'g'\nname = 'b'\nhandovers = 3\nturn-rounds = 2\nlocks = 10\n[members]\nb = '10.0.0.2:7800'\n\
             a = { address = 'host-a:7800', cluster = 'x' }\n\
             [[namespace]]\nnames = 'ci/*'\nalgorithm = 'raymond'\n",
        )
        .unwrap();
        assert_eq!(
            (config.group.as_str(), config.turns.handovers, config.most_locks),
            ("g", 3, 10)
        );
        let view = config.view().unwrap();
        assert_eq!((view.members[0].name.as_str(), view.me), ("a", 1), "members are sorted");
        assert_eq!(view.namespaces[view.namespace("ci/x")].algorithm, "raymond");
        assert_eq!(view.namespaces[view.namespace("x")].algorithm, "bertier", "there are labels");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_in_one_line() {
        let two = "[members]\na = '127.0.0.1:1'\nb = '127.0.0.1:2'\n";
        let cases = [
            ("nmae = 'a'", "line 1: unknown field `nmae`"),
            ("name = = 3", "line 1: "),
            (two, "which member is this node?"),
            (
                "name='c'\n[members]\na='127.0.0.1:1'",
                "line 1: there is no member 'c'; the members are a",
            ),
            (
                "name='a'\n[members]\na='127.0.0.1:1'\nb='127.0.0.1:1'",
                "line 4: members 'a' and 'b' have",
            ),
            ("[members]\n'a b'='127.0.0.1:1'", "line 2: 'a b' is no name for a member"),
            ("[members]\na='127.0.0.1'", "'127.0.0.1' is no address"),
            ("\nlisten='7800'", "line 2: '7800' is no address"),
            ("[http]\nlisten='8080'", "line 2: '8080' is no address"),
            ("[http]\nport=1", "line 2: unknown field `port`"),
            ("[members]\na={address='h:1',cluster='x y'}", "line 2: 'x y' is no label"),
            ("[members]\na=3", "an address, or a table"),
            ("[members]\n", "a group needs at least one member"),
            ("group='x y'", "is no name for a group"),
            ("handovers = 256", "handovers is 256, but goes from 0 to 63"),
            ("turn-rounds = 0", "turn-rounds is 0, but goes from 1 to 64"),
            ("\nlocks = 0", "line 2: locks is 0, but goes from 1 to 1000000000"),
            (
                "[[namespace]]\nnames='x'\nalgorithm='bouabdallah-laforest'\nresources=1000000",
                "line 1: resources is 1000000, but goes from 1 to 65536",
            ),
            (
                "[[namespace]]\nnames='x'\nalgorithm='raymond'\nresources=2",
                "line 1: namespace 'x': 'raymond' takes no resources; leave it out",
            ),
            (
                "[[namespace]]\nnames='*'\nalgorithm='raymond'\n[[namespace]]\nnames='x*'\nalgorithm='raymond'",
                "line 4: namespace 'x*' never applies: '*' comes first and fits its names",
            ),
            (
                "[[namespace]]\nnames='a*b'\nalgorithm='raymond'\n[[namespace]]\nnames='a*b'\nalgorithm='lamport'",
                "line 4: namespace 'a*b' never applies: 'a*b' comes first",
            ),
            (
                "[[namespace]]\nnames='x'\nalgorithm='nobody'",
                "line 1: namespace 'x': there is no algorithm 'nobody'",
            ),
            ("\n[detector]\ninterval=20", "line 2: a detector by time-outs can take a member for"),
            (
                "\n[detector]\nalgorithm='lamport'",
                "line 2: a detector by time-outs can take a member for crashed that is only cut off",
            ),
            (
                "\n[detector]\nalgorithm='hi-adsd'\ninterval=1",
                "line 2: the detector tests every 1s but waits 10s for an answer; make interval",
            ),
            (
                "[detector]\nalgorithm='hi-adsd'\ntimeout=-1",
                "line 1: timeout is -1, but is a time in seconds",
            ),
            ("[detector]\nnews='slow'", "unknown variant `slow`"),
            ("\nlease = 0.1", "line 2: a lease lasts from 500ms to 60s, not 100ms"),
            ("\nlease = 61", "line 2: a lease lasts from 500ms to 60s, not 61s"),
            ("[resp]\nlisten='6379'", "line 2: '6379' is no address"),
            ("[resp]\npark=61", "line 2: a SET NX waits at most 60s in a queue, not 61s"),
            ("[resp]\nport=1", "line 2: unknown field `port`"),
            ("drain = 3601", "drain is 3601, but goes from 0 to 3600"),
            (
                "data = '/d'\nregistry = 'etcd://h:2379'",
                "line 2: the registry is either in a directory of this node or in etcd",
            ),
            (
                "[[namespace]]\nnames='x'\nalgorithm='raymond'\nack-timeout=1",
                "line 1: namespace 'x': 'raymond' takes no ack-timeout",
            ),
            (
                "[[namespace]]\nnames='x'\nalgorithm='robust-k'\nack-timeout=0",
                "line 1: ack-timeout is 0, but is a time",
            ),
            ("[[namespace]]\nnames=''\nalgorithm='raymond'", "a namespace needs names"),
            (
                "[[namespace]]\nnames='git-batch/art/*'\nalgorithm='raymond'",
                "line 1: namespace 'git-batch/art/*' cannot be: the group itself uses the names 'git-batch/*'",
            ),
            ("\n[security]\ntls-cert='x'", "line 2: TLS takes a certificate and its key"),
            ("\n[security]\ntls-ca='x'", "line 2: TLS takes a certificate and its key"),
            ("[security]\ntokns='x'", "line 2: unknown field `tokns`"),
            ("[security]\nsocket-role='king'", "line 2: unknown variant `king`"),
            (
                "name='a'\n[members]\na='h:1'\nb='h:2'\n[security]\ntls-cert='x'\ntls-key='y'",
                "line 5: a group of several members that uses TLS needs an authority",
            ),
            (
                "[members]\n1='h:1'\n[security]\ntls-cert='x'\ntls-key='y'\ntls-ca='z'",
                "line 3: no certificate can be for a member called '1'",
            ),
        ];
        for (text, expected) in cases {
            let error = error(text);
            assert!(error.contains(expected) && error.lines().count() == 1, "{text}: {error}");
        }
    }

    #[test]
    fn no_namespace_takes_away_the_names_that_the_group_uses_itself() {
        for own in ["*", "git*", "git-batch*", "*/x"] {
            let mut config = Config::alone();
            config.namespaces = vec![Namespace::new(own, "raymond")];
            let view = config.view().unwrap();
            let turns = view.namespace("git-batch/art/game/x");
            assert!(view.knows_sets(turns, 1), "{own}");
            assert_eq!(view.algorithm(turns, 1), "bouabdallah-laforest");
        }
    }

    #[test]
    fn a_file_for_all_members_is_told_which_one_this_is() {
        let text = "[members]\na = '127.0.0.1:1'\nb = '127.0.0.1:2'\n";
        assert_eq!(Config::from_shared_toml(text, None).unwrap().name, "");
        assert_eq!(Config::from_shared_toml(text, Some("b")).unwrap().name, "b");
        let stranger = Config::from_shared_toml(text, Some("c")).unwrap_err();
        assert_eq!(stranger.to_string(), "there is no member 'c'; the members are a, b");
    }

    #[test]
    fn members_on_the_command_line_have_a_name_and_an_address() {
        let members = Config::members_from("a=127.0.0.1:7801, b=host:7802").unwrap();
        assert_eq!((members[1].name.as_str(), members[1].address.as_str()), ("b", "host:7802"));
        let labelled = Config::members_from("a=127.0.0.1:7801@paris,b=[::1]:7802@rio").unwrap();
        assert_eq!(labelled[1].address, "[::1]:7802");
        assert_eq!(labelled[1].cluster.as_deref(), Some("rio"));
        let unlabelled = Config::new("a", Config::members_from("a=h:1@").unwrap());
        assert_eq!(unlabelled.view(), Err(ConfigError::Cluster(String::new())));
        assert_eq!(Config::members_from("a"), Err(ConfigError::Unreadable("a".to_string())));
        let twice = Config::new("a", Config::members_from("a=h:1,a=h:2").unwrap());
        assert_eq!(twice.view(), Err(ConfigError::Twice("a".to_string())));
        let none = Config::new("a", Vec::new());
        assert_eq!(none.view(), Err(ConfigError::Empty));
    }
}
