//! What there is to see of one lock, asked of all members.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use catraca_core::Claim;

use super::{Asking, Host, Output, Service};
use crate::anatomy::{Anatomy, Layout, MOST_LINES, Picture};
use crate::driver::Timer;
use crate::listing::{Query, Selection};
use crate::question::{ANSWER_TIME, Question};
use crate::refusal::Refusal;
use crate::timed::MOST_QUESTIONS;

/// A picture of a lock, of which some parts have yet to come.
#[derive(Clone, Debug)]
pub(super) struct PartialPicture {
    /// Who asked for it.
    asker: u64,
    name: String,
    told: Vec<(usize, Anatomy)>,
    silent: Vec<usize>,
    /// The members that have not answered.
    waiting: BTreeSet<usize>,
}

impl PartialPicture {
    /// A member has answered. Returns whether nobody is waited for any more.
    pub(super) fn answer(&mut self, member: usize, told: Anatomy) -> bool {
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
    /// Asks all members what they know of the locks called `name`. `asker` gets it by [`Output::Picture`],
    /// which may be among the outputs already.
    pub fn anatomy(&mut self, asker: u64, name: &str, host: &mut dyn Host, out: &mut Vec<Output>) {
        if self.questions.len() >= MOST_QUESTIONS {
            return out.push(Output::Picture(asker, Err(Refusal::Busy)));
        }
        let told = vec![(self.view.me, self.anatomy_here(name, host))];
        let is_up = |&member: &usize| self.peers[member].is_up;
        let (waiting, silent): (BTreeSet<usize>, Vec<usize>) = {
            let (up, down): (Vec<usize>, Vec<usize>) = self.view.others().partition(is_up);
            (up.into_iter().collect(), down)
        };
        let sitting = PartialPicture { asker, name: name.to_string(), told, silent, waiting };
        if sitting.waiting.is_empty() {
            return self.end_sitting(sitting, out);
        }
        self.last_question += 1;
        let number = self.last_question;
        for &member in &sitting.waiting {
            out.push(Output::Ask(member, number, Question::Anatomy(name.to_string())));
        }
        self.questions.insert(number, Asking::Anatomy(sitting));
        host.set_timer(Timer::Question(number), Some(ANSWER_TIME));
    }

    /// What this member knows of the locks called `name`.
    pub(super) fn anatomy_here(&self, name: &str, host: &mut dyn Host) -> Anatomy {
        let now = host.now();
        let mut instances = Vec::new();
        for (key, claim) in self.keys_of(name) {
            host.look_at(&key, &mut |shard, hash| {
                instances.extend(shard.instances(&key, hash, claim.as_ref(), now));
            });
        }
        let names = Selection::Name(name.to_string());
        let query = Query { whole_group: false, names, after: None, limit: MOST_LINES };
        Anatomy { instances, page: self.page_here(&query, host) }
    }

    /// What guards the locks called `name`: they themselves, or the namespace whose names are taken in sets;
    /// of that, the part that is asked about.
    fn keys_of(&self, name: &str) -> Vec<(String, Option<Claim>)> {
        let namespace = self.view.namespace(name);
        let own = (name.to_string(), None);
        if !self.view.knows_sets(namespace, 1) {
            return vec![own];
        }
        let pattern = self.view.namespaces[namespace].pattern.clone();
        let claim = Claim::of([self.view.resource(namespace, name)]);
        let is_both = pattern == name;
        // Semaphores are not taken in sets.
        let semaphores = Some(own).filter(|_| !is_both);
        [(pattern, Some(claim))].into_iter().chain(semaphores).collect()
    }

    /// Nobody waits for more answers.
    pub(super) fn end_sitting(&self, sitting: PartialPicture, out: &mut Vec<Output>) {
        let PartialPicture { asker, name, mut told, mut silent, waiting } = sitting;
        silent.extend(waiting);
        silent.sort_unstable();
        told.sort_unstable_by_key(|(member, _)| *member);
        let mut keys: BTreeSet<(String, u32)> = BTreeSet::new();
        for instance in told.iter().flat_map(|(_, anatomy)| &anatomy.instances) {
            // What another member says is not believed blindly.
            let is_guard = self.keys_of(&name).iter().any(|(key, _)| *key == instance.name);
            if is_guard && (1..=crate::view::MOST_PERMITS).contains(&instance.permits) {
                keys.insert((instance.name.clone(), instance.permits));
            }
        }
        if keys.is_empty() {
            // What would guard it, if somebody asked.
            keys.extend(self.keys_of(&name).into_iter().take(1).map(|(key, _)| (key, 1)));
        }
        let layout = |(key, permits): &(String, u32)| Layout::of(&self.view, key, *permits);
        let picture = Picture {
            epoch: self.view.epoch,
            members: self.view.members.iter().map(|member| member.name.clone()).collect(),
            layouts: keys.iter().map(layout).collect(),
            name,
            told,
            silent,
        };
        out.push(Output::Picture(asker, Ok(Box::new(picture))));
    }
}

#[cfg(test)]
mod tests;
