//! Formats with a contact in every line: SocioPatterns, and CSV with start and end.

use alloc::vec::Vec;

use super::{Gathered, LineFault, Resolution, shortened};

/// `t i j`: i and j were in contact at t. SocioPatterns calls t the end of an interval of 20
/// seconds; here it is the instant that has t in it. Further columns (classes, wards) are passed over.
pub(super) fn sociopatterns(
    line: &str,
    resolution: Resolution,
    gathered: &mut Gathered,
) -> Result<(), LineFault> {
    let mut words = line.split_whitespace();
    let (Some(time), Some(a), Some(b)) = (words.next(), words.next(), words.next()) else {
        return Err(LineFault::Unreadable(shortened(line), "a contact 't i j'"));
    };
    let at = resolution.instant(time)?;
    let pair = gathered.pair(a, b)?;
    gathered.contact(at, at, pair)
}

/// The places of the columns of a CSV file.
#[derive(Clone, Copy, Debug)]
struct Columns {
    start: usize,
    end: usize,
    a: usize,
    b: usize,
}

/// Rows of a CSV file, with a head that names the columns or without. Both times belong to the
/// contact.
#[derive(Debug, Default)]
pub(super) struct Rows {
    columns: Option<Columns>,
}

impl Rows {
    pub(super) fn line(
        &mut self,
        line: &str,
        resolution: Resolution,
        gathered: &mut Gathered,
    ) -> Result<(), LineFault> {
        let cells: Vec<&str> = line.split(',').map(|cell| cell.trim().trim_matches('"')).collect();
        let columns = match self.columns {
            Some(columns) => columns,
            None if is_head(&cells) => {
                let fault = || {
                    LineFault::Unreadable(shortened(line), "a head with the columns start and end")
                };
                self.columns = Some(head(&cells).ok_or_else(fault)?);
                return Ok(());
            }
            None => *self.columns.insert(Columns { start: 0, end: 1, a: 2, b: 3 }),
        };
        let cell = |place: usize| {
            let fault =
                || LineFault::Unreadable(shortened(line), "a row with start, end and two nodes");
            cells.get(place).copied().filter(|cell| !cell.is_empty()).ok_or_else(fault)
        };
        let (start, end) = (cell(columns.start)?, cell(columns.end)?);
        let (a, b) = (cell(columns.a)?, cell(columns.b)?);
        let (from, to) = (resolution.instant(start)?, resolution.instant(end)?);
        if to < from {
            return Err(LineFault::Backwards { from: shortened(start), to: shortened(end) });
        }
        let pair = gathered.pair(a, b)?;
        gathered.contact(from, to, pair)
    }
}

/// A head has no cell that is a number.
fn is_head(cells: &[&str]) -> bool {
    cells.iter().all(|cell| cell.parse::<f64>().is_err())
}

/// The columns called start and end; of the others the first two are the nodes.
fn head(cells: &[&str]) -> Option<Columns> {
    let place = |name: &str| cells.iter().position(|cell| cell.eq_ignore_ascii_case(name));
    let (start, end) = (place("start")?, place("end")?);
    let mut others = (0..cells.len()).filter(|&place| place != start && place != end);
    Some(Columns { start, end, a: others.next()?, b: others.next()? })
}
