//! Connection events of the ONE simulator: `time CONN a b up` and `time CONN a b down`.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Gathered, LineFault, Resolution, shortened};

/// Who is in contact, and since when.
#[derive(Debug, Default)]
pub(super) struct Events {
    up: BTreeMap<(u32, u32), u64>,
    /// The last event: its instant, and its time as it was written.
    latest: Option<(u64, String)>,
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
        let at = resolution.instant(time)?;
        if let Some((latest, written)) = &self.latest
            && at < *latest
        {
            return Err(LineFault::OutOfOrder(shortened(time), written.clone()));
        }
        self.latest = Some((at, time.to_string()));
        let (one, other) = gathered.pair(a, b)?;
        let pair = (one.min(other), one.max(other));
        match change {
            "up" => match self.up.insert(pair, at) {
                None => Ok(()),
                Some(_) => Err(LineFault::UpTwice(shortened(a), shortened(b))),
            },
            "down" => {
                let down_first = || LineFault::DownFirst(shortened(a), shortened(b));
                let from = self.up.remove(&pair).ok_or_else(down_first)?;
                // At the instant of its end the contact is over, unless the end is within it.
                let is_over = resolution.begins_at(time) && at > from;
                gathered.contact(from, if is_over { at - 1 } else { at }, pair)
            }
            _ => Err(fault()),
        }
    }

    /// What is up at the end of the file lasts until then.
    pub(super) fn close(&mut self, gathered: &mut Gathered) {
        let latest = self.latest.as_ref().map_or(0, |(latest, _)| *latest);
        for (pair, from) in core::mem::take(&mut self.up) {
            // The contacts that are open are far fewer than those that were limited.
            gathered.contact(from, latest, pair).unwrap_or_default();
        }
    }
}
