//! One file a command.

pub(crate) mod algorithms;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod graph;
pub(crate) mod replay;
pub(crate) mod sim;
