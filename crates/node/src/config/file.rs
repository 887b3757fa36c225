//! A configuration as a file: what its keys are, and at which line something is wrong.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use catraca_algorithms::hi_adsd::{self, News};
use catraca_algorithms::{SpecError, registry};
use serde::Deserialize;
use toml::Spanned;

use super::audit::{AuditConfig, KEEP, MAX_BYTES};
use super::git::{self, GitEntry};
use super::http::HttpEntry;
use super::resp::RespEntry;
use super::security::SecurityEntry;
use super::{Config, ConfigError, MOST_LOCKS, member};
use crate::registry::RegistryPlace;
use catraca_group::{MOST_HANDOVERS, MOST_RESOURCES, Member, Namespace, Turns, USUAL_DETECTOR};

const TURN_ROUNDS: &str = "turn-rounds";

/// What `text` says, checked.
pub(super) fn read(text: &str, name: Option<&str>) -> Result<Config, ConfigError> {
    let file: File = toml::from_str(text).map_err(|error| toml_error(text, &error))?;
    let config = file.config(name);
    let checked = config.and_then(|config| config.check().map(|()| config));
    checked.map_err(|error| match file.place(&error) {
        Some(place) => ConfigError::Line { line: line(text, place), error: Box::new(error) },
        None => error,
    })
}

fn toml_error(text: &str, error: &toml::de::Error) -> ConfigError {
    let line = line(text, error.span().map_or(0, |span| span.start));
    ConfigError::Toml { line, message: error.message().lines().collect::<Vec<_>>().join("; ") }
}

/// The line, counted from 1, of a place in `text`.
fn line(text: &str, place: usize) -> usize {
    text.bytes().take(place).filter(|&byte| byte == b'\n').count() + 1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    group: Option<Spanned<String>>,
    name: Option<Spanned<String>>,
    listen: Option<Spanned<String>>,
    members: Option<BTreeMap<String, Spanned<MemberEntry>>>,
    #[serde(default)]
    namespace: Vec<Spanned<NamespaceEntry>>,
    handovers: Option<Spanned<u64>>,
    #[serde(rename = "turn-rounds")]
    turn_rounds: Option<Spanned<u64>>,
    #[serde(rename = "locks")]
    most_locks: Option<Spanned<u64>>,
    detector: Option<Spanned<DetectorEntry>>,
    lease: Option<Spanned<f64>>,
    drain: Option<Spanned<f64>>,
    data: Option<Spanned<String>>,
    registry: Option<Spanned<String>>,
    #[serde(default)]
    http: HttpEntry,
    audit: Option<Spanned<AuditConfig>>,
    security: Option<Spanned<SecurityEntry>>,
    #[serde(default)]
    resp: RespEntry,
    git: Option<Spanned<GitEntry>>,
}

impl File {
    /// What the file says, unchecked.
    fn config(&self, name: Option<&str>) -> Result<Config, ConfigError> {
        let members: Vec<Member> = match &self.members {
            None => Config::alone().members,
            Some(members) => {
                members.iter().map(|(name, entry)| entry.as_ref().member(name)).collect()
            }
        };
        let own = self.name.as_ref().map(|name| name.as_ref().as_str());
        let name = match (name.or(own), members.as_slice()) {
            (Some(name), _) => name.to_string(),
            (None, [only]) => only.name.clone(),
            (None, _) => String::new(),
        };
        let mut config = Config::new(&name, members);
        config.listen = self.listen.clone().map(Spanned::into_inner);
        config.group = self.group.clone().map_or(config.group, Spanned::into_inner);
        if let Some(given) = &self.most_locks {
            config.most_locks = in_range("locks", *given.as_ref(), 1..=MOST_LOCKS)? as usize;
        }
        if let Some(given) = &self.handovers {
            let range = 0..=u64::from(MOST_HANDOVERS);
            config.turns.handovers = in_range("handovers", *given.as_ref(), range)? as u8;
        }
        if let Some(given) = &self.turn_rounds {
            let range = 1..=u64::from(Turns::MOST_ROUNDS);
            config.turns.rounds = in_range(TURN_ROUNDS, *given.as_ref(), range)? as u8;
        }
        if let Some(entry) = &self.detector {
            config.detector = Some(entry.as_ref().detector(USUAL_DETECTOR)?);
        }
        if let Some(given) = &self.lease {
            config.lease = seconds("lease", *given.as_ref())?;
        }
        if let Some(given) = &self.drain {
            config.drain = Duration::try_from_secs_f64(*given.as_ref()).unwrap_or(Duration::MAX);
            in_range("drain", config.drain.as_secs(), 0..=3600)?;
        }
        if let Some(given) = &self.audit {
            config.audit = given.as_ref().clone();
        }
        config.registry = match (&self.data, &self.registry) {
            (None, None) => config.registry,
            (Some(data), None) => RegistryPlace::Directory(data.as_ref().into()),
            (None, Some(url)) => RegistryPlace::Etcd(url.as_ref().clone()),
            (Some(_), Some(_)) => return Err(ConfigError::TwoRegistries),
        };
        config.http = self.http.config();
        if let Some(entry) = &self.security {
            config.security = entry.as_ref().config()?;
        }
        config.resp = self.resp.config();
        if let Some(entry) = &self.git {
            config.git = entry.as_ref().config();
        }
        let namespaces = self.namespace.iter().map(|entry| entry.as_ref().namespace());
        config.namespaces = namespaces.collect::<Result<_, _>>()?;
        Ok(config)
    }

    /// Where in the file that is what `error` complains about, if it is at one place.
    fn place(&self, error: &ConfigError) -> Option<usize> {
        let start = |text: &Option<Spanned<String>>| text.as_ref().map(|text| text.span().start);
        let member = |is_it: &dyn Fn(&str, &MemberEntry) -> bool| {
            let mut entries = self.members.iter().flatten();
            let found = entries.find(|(name, entry)| is_it(name, entry.as_ref()));
            found.map(|(_, entry)| entry.span().start)
        };
        let namespace = |names: &str| {
            let found = self.namespace.iter().find(|entry| entry.as_ref().names == names);
            found.map(|entry| entry.span().start)
        };
        if let Some(place) = self.http.place(error).or_else(|| self.resp.place(error)) {
            return Some(place);
        }
        if let Some(place) = git::place(self.git.as_ref(), error) {
            return Some(place);
        }
        match error {
            ConfigError::UnknownMember { name, .. } => start(&self.name)
                .filter(|_| self.name.as_ref().is_some_and(|own| own.as_ref() == name)),
            ConfigError::Group(_) => start(&self.group),
            ConfigError::Lease(_) => self.lease.as_ref().map(|it| it.span().start),
            ConfigError::Unnamed => self.detector.as_ref().map(|it| it.span().start),
            ConfigError::TwoRegistries => start(&self.registry),
            ConfigError::Incomplete | ConfigError::NoAuthority | ConfigError::Uncertifiable(_) => {
                self.security.as_ref().map(|it| it.span().start)
            }
            ConfigError::Address(text)
                if self.listen.as_ref().is_some_and(|at| at.as_ref() == text) =>
            {
                start(&self.listen)
            }
            ConfigError::Name(bad) => member(&|name, _| name == bad),
            ConfigError::SameAddress(_, second, _) => member(&|name, _| name == second),
            ConfigError::Address(bad) => member(&|name, entry| entry.member(name).address == *bad),
            ConfigError::Cluster(bad) => {
                member(&|name, entry| entry.member(name).cluster.as_ref() == Some(bad))
            }
            ConfigError::Namespace { pattern, .. } | ConfigError::Reserved(pattern) => {
                namespace(pattern)
            }
            ConfigError::NoNames => namespace(""),
            ConfigError::NeverApplies { pattern, .. } => {
                let is_it = |entry: &&Spanned<NamespaceEntry>| entry.as_ref().names == *pattern;
                self.namespace.iter().rfind(is_it).map(|entry| entry.span().start)
            }
            ConfigError::Seconds { key: ACK_TIMEOUT, .. }
            | ConfigError::Range { key: RESOURCES, .. } => {
                let is_it = |entry: &&Spanned<NamespaceEntry>| entry.as_ref().namespace().is_err();
                self.namespace.iter().find(is_it).map(|entry| entry.span().start)
            }
            ConfigError::Seconds { .. } | ConfigError::Detector { .. } => {
                self.detector.as_ref().map(|entry| entry.span().start)
            }
            ConfigError::Range { key: "handovers", .. } => {
                self.handovers.as_ref().map(|given| given.span().start)
            }
            ConfigError::Range { key: TURN_ROUNDS, .. } => {
                self.turn_rounds.as_ref().map(|given| given.span().start)
            }
            ConfigError::Range { key: MAX_BYTES | KEEP, .. } => {
                self.audit.as_ref().map(|given| given.span().start)
            }
            ConfigError::Range { key: "locks", .. } => {
                self.most_locks.as_ref().map(|given| given.span().start)
            }
            _ => None,
        }
    }
}

/// `a = "10.0.0.1:7800"`, or `a = { address = "10.0.0.1:7800", cluster = "paris" }`.
#[derive(Deserialize)]
#[serde(untagged, expecting = "an address, or a table with 'address' and 'cluster'")]
enum MemberEntry {
    Address(String),
    Labelled { address: String, cluster: String },
}

impl MemberEntry {
    fn member(&self, name: &str) -> Member {
        match self {
            MemberEntry::Address(address) => member(name, address),
            MemberEntry::Labelled { address, cluster } => {
                Member { cluster: Some(cluster.clone()), ..member(name, address) }
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamespaceEntry {
    names: String,
    algorithm: String,
    resources: Option<u64>,
    #[serde(rename = "ack-timeout")]
    ack_timeout: Option<f64>,
}

const ACK_TIMEOUT: &str = "ack-timeout";
const RESOURCES: &str = "resources";

impl NamespaceEntry {
    fn namespace(&self) -> Result<Namespace, ConfigError> {
        let usual = Namespace::new(&self.names, &self.algorithm);
        let resources = match self.resources {
            None => usual.resources,
            Some(_) if !knows_sets(&self.algorithm) => {
                let (algorithm, parameter) = (self.algorithm.clone(), RESOURCES);
                let error = SpecError::Parameter { algorithm, parameter };
                return Err(ConfigError::Namespace { pattern: self.names.clone(), error });
            }
            Some(given) => in_range(RESOURCES, given, 1..=u64::from(MOST_RESOURCES))? as u32,
        };
        let ack_timeout = self.ack_timeout.map(|given| seconds(ACK_TIMEOUT, given)).transpose()?;
        Ok(Namespace { resources, ack_timeout, ..usual })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DetectorEntry {
    algorithm: Option<String>,
    interval: Option<f64>,
    timeout: Option<f64>,
    news: Option<News>,
}

impl DetectorEntry {
    fn detector(&self, usual: hi_adsd::Config) -> Result<hi_adsd::Config, ConfigError> {
        if self.algorithm.as_deref() != Some("hi-adsd") {
            return Err(ConfigError::Unnamed);
        }
        let time = |key, given: Option<f64>| given.map(|given| seconds(key, given)).transpose();
        Ok(hi_adsd::Config {
            interval: time("interval", self.interval)?.unwrap_or(usual.interval),
            timeout: time("timeout", self.timeout)?.unwrap_or(usual.timeout),
            news: self.news.unwrap_or(usual.news),
        })
    }
}

/// Whether `algorithm` is known and knows sets, or is not known at all, which is complained about
/// elsewhere.
fn knows_sets(algorithm: &str) -> bool {
    registry::entry(algorithm).is_none_or(|entry| entry.parameters.contains(&RESOURCES))
}

fn in_range(key: &'static str, given: u64, range: RangeInclusive<u64>) -> Result<u64, ConfigError> {
    let (least, most) = range.into_inner();
    match (least..=most).contains(&given) {
        true => Ok(given),
        false => Err(ConfigError::Range { key, given, least, most }),
    }
}

fn seconds(key: &'static str, given: f64) -> Result<Duration, ConfigError> {
    match given {
        0.001..=3600.0 => Ok(Duration::from_secs_f64(given)),
        _ => Err(ConfigError::Seconds { key, given: given.to_string() }),
    }
}
