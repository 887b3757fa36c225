//! One file a command.

pub(crate) mod algorithms;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod replay;
pub(crate) mod sim;
