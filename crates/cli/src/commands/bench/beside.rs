//! Two builds in one run: `catraca bench` of this one and of another one, in turns.
//!
//! What a figure is depends on the moment, so both are measured again and again, and the middle of each
//! is compared. The other build may be older: all that it has to know is `bench --seconds`, whose table
//! is read by the names of its rows.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{SHORTEST, nanos};
use crate::failure::Failure;
use crate::output::{Stdout, reason};
use crate::table::{Align, Table};
use crate::{Outcome, interrupt};

/// The time of a figure is spent in so many parts, unless they would be too short.
const TURNS: usize = 5;
/// Telling its version takes a program no longer.
const VERSION_TIME: Duration = Duration::from_secs(10);
/// What a part takes at the most beyond the time of its figures, however busy the machine is.
const SLACK: Duration = Duration::from_secs(600);

/// How long the other benchmark may take to put its files in order. It gives itself half a second.
const FAREWELL: Duration = Duration::from_millis(700);

/// Measures this build and the one at `other`, and prints both with their ratios.
pub(super) fn run(other: &Path, seconds: f64) -> Outcome {
    let own = std::env::current_exe()
        .map_err(|error| Failure::System(anyhow::Error::new(error).context("this program")))?;
    check(other)?;
    let mut tables = [Vec::new(), Vec::new()];
    let turns = ((seconds / SHORTEST) as usize).clamp(1, TURNS);
    for turn in 0..turns {
        // Whoever is second finds a machine that is warm: each is so as often as the other.
        let first = turn % 2;
        for which in [first, 1 - first] {
            let program = [own.as_path(), other][which];
            tables[which].push(measure(program, (seconds / turns as f64).max(SHORTEST))?);
        }
    }
    let [ours, theirs] = tables;
    let mut out = Stdout::lock();
    for line in comparison(&ours, &theirs).lines() {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Whether there is a build of catraca at `program`.
fn check(program: &Path) -> Outcome {
    let refused = |why: &str| {
        let what = format!("--beside: '{}' {why}", program.display());
        Err(Failure::Input(format!("{what}; give the path of another build of catraca")))
    };
    let mut command = Command::new(program);
    match said(command.arg("--version"), VERSION_TIME) {
        Err(Unsaid::Interrupted) => Err(Failure::Interrupted),
        Err(Unsaid::Failed(why)) => refused(&why),
        Ok(said) if said.starts_with("catraca ") => Ok(()),
        Ok(_) => refused("is another program"),
    }
}

/// The table of `program`.
fn measure(program: &Path, seconds: f64) -> Result<Figures, Failure> {
    let mut command = Command::new(program);
    command.args(["bench", "--seconds", &seconds.to_string()]);
    let limit = SLACK + Duration::from_secs_f64(seconds * 100.0);
    let failed = |why: &str| {
        let what = format!("'{} bench' {why}", program.display());
        Failure::System(anyhow::Error::msg(what))
    };
    let text = said(&mut command, limit).map_err(|why| match why {
        Unsaid::Interrupted => Failure::Interrupted,
        Unsaid::Failed(why) => failed(&why),
    })?;
    match Figures::read(&text) {
        figures if figures.0.is_empty() => Err(failed("printed no table")),
        figures => Ok(figures),
    }
}

/// Why there is nothing that a program said.
enum Unsaid {
    Interrupted,
    Failed(String),
}

/// Ends another benchmark: it may put its files in order, if it knows how to. Its own processes end with it, or
/// with its pipes to them.
fn end(child: &mut Child) {
    if let Some(id) = Pid::from_raw(child.id() as i32) {
        kill_process(id, Signal::TERM).ok();
    }
    let begin = Instant::now();
    while begin.elapsed() < FAREWELL && child.try_wait().is_ok_and(|ended| ended.is_none()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().ok();
    child.wait().ok();
}

/// What a program says until its end. It says less than a pipe holds.
fn said(command: &mut Command, limit: Duration) -> Result<String, Unsaid> {
    let failed =
        |error: std::io::Error| Unsaid::Failed(format!("cannot be run: {}", reason(&error)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    // Ctrl-C is for this process, which passes it on: two signals would end that one without any order.
    command.process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if interrupt::requested() || begin.elapsed() > limit => {
                end(&mut child);
                return Err(match interrupt::requested() {
                    true => Unsaid::Interrupted,
                    false => Unsaid::Failed("does not end".to_string()),
                });
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut said = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_end(&mut said).map_err(failed)?;
    }
    match status.success() {
        true => Ok(String::from_utf8_lossy(&said).into_owned()),
        false => Err(Unsaid::Failed(format!("ended with {status}"))),
    }
}

/// What a number counts, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Nanoseconds,
    PerSecond,
    MillionsPerSecond,
    Fraction,
    Whole,
}

impl Unit {
    fn write(self, value: f64) -> String {
        match self {
            Unit::Nanoseconds => nanos(value),
            Unit::PerSecond => format!("{value:.0}/s"),
            Unit::MillionsPerSecond => format!("{:.2} M/s", value / 1e6),
            Unit::Fraction => format!("{value:.4}"),
            Unit::Whole => format!("{value:.0}"),
        }
    }
}

/// One number, or several, of one row.
#[derive(Clone, Debug, PartialEq)]
struct Figure(Vec<(f64, Unit)>);

impl Figure {
    /// `8940 ns = 2.39 c` is 8940 ns; `256, 99, 99` are three numbers.
    fn read(text: &str) -> Option<Self> {
        let text = text.split(" = ").next()?;
        text.split(", ").map(read_number).collect::<Option<_>>().map(Figure)
    }

    /// The middle one of each number.
    fn middle(figures: &[&Figure]) -> Option<Self> {
        let numbers = figures.first()?.0.len();
        let figures = figures.iter().filter(|figure| figure.0.len() == numbers);
        let middle = |index: usize| {
            let mut values: Vec<(f64, Unit)> =
                figures.clone().map(|figure| figure.0[index]).collect();
            values.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
            values[values.len() / 2]
        };
        Some(Figure((0..numbers).map(middle).collect()))
    }

    fn write(&self) -> String {
        let texts: Vec<String> = self.0.iter().map(|&(value, unit)| unit.write(value)).collect();
        texts.join(", ")
    }

    /// How many times the other one this is.
    fn ratio(&self, other: &Figure) -> String {
        let pairs = self.0.iter().zip(&other.0);
        let texts: Vec<String> = pairs.map(|(one, two)| format!("{:.2}", one.0 / two.0)).collect();
        texts.join(", ")
    }
}

fn read_number(text: &str) -> Option<(f64, Unit)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (scale, unit) = match unit.trim() {
        "ns" => (1.0, Unit::Nanoseconds),
        "us" => (1e3, Unit::Nanoseconds),
        "ms" => (1e6, Unit::Nanoseconds),
        "/s" => (1.0, Unit::PerSecond),
        "M/s" => (1e6, Unit::MillionsPerSecond),
        "" if number.contains('.') => (1.0, Unit::Fraction),
        "" => (1.0, Unit::Whole),
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * scale, unit))
}

/// The figures of one table by the names of their rows, in order.
#[derive(Debug)]
struct Figures(Vec<(String, Figure)>);

impl Figures {
    fn read(text: &str) -> Self {
        let mut figures = Vec::new();
        let rows = text.lines().skip_while(|line| !line.starts_with("---")).skip(1);
        for row in rows {
            let mut cells = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
            let (Some(what), Some(figure)) = (cells.next(), cells.next()) else { continue };
            let Some(figure) = Figure::read(figure) else { continue };
            let (name, aside) = named(what);
            // Older builds tell this figure beside another one only.
            if name == CROWD
                && let Some(few) = aside.and_then(Figure::read)
                && !figures.iter().any(|(name, _)| name == FEW)
            {
                figures.push((FEW.to_string(), few));
            }
            figures.push((name, figure));
        }
        Figures(figures)
    }

    fn by_name(&self) -> BTreeMap<&str, &Figure> {
        self.0.iter().map(|(name, figure)| (name.as_str(), figure)).collect()
    }
}

const FEW: &str = "8 clients on one lock of 3 nodes";
const CROWD: &str = "64 clients on one lock of 3 nodes, beside 8";

/// The name of a row, and what was measured beside it, in brackets.
fn named(what: &str) -> (String, Option<&str>) {
    match what.split_once(" (") {
        Some((name, aside)) => (name.to_string(), aside.split(')').next()),
        None => (what.to_string(), None),
    }
}

/// All rows of ours, beside those of theirs that there are.
fn comparison(ours: &[Figures], theirs: &[Figures]) -> Table {
    let mut table = Table::new(&[
        ("what", Align::Left),
        ("this build", Align::Right),
        ("the other", Align::Right),
        ("ratio", Align::Right),
    ]);
    let middle = |tables: &[Figures], name: &str| {
        let tables = tables.iter().map(Figures::by_name);
        let figures: Vec<&Figure> = tables.filter_map(|table| table.get(name).copied()).collect();
        Figure::middle(&figures)
    };
    let names = ours.first().map_or(&[][..], |figures| &figures.0).iter();
    for (name, _) in names {
        let (one, other) = (middle(ours, name), middle(theirs, name));
        let text = |figure: &Option<Figure>| figure.as_ref().map_or("-".into(), Figure::write);
        let ratio = match (&one, &other) {
            (Some(one), Some(other)) => one.ratio(other),
            _ => "-".to_string(),
        };
        table.row(vec![name.clone(), text(&one), text(&other), ratio]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "\
what                                                      measured              goal
-------------------------------------------------------------------------------------
acquire + release, token here (a tokio mutex: 43 ns)        225 ns      at most 1 us  met
64 clients on 64 locks, acquire + release per second      4.39 M/s    at least 1 M/s  met
hand-over between processes, pinned (c = 3708 ns)    12.4 us = 2.39 c    at most 3 c  met
64 clients on one lock of 3 nodes, beside 8 (275707/s)  294612/s = 1.07  at least 0.80  met
Jain's index of the 64                                      0.9996     at least 0.99  met
bytes per lock and member, 100000 held by the first    256, 99, 99         under 300  met
";

    #[test]
    fn a_table_is_read_by_the_names_of_its_rows_and_also_one_of_an_older_build() {
        let read: Vec<(String, String)> =
            Figures::read(OLD).0.into_iter().map(|(name, it)| (name, it.write())).collect();
        let expected = [
            ("acquire + release, token here", "225 ns"),
            ("64 clients on 64 locks, acquire + release per second", "4.39 M/s"),
            ("hand-over between processes, pinned", "12.4 us"),
            (FEW, "275707/s"),
            (CROWD, "294612/s"),
            ("Jain's index of the 64", "0.9996"),
            ("bytes per lock and member, 100000 held by the first", "256, 99, 99"),
        ];
        assert_eq!(read, expected.map(|(name, it)| (name.to_string(), it.to_string())));
        assert!(Figures::read("something else\n").0.is_empty());
    }

    #[test]
    fn the_middle_of_each_number_is_compared_and_what_only_one_knows_has_no_ratio() {
        let table = |nanos: u32, bytes: &str, more: &str| {
            let text = format!("what\n---\na (c = 1 ns)  {nanos} ns = 2 c\nb  {bytes}, 50\n{more}");
            Figures::read(&text)
        };
        let ours =
            [table(300, "200", "c  7/s"), table(900, "220", "c  9/s"), table(100, "210", "c  8/s")];
        let theirs = [table(200, "100", "d  7/s"), table(150, "105", ""), table(1, "400", "")];
        let lines = comparison(&ours, &theirs).lines();
        let rows: Vec<Vec<&str>> = lines[2..]
            .iter()
            .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(rows[0], ["a", "300 ns", "150 ns", "2.00"]);
        assert_eq!(rows[1], ["b", "210, 50", "105, 50", "2.00, 1.00"]);
        assert_eq!(rows[2], ["c", "8/s", "-", "-"]);
        assert_eq!(rows.len(), 3);
    }
}
