//! Whether the judge of chaos finds what it is there for: real members, all of which break a rule.

use anyhow::{Result, bail};

use super::fault::Kind;
use super::options::Options;
use super::{VIOLATED, run_one};

/// Each is tried with these, one after the other, until the judge finds something.
const SEEDS: [u64; 4] = [1, 2, 3, 4];

/// The rules that real processes show within minutes, and the faults that show them. The others need what
/// only the simulator can draw: messages that are late by just so much, or steps that fall together.
const RULES: &[(&str, &[Kind])] = &[
    // Whoever sleeps for longer than its lease goes on as if nothing had happened.
    ("valid-for-ever", &[Kind::Freeze, Kind::Cut, Kind::OneWay]),
    // Clients of the run before believe to be inside when the next run is let in.
    ("restart-at-once", &[Kind::Kill, Kind::Blackout]),
    // What is held at whoever reports last is not in the table.
    ("start-before-reports", &[Kind::Kill, Kind::Restart, Kind::Rolling]),
    // Numbers begin anew with every view.
    ("fence-without-epoch", &[Kind::Kill, Kind::Restart]),
];

/// Runs the members without one rule after the other, a minute for each seed at the most, and says what was
/// found. Fails if a rule can be taken away without anybody noticing.
pub(crate) fn all() -> Result<()> {
    let mut lines = Vec::new();
    let mut missed = Vec::new();
    for (rule, faults) in RULES {
        match found_with(rule, faults)? {
            Some(seed) => lines.push(format!("{rule:<22} found with seed {seed}")),
            None => {
                lines.push(format!("{rule:<22} NOT found with the seeds {SEEDS:?}"));
                missed.push(*rule);
            }
        }
    }
    println!("\n{}", lines.join("\n"));
    match missed.is_empty() {
        true => Ok(()),
        false => bail!("nothing was found although these rules were broken: {}", missed.join(", ")),
    }
}

/// The first seed with which something was found.
fn found_with(rule: &str, faults: &[Kind]) -> Result<Option<u64>> {
    for seed in SEEDS {
        match run_one(Options::breaking(rule, seed, faults))? {
            VIOLATED => return Ok(Some(seed)),
            0 => {}
            code => bail!(
                "the run without '{rule}', seed {seed}, could not be judged: it ended with {code}"
            ),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::wrong;

    #[test]
    fn every_run_without_a_rule_can_be_asked_for() {
        for (rule, faults) in RULES {
            for seed in SEEDS {
                let options = Options::breaking(rule, seed, faults).seeded();
                assert_eq!(wrong(&options), None, "{rule}");
                let command = options.command();
                assert!(command.ends_with(&format!("--break {rule}")), "{command}");
                assert!(command.contains(&format!("--minutes 1 --seed {seed} ")), "{command}");
            }
        }
    }
}
