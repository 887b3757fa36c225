//! Experiments with a program whose coordinator and processes behave wrongly.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use catraca_classroom::{Defect, Experiment, ExperimentError, LOG, RESULT};
use tempfile::TempDir;

/// A coordinator that says where it listens and reads on until it may end.
const COORDINATOR: &str = "echo 'listening at nowhere, say help'; while read -r command; do
    if [ \"$command\" = quit ]; then exit 0; fi; done; exit 9";

/// Runs an experiment of one process and one round with a shell script as the program.
fn experiment(coordinator: &str, process: &str, interrupted: bool) -> ExperimentError {
    let folder = TempDir::new().unwrap();
    let program: PathBuf = folder.path().join("program");
    let script = format!(
        "#!/bin/sh\ncd {}\ncase $1 in\ncoordinator) {coordinator} ;;\nprocess) {process} ;;\nesac\n",
        folder.path().display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let processes = vec!["1".parse().unwrap()];
    let experiment = Experiment { program, processes, rounds: 1, hold: Duration::ZERO };
    experiment.run(folder.path(), &AtomicBool::new(interrupted)).unwrap_err()
}

#[test]
fn files_that_do_not_agree_are_found() {
    let write = format!(
        "echo '2025-07-17 01:28:30.119990 | 1 | 1 | RECEBIDO: 1|1|123456' > {LOG}
        echo '2025-07-17 01:28:30.119991 | 2 | 1 | ENVIADO: 2|1|123456' >> {LOG}
        echo '2025-07-17 01:28:30.119995 | 3 | 1 | RECEBIDO: 3|1|123456' >> {LOG}
        echo '1 2025-07-17 01:28:30.119999' > {RESULT}"
    );
    let error = experiment(COORDINATOR, &write, false);
    let late = Defect::AfterRelease { number: 1, id: "1".parse().unwrap() };
    assert!(matches!(&error, ExperimentError::Defect(defect) if *defect == late), "{error}");
}

#[test]
fn who_fails_is_named_with_what_it_said() {
    let process = "echo 'catraca: no luck' >&2; echo more >&2; exit 1";
    let error = experiment(COORDINATOR, process, false);
    assert_eq!(error.to_string(), "process 1 failed: no luck");
    let silent = experiment(COORDINATOR, "exit 7", false);
    assert_eq!(silent.to_string(), "process 1 failed: exit status: 7");
    let gone = experiment("echo 'listening at nowhere, say help'", "exec sleep 3600", false);
    assert_eq!(gone.to_string(), "the coordinator failed: ended too soon");
    let deaf = experiment("echo 'catraca: the port is taken' >&2; exit 1", "exit 0", false);
    assert_eq!(deaf.to_string(), "the coordinator failed: the port is taken");
    let mute = experiment("echo hello", "exit 0", false);
    assert_eq!(mute.to_string(), "the coordinator failed: does not say where it listens");
    let missing = experiment(COORDINATOR, "exit 0", false);
    assert!(matches!(missing, ExperimentError::Files(_)), "{missing}");
}

#[test]
fn an_interrupted_experiment_waits_for_nobody() {
    let error = experiment(COORDINATOR, "exec sleep 3600", true);
    assert!(matches!(error, ExperimentError::Interrupted), "{error}");
}
