//! Which grant of a lock is the newest, as far as the members of the view remember.
//!
//! Every member remembers what it granted last in the present view. If none remembers anything, nobody was
//! inside since the view began, and what was before is not known any more.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::asking::Answers;
use super::{Asking, Host, Output, Service};
use crate::question::Question;
use crate::refusal::Refusal;
use crate::request;

/// A question for the newest fence that has not been answered by everybody.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    pub(super) asker: u64,
    name: String,
    permits: u32,
    newest: Option<u64>,
    pub(super) answers: Answers,
}

impl Comparison {
    /// A member has answered. Returns whether all have.
    pub(super) fn answer(&mut self, member: usize, fence: Option<u64>) -> bool {
        self.newest = self.newest.max(fence);
        self.answers.answered(member) && self.answers.is_done()
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
        let question = Question::NewestFence(name.to_string(), permits);
        let name = name.to_string();
        let asking = |answers| Asking::Fence(Comparison { asker, name, permits, newest, answers });
        self.ask_everybody(&question, Answers::default(), asking, host, out)
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
        let Comparison { asker, newest, mut answers, .. } = comparison;
        answers.end(&self.view);
        let result = match answers.silent {
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
