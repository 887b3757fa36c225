//! `catraca cert`: an authority of one's own, and certificates of it.

use std::fs::File;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use catraca_client::tls::can_certify;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};

use crate::Outcome;
use crate::failure::Failure;
use crate::output::{Stdout, reason};
use crate::value::within;

/// Makes an authority, and certificates by which members and clients prove themselves.
///
/// Keep the authority's key away from the nodes: whoever has it can be any member. Nodes and clients get
/// ca.pem, and each its own certificate and key.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  catraca cert ca --out pki
  catraca cert issue a --ca pki --out pki --ip 10.0.0.1 --dns a.example.org
  catraca cert issue ana --ca pki --out pki --client --days 30
  catraca node --name a --members a=10.0.0.1:7800,b=10.0.0.2:7800 \\
    --tls-ca pki/ca.pem --tls-cert pki/a.pem --tls-key pki/a-key.pem
  catraca lock --node 10.0.0.1:7800 --ca pki/ca.pem --cert pki/ana.pem --key pki/ana-key.pem deploy -- ./deploy.sh";

#[derive(clap::Subcommand)]
enum Action {
    /// Makes an authority: ca.pem, which everybody may have, and ca-key.pem, which nobody else may.
    Ca {
        #[command(flatten)]
        making: Making,
        /// For how many days it is valid.
        #[arg(long, default_value = "3650", value_name = "N", value_parser = within(1u32, MOST_DAYS))]
        days: u32,
    },
    /// Makes a certificate of the authority: NAME.pem and NAME-key.pem.
    Issue {
        /// The member, or the client, that it is for.
        name: String,
        #[command(flatten)]
        making: Making,
        /// The directory with the authority's ca.pem and ca-key.pem.
        #[arg(long, default_value = ".", value_name = "DIR")]
        ca: PathBuf,
        /// A name of the member's machine, by which clients call it. May be said several times.
        #[arg(long, value_name = "NAME", conflicts_with = "client")]
        dns: Vec<String>,
        /// An address of the member's machine, by which clients call it. May be said several times.
        #[arg(long, value_name = "IP", conflicts_with = "client")]
        ip: Vec<IpAddr>,
        /// For a client, not for a member.
        #[arg(long)]
        client: bool,
        /// For how many days it is valid.
        #[arg(long, default_value = "365", value_name = "N", value_parser = within(1u32, MOST_DAYS))]
        days: u32,
    },
}

/// Where files are written.
#[derive(clap::Args)]
struct Making {
    /// The directory to write to.
    #[arg(long, default_value = ".", value_name = "DIR")]
    out: PathBuf,
    /// Replace files that are there.
    #[arg(long)]
    force: bool,
}

/// Nothing is valid for longer: a hundred years.
const MOST_DAYS: u32 = 36_500;
const DAY: Duration = Duration::from_secs(86_400);
/// Clocks differ: what is made now is valid since then.
const BACKDATED: Duration = Duration::from_secs(3600);
const AUTHORITY: &str = "ca";

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        match self.action {
            Action::Ca { making, days } => make_authority(&making, days),
            Action::Issue { name, making, ca, dns, ip, client, days } => {
                if !can_certify(&name) || name.len() > 64 || name == AUTHORITY {
                    return Err(Failure::Input(format!(
                        "no certificate can be for '{name}': a name has letters, digits, '_', and '-' and \
                         '.' between others; its last part has a letter, and it is not '{AUTHORITY}'"
                    )));
                }
                let names = Names { own: name, dns, ip };
                issue(&names, &ca, &making, Kind { is_client: client, days })
            }
        }
    }
}

/// Whom a certificate is for.
struct Names {
    own: String,
    dns: Vec<String>,
    ip: Vec<IpAddr>,
}

struct Kind {
    is_client: bool,
    days: u32,
}

fn make_authority(making: &Making, days: u32) -> Outcome {
    let key = KeyPair::generate().map_err(of_rcgen)?;
    let mut authority = authority(&key);
    valid_for(&mut authority, days);
    let certificate = authority.self_signed(&key).map_err(of_rcgen)?;
    making.write(AUTHORITY, &certificate.pem(), &key.serialize_pem())?;
    let directory = making.out.display();
    let mut out = Stdout::lock();
    writeln!(out, "{directory}/ca.pem is for every node and client; keep {directory}/ca-key.pem.")?;
    writeln!(out, "Now make a certificate for each member, with the address that clients call:")?;
    writeln!(out, "  catraca cert issue a --ca {directory} --out {directory} --ip 10.0.0.1")?;
    out.flush()?;
    Ok(())
}

/// The authority that has this key. Everything about it follows from the key, so that it can issue
/// certificates without its own being read.
fn authority(key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    let id: String =
        params.key_identifier(key).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, format!("catraca authority {id}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn issue(names: &Names, ca: &Path, making: &Making, kind: Kind) -> Outcome {
    let file = ca.join(format!("{AUTHORITY}-key.pem"));
    let text = std::fs::read_to_string(&file).map_err(|error| {
        let (file, why) = (file.display(), reason(&error));
        Failure::Input(format!(
            "cannot read the authority's key '{file}': {why}; 'catraca cert ca' makes one, --ca says where"
        ))
    })?;
    let wrong = |_| Failure::Input(format!("there is no private key in '{}'", file.display()));
    let authority_key = KeyPair::from_pem(&text).map_err(wrong)?;
    let params = params(names, &kind)?;
    let key = KeyPair::generate().map_err(of_rcgen)?;
    let issuer = Issuer::new(authority(&authority_key), authority_key);
    let certificate = params.signed_by(&key, &issuer).map_err(of_rcgen)?;
    making.write(&names.own, &certificate.pem(), &key.serialize_pem())?;
    let (directory, name) = (making.out.display(), &names.own);
    let files = format!("{directory}/{name}.pem and {directory}/{name}-key.pem");
    let mut out = Stdout::lock();
    if kind.is_client {
        writeln!(out, "{files} are for client '{name}', for {} days. It says:", kind.days)?;
        writeln!(
            out,
            "  catraca status --ca ca.pem --cert {name}.pem --key {name}-key.pem --node ADDR"
        )?;
    } else {
        writeln!(out, "{files} are for member '{name}', for {} days. Its node says:", kind.days)?;
        writeln!(
            out,
            "  catraca node --name {name} ... --tls-ca ca.pem --tls-cert {name}.pem --tls-key {name}-key.pem"
        )?;
    }
    out.flush()?;
    Ok(())
}

/// What a certificate says.
fn params(names: &Names, kind: &Kind) -> Result<CertificateParams, Failure> {
    let dns = |name: &String| {
        let wrong = || Failure::Input(format!("--dns: '{name}' is no name of a machine"));
        if !can_certify(name) {
            return Err(wrong());
        }
        name.as_str().try_into().map(SanType::DnsName).map_err(|_| wrong())
    };
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, names.own.as_str());
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.subject_alt_names = vec![dns(&names.own)?];
    if !kind.is_client {
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        // Whoever is on the same machine need not know its address.
        let local = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1u16])];
        let others = names.dns.iter().cloned().chain(["localhost".to_string()]);
        for name in others {
            params.subject_alt_names.push(dns(&name)?);
        }
        let addresses = names.ip.iter().copied().chain(local);
        params.subject_alt_names.extend(addresses.map(SanType::IpAddress));
    }
    valid_for(&mut params, kind.days);
    Ok(params)
}

fn valid_for(params: &mut CertificateParams, days: u32) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(BACKDATED);
    let beginning = date_time_ymd(1970, 1, 1);
    params.not_before = beginning + now.saturating_sub(BACKDATED);
    params.not_after = beginning + now + DAY * days;
}

impl Making {
    /// Writes a certificate and its key; both, or nothing.
    fn write(&self, name: &str, certificate: &str, key: &str) -> Outcome {
        let system = |path: &Path| {
            let path = path.display().to_string();
            move |error: io::Error| {
                Failure::Input(format!("cannot write '{path}': {}", reason(&error)))
            }
        };
        std::fs::create_dir_all(&self.out).map_err(system(&self.out))?;
        let files = [(format!("{name}.pem"), certificate), (format!("{name}-key.pem"), key)];
        let files = files.map(|(file, text)| (self.out.join(file), text));
        if let Some((path, _)) = files.iter().find(|(path, _)| path.exists() && !self.force) {
            return Err(Failure::Input(format!(
                "'{}' is there already: whoever uses it would be locked out; say --force to replace it",
                path.display()
            )));
        }
        for (path, text) in files {
            // A file that is there may be open to others: it is replaced, not written.
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(system(&path)(error));
                }
                _ => {}
            }
            let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
            let mut file = file.map_err(system(&path))?;
            file.write_all(text.as_bytes()).map_err(system(&path))?;
            file.sync_all().map_err(system(&path))?;
        }
        Ok(())
    }
}

fn of_rcgen(error: rcgen::Error) -> Failure {
    Failure::System(anyhow::Error::msg(error.to_string()))
}
