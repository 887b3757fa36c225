//! TLS, for clients and nodes alike. This is the one place that names who does its cryptography.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::stream::Stream;
use crate::system::plain;

/// Who does the cryptography.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Why certificates or keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file cannot be read.
    #[error("cannot read '{}': {}", .path.display(), plain(.reason))]
    System {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// It is not what it should be.
    #[error("there is no {what} in '{}': it has to be a PEM file with one", .path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
    /// A key that everybody knows protects nothing.
    #[error("everybody can read the key '{}'; say: chmod 600 '{}', and make a new one if it was so for long", .0.display(), .0.display())]
    Readable(PathBuf),
    /// Certificate and key do not work together, or not at all.
    #[error("the certificate '{}' cannot be used: {reason}", .path.display())]
    Unusable {
        /// The certificate.
        path: PathBuf,
        /// Why.
        reason: Error,
    },
}

/// The authorities whose certificates are in a file.
pub fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let unusable = |reason| TlsError::Unusable { path: path.into(), reason };
        roots.add(certificate).map_err(unusable)?;
    }
    Ok(roots)
}

/// The certificates in a file, in their order.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(path)?;
    let nothing = || TlsError::Nothing { path: path.into(), what: "certificate" };
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    all.ok().filter(|all| !all.is_empty()).ok_or_else(nothing)
}

/// The key in a file that not everybody can read.
pub fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let system = |reason| TlsError::System { path: path.into(), reason };
    if std::fs::metadata(path).map_err(system)?.mode() & 0o004 != 0 {
        return Err(TlsError::Readable(path.into()));
    }
    let nothing = |_| TlsError::Nothing { path: path.into(), what: "private key" };
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(nothing)
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|reason| TlsError::System { path: path.into(), reason })
}

/// Whether a certificate can be for `name`.
pub fn can_certify(name: &str) -> bool {
    matches!(ServerName::try_from(name), Ok(ServerName::DnsName(_)))
}

/// How somebody who calls uses TLS: whom it trusts, and what it shows of itself.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Trusts the authorities in one file; shows the certificate in another, with its key, if it is to.
    pub fn new(authority: &Path, own: Option<(&Path, &Path)>) -> Result<Self, TlsError> {
        let builder = ClientConfig::builder_with_provider(provider());
        let unusable = |path: &Path| {
            let path = path.to_path_buf();
            move |reason| TlsError::Unusable { path, reason }
        };
        let builder = builder.with_safe_default_protocol_versions();
        let builder = builder.map_err(unusable(authority))?;
        let builder = builder.with_root_certificates(authorities(authority)?);
        let config = match own {
            None => builder.with_no_client_auth(),
            Some((certificate, its_key)) => builder
                .with_client_auth_cert(certificates(certificate)?, key(its_key)?)
                .map_err(unusable(certificate))?,
        };
        Ok(Tls { config: Arc::new(config) })
    }

    /// Makes a connection safe. Whoever answers shows a certificate for `name`, a name or an address.
    pub async fn connect(&self, stream: TcpStream, name: &str) -> io::Result<Stream> {
        let wrong = |_| {
            let why = format!("no certificate can be for '{name}': a name has letters");
            io::Error::new(io::ErrorKind::InvalidInput, why)
        };
        let name = ServerName::try_from(name.to_string()).map_err(wrong)?;
        let connector = TlsConnector::from(Arc::clone(&self.config));
        let stream = connector.connect(name, stream).await.map_err(of_handshake)?;
        Ok(Stream::Tls(Box::new(stream.into())))
    }
}

/// Whoever does not speak TLS hangs up, or says something else.
fn of_handshake(error: io::Error) -> io::Error {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    match error.kind() {
        BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof => {
            io::Error::new(ConnectionReset, "it hung up in the TLS handshake; it may not speak TLS")
        }
        _ => error,
    }
}

/// What TLS says of an error, in words that say what to do; nothing if it is not about TLS.
pub fn complaint(error: &io::Error) -> Option<String> {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>())?;
    Some(match inner {
        Error::InvalidCertificate(why) => match why {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "its certificate is from an authority that is not trusted here".to_string()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired; issue a new one".to_string()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet; compare the clocks".to_string()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!("its certificate is for other names: {why}")
            }
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                "its certificate is not one for servers".to_string()
            }
            other => format!("its certificate is not good: {other}"),
        },
        Error::InvalidMessage(_) => "it may not speak TLS: its answer makes no sense".to_string(),
        Error::AlertReceived(alert) => format!("it refuses our certificate: {alert:?}"),
        other => other.to_string(),
    })
}
