//! Who holds and who waits, in pages.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::durable::HoldId;

/// The most lines of a page.
pub const MOST_LINES: usize = 1000;
/// A page of more bytes than this is cut, but not below one line.
const MOST_BYTES: usize = 64 << 10;

/// Which lines are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// Of the whole group, not of this member alone.
    pub whole_group: bool,
    /// Of which locks.
    pub names: Selection,
    /// The last line of the page before; nothing for the first page.
    pub after: Option<LineKey>,
    /// How many at the most; never more than [`MOST_LINES`].
    pub limit: u32,
}

/// A choice of locks by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Selection {
    /// Every lock.
    #[default]
    All,
    /// Those whose names begin so.
    Prefix(String),
    /// This one.
    Name(String),
}

impl Selection {
    /// Whether `name` is chosen.
    pub fn includes(&self, name: &str) -> bool {
        match self {
            Selection::All => true,
            Selection::Prefix(prefix) => name.starts_with(prefix.as_str()),
            Selection::Name(one) => one == name,
        }
    }
}

/// What orders lines, and tells them apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LineKey {
    /// The lock.
    pub name: String,
    /// How many may be inside.
    pub permits: u32,
    /// The place in the queue of its member, from 1; 0 for a holder.
    pub place: u32,
    /// The member at which it asked.
    pub node: String,
    /// Tells apart who asks at one member.
    pub ticket: u64,
}

/// One holder or waiter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Line {
    /// Which lock, in which place, at which member.
    pub key: LineKey,
    /// The number of the entry, for a holder.
    pub fence: Option<u64>,
    /// What the client calls itself.
    pub label: String,
    /// The client's process.
    pub pid: u32,
    /// The client's machine.
    pub host: String,
    /// For how long it has been so, in milliseconds.
    pub millis: u64,
    /// What there is to say of a durable hold; nothing of others.
    pub durable: Option<DurableLine>,
}

/// A durable hold, or a request for one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DurableLine {
    /// Which one.
    pub id: HoldId,
    /// Who it belongs to.
    pub owner: String,
    /// What the owner has to say about it.
    pub note: String,
    /// When it was granted, in milliseconds since 1970; 0 for somebody who waits.
    pub unix_millis: u64,
}

impl Line {
    /// About how many bytes it takes.
    fn bytes(&self) -> usize {
        let texts = [&self.key.name, &self.key.node, &self.label, &self.host];
        let durable = self.durable.as_ref();
        let texts = texts.into_iter().chain(durable.iter().flat_map(|it| [&it.owner, &it.note]));
        64 + 32 * usize::from(durable.is_some()) + texts.map(|text| text.len()).sum::<usize>()
    }
}

/// A page: lines in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// By name, holders first, waiters in the order of each member's queue.
    pub lines: Vec<Line>,
    /// Members that did not answer.
    pub silent: Vec<String>,
    /// Whether there are more lines after these.
    pub more: bool,
}

/// The first `limit` of the lines that are shown to it, in ascending order, after a given one.
#[derive(Clone, Debug)]
pub struct PageBuilder {
    after: Option<LineKey>,
    limit: usize,
    lines: alloc::collections::BTreeMap<LineKey, Line>,
    silent: Vec<String>,
    more: bool,
}

impl PageBuilder {
    /// An empty page for `query`.
    pub fn new(query: &Query) -> Self {
        let limit = (query.limit as usize).clamp(1, MOST_LINES);
        let after = query.after.clone();
        PageBuilder { after, limit, lines: Default::default(), silent: Vec::new(), more: false }
    }

    /// Whether a line for the lock `name` could still get onto the page. Cheap, so that most locks
    /// are passed over without making their lines.
    pub fn wants(&self, name: &str) -> bool {
        if self.after.as_ref().is_some_and(|after| name < after.name.as_str()) {
            return false;
        }
        self.lines.len() < self.limit
            || !self.more
            || self.lines.last_key_value().is_some_and(|(last, _)| name <= last.name.as_str())
    }

    /// Shows it a line.
    pub fn offer(&mut self, line: Line) {
        if self.after.as_ref().is_some_and(|after| line.key <= *after) {
            return;
        }
        self.lines.insert(line.key.clone(), line);
        if self.lines.len() > self.limit {
            self.lines.pop_last();
            self.more = true;
        }
    }

    /// Shows it a page of another member.
    pub fn merge(&mut self, page: Page) {
        self.more |= page.more;
        self.silent.extend(page.silent);
        page.lines.into_iter().for_each(|line| self.offer(line));
    }

    /// A member did not answer.
    pub fn silent(&mut self, member: String) {
        self.silent.push(member);
    }

    /// The page.
    pub fn finish(self) -> Page {
        let PageBuilder { lines, mut silent, mut more, .. } = self;
        silent.sort_unstable();
        let mut bytes = 0;
        let whole = lines.len();
        let fits = |line: &Line| {
            let is_first = bytes == 0;
            bytes += line.bytes();
            is_first || bytes <= MOST_BYTES
        };
        let lines: Vec<Line> = lines.into_values().take_while(fits).collect();
        more |= lines.len() < whole;
        Page { lines, silent, more }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;

    fn line(name: &str, node: &str) -> Line {
        let key =
            LineKey { name: name.to_string(), permits: 1, place: 0, node: node.into(), ticket: 1 };
        let (label, host) = (String::new(), String::new());
        Line { key, fence: None, label, pid: 0, host, millis: 0, durable: None }
    }

    fn names(page: &Page) -> Vec<&str> {
        page.lines.iter().map(|line| line.key.name.as_str()).collect()
    }

    /// All pages of `lines`, which come in any order and from two members.
    fn read_all(lines: &[Line], limit: u32) -> Vec<Vec<String>> {
        let mut query = Query { limit, ..Query::default() };
        let mut pages = Vec::new();
        loop {
            let mut whole = PageBuilder::new(&query);
            for node in ["a", "b"] {
                let mut own = PageBuilder::new(&query);
                let here = lines.iter().filter(|line| line.key.node == node);
                here.filter(|line| query.names.includes(&line.key.name)).for_each(|line| {
                    if own.wants(&line.key.name) {
                        own.offer(line.clone());
                    }
                });
                whole.merge(own.finish());
            }
            let page = whole.finish();
            pages.push(names(&page).into_iter().map(str::to_string).collect());
            if !page.more {
                return pages;
            }
            query.after = page.lines.last().map(|line| line.key.clone());
        }
    }

    #[test]
    fn pages_together_have_every_line_once_and_in_order() {
        for limit in [1, 2, 3, 7, 100] {
            let lines: Vec<Line> = [5, 3, 9, 1, 7, 2, 8, 4]
                .iter()
                .map(|n| line(&format!("x{n}"), if n % 3 == 0 { "a" } else { "b" }))
                .collect();
            let pages = read_all(&lines, limit);
            let all: Vec<String> = pages.concat();
            assert_eq!(all, ["x1", "x2", "x3", "x4", "x5", "x7", "x8", "x9"], "{limit}");
            assert!(pages.iter().all(|page| page.len() <= limit as usize));
        }
    }

    #[test]
    fn a_page_has_at_least_one_line_and_at_most_so_many() {
        for (limit, most) in [(0, 1), (7, 7), (u32::MAX, MOST_BYTES / 70)] {
            let mut page = PageBuilder::new(&Query { limit, ..Query::default() });
            (0..2 * MOST_LINES).for_each(|n| page.offer(line(&format!("{n:05}"), "a")));
            let page = page.finish();
            assert_eq!((page.lines.len(), page.more), (most, true));
        }
    }

    #[test]
    fn a_page_of_long_lines_is_cut_and_the_next_one_goes_on_there() {
        let long = |n: u8| {
            let name = char::from(b'a' + n).to_string().repeat(255);
            Line { label: "x".repeat(40_000), ..line(&name, "a") }
        };
        let lines: Vec<Line> = (0..5).map(long).collect();
        let pages = read_all(&lines, 100);
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [1; 5]);
    }
}
