//! Where a node is: an address of the network, or a Unix socket.

use std::io;
use std::path::{Path, PathBuf};

use tokio::net::{TcpStream, UnixStream};

use crate::credentials::Credentials;
use crate::stream::Stream;

/// The socket of an address that names one: a path, or `unix:` and a path.
pub fn socket(address: &str) -> Option<&Path> {
    match address.strip_prefix("unix:") {
        Some(path) => Some(Path::new(path)),
        None => address.starts_with('/').then(|| Path::new(address)),
    }
}

/// The name that a certificate has to be for: the address without its port.
fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Connects to `address`, over TLS if the credentials say so and it is not on this machine's socket.
pub(crate) async fn connect(address: &str, credentials: &Credentials) -> io::Result<Stream> {
    if let Some(path) = socket(address) {
        return Ok(Stream::Unix(UnixStream::connect(path).await?));
    }
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    match credentials.tls() {
        Some(tls) => tls.connect(stream, host(address)).await,
        None => Ok(Stream::Tcp(stream)),
    }
}

/// The sockets that a node of this machine has if it was told nothing, those that are there: of this
/// user, and of the service.
pub fn usual_sockets() -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let directories =
        runtime.into_iter().filter(|it| it.is_absolute()).map(|it| it.join("catraca"));
    let all = directories.chain([PathBuf::from("/run/catraca")]);
    all.map(|directory| directory.join("catraca.sock")).filter(|path| path.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_socket_or_has_a_host() {
        assert_eq!(socket("/run/catraca/x.sock"), Some(Path::new("/run/catraca/x.sock")));
        assert_eq!(socket("unix:x.sock"), Some(Path::new("x.sock")));
        assert_eq!(socket("host:7800"), None);
        let hosts = ["host:7800", "10.0.0.1:7800", "[::1]:7800"].map(host);
        assert_eq!(hosts, ["host", "10.0.0.1", "::1"]);
    }
}
