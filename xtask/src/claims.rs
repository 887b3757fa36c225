//! `cargo xtask claims`: every quantitative claim of the papers beside what runs show.
//!
//! The claims are data: what a paper says, how it is measured, the verdict that is on record and
//! one sentence about it. Those about figures are in the files of `experiments/`; those that an
//! exhaustive search settles are here. The runs decide again each time. If they disagree with the verdict on
//! record, the chore fails, so that no sentence outlives its evidence.

mod exhausted;
mod experiments;
mod page;
mod s1;
mod s2;
mod s4;
mod tally;

use std::fmt;

use anyhow::{Context, Result, bail};

use crate::shell;

/// What runs say of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Holds,
    Wrong,
    /// Runs differ too much from seed to seed to tell.
    Open,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Holds => "holds",
            Verdict::Wrong => "**wrong**",
            Verdict::Open => "open",
        })
    }
}

/// One line of the page that runs or an exhaustive search settled.
struct Finding {
    section: String,
    says: String,
    /// Whether no paper says it: it is a question of our own.
    is_question: bool,
    measured: String,
    command: String,
    verdict: Verdict,
    sentence: String,
}

/// Fails if the runs disagree with what is on record.
fn settle(says: &str, on_record: Verdict, found: Verdict, measured: &str) -> Result<Verdict> {
    if on_record != found {
        bail!(
            "the claim '{says}' is on record as {on_record}, but runs say {found} ({measured}); \
             look into it and rewrite its line in experiments/ or xtask/src/claims"
        );
    }
    Ok(found)
}

/// Writes docs/CLAIMS.md, or compares it with what would be written.
pub(crate) fn write(check: bool) -> Result<()> {
    println!("$ cargo xtask claims{}", if check { " --check" } else { "" });
    let text = page::text()?;
    let path = shell::root().join("docs/CLAIMS.md");
    if !check {
        return std::fs::write(&path, text).context("docs/CLAIMS.md cannot be written");
    }
    let written = std::fs::read_to_string(&path).context("docs/CLAIMS.md cannot be read")?;
    if written != text {
        let differs = written.lines().zip(text.lines()).position(|(old, new)| old != new);
        let line = differs.map_or(0, |line| line + 1);
        bail!("docs/CLAIMS.md is stale from line {line} on; run 'cargo xtask claims'");
    }
    Ok(())
}
