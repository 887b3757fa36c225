//! Tables of text: the first columns to the left, figures to the right.

use std::io::{self, Write};

/// Prints `rows` under `head`, a blank line where a row is empty. The columns of `left` begin at their
/// left edge, all others end at their right edge.
pub(crate) fn print(
    head: &[&str],
    left: &[&str],
    rows: &[Vec<String>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(head).zip(&widths);
        let aligned = cells.map(|((cell, name), &width)| match left.contains(name) {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        });
        aligned.collect::<Vec<String>>().join("  ").trim_end().to_string()
    };
    let head: Vec<String> = head.iter().map(|name| (*name).to_string()).collect();
    writeln!(out, "{}", line(&head))?;
    writeln!(out, "{}", "-".repeat(widths.iter().sum::<usize>() + 2 * (widths.len() - 1)))?;
    rows.iter().try_for_each(|row| writeln!(out, "{}", line(row)))
}

/// A number with as many decimals as are worth reading; a dash where there is nothing to say.
pub(crate) fn number(value: impl Into<Option<f64>>) -> String {
    match value.into() {
        None => "-".to_string(),
        Some(value) if value.abs() >= 1000.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 100.0 => format!("{value:.1}"),
        // A little less than nothing is nothing.
        Some(value) => format!("{:.2}", if value.abs() < 0.005 { 0.0 } else { value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["ring".into(), "1.00".into()], vec![], vec!["a".into(), "126".into()]];
        let mut out = Vec::new();
        print(&["name", "n"], &["name"], &rows, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "name     n\n----------\nring  1.00\n\na      126\n");
    }

    #[test]
    fn numbers_are_short() {
        let shown = [Some(2.0), Some(126.04), Some(3069.4), Some(-0.001), None].map(number);
        assert_eq!(shown, ["2.00", "126.0", "3069", "0.00", "-"]);
    }
}
