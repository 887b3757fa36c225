//! The clock of leases, in a time namespace where the machine has slept.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

use std::process::Command;

use catraca_client::clock;

/// Set where this program is run again, to tell what its clock says.
const TELLS: &str = "CATRACA_TELLS_THE_CLOCK";
/// For how long the machine of the namespace has slept, in seconds.
const SLEPT: u64 = 1_000_000;

/// What sleeps is counted by CLOCK_BOOTTIME alone: no other clock is moved here.
#[test]
fn the_time_that_a_machine_sleeps_counts() {
    if std::env::var_os(TELLS).is_some() {
        println!("clock {} .", clock::now().0);
        return;
    }
    let mut command = Command::new("unshare");
    command.args(["--user", "--time", "--boottime", &SLEPT.to_string()]);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "the_time_that_a_machine_sleeps_counts", "--nocapture"]);
    let before = clock::now().0;
    let output = match command.env(TELLS, "1").output() {
        Ok(output) => output,
        Err(error) => return println!("left out: there is no unshare: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(why.contains("unshare"), "{said}{why}");
        return println!("left out: this system forbids time namespaces: {why}");
    }
    let told = said.split_whitespace().skip_while(|word| *word != "clock").nth(1);
    let told: u64 = told.unwrap_or_else(|| panic!("{said}")).parse().unwrap();
    assert!(told >= before + SLEPT * 1_000_000_000, "{told} there, {before} here");
}
