//! What a node is told about who may use it.

use std::net::IpAddr;
use std::path::PathBuf;

use crate::access::Role;

/// Who may use a node, and how connections are protected. The usual one asks nobody, and is for nodes
/// that only their own machine reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityConfig {
    /// Whether the node may listen where other machines reach it without asking them who they are.
    pub is_insecure: bool,
    /// The file of tokens.
    pub tokens: Option<PathBuf>,
    /// The file with the token that this node shows to other members, where there are no certificates.
    pub own_token: Option<PathBuf>,
    /// What protects connections.
    pub tls: Option<TlsFiles>,
    /// Where users of this machine find the node, as a Unix socket.
    pub socket: Option<PathBuf>,
    /// What users of this machine may do by that socket, where others have to show who they are.
    pub socket_role: Role,
    /// Users who may administer by that socket, besides root and the node's own.
    pub socket_administrators: Vec<u32>,
    /// What whoever has a client's certificate may do.
    pub certificate_role: Role,
    /// Whose client's certificates are good for administering.
    pub certificate_administrators: Vec<String>,
}

/// The files that TLS needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The node's certificate, and those between it and its authority.
    pub certificate: PathBuf,
    /// The key that belongs to it.
    pub key: PathBuf,
    /// The authority that members and clients have their certificates from. With it members prove to
    /// each other who they are, and clients may.
    pub authority: Option<PathBuf>,
}

impl Default for SecurityConfig {
    fn default() -> Self {
        SecurityConfig {
            is_insecure: false,
            tokens: None,
            own_token: None,
            tls: None,
            socket: None,
            socket_role: Role::Lock,
            socket_administrators: Vec::new(),
            certificate_role: Role::Lock,
            certificate_administrators: Vec::new(),
        }
    }
}

impl SecurityConfig {
    /// Whether whoever comes over a network has to show who it is.
    pub fn authenticates(&self) -> bool {
        self.tokens.is_some() || self.trusts_certificates()
    }

    /// Whether members prove themselves by certificates, and clients may.
    pub(crate) fn trusts_certificates(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.authority.is_some())
    }

    /// Whether the node may listen at this address.
    pub fn may_listen_at(&self, address: IpAddr) -> bool {
        address.to_canonical().is_loopback() || self.is_insecure || self.authenticates()
    }
}
