//! Why a client does not get what it asked for.

use std::io;
use std::sync::Arc;

use catraca_group::{Class, Refusal};

use crate::guard::Loss;
use crate::protocol::Over;
use crate::system::plain;

/// Why a node could not be used, or did not do what it was asked for.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there.
    #[error("no node answers at {address}: {}", plain(.reason))]
    Unreachable {
        /// The address.
        address: String,
        /// What the system says.
        reason: Arc<io::Error>,
    },
    /// Somebody listens there, but not a node of ours.
    #[error("what answers at {address} is no node: {reason}")]
    Stranger {
        /// The address.
        address: String,
        /// What went wrong.
        reason: String,
    },
    /// Whoever answers there cannot be trusted, or does not trust us.
    #[error("the node at {address} cannot be used safely: {why}")]
    Untrusted {
        /// The address.
        address: String,
        /// What is wrong.
        why: String,
    },
    /// Somebody takes connections there, but says nothing.
    #[error(
        "the node at {address} accepts calls but does not answer: \
         it may be stopped or overloaded; see its log"
    )]
    Silent {
        /// The address.
        address: String,
    },
    /// The connection broke.
    #[error("the connection to the node broke: {}", plain(.0))]
    Broken(Arc<io::Error>),
    /// The node does not serve this client.
    #[error("the node at {address} refuses us: {why}")]
    Turned {
        /// The address.
        address: String,
        /// Why.
        why: String,
    },
    /// None of several addresses could be used, and why, in the order of trying.
    #[error("none of the addresses can be used: {}", listed(.0))]
    NoneOf(Vec<ClientError>),
    /// The node does not do what it was asked for.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The session is over.
    #[error("{0}")]
    Over(Over),
    /// The locks were lost.
    #[error("the locks are lost: {0}")]
    Lost(Loss),
    /// There is nothing to ask: no address was given.
    #[error("no address of a node was given")]
    NoAddress,
    /// The client was closed.
    #[error("the client was closed")]
    Closed,
}

impl ClientError {
    /// Whether the connection broke. Another one may do better.
    pub fn is_broken(&self) -> bool {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, InvalidData, InvalidInput};
        match self {
            // What cannot be said or understood is not the connection's fault.
            ClientError::Broken(why) => !matches!(why.kind(), InvalidData | InvalidInput),
            ClientError::Unreachable { reason, .. } => {
                matches!(reason.kind(), ConnectionAborted | ConnectionReset)
            }
            ClientError::NoneOf(errors) => errors.iter().any(ClientError::is_broken),
            _ => false,
        }
    }

    /// Why the node refused, if it did.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            ClientError::Refused(why) | ClientError::Over(Over::Excluded(why)) => Some(why),
            ClientError::NoneOf(errors) => errors.iter().find_map(ClientError::refusal),
            _ => None,
        }
    }

    /// What a refusal means for whoever asked. Nothing if no node has answered.
    pub fn class(&self) -> Option<Class> {
        self.refusal().map(Refusal::class)
    }

    /// One error for several addresses.
    pub(crate) fn of_all(mut errors: Vec<ClientError>) -> Self {
        match errors.pop() {
            None => ClientError::NoAddress,
            Some(only) if errors.is_empty() => only,
            Some(last) => {
                errors.push(last);
                ClientError::NoneOf(errors)
            }
        }
    }
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        ClientError::Broken(Arc::new(error))
    }
}

fn listed(errors: &[ClientError]) -> String {
    errors.iter().map(ClientError::to_string).collect::<Vec<_>>().join("; ")
}
