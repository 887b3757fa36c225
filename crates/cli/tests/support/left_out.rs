//! Programs of others that a test needs and that are not on every machine.
//!
//! Whoever tests at home may lack them: then a test is left out, and says so. `cargo xtask test` installs most of
//! them and sets `CATRACA_TESTS_REQUIRE`: nothing that needs those is left out then.

use std::io::Write;

/// Those that nobody installs for tests: they are here, or they are not.
const ELSEWHERE: [&str; 4] = ["fish", "man", "terraform", "zsh"];

/// A test, or a part of it, cannot be run without `program`. That is a failure where it would have to be here.
#[track_caller]
pub(crate) fn left_out(what: &str, program: &str) {
    let is_required = std::env::var_os("CATRACA_TESTS_REQUIRE").is_some_and(|it| it == "1");
    match judged(what, program, is_required) {
        // If nobody listens, nobody has to know.
        Ok(words) => drop(writeln!(std::io::stderr(), "{words}")),
        Err(words) => panic!("{words}"),
    }
}

/// What is said, and whether it is a failure.
pub(crate) fn judged(what: &str, program: &str, is_required: bool) -> Result<String, String> {
    match is_required && !ELSEWHERE.contains(&program) {
        false => Ok(format!("left out: {what}: there is no {program} here")),
        true => Err(format!(
            "{what} may not be left out: there is no {program} here, which 'cargo xtask test' installs"
        )),
    }
}
