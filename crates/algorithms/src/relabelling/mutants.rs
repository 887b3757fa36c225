//! Deliberately broken relabelling systems, to show that the search over small graphs catches what
//! it should.

use core::fmt;
use core::hash::{Hash, Hasher};

use catraca_core::{Fence, Phase, property};

use super::{
    Applied, EvolvingHelary, EvolvingRicartAgrawala, Gathered, Group, HelaryKnowledge, Relabelling,
    RicartAgrawalaKnowledge,
};

/// A mutant as the catalogue lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name on the command line.
    pub name: &'static str,
    /// What is broken, in one sentence.
    pub breaks: &'static str,
    /// What shows it, one of [`catraca_core::property`].
    pub property: &'static str,
}

/// One way to break `R`. Every method defaults to the correct behaviour.
pub trait Mutation<R: Relabelling>: Sync {
    /// What the catalogue says of it.
    fn listed(&self) -> Listed;

    /// Asks.
    fn on_request(&self, node: &mut R, known: &R::Gathered, news: &mut R::Gathered) {
        node.on_request(known, news);
    }

    /// Leaves.
    fn on_release(&self, node: &mut R, known: &R::Gathered, news: &mut R::Gathered) {
        node.on_release(known, news);
    }

    /// Applies the rules.
    fn on_rules(
        &self,
        node: &mut R,
        group: &Group,
        known: &R::Gathered,
        news: &mut R::Gathered,
    ) -> Applied {
        node.on_rules(group, known, news)
    }
}

/// A node of `R`, broken.
#[derive(Clone)]
pub struct Mutant<R: Relabelling + 'static> {
    node: R,
    mutation: &'static dyn Mutation<R>,
}

impl<R: Relabelling> Mutant<R> {
    pub(super) fn new(node: R, mutation: &'static dyn Mutation<R>) -> Self {
        Mutant { node, mutation }
    }
}

impl<R: Relabelling> fmt::Debug for Mutant<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}

/// All nodes of a group are broken in the same way.
impl<R: Relabelling> PartialEq for Mutant<R> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl<R: Relabelling> Eq for Mutant<R> {}

impl<R: Relabelling> Hash for Mutant<R> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.node.hash(state);
    }
}

impl<R: Relabelling> Relabelling for Mutant<R> {
    type Gathered = R::Gathered;

    fn phase(&self) -> Phase {
        self.node.phase()
    }

    fn has_token(&self) -> bool {
        self.node.has_token()
    }

    fn on_request(&mut self, known: &R::Gathered, news: &mut R::Gathered) {
        self.mutation.on_request(&mut self.node, known, news);
    }

    fn on_release(&mut self, known: &R::Gathered, news: &mut R::Gathered) {
        self.mutation.on_release(&mut self.node, known, news);
    }

    fn on_rules(&mut self, group: &Group, known: &R::Gathered, news: &mut R::Gathered) -> Applied {
        self.mutation.on_rules(&mut self.node, group, known, news)
    }
}

pub(super) const RICART_AGRAWALA: &[&dyn Mutation<EvolvingRicartAgrawala>] =
    &[&DeafClock, &AnswersWhileRequesting];
pub(super) const HELARY: &[&dyn Mutation<EvolvingHelary>] =
    &[&DeafToken, &KeepsToken, &ForgetsService];

/// Asks with a clock that others do not advance.
struct DeafClock;

impl Mutation<EvolvingRicartAgrawala> for DeafClock {
    fn listed(&self) -> Listed {
        Listed {
            name: "deaf-clock",
            breaks: "a request takes its time from the node's own clock; contacts do not advance it",
            property: property::MUTUAL_EXCLUSION,
        }
    }

    fn on_request(
        &self,
        node: &mut EvolvingRicartAgrawala,
        _known: &RicartAgrawalaKnowledge,
        news: &mut RicartAgrawalaKnowledge,
    ) {
        node.ask(node.requested + 1, news);
    }
}

/// Answers every request that it knows of while it waits.
struct AnswersWhileRequesting;

impl Mutation<EvolvingRicartAgrawala> for AnswersWhileRequesting {
    fn listed(&self) -> Listed {
        Listed {
            name: "answers-while-requesting",
            breaks: "a node that has asked answers later requests too",
            property: property::MUTUAL_EXCLUSION,
        }
    }

    fn on_rules(
        &self,
        node: &mut EvolvingRicartAgrawala,
        group: &Group,
        known: &RicartAgrawalaKnowledge,
        news: &mut RicartAgrawalaKnowledge,
    ) -> Applied {
        if node.phase != Phase::Waiting {
            return node.on_rules(group, known, news);
        }
        let has_news = node.answer(known, news, |_| true);
        Applied { has_news, ..node.enter(group, known) }
    }
}

/// Sends the token with a clock that others do not advance.
struct DeafToken;

impl Mutation<EvolvingHelary> for DeafToken {
    fn listed(&self) -> Listed {
        Listed {
            name: "deaf-clock",
            breaks: "the token is sent by the owner's own clock; contacts do not advance it",
            property: property::NOBODY_WAITS_FOR_EVER,
        }
    }

    fn on_rules(
        &self,
        node: &mut EvolvingHelary,
        _group: &Group,
        known: &HelaryKnowledge,
        news: &mut HelaryKnowledge,
    ) -> Applied {
        let has_news = node.send(node.requested + 1, known, news);
        node.has_token &= !has_news;
        Applied { entered: node.receive(known), has_news, ..Applied::default() }
    }
}

/// Sends a copy of the token, and enters with the original.
struct KeepsToken;

impl Mutation<EvolvingHelary> for KeepsToken {
    fn listed(&self) -> Listed {
        Listed {
            name: "keeps-token",
            breaks: "the owner sends a copy of the token, keeps it and enters with it",
            property: property::MUTUAL_EXCLUSION,
        }
    }

    fn on_rules(
        &self,
        node: &mut EvolvingHelary,
        _group: &Group,
        known: &HelaryKnowledge,
        news: &mut HelaryKnowledge,
    ) -> Applied {
        let is_sent = known.pending().iter().any(|pending| pending.answers > 0);
        let has_news = !is_sent && node.send(known.clock + 1, known, news);
        if node.phase == Phase::Waiting && node.has_token {
            node.phase = Phase::Inside;
            let entered = Some(Fence(known.clock + 1));
            return Applied { entered, has_news, ..Applied::default() };
        }
        Applied { entered: node.receive(known), has_news, ..Applied::default() }
    }
}

/// Leaves and does not note it.
struct ForgetsService;

impl Mutation<EvolvingHelary> for ForgetsService {
    fn listed(&self) -> Listed {
        Listed {
            name: "forgets-service",
            breaks: "a node that leaves does not note that it was served, and is sent the token again",
            property: property::NOBODY_WAITS_FOR_EVER,
        }
    }

    fn on_release(
        &self,
        node: &mut EvolvingHelary,
        _known: &HelaryKnowledge,
        _news: &mut HelaryKnowledge,
    ) {
        node.phase = Phase::Idle;
    }
}
