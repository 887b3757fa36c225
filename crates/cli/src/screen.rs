//! The live view on a terminal: no line wraps and none scrolls away, so that the next picture can be
//! drawn over this one.

use rustix::termios::tcgetwinsize;

use crate::table::cut;

/// A table begins with its head and a rule.
const HEAD: usize = 2;

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    columns: usize,
    rows: usize,
}

impl Screen {
    /// Of the terminal that standard output goes to; nothing if it goes elsewhere, or the terminal
    /// does not tell.
    pub(crate) fn of_stdout() -> Option<Self> {
        let size = tcgetwinsize(std::io::stdout()).ok()?;
        let screen = Screen { columns: size.ws_col.into(), rows: size.ws_row.into() };
        (screen.columns > 0 && screen.rows > 0).then_some(screen)
    }

    /// As much of a table and the `foot` lines below it as there is room for. Rows that are left
    /// out are counted.
    pub(crate) fn fit(self, lines: &[String], foot: usize) -> Vec<String> {
        // The cursor stands below the last line.
        let room = self.rows - 1;
        let mut fitting = lines.to_vec();
        if lines.len() > room {
            let end = lines.len().saturating_sub(foot);
            let begin = room.saturating_sub(foot + 1).max(HEAD).min(end);
            fitting.splice(begin..end, [format!("and {} more", end - begin)]);
            fitting.truncate(room);
        }
        fitting.iter().map(|line| cut(line, self.columns)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_screen_keeps_head_and_foot_and_counts_the_rows_between() {
        let lines = ["head", "----", "1", "2", "3", "4", "", "sum"].map(String::from);
        let fit = |rows| Screen { columns: 80, rows }.fit(&lines, 2);
        assert_eq!(fit(9), lines);
        assert_eq!(fit(8), ["head", "----", "1", "2", "and 2 more", "", "sum"]);
        assert_eq!(fit(6), ["head", "----", "and 4 more", "", "sum"]);
        assert_eq!(fit(4), ["head", "----", "and 4 more"]);
        assert!(fit(1).is_empty());
    }

    #[test]
    fn a_narrow_screen_cuts_lines() {
        let lines = ["12345".to_string(), "123456".to_string()];
        assert_eq!(Screen { columns: 5, rows: 24 }.fit(&lines, 0), ["12345", "123.."]);
        assert_eq!(Screen { columns: 1, rows: 24 }.fit(&lines, 0), [".", "."]);
    }
}
