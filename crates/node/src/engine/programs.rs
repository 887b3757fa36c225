//! Requests of the program itself that the service knows.

use std::task::{Poll, Waker};

use catraca_group::{Refusal, RequestId};

use super::Engine;
use crate::mutex::hold;

/// A request of the program itself, while somebody waits for it or holds what it was granted.
#[derive(Default)]
pub(super) struct Program {
    pub(super) waker: Option<Waker>,
    pub(super) result: Option<Result<Vec<u64>, Refusal>>,
    pub(super) is_lost: bool,
}

impl Engine {
    /// What has become of a request of the program itself.
    pub(crate) fn poll_program(
        &self,
        id: RequestId,
        waker: &Waker,
    ) -> Poll<Result<Vec<u64>, Refusal>> {
        let mut programs = hold(&self.programs);
        let program = programs.entry(id).or_default();
        match program.result.take() {
            Some(Ok(fences)) => Poll::Ready(Ok(fences)),
            Some(Err(why)) => {
                programs.remove(&id);
                Poll::Ready(Err(why))
            }
            None => {
                let old = program.waker.replace(waker.clone());
                drop(programs);
                drop(old);
                Poll::Pending
            }
        }
    }

    /// Takes a request of the program itself back, or releases what it was granted.
    pub(crate) fn release_program(&self, id: RequestId) {
        self.serve(|service, parts, out| service.release(id, parts, out));
        let old = hold(&self.programs).remove(&id);
        drop(old);
    }

    pub(crate) fn is_lost(&self, id: RequestId) -> bool {
        hold(&self.programs).get(&id).is_some_and(|program| program.is_lost)
    }
}
