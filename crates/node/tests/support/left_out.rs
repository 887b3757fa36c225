//! Programs of others that a test needs and that cannot be had everywhere.
//!
//! Whoever tests at home may lack them: then a test is left out, and says so. Where `cargo xtask test` runs,
//! which sets `CATRACA_TESTS_REQUIRE`, nothing is left out that can be had.

use std::io::Write;
use std::process::{Command, Stdio};

/// Where a program of others comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The libraries of Python.
    PyPi,
    /// The libraries of JavaScript.
    Npm,
    /// A Debian package that `cargo xtask test` installs.
    Debian,
    /// It is here, or it is not.
    Nowhere,
}

impl Source {
    /// Whether something can be had from there now. Proxies of the environment are used.
    fn is_reached(self) -> bool {
        let address = match self {
            Source::PyPi => "https://pypi.org/simple/redis/",
            Source::Npm => "https://registry.npmjs.org/redis/latest",
            Source::Debian => return true,
            Source::Nowhere => return false,
        };
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--fail", "--max-time", "30", "--output", "/dev/null", address]);
        curl.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
    }
}

/// A test, or a part of it, cannot be run here. That is a failure where it would have to be possible.
#[track_caller]
pub(crate) fn left_out(what: &str, why: &str, from: Source) {
    let is_required = std::env::var_os("CATRACA_TESTS_REQUIRE").is_some_and(|it| it == "1");
    match judged(what, why, from, is_required, || from.is_reached()) {
        // If nobody listens, nobody has to know.
        Ok(words) => drop(writeln!(std::io::stderr(), "{words}")),
        Err(words) => panic!("{words}"),
    }
}

/// What is said, and whether it is a failure.
pub(crate) fn judged(
    what: &str,
    why: &str,
    from: Source,
    is_required: bool,
    is_reached: impl FnOnce() -> bool,
) -> Result<String, String> {
    let words = format!("left out: {what}: {why}");
    if !is_required || from == Source::Nowhere {
        return Ok(words);
    }
    match is_reached() {
        true => Err(format!("{what} may not be left out, and {from:?} can be reached: {why}")),
        false => Ok(format!("{words} ({from:?} cannot be reached from here)")),
    }
}
