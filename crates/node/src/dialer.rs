//! How a node calls other members: over TLS if it has a certificate, with its own token if it has one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use catraca_client::Credentials;
use catraca_client::handshake::Proof;
use catraca_client::stream::Stream;
use tokio::net::TcpStream;

use crate::access::TokenError;
use crate::mutex::hold;
use crate::tls::Tls;
use crate::transport::prepare;

/// Calls other members.
#[derive(Default)]
pub(crate) struct Dialer {
    tls: Option<Arc<Tls>>,
    token: Option<PathBuf>,
    proof: Mutex<Proof>,
}

impl Dialer {
    /// One that shows the token in this file, and uses TLS if there is any.
    pub(crate) fn new(token: Option<&Path>, tls: Option<Arc<Tls>>) -> Result<Self, TokenError> {
        let token = token.map(Path::to_path_buf);
        let dialer = Dialer { tls, token, proof: Mutex::default() };
        dialer.reload()?;
        Ok(dialer)
    }

    /// Reads the token again.
    pub(crate) fn reload(&self) -> Result<(), TokenError> {
        let Some(path) = &self.token else { return Ok(()) };
        let read = Credentials::default().with_token_file(path);
        let system = |reason| TokenError::System { doing: "read", path: path.clone(), reason };
        *hold(&self.proof) = read.map_err(system)?.proof();
        Ok(())
    }

    /// What is said after the hello.
    pub(crate) fn proof(&self) -> Proof {
        hold(&self.proof).clone()
    }

    /// Connects to the member called `name`.
    pub(crate) async fn connect(&self, name: &str, address: &str) -> io::Result<Stream> {
        let stream = TcpStream::connect(address).await?;
        prepare(&stream)?;
        match &self.tls {
            None => Ok(Stream::Tcp(stream)),
            Some(tls) => {
                let safe = tls.call(stream, name).await;
                safe.map_err(|error| match catraca_client::tls::complaint(&error) {
                    Some(why) => io::Error::other(why),
                    None => error,
                })
            }
        }
    }
}
