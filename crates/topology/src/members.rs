//! The complete graph: everybody talks to everybody.

/// A group of nodes numbered 0 to `nodes` - 1, each of which can reach every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Members {
    /// How many there are.
    pub nodes: u32,
}
