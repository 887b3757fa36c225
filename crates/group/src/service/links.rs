//! Which member reaches which, asked of all members.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use super::{Asking, Host, Output, Service};
use crate::anatomy::Links;
use crate::driver::Timer;
use crate::question::{ANSWER_TIME, Question};
use crate::refusal::Refusal;
use crate::timed::MOST_QUESTIONS;

/// What the members tell of their links, as far as it has come.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// Who asked for it.
    asker: u64,
    told: Vec<(usize, Vec<bool>)>,
    silent: Vec<usize>,
    /// The members that have not answered.
    waiting: BTreeSet<usize>,
}

impl Round {
    /// A member has answered. Returns whether nobody is waited for any more.
    pub(super) fn answer(&mut self, member: usize, told: Vec<bool>) -> bool {
        let was_asked = self.waiting.remove(&member);
        if was_asked {
            self.told.push((member, told));
        }
        was_asked && self.waiting.is_empty()
    }

    /// A member will not answer. Returns whether nobody is waited for any more.
    pub(super) fn no_answer_from(&mut self, member: usize) -> bool {
        let was_asked = self.waiting.remove(&member);
        if was_asked {
            self.silent.push(member);
        }
        was_asked && self.waiting.is_empty()
    }
}

impl Service {
    /// Asks all members whom they reach. `asker` gets it by [`Output::Links`], which may be among the outputs
    /// already.
    pub fn links(&mut self, asker: u64, host: &mut dyn Host, out: &mut Vec<Output>) {
        if self.questions.len() >= MOST_QUESTIONS {
            return out.push(Output::Links(asker, Err(Refusal::Busy)));
        }
        let is_up = |&member: &usize| self.peers[member].is_up;
        let (up, silent): (Vec<usize>, Vec<usize>) = self.view.others().partition(is_up);
        let told = vec![(self.view.me, self.links_here())];
        let round = Round { asker, told, silent, waiting: up.into_iter().collect() };
        if round.waiting.is_empty() {
            return self.end_round(round, out);
        }
        self.last_question += 1;
        let number = self.last_question;
        let ask = |&member: &usize| Output::Ask(member, number, Question::Links);
        out.extend(round.waiting.iter().map(ask));
        self.questions.insert(number, Asking::Links(round));
        host.set_timer(Timer::Question(number), Some(ANSWER_TIME));
    }

    /// Whom this member reaches, by places; itself it does.
    pub(super) fn links_here(&self) -> Vec<bool> {
        let reaches = |(place, peer): (usize, &super::Peer)| place == self.view.me || peer.is_up;
        self.peers.iter().enumerate().map(reaches).collect()
    }

    /// Nobody waits for more answers.
    pub(super) fn end_round(&self, round: Round, out: &mut Vec<Output>) {
        let Round { asker, mut told, mut silent, waiting } = round;
        silent.extend(waiting);
        silent.sort_unstable();
        told.sort_unstable_by_key(|(member, _)| *member);
        for (_, reached) in &mut told {
            // What another member says is not believed blindly.
            reached.resize(self.view.members.len(), false);
        }
        let links = Links {
            epoch: self.view.epoch,
            members: self.view.members.iter().map(|member| member.name.clone()).collect(),
            told,
            silent,
        };
        out.push(Output::Links(asker, Ok(Box::new(links))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::Input;
    use crate::question::Answer;
    use crate::service::tests::Member;

    fn look(member: &mut Member) -> Vec<Output> {
        let mut out = Vec::new();
        let Member { member, driver } = member;
        member.serve(driver, &mut out, |service, host, out| service.links(9, host, out));
        out
    }

    fn links(mut out: Vec<Output>) -> Links {
        match out.pop() {
            Some(Output::Links(9, Ok(links))) => *links,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_member_tells_whom_it_reaches_and_whoever_does_not_answer_is_named() {
        let mut member = Member::ready(4, "naimi-trehel");
        member.step(Input::LinkDown(3));
        let ask = |member| Output::Ask(member, 1, Question::Links);
        assert_eq!(look(&mut member), [ask(1), ask(2)], "one that is gone is not asked");
        // It says too little, and is not believed to reach those of whom it says nothing.
        assert_eq!(member.answer(1, 1, Answer::Links(vec![true, true])), []);
        assert_eq!(member.answer(1, 1, Answer::Links(vec![true; 4])), [], "it has answered");
        let seen = links(member.step(Input::Timer(Timer::Question(1))));
        let here = (0, vec![true, true, true, false]);
        assert_eq!(seen.told, [here, (1, vec![true, true, false, false])]);
        assert_eq!(seen.silent, [2, 3]);
    }

    #[test]
    fn a_member_that_is_asked_tells_its_own_links() {
        let mut member = Member::ready(3, "naimi-trehel");
        member.step(Input::LinkDown(2));
        assert_eq!(member.member.service().links_here(), [true, true, false]);
    }

    #[test]
    fn a_member_alone_has_no_links_and_waits_for_nobody() {
        let mut member = Member::ready(1, "naimi-trehel");
        let seen = links(look(&mut member));
        assert_eq!((seen.told, seen.silent), (vec![(0, vec![true])], vec![]));
    }
}
