//! `catraca swarm`: groups with a registry under everything that can go wrong, one run a seed.

use std::io::Write;
use std::path::PathBuf;

use catraca_group::VIEW_MUTANTS;
use catraca_sim::Time;
use catraca_sim::members::SetupError;
use catraca_sim::views::{Drift, Report, Setup, run, run_watched};

use crate::failure::Failure;
use crate::output::{PendingFile, Stdout};
use crate::table::grouped;
use crate::{Outcome, interrupt, progress};

/// More of them leave no time for anything else.
const MOST_FORCES: u32 = 10_000;

const EXAMPLES: &str = "\
Examples:
  catraca swarm
  catraca swarm --algorithm maekawa --members 5 --runs 1000
  catraca swarm --algorithm raymond-k --permits 2
  catraca swarm --mutant restart-at-once
  catraca swarm --forces 40 --mutant forced-at-once
  catraca swarm --durable 0 --timed 5 --mutant copies-forgotten --runs 3000
  catraca swarm --seed 17 --runs 1 --log run.log

Members crash, restart, pause and leave; links are cut in one direction or both; the registry answers
late or not at all; clocks run at different rates. After half a minute everything heals. At no time may
two clients be inside one lock that both may believe so, fences must grow, durable holds are neither lost
nor doubled, and in the end everybody has to be served.";

/// Runs groups whose members come and go, under faults that a seed draws
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The algorithm that guards every lock
    #[arg(long, value_name = "NAME", default_value = "naimi-trehel")]
    algorithm: String,
    /// How many members
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    members: usize,
    /// How many clients; two for each member unless given
    #[arg(long, value_name = "COUNT")]
    clients: Option<usize>,
    /// How many locks
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    locks: u32,
    /// How many clients may hold one lock
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    permits: u32,
    /// How many locks a request asks for, at the most
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    claim: u32,
    /// How many of the clients ask for durable holds; half of them unless given
    #[arg(long, value_name = "COUNT")]
    durable: Option<usize>,
    /// How many of the others use timed holds; then one thing goes wrong after the other, since such holds
    /// survive the loss of one member at a time
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    timed: usize,
    /// How often somebody ends a hold by force while things go wrong; not with --timed
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    forces: u32,
    /// For how long things go wrong, in seconds of the group
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    faulty: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// How many seeds, one after the other
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    runs: u64,
    /// Lets clocks differ by more than leases allow for, to see that this is found
    #[arg(long)]
    excessive_drift: bool,
    /// Breaks a rule of views, to see that this is found; 'list' names them
    #[arg(long, value_name = "NAME")]
    mutant: Option<String>,
    /// Writes a line for everything that happens; for one run
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let mut out = Stdout::lock();
        if self.mutant.as_deref() == Some("list") {
            for mutant in VIEW_MUTANTS {
                writeln!(out, "{:<22} {}", mutant.name, mutant.breaks)?;
            }
            return Ok(());
        }
        let setup = self.setup()?;
        if self.log.is_some() && self.runs != 1 {
            return Err(Failure::input("--log is for one run; add --runs 1"));
        }
        let mut log = self.log.as_deref().map(PendingFile::create).transpose()?;
        let mut sum = Sum::default();
        let bar = progress::line();
        let mut seed = self.seed;
        let report = loop {
            if interrupt::requested() {
                bar.finish_and_clear();
                return Err(Failure::Interrupted);
            }
            bar.set_message(format!("seed {seed}"));
            let report = match log.take() {
                Some(file) => logged(&setup, seed, file)?,
                None => run(&setup, seed),
            };
            sum = sum.with(&report);
            if report.violation.is_some() || sum.runs == self.runs {
                break report;
            }
            seed = seed.wrapping_add(1);
        };
        bar.finish_and_clear();
        self.conclude(&sum, seed, &report, &mut out)
    }

    fn setup(&self) -> Result<Setup, Failure> {
        let mutant = match &self.mutant {
            None => None,
            Some(name) => {
                let known = VIEW_MUTANTS.iter().find(|mutant| mutant.name == name);
                let unknown = || {
                    let what = format!("--mutant: there is no rule '{name}'; 'list' names them");
                    Failure::input(what)
                };
                Some(known.ok_or_else(unknown)?.name)
            }
        };
        if self.runs == 0 || self.faulty == 0 || self.faulty > 3600 {
            return Err(Failure::input("there is at least 1 run, of 1 to 3600 seconds of faults"));
        }
        if self.forces > 0 && self.timed > 0 {
            let what = "--forces and --timed: the client of a timed hold is told when it asks, and \
                        believes in its hold until then; take one of them";
            return Err(Failure::input(what));
        }
        if self.forces > MOST_FORCES {
            let what = format!("--forces goes up to {MOST_FORCES}, not {}", self.forces);
            return Err(Failure::input(what));
        }
        let base = Setup::new(&self.algorithm, self.members);
        let clients = self.clients.unwrap_or(base.clients);
        let setup = Setup {
            clients,
            durable: self.durable.unwrap_or(clients.saturating_sub(self.timed) / 2),
            timed: self.timed,
            one_by_one: self.timed > 0,
            forces: self.forces,
            locks: self.locks,
            permits: self.permits,
            claim: self.claim,
            faulty: Time::units(self.faulty),
            drift: if self.excessive_drift { Drift::Excessive } else { Drift::Allowed },
            mutant,
            ..base
        };
        let refused = |error: SetupError| {
            let error = catraca_sim::ScenarioError::Members(error);
            Failure::of_scenario(error, None, |_| false)
        };
        setup.check().map_err(refused)?;
        Ok(setup)
    }

    fn conclude(&self, sum: &Sum, seed: u64, last: &Report, out: &mut impl Write) -> Outcome {
        let (algorithm, members) = (&self.algorithm, self.members);
        let plural = if members == 1 { "" } else { "s" };
        writeln!(out, "{algorithm}: {members} member{plural}, {} runs", grouped(sum.runs))?;
        writeln!(
            out,
            "entries     {} in {} views and {} seconds of the groups",
            grouped(sum.entries),
            grouped(sum.views),
            grouped(sum.seconds)
        )?;
        let Some((at, what)) = &last.violation else {
            writeln!(
                out,
                "verdict     nobody was inside beside somebody else; everybody was served"
            )?;
            return Ok(());
        };
        writeln!(out, "verdict     broken at {at} with seed {seed}: {what}")?;
        writeln!(out, "reproduce   {}", self.command(seed))?;
        Err(Failure::Violation)
    }

    /// The command that shows the run with one seed.
    fn command(&self, seed: u64) -> String {
        let mut words = format!(
            "catraca swarm --algorithm {} --members {} --locks {} --permits {} --claim {} --faulty {} \
             --seed {seed} --runs 1 --log run.log",
            self.algorithm, self.members, self.locks, self.permits, self.claim, self.faulty
        );
        if let Some(clients) = self.clients {
            words.push_str(&format!(" --clients {clients}"));
        }
        if let Some(durable) = self.durable {
            words.push_str(&format!(" --durable {durable}"));
        }
        if self.timed > 0 {
            words.push_str(&format!(" --timed {}", self.timed));
        }
        if self.forces > 0 {
            words.push_str(&format!(" --forces {}", self.forces));
        }
        if let Some(mutant) = &self.mutant {
            words.push_str(&format!(" --mutant {mutant}"));
        }
        if self.excessive_drift {
            words.push_str(" --excessive-drift");
        }
        words
    }
}

/// What several runs have shown together.
#[derive(Default)]
struct Sum {
    runs: u64,
    entries: u64,
    views: u64,
    seconds: u64,
}

impl Sum {
    fn with(&self, report: &Report) -> Sum {
        Sum {
            runs: self.runs + 1,
            entries: self.entries + report.entries,
            views: self.views + u64::from(report.epoch),
            seconds: self.seconds + report.time.as_units() as u64,
        }
    }
}

/// Runs one seed and writes a line for everything that happens.
fn logged(setup: &Setup, seed: u64, mut file: PendingFile) -> Result<Report, Failure> {
    let mut failure = None;
    let report = run_watched(setup, seed, &mut |at, what| {
        if let Err(error) = writeln!(file, "{at} {what}") {
            failure.get_or_insert(error);
        }
    });
    match failure {
        Some(error) => Err(Failure::System(error.into())),
        None => {
            file.finish()?;
            Ok(report)
        }
    }
}
