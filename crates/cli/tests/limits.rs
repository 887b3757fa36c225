//! Whatever flags and files a command is given, it stays within limits of memory and time, ends with
//! a documented code, and says what is wrong in a few words.
//!
//! Arguments are generated from the flags that a command's help names and from extreme values, by a seeded
//! generator, so every run of these tests tries the same ones. A command that takes long is sent SIGTERM.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

#[path = "limits/help.rs"]
mod help;
#[path = "limits/subject.rs"]
mod subject;
mod support;

use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use help::Flags;
use subject::{Random, SUBJECTS, Subject};
use support::{Folder, Running};

/// The address space of a command, in KiB: 4 GiB.
const MEMORY: &str = "4194304";
/// The processor time of a command, in seconds: so that nothing outlives a failed test for long.
const PROCESSOR: &str = "60";
/// A command that has not ended after this is sent SIGTERM.
const PATIENCE: Duration = Duration::from_millis(400);
/// And ends within a second or so; on a machine that does other things too, within this.
const ENDING: Duration = Duration::from_secs(20);
/// The longest message that is still an error message.
const LONGEST: usize = 4096;
/// How many sets of arguments are tried for each command, and for each of its flags.
const CASES: usize = 6;
const CASES_OF_A_FLAG: usize = 2;

/// A folder with a file of every kind.
fn folder() -> Folder {
    let folder = Folder::new();
    let garbage: Vec<u8> =
        (0..4096u32).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    folder.write("garbage", garbage);
    folder.write("deep.toml", format!("a = {}", "[".repeat(100_000)));
    folder.write("empty", "");
    std::fs::create_dir(folder.path("folder")).unwrap();
    folder.write("ring.txt", "catraca graph\nnodes 3\nlast 2\ncycle 0\n0 0 1\n1 1 2\n2 0 2\n");
    folder.write("run.toml", "algorithm = 'raymond'\nnodes = 3\n[run]\nentries = 10\n");
    folder.write("run.trace", TRACE);
    folder.write("group.toml", "name = 'a'\n[members]\na = '127.0.0.1:7800'\n");
    folder
}

/// Node 0 asks and enters.
const TRACE: &str = concat!(
    r#"{"catraca-trace":1,"origin":"check","spec":{"algorithm":"ricart-agrawala","nodes":1},"ticks_per_unit":1}"#,
    "\n",
    r#"{"step":{"at":0,"node":0,"input":{"request":[0]},"outcomes":[{"granted":1}]}}"#,
    "\n",
);

/// What a command that was kept within limits has left.
struct Kept {
    /// Nothing if it did not even end when it was told to.
    status: Option<ExitStatus>,
    /// Whether it ended only when it was told to.
    was_told: bool,
    /// Whether it may die of that.
    may_die: bool,
    stderr: String,
}

/// The number of SIGTERM.
const TERM: i32 = 15;

/// Runs a command within limits, and ends it after `patience`. If it may not die of a signal, it is sent none
/// before it is prepared for one.
fn within_limits(folder: &Folder, arguments: &[&str], patience: Duration, may_die: bool) -> Kept {
    let mut command = Command::new("sh");
    let limits = format!("ulimit -v {MEMORY}; ulimit -t {PROCESSOR}; exec \"$@\"");
    command.args(["-c", &limits, "sh", env!("CARGO_BIN_EXE_catraca")]).args(arguments);
    command.current_dir(folder.path("")).stdin(Stdio::null()).stdout(Stdio::null());
    // Nothing of whoever tests is read or written, and no node of theirs is asked.
    for (name, place) in [("HOME", "home"), ("XDG_DATA_HOME", "data-home"), ("TMPDIR", "folder")] {
        command.env(name, folder.path(place));
    }
    command.env_remove("XDG_RUNTIME_DIR").env("CATRACA_NODE", "127.0.0.1:1");
    // A file takes any amount; a pipe that nobody reads would stop the command.
    command.stderr(File::create(folder.path(".said")).unwrap());
    let mut running = Running(command.spawn().unwrap());
    let ended = |running: &mut Running, limit: Duration| {
        let begin = Instant::now();
        loop {
            match running.0.try_wait().unwrap() {
                Some(status) => return Some(status),
                None if begin.elapsed() > limit => return None,
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    };
    let mut by_itself = ended(&mut running, patience);
    let begin = Instant::now();
    while by_itself.is_none() && !may_die && !catches_signals(&running) && begin.elapsed() < ENDING
    {
        by_itself = ended(&mut running, Duration::from_millis(20));
    }
    let was_told = by_itself.is_none();
    let status = by_itself.or_else(|| {
        running.signal("-TERM");
        ended(&mut running, ENDING)
    });
    let mut stderr = Vec::new();
    let said = File::open(folder.path(".said")).unwrap();
    said.take(1 << 20).read_to_end(&mut stderr).unwrap();
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    Kept { status, was_told, may_die, stderr }
}

/// Whether SIGTERM does what the process says, and not what the system does.
fn catches_signals(running: &Running) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.0.id()));
    let status = status.unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|caught| u64::from_str_radix(caught.trim(), 16).ok());
    caught.is_some_and(|caught| caught & (1 << (TERM - 1)) != 0)
}

/// The command as one would type it, without what is too long to be read.
fn shown(arguments: &[&str]) -> String {
    let short = |text: &&str| match text.len() {
        0..=60 => format!("'{text}'"),
        length => format!("(a text of {length} bytes)"),
    };
    arguments.iter().map(short).collect::<Vec<_>>().join(" ")
}

impl Kept {
    /// Why it is not as it should be, if so.
    fn defect(&self, codes: &[i32]) -> Option<String> {
        let start: String = self.stderr.chars().take(300).collect();
        let Some(status) = self.status else {
            return Some(format!("does not end at SIGTERM: {start}"));
        };
        match status.code() {
            None if self.was_told && self.may_die && status.signal() == Some(TERM) => None,
            None => Some(format!("was ended by signal {:?}: {start}", status.signal())),
            Some(code) if !codes.contains(&code) => {
                Some(format!("ended with the code {code}, which is not documented: {start}"))
            }
            Some(_) if self.stderr.contains("panicked at") => Some(format!("panics: {start}")),
            Some(_) if self.stderr.len() > LONGEST => {
                Some(format!("says {} bytes on standard error: {start}", self.stderr.len()))
            }
            Some(0 | 3 | 4) => None,
            Some(code) if self.stderr.trim().is_empty() => {
                Some(format!("ended with the code {code} and did not say why"))
            }
            Some(_) => None,
        }
    }
}

/// Calls `case` with 0, 1, 2 and so on, on all cores, and collects what it finds.
fn each(count: usize, case: impl Fn(usize) -> Option<String> + Sync) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        numbers.take_while(|&number| number < count).filter_map(&case).collect::<Vec<String>>()
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

#[test]
fn every_command_is_tried() {
    let commands = help::commands();
    let is_of = |subject: &Subject, command: &[String]| {
        command.iter().eq(subject.words.iter().take(command.len()))
    };
    assert!(commands.len() > 40, "{commands:?}");
    for command in &commands {
        assert!(
            SUBJECTS.iter().any(|subject| is_of(subject, command)),
            "'{}' is tried with nothing: give it a line in limits/subject.rs",
            command.join(" ")
        );
    }
    for subject in SUBJECTS {
        let is_there = commands.iter().any(|command| is_of(subject, command));
        assert!(is_there, "there is no command {:?}", subject.words);
        assert!(
            Flags::of(subject.words).count() > 0 || subject.words.len() == 1,
            "{:?} has no flags",
            subject.words
        );
    }
}

#[test]
fn no_flag_and_no_file_takes_a_command_beyond_its_limits() {
    let flags: Vec<Flags> = SUBJECTS.iter().map(|subject| Flags::of(subject.words)).collect();
    let tried = SUBJECTS.iter().zip(&flags);
    let cases: Vec<(&Subject, &Flags)> = tried
        .flat_map(|case| std::iter::repeat_n(case, CASES + CASES_OF_A_FLAG * case.1.count()))
        .collect();
    let defects = each(cases.len(), |number| {
        let (subject, flags) = cases[number];
        let mut random = Random(number as u64);
        let arguments = subject.arguments(flags, &mut random);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let kept = within_limits(&folder(), &arguments, PATIENCE, subject.dies);
        let defect = kept.defect(subject.codes)?;
        Some(format!("catraca {}: {defect}", shown(&arguments)))
    });
    assert!(defects.is_empty(), "{}", defects.join("\n"));
}

/// These once took all memory, or all time.
const ENDED_BY_THEMSELVES: &[(i32, &[&str])] = &[
    (2, &["graph", "generate", "static", "--nodes", "30000"]),
    (2, &["graph", "generate", "static", "--nodes", "4294967295", "--shape", "ring"]),
    (2, &["graph", "generate", "edge-markovian", "--nodes", "5", "--instants", "99999999999"]),
    (2, &["graph", "generate", "edge-markovian", "--nodes", "1000000"]),
    (2, &["graph", "generate", "waypoint", "--nodes", "100000", "--range", "1e9"]),
    (2, &["graph", "generate", "waypoint", "--nodes", "2", "--instants", "99999999999"]),
    (2, &["graph", "generate", "buses", "--stops", "4294967295", "--buses", "4294967295"]),
    (0, &["graph", "run", "ring.txt", "--repeat", "--hold", "4294967295"]),
    (0, &["graph", "run", "ring.txt", "--at", "1000000000000000000"]),
    (2, &["graph", "run", "ring.txt", "--rounds", "4294967295"]),
    (2, &["graph", "propositions", "--nodes", "4294967295"]),
    (2, &["graph", "propositions", "--nodes", "100000", "--random", "1"]),
    (2, &["graph", "info", "/dev/zero"]),
    (2, &["replay", "/dev/zero"]),
];

#[test]
fn what_is_too_large_is_refused_or_ends_by_itself() {
    let defects = each(ENDED_BY_THEMSELVES.len(), |number| {
        let (code, arguments) = ENDED_BY_THEMSELVES[number];
        let kept = within_limits(&folder(), arguments, support::GENEROUS, false);
        let defect = match kept.was_told {
            true => Some("did not end by itself".to_string()),
            false => kept.defect(&[code]),
        };
        Some(format!("catraca {}: {}", shown(arguments), defect?))
    });
    assert!(defects.is_empty(), "{}", defects.join("\n"));
}

/// These once did not end, took all memory or panicked.
const ONCE_ENDLESS: &[(i32, &str)] = &[
    (4, "sim --algorithm raymond --nodes 1 --hold 0 --time 1"),
    (4, "sim --algorithm lamport --hold 0 --delay 0 --time 1"),
    (4, "sim --algorithm raymond --hold 0 --delay 0 --time 1"),
    (2, "sim --algorithm robust-k --ack-timeout 0.000001 --time 20"),
    (2, "sim /dev/zero"),
    (
        3,
        "sim --algorithm maekawa --nodes 2 --mutant deaf-to-failed --arrivals open --rate 1 --entries 100000",
    ),
    (4, "compare --nodes 4 --rate 1e6 --entries 100"),
    (2, "compare --nodes 4294967295"),
    (0, "compare --algorithms naimi-trehel --nodes 1000000 --load low --entries 20000 --seeds 1"),
    (4, "check raymond --nodes 1000000 --states 10"),
];

#[test]
fn simulations_comparisons_and_searches_end_by_themselves() {
    let defects = each(ONCE_ENDLESS.len(), |number| {
        let (code, line) = ONCE_ENDLESS[number];
        let arguments: Vec<&str> = line.split(' ').collect();
        let kept = within_limits(&folder(), &arguments, support::GENEROUS, false);
        let defect = match kept.was_told {
            true => Some("did not end by itself".to_string()),
            false => kept.defect(&[code]),
        };
        Some(format!("catraca {line}: {}", defect?))
    });
    assert!(defects.is_empty(), "{}", defects.join("\n"));
}

#[test]
fn a_long_run_ends_at_sigterm_whatever_it_is_at() {
    let folder = folder();
    let arguments = ["graph", "propositions", "--nodes", "3", "--instants", "8"];
    let kept = within_limits(&folder, &arguments, PATIENCE, false);
    assert!(kept.was_told);
    let code = kept.status.and_then(|status| status.code());
    assert_eq!((code, kept.stderr.as_str()), (Some(130), "catraca: interrupted\n"));
}
