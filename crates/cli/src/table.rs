//! Tables of text, columns aligned.

/// A column is not cut down further.
const NARROWEST: usize = 6;
/// A text is not broken into narrower lines.
const NARROWEST_TEXT: usize = 20;
/// Stands for what was cut off.
const REST: &str = "..";

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table with a head and rows, in groups.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
    /// The places between rows where a blank line is.
    gaps: Vec<usize>,
}

impl Table {
    pub(crate) fn new(columns: &[(&str, Align)]) -> Self {
        let columns = columns.iter().map(|&(name, align)| (name.to_string(), align)).collect();
        Table { columns, rows: Vec::new(), gaps: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Parts the rows so far from those that follow with a blank line.
    pub(crate) fn gap(&mut self) {
        if !self.rows.is_empty() {
            self.gaps.push(self.rows.len());
        }
    }

    /// The lines: head, a rule, rows. Cells of the last column are not padded.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines_within(None, &[])
    }

    /// The same, no wider than `limit` if that is possible: first the widest of the columns called
    /// `shortened` are cut down, then the last column is broken into several lines.
    pub(crate) fn lines_within(&self, limit: Option<usize>, shortened: &[&str]) -> Vec<String> {
        let head: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let width = |column: usize| {
            let cells = self.rows.iter().chain([&head]).map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..head.len()).map(width).collect();
        if let Some(limit) = limit {
            self.fit(&mut widths, limit, shortened);
        }
        let rule = "-".repeat(total(&widths));
        let body = self.rows.iter().enumerate().flat_map(|(index, row)| {
            let gap = self.gaps.contains(&index).then(String::new);
            gap.into_iter().chain(self.broken(row, &widths))
        });
        [self.line(&head, &widths), rule].into_iter().chain(body).collect()
    }

    /// Makes the columns narrower until they fit, or cannot be made narrower.
    fn fit(&self, widths: &mut [usize], limit: usize, shortened: &[&str]) {
        while total(widths) > limit {
            let is_free = |&column: &usize| shortened.contains(&self.columns[column].0.as_str());
            let widest = (0..widths.len()).filter(is_free).max_by_key(|&column| widths[column]);
            match widest.filter(|&column| widths[column] > NARROWEST) {
                Some(column) => widths[column] -= 1,
                None => break,
            }
        }
        let excess = total(widths).saturating_sub(limit);
        if let Some(last) = widths.last_mut() {
            *last = last.saturating_sub(excess).max((*last).min(NARROWEST_TEXT));
        }
    }

    /// One row, on as many lines as its last cell needs. Other cells are cut.
    fn broken(&self, row: &[String], widths: &[usize]) -> Vec<String> {
        let (Some((last, others)), Some((&room, narrow))) = (row.split_last(), widths.split_last())
        else {
            return Vec::new();
        };
        let others: Vec<String> =
            others.iter().zip(narrow).map(|(cell, &width)| cut(cell, width)).collect();
        let blank = vec![String::new(); others.len()];
        let parts = words_within(last, room);
        let cells = parts.into_iter().enumerate().map(|(index, part)| {
            let before = if index == 0 { &others } else { &blank };
            [&before[..], &[part]].concat()
        });
        cells.map(|cells| self.line(&cells, widths)).collect()
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let aligned =
            cells.iter().zip(widths).zip(&self.columns).map(|((cell, &width), (_, align))| {
                match align {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                }
            });
        aligned.collect::<Vec<_>>().join("  ").trim_end().to_string()
    }
}

/// The width of a line, with two spaces between columns.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1)
}

/// The beginning of `text`, if it is too long.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    let kept = text.chars().take(width.saturating_sub(REST.len()));
    kept.chain(REST.chars()).take(width).collect()
}

/// Breaks `text` between words into lines of this width. A longer word has a line of its own.
pub(crate) fn words_within(text: &str, width: usize) -> Vec<String> {
    if text.chars().count() <= width {
        return vec![text.to_string()];
    }
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_string());
        }
    }
    lines
}

/// A number with as many decimals as are worth reading.
pub(crate) fn number(value: f64) -> String {
    let text = match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    // A little less than nothing is nothing.
    if text == "-0.00" { "0.00".to_string() } else { text }
}

/// The same, or a dash where there is nothing to say.
pub(crate) fn maybe(value: Option<f64>) -> String {
    value.map_or("-".to_string(), number)
}

/// A whole number with its thousands apart.
pub(crate) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many things, in the singular for one.
pub(crate) fn counted(count: u64, thing: &str, things: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { thing } else { things })
}

/// A time in the unit that leaves something to read.
pub(crate) fn lasting(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..10 => format!("{}.{} s", seconds, millis / 100 % 10),
        10..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Bytes in the unit that leaves something to read.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 3] = ["GiB", "MiB", "KiB"];
    for (unit, shift) in UNITS.into_iter().zip([30, 20, 10]) {
        let size = count as f64 / f64::from(1u32 << shift);
        if size >= 0.1 {
            return format!("{size:.1} {unit}");
        }
    }
    format!("{count} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(vec!["lamport".into(), "3".into()]);
        table.row(vec!["ra".into(), "12".into()]);
        assert_eq!(table.lines(), ["name      n", "-----------", "lamport   3", "ra       12"]);
    }

    #[test]
    fn groups_of_rows_are_parted_by_a_blank_line() {
        let mut table = Table::new(&[("n", Align::Right)]);
        for group in [["1", "2"], ["3", "4"]] {
            table.gap();
            for cell in group {
                table.row(vec![cell.into()]);
            }
        }
        assert_eq!(table.lines(), ["n", "-", "1", "2", "", "3", "4"]);
    }

    #[test]
    fn a_table_that_is_too_wide_cuts_the_widest_of_the_columns_that_may_be_cut() {
        let names = ["lock", "who", "host", "fence"];
        let mut table = Table::new(&names.map(|name| (name, Align::Left)));
        table.row(vec!["x".repeat(10), "tester:make".into(), "h".repeat(9), "12345".into()]);
        table.row(vec!["y".into(), "me".into(), "z".into(), "-".into()]);
        let cut = table.lines_within(Some(37), &["who", "host"]);
        assert_eq!(cut[1].len(), 37);
        let rows = ["xxxxxxxxxx  tester..  hhhhhh..  12345", "y           me        z         -"];
        assert_eq!(cut[2..], rows);
        assert_eq!(table.lines_within(Some(41), &["who", "host"]), table.lines());
        let narrow = table.lines_within(Some(5), &["who", "host"]);
        assert_eq!(narrow[2], "xxxxxxxxxx  test..  hhhh..  12345", "not all can be cut");
    }

    #[test]
    fn a_text_that_is_too_wide_goes_on_below_itself() {
        let mut table = Table::new(&[("member", Align::Left), ("link", Align::Left)]);
        table.row(vec!["b".into(), "refused: I am in group 'two', not in 'one'".into()]);
        table.row(vec!["c".into(), "up".into()]);
        let lines = table.lines_within(Some(30), &[]);
        let text = ["refused: I am in group", "'two', not in 'one'"];
        assert_eq!(
            lines[2..],
            [format!("b       {}", text[0]), format!("        {}", text[1]), "c       up".into()]
        );
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([number(2.0), number(126.04), number(3069.4)], ["2.00", "126.0", "3069"]);
        assert_eq!([number(-0.001), number(-0.0), number(-0.01)], ["0.00", "0.00", "-0.01"]);
        assert_eq!([grouped(7), grouped(1234), grouped(1234567)], ["7", "1,234", "1,234,567"]);
        let times = [lasting(340), lasting(75_000), lasting(7_199_000), lasting(90_000_000)];
        assert_eq!(times, ["0.3 s", "75 s", "119 min", "25 h"]);
        let sizes = [bytes(3 << 29), bytes(5 << 20), bytes(1073), bytes(7)];
        assert_eq!(sizes, ["1.5 GiB", "5.0 MiB", "1.0 KiB", "7 bytes"]);
        assert_eq!(
            [counted(1, "entry", "entries"), counted(0, "entry", "entries")],
            ["1 entry", "0 entries"]
        );
    }
}
