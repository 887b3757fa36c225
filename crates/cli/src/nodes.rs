//! Which nodes a command asks, and what it shows to them: the same flags for all of them.

use std::path::PathBuf;

use catraca_client::tls::Tls;
use catraca_client::{Credentials, DEFAULT_ADDRESS, Nodes, usual_sockets};

use crate::failure::Failure;
use crate::output::reason;
use crate::value::at_node;

/// The token itself, where no file has it.
const TOKEN: &str = "CATRACA_TOKEN";

/// The flags of a command that asks a node.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct NodeArguments {
    /// The nodes to ask, the first that serves: HOST:PORT, or the path of a Unix socket. By default the
    /// node of this machine: its socket, or 127.0.0.1:7800.
    #[arg(long, global = true, env = "CATRACA_NODE", value_name = "ADDR,...", value_delimiter = ',', value_parser = at_node)]
    node: Vec<String>,
    /// A file with the token to show; without it the token is what CATRACA_TOKEN says.
    #[arg(long, global = true, env = "CATRACA_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Use TLS, and trust the authority whose certificate is in this file.
    #[arg(long, global = true, env = "CATRACA_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
    /// A certificate to show.
    #[arg(long, global = true, env = "CATRACA_CERT", value_name = "FILE")]
    cert: Option<PathBuf>,
    /// The key that belongs to the certificate.
    #[arg(long, global = true, env = "CATRACA_KEY", value_name = "FILE")]
    key: Option<PathBuf>,
}

impl NodeArguments {
    /// The nodes, and what is shown to them.
    pub(crate) fn nodes(&self) -> Result<Nodes, Failure> {
        let addresses = if self.node.is_empty() { usual_addresses() } else { self.node.clone() };
        Ok(Nodes::at(addresses).showing(self.credentials()?))
    }

    fn credentials(&self) -> Result<Credentials, Failure> {
        let mut credentials = Credentials::default();
        if let Some(path) = &self.token_file {
            let wrong = |error| {
                let why = reason(&error);
                Failure::Input(format!("--token-file: cannot read '{}': {why}", path.display()))
            };
            credentials = credentials.with_token_file(path).map_err(wrong)?;
        } else if let Some(token) = std::env::var(TOKEN).ok().filter(|token| !token.is_empty()) {
            credentials = credentials.with_token(token.trim());
        }
        let own = match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => Some((certificate.as_path(), key.as_path())),
            (None, None) => None,
            _ => return Err(Failure::input("--cert and --key belong together: say both")),
        };
        match &self.ca {
            Some(authority) => {
                let tls = Tls::new(authority, own).map_err(Failure::input)?;
                Ok(credentials.with_tls(tls))
            }
            None if own.is_some() => Err(Failure::input(
                "--cert is shown over TLS: say --ca with the authority to trust",
            )),
            None => Ok(credentials),
        }
    }
}

/// The node of this machine: by its socket if there is one, or else at the usual address.
fn usual_addresses() -> Vec<String> {
    let sockets = usual_sockets().into_iter();
    let sockets = sockets.filter_map(|path| path.into_os_string().into_string().ok());
    sockets.chain([DEFAULT_ADDRESS.to_string()]).collect()
}
