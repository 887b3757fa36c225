//! What a comparison comes to, in words: who is best, as far as the seeds decide it.

use catraca_lab::Estimate;
use catraca_sim::{Report, Row};

use super::estimate;
use crate::table::{grouped, number, words_within};

/// Whoever is within this part of the best is as good.
const ALIKE: f64 = 0.01;

/// How wide the names may be.
const WIDTH: usize = 95;

/// A figure that is better if it is less.
type Figure = fn(&Report) -> Option<f64>;

/// The best of a group, in words; nothing if there is no choice.
pub(super) fn conclusion(group: &[&Row]) -> Vec<String> {
    let sound: Vec<&Row> = group.iter().copied().filter(|row| is_sound(row)).collect();
    let [first, _, ..] = sound[..] else { return Vec::new() };
    let messages = best(&sound, |report| report.messages_per_entry);
    let response = best(&sound, |report| report.response_mean);
    let (Some(messages), Some(response)) = (messages, response) else { return Vec::new() };
    let job = &first.job;
    let seeds = if job.seeds == 1 { " (one seed, so no interval)" } else { "" };
    let head =
        format!("{} load, {} nodes{seeds}:", job.load_name(), grouped(job.spec().nodes.into()));
    let lines = [("fewest messages", messages), ("shortest response", response)];
    [head].into_iter().chain(lines.iter().flat_map(|(what, who)| said(what, who))).collect()
}

/// Who is best at something, on as many lines as it takes.
fn said(what: &str, who: &str) -> Vec<String> {
    let parts = words_within(who, WIDTH).into_iter().enumerate();
    parts.map(|(at, part)| format!("  {:<17}  {part}", if at == 0 { what } else { "" })).collect()
}

fn is_sound(row: &Row) -> bool {
    row.reports.iter().all(|one| one.violation.is_none() && one.end.gave_up().is_none())
}

/// Who is best or as good, and of whom the seeds do not decide it.
fn best(sound: &[&Row], figure: Figure) -> Option<String> {
    let means = sound.iter().filter_map(|row| Some((*row, estimate(row, figure)?.mean)));
    let (best, least) = means.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let room = ALIKE * least + 1e-9;
    let excess = |row: &Row| excess(row, best, figure, room)?.is_positive();
    let names = |wanted: Option<bool>| {
        let is_meant = |row: &&&Row| estimate(row, figure).is_some() && excess(row) == wanted;
        let names = sound.iter().filter(is_meant).map(|row| row.job.spec().algorithm.as_str());
        names.collect::<Vec<_>>()
    };
    let (good, undecided, rest) = (names(Some(false)), names(None), names(Some(true)));
    let words = match (rest.len(), undecided.is_empty()) {
        (0, true) => "all".to_string(),
        (few, true) if few < good.len() => format!("all but {}", rest.join(", ")),
        _ => good.join(", "),
    };
    let open = match undecided.is_empty() {
        true => String::new(),
        false => format!("; the seeds do not decide it for {}", undecided.join(", ")),
    };
    Some(format!("{words} ({}){open}", number(least)))
}

/// By how much `row` is more than `best` and `room`, seed by seed: what both have of a seed does
/// not blur the difference.
fn excess(row: &Row, best: &Row, figure: Figure, room: f64) -> Option<Estimate> {
    let both = row.reports.iter().zip(&best.reports);
    let each = both.map(|(one, best)| Some(figure(one)? - figure(best)? - room));
    Estimate::of(&each.collect::<Option<Vec<f64>>>()?)
}

#[cfg(test)]
mod tests {
    use catraca_sim::{Comparison, LoadKind, run_all};

    use super::*;

    /// Rows with these messages per entry, one number a seed.
    fn rows(messages: &[&[f64]]) -> Vec<Row> {
        const NAMES: [&str; 3] = ["lamport", "raymond", "maekawa"];
        let algorithms = NAMES.iter().take(messages.len());
        let comparison = Comparison {
            algorithms: algorithms.map(|name| name.to_string()).collect(),
            nodes: vec![3],
            loads: vec![LoadKind::Medium],
            seeds: messages[0].len() as u32,
            common: catraca_sim::Scenario::new().with("run.entries", 20),
        };
        let jobs = comparison.jobs().unwrap();
        let mut rows = run_all(jobs, 1, &false.into(), |_| {}).unwrap();
        for (row, values) in rows.iter_mut().zip(messages) {
            for (report, value) in row.reports.iter_mut().zip(*values) {
                report.messages_per_entry = Some(*value);
            }
        }
        rows
    }

    fn fewest(messages: &[&[f64]]) -> String {
        let rows = rows(messages);
        best(&rows.iter().collect::<Vec<_>>(), |report| report.messages_per_entry).unwrap()
    }

    #[test]
    fn the_best_and_whoever_is_as_good_for_certain_are_named() {
        assert_eq!(fewest(&[&[4.0, 4.0], &[9.0, 9.1], &[4.01, 4.01]]), "all but raymond (4.00)");
        assert_eq!(fewest(&[&[4.0, 4.0], &[9.0, 9.1], &[8.0, 8.0]]), "lamport (4.00)");
        assert_eq!(fewest(&[&[4.0], &[4.0]]), "all (4.00)");
    }

    #[test]
    fn of_whom_the_seeds_do_not_decide_it_is_said_and_nobody_calls_them_worse() {
        let words = fewest(&[&[4.0, 4.0, 4.0], &[3.0, 6.0, 5.0], &[9.0, 9.0, 9.0]]);
        assert_eq!(words, "lamport (4.00); the seeds do not decide it for raymond");
    }

    #[test]
    fn runs_with_the_same_seed_are_compared_with_each_other() {
        // Both vary a lot from seed to seed; the difference is always the same.
        let words = fewest(&[&[4.0, 40.0, 14.0], &[5.0, 41.5, 15.0]]);
        assert_eq!(words, "lamport (19.33)");
    }

    #[test]
    fn one_seed_is_called_what_it_is() {
        let rows = rows(&[&[4.0], &[5.0]]);
        let words = conclusion(&rows.iter().collect::<Vec<_>>());
        assert_eq!(words[0], "medium load, 3 nodes (one seed, so no interval):");
    }
}
