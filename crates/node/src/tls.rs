//! TLS of a node: what it shows to whoever calls, whom it believes, and how it calls others.

use std::io;
use std::sync::{Arc, Mutex};

use catraca_client::stream::Stream;
use catraca_client::tls::{self, Tls as Calling, TlsError};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use webpki::{EndEntityCert, KeyUsage};

use crate::access::Certificate;
use crate::config::TlsFiles;
use crate::mutex::hold;

/// TLS as the files say that were read last.
pub(crate) struct Tls {
    files: TlsFiles,
    present: Mutex<Present>,
}

/// What the files said when they were read.
#[derive(Clone)]
struct Present {
    answering: Arc<ServerConfig>,
    /// How other members are called, where there is an authority to know them by.
    calling: Option<Calling>,
    authorities: Option<Arc<RootCertStore>>,
}

impl Tls {
    pub(crate) fn new(files: &TlsFiles) -> Result<Self, TlsError> {
        Ok(Tls { files: files.clone(), present: Mutex::new(Present::read(files)?) })
    }

    /// Reads the files again. If that cannot be done, what they said before stays. Connections that are
    /// there go on as they are.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        let present = Present::read(&self.files)?;
        *hold(&self.present) = present;
        Ok(())
    }

    /// Makes a connection safe that somebody has made, and tells what certificate it shows.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(Stream, Option<Certificate>)> {
        let Present { answering, authorities, .. } = hold(&self.present).clone();
        let stream = TlsAcceptor::from(answering).accept(stream).await?;
        let certificate =
            authorities.and_then(|authorities| certificate(stream.get_ref().1, &authorities));
        Ok((Stream::Tls(Box::new(stream.into())), certificate))
    }

    /// Makes a connection to the member called `name` safe.
    pub(crate) async fn call(&self, stream: TcpStream, name: &str) -> io::Result<Stream> {
        let calling = hold(&self.present).calling.clone();
        let unknown = || {
            io::Error::other(
                "this node has a certificate, but no authority to know other members by: give it one",
            )
        };
        calling.ok_or_else(unknown)?.connect(stream, name).await
    }
}

impl Present {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let TlsFiles { certificate, key, authority } = files;
        let unusable = |reason| TlsError::Unusable { path: certificate.clone(), reason };
        let builder = ServerConfig::builder_with_provider(tls::provider());
        let builder = builder.with_safe_default_protocol_versions().map_err(unusable)?;
        let authorities = authority.as_deref().map(tls::authorities).transpose()?.map(Arc::new);
        let builder = match &authorities {
            None => builder.with_no_client_auth(),
            Some(authorities) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(
                    Arc::clone(authorities),
                    tls::provider(),
                );
                // Clients may have a token instead. Members may not: see `Access::admit_member`.
                let verifier = verifier.allow_unauthenticated().build();
                let unusable = |error: rustls::server::VerifierBuilderError| {
                    unusable(rustls::Error::General(error.to_string()))
                };
                builder.with_client_cert_verifier(verifier.map_err(unusable)?)
            }
        };
        let mut answering = builder
            .with_single_cert(tls::certificates(certificate)?, tls::key(key)?)
            .map_err(unusable)?;
        // Every connection proves itself anew: what was good once may not be any more.
        answering.session_storage = Arc::new(NoServerSessionStorage {});
        answering.send_tls13_tickets = 0;
        let own = (certificate.as_path(), key.as_path());
        let calling =
            authority.as_deref().map(|authority| Calling::new(authority, Some(own))).transpose()?;
        Ok(Present { answering: Arc::new(answering), calling, authorities })
    }
}

/// The certificate that the caller has shown, which the handshake has found to be good for clients.
fn certificate(connection: &ServerConnection, authorities: &RootCertStore) -> Option<Certificate> {
    let (own, between) = connection.peer_certificates()?.split_first()?;
    let parsed = EndEntityCert::try_from(own).ok()?;
    let names = parsed.valid_dns_names().map(str::to_string).collect();
    Some(Certificate { names, is_member: is_for_servers(&parsed, between, authorities) })
}

fn is_for_servers(
    certificate: &EndEntityCert<'_>,
    between: &[CertificateDer<'_>],
    authorities: &RootCertStore,
) -> bool {
    let algorithms = tls::provider().signature_verification_algorithms;
    let verified = certificate.verify_for_usage(
        algorithms.all,
        &authorities.roots,
        between,
        UnixTime::now(),
        KeyUsage::server_auth(),
        None,
        None,
    );
    verified.is_ok()
}
