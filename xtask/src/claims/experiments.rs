//! Claims about figures: what the runs of the experiments say of them.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use catraca_lab::{Experiment, Finding, Verdict as Found, all};

use super::{Verdict, settle};

/// Runs every experiment. For each paper the lines of its claims, in the order of the experiments.
pub(super) fn by_paper() -> Result<BTreeMap<String, Vec<Vec<String>>>> {
    let mut papers: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for experiment in all()? {
        let Some(paper) = experiment.paper.as_ref().filter(|_| !experiment.claims.is_empty())
        else {
            continue;
        };
        let results = experiment
            .measure(threads, &AtomicBool::new(false), |_| {})?
            .context("nobody stops it, so it ends")?;
        if let Some(surprise) = experiment.surprises(&results).first() {
            bail!("{}: {surprise}", experiment.name);
        }
        let rows = experiment.findings(&results).into_iter().map(|one| row(&experiment, &one));
        papers.entry(paper.clone()).or_default().extend(rows.collect::<Result<Vec<_>>>()?);
    }
    Ok(papers)
}

fn row(experiment: &Experiment, finding: &Finding<'_>) -> Result<Vec<String>> {
    let claim = finding.claim;
    let verdict = |found| match found {
        Found::Holds => Verdict::Holds,
        Found::Wrong => Verdict::Wrong,
    };
    let found = finding.found.with_context(|| format!("no figure decides '{}'", claim.says))?;
    let settled = settle(&claim.says, verdict(claim.verdict), verdict(found), &finding.measured)?;
    Ok(vec![
        claim.section.clone(),
        claim.says.clone(),
        finding.measured.clone(),
        settled.to_string(),
        claim.why.clone(),
        format!("`{}`", experiment.command()),
    ])
}
