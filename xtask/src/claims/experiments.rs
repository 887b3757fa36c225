//! Claims about figures: what the runs of the experiments say of them.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use catraca_lab::{Experiment, Finding as Measured, Verdict as Found, all};

use super::{Finding, Verdict, settle};

/// Runs every experiment. For each paper its claims, in the order of the experiments.
pub(super) fn by_paper() -> Result<BTreeMap<String, Vec<Finding>>> {
    let mut papers: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
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
        let findings = experiment.findings(&results);
        let findings = findings.into_iter().map(|one| settled(&experiment, &one));
        papers.entry(paper.clone()).or_default().extend(findings.collect::<Result<Vec<_>>>()?);
    }
    Ok(papers)
}

fn settled(experiment: &Experiment, finding: &Measured<'_>) -> Result<Finding> {
    let claim = finding.claim;
    let verdict = |found| match found {
        Found::Holds => Verdict::Holds,
        Found::Wrong => Verdict::Wrong,
        Found::Open => Verdict::Open,
    };
    let found = finding.found.with_context(|| format!("no figure decides '{}'", claim.says))?;
    let settled = settle(&claim.says, verdict(claim.verdict), verdict(found), &finding.measured)?;
    Ok(Finding {
        section: claim.section.clone(),
        says: claim.says.clone(),
        is_question: claim.is_question,
        measured: finding.measured.clone(),
        command: experiment.command(),
        verdict: settled,
        sentence: claim.why.clone(),
    })
}
