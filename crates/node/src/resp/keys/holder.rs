//! Whoever holds keys, over whichever interface.

use std::time::Duration;

use catraca_group::{DurableHold, Line, TimedHold};

use crate::resp::failure::Failure;

use super::value::unescaped;

/// Marks the owners of durable holds that were taken over this protocol.
pub(super) const OWNER: &str = "resp:";

/// Whoever holds a key.
pub(crate) enum Holder {
    Timed(TimedHold),
    Durable(DurableHold),
    /// Over another interface.
    Else(Line),
}

impl Holder {
    /// The value that the key has.
    pub(crate) fn value(&self) -> Vec<u8> {
        match self {
            Holder::Timed(hold) if hold.token.is_empty() => {
                format!("catraca:{}", asked_by(hold)).into_bytes()
            }
            Holder::Timed(hold) => hold.token.clone(),
            Holder::Durable(hold) if is_own(&hold.owner) => unescaped(&hold.note),
            Holder::Durable(hold) => format!("catraca:{}", hold.owner).into_bytes(),
            Holder::Else(line) => format!("catraca:{}", described(line)).into_bytes(),
        }
    }

    /// How long the key lives; nothing if it does not expire.
    pub(crate) fn left(&self) -> Option<Duration> {
        match self {
            Holder::Timed(hold) => Some(hold.left),
            Holder::Durable(_) | Holder::Else(_) => None,
        }
    }
}

/// What became of comparing the value of keys.
pub(crate) enum Compared {
    /// All are held with this value.
    Equal(Equal),
    /// Nobody holds one of them.
    Free(Equal),
    /// One of them is held with another value.
    Other(Equal),
}

impl Compared {
    /// Those that are held with this value, whatever the others are.
    pub(crate) fn equal(self) -> Equal {
        match self {
            Compared::Equal(equal) | Compared::Free(equal) | Compared::Other(equal) => equal,
        }
    }
}

/// The holds of keys that have one value.
#[derive(Default)]
pub(crate) struct Equal {
    /// How many of the keys they are.
    pub(crate) count: usize,
    pub(super) timed: Vec<TimedHold>,
    pub(super) durable: Vec<DurableHold>,
}

impl Equal {
    pub(super) fn covers(&self, name: &String) -> bool {
        let timed = self.timed.iter().any(|hold| hold.names.contains(name));
        timed || self.durable.iter().any(|hold| hold.names.contains(name))
    }

    /// The shortest time that is left, if they do not stay for ever.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.timed.iter().map(|hold| hold.left).min()
    }
}

/// A hold of several locks ends at once: all of them have to be named.
pub(super) fn together(hold: &TimedHold, names: &[String]) -> Result<(), Failure> {
    match hold.names.iter().find(|held| !names.contains(held)) {
        None => Ok(()),
        Some(_) => {
            let named = names.iter().find(|name| hold.names.contains(name));
            let named = named.cloned().unwrap_or_default();
            Err(Failure::Together(named, hold.names.join(", ")))
        }
    }
}

/// Who has a timed hold.
pub(super) fn asked_by(hold: &TimedHold) -> String {
    format!("{}@{}", hold.who.label, hold.member)
}

/// Whether a durable hold was taken over this protocol.
pub(super) fn is_own(owner: &str) -> bool {
    let last = owner.rsplit_once('/').map_or(owner, |(_, last)| last);
    last.strip_prefix(OWNER).is_some_and(|digest| digest.len() == 32)
}

/// Who a line of a list is about.
pub(super) fn described(line: &Line) -> String {
    match &line.durable {
        Some(durable) => durable.owner.clone(),
        None => format!("{}@{}", line.label, line.key.node),
    }
}

#[cfg(test)]
mod tests {
    use catraca_group::{HoldId, Who};

    use super::*;

    #[test]
    fn keys_that_were_taken_together_are_named_together() {
        let names = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
        let hold = TimedHold {
            id: HoldId(1),
            names: names("a b"),
            permits: 1,
            fences: vec![1, 2],
            who: Who::default(),
            token: b"t".to_vec(),
            member: String::new(),
            ttl: Duration::ZERO,
            left: Duration::ZERO,
        };
        assert!(together(&hold, &names("b c a")).is_ok());
        let error = together(&hold, &names("c b")).unwrap_err().to_string();
        assert_eq!(error, "ERR 'b' is held together with a, b: name all of these keys at once");
    }

    #[test]
    fn owners_of_this_protocol_are_known() {
        let digest = "0".repeat(32);
        for own in [format!("resp:{digest}"), format!("ci/resp:{digest}")] {
            assert!(is_own(&own));
        }
        for other in ["alice", "resp:x", "resp/alice", &format!("xresp:{digest}")] {
            assert!(!is_own(other), "{other}");
        }
    }
}
