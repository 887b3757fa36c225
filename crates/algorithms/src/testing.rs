//! What the tests of all algorithms share: one step, and short names for what goes in and out.

use alloc::vec::Vec;

use catraca_core::{Algorithm, Claim, Effect, Effects, Input, NodeId};

/// Gives `input` to `node` and returns the exact list of effects.
pub(crate) fn step<A: Algorithm>(
    node: &mut A,
    config: &A::Config,
    input: Input<A::Message>,
) -> Vec<Effect<A::Message>> {
    let mut out = Effects::new();
    node.step(config, input, &mut out);
    out.drain().collect()
}

/// The application asks.
pub(crate) fn request<M>() -> Input<M> {
    Input::Request(Claim::single())
}

/// `message` arrives from `node`.
pub(crate) fn from<M>(node: u32, message: M) -> Input<M> {
    Input::Message { from: NodeId(node), message }
}

/// `message` is sent to `node`.
pub(crate) fn send<M>(to: u32, message: M) -> Effect<M> {
    Effect::Send { to: NodeId(to), message }
}
