//! `catraca classroom`: S3's experiment with real processes, checked.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use catraca_classroom::{Account, Defect, Experiment, ExperimentError, LOG, ProcessId, RESULT};
use tempfile::TempDir;

use crate::Outcome;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{PendingFile, Stdout, reason};
use crate::table::{Align, Table, counted};
use crate::value::{at_least, duration};

/// More real processes than this are too much for one machine.
const MOST: u32 = 1000;

/// The files are checked in memory; those of so many entries have about 200 MB.
const MOST_ENTRIES: u64 = 1_000_000;

const EXAMPLES: &str = "\
Examples:
  catraca classroom
  catraca classroom --processes 20 --rounds 10 --hold 20ms --out run";

/// Runs S3's experiment: a coordinator and processes, as real processes; then checks their files.
///
/// Every grant must be one entry in the same order, entries must not overlap, requests must be
/// served first come first served, and everybody must enter as often as it should.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// How many processes contend, 1 to 1000.
    #[arg(long, value_name = "COUNT", default_value = "5", value_parser = processes, allow_negative_numbers = true)]
    processes: u32,
    /// How often each enters.
    #[arg(long, value_name = "COUNT", default_value = "3", value_parser = at_least(1u32), allow_negative_numbers = true)]
    rounds: u32,
    /// How long each stays inside, such as 2s, 1.5s or 500ms.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration, allow_hyphen_values = true)]
    hold: Duration,
    /// The folder that keeps the log and the result file; it is made if it is not there.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

fn processes(text: &str) -> Result<u32, String> {
    let number = at_least(1)(text)?;
    if number <= MOST { Ok(number) } else { Err(format!("'{text}' is more than {MOST}")) }
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let entries = u64::from(self.processes) * u64::from(self.rounds);
        if entries > MOST_ENTRIES {
            let what = format!("--rounds: all processes together would enter {entries} times");
            return Err(Failure::input(format!("{what}: take at most {MOST_ENTRIES}")));
        }
        let kept = self.out.as_deref().map(Kept::create).transpose()?;
        let folder = TempDir::new().context("cannot make a folder for the files of this run");
        let folder = folder.map_err(Failure::System)?;
        let experiment = self.experiment()?;
        match experiment.run(folder.path(), &interrupt::flag()) {
            Ok(account) => {
                print(&experiment, &account, &mut Stdout::lock())?;
                kept.map_or(Ok(()), |kept| kept.fill(folder.path()))
            }
            Err(ExperimentError::Defect(defect)) => {
                report(&defect, kept, folder, &mut Stdout::lock())
            }
            Err(ExperimentError::Interrupted) => Err(Failure::Interrupted),
            Err(error) => Err(Failure::System(error.into())),
        }
    }

    fn experiment(&self) -> Result<Experiment, Failure> {
        let program = std::env::current_exe().context("cannot find this program");
        // Numbers up to 1000 fit.
        let names = (1..=self.processes).filter_map(|number| number.to_string().parse().ok());
        Ok(Experiment {
            program: program.map_err(Failure::System)?,
            processes: names.collect::<Vec<ProcessId>>(),
            rounds: self.rounds,
            hold: self.hold,
        })
    }
}

/// Nobody can make the same run again, so its files are kept in any case.
fn report(defect: &Defect, kept: Option<Kept>, folder: TempDir, out: &mut impl Write) -> Outcome {
    writeln!(out, "{defect}")?;
    let place = match kept {
        Some(kept) => {
            let place = kept.folder.clone();
            kept.fill(folder.path())?;
            place
        }
        None => folder.keep(),
    };
    writeln!(out, "The log and the result file are in {}.", place.display())?;
    Err(Failure::Violation)
}

/// The two files in the folder that the user named.
struct Kept {
    folder: PathBuf,
    log: PendingFile,
    result: PendingFile,
}

impl Kept {
    /// Fails at once if the folder cannot be written to.
    fn create(folder: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(folder).map_err(|error| {
            let shown = folder.display();
            Failure::input(format!("--out: cannot make the folder '{shown}': {}", reason(&error)))
        })?;
        let create = |name| PendingFile::create(&folder.join(name));
        Ok(Kept { folder: folder.to_path_buf(), log: create(LOG)?, result: create(RESULT)? })
    }

    fn fill(self, from: &Path) -> Outcome {
        for (file, name) in [(self.log, LOG), (self.result, RESULT)] {
            let content = fs::read(from.join(name)).context("cannot read the files of this run");
            file.finish_with(&content.map_err(Failure::System)?)?;
        }
        Ok(())
    }
}

fn print(experiment: &Experiment, account: &Account, out: &mut impl Write) -> Outcome {
    let mut table = Table::new(&[
        ("process", Align::Left),
        ("entries", Align::Right),
        ("mean wait", Align::Right),
        ("longest wait", Align::Right),
    ]);
    for share in &account.shares {
        table.row(vec![
            share.id.to_string(),
            share.entries.to_string(),
            time(share.waited / share.entries),
            time(share.longest),
        ]);
    }
    for line in table.lines() {
        writeln!(out, "{line}")?;
    }
    let (count, rounds) = (experiment.processes.len(), experiment.rounds);
    let entries: u32 = account.shares.iter().map(|share| share.entries).sum();
    let often = if rounds == 1 { "once".to_string() } else { format!("{rounds} times") };
    let grants = counted(entries.into(), "grant", "grants");
    let entered = counted(entries.into(), "entry", "entries");
    writeln!(out, "\n{grants} and {entered} in the same order, none overlapping,")?;
    writeln!(out, "first come first served, everybody {often}")?;
    let (ideal, total) = (experiment.ideal(), account.total);
    writeln!(out, "total     {}", time(total))?;
    writeln!(out, "ideal     {}  ({count} x {rounds} x {})", time(ideal), time(experiment.hold))?;
    let over = total.saturating_sub(ideal);
    let share = match ideal.as_secs_f64() {
        0.0 => String::new(),
        ideal => format!("{:.2} %, ", 100.0 * over.as_secs_f64() / ideal),
    };
    writeln!(out, "overhead  {}  ({share}{} an entry)", time(over), time(over / entries))?;
    Ok(())
}

/// A time in the unit that leaves something to read.
fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        _ if seconds >= 1.0 => format!("{seconds:.3} s"),
        _ if seconds >= 1e-3 => format!("{:.2} ms", seconds * 1e3),
        _ => format!("{:.0} us", seconds * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run with such a defect, whose files are kept in the folder `out` or somewhere else.
    fn defective(out: Option<&Path>) -> String {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join(LOG), "the log").unwrap();
        fs::write(folder.path().join(RESULT), "the result").unwrap();
        let kept = out.map(|out| Kept::create(out).unwrap());
        let mut said = Vec::new();
        let defect = Defect::NoEntry { number: 7 };
        let outcome = report(&defect, kept, folder, &mut said);
        assert!(matches!(outcome, Err(Failure::Violation)), "{outcome:?}");
        String::from_utf8(said).unwrap()
    }

    #[test]
    fn a_defect_is_told_and_the_files_are_kept_even_if_nobody_asked_for_them() {
        let out = TempDir::new().unwrap();
        for out in [None, Some(out.path().join("run"))] {
            let said = defective(out.as_deref());
            let told = "line 7 of the result file is not in S3's format\n\
                        The log and the result file are in ";
            let place = said.strip_prefix(told).and_then(|rest| rest.strip_suffix(".\n")).unwrap();
            assert!(out.is_none_or(|out| out == Path::new(place)));
            assert_eq!(fs::read_to_string(Path::new(place).join(LOG)).unwrap(), "the log");
            assert_eq!(fs::read_to_string(Path::new(place).join(RESULT)).unwrap(), "the result");
            fs::remove_dir_all(place).unwrap();
        }
    }

    #[test]
    fn times_are_short() {
        let micros = [30_012_345, 20_500, 999, 0].map(|micros| time(Duration::from_micros(micros)));
        assert_eq!(micros, ["30.012 s", "20.50 ms", "999 us", "0 us"]);
    }
}
