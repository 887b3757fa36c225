//! The flags of `catraca node` about who may use it.

use std::path::PathBuf;

use catraca_client::tls::Tls;
use catraca_client::{Credentials, DEFAULT_ADDRESS, Nodes, usual_sockets};
use catraca_node::{Config, Node, SecurityConfig, StartError, TlsFiles};

use super::SERVICE_USER;
use crate::failure::Failure;
use crate::output::reason;

/// Who may use the node, and how connections are protected.
#[derive(clap::Args)]
#[command(next_help_heading = "Security")]
pub(super) struct SecurityArguments {
    /// Ask callers for tokens: a file that 'catraca token add' makes. Read again on SIGHUP.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// A file with the token that this node shows to other members, where they have no certificates.
    #[arg(long, value_name = "FILE", env = "CATRACA_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// Use TLS at every port, with this certificate; 'catraca cert' makes one. Read again on SIGHUP.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key that belongs to the certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The authority that members, and clients who have no token, have their certificates from.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_ca: Option<PathBuf>,
    /// Where users of this machine find the node, instead of a file in $XDG_RUNTIME_DIR/catraca, or in
    /// /run/catraca for the service.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Let everybody in who reaches this node, from wherever.
    #[arg(long)]
    insecure: bool,
}

impl SecurityArguments {
    /// What the flags say, and the rest as it was.
    pub(super) fn apply(&self, config: &mut Config) -> Result<(), Failure> {
        let security = &mut config.security;
        security.is_insecure |= self.insecure;
        let paths = [
            (&self.tokens, &mut security.tokens),
            (&self.token_file, &mut security.own_token),
            (&self.socket, &mut security.socket),
        ];
        for (said, place) in paths {
            if said.is_some() {
                place.clone_from(said);
            }
        }
        if let Some(tls) = self.tls()? {
            security.tls = Some(tls);
        }
        if config.security.socket.is_none() {
            config.security.socket = usual_socket(config);
            config.security.may_lack_socket = true;
        }
        Ok(())
    }

    fn tls(&self) -> Result<Option<TlsFiles>, Failure> {
        let (certificate, key) = (self.tls_cert.clone(), self.tls_key.clone());
        TlsFiles::of(certificate, key, self.tls_ca.clone()).map_err(Failure::input)
    }

    /// The nodes of a group that this one wants to join, and what it shows to them.
    pub(super) fn to_join(&self, addresses: &[String]) -> Result<Nodes, Failure> {
        let mut credentials = Credentials::default();
        if let Some(path) = &self.token_file {
            let wrong = |error| {
                let why = reason(&error);
                Failure::Input(format!("--token-file: cannot read '{}': {why}", path.display()))
            };
            credentials = credentials.with_token_file(path).map_err(wrong)?;
        }
        if let Some(TlsFiles { certificate, key, authority: Some(authority) }) = self.tls()? {
            let tls = Tls::new(&authority, Some((&certificate, &key))).map_err(Failure::input)?;
            credentials = credentials.with_tls(tls);
        }
        Ok(Nodes::at(addresses).showing(credentials))
    }
}

/// Where users of this machine look for a node that was told nothing. The one at the usual port is found
/// without being named.
fn usual_socket(config: &Config) -> Option<PathBuf> {
    let own = config.members.iter().find(|member| member.name == config.name);
    let address = config.listen.as_ref().or(own.map(|member| &member.address))?;
    let name = match address.ends_with(":7800") {
        true => "catraca.sock".to_string(),
        false => format!("{}-{}.sock", config.group, config.name),
    };
    if std::env::var_os("USER").is_some_and(|user| user == SERVICE_USER) {
        return Some(PathBuf::from("/run/catraca").join(name));
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    Some(runtime.filter(|it| it.is_absolute())?.join("catraca").join(name))
}

/// Why a node does not start that is not protected as it should be, with the flags that would help.
pub(super) fn of_start(error: &StartError) -> Failure {
    match error {
        StartError::Insecure(address) => Failure::Input(format!(
            "other machines reach {address}, and nobody would ask them who they are: say --tokens FILE \
             ('catraca token add' makes one), or --tls-cert, --tls-key and --tls-ca ('catraca cert' makes \
             them); or say --insecure to let everybody in"
        )),
        other => Failure::input(other),
    }
}

/// The flags with which a command on this machine gets to the node that listens at `here`.
pub(super) fn way_to(node: &Node, here: &str, security: &SecurityConfig) -> String {
    let is_protected = security.authenticates() || security.tls.is_some();
    match node.socket().filter(|_| is_protected) {
        Some(socket) if usual_sockets().iter().any(|usual| usual == socket) => String::new(),
        Some(socket) => format!(" --node {}", socket.display()),
        None => {
            let node = if here == DEFAULT_ADDRESS { "" } else { &format!(" --node {here}") };
            let ca = if security.tls.is_some() { " --ca FILE" } else { "" };
            let token = if security.tokens.is_some() { " --token-file FILE" } else { "" };
            format!("{node}{ca}{token}")
        }
    }
}

/// Whether SIGHUP means to read files again. At a terminal it means that the terminal is gone, unless there
/// are files to be read.
pub(super) fn reloads(security: &SecurityConfig) -> bool {
    use std::io::{IsTerminal, stderr, stdin, stdout};
    let is_at_terminal = stdin().is_terminal() || stdout().is_terminal() || stderr().is_terminal();
    security.has_files() || !is_at_terminal
}
