//! What can be said about a run.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::fault::{Kind, Layout};
use super::workload::ALL;

/// The seed of the short run, which is part of the tests.
const SHORT_SEED: u64 = 12;
const SHORT: f64 = 0.5;
/// The lease of the members: short, so that much happens in a run.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// How long holders may finish where a member is told to end: some can, and some are told to stop.
pub(crate) const DRAIN: Duration = Duration::from_secs(1);
const ETCD_SERVERS: usize = 3;
pub(crate) const CLIENTS: usize = 6;

/// Where the group keeps its registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RegistryKind {
    /// Among the members
    #[default]
    Embedded,
    /// In three servers of etcd
    Etcd,
}

/// What a run is told.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// Minutes of faults; half a minute with --short
    #[arg(long, default_value_t = 10.0, value_parser = minutes)]
    minutes: f64,
    /// What the faults are drawn from [default: another one every time]
    #[arg(long)]
    seed: Option<u64>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) registry: RegistryKind,
    #[arg(long, default_value_t = 3, value_parser = members)]
    pub(crate) members: usize,
    /// The algorithm that guards the locks, or all families side by side
    #[arg(long, default_value = ALL)]
    pub(crate) algorithm: String,
    /// Only these faults
    #[arg(long, value_enum, value_delimiter = ',')]
    faults: Vec<Kind>,
    /// A short run, always of the same seed: part of the tests
    #[arg(long, conflicts_with_all = ["minutes", "seed"])]
    short: bool,
    /// Breaks a rule of views in all members: a violation must be found
    #[arg(long = "break", value_name = "RULE")]
    pub(crate) broken: Option<String>,
}

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(minutes) if (0.1..=10_000.0).contains(&minutes) => Ok(minutes),
        _ => Err("from 0.1 to 10000".to_string()),
    }
}

fn members(text: &str) -> Result<usize, String> {
    match text {
        "3" => Ok(3),
        "5" => Ok(5),
        _ => Err("3 or 5".to_string()),
    }
}

impl Options {
    /// With a seed, drawn from the time if none was given.
    pub(crate) fn seeded(mut self) -> Self {
        if self.short {
            (self.seed, self.minutes, self.short) = (Some(SHORT_SEED), SHORT, false);
        }
        let now = catraca_client::clock::now().0;
        self.seed = self.seed.or(Some(now % 1_000_000));
        self
    }

    /// A run of a minute with a broken rule, which these faults are to show.
    pub(crate) fn breaking(rule: &str, seed: u64, faults: &[Kind]) -> Self {
        Options {
            minutes: 1.0,
            seed: Some(seed),
            registry: RegistryKind::default(),
            members: 3,
            algorithm: ALL.to_string(),
            faults: faults.to_vec(),
            short: false,
            broken: Some(rule.to_string()),
        }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or_default()
    }

    pub(crate) fn length(&self) -> Duration {
        Duration::from_secs_f64(self.minutes * 60.0)
    }

    pub(crate) fn layout(&self) -> Layout {
        let etcd = if self.registry == RegistryKind::Etcd { ETCD_SERVERS } else { 0 };
        Layout { members: self.members, etcd, clients: CLIENTS }
    }

    /// The faults that were asked for, or all that this registry can have. Which one it cannot, if so.
    pub(crate) fn kinds(&self) -> Result<Vec<Kind>, Kind> {
        let is_etcd = self.registry == RegistryKind::Etcd;
        let fits = |kind: &Kind| !if is_etcd { kind.needs_data() } else { kind.needs_etcd() };
        if self.faults.is_empty() {
            return Ok(Kind::value_variants().iter().copied().filter(fits).collect());
        }
        match self.faults.iter().find(|kind| !fits(kind)) {
            Some(kind) => Err(*kind),
            None => Ok(self.faults.clone()),
        }
    }

    /// The same as arguments.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let Options { minutes, members, algorithm, .. } = self;
        let mut arguments = vec![
            format!("--minutes={minutes}"),
            format!("--seed={}", self.seed()),
            format!("--registry={}", Name(&self.registry)),
            format!("--members={members}"),
            format!("--algorithm={algorithm}"),
        ];
        if !self.faults.is_empty() {
            let faults: Vec<String> = self.faults.iter().map(Kind::to_string).collect();
            arguments.push(format!("--faults={}", faults.join(",")));
        }
        arguments.extend(self.broken.as_ref().map(|rule| format!("--break={rule}")));
        arguments
    }

    /// The command that repeats the run.
    pub(crate) fn command(&self) -> String {
        format!("cargo xtask chaos {}", self.arguments().join(" ").replace('=', " "))
    }
}

struct Name<'a, V>(&'a V);

impl<V: ValueEnum> fmt::Display for Name<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.to_possible_value() {
            Some(value) => f.write_str(value.get_name()),
            None => Ok(()),
        }
    }
}

/// What the run inside is told besides.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Inside {
    #[command(flatten)]
    pub(crate) options: Options,
    /// The binary of the members
    #[arg(long)]
    pub(crate) catraca: PathBuf,
    /// Where everything that is written goes
    #[arg(long)]
    pub(crate) folder: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(line: &str) -> Result<Options, clap::Error> {
        Line::try_parse_from(line.split_whitespace()).map(|line| line.options)
    }

    #[test]
    fn the_command_repeats_the_run() {
        let line = "chaos --minutes 2.5 --seed 7 --registry etcd --members 5 --algorithm maekawa \
                    --faults one-way,kill --break valid-for-ever";
        let first = options(line).unwrap();
        assert_eq!(first.command(), format!("cargo xtask {}", line.replace("  ", "")));
        let command = first.command();
        let again = options(command.strip_prefix("cargo xtask ").unwrap()).unwrap();
        assert_eq!(format!("{first:?}"), format!("{again:?}"));
    }

    #[test]
    fn the_short_run_has_a_seed_of_its_own() {
        let short = options("chaos --short").unwrap().seeded();
        assert_eq!((short.seed(), short.length()), (SHORT_SEED, Duration::from_secs(30)));
        assert!(options("chaos --short --seed 1").is_err());
    }

    #[test]
    fn wrong_numbers_are_refused() {
        for line in ["--members 4", "--minutes 0", "--minutes x", "--faults flood"] {
            assert!(options(&format!("chaos {line}")).is_err(), "{line}");
        }
    }

    #[test]
    fn faults_of_the_other_registry_are_refused_and_not_drawn() {
        assert_eq!(options("chaos --faults etcd-kill").unwrap().kinds(), Err(Kind::EtcdKill));
        assert_eq!(
            options("chaos --faults disk --registry etcd").unwrap().kinds(),
            Err(Kind::Disk)
        );
        let embedded = options("chaos").unwrap().kinds().unwrap();
        assert!(embedded.contains(&Kind::Disk) && !embedded.contains(&Kind::EtcdKill));
    }
}
