//! The registry: what it carries out at once, what later, and what it answers.

use std::sync::Arc;

use catraca_group::Input;
use catraca_group::registry::{Answer, Guard, Op, Trouble, Txn, Word};

use super::{Cut, Effect, Pending, Site, World};
use crate::group::setting::member_name;
use crate::views::world::stepping::Tell;

/// The key of the view, and what the keys of beats begin with.
const VIEW: &str = "view";
const BEATS: &str = "beat/";

fn writes(txn: &Txn, key: &str) -> bool {
    txn.ops.iter().any(|op| matches!(op, Op::Put(written, _) if written == key))
}

impl World {
    /// What the registry tells whoever has not heard of the view yet.
    pub(super) fn news(&self) -> Input<'static> {
        Input::Word(Word::Changed { key: VIEW.to_string(), at: self.store.revision() })
    }

    /// A member sends a transaction.
    pub(super) fn submit(&mut self, place: usize, number: u64, txn: Txn, tell: Tell<'_>) {
        let is_proposal = writes(&txn, VIEW);
        match self.sites[place].cut {
            Cut::No if is_proposal => {
                tell(Effect::Proposed(place));
                let sent = Pending::Sent(Some(number), Arc::new(txn));
                self.sites[place].pending.push_back(sent);
            }
            Cut::No => {
                let answer = self.apply(&txn);
                self.due.push_back((place, number, Ok(answer)));
                self.sites[place].has_news = false;
            }
            Cut::AfterOneBeat if !is_proposal && !txn.is_read() => {
                let result = Arc::new(Ok(self.apply(&txn)));
                self.sites[place].cut = Cut::Yes;
                self.sites[place].pending.push_back(Pending::Answered(number, result));
            }
            Cut::AfterOneBeat | Cut::Yes => {
                let why = Trouble::Unreachable("no route".to_string());
                self.due.push_back((place, number, Err(why)));
            }
        }
    }

    /// The registry carries out the first proposal of a member, and answers if it can.
    pub(super) fn commit(&mut self, place: usize, tell: Tell<'_>) {
        let is_sent = |pending: &Pending| matches!(pending, Pending::Sent(..));
        let first = self.sites[place].pending.iter().position(is_sent);
        let Some(Pending::Sent(number, txn)) =
            first.and_then(|first| self.sites[place].pending.remove(first))
        else {
            return;
        };
        let answer = self.apply(&txn);
        tell(Effect::Decided(answer.applied));
        let Some(number) = number else { return };
        let site = &mut self.sites[place];
        if site.runs() && site.cut == Cut::No {
            site.has_news = false;
            self.due.push_back((place, number, Ok(answer)));
        } else {
            site.pending.push_back(Pending::Answered(number, Arc::new(Ok(answer))));
        }
    }

    /// Whose first proposal can never be carried out because there is another view since, of those who
    /// have heard of that view or wait for no answer. It is decided at once: nobody learns from it.
    pub(super) fn next_hopeless(&self) -> Option<usize> {
        let at = self.view_at;
        let is_hopeless = |site: &Site| {
            let is_sent = |pending: &&Pending| matches!(pending, Pending::Sent(..));
            let Some(Pending::Sent(number, txn)) = site.pending.iter().find(is_sent) else {
                return false;
            };
            let is_old = |guard: &Guard| match guard {
                Guard::At(key, seen) => key == VIEW && *seen != at,
                _ => false,
            };
            let knows = number.is_none() || site.runs() && site.cut == Cut::No && !site.has_news;
            knows && txn.guards.iter().any(is_old)
        };
        self.sites.iter().position(is_hopeless)
    }

    /// The first answer that is late arrives.
    pub(super) fn answer(&mut self, place: usize) {
        let site = &mut self.sites[place];
        let is_answered = |pending: &Pending| matches!(pending, Pending::Answered(..));
        let first = site.pending.iter().position(is_answered);
        if let Some(Pending::Answered(number, result)) =
            first.and_then(|first| site.pending.remove(first))
        {
            self.due.push_back((place, number, (*result).clone()));
        }
    }

    fn apply(&mut self, txn: &Txn) -> Answer {
        let answer = Arc::make_mut(&mut self.store).apply(txn);
        if answer.applied && writes(txn, VIEW) {
            self.view_at = answer.revision;
            for place in 0..self.sites.len() {
                self.note_view(place, txn);
            }
        }
        answer
    }

    /// There is a new view: takes note of what that is for a member.
    fn note_view(&mut self, place: usize, txn: &Txn) {
        let site = &mut self.sites[place];
        let key = format!("{BEATS}{}", member_name(place));
        // Whoever is not connected to the registry hears when it is.
        site.has_news |= site.member.is_some();
        if writes(txn, &key) {
            site.is_excluded = false;
        } else if txn.ops.contains(&Op::Delete(key)) {
            site.is_excluded = true;
            self.is_resolved = true;
        }
    }
}
