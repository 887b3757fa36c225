//! One file a command.

pub(crate) mod algorithms;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod classroom;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod coordinator;
pub(crate) mod demo;
pub(crate) mod experiment;
pub(crate) mod graph;
pub(crate) mod guardian;
pub(crate) mod leave;
pub(crate) mod lock;
pub(crate) mod locks;
pub(crate) mod man;
pub(crate) mod members;
pub(crate) mod node;
pub(crate) mod process;
pub(crate) mod recover;
pub(crate) mod replay;
pub(crate) mod sim;
pub(crate) mod status;
pub(crate) mod swarm;
pub(crate) mod top;
pub(crate) mod unlock;
