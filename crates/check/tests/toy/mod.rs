//! A small token algorithm for two nodes that can be broken in many ways.

use std::time::Duration;

use catraca_algorithms::Spec;
use catraca_check::{Network, Options, Report, check_group};
use catraca_core::{
    Algorithm, Bounds, Claim, Effects, Fence, Message, NodeId, Snapshot, Start, TimerTag,
};
use serde::{Deserialize, Serialize};

/// How it is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quirk {
    /// Not at all.
    None,
    /// Asks after one of two timers and cancels the other. This is correct.
    AsksByTimer,
    /// Takes no notice of a request that comes while it is inside.
    Forgets,
    /// Sends the token without the last fence.
    RepeatsFences,
    /// Keeps the token that it sends.
    CopiesToken,
    /// Takes a request for impossible.
    Complains,
    /// Asks itself.
    AsksItself,
    /// Asks a node that does not exist.
    AsksNobody,
    /// Lets the application in at the start.
    EntersUnasked,
    /// Announces the token, and takes it for impossible that the token comes first.
    NeedsOrder,
    /// Claims that nothing is ever on its way.
    FalseInvariant,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Msg {
    Ask,
    Announce,
    Token(u64),
}

impl Message for Msg {
    const KINDS: &'static [&'static str] = &["ask", "announce", "token"];

    fn kind(&self) -> usize {
        match self {
            Msg::Ask => 0,
            Msg::Announce => 1,
            Msg::Token(_) => 2,
        }
    }

    fn is_possible(&self, bounds: Bounds) -> bool {
        match *self {
            Msg::Ask | Msg::Announce => true,
            Msg::Token(fence) => bounds.has_count(fence),
        }
    }

    fn carries_token(&self) -> bool {
        matches!(self, Msg::Token(_))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Toy {
    me: NodeId,
    /// The last fence, with the token.
    token: Option<u64>,
    inside: bool,
    /// The other node waits for the token.
    asked: bool,
    announced: bool,
}

impl Toy {
    fn other(&self) -> NodeId {
        NodeId(1 - self.me.0)
    }

    fn enter(&mut self, last: u64, out: &mut Effects<Msg>) {
        self.inside = true;
        self.token = Some(last + 1);
        out.granted(Fence(last + 1));
    }

    fn pass(&mut self, quirk: Quirk, out: &mut Effects<Msg>) {
        let Some(fence) = self.token.take() else { return self.asked = true };
        self.asked = false;
        if quirk == Quirk::CopiesToken {
            self.token = Some(fence);
        }
        if quirk == Quirk::NeedsOrder {
            out.send(self.other(), Msg::Announce);
        }
        out.send(self.other(), Msg::Token(if quirk == Quirk::RepeatsFences { 0 } else { fence }));
    }
}

impl Algorithm for Toy {
    type Message = Msg;
    type Config = Quirk;

    const TOKEN: bool = true;

    fn new(me: NodeId, _quirk: &Quirk, start: &Start) -> Self {
        let token = (start.token() == me).then_some(0);
        Toy { me, token, inside: start.is_inside(me), asked: false, announced: false }
    }

    fn on_start(&mut self, quirk: &Quirk, out: &mut Effects<Msg>) {
        if *quirk == Quirk::EntersUnasked && self.token.is_some() {
            self.enter(0, out);
        }
    }

    fn on_request(&mut self, quirk: &Quirk, _claim: Claim, out: &mut Effects<Msg>) {
        match (self.token, quirk) {
            (Some(last), _) => self.enter(last, out),
            (None, Quirk::AsksByTimer) => {
                for tag in [2, 1, 2] {
                    out.set_timer(TimerTag(tag), Duration::from_secs(1));
                }
            }
            (None, Quirk::AsksItself) => out.send(self.me, Msg::Ask),
            (None, Quirk::AsksNobody) => out.send(NodeId(2), Msg::Ask),
            (None, _) => out.send(self.other(), Msg::Ask),
        }
    }

    fn on_release(&mut self, quirk: &Quirk, out: &mut Effects<Msg>) {
        self.inside = false;
        if self.asked {
            self.pass(*quirk, out);
        }
    }

    fn on_message(&mut self, quirk: &Quirk, _: NodeId, message: Msg, out: &mut Effects<Msg>) {
        match message {
            Msg::Ask if *quirk == Quirk::Complains => out.anomaly("somebody asks"),
            Msg::Ask if self.inside => self.asked = *quirk != Quirk::Forgets,
            Msg::Ask => self.pass(*quirk, out),
            Msg::Announce => self.announced = true,
            Msg::Token(last) => {
                if *quirk == Quirk::NeedsOrder && !self.announced {
                    out.anomaly("the token came unannounced");
                }
                self.announced = false;
                self.enter(last, out);
            }
        }
    }

    fn on_timer(&mut self, _quirk: &Quirk, tag: TimerTag, out: &mut Effects<Msg>) {
        out.cancel_timer(TimerTag(3 - tag.0));
        out.send(self.other(), Msg::Ask);
    }

    fn holds_token(&self) -> bool {
        self.token.is_some()
    }

    fn invariant(group: &Snapshot<'_, Self>) -> Result<(), &'static str> {
        if *group.config == Quirk::FalseInvariant && !group.in_flight.is_empty() {
            return Err("something is on its way");
        }
        Ok(())
    }
}

/// Checks two toys that ask twice each.
pub(crate) fn check_toys(quirk: Quirk, network: Network) -> Report {
    let spec = Spec::new("toy", 2);
    let options = Options {
        requests: 2,
        crashes: 0,
        claims: Vec::new(),
        network,
        threads: 2,
        memory_limit: None,
        state_limit: None,
        stop: None,
    };
    check_group::<Toy>(quirk, &spec, &options, &mut |_| {})
}
