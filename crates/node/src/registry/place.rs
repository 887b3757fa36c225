//! Where the registry of a group is.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use catraca_client::protocol::RegistryKind;
use catraca_registry::embedded::{OpenError, Options, Transport};
use catraca_registry::etcd::{self, BadUrl};
use catraca_registry::{
    Answering, Embedded, Etcd, Health, Memory, Registry, Revision, Trouble, Txn, Word,
};
use tokio::sync::{OnceCell, mpsc};

use super::Calls;

/// After so long an etcd that could not be reached is tried again.
const AGAIN: Duration = Duration::from_millis(500);

/// Where a group keeps its registry: who its members are, their leases, and durable holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryPlace {
    /// In the memory of this process: only for a group of one, and only until it ends.
    Memory,
    /// Replicated among the first members of the group; this one keeps its part in this directory.
    Directory(PathBuf),
    /// In an etcd cluster: `etcd://user@host:2379,host2:2379?password-file=FILE`, or `etcds://`.
    Etcd(String),
}

impl RegistryPlace {
    /// What those who want to join are told of it.
    pub(crate) fn kind(&self) -> RegistryKind {
        match self {
            RegistryPlace::Memory => RegistryKind::Memory,
            RegistryPlace::Directory(_) => RegistryKind::Members,
            RegistryPlace::Etcd(_) => RegistryKind::Etcd,
        }
    }
}

/// Why the registry cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The address of etcd cannot be read.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// etcd will not have us.
    #[error("{0}")]
    Refused(Trouble),
    /// Several members and no place that all of them reach.
    #[error(
        "a group of several members needs a registry that all of them reach: give this node a directory for its data, or the address of etcd"
    )]
    Nowhere,
}

/// A registry that is open.
pub(crate) struct Opened {
    pub(crate) registry: Arc<dyn Registry>,
    /// The same, if it is replicated among the members.
    pub(crate) embedded: Option<Embedded>,
}

impl Opened {
    /// Opens the registry of member `me` of a group. `members` are all of them, in the same order
    /// everywhere. Whoever joins a group may not begin one.
    pub(crate) async fn open(
        place: &RegistryPlace,
        group: &str,
        me: &str,
        members: Vec<String>,
        joins: bool,
        calls: &Arc<Calls>,
    ) -> Result<Opened, RegistryError> {
        match place {
            RegistryPlace::Memory if members.len() > 1 => Err(RegistryError::Nowhere),
            RegistryPlace::Memory => Ok(Opened::of(Arc::new(Memory::default()))),
            RegistryPlace::Directory(directory) => {
                let transport = Arc::clone(calls) as Arc<dyn Transport>;
                let alone = Options::alone(directory, group, me);
                let options = Options { members, may_form: !joins, transport, ..alone };
                let embedded = Embedded::open(options).await?;
                calls.serve(embedded.clone());
                let registry = Arc::new(embedded.clone());
                Ok(Opened { registry, embedded: Some(embedded) })
            }
            RegistryPlace::Etcd(url) => {
                let options = etcd::Options::parse(url, group)?;
                let late = Late(Arc::new(Connecting { options, etcd: OnceCell::new() }));
                match late.0.etcd().await {
                    Err(refused @ Trouble::Refused(_)) => Err(RegistryError::Refused(refused)),
                    Err(why) => {
                        tracing::warn!(%why, "this node waits for its registry");
                        Ok(Opened::of(Arc::new(late)))
                    }
                    Ok(_) => Ok(Opened::of(Arc::new(late))),
                }
            }
        }
    }

    /// One that is open already.
    pub(crate) fn of(registry: Arc<dyn Registry>) -> Self {
        Opened { registry, embedded: None }
    }
}

/// An etcd that may have yet to be reached.
struct Late(Arc<Connecting>);

struct Connecting {
    options: etcd::Options,
    etcd: OnceCell<Etcd>,
}

impl Connecting {
    async fn etcd(&self) -> Result<&Etcd, Trouble> {
        self.etcd.get_or_try_init(|| Etcd::connect(self.options.clone())).await
    }
}

impl Registry for Late {
    fn txn(&self, txn: Txn) -> Answering<'_> {
        Box::pin(async move { self.0.etcd().await?.txn(txn).await })
    }

    fn watch(&self, after: Revision) -> mpsc::Receiver<Word> {
        if let Some(etcd) = self.0.etcd.get() {
            return etcd.watch(after);
        }
        let (tell, words) = mpsc::channel(1);
        let connecting = Arc::clone(&self.0);
        tokio::spawn(async move {
            let etcd = loop {
                match connecting.etcd().await {
                    Ok(etcd) => break etcd,
                    Err(_) => tokio::time::sleep(AGAIN).await,
                }
            };
            let mut later = etcd.watch(after);
            while let Some(word) = later.recv().await {
                if tell.send(word).await.is_err() {
                    return;
                }
            }
        });
        words
    }

    fn health(&self) -> Health {
        match self.0.etcd.get() {
            Some(etcd) => etcd.health(),
            None => Health {
                place: "etcd".to_string(),
                trouble: Some("etcd has not been reached yet".to_string()),
                ..Health::default()
            },
        }
    }
}
