//! A list of locks, one row each.

use std::cmp::Reverse;

use catraca_client::Line;

use super::asking::Listing;
use crate::commands::locks::{age_of, printable, who};

/// A lock that somebody holds or waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) permits: u32,
    /// Who holds it: the first of them.
    pub(super) holder: String,
    /// How many more do.
    pub(super) others: usize,
    /// The member at which that one asked; or, if nobody holds it, the first who waits.
    pub(super) node: String,
    /// For how long that has been so, in milliseconds.
    pub(super) millis: u64,
    pub(super) waiters: usize,
    pub(super) fence: Option<u64>,
    /// Whether there may be more to it than is told here.
    pub(super) is_cut: bool,
}

/// By what rows are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Sort {
    #[default]
    Name,
    Waiters,
    Age,
    Node,
}

impl Sort {
    pub(super) fn next(self) -> Self {
        match self {
            Sort::Name => Sort::Waiters,
            Sort::Waiters => Sort::Age,
            Sort::Age => Sort::Node,
            Sort::Node => Sort::Name,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Sort::Name => "name",
            Sort::Waiters => "queue",
            Sort::Age => "age",
            Sort::Node => "node",
        }
    }
}

/// The rows of a listing in which `text` occurs, if there is one, in order.
pub(super) fn rows(listing: &Listing, sort: Sort, text: Option<&str>) -> Vec<Row> {
    let same = |one: &Line, other: &Line| {
        (&one.key.name, one.key.permits) == (&other.key.name, other.key.permits)
    };
    let mut rows: Vec<Row> = listing.lines.chunk_by(same).filter_map(row).collect();
    if let Some(last) = rows.last_mut() {
        last.is_cut = listing.more;
    }
    if let Some(text) = text {
        rows.retain(|row| row.name.contains(text) || row.holder.contains(text));
    }
    // What is equal stays in the order of names.
    match sort {
        Sort::Name => {}
        Sort::Waiters => rows.sort_by_key(|row| Reverse(row.waiters)),
        Sort::Age => rows.sort_by_key(|row| Reverse(row.millis)),
        Sort::Node => rows.sort_by(|one, other| one.node.cmp(&other.node)),
    }
    rows
}

/// The lines of one lock as a row.
fn row(lines: &[Line]) -> Option<Row> {
    let first = lines.first()?;
    let holders = lines.iter().filter(|line| line.key.place == 0).count();
    let holder = match holders {
        0 => "-".to_string(),
        // A client that calls itself nothing is told apart from nobody.
        _ if first.label.is_empty() && first.durable.is_none() => {
            format!("at {}", printable(&first.host))
        }
        _ => who(first),
    };
    Some(Row {
        name: first.key.name.clone(),
        permits: first.key.permits,
        holder,
        others: holders.saturating_sub(1),
        node: first.key.node.clone(),
        millis: age_of(first),
        waiters: lines.len() - holders,
        fence: first.fence,
        is_cut: false,
    })
}
