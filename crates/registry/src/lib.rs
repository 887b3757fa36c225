//! Where a group keeps its registry.
//!
//! What a registry offers is in [`catraca_group::registry`]: guarded transactions on a small map. Here
//! are the places where it can be. Whoever uses one cannot tell which it is; one set of tests runs
//! against all of them.

pub mod embedded;
pub mod etcd;
mod memory;

use std::future::Future;
use std::pin::Pin;

pub use catraca_group::registry::{
    Answer, Guard, Item, Op, Page, Revision, Store, Trouble, Txn, Word,
};
pub use embedded::Embedded;
pub use etcd::Etcd;
pub use memory::Memory;
use tokio::sync::mpsc;

/// The answer to a transaction, when it comes.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Answer, Trouble>> + Send + 'a>>;

/// A registry, wherever it is.
pub trait Registry: Send + Sync + 'static {
    /// Carries out a transaction. It ends in bounded time, with [`Trouble`] if need be. If the future
    /// is dropped, the transaction may or may not be carried out.
    fn txn(&self, txn: Txn) -> Answering<'_>;

    /// Tells of every change after a revision, in order, until the receiver is dropped. Whatever
    /// happens to connections meanwhile, nothing is left out without a [`Word::Gap`].
    fn watch(&self, after: Revision) -> mpsc::Receiver<Word>;

    /// How it is doing.
    fn health(&self) -> Health;
}

/// How a registry is doing, for operators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Where it is, in a word or two.
    pub place: String,
    /// Who leads it, if that is known.
    pub leader: Option<String>,
    /// Whose votes count.
    pub voters: Vec<String>,
    /// Those of them that cannot be reached from here.
    pub missing: Vec<String>,
    /// What is wrong with it, if something is.
    pub trouble: Option<String>,
}
