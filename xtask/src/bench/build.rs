//! How long a fresh build takes, and which crates take longest.
//!
//! cargo writes a report of a build with the times of all its units; this reads the data within it.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::shell;

/// So many crates are told.
const TOLD: usize = 10;

/// A step of a build: a library, a program, a build script or its run.
#[derive(Deserialize)]
struct Unit {
    name: String,
    version: String,
    /// Seconds.
    duration: f64,
}

/// Builds the program into an empty folder and prints what took longest.
pub(super) fn measure() -> Result<()> {
    let folder = shell::built("timed");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    // What is downloaded does not count.
    shell::run("cargo fetch --locked")?;
    let begin = Instant::now();
    let target = folder.display();
    shell::run(&format!(
        "cargo build --release --locked --timings --package catraca --target-dir {target}"
    ))?;
    let took = begin.elapsed().as_secs_f64();
    let report = folder.join("cargo-timings/cargo-timing.html");
    let page = std::fs::read_to_string(&report)
        .with_context(|| format!("cannot read {}", report.display()))?;
    print!("{}", table(&units(&page)?, took));
    println!("\n{}", report.display());
    Ok(())
}

/// The data of cargo's report.
fn units(page: &str) -> Result<Vec<Unit>> {
    const BEGIN: &str = "const UNIT_DATA = ";
    let data = page.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(";\n"));
    let (data, _) = data.context("cargo's report has another form than this chore knows")?;
    serde_json::from_str(data).context("cargo's report has another form than this chore knows")
}

/// The crates that took longest, as a table in Markdown.
fn table(units: &[Unit], took: f64) -> String {
    let mut crates: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for unit in units {
        *crates.entry((&unit.name, &unit.version)).or_default() += unit.duration;
    }
    let whole: f64 = crates.values().sum();
    let mut crates: Vec<_> = crates.into_iter().collect();
    crates.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut text = format!(
        "{took:.0} s on {cores} cores; the steps of all {} crates together {whole:.0} s\n\n\
         | crate | seconds | share |\n|---|---|---|\n",
        crates.len()
    );
    for ((name, version), seconds) in crates.iter().take(TOLD) {
        text +=
            &format!("| {name} {version} | {seconds:.1} | {:.0} % |\n", seconds / whole * 100.0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_a_crate_are_added_and_the_longest_are_told() {
        let unit = |name: &str, duration: f64| {
            format!(
                r#"{{"i": 0, "name": "{name}", "version": "1.0.0", "duration": {duration}, "sections": null}}"#
            )
        };
        let all: Vec<String> =
            (0..12).map(|at| unit(&format!("c{at:02}"), f64::from(at))).collect();
        let page = format!(
            "<script>\nconst UNIT_DATA = [{}, {}];\nconst CONCURRENCY_DATA = [];\n",
            all.join(","),
            unit("c03", 31.0)
        );
        let text = table(&units(&page).unwrap(), 50.4);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].starts_with("50 s on ") && lines[0].ends_with("all 12 crates together 97 s")
        );
        assert_eq!(lines[4], "| c03 1.0.0 | 34.0 | 35 % |");
        assert_eq!(lines[5], "| c11 1.0.0 | 11.0 | 11 % |");
        assert_eq!(lines.len(), 4 + TOLD);
    }

    #[test]
    fn a_report_of_another_form_is_told() {
        assert!(units("<html>").is_err() && units("const UNIT_DATA = {};\n").is_err());
    }
}
