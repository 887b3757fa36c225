//! Tables, as Markdown that is also readable as it is.

use super::load::{Figures, LOADS, Load};
use super::results::{Bound, Ceiling, Cores, Ratio, Results};
use super::systems::SYSTEMS;

/// Lines of a table whose first line is its head. The first column is to the left, all others are to the
/// right.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text += &format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
        if number == 0 {
            let rule = |(column, &width): (usize, &usize)| match column {
                0 => "-".repeat(width + 2),
                _ => format!("{}:", "-".repeat(width + 1)),
            };
            let rules: Vec<String> = widths.iter().enumerate().map(rule).collect();
            text += &format!("|{}|\n", rules.join("|"));
        }
    }
    text
}

/// A number with commas between thousands.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Microseconds, as people read them.
fn time(micros: f64) -> String {
    match micros {
        micros if micros < 10.0 => format!("{micros:.1} us"),
        micros if micros < 10_000.0 => format!("{micros:.0} us"),
        micros => format!("{:.0} ms", micros / 1e3),
    }
}

fn head(load: &Load) -> Vec<String> {
    let Load { clients, locks, .. } = load;
    match load.is_contended() {
        true => ["per s", "to others per s", "p50", "p99", "Jain"]
            .map(|what| format!("{clients}: {what}"))
            .into(),
        false if *clients == 1 => vec!["1 client: per s".to_string()],
        false => vec![format!("{clients} on {locks}: per s")],
    }
}

fn cells(load: &Load, figures: Option<&Figures>) -> Vec<String> {
    let Some(figures) = figures else { return vec!["-".to_string(); head(load).len()] };
    let mut cells = vec![grouped(figures.per_second)];
    if let Some(contended) = &figures.contended {
        cells.push(grouped(contended.hand_overs_per_second));
        match contended.hand_over {
            Some(times) => cells.extend(times.map(time)),
            None => cells.extend(["-", "-"].map(str::to_string)),
        }
        cells.push(format!("{:.3}", contended.jain));
    }
    if figures.violations > 0 {
        cells[0] += " (NOT EXCLUSIVE)";
    }
    cells
}

/// All figures of one way to run them.
pub(super) fn figures(results: &Results, cores: Cores) -> String {
    let mut rows = vec![vec!["lock service".to_string()]];
    rows[0].extend(LOADS.iter().flat_map(head));
    for system in SYSTEMS {
        if !results.lines.iter().any(|line| line.system == system.key && line.cores == cores) {
            continue;
        }
        let mut row = vec![system.title.to_string()];
        for load in &LOADS {
            row.extend(cells(load, results.figures(system.key, cores, load.key)));
        }
        rows.push(row);
    }
    table(&rows)
}

/// Ratios beside their goals.
pub(super) fn ratios(ratios: &[Ratio]) -> String {
    let head = ["ours", "beside", "what", "cores", "worst load", "ratio", "goal", ""];
    let mut rows = vec![head.map(str::to_string).to_vec()];
    for ratio in ratios {
        let goal = match ratio.goal {
            Bound::AtLeast(least) => format!("at least {least}"),
            Bound::AtMost(most) => format!("at most {most}"),
        };
        let verdict = if ratio.is_met() { "met" } else { "missed" };
        rows.push(vec![
            ratio.ours.to_string(),
            ratio.peer.to_string(),
            ratio.of.words().to_string(),
            ratio.cores.word().to_string(),
            title(ratio.load),
            format!("{:.2}", ratio.ratio),
            goal,
            verdict.to_string(),
        ]);
    }
    table(&rows)
}

/// What a server reaches beside Redis that only hands a lock on.
pub(super) fn ceilings(ceilings: &[Ceiling]) -> String {
    let head = ["bare TCP server beside", "what", "cores", "load", "ratio"];
    let mut rows = vec![head.map(str::to_string).to_vec()];
    for Ceiling { peer, of, cores, load, ratio } in ceilings {
        let (of, cores) = (of.words().to_string(), cores.word().to_string());
        rows.push(vec![peer.to_string(), of, cores, title(load), format!("{ratio:.2}")]);
    }
    table(&rows)
}

/// How many clients there are, and on how many locks.
fn title(load: &str) -> String {
    let load = LOADS.iter().find(|it| it.key == load);
    load.map_or(String::new(), |load| format!("{} on {}", load.clients, load.locks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_markdown_with_columns_of_one_width() {
        let rows = [["what", "n"], ["a", "1,000"]].map(|row| row.map(str::to_string).to_vec());
        let expected = "| what |     n |\n|------|------:|\n| a    | 1,000 |\n";
        assert_eq!(table(&rows), expected);
    }

    #[test]
    fn numbers_and_times_are_written_for_people() {
        let numbers = [0.4, 999.0, 1000.0, 1_234_567.0].map(grouped);
        assert_eq!(numbers, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([4.25, 250.0, 51_000.0].map(time), ["4.2 us", "250 us", "51 ms"]);
    }
}
