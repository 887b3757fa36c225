//! A run on an evolving graph, as a page: the contacts over time, what every node's label says, and
//! journeys.

use serde::Serialize;

use crate::record::{PlayerError, Window};

/// The most instants of one page.
pub const MOST_INSTANTS: usize = 5_000;
/// The most contacts and labels of all its instants together: about ten megabytes.
const MOST_CONTENT: usize = 500_000;

/// What a page shows of a node at the end of an instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Label {
    /// `idle`, `waiting` or `inside`.
    pub phase: &'static str,
    /// Whether it has the token.
    pub token: bool,
    /// The requests that it knows of and takes for unserved: who asks, and how many answers are known.
    pub knows: Vec<(u32, u32)>,
}

/// An instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instant {
    /// When.
    pub at: u64,
    /// Who are neighbours.
    pub edges: Vec<(u32, u32)>,
    /// By node.
    pub labels: Vec<Label>,
}

/// An entry of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Who entered.
    pub node: u32,
    /// When it had asked.
    pub asked: u64,
    /// When it entered.
    pub entered: u64,
}

/// A run on an evolving graph, as the page reads it. Instants at which nothing is other than before are left
/// out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contacts {
    title: String,
    algorithm: String,
    header: Vec<String>,
    names: Vec<String>,
    instants: Vec<Shown>,
    entries: Vec<Entry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    violation: Option<String>,
    /// The last instant of what is shown; the one that was shown last goes on until then.
    last: u64,
    /// What whoever looks at the page has to know first.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
    /// The first instant for which there was no room.
    #[serde(skip)]
    cut: Option<u64>,
    #[serde(skip)]
    window: Window,
    #[serde(skip)]
    now: Vec<Label>,
    #[serde(skip)]
    content: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Shown {
    at: u64,
    edges: Vec<(u32, u32)>,
    /// The labels that are others than before, by node.
    labels: Vec<(usize, Label)>,
}

impl Contacts {
    /// A run of `algorithm`, about which nothing is known yet.
    pub fn new(
        title: String,
        algorithm: &str,
        header: impl Iterator<Item = &'static str>,
        names: Vec<String>,
        window: Window,
    ) -> Result<Self, PlayerError> {
        crate::check_nodes(names.len() as u32)?;
        Ok(Contacts {
            title,
            algorithm: algorithm.to_string(),
            header: crate::record::paragraphs(header),
            names,
            instants: Vec::new(),
            entries: Vec::new(),
            violation: None,
            last: window.from,
            notice: None,
            cut: None,
            window,
            now: Vec::new(),
            content: 0,
        })
    }

    /// Adds the next instant, unless there is more than a page shows. Returns whether there was room.
    pub fn add(&mut self, instant: &Instant) -> bool {
        if !self.window.shows(instant.at) {
            return true;
        }
        if self.cut.is_some() {
            return false;
        }
        let is_other =
            |&(node, label): &(usize, &Label)| self.now.get(node).is_none_or(|now| now != label);
        let others = instant.labels.iter().enumerate().filter(is_other);
        let labels: Vec<(usize, Label)> =
            others.map(|(node, label)| (node, label.clone())).collect();
        let is_same = |shown: &Shown| shown.edges == instant.edges;
        if labels.is_empty() && self.instants.last().is_some_and(is_same) {
            self.last = instant.at;
            return true;
        }
        let known: usize = labels.iter().map(|(_, label)| 1 + label.knows.len()).sum();
        let content = self.content + 1 + instant.edges.len() + known;
        // A page shows its first instant, however much that is.
        let is_full = self.instants.len() == MOST_INSTANTS || content > MOST_CONTENT;
        if is_full && !self.instants.is_empty() {
            self.cut = Some(instant.at);
            return false;
        }
        (self.last, self.content) = (instant.at, content);
        self.now.clone_from(&instant.labels);
        self.instants.push(Shown { at: instant.at, edges: instant.edges.clone(), labels });
        true
    }

    /// The same page without anything on it, of another part of the run.
    pub fn of_part(&self, window: Window) -> Self {
        Contacts {
            instants: Vec::new(),
            last: window.from,
            cut: None,
            now: Vec::new(),
            content: 0,
            window,
            ..self.clone()
        }
    }

    /// The first instant for which there was no room, if there was too little.
    pub fn cut(&self) -> Option<u64> {
        self.cut
    }

    /// The last instant that is shown.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Says something above everything else.
    pub fn note(&mut self, notice: String) {
        self.notice = Some(notice);
    }

    /// Adds what came of the run. What is wrong at its end is not shown where that is not.
    pub fn end(
        mut self,
        entries: impl Iterator<Item = Entry>,
        violation: Option<String>,
    ) -> Result<Self, PlayerError> {
        if self.instants.is_empty() {
            return Err(PlayerError::Empty);
        }
        let window = match self.cut {
            None => self.window,
            Some(_) => Window { to: self.last, ..self.window },
        };
        self.entries = entries.filter(|entry| window.shows(entry.entered)).collect();
        self.violation = violation.filter(|_| self.cut.is_none());
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(window: Window) -> Contacts {
        let names = ["a", "b"].map(str::to_string).to_vec();
        Contacts::new("ring".into(), "helary", ["**Idea.** One."].into_iter(), names, window)
            .unwrap()
    }

    fn label(phase: &'static str) -> Label {
        Label { phase, token: false, knows: Vec::new() }
    }

    fn instant(at: u64, edges: &[(u32, u32)], phases: [&'static str; 2]) -> Instant {
        Instant { at, edges: edges.to_vec(), labels: phases.map(label).to_vec() }
    }

    #[test]
    fn only_what_is_other_than_before_is_kept() {
        let mut run = run(Window::default());
        run.add(&instant(0, &[(0, 1)], ["idle", "waiting"]));
        run.add(&instant(1, &[(0, 1)], ["idle", "waiting"]));
        run.add(&instant(2, &[], ["idle", "inside"]));
        let run = run.end([Entry { node: 1, asked: 0, entered: 2 }].into_iter(), None).unwrap();
        let instants: Vec<(u64, usize)> =
            run.instants.iter().map(|it| (it.at, it.labels.len())).collect();
        assert_eq!((instants, run.last), (vec![(0, 2), (2, 1)], 2));
        assert_eq!(run.entries.len(), 1);
    }

    #[test]
    fn a_part_begins_with_all_labels() {
        let mut run = run(Window { from: 1, to: 5 });
        run.add(&instant(0, &[(0, 1)], ["idle", "waiting"]));
        run.add(&instant(1, &[(0, 1)], ["idle", "waiting"]));
        assert_eq!((run.instants.len(), run.instants[0].labels.len()), (1, 2));
        let nothing = super::tests::run(Window { from: 9, to: 9 }).end([].into_iter(), None);
        assert!(matches!(nothing, Err(PlayerError::Empty)));
    }

    #[test]
    fn instants_with_much_on_them_are_cut_by_how_much_that_is() {
        let many: Vec<(u32, u32)> = vec![(0, 1); MOST_CONTENT + 1];
        let mut run = run(Window::default());
        assert!(
            run.add(&instant(0, &many, ["idle", "idle"])),
            "the first is shown, however much it is"
        );
        assert!(!run.add(&instant(1, &[], ["idle", "idle"])));
        assert_eq!((run.cut(), run.last()), (Some(1), 0));
        // Two labels and an instant are three; one more contact would be one too many.
        let mut run = super::tests::run(Window::default());
        assert!(run.add(&instant(0, &many[..MOST_CONTENT - 4], ["idle", "idle"])));
        assert!(run.add(&instant(1, &[], ["idle", "idle"])), "an instant without anything is one");
        assert!(!run.add(&instant(2, &[(0, 1)], ["idle", "idle"])));
        assert_eq!((run.cut(), run.last()), (Some(2), 1));
    }

    #[test]
    fn more_than_a_page_shows_is_cut_and_the_next_part_begins_there() {
        let mut run = run(Window::default());
        let mut phases = [["idle", "waiting"], ["waiting", "idle"]].into_iter().cycle();
        for at in 0..MOST_INSTANTS as u64 {
            assert!(run.add(&instant(at, &[], phases.next().unwrap())), "{at}");
        }
        let beyond = instant(9_999, &[(0, 1)], ["idle", "idle"]);
        assert_eq!((run.add(&beyond), run.cut(), run.last()), (false, Some(9_999), 4_999));
        let mut next = run.of_part(Window { from: 9_999, to: u64::MAX });
        assert!(next.add(&beyond));
        assert_eq!((next.cut(), next.instants.len(), next.instants[0].labels.len()), (None, 1, 2));
        let entries = [4_999, 9_999].map(|entered| Entry { node: 0, asked: 1, entered });
        let run = run.end(entries.into_iter(), Some("no progress".to_string())).unwrap();
        assert_eq!((run.entries.len(), run.violation), (1, None));
    }
}
