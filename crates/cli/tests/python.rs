//! The package for Python against real nodes: its own tests, run by the Python of this machine.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::path::Path;
use std::process::Command;

#[test]
fn the_package_for_python_passes_its_own_tests_without_a_warning() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python");
    let output = Command::new("python3")
        .args(["-W", "error", "-m", "unittest", "discover", "--start-directory", "tests"])
        .current_dir(package)
        .env("CATRACA", env!("CARGO_BIN_EXE_catraca"))
        // Nothing is written beside the sources.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap_or_else(|error| panic!("cannot run python3 ({error}): {INSTALL}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("\nRan "), "no tests were found: {said}");
}

const INSTALL: &str = "'cargo xtask test' installs the packages that the tests need";
