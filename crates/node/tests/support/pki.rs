//! Authorities, and certificates of them, good ones and bad ones.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use catraca_client::Credentials;
use catraca_client::tls::Tls;
use catraca_node::{SecurityConfig, TlsFiles};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    SanType, date_time_ymd,
};

/// What a certificate is like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Member,
    Client,
    /// One of a member that was good until yesterday.
    Expired,
}

/// An authority whose files are in a folder.
pub(crate) struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate.
    pub(crate) file: PathBuf,
}

impl Authority {
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let file = folder.join(format!("{name}.pem"));
        std::fs::write(&file, params.self_signed(&key).unwrap().pem()).unwrap();
        Authority { folder: folder.into(), issuer: Issuer::new(params, key), file }
    }

    /// The files of a certificate for `name`, whatever was there before.
    pub(crate) fn issue(&self, file: &str, name: &str, kind: Kind) -> TlsFiles {
        let mut params = CertificateParams::new([name.to_string()]).unwrap();
        params.subject_alt_names.push(SanType::IpAddress([127, 0, 0, 1].into()));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if kind != Kind::Client {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        let day = Duration::from_secs(86_400);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let now = date_time_ymd(1970, 1, 1) + now;
        let last = if kind == Kind::Expired { now - day } else { now + day };
        (params.not_before, params.not_after) = (last - 2 * day, last);
        let key = KeyPair::generate().unwrap();
        let certificate = self.folder.join(format!("{file}.pem"));
        let key_file = self.folder.join(format!("{file}-key.pem"));
        let made = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(&certificate, made.pem()).unwrap();
        std::fs::write(&key_file, key.serialize_pem()).unwrap();
        std::fs::set_permissions(&key_file, PermissionsExt::from_mode(0o600)).unwrap();
        TlsFiles { certificate, key: key_file, authority: Some(self.file.clone()) }
    }

    /// What a node is told that is this member.
    pub(crate) fn member(&self, name: &str) -> SecurityConfig {
        let tls = Some(self.issue(name, name, Kind::Member));
        SecurityConfig { tls, ..SecurityConfig::default() }
    }

    /// What a client shows that trusts this authority and has a certificate of it.
    pub(crate) fn client(&self, name: &str, kind: Kind) -> Credentials {
        let TlsFiles { certificate, key, .. } = self.issue(&format!("client-{name}"), name, kind);
        credentials(&self.file, Some((&certificate, &key)))
    }
}

/// What a client shows that trusts the authority in this file.
pub(crate) fn credentials(authority: &Path, own: Option<(&Path, &Path)>) -> Credentials {
    Credentials::default().with_tls(Tls::new(authority, own).unwrap())
}
