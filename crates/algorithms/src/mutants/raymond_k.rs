//! Broken variants of Raymond's k-algorithm.

use catraca_core::{Algorithm, Effects, NodeId, Phase, property};

use super::{Caught, Listed, Mutation, Setting};
use crate::raymond_k::{Config, Msg, RaymondK};

pub(crate) const ALL: &[&dyn Mutation<RaymondK>] = &[&LateAnswersCount, &ReplyWhileInside];

/// Takes any answer for a permission.
struct LateAnswersCount;

impl Mutation<RaymondK> for LateAnswersCount {
    fn listed(&self) -> Listed {
        Listed {
            name: "late-answers-count",
            breaks: "an answer to an earlier request counts as permission for the present one",
            caught: Caught::Checked { nodes: 3, requests: 2, property: property::MUTUAL_EXCLUSION },
        }
    }

    fn setting(&self) -> Setting {
        Setting { k: Some(2), crashes: 0 }
    }

    fn on_message(
        &self,
        node: &mut RaymondK,
        config: &Config,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        if let Msg::Reply(count) = message
            && node.phase == Phase::Waiting
            && node.reply_count[from.index()] > count
        {
            node.reply_count[from.index()] -= count;
            node.perm_count += 1;
            return node.enter_if_permitted(config, out);
        }
        node.on_message(config, from, message, out);
    }
}

/// Answers at once even while it is inside.
struct ReplyWhileInside;

impl Mutation<RaymondK> for ReplyWhileInside {
    fn listed(&self) -> Listed {
        Listed {
            name: "reply-while-inside",
            breaks: "a node answers requests while it is inside",
            caught: Caught::Checked { nodes: 3, requests: 1, property: property::MUTUAL_EXCLUSION },
        }
    }

    fn setting(&self) -> Setting {
        Setting { k: Some(2), crashes: 0 }
    }

    fn on_message(
        &self,
        node: &mut RaymondK,
        config: &Config,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        match message {
            Msg::Request(time) if node.phase == Phase::Inside => {
                node.clock.witness(time);
                out.send(from, Msg::Reply(1));
            }
            _ => node.on_message(config, from, message, out),
        }
    }
}
