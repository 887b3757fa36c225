//! Who may do what: tokens, users of this machine, certificates, and their roles.
//!
//! An interface asks [`Access::identify`] once for each connection or request, and then
//! [`Identity::may`] for everything that is asked for. What an identity may do follows the file of
//! tokens: after it was read again, a token that was taken out is of no use, also to whoever is
//! connected already.

mod listing;
mod tokens;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use catraca_group::fits;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

pub use self::tokens::{LONGEST_TOKEN_NAME, MOST_TOKENS, TokenEntry, TokenError, TokenFile};
use crate::config::SecurityConfig;
use crate::mutex::hold;

/// What somebody may do. Each role includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Look at locks, members and counters.
    Observe,
    /// Take locks and release the own ones.
    Lock,
    /// Release what others hold, and change the group.
    Administer,
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Role::Observe => "observe",
            Role::Lock => "lock",
            Role::Administer => "administer",
        })
    }
}

/// Over which kind of connection somebody comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// From this machine, over TCP.
    Loopback,
    /// From another machine.
    Network,
    /// By the Unix socket: the system says whose process it is.
    Unix {
        /// The user.
        uid: u32,
        /// The group.
        gid: u32,
    },
    /// With a certificate of the authority that this node trusts.
    Certificate(Certificate),
}

impl Origin {
    /// Where a connection comes from that says nothing of itself.
    pub(crate) fn of(address: IpAddr) -> Self {
        if address.to_canonical().is_loopback() { Origin::Loopback } else { Origin::Network }
    }
}

/// What a certificate says that was found to be good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    /// Whom it names. The first one is the name of whoever shows it.
    pub(crate) names: Vec<String>,
    /// Whether it is one of a member: such a certificate is for servers too.
    pub(crate) is_member: bool,
}

/// What somebody may do with which names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rights {
    role: Role,
    /// Patterns; none of them means every name.
    names: Vec<String>,
}

impl Rights {
    fn of(role: Role) -> Self {
        Rights { role, names: Vec::new() }
    }

    fn covers(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|pattern| fits(pattern, name))
    }
}

/// A token that is known, for as long as somebody refers to it.
#[derive(Debug)]
struct Known {
    digest: Digest,
    name: String,
    /// Nothing after it was taken out of the file.
    rights: Mutex<Option<Rights>>,
}

/// What is stored of a token.
type Digest = [u8; 32];

/// Whoever calls, and what it may do.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// As audit logs show it; the owner of durable holds where no other is given.
    pub(crate) name: String,
    rights: Source,
    /// Whether somebody has shown who this is: then the holds of others are not its own.
    is_proven: bool,
}

#[derive(Clone, Debug)]
enum Source {
    Fixed(Arc<Rights>),
    Token(Arc<Known>),
}

/// Why somebody may not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denied {
    /// Nobody has said anything.
    #[error("this node wants to know who calls: give a token, or a certificate that it trusts")]
    NoToken,
    /// It is not a token of this node, or not any more.
    #[error(
        "the token is not known here: it was revoked, or is another group's; ask for a new one"
    )]
    UnknownToken,
    /// It says that it is a member, and cannot prove it.
    #[error(
        "members of this group prove themselves by certificates for servers of the group's authority"
    )]
    NoMember,
    /// The role is not enough.
    #[error("'{name}' may only {has}: this takes the role '{needed}'; ask for a token that has it")]
    Role {
        /// Who.
        name: String,
        /// The role it has.
        has: Role,
        /// The role that this takes.
        needed: Role,
    },
    /// The name of a lock is not one of those it may use.
    #[error("'{name}' may not use the lock '{lock}', only {patterns}")]
    Names {
        /// Who.
        name: String,
        /// The lock.
        lock: String,
        /// Those that it may use.
        patterns: String,
    },
    /// A durable hold for somebody else.
    #[error(
        "'{name}' takes and releases durable holds for itself: the owner is '{name}' or begins with '{name}/', not '{owner}'"
    )]
    Owner {
        /// Who.
        name: String,
        /// The owner that was given.
        owner: String,
    },
    /// A hold by its id, for somebody who may not use every name.
    #[error("'{name}' may use only {patterns}: name the lock, not the id of the hold")]
    Id {
        /// Who.
        name: String,
        /// Those that it may use.
        patterns: String,
    },
    /// Something that concerns all names, for somebody who may not use every one.
    #[error(
        "'{name}' administers only {patterns}: members serve every name, so this takes a token for all of them"
    )]
    Group {
        /// Who.
        name: String,
        /// Those that it may use.
        patterns: String,
    },
}

impl Denied {
    /// Who it is that may not, if that is known.
    pub(crate) fn who(&self) -> Option<&str> {
        match self {
            Denied::NoToken | Denied::UnknownToken | Denied::NoMember => None,
            Denied::Role { name, .. }
            | Denied::Names { name, .. }
            | Denied::Owner { name, .. }
            | Denied::Id { name, .. }
            | Denied::Group { name, .. } => Some(name),
        }
    }
}

impl Identity {
    fn fixed(name: &str, role: Role, is_proven: bool) -> Self {
        let rights = Source::Fixed(Arc::new(Rights::of(role)));
        Identity { name: name.to_string(), rights, is_proven }
    }

    /// Whoever asks at a node that asks nobody who it is.
    pub(crate) fn anyone() -> Self {
        Self::fixed(ANYONE, Role::Administer, false)
    }

    /// Whether it may do what takes `role` to locks of these names.
    pub(crate) fn may<'a>(
        &self,
        role: Role,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Denied> {
        self.with_rights(|rights| {
            if rights.role < role {
                let name = self.name.clone();
                return Err(Denied::Role { name, has: rights.role, needed: role });
            }
            match names.into_iter().find(|name| !rights.covers(name)) {
                None => Ok(()),
                Some(lock) => {
                    let (name, lock) = (self.name.clone(), lock.to_string());
                    Err(Denied::Names { name, lock, patterns: listed(&rights.names) })
                }
            }
        })
    }

    /// Whether it may take or release a durable hold of this owner, in the name of the owner.
    pub(crate) fn may_own(&self, owner: &str) -> Result<(), Denied> {
        self.with_rights(|rights| {
            let own = owner.strip_prefix(self.name.as_str());
            let is_own = own.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            if is_own || !self.is_proven || rights.role == Role::Administer {
                return Ok(());
            }
            Err(Denied::Owner { name: self.name.clone(), owner: owner.to_string() })
        })
    }

    /// Its name, if it has shown that it is its own.
    pub(crate) fn proven_name(&self) -> Option<&str> {
        self.is_proven.then_some(self.name.as_str())
    }

    /// Its name, unless it is nobody in particular; the system's word for a user of the Unix socket counts
    /// as well as a token or a certificate.
    pub(crate) fn known_name(&self) -> Option<&str> {
        (self.is_proven || self.name != ANYONE).then_some(self.name.as_str())
    }

    /// Whether both have shown the same token.
    pub(crate) fn is_same(&self, other: &Identity) -> bool {
        match (&self.rights, &other.rights) {
            (Source::Token(one), Source::Token(two)) => Arc::ptr_eq(one, two),
            _ => false,
        }
    }

    /// Whether it has shown a token.
    pub(crate) fn is_by_token(&self) -> bool {
        matches!(self.rights, Source::Token(_))
    }

    /// What it may do, and the patterns of the names with which; none of them means every name.
    pub(crate) fn rights(&self) -> Result<(Role, Vec<String>), Denied> {
        self.with_rights(|rights| Ok((rights.role, rights.names.clone())))
    }

    /// Whether it may do what takes `role` to a lock of any name.
    pub(crate) fn may_everywhere(&self, role: Role) -> Result<(), Denied> {
        self.may(role, [])?;
        self.with_rights(|rights| match rights.names.is_empty() {
            true => Ok(()),
            false => {
                let patterns = listed(&rights.names);
                Err(Denied::Id { name: self.name.clone(), patterns })
            }
        })
    }

    /// Whether it may send members away, add them and take them out: that concerns every name.
    pub(crate) fn may_change_group(&self) -> Result<(), Denied> {
        self.may_everywhere(Role::Administer).map_err(|denied| match denied {
            Denied::Id { name, patterns } => Denied::Group { name, patterns },
            denied => denied,
        })
    }

    /// Whether it may look at the lock `name`; for lists, which leave the others out.
    pub(crate) fn sees(&self, name: &str) -> bool {
        self.with_rights(|rights| Ok(rights.covers(name))).unwrap_or(false)
    }

    /// Whether it is still what it was when it came: its token was not revoked.
    pub(crate) fn is_known(&self) -> bool {
        self.with_rights(|_| Ok(())).is_ok()
    }

    fn with_rights<T>(&self, look: impl FnOnce(&Rights) -> Result<T, Denied>) -> Result<T, Denied> {
        match &self.rights {
            Source::Fixed(rights) => look(rights),
            Source::Token(known) => match &*hold(&known.rights) {
                Some(rights) => look(rights),
                None => Err(Denied::UnknownToken),
            },
        }
    }
}

/// Who uses a node that asks nobody who it is.
const ANYONE: &str = "anyone";
/// No token is longer.
const LONGEST_TOKEN: usize = 256;

/// Who may do what at this node.
#[derive(Debug)]
pub(crate) struct Access {
    config: SecurityConfig,
    /// The user that this process runs as.
    uid: u32,
    known: Mutex<Vec<Arc<Known>>>,
    /// Counts how often the tokens were read.
    readings: watch::Sender<u64>,
}

impl Access {
    /// Reads what `config` says about who may do what.
    pub(crate) fn new(config: &SecurityConfig) -> Result<Self, TokenError> {
        let access = Access {
            config: config.clone(),
            uid: rustix::process::geteuid().as_raw(),
            known: Mutex::default(),
            readings: watch::Sender::new(0),
        };
        access.reload()?;
        Ok(access)
    }

    /// Reads the tokens again. If that cannot be done, those that are known stay.
    pub(crate) fn reload(&self) -> Result<(), TokenError> {
        let Some(path) = &self.config.tokens else { return Ok(()) };
        let entries = TokenFile::read(path)?.entries;
        let mut wanted: BTreeMap<Digest, TokenEntry> =
            entries.into_iter().map(|entry| (entry.digest, entry)).collect();
        let mut known = hold(&self.known);
        known.retain(|known| {
            let entry = match wanted.get(&known.digest) {
                Some(entry) if entry.name == known.name => wanted.remove(&known.digest),
                _ => None,
            };
            *hold(&known.rights) = entry.map(|entry| entry.rights());
            hold(&known.rights).is_some()
        });
        known.extend(wanted.into_values().map(|entry| {
            let rights = Mutex::new(Some(entry.rights()));
            Arc::new(Known { digest: entry.digest, name: entry.name, rights })
        }));
        drop(known);
        self.readings.send_modify(|readings| *readings += 1);
        Ok(())
    }

    /// Tells when the tokens were read again.
    pub(crate) fn readings(&self) -> watch::Receiver<u64> {
        self.readings.subscribe()
    }

    /// Whether everybody who comes over a network has to show who it is.
    pub(crate) fn wants_proof(&self) -> bool {
        self.config.authenticates()
    }

    /// Who comes with this token, over this kind of connection.
    pub(crate) fn identify(&self, token: Option<&str>, from: &Origin) -> Result<Identity, Denied> {
        if let Some(token) = token.filter(|_| self.config.tokens.is_some()) {
            return self.by_token(token);
        }
        match from {
            Origin::Certificate(Certificate { names, is_member }) => {
                let name = names.first().ok_or(Denied::NoToken)?;
                let administers =
                    *is_member || self.config.certificate_administrators.contains(name);
                let role =
                    if administers { Role::Administer } else { self.config.certificate_role };
                Ok(Identity::fixed(name, role, true))
            }
            Origin::Unix { uid, .. } if self.wants_proof() => {
                let administers =
                    [0, self.uid].contains(uid) || self.config.socket_administrators.contains(uid);
                let role = if administers { Role::Administer } else { self.config.socket_role };
                Ok(Identity::fixed(&user_name(*uid), role, true))
            }
            Origin::Unix { uid, .. } => {
                Ok(Identity::fixed(&user_name(*uid), Role::Administer, false))
            }
            Origin::Loopback | Origin::Network if self.wants_proof() => Err(Denied::NoToken),
            Origin::Loopback | Origin::Network => Ok(Identity::anyone()),
        }
    }

    /// Whether somebody may speak as another member: by a certificate of one where there are
    /// certificates, by a token of an administrator where there are tokens. Returns whose token it is.
    pub(crate) fn admit_member(
        &self,
        token: Option<&str>,
        from: &Origin,
    ) -> Result<Option<Identity>, Denied> {
        match from {
            Origin::Certificate(Certificate { is_member: true, .. }) => Ok(None),
            // No member is called by that way.
            Origin::Unix { .. } => Err(Denied::NoMember),
            _ if self.config.trusts_certificates() => Err(Denied::NoMember),
            _ if !self.wants_proof() => Ok(None),
            _ => {
                let identity = self.by_token(token.ok_or(Denied::NoToken)?)?;
                identity.may_change_group()?;
                Ok(Some(identity))
            }
        }
    }

    fn by_token(&self, token: &str) -> Result<Identity, Denied> {
        if token.len() > LONGEST_TOKEN {
            return Err(Denied::UnknownToken);
        }
        let shown = digest(token);
        let mut found = None;
        // All of them, also after it was found: how long it takes says nothing about which one it was.
        for known in hold(&self.known).iter() {
            if is_same(&known.digest, &shown) {
                found = Some(Arc::clone(known));
            }
        }
        let known = found.ok_or(Denied::UnknownToken)?;
        let name = known.name.clone();
        Ok(Identity { name, rights: Source::Token(known), is_proven: true })
    }
}

/// What is stored of a token. It has 256 random bits, so that a slow function would add nothing.
fn digest(token: &str) -> Digest {
    Sha256::digest(token.as_bytes()).into()
}

/// Whether two digests are the same. Takes as long where the first byte differs as where none does.
fn is_same(one: &Digest, other: &Digest) -> bool {
    difference(one.iter().copied(), other.iter().copied()) == 0
}

fn difference(one: impl Iterator<Item = u8>, other: impl Iterator<Item = u8>) -> u8 {
    // Without the hint a compiler could leave the loop early.
    one.zip(other).fold(0, |difference, (one, other)| black_box(difference | (one ^ other)))
}

/// The user's name in the list of this machine's own users, or its number.
fn user_name(uid: u32) -> String {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let has_number = |line: &&str| line.split(':').nth(2) == Some(&uid.to_string());
    let line = users.lines().find(has_number);
    let name = line.and_then(|line| line.split(':').next()).filter(|name| !name.is_empty());
    name.map_or_else(|| format!("uid-{uid}"), str::to_string)
}

fn listed(patterns: &[String]) -> String {
    patterns.iter().map(|pattern| format!("'{pattern}'")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
