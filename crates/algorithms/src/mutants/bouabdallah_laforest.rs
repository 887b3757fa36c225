//! Broken variants of Bouabdallah-Laforest.

use catraca_core::{Algorithm, Claim, Effects, NodeId, property};

use super::{Caught, Listed, Mutation};
use crate::bouabdallah_laforest::{BouabdallahLaforest, Msg, Sharing};

pub(crate) const ALL: &[&dyn Mutation<BouabdallahLaforest>] =
    &[&GivesWhileUsing, &ForgetsQuestion, &PassesBeforeAcks, &NotLast];

/// Answers with tokens that it uses.
struct GivesWhileUsing;

impl Mutation<BouabdallahLaforest> for GivesWhileUsing {
    fn listed(&self) -> Listed {
        Listed {
            name: "gives-while-using",
            breaks: "a node that is asked for tokens that it uses gives them at once",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::MUTUAL_EXCLUSION },
        }
    }

    fn on_message(
        &self,
        node: &mut BouabdallahLaforest,
        config: &Sharing,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        let locked = node.locked;
        if let Msg::Inquire(wanted) = &message {
            // Tokens that are still to come cannot be given.
            node.locked &= wanted.resources().iter().any(|wanted| !node.present.contains(wanted));
        }
        node.on_message(config, from, message, out);
        node.locked |= locked;
    }
}

/// Does not remember who asked for tokens that it uses.
struct ForgetsQuestion;

impl Mutation<BouabdallahLaforest> for ForgetsQuestion {
    fn listed(&self) -> Listed {
        Listed {
            name: "forgets-question",
            breaks: "a node that is asked for tokens that it uses does not send them when it leaves",
            caught: Caught::Checked {
                nodes: 2,
                requests: 1,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_release(&self, node: &mut BouabdallahLaforest, config: &Sharing, out: &mut Effects<Msg>) {
        node.questions.clear();
        node.on_release(config, out);
    }
}

/// Passes the control token on while its questions travel.
struct PassesBeforeAcks;

impl Mutation<BouabdallahLaforest> for PassesBeforeAcks {
    fn listed(&self) -> Listed {
        Listed {
            name: "passes-before-acks",
            breaks: "the control token goes on before those who were asked for tokens have answered",
            caught: Caught::Checked {
                nodes: 2,
                requests: 2,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_message(
        &self,
        node: &mut BouabdallahLaforest,
        config: &Sharing,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        node.on_message(config, from, message, out);
        node.pass_control(out);
    }
}

/// Takes tokens without writing itself into the control token.
struct NotLast;

impl Mutation<BouabdallahLaforest> for NotLast {
    fn listed(&self) -> Listed {
        Listed {
            name: "not-last",
            breaks: "a node that has the control token already takes tokens and leaves them marked as free",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::MUTUAL_EXCLUSION },
        }
    }

    fn on_request(
        &self,
        node: &mut BouabdallahLaforest,
        config: &Sharing,
        claim: Claim,
        out: &mut Effects<Msg>,
    ) {
        node.on_request(config, claim.clone(), out);
        if let Some(control) = &mut node.control {
            control.last.retain(|resource, _| !claim.contains(*resource));
        }
    }
}
