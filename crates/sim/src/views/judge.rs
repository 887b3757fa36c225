//! Watches what clients see: who is inside and may believe so, and the fences.

use std::collections::BTreeMap;

use crate::time::Time;

/// Who has a lock, as far as clients know.
#[derive(Debug)]
pub(super) struct Judge {
    permits: usize,
    /// Who is inside each lock, and until when it may believe so.
    inside: BTreeMap<u32, BTreeMap<usize, Time>>,
    fences: BTreeMap<u32, u64>,
    pub(super) entries: u64,
}

impl Judge {
    pub(super) fn new(permits: u32) -> Self {
        let (inside, fences) = (BTreeMap::new(), BTreeMap::new());
        Judge { permits: permits as usize, inside, fences, entries: 0 }
    }

    /// A client is told that it is inside, and may believe so until then.
    pub(super) fn enters(
        &mut self,
        now: Time,
        client: usize,
        lock: u32,
        fence: u64,
        until: Time,
    ) -> Result<(), String> {
        self.entries += 1;
        let inside = self.inside.entry(lock).or_default();
        inside.retain(|_, until| *until > now);
        inside.insert(client, until);
        if inside.len() > self.permits {
            let who: Vec<String> =
                inside.iter().map(|(client, until)| format!("{client} (until {until})")).collect();
            return Err(format!("lock {lock} is held by clients {}", who.join(", ")));
        }
        let last = self.fences.entry(lock).or_default();
        if fence <= *last && self.permits == 1 {
            return Err(format!("the fence of lock {lock} is {fence} after {last}"));
        }
        *last = fence.max(*last);
        Ok(())
    }

    /// A client may believe for longer that it is inside.
    pub(super) fn prolongs(&mut self, client: usize, until: Time) {
        for inside in self.inside.values_mut() {
            if let Some(end) = inside.get_mut(&client) {
                *end = until;
            }
        }
    }

    /// A client is not inside any more, and knows it.
    pub(super) fn leaves(&mut self, client: usize) {
        for inside in self.inside.values_mut() {
            inside.remove(&client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_who_both_may_believe_to_be_inside_are_noticed() {
        let mut judge = Judge::new(1);
        assert!(judge.enters(Time(0), 1, 0, 1, Time(10)).is_ok());
        assert!(
            judge.enters(Time(10), 2, 0, 2, Time(20)).is_ok(),
            "the first knows better by then"
        );
        judge.prolongs(2, Time(30));
        assert!(judge.enters(Time(25), 3, 0, 3, Time(40)).is_err());
    }

    #[test]
    fn fences_that_do_not_grow_are_noticed() {
        let mut judge = Judge::new(1);
        assert!(judge.enters(Time(0), 1, 0, 5, Time(10)).is_ok());
        judge.leaves(1);
        assert!(judge.enters(Time(1), 2, 0, 5, Time(10)).is_err());
    }
}
