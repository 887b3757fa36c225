//! What a node is told about who may use it.

use std::net::IpAddr;
use std::path::PathBuf;

use catraca_client::tls::can_certify;
use catraca_group::Member;
use serde::Deserialize;

use super::ConfigError;
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
    /// Whether the node starts without that socket if it cannot have it.
    pub may_lack_socket: bool,
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
            may_lack_socket: false,
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

    /// Whether there are files that can be read again.
    pub fn has_files(&self) -> bool {
        self.tokens.is_some() || self.own_token.is_some() || self.tls.is_some()
    }

    /// Whether it fits a group of these members.
    pub(super) fn check(&self, members: &[Member]) -> Result<(), ConfigError> {
        let Some(tls) = &self.tls else { return Ok(()) };
        if members.len() > 1 && tls.authority.is_none() {
            return Err(ConfigError::NoAuthority);
        }
        match members.iter().find(|member| !can_certify(&member.name)) {
            Some(member) if tls.authority.is_some() => {
                Err(ConfigError::Uncertifiable(member.name.clone()))
            }
            _ => Ok(()),
        }
    }

    /// Whether tokens travel unprotected to a node that listens at this address.
    pub(crate) fn shows_tokens(&self, address: IpAddr) -> bool {
        self.tokens.is_some() && self.tls.is_none() && !address.to_canonical().is_loopback()
    }

    /// Whether the node may listen at this address.
    pub fn may_listen_at(&self, address: IpAddr) -> bool {
        address.to_canonical().is_loopback() || self.is_insecure || self.authenticates()
    }
}

/// The same, as the table of a file says it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SecurityEntry {
    #[serde(default)]
    insecure: bool,
    tokens: Option<PathBuf>,
    token_file: Option<PathBuf>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    tls_ca: Option<PathBuf>,
    socket: Option<PathBuf>,
    socket_role: Option<Role>,
    #[serde(default)]
    socket_administrators: Vec<u32>,
    certificate_role: Option<Role>,
    #[serde(default)]
    certificate_administrators: Vec<String>,
}

impl SecurityEntry {
    pub(super) fn config(&self) -> Result<SecurityConfig, ConfigError> {
        let usual = SecurityConfig::default();
        let (certificate, key) = (self.tls_cert.clone(), self.tls_key.clone());
        Ok(SecurityConfig {
            is_insecure: self.insecure,
            tokens: self.tokens.clone(),
            own_token: self.token_file.clone(),
            tls: TlsFiles::of(certificate, key, self.tls_ca.clone())?,
            socket: self.socket.clone(),
            may_lack_socket: false,
            socket_role: self.socket_role.unwrap_or(usual.socket_role),
            socket_administrators: self.socket_administrators.clone(),
            certificate_role: self.certificate_role.unwrap_or(usual.certificate_role),
            certificate_administrators: self.certificate_administrators.clone(),
        })
    }
}

impl TlsFiles {
    /// The files, if there are any: a certificate and a key go together, and an authority needs both.
    pub fn of(
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
        authority: Option<PathBuf>,
    ) -> Result<Option<Self>, ConfigError> {
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key, authority })),
            (None, None) if authority.is_none() => Ok(None),
            _ => Err(ConfigError::Incomplete),
        }
    }
}
