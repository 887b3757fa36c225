//! How voters reach each other: over whatever links the node has.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use openraft::error::{
    InstallSnapshotError, NetworkError, RPCError, RaftError, RemoteError, Timeout, Unreachable,
};
use openraft::network::{Backoff, RPCOption};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::{BasicNode, RPCTypes, RaftNetwork, RaftNetworkFactory};
use tokio::sync::watch;

use super::wire::{Id, Reply, Request, Types, decode_reply, encode_request};

/// The reply to a request, when it comes.
pub type Calling<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, CallError>> + Send + 'a>>;

/// Carries requests to other members, and their replies back. Requests have at most
/// [`LONGEST_MESSAGE`](super::LONGEST_MESSAGE) bytes. On the other side
/// [`Embedded::serve`](super::Embedded::serve) makes the reply.
///
/// An exchange belongs to its caller: if the future is dropped, its reply must not be given to the next
/// caller. So a connection is used again only after a complete exchange.
pub trait Transport: Send + Sync + 'static {
    /// Asks a member.
    fn call<'a>(&'a self, to: &'a str, request: Vec<u8>) -> Calling<'a>;
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Nothing of the request got there.
    #[error("{0}")]
    NotSent(String),
    /// The request may have got there.
    #[error("{0}")]
    NoReply(String),
}

/// A node alone has nobody to call.
pub struct Nobody;

impl Transport for Nobody {
    fn call<'a>(&'a self, to: &'a str, _: Vec<u8>) -> Calling<'a> {
        Box::pin(async move { Err(CallError::NotSent(format!("there is no way to '{to}'"))) })
    }
}

/// The other members, as seen from here.
pub(super) struct Peers {
    group: String,
    transport: Arc<dyn Transport>,
    /// Whether the last call got through.
    reached: Mutex<BTreeMap<String, bool>>,
    /// The voter that was told that its group has gone on without it.
    pub(super) gone: watch::Sender<Option<Id>>,
}

impl Peers {
    pub(super) fn new(group: &str, transport: Arc<dyn Transport>) -> Self {
        let (gone, _) = watch::channel(None);
        Peers { group: group.to_string(), transport, reached: Mutex::default(), gone }
    }

    /// Asks a member, for so long.
    pub(super) async fn ask(
        &self,
        to: &str,
        request: &Request,
        within: Duration,
    ) -> Result<Reply, CallError> {
        let bytes = encode_request(&self.group, request);
        let bytes = bytes.map_err(|error| CallError::NotSent(error.to_string()))?;
        let outcome = match tokio::time::timeout(within, self.transport.call(to, bytes)).await {
            Ok(Ok(reply)) => {
                decode_reply(&reply).map_err(|error| CallError::NoReply(error.to_string()))
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(CallError::NoReply(format!("'{to}' did not reply in time"))),
        };
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        reached.insert(to.to_string(), outcome.is_ok());
        outcome
    }

    pub(super) fn is_missing(&self, name: &str) -> bool {
        let reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        reached.get(name) == Some(&false)
    }
}

/// Makes Raft's connections.
pub(super) struct Links {
    pub(super) me: Id,
    pub(super) peers: Arc<Peers>,
}

impl RaftNetworkFactory<Types> for Links {
    type Network = Link;

    async fn new_client(&mut self, target: Id, node: &BasicNode) -> Link {
        Link { me: self.me, target, name: node.addr.clone(), peers: self.peers.clone() }
    }
}

/// Raft's way to one voter.
pub(super) struct Link {
    me: Id,
    target: Id,
    name: String,
    peers: Arc<Peers>,
}

type Failed<E> = RPCError<Id, BasicNode, RaftError<Id, E>>;

impl Link {
    async fn ask<E: std::error::Error>(
        &self,
        action: RPCTypes,
        request: Request,
        option: &RPCOption,
    ) -> Result<Reply, Failed<E>> {
        // Before openraft's own limit, at which it drops the call.
        let timeout = option.soft_ttl();
        match self.peers.ask(&self.name, &request, timeout).await {
            Ok(reply) => Ok(reply),
            // Not reached: ask again after a while and not at once.
            Err(error @ CallError::NotSent(_)) => Err(Unreachable::new(&error).into()),
            Err(CallError::NoReply(_)) => {
                Err(Timeout { action, id: self.me, target: self.target, timeout }.into())
            }
        }
    }

    /// What to make of a reply that is none.
    fn odd<E: std::error::Error>(&self, reply: Reply) -> Failed<E> {
        let why = match reply {
            Reply::Failed(why) => why,
            _ => "the reply fits another request".to_string(),
        };
        Unreachable::new(&CallError::NoReply(format!("'{}': {why}", self.name))).into()
    }
}

impl RaftNetwork<Types> for Link {
    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<Id>, Failed<openraft::error::Infallible>> {
        let request = Request::Append { to: self.target, rpc };
        match self.ask(RPCTypes::AppendEntries, request, &option).await? {
            Reply::Append(response) => Ok(response),
            reply => Err(self.odd(reply)),
        }
    }

    async fn install_snapshot(
        &mut self,
        rpc: InstallSnapshotRequest<Types>,
        option: RPCOption,
    ) -> Result<InstallSnapshotResponse<Id>, Failed<InstallSnapshotError>> {
        let request = Request::Snapshot { to: self.target, rpc };
        match self.ask(RPCTypes::InstallSnapshot, request, &option).await {
            Ok(Reply::Snapshot(response)) => Ok(response),
            Ok(Reply::Restart(mismatch)) => {
                let error = RaftError::APIError(InstallSnapshotError::SnapshotMismatch(mismatch));
                Err(RPCError::RemoteError(RemoteError::new(self.target, error)))
            }
            Ok(reply) => Err(self.odd(reply)),
            Err(RPCError::Unreachable(error)) => Err(NetworkError::new(&error).into()),
            Err(error) => Err(error),
        }
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<Id>,
        option: RPCOption,
    ) -> Result<VoteResponse<Id>, Failed<openraft::error::Infallible>> {
        let request = Request::Vote { to: self.target, rpc };
        match self.ask(RPCTypes::Vote, request, &option).await? {
            Reply::Vote(response) => Ok(response),
            reply => {
                if matches!(reply, Reply::Gone) {
                    self.peers.gone.send_replace(Some(self.me));
                }
                Err(self.odd(reply))
            }
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(Duration::from_millis(100)))
    }
}
