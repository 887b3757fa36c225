//! Questions that go to all other members, and who has yet to answer them.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Asking, Host, Output, Phase, Service};
use crate::driver::Timer;
use crate::question::{ANSWER_TIME, Question};
use crate::refusal::Refusal;
use crate::timed::MOST_QUESTIONS;
use crate::view::View;

/// Who has yet to answer a question, and who never will.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    /// The members that have not answered.
    waiting: BTreeSet<usize>,
    /// A member that did not answer, now or in an earlier view, or could not be asked.
    pub(super) silent: Option<String>,
}

impl Answers {
    /// A member has answered. Returns whether it was asked.
    pub(super) fn answered(&mut self, member: usize) -> bool {
        self.waiting.remove(&member)
    }

    /// Whether nobody is waited for.
    pub(super) fn is_done(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A member called `name` will not answer. Returns whether nobody will.
    pub(super) fn no_answer_from(&mut self, member: usize, name: &str) -> bool {
        let was_asked = self.waiting.remove(&member);
        if was_asked {
            self.silent = Some(name.into());
        }
        was_asked && self.is_done()
    }

    /// Nobody answers any more.
    pub(super) fn end(&mut self, view: &View) {
        if let Some(member) = core::mem::take(&mut self.waiting).pop_first() {
            self.silent = Some(view.members[member].name.clone());
        }
    }
}

impl Service {
    /// Asks all other members the same, if they can be asked. `asking` says for whom, with those of whom an
    /// answer is expected.
    pub(super) fn ask_everybody(
        &mut self,
        question: &Question,
        mut answers: Answers,
        asking: impl FnOnce(Answers) -> Asking,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        match &self.phase {
            Phase::Stopped => return Err(Refusal::Stopped),
            Phase::Expelled(why) => return Err(Refusal::Expelled(why.clone())),
            Phase::Gathering | Phase::Granting => self.not_ready().map_or(Ok(()), Err)?,
        }
        if self.questions.len() >= MOST_QUESTIONS {
            return Err(Refusal::Busy);
        }
        self.last_question += 1;
        let number = self.last_question;
        for member in self.view.others() {
            if self.peers[member].is_up {
                answers.waiting.insert(member);
                out.push(Output::Ask(member, number, question.clone()));
            } else {
                answers.silent = Some(self.view.members[member].name.clone());
            }
        }
        let is_done = answers.is_done();
        self.questions.insert(number, asking(answers));
        if is_done {
            self.close_question(number, host, out);
        } else {
            host.set_timer(Timer::Question(number), Some(ANSWER_TIME));
        }
        Ok(())
    }
}
