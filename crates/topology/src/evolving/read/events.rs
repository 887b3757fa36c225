//! Connection events of the ONE simulator: `time CONN a b up` and `time CONN a b down`.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::time::{Moment, Resolution};
use super::{Gathered, LineFault, shortened};

/// Who is in contact, and since when.
#[derive(Debug, Default)]
pub(super) struct Events {
    up: BTreeMap<(u32, u32), Moment>,
    /// The last event: its time, and how that was written.
    latest: Option<(Moment, String)>,
}

impl Events {
    pub(super) fn line(
        &mut self,
        line: &str,
        resolution: Resolution,
        gathered: &mut Gathered,
    ) -> Result<(), LineFault> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let fault =
            || LineFault::Unreadable(shortened(line), "an event 'time CONN a b up' or '... down'");
        let [time, "CONN", a, b, change] = words[..] else { return Err(fault()) };
        let at = Moment::read(time)?;
        // Within an instant the order does not matter.
        if let Some((latest, written)) = &self.latest
            && at.0 / resolution.0 < latest.0 / resolution.0
        {
            return Err(LineFault::OutOfOrder(shortened(time), written.clone()));
        }
        self.latest = Some((at, time.to_string()));
        let Some((one, other)) = gathered.pair_of_two(a, b)? else { return Ok(()) };
        let pair = (one.min(other), one.max(other));
        match change {
            "up" => match self.up.insert(pair, at) {
                None => Ok(()),
                Some(_) => Err(LineFault::UpTwice(shortened(a), shortened(b))),
            },
            "down" => {
                let down_first = || LineFault::DownFirst(shortened(a), shortened(b));
                let from = self.up.remove(&pair).ok_or_else(down_first)?;
                // Just before the 'down' the contact is still there. If an instant begins with it, that
                // is the one before.
                gathered.contact(from.0, at.0.saturating_sub(1).max(from.0), pair)
            }
            _ => Err(fault()),
        }
    }

    /// What is up at the end of the file lasts until then.
    pub(super) fn close(&mut self, gathered: &mut Gathered) {
        let latest = self.latest.as_ref().map_or(0, |(latest, _)| latest.0);
        for (pair, from) in core::mem::take(&mut self.up) {
            // The contacts that are open are far fewer than those that were limited.
            gathered.contact(from.0, latest.max(from.0), pair).unwrap_or_default();
        }
    }
}
