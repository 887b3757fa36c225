//! Claims about figures: messages, delays, throughput, over the size of the group.

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use catraca_algorithms::Load;
use catraca_algorithms::registry::ENTRIES;
use catraca_sim::{Comparison, LoadKind, Row, run_all};

use super::{Finding, Verdict, settle};

/// The sizes over which S2's table is measured.
const SIZES: [u32; 5] = [4, 16, 64, 256, 1024];
/// A formula holds if it is this close at every size from `LARGE` on: smaller groups may differ by
/// terms that vanish.
const TOLERANCE: f64 = 0.05;
/// The same for what a paper itself calls approximate.
const ABOUT: f64 = 0.1;
const LARGE: u32 = 16;

/// What is measured.
#[derive(Clone, Copy)]
pub(super) enum Figure {
    /// Messages per entry.
    Messages,
    /// Messages of one kind per entry.
    Kind(&'static str),
    /// Synchronisation delay in T.
    Delay,
    /// Entries per unit of time, with T = E = 1.
    Throughput,
}

/// What the paper says of it, as a function of N.
#[derive(Clone, Copy)]
pub(super) enum Says {
    /// Exactly this.
    Equals(fn(f64) -> f64),
    /// About this, or this on average.
    About(fn(f64) -> f64),
    /// From the first to the second.
    Between(fn(f64) -> f64, fn(f64) -> f64),
    /// Not more than this, at any size.
    AtMost(fn(f64) -> f64),
}

/// A claim about a figure of one algorithm under one load.
pub(super) struct Claim {
    pub(super) section: &'static str,
    pub(super) says: &'static str,
    pub(super) algorithm: &'static str,
    pub(super) load: Load,
    pub(super) figure: Figure,
    pub(super) formula: Says,
    pub(super) verdict: Verdict,
    pub(super) sentence: &'static str,
}

/// Runs everything that S2's table speaks of, once.
pub(super) fn measure() -> Result<Vec<Row>> {
    let comparison = Comparison {
        algorithms: ENTRIES.iter().map(|entry| entry.name.to_string()).collect(),
        nodes: SIZES.to_vec(),
        ..Comparison::default()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(run_all(comparison.jobs()?, threads, &AtomicBool::new(false), |_| {})?)
}

impl Claim {
    /// Looks the claim up in what was measured.
    pub(super) fn finding(&self, rows: &[Row]) -> Result<Finding> {
        let mut texts = Vec::new();
        let mut found = Verdict::Holds;
        for nodes in SIZES {
            let row = rows
                .iter()
                .find(|row| {
                    let spec = row.job.spec();
                    spec.algorithm == self.algorithm
                        && spec.nodes == nodes
                        && row.job.load == LoadKind::Closed(self.load)
                })
                .with_context(|| format!("no run of {} with {nodes} nodes", self.algorithm))?;
            let measured =
                self.figure.of(row).with_context(|| format!("no figure: {}", self.says))?;
            let (claimed, agrees) = self.formula.compare(f64::from(nodes), measured);
            if !agrees && (nodes >= LARGE || matches!(self.formula, Says::AtMost(_))) {
                found = Verdict::Wrong;
            }
            texts.push(format!("{} ({claimed})", short(measured)));
        }
        let measured = texts.join(", ");
        let verdict = settle(self.says, self.verdict, found, &measured)?;
        let sizes = SIZES.map(|size| size.to_string()).join(",");
        let kinds = if matches!(self.figure, Figure::Kind(_)) { " --kinds" } else { "" };
        let command = format!(
            "catraca compare --algorithms {} --load {} --nodes {sizes}{kinds}",
            self.algorithm, self.load
        );
        let (section, says, sentence) = (self.section, self.says, self.sentence);
        Ok(Finding { section, says, measured, command, verdict, sentence })
    }
}

impl Figure {
    fn of(self, row: &Row) -> Option<f64> {
        let report = &row.report;
        match self {
            Figure::Messages => report.messages_per_entry,
            Figure::Delay => report.delay,
            Figure::Throughput => report.throughput,
            Figure::Kind(kind) => {
                let (_, count) = report.by_kind.iter().find(|(name, _)| *name == kind)?;
                Some(*count as f64 / report.entries as f64)
            }
        }
    }
}

impl Says {
    /// The claimed value in words, and whether `measured` agrees with it.
    fn compare(self, nodes: f64, measured: f64) -> (String, bool) {
        let within =
            |claimed: f64, part: f64| (measured - claimed).abs() <= part * claimed.max(measured);
        let close = |claimed: f64| within(claimed, TOLERANCE);
        match self {
            Says::Equals(formula) => {
                let claimed = formula(nodes);
                (short(claimed), close(claimed))
            }
            Says::About(formula) => {
                let claimed = formula(nodes);
                (format!("about {}", short(claimed)), within(claimed, ABOUT))
            }
            Says::Between(least, most) => {
                let (least, most) = (least(nodes), most(nodes));
                let inside = (least..=most).contains(&measured);
                (
                    format!("{}..{}", short(least), short(most)),
                    inside || close(least) || close(most),
                )
            }
            Says::AtMost(formula) => {
                let most = formula(nodes);
                (short(most), measured <= most * (1.0 + TOLERANCE))
            }
        }
    }
}

/// Three digits are enough to compare.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
