//! The page itself.

use anyhow::Result;

use super::tally::Tally;
use super::{Finding, exhausted, experiments, s1, s2, s4};

const HEAD: &str = "\
# Claims and what runs say of them

Written by `cargo xtask claims` from runs; do not edit. `cargo xtask test` fails if it is stale.

S0 is a paper on token algorithms for version control, S2 the chapter on mutual exclusion. N is the
number of nodes, T the mean message delay, E the time inside. Figures come from the experiments in
`experiments/`; `catraca experiment NAME` shows all of their runs, tables and pictures. Each measured
value is given with the run that it is of and with the claimed value in brackets. It is the mean over five
seeds, 1 to 5 unless the experiment's file says otherwise; behind ± is half the width of Student's interval
of 95 %, and where there is none, all seeds agree. A formula holds if it is within 5 % (10 % where a paper
itself says 'about' or 'on average'). A claim holds or is wrong where the whole interval says so, seed by
seed; where it does not decide, the claim is open. What is 'asked here' no paper
claims: it is a question that one raises and runs answer, 'holds' for yes. Commands are to be run as
`cargo run --release -- ...` in place of `catraca ...`.
";

/// What tests of S3's own rules settle, beside those of this project.
const S3: &str = "
## S3: what tests settle

S3's listing is modelled line by line in `crates/classroom/tests/errata.rs`, beside our coordinator;
the tests fail if this changes. `cargo nextest run -p catraca-classroom` runs them.

| section | S3 says | verdict | why |
| --- | --- | --- | --- |
| 2 | the coordinator serves its queue in order of arrival | **wrong** | Erratum 7: a client that hangs up while it waits is granted all the same, and then nobody enters any more. Ours leaves the queue. |
| 2 | the next is granted when the one inside releases | **wrong** | Erratum 7: a client that hangs up inside never releases, and S3's coordinator never learns of it. Ours grants to the next. |
| 2 | one process at a time is inside | **wrong** | S3 takes anybody's RELEASE for the holder's: one from a client that waits lets two in. Ours closes that client's connection. |
| 2 | a message such as `1\\|5\\|1234567` has 10 bytes | **wrong** | It has 11; the digits fill up to 10. |
| 3 | entries follow grants | holds | In every run of `catraca classroom`; S3's own excerpt has an entry a microsecond before its grant. |
";

/// Measures everything and puts it into words.
pub(super) fn text() -> Result<String> {
    let mut tally = Tally::default();
    let mut text = String::new();
    for (paper, findings) in experiments::by_paper()? {
        text.push_str(&format!("\n## {paper}: figures\n\n"));
        findings_table(&mut text, &mut tally, findings);
    }
    for (paper, claims) in [("S2", s2::EXHAUSTED), ("S4", s4::EXHAUSTED)] {
        text.push_str(&format!("\n## {paper}: what an exhaustive search settles\n\n"));
        let settled = claims.iter().map(exhausted::Claim::finding).collect::<Result<_>>()?;
        findings_table(&mut text, &mut tally, settled);
    }
    tally.count_text(S3);
    text.push_str(S3);
    text.push_str(
        "\n## S1: dynamic networks\n\nS1 is the paper on connectivity conditions. All graphs with 3 nodes \
         and 4 instants, each with every schedule of requests at its first two instants and the token \
         at every node, and 20,000 random graphs of up to 8 nodes and 16 instants. For necessity a \
         graph ends after its instants, for sufficiency it repeats for ever.\n\n",
    );
    findings_table(&mut text, &mut tally, s1::findings()?);
    text.push_str(
        "\n## Groups explored exhaustively\n\nEvery interleaving of every request, message and \
         release. Where a group has too many states, `cargo xtask soak` says how far it gets.\n\n",
    );
    let columns = ["algorithm", "N", "requests each", "start", "states", "depth", "result"];
    table(&mut text, &columns, exhausted::groups()?);
    text.push_str(
        "\n## Groups whose nodes crash\n\nThree nodes that ask once each; crashes before, after and in the middle of every step, each \
         suspected by every live node at every later step.\n\n",
    );
    let columns = ["algorithm", "k", "crashes", "states", "depth", "command"];
    table(&mut text, &columns, exhausted::crashes()?);
    text.push_str("\n## Who needs FIFO channels\n\nThree nodes that ask twice each.\n\n");
    table(&mut text, &["algorithm", "needs FIFO", "without FIFO", "command"], exhausted::orders()?);
    text.push_str(
        "\n## Mutants\n\nN x R: caught by the exhaustive checker in a group of so many nodes and \
         requests each, on the channels that the algorithm needs: `catraca check ALGORITHM --mutant \
         NAME --nodes N --requests R`. What takes more requests than can be explored is caught by a \
         monitor of the simulator, in the run that is named.\n\n",
    );
    let columns = ["algorithm", "mutant", "what is broken", "caught by", "caught as", "steps"];
    table(&mut text, &columns, exhausted::mutants()?);
    println!("{tally}");
    Ok(format!("{HEAD}\n{tally}\n{text}"))
}

/// The lines of findings, which are counted too.
fn findings_table(text: &mut String, tally: &mut Tally, findings: Vec<Finding>) {
    findings.iter().for_each(|finding| tally.count(finding));
    let columns = ["section", "the paper says", "measured", "verdict", "why", "command"];
    table(text, &columns, findings.into_iter().map(row).collect());
}

fn row(finding: Finding) -> Vec<String> {
    vec![
        finding.section,
        finding.says,
        finding.measured,
        finding.verdict.to_string(),
        finding.sentence,
        format!("`{}`", finding.command),
    ]
}

fn table(text: &mut String, columns: &[&str], rows: Vec<Vec<String>>) {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    text.push_str(&line(columns.iter().map(|column| column.to_string()).collect()));
    text.push_str(&line(columns.iter().map(|_| "---".to_string()).collect()));
    for row in rows {
        text.push_str(&line(row));
    }
}
