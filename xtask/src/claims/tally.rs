//! How many claims and questions there are, and how many of them hold.

use std::fmt;

use super::{Finding, Verdict};

/// Claims of papers, and questions of our own that papers raise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    hold: usize,
    wrong: usize,
    yes: usize,
    no: usize,
    /// Claims and questions that runs do not decide.
    open: usize,
}

impl Tally {
    pub(super) fn count(&mut self, finding: &Finding) {
        self.add(finding.is_question, finding.verdict, 1);
    }

    /// The lines of a table that is text already, all of them claims of a paper.
    pub(super) fn count_text(&mut self, table: &str) {
        for verdict in [Verdict::Holds, Verdict::Wrong] {
            self.add(false, verdict, table.matches(&format!("| {verdict} |")).count());
        }
    }

    fn add(&mut self, is_question: bool, verdict: Verdict, count: usize) {
        let place = match (is_question, verdict) {
            (false, Verdict::Holds) => &mut self.hold,
            (false, Verdict::Wrong) => &mut self.wrong,
            (true, Verdict::Holds) => &mut self.yes,
            (true, Verdict::Wrong) => &mut self.no,
            (_, Verdict::Open) => &mut self.open,
        };
        *place += count;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { hold, wrong, yes, no, open } = self;
        write!(
            f,
            "Of {} claims of the papers, {hold} hold and {wrong} are wrong. Of {} questions of our \
             own, runs answer {yes} with yes and {no} with no.",
            hold + wrong,
            yes + no
        )?;
        match open {
            0 => Ok(()),
            1 => write!(f, " 1 more is open: runs differ too much from seed to seed."),
            _ => write!(f, " {open} more are open: runs differ too much from seed to seed."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_of_papers_and_questions_of_our_own_are_counted_apart() {
        let finding = |is_question, verdict| Finding {
            section: String::new(),
            says: String::new(),
            is_question,
            measured: String::new(),
            command: String::new(),
            verdict,
            sentence: String::new(),
        };
        let mut tally = Tally::default();
        tally.count(&finding(false, Verdict::Wrong));
        tally.count(&finding(true, Verdict::Wrong));
        tally.count(&finding(true, Verdict::Holds));
        assert!(!tally.to_string().contains("open"));
        tally.count(&finding(true, Verdict::Open));
        tally.count_text("| 2 | a | holds | b |\n| 2 | c | **wrong** | it holds |\n");
        assert_eq!(
            tally.to_string(),
            "Of 3 claims of the papers, 1 hold and 2 are wrong. Of 2 questions of our own, runs \
             answer 1 with yes and 1 with no. 1 more is open: runs differ too much from seed to \
             seed."
        );
        tally.count(&finding(false, Verdict::Open));
        assert!(tally.to_string().contains(" 2 more are open: "));
    }
}
