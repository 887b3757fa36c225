//! The registry in an etcd cluster that is there already.
//!
//! A transaction of ours is a transaction of etcd, and its revisions are ours: they grow with what others
//! write there, too. Everything of a group is behind `catraca/GROUP/`; a user of etcd needs permission to
//! read and write that. Its own leases are not used: see [`catraca_group::registry`] for why a registry
//! needs no clock. The client is our own, with the few messages of etcd that it takes.
//!
//! Every beat of a member adds a revision to etcd, which keeps all of them until it is told to compact:
//! start it with `--auto-compaction-retention=1h`, or watch it fill up.

mod cluster;
mod fault;
mod health;
mod link;
mod options;
mod terms;
mod watch;
#[doc(hidden)]
pub mod wire;

use std::sync::Arc;

pub use options::{BadUrl, Options, PASSWORD_VARIABLE, Password, TIMEOUT, Tls, User};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use self::cluster::Cluster;
use self::health::Look;
use self::watch::Watcher;
use crate::{Answering, Health, Registry, Revision, Trouble, Txn, Word};

/// So many words wait for somebody who watches.
const WORDS: usize = 64;

/// A registry in etcd.
pub struct Etcd {
    cluster: Arc<Cluster>,
    look: Arc<Look>,
    looking: JoinHandle<()>,
}

impl Etcd {
    /// Connects to the first member that answers. It needs the runtime of tokio.
    pub async fn connect(options: Options) -> Result<Etcd, Trouble> {
        let cluster = Arc::new(Cluster::new(options)?);
        let read = cluster.prefix.request(&Txn::read());
        cluster.txn(read, true).await?;
        let look = Arc::new(Look::default());
        let looking = health::keep_looking(Arc::clone(&cluster), Arc::clone(&look));
        Ok(Etcd { cluster, look, looking: tokio::spawn(looking) })
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

impl Registry for Etcd {
    fn txn(&self, txn: Txn) -> Answering<'_> {
        Box::pin(async move {
            txn.check().map_err(|why| Trouble::Refused(why.to_string()))?;
            let prefix = &self.cluster.prefix;
            let answer = self.cluster.txn(prefix.request(&txn), txn.is_read()).await?;
            // It was carried out, but nobody can say what came of it.
            prefix.answer(&txn, answer).map_err(Trouble::Unknown)
        })
    }

    fn watch(&self, after: Revision) -> mpsc::Receiver<Word> {
        let (tell, words) = mpsc::channel(WORDS);
        tokio::spawn(Watcher::new(Arc::clone(&self.cluster), after, tell).run());
        words
    }

    fn health(&self) -> Health {
        self.look.last(&self.cluster)
    }
}
