//! Where a run takes place: processes, networks and mounts of its own.
//!
//! The run is the first process of its own process namespace. When it ends, in whatever way, the system
//! ends everything that it has started, and its networks and mounts are gone. Nothing of it is ever
//! seen outside.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

const NAMESPACES: [&str; 6] =
    ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// A run that was told to stop has so long to do so.
const STOPPING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);

/// `unshare` with what makes the enclosure. Whoever is not root is root within, where the system
/// lets users have namespaces.
fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(NAMESPACES);
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command
}

/// Why no run can take place on this system, if so.
pub(crate) fn hindrance() -> Option<String> {
    for tool in ["ip", "tc"] {
        let found = Command::new(tool).arg("-V").stdout(Stdio::null()).status();
        if found.is_err() {
            return Some(format!("'{tool}' is not there: install iproute2"));
        }
    }
    let tried = unshare().args(["ip", "link", "add", "type", "bridge"]).output();
    match tried {
        Err(error) => Some(format!("'unshare' cannot be started ({error}): install util-linux")),
        Ok(output) if !output.status.success() => Some(format!(
            "this user may not make namespaces for processes, networks and mounts: run it as root \
             ({})",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Ok(_) => None,
    }
}

/// Runs this program with other arguments inside, until it ends. Ctrl-C and SIGTERM make it stop.
pub(crate) fn run(arguments: &[String]) -> Result<ExitStatus> {
    let is_told_to_stop = interrupted()?;
    let program = std::env::current_exe().context("this program does not know where it is")?;
    let mut command = unshare();
    command.arg(program).args(arguments).stdin(Stdio::piped());
    let mut child = command.spawn().context("'unshare' cannot be started")?;
    let mut stopping: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stopping.is_none() && is_told_to_stop.load(Ordering::Relaxed) {
            // The end of its input tells the run inside.
            drop(child.stdin.take());
            stopping = Some(Instant::now());
        }
        if stopping.is_some_and(|since| since.elapsed() > STOPPING) {
            return end(child);
        }
        std::thread::sleep(LOOK);
    }
}

/// Is set by Ctrl-C and SIGTERM, in whichever of several runs of this process they come.
fn interrupted() -> Result<&'static AtomicBool> {
    static FLAG: AtomicBool = AtomicBool::new(false);
    match ctrlc::set_handler(|| FLAG.store(true, Ordering::Relaxed)) {
        // An earlier run listens already.
        Ok(()) | Err(ctrlc::Error::MultipleHandlers) => Ok(&FLAG),
        Err(error) => Err(error).context("signals cannot be listened to"),
    }
}

/// Whoever ends `unshare` ends all that is inside.
fn end(mut child: Child) -> Result<ExitStatus> {
    child.kill()?;
    Ok(child.wait()?)
}

/// Inside: is set when the run is told to stop, or whoever has started it is gone.
pub(crate) fn stop_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&flag);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut bytes = [0; 64];
        while input.read(&mut bytes).is_ok_and(|read| read > 0) {}
        told.store(true, Ordering::Relaxed);
    });
    flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_after_the_other_listens_to_signals() {
        let first = interrupted().unwrap();
        let second = interrupted().unwrap();
        assert!(std::ptr::eq(first, second));
    }
}
