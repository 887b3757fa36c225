//! A shell in which the commands of one document are typed.
//!
//! Every document has a network of its own where the system allows that (`unshare`), so documents that
//! name the same ports are tested at the same time, and whatever they leave running ends with them. Where
//! it is not allowed, one document is tested after the other, on the ports of this machine.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::compare::is_as_shown;

/// No command of a document takes nearly so long.
const GENEROUS: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(10);

/// A shell, and what it takes to type into it.
pub(crate) struct Session {
    shell: Child,
    input: ChildStdin,
    done: Receiver<String>,
    /// Where what commands say is kept.
    outputs: PathBuf,
    commands: usize,
    /// Kept while no other document may use the ports of this machine.
    _turn: Option<File>,
}

/// What a command did.
pub(crate) struct Did {
    /// Its exit code; nothing while it goes on.
    pub(crate) code: Option<i32>,
    /// What it has said, on standard output and standard error.
    pub(crate) said: String,
}

/// How a command is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// The next command is typed when it has ended.
    Ends,
    /// It has `&` at its end. What depends on how far it has come waits for that.
    Background,
    /// It serves, in the background: the next command is typed when it has said something.
    Serves,
    /// The same, but it has no `&`: it has a terminal of its own.
    GoesOn,
}

impl Session {
    /// A shell in `folder`, with `home` for all that programs keep for their user.
    pub(crate) fn start(folder: &Path, home: &Path) -> Session {
        let alone = may_be_alone();
        let turn = (!alone).then(wait_for_turn);
        let mut command = if alone { enclosed() } else { Command::new("bash") };
        if !alone {
            command.args(["--noprofile", "--norc"]).process_group(0);
        }
        let binaries = Path::new(env!("CARGO_BIN_EXE_catraca")).parent().unwrap();
        let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
        command.env_clear().current_dir(folder);
        command.env("PATH", path).env("HOME", home).env("USER", "ana").env("LC_ALL", "C.UTF-8");
        command.env("XDG_CONFIG_HOME", home.join("none")).env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("GIT_TERMINAL_PROMPT", "0").env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("PYTHONUNBUFFERED", "1").env("TMPDIR", home);
        // At a terminal redis-cli prints numbers and quotes.
        command.env("FAKETTY", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut shell = command.spawn().unwrap();
        let (input, output) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        let (sender, done) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                sender.send(line).ok();
            }
        });
        let outputs = home.join("outputs");
        std::fs::create_dir_all(&outputs).unwrap();
        // At a terminal curl shows no meter beside what it prints.
        std::fs::write(home.join(".curlrc"), "no-progress-meter\n").unwrap();
        Session { shell, input, done, outputs, commands: 0, _turn: turn }
    }

    /// Types a command and waits until it has ended or, if it goes on, has said what is shown.
    pub(crate) fn types(&mut self, command: &str, manner: Manner, shown: &[String]) -> Did {
        self.commands += 1;
        let output = self.outputs.join(self.commands.to_string());
        File::create(&output).unwrap();
        let behind = if manner == Manner::GoesOn { " &" } else { "" };
        let script = format!(
            "{{\n{command}\n}} >{} 2>&1 </dev/null{behind}\necho \"done {} $?\"\n",
            output.display(),
            self.commands
        );
        // A shell that has gone leaves its reason in what the last command said.
        self.input.write_all(script.as_bytes()).and_then(|()| self.input.flush()).ok();
        let code = self.code();
        let said = || String::from_utf8_lossy(&std::fs::read(&output).unwrap()).into_owned();
        if manner == Manner::Ends || code.is_none() {
            return Did { code, said: said() };
        }
        let begin = Instant::now();
        let has_begun = || match (shown, manner) {
            ([], Manner::Background) => true,
            ([], _) => !said().is_empty() && !will_grant(&said()),
            (shown, _) => is_as_shown(shown, &said()) && !will_grant(&said()),
        };
        while !has_begun() && begin.elapsed() < GENEROUS {
            std::thread::sleep(LOOK);
        }
        Did { code: None, said: said() }
    }

    /// The exit code of the command that was typed last, once it has ended.
    fn code(&self) -> Option<i32> {
        let line = self.done.recv_timeout(GENEROUS).ok()?;
        let code = line.strip_prefix(&format!("done {} ", self.commands))?;
        code.parse().ok()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Whatever still runs ends with the process namespace, or else with the process group.
        let group = format!("-{}", self.shell.id());
        Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status().ok();
        self.shell.kill().ok();
        self.shell.wait().ok();
    }
}

/// Whether this is a node that will grant locks by itself in a moment: on a busy machine, somebody who asks
/// before that is told to wait.
fn will_grant(said: &str) -> bool {
    said.contains(" alone in group ") && !said.contains(" locks are granted")
}

/// Whether processes and networks of one's own may be made here.
fn may_be_alone() -> bool {
    let mut trial = enclosed();
    trial.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    trial.status().is_ok_and(|status| status.success())
}

/// A shell that is the first process of its own process namespace, in a network of its own. Whoever is not
/// root is root while the network is made, and then oneself again.
fn enclosed() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let mut again = String::new();
    if !user.is_root() {
        command.arg("--map-root-user");
        let (user, group) = (user.as_raw(), group.as_raw());
        again = format!("unshare --map-user={user} --map-group={group} ");
    }
    let script = format!("set -e; ip link set lo up; exec {again}bash --noprofile --norc");
    command.args(["sh", "-c", &script]).process_group(0);
    command
}

/// Waits until no other document is tested on the ports of this machine.
fn wait_for_turn() -> File {
    let file = File::create(std::env::temp_dir().join("catraca-documents.lock")).unwrap();
    file.lock().unwrap();
    file
}
