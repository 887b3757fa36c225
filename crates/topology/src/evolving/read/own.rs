//! Catraca's own format.
//!
//! ```text
//! catraca graph
//! names w u v        # or: nodes 3, which are called 0, 1 and 2; or neither
//! last 9             # the last instant; otherwise that of the last contact
//! cycle 4            # the instants from 4 to the last repeat for ever
//! 1 w v              # a contact at instant 1
//! 5..7 w u           # a contact at every instant from 5 to 7
//! ```

use alloc::string::ToString;
use alloc::vec::Vec;

use super::time::instant;
use super::{Gathered, LineFault, MAX_GRAPH_NODES, shortened};

/// How long the graph is, and what of it repeats.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frame {
    pub(super) last: Option<u64>,
    pub(super) cycle: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Own {
    pub(super) frame: Frame,
    has_head: bool,
}

impl Own {
    pub(super) fn line(&mut self, line: &str, gathered: &mut Gathered) -> Result<(), LineFault> {
        let line = line.split(" #").next().unwrap_or(line); // The rest is a remark.
        let words: Vec<&str> = line.split_whitespace().collect();
        if !self.has_head {
            self.has_head = true;
            return match words[..] {
                ["catraca", "graph"] => Ok(()),
                _ => Err(LineFault::Unreadable(
                    shortened(line),
                    "'catraca graph', as every such file begins",
                )),
            };
        }
        match words[..] {
            ["names", ref names @ ..] => name(names.iter().copied(), gathered, "names"),
            ["nodes", count] => {
                let count =
                    count.parse().ok().filter(|count| (1..=MAX_GRAPH_NODES).contains(count));
                let fault =
                    || LineFault::Unreadable(shortened(line), "a number of nodes, 'nodes N'");
                let names: Vec<_> =
                    (0..count.ok_or_else(fault)?).map(|node| node.to_string()).collect();
                name(names.iter().map(|name| name.as_str()), gathered, "nodes")
            }
            ["last", at] => once(&mut self.frame.last, instant(at)?, "last"),
            ["cycle", at] => once(&mut self.frame.cycle, instant(at)?, "cycle"),
            [at, a, b] => {
                let (from, to) = at.split_once("..").unwrap_or((at, at));
                let (from, to) = (instant(from)?, instant(to)?);
                if to < from {
                    return Err(LineFault::Backwards {
                        from: from.to_string(),
                        to: to.to_string(),
                    });
                }
                let pair = gathered.pair(a, b)?;
                gathered.contact(from, to, pair)
            }
            _ => Err(LineFault::Unreadable(
                shortened(line),
                "a contact 'T A B' or 'FROM..TO A B', nor 'nodes', 'names', 'last' or 'cycle'",
            )),
        }
    }
}

fn name<'a>(
    names: impl Iterator<Item = &'a str>,
    gathered: &mut Gathered,
    what: &'static str,
) -> Result<(), LineFault> {
    if gathered.is_closed || !gathered.numbers.is_empty() {
        return Err(LineFault::Twice(what));
    }
    for name in names {
        let before = gathered.numbers.len() as u32;
        if gathered.number(name)? != before {
            return Err(LineFault::Unreadable(
                shortened(name),
                "a name of one node: it is there twice",
            ));
        }
    }
    gathered.is_closed = true;
    Ok(())
}

fn once(place: &mut Option<u64>, value: u64, what: &'static str) -> Result<(), LineFault> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(LineFault::Twice(what)),
    }
}
