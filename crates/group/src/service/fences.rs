//! Which grant of a lock is the newest, as far as the members of the view remember.
//!
//! Every member remembers what it granted last in the present view. If none remembers anything, nobody was
//! inside since the view began, and what was before is not known any more.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Asking, Host, Output, Phase, Service};
use crate::driver::Timer;
use crate::question::{ANSWER_TIME, Question};
use crate::refusal::Refusal;
use crate::request;
use crate::timed::MOST_QUESTIONS;

/// A question for the newest fence that has not been answered by everybody.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    pub(super) asker: u64,
    name: String,
    permits: u32,
    newest: Option<u64>,
    /// The members that have not answered.
    waiting: BTreeSet<usize>,
    /// A member that did not answer, or could not be asked.
    silent: Option<String>,
}

impl Comparison {
    /// A member has answered. Returns whether all have.
    pub(super) fn answer(&mut self, member: usize, fence: Option<u64>) -> bool {
        self.newest = self.newest.max(fence);
        self.waiting.remove(&member) && self.waiting.is_empty()
    }

    /// A member called `name` will not answer. Returns whether nobody will.
    pub(super) fn no_answer_from(&mut self, member: usize, name: &str) -> bool {
        let was_asked = self.waiting.remove(&member);
        if was_asked {
            self.silent = Some(name.into());
        }
        was_asked && self.waiting.is_empty()
    }
}

impl Service {
    /// Asks for the fence of the newest grant of a lock. `asker` gets it by [`Output::Fence`]: nothing if
    /// nobody was inside since the view began.
    pub fn newest_fence(
        &mut self,
        asker: u64,
        name: &str,
        permits: u32,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        if let Err(why) = self.compare(asker, name, permits, host, out) {
            out.push(Output::Fence(asker, Err(why)));
        }
    }

    fn compare(
        &mut self,
        asker: u64,
        name: &str,
        permits: u32,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        let newest = self.newest_fence_here(name, permits, host)?;
        match &self.phase {
            Phase::Stopped => return Err(Refusal::Stopped),
            Phase::Expelled(why) => return Err(Refusal::Expelled(why.clone())),
            Phase::Gathering | Phase::Granting => self.not_ready().map_or(Ok(()), Err)?,
        }
        if self.questions.len() >= MOST_QUESTIONS {
            return Err(Refusal::Busy);
        }
        let (name, waiting) = (name.to_string(), BTreeSet::new());
        let mut comparison = Comparison { asker, name, permits, newest, waiting, silent: None };
        self.last_question += 1;
        let number = self.last_question;
        for member in self.view.others() {
            if self.peers[member].is_up {
                comparison.waiting.insert(member);
                let question = Question::NewestFence(comparison.name.clone(), permits);
                out.push(Output::Ask(member, number, question));
            } else {
                comparison.silent = Some(self.view.members[member].name.clone());
            }
        }
        let is_done = comparison.waiting.is_empty();
        self.questions.insert(number, Asking::Fence(comparison));
        if is_done {
            self.close_question(number, host, out);
        } else {
            host.set_timer(Timer::Question(number), Some(ANSWER_TIME));
        }
        Ok(())
    }

    /// The newest fence of a lock that this member remembers.
    pub(super) fn newest_fence_here(
        &self,
        name: &str,
        permits: u32,
        host: &mut dyn Host,
    ) -> Result<Option<u64>, Refusal> {
        let parts = request::parts(&[name.into()], permits, &self.view)?;
        let newest = parts.iter().filter_map(|part| {
            host.newest_fence(part.key(permits), part.set.as_ref().map(|set| &set.claim))
        });
        Ok(newest.map(|fence| fence.0).max())
    }

    /// Nobody waits for more answers. Without those of all members another one may know a newer grant.
    pub(super) fn end_comparison(&self, comparison: Comparison, out: &mut Vec<Output>) {
        let Comparison { asker, newest, waiting, silent, .. } = comparison;
        let unheard = waiting.first().map(|&member| self.view.members[member].name.clone());
        let result = match unheard.or(silent) {
            Some(member) => Err(Refusal::Silent(member)),
            None => Ok(newest),
        };
        out.push(Output::Fence(asker, result));
    }

    /// The view ends in which it was asked: it is asked again in the next one.
    pub(super) fn compare_again(
        &mut self,
        comparison: Comparison,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let Comparison { asker, name, permits, .. } = comparison;
        self.newest_fence(asker, &name, permits, host, out);
    }
}
