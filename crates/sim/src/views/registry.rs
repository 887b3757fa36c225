//! The registry of a simulated group: the pure store, behind a network that delays, loses and repeats.

use catraca_group::registry::{Answer, Op, Store, Trouble, Txn, Word};

use super::engine::{Event, Simulation};
use crate::random::Random;
use crate::time::Time;

/// A member that is not answered for so long gives up.
const TIME_OUT: Time = Time(700_000);

/// The registry and what is wrong with it.
#[derive(Debug, Default)]
pub(super) struct Registry {
    pub(super) store: Store,
    /// Nothing is carried out before then: a new leader is being elected.
    pub(super) stalled_until: Time,
    /// Of ten words, so many reach nobody.
    words_lost: u64,
}

impl Registry {
    /// In half of the runs it hardly tells anybody of anything: beats and answers bring it too.
    pub(super) fn new(random: &mut Random) -> Self {
        let words_lost = if random.below(2) == 0 { 1 } else { 9 };
        Registry { words_lost, ..Registry::default() }
    }
}

/// What becomes of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Answered,
    /// It is carried out, and nobody hears of it.
    AnswerLost,
    /// It never arrives.
    Lost,
    /// It is carried out long after its sender has given up.
    Late,
}

impl Simulation<'_> {
    /// A member sends a transaction.
    pub(super) fn submit(&mut self, now: Time, site: usize, number: u64, txn: Txn) {
        let life = self.sites[site].life;
        if self.sites[site].is_deaf {
            let why = Trouble::Unreachable("no route".to_string());
            let at = now + Time(10_000);
            return self.plan(at, Event::Answered { site, life, number, result: Err(why) });
        }
        let fate = match self.random.below(100) {
            _ if !self.is_faulty(now) => Outcome::Answered,
            0..=2 => Outcome::AnswerLost,
            3..=4 => Outcome::Lost,
            5 => Outcome::Late,
            _ => Outcome::Answered,
        };
        let there = now.max(self.registry.stalled_until) + self.latency(now);
        if fate == Outcome::Answered && there < now + TIME_OUT {
            return self.plan(there, Event::Apply { site, life, answer: Some(number), txn });
        }
        let answer = None;
        match fate {
            Outcome::Answered | Outcome::AnswerLost => {
                self.plan(there, Event::Apply { site, life, answer, txn });
            }
            Outcome::Late => {
                let late = there + Time(self.random.below(20_000_000));
                self.plan(late, Event::Apply { site, life, answer, txn });
            }
            Outcome::Lost => {}
        }
        let result = Err(Trouble::Unknown("no answer in time".to_string()));
        self.plan(now + TIME_OUT, Event::Answered { site, life, number, result });
    }

    /// A transaction has arrived at the registry.
    pub(super) fn apply(
        &mut self,
        now: Time,
        site: usize,
        life: u64,
        answer: Option<u64>,
        txn: &Txn,
    ) {
        let before = self.registry.store.revision();
        let result: Answer = self.registry.store.apply(txn);
        self.note(now, format_args!("registry: {txn:?} of m{site}: applied {}", result.applied));
        let at = self.registry.store.revision();
        if at > before {
            let word = |op: &Op| Word::Changed { key: op.key().to_string(), at };
            let words: Vec<Word> = txn.ops.iter().map(word).collect();
            for other in 0..self.sites.len() {
                if !self.sites[other].is_deaf && self.random.below(10) >= self.registry.words_lost {
                    let at = now + self.latency(now);
                    let life = self.sites[other].life;
                    self.plan(at, Event::Changed { site: other, life, words: words.clone() });
                }
            }
        }
        if let Some(number) = answer {
            let at = now + self.latency(now);
            self.plan(at, Event::Answered { site, life, number, result: Ok(result) });
        }
    }
}
