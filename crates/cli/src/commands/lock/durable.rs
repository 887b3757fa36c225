//! `catraca lock --durable`: takes locks for an owner, and leaves.

use std::io::Write;

use catraca_client::{AcquireDurable, ClientError, Refusal, Wait, lock_durable};

use super::{Arguments, TIMED_OUT, list};
use crate::Outcome;
use crate::failure::Failure;
use crate::output::Stdout;

impl Arguments {
    /// Asks for a durable hold, and prints its id and its fences.
    pub(super) async fn take_durably(self) -> Outcome {
        let wait = match (self.nonblock, self.wait) {
            (true, _) => Wait::No(Wait::ANSWER),
            (false, Some(limit)) if limit.is_zero() => Wait::No(Wait::ANSWER),
            (false, Some(limit)) => Wait::AtMost(limit),
            (false, None) => Wait::Forever,
        };
        let asked = AcquireDurable {
            names: self.names.clone(),
            permits: self.permits,
            wait,
            owner: self.owner.clone().unwrap_or_default(),
            note: self.note.clone().unwrap_or_default(),
            request: self.request.clone().unwrap_or_else(fresh_name),
        };
        let hold = match lock_durable(self.nodes.nodes()?, asked).await {
            Ok(hold) => hold,
            Err(ClientError::Refused(why @ Refusal::Taken)) => {
                return Err(self.not_had(1, &why));
            }
            Err(ClientError::Refused(why @ Refusal::TimedOut)) => {
                return Err(self.not_had(TIMED_OUT, &why));
            }
            Err(error) => return Err(error.into()),
        };
        let mut out = Stdout::lock();
        writeln!(out, "{} {}", hold.id, list(&hold.fences))?;
        out.flush()?;
        Ok(())
    }

    fn not_had(&self, usual: u8, why: &Refusal) -> Failure {
        let words = format!("'{}': {why}", self.names.join(" "));
        Failure::Own(self.conflict_exit_code.unwrap_or(usual), Some(words))
    }
}

/// A name that no other request has.
fn fresh_name() -> String {
    let part = || std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0u8);
    format!("{:016x}{:016x}", part(), part())
}
