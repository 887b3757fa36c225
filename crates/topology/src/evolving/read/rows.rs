//! Formats with a contact in every line: SocioPatterns, and rows with start and end.
//!
//! The cells of a line are apart by white space, commas, semicolons or bars, whatever the line has.

use alloc::vec::Vec;

use super::time::Moment;
use super::{Gathered, LineFault, shortened};

/// The names by which heads call the column with the time of a contact.
const TIMES: [&str; 3] = ["t", "time", "timestamp"];

/// The places of the columns. Where a row has one time, it is start and end.
#[derive(Clone, Copy, Debug)]
struct Columns {
    start: usize,
    end: usize,
    a: usize,
    b: usize,
}

/// What the rows of a format have in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `t i j`: i and j were in contact at t. SocioPatterns calls t the end of an interval of 20 seconds;
    /// here it is the instant that has t in it. Further columns (classes, wards) are passed over.
    OneTime,
    /// `start,end,a,b`: both times belong to the contact.
    StartAndEnd,
}

/// Rows with a head that names the columns, or without one.
#[derive(Debug, Default)]
pub(super) struct Rows {
    columns: Option<Columns>,
}

impl Rows {
    pub(super) fn line(
        &mut self,
        line: &str,
        kind: Kind,
        gathered: &mut Gathered,
    ) -> Result<(), LineFault> {
        let cells = cells(line);
        if is_head(&cells) {
            match head(&cells, kind) {
                Some(columns) => {
                    self.columns = Some(columns);
                    gathered.skipped.heads += 1;
                    return Ok(());
                }
                None if kind == Kind::StartAndEnd && self.columns.is_none() => {
                    let what = "a head with the columns start and end";
                    return Err(LineFault::Unreadable(shortened(line), what));
                }
                None => {}
            }
        }
        let columns = *self.columns.get_or_insert(kind.usual());
        let cell = |place: usize| {
            let fault = || LineFault::Unreadable(shortened(line), kind.row());
            cells.get(place).copied().filter(|cell| !cell.is_empty()).ok_or_else(fault)
        };
        let (start, end) = (cell(columns.start)?, cell(columns.end)?);
        let (a, b) = (cell(columns.a)?, cell(columns.b)?);
        let (from, to) = (Moment::read(start)?, Moment::read(end)?);
        if to < from {
            return Err(LineFault::Backwards { from: shortened(start), to: shortened(end) });
        }
        gathered.note_time(from);
        match gathered.pair_of_two(a, b)? {
            Some(pair) => gathered.contact(from.0, to.0, pair),
            None => Ok(()),
        }
    }
}

impl Kind {
    fn usual(self) -> Columns {
        match self {
            Kind::OneTime => Columns { start: 0, end: 0, a: 1, b: 2 },
            Kind::StartAndEnd => Columns { start: 0, end: 1, a: 2, b: 3 },
        }
    }

    fn row(self) -> &'static str {
        match self {
            Kind::OneTime => "a contact 't i j'",
            Kind::StartAndEnd => "a row with start, end and two nodes",
        }
    }

    /// The kind of rows that a line with these cells is one of, a head or the first row.
    pub(super) fn recognise(cells: &[&str]) -> Option<Kind> {
        if is_head(cells) {
            let kinds = [Kind::StartAndEnd, Kind::OneTime];
            return kinds.into_iter().find(|&kind| head(cells, kind).is_some());
        }
        let is_number = |cell: &&str| cell.parse::<f64>().is_ok();
        match cells {
            [time, _, _] if is_number(time) => Some(Kind::OneTime),
            _ => None,
        }
    }
}

/// What stands between two cells of a line, unless it is white space.
pub(super) fn separator(line: &str) -> Option<char> {
    [',', ';', '|'].into_iter().find(|&separator| line.contains(separator))
}

/// The parts of a line.
pub(super) fn cells(line: &str) -> Vec<&str> {
    match separator(line) {
        Some(separator) => {
            line.split(separator).map(|cell| cell.trim().trim_matches('"')).collect()
        }
        None => line.split_whitespace().map(|cell| cell.trim_matches('"')).collect(),
    }
}

/// A head has no cell that is a number.
fn is_head(cells: &[&str]) -> bool {
    cells.iter().all(|cell| cell.parse::<f64>().is_err())
}

/// The columns with the times; of the others the first two are the nodes.
fn head(cells: &[&str], kind: Kind) -> Option<Columns> {
    let place = |name: &str| cells.iter().position(|cell| cell.eq_ignore_ascii_case(name));
    let (start, end) = match kind {
        Kind::StartAndEnd => (place("start")?, place("end")?),
        Kind::OneTime => {
            let time = TIMES.into_iter().find_map(place)?;
            (time, time)
        }
    };
    let mut others = (0..cells.len()).filter(|&place| place != start && place != end);
    Some(Columns { start, end, a: others.next()?, b: others.next()? })
}
