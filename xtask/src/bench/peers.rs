//! `cargo xtask bench peers`: Catraca beside other lock services, in one table.
//!
//! Everything runs on this machine, over the loopback interface. The servers come from Debian's packages;
//! they are started on addresses of their own, with files in temporary folders, and stopped again. All
//! clients run in this process, written in the same way.

mod bare;
mod etcd;
mod load;
mod machine;
mod ours;
mod page;
mod redis;
mod resp;
mod results;
mod server;
mod systems;
mod table;
mod zookeeper;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use bare::serve;
use machine::Machine;
use results::{Ceiling, Cores, Ratio, Results, ceilings, ratios, worst};
use systems::{Kind, Measured, SYSTEMS, System};

use crate::{packages, shell};

const PACKAGES: &[&str] = &["etcd-server", "redis-server", "util-linux", "zookeeper"];

/// How the comparison is made.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// For how long each load of each service is measured, in seconds; half of that before to warm up
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    seconds: f64,
    /// How often everything is measured; the middle one counts
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Where all figures go, as JSON; docs/benchmarks.json if all services are measured
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only these services, with commas between; docs/BENCHMARKS.md is not written then
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = known)]
    only: Vec<String>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().map_err(|_| "not a number".to_string())?;
    match seconds {
        0.1..=60.0 => Ok(seconds),
        _ => Err("a load is measured for 0.1 to 60 seconds".to_string()),
    }
}

fn known(name: &str) -> Result<String, String> {
    if SYSTEMS.iter().any(|system| system.key == name) {
        return Ok(name.to_string());
    }
    let keys: Vec<&str> = SYSTEMS.iter().map(|system| system.key).collect();
    Err(format!("there are: {}", keys.join(", ")))
}

/// Installs and builds what is needed, and measures with a release build.
pub(crate) fn all(options: &Options) -> Result<()> {
    packages::install(PACKAGES, "cargo xtask bench peers")?;
    shell::run("cargo build --quiet --release --package catraca --package xtask")?;
    let program = shell::root().join("target/release/xtask");
    let mut command = std::process::Command::new(program);
    command.arg("measure-peers").args(options.arguments());
    // Whoever stops this stops that too, and waits for it to clean up.
    ctrlc::set_handler(|| {})?;
    let status = command.status().context("the release build cannot be started")?;
    if status.success() { Ok(()) } else { bail!("nothing was written ({status})") }
}

impl Options {
    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![format!("--seconds={}", self.seconds)];
        arguments.push(format!("--rounds={}", self.rounds));
        arguments.extend(self.json.iter().map(|file| format!("--json={}", file.display())));
        if !self.only.is_empty() {
            arguments.push(format!("--only={}", self.only.join(",")));
        }
        arguments
    }

    fn wants(&self, system: &System) -> bool {
        self.only.is_empty() || self.only.iter().any(|key| key == system.key)
    }
}

/// Everything, as JSON.
#[derive(Serialize)]
struct Report<'a> {
    machine: &'a Machine,
    seconds: f64,
    rounds: u32,
    #[serde(flatten)]
    results: &'a Results,
    ratios: &'a [Ratio],
    ceilings: &'a [Ceiling],
}

/// Measures with the builds that are beside this one.
pub(crate) fn measure(options: &Options) -> Result<()> {
    let program = std::env::current_exe().context("this program does not know where it is")?;
    let catraca = program.with_file_name("catraca");
    let results = measure_all(options, &catraca)?;
    let machine = Machine::look(&catraca);
    let ratios = ratios(&results);
    let worst = worst(&ratios);
    for cores in Cores::ALL {
        println!(
            "\n{}, acquired and released:\n\n{}",
            cores.word(),
            table::figures(&results, cores)
        );
    }
    println!("{}", table::ratios(&worst));
    let ceilings = ceilings(&results);
    println!("What can be reached at all:\n\n{}", table::ceilings(&ceilings));
    for (what, why) in &results.missing {
        println!("not measured: {what}: {why}");
    }
    let Options { seconds, rounds, json, only } = options;
    let usual = only.is_empty().then(|| shell::root().join("docs/benchmarks.json"));
    if let Some(file) = json.clone().or(usual) {
        let (seconds, rounds) = (*seconds, *rounds);
        let (machine, results, ratios, ceilings) = (&machine, &results, &ratios, &ceilings);
        let report = Report { machine, seconds, rounds, results, ratios, ceilings };
        let text = serde_json::to_string_pretty(&report)? + "\n";
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if only.is_empty() {
        let page = page::write(options, &machine, &results, &worst);
        std::fs::write(shell::root().join("docs/BENCHMARKS.md"), page)?;
    }
    match results.violations() {
        0 => Ok(()),
        violations => bail!("{violations} times two clients were inside one lock"),
    }
}

fn measure_all(options: &Options, catraca: &Path) -> Result<Results> {
    let interfaces = Interfaces::look(catraca)?;
    let mut results = Results::default();
    for cores in Cores::ALL {
        for system in SYSTEMS.iter().filter(|system| options.wants(system)) {
            if !interfaces.have(system.kind) {
                let why = "this build of catraca has no such interface".to_string();
                results.missing.push((system.key.to_string(), why));
                continue;
            }
            let mut rounds = Vec::new();
            for _ in 0..options.rounds {
                eprintln!("{}, {}", system.title, cores.word());
                let time = Duration::from_secs_f64(options.seconds);
                match measure_one(system, catraca, cores, time) {
                    Ok(Some(measured)) => rounds.push(measured),
                    Ok(None) => bail!("stopped"),
                    Err(why) => {
                        let what = format!("{}, {}", system.key, cores.word());
                        results.missing.push((what, format!("{why:#}")));
                    }
                }
            }
            results.add(system, cores, &rounds);
        }
    }
    Ok(results)
}

/// None if it was stopped by a signal.
fn measure_one(
    system: &System,
    catraca: &Path,
    cores: Cores,
    time: Duration,
) -> Result<Option<Measured>> {
    let mut builder = match cores {
        Cores::Pinned => tokio::runtime::Builder::new_current_thread(),
        Cores::Free => tokio::runtime::Builder::new_multi_thread(),
    };
    pin(cores)?;
    let runtime = builder.enable_all().build()?;
    let measured = runtime.block_on(async {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        tokio::select! {
            measured = system.measure(catraca, time) => measured.map(Some),
            _ = interrupt.recv() => Ok(None),
            _ = terminate.recv() => Ok(None),
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(10));
    pin(Cores::Free)?;
    measured
}

/// Puts this process, and all that it starts from now on, on one core or on all.
fn pin(cores: Cores) -> Result<()> {
    let process = std::process::id();
    let list = match cores {
        Cores::Pinned => "0".to_string(),
        Cores::Free => "0-1023".to_string(),
    };
    let command = format!("taskset --all-tasks --cpu-list --pid {list} {process}");
    if shell::succeeds(&command) { Ok(()) } else { bail!("'{command}' failed") }
}

/// Which interfaces a build of catraca has.
struct Interfaces {
    help: String,
}

impl Interfaces {
    fn look(catraca: &Path) -> Result<Self> {
        let output = std::process::Command::new(catraca).args(["node", "--help"]).output();
        let output = output.with_context(|| format!("{} cannot be started", catraca.display()))?;
        Ok(Interfaces { help: String::from_utf8_lossy(&output.stdout).into_owned() })
    }

    fn have(&self, kind: Kind) -> bool {
        match kind {
            Kind::Resp | Kind::RespKeys => self.help.contains("--resp"),
            Kind::Http | Kind::Durable => self.help.contains("--http"),
            _ => true,
        }
    }
}
