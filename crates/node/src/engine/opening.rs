//! Sessions that clients open, and how many a machine has.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use catraca_client::clock;
use catraca_group::{MOST_SESSIONS, Owner, Refusal, SessionId, Who};

use super::Engine;
use crate::mutex::hold;
use crate::secret::secret;

/// The sessions of one machine: whoever opens one after the other leaves some to others.
pub(crate) const MOST_SESSIONS_OF_ONE: usize = MOST_SESSIONS / 2;

/// Which machine has opened which sessions.
#[derive(Default)]
pub(super) struct Opened {
    machine_of: HashMap<Owner, IpAddr>,
    of_machine: HashMap<IpAddr, usize>,
}

impl Opened {
    fn has_room(&self, machine: IpAddr) -> bool {
        self.of_machine.get(&machine).is_none_or(|&count| count < MOST_SESSIONS_OF_ONE)
    }

    fn add(&mut self, owner: Owner, machine: IpAddr) {
        self.machine_of.insert(owner, machine);
        *self.of_machine.entry(machine).or_default() += 1;
    }

    /// A session is over.
    pub(super) fn remove(&mut self, owner: Owner) {
        let Some(machine) = self.machine_of.remove(&owner) else { return };
        if let Some(count) = self.of_machine.get_mut(&machine) {
            *count -= 1;
            if *count == 0 {
                self.of_machine.remove(&machine);
            }
        }
    }
}

impl Engine {
    /// Opens a session for a client of `machine`. Also returns for how long what it is granted is certain.
    pub(crate) fn open_session(
        &self,
        machine: IpAddr,
        who: Who,
        ttl: Option<Duration>,
    ) -> Result<(SessionId, Duration), Refusal> {
        self.serve(|service, parts, _| {
            let mut opened = hold(&self.opened);
            if !opened.has_room(machine) {
                return Err(Refusal::TooManySessions);
            }
            let session = service.open(who, ttl, secret(), parts)?;
            opened.add(Owner(session.number), machine);
            Ok((session, service.certain(clock::now())))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_machine_leaves_sessions_to_others_until_its_own_are_over() {
        let (mut opened, flood) = (Opened::default(), IpAddr::from([10, 0, 0, 1]));
        for number in 0..MOST_SESSIONS_OF_ONE {
            assert!(opened.has_room(flood));
            opened.add(Owner(number as u64), flood);
        }
        assert!(!opened.has_room(flood));
        assert!(opened.has_room(IpAddr::from([10, 0, 0, 2])));
        opened.remove(Owner(7));
        opened.remove(Owner(7));
        opened.add(Owner(1 << 40), flood);
        assert!(!opened.has_room(flood), "there was room for one");
        for number in (0..MOST_SESSIONS_OF_ONE as u64).chain([1 << 40]) {
            opened.remove(Owner(number));
        }
        assert!(opened.of_machine.is_empty() && opened.machine_of.is_empty());
    }
}
