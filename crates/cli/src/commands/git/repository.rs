//! The repository that a command runs in, and how git is called.

use std::ffi::OsStr;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::config::Config;
use crate::failure::Failure;
use crate::output::reason;

/// A repository, as git finds it from where the command runs.
#[derive(Clone)]
pub(super) struct Repository {
    /// The folder of the files; none of a bare repository.
    pub(super) top: Option<PathBuf>,
    /// From there to where the command runs: empty, or with '/' at its end.
    pub(super) prefix: String,
    /// Where git keeps what belongs to all work trees.
    pub(super) common: PathBuf,
    /// Where git looks for hooks.
    pub(super) hooks: PathBuf,
    pub(super) config: Config,
}

impl Repository {
    pub(super) fn find() -> Result<Self, Failure> {
        let words =
            ["rev-parse", "--is-bare-repository", "--git-common-dir", "--git-path", "hooks"];
        let text = line_of(git().args(words))?;
        let mut lines = text.lines();
        let is_bare = lines.next() == Some("true");
        let here = std::env::current_dir().map_err(|error| {
            Failure::input(format!("cannot tell where this is: {}", reason(&error)))
        })?;
        let common = here.join(lines.next().unwrap_or_default());
        let hooks = here.join(lines.next().unwrap_or_default());
        let (top, prefix) = match is_bare {
            true => (None, String::new()),
            false => {
                let text = line_of(git().args(["rev-parse", "--show-toplevel", "--show-prefix"]))?;
                let (top, prefix) = text.split_once('\n').unwrap_or((&text, ""));
                (Some(PathBuf::from(top)), prefix.to_string())
            }
        };
        let config = Config::read(top.as_deref())?;
        Ok(Repository { top, prefix, common, hooks, config })
    }

    /// The repository that a command needs that is about files.
    pub(super) fn with_files() -> Result<Self, Failure> {
        let repository = Repository::find()?;
        match repository.top {
            Some(_) => Ok(repository),
            None => Err(Failure::input(
                "this is a bare repository, without files: run it in a clone of it",
            )),
        }
    }

    /// The folder of the files, or for a bare repository that of git.
    pub(super) fn root(&self) -> &Path {
        self.top.as_deref().unwrap_or(&self.common)
    }

    /// git, run from the top: paths are as in commits.
    pub(super) fn git(&self) -> Command {
        let mut command = git();
        command.current_dir(self.root());
        command
    }
}

/// A call of git that takes paths as they are: a path is no pattern, however it looks.
pub(super) fn git() -> Command {
    let mut command = Command::new("git");
    command.env("GIT_LITERAL_PATHSPECS", "1").stdin(Stdio::null());
    command
}

/// Runs it, and gives what it says, or fails with what it complains of.
pub(super) fn run(command: &mut Command) -> Result<Vec<u8>, Failure> {
    let output = command.output().map_err(|error| not_started(command, &error))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(complaint(command, &output)),
    }
}

/// What it says as text, without the line break at its end.
pub(super) fn line_of(command: &mut Command) -> Result<String, Failure> {
    let output = run(command)?;
    let text = String::from_utf8_lossy(&output);
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_string())
}

/// The same, or nothing if git cannot say.
pub(super) fn line_if_any(command: &mut Command) -> Option<String> {
    line_of(command).ok().filter(|line| !line.is_empty())
}

/// Whether it succeeds; nobody hears what it says.
pub(super) fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|it| it.success())
}

/// Runs it with this input. Input and output may be of any length.
pub(super) fn run_with(command: &mut Command, input: Vec<u8>) -> Result<Vec<u8>, Failure> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| not_started(command, &error))?;
    let stdin = child.stdin.take();
    // Whoever does not read on says why by its exit code.
    let feeder = std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&input)));
    let output = child.wait_with_output().map_err(|error| not_started(command, &error))?;
    feeder.join().ok();
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(complaint(command, &output)),
    }
}

/// What zeros separate.
pub(super) fn by_zeros(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|&byte| byte == 0).filter(|part| !part.is_empty())
}

pub(super) fn not_started(command: &Command, error: &std::io::Error) -> Failure {
    let name = command.get_program().to_string_lossy();
    Failure::Input(match error.kind() {
        ErrorKind::NotFound => {
            format!("'{name}' cannot be run: install it, and put it on the path")
        }
        _ => format!("'{name}' cannot be run: {}", reason(error)),
    })
}

/// The first thing that git says, in its words.
pub(super) fn complaint(command: &Command, output: &Output) -> Failure {
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it does not say why");
    let action = command.get_args().find(|word| !word.to_string_lossy().starts_with('-'));
    let action = action.unwrap_or(OsStr::new("")).to_string_lossy().into_owned();
    Failure::Input(format!("git {action} failed: {}", first.trim_start_matches("fatal: ")))
}
