//! Runs the real binary in a folder of its own.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]
#![allow(dead_code, reason = "every test file takes what it needs")]

pub(crate) mod browser;
pub(crate) mod dashboard;
pub(crate) mod etcd;
pub(crate) mod git;
pub(crate) mod left_out;
pub(crate) mod schema;
pub(crate) mod service;
pub(crate) mod web;

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// No event that is waited for takes nearly so long.
pub(crate) const GENEROUS: Duration = Duration::from_secs(120);

/// An empty folder that the binary runs in; it goes away with this value.
pub(crate) struct Folder(TempDir);

/// What a run of the binary left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Folder(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    /// The names of everything in it, hidden files too, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// `catraca` with these arguments, not yet started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_catraca"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        // A node that is told nothing keeps its data there, and not in the home of whoever tests.
        command.env("XDG_DATA_HOME", self.path(".data"));
        // Nor are its sockets where whoever tests has some.
        command.env_remove("XDG_RUNTIME_DIR");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().unwrap().into()
    }

    /// Runs a command line as a user would paste it into a shell.
    pub(crate) fn shell(&self, line: &str) -> Ran {
        let binary = PathBuf::from(env!("CARGO_BIN_EXE_catraca"));
        let folders = format!("{}:/usr/bin:/bin", binary.parent().unwrap().display());
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).env("PATH", folders).current_dir(self.0.path());
        shell.output().unwrap().into()
    }

    /// Starts the binary, waits until it has opened its output file, and presses Ctrl-C.
    pub(crate) fn interrupt(&self, arguments: &[&str]) -> Ran {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running(command.spawn().unwrap());
        let is_pending = || self.names().iter().any(|name| name.starts_with(".catraca-"));
        running.wait_until("it opens its output file", |child| {
            assert_eq!(child.try_wait().unwrap(), None, "ended before it could be interrupted");
            is_pending()
        });
        running.signal("-INT");
        running.wait_until("it ends", |child| child.try_wait().unwrap().is_some());
        running.ran()
    }
}

/// Keeps what a page shows for people to look at, in `target/tmp/screenshots`, if `CATRACA_SCREENSHOTS` is
/// set. The name is without its ending.
pub(crate) fn keep_picture(browser: &browser::Browser, name: &str) {
    if std::env::var_os("CATRACA_SCREENSHOTS").is_some() {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        browser.screenshot(&folder.join(format!("{name}.png")));
    }
}

/// A child that does not outlive a failed test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn wait_until(&mut self, what: &str, mut happened: impl FnMut(&mut Child) -> bool) {
        let begin = Instant::now();
        while !happened(&mut self.0) {
            assert!(begin.elapsed() < GENEROUS, "waited in vain until {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// What the ended child said; it said little, so the pipes have held it.
    pub(crate) fn ran(mut self) -> Ran {
        let status = self.0.wait().unwrap();
        let stdout = std::io::read_to_string(self.0.stdout.take().unwrap()).unwrap();
        let stderr = std::io::read_to_string(self.0.stderr.take().unwrap()).unwrap();
        Ran { code: status.code(), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// It ended with `code` and had nothing to complain about.
    #[track_caller]
    pub(crate) fn quietly(self, code: i32) -> Self {
        assert_eq!((self.code, self.stderr.as_str()), (Some(code), ""), "{}", self.stdout);
        self
    }

    /// It refused its input in one line that contains all of `texts`, and did nothing else.
    #[track_caller]
    pub(crate) fn refused(self, texts: &[&str]) -> Self {
        assert_eq!((self.code, self.stdout.as_str()), (Some(2), ""), "{}", self.stderr);
        self.complained(texts)
    }

    /// Standard error is one line that contains all of `texts`.
    #[track_caller]
    pub(crate) fn complained(self, texts: &[&str]) -> Self {
        assert!(self.stderr.starts_with("catraca: "), "{}", self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        for text in texts {
            assert!(self.stderr.contains(text), "'{text}' is not in: {}", self.stderr);
        }
        self
    }

    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "'{text}' is not in:\n{}", self.stdout);
        self
    }
}
