//! The page itself.

use anyhow::Result;

use super::{Finding, exhausted, figures, s1, s2};

const HEAD: &str = "\
# Claims and what runs say of them

Written by `cargo xtask claims` from runs; do not edit. `cargo xtask test` fails if it is stale.

N is the number of nodes, T the mean message delay, E the time inside; here T = E = 1, constant.
Low load: one request at a time. High load: everybody asks again as soon as it leaves. Measured
values are for N = 4, 16, 64, 256 and 1024, each with the claimed value in brackets; a formula holds
if it is within 5 % from N = 16 on (10 % where S2 itself says 'about' or 'on average'). S2 is the chapter on mutual exclusion. Commands are to be run as
`cargo run --release -- ...` in place of `catraca ...`.
";

/// Measures everything and puts it into words.
pub(super) fn text() -> Result<String> {
    let rows = figures::measure()?;
    let mut text = HEAD.to_string();
    text.push_str("\n## S2: figures\n\n");
    let measured = s2::FIGURES.iter().map(|claim| claim.finding(&rows));
    findings(&mut text, "S2", measured.collect::<Result<_>>()?);
    text.push_str("\n## S2: what an exhaustive search settles\n\n");
    let settled = s2::EXHAUSTED.iter().map(exhausted::Claim::finding);
    findings(&mut text, "S2", settled.collect::<Result<_>>()?);
    text.push_str(
        "\n## S1: dynamic networks\n\nS1 is the paper on connectivity conditions. All graphs with 3 nodes \
         and 4 instants, each with every schedule of requests at its first two instants and the token \
         at every node, and 20,000 random graphs of up to 8 nodes and 16 instants. For necessity a \
         graph ends after its instants, for sufficiency it repeats for ever.\n\n",
    );
    findings(&mut text, "S1", s1::findings()?);
    text.push_str(
        "\n## Groups explored exhaustively\n\nEvery interleaving of every request, message and \
         release. Where a group has too many states, `cargo xtask soak` says how far it gets.\n\n",
    );
    let columns = ["algorithm", "N", "requests each", "start", "states", "depth", "result"];
    table(&mut text, &columns, exhausted::groups()?);
    text.push_str("\n## Who needs FIFO channels\n\nThree nodes that ask twice each.\n\n");
    table(&mut text, &["algorithm", "needs FIFO", "without FIFO", "command"], exhausted::orders()?);
    text.push_str(
        "\n## Mutants\n\nEach is caught by the exhaustive checker in a group of so many nodes and \
         requests each, on the channels that the algorithm needs: `catraca check ALGORITHM --mutant \
         NAME --nodes N --requests R`.\n\n",
    );
    let columns = ["algorithm", "mutant", "what is broken", "N x R", "caught as", "steps"];
    table(&mut text, &columns, exhausted::mutants()?);
    Ok(text)
}

fn findings(text: &mut String, paper: &str, findings: Vec<Finding>) {
    let says = format!("{paper} says");
    let columns = ["section", says.as_str(), "measured", "verdict", "why", "command"];
    let row = |finding: Finding| {
        vec![
            finding.section.to_string(),
            finding.says.to_string(),
            finding.measured,
            finding.verdict.to_string(),
            finding.sentence.to_string(),
            format!("`{}`", finding.command),
        ]
    };
    table(text, &columns, findings.into_iter().map(row).collect());
}

fn table(text: &mut String, columns: &[&str], rows: Vec<Vec<String>>) {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    text.push_str(&line(columns.iter().map(|column| column.to_string()).collect()));
    text.push_str(&line(columns.iter().map(|_| "---".to_string()).collect()));
    for row in rows {
        text.push_str(&line(row));
    }
}
