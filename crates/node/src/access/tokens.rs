//! The file of tokens: who has one, and what it is good for. The tokens themselves are not in it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use catraca_client::system::plain;
use serde::{Deserialize, Serialize};

use super::{Digest, Rights, Role, digest};
use crate::secret::secret;

/// A file has no more tokens: all of them are looked at for each one that is shown.
pub const MOST_TOKENS: usize = 10_000;
/// The longest name of a token, in bytes.
pub const LONGEST_TOKEN_NAME: usize = 64;
/// No file of tokens is longer.
const LONGEST_FILE: u64 = 16 << 20;
/// What every token begins with, so that people and scanners know one when they see it.
const PREFIX: &str = "cat_";
/// How many random bytes a token has.
const BYTES: usize = 32;

/// A token, as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenEntry {
    /// Whose it is.
    pub name: String,
    /// What it is good for.
    pub role: Role,
    /// The locks it is good for, as patterns; none means all.
    pub names: Vec<String>,
    /// When it was made, as text.
    pub created: String,
    pub(super) digest: Digest,
}

impl TokenEntry {
    pub(super) fn rights(&self) -> Rights {
        Rights { role: self.role, names: self.names.clone() }
    }
}

/// Why a file of tokens cannot be used, or not be changed.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The system says no.
    #[error("cannot {doing} '{}': {}", .path.display(), plain(.reason))]
    System {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// Somebody else could give itself a token.
    #[error("others can write '{}': anybody could make tokens; say: chmod 600 '{}'", .0.display(), .0.display())]
    Writable(PathBuf),
    /// It belongs to a user who has no say here.
    #[error("'{}' belongs to user {owner}, who is neither root nor the user of this process; say: chown '{}'", .path.display(), .path.display())]
    Stranger {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// It does not say what it should.
    #[error("'{}': {why}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A name that cannot be one.
    #[error(
        "'{0}' is no name for a token: letters, digits, '-', '_' and '.', at most {LONGEST_TOKEN_NAME}"
    )]
    Name(String),
    /// An empty pattern.
    #[error("a pattern of names is not empty: say 'ci/*', or leave it out for all names")]
    Pattern,
    /// There is one of this name.
    #[error("there is a token '{0}' already; revoke it first, or choose another name")]
    Twice(String),
    /// There is none of this name.
    #[error("there is no token '{name}'; there are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// There are too many.
    #[error("a file has at most {MOST_TOKENS} tokens; revoke some")]
    Full,
}

/// A file of tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenFile {
    /// Its tokens, in the order of making.
    pub entries: Vec<TokenEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(default)]
    token: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    sha256: String,
    role: Role,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    created: String,
}

impl TokenFile {
    /// Reads a file that nobody but its owner can have written.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let system = |reason| TokenError::System { doing: "read", path: path.into(), reason };
        let mut file = File::open(path).map_err(system)?;
        let about = file.metadata().map_err(system)?;
        if about.mode() & 0o022 != 0 {
            return Err(TokenError::Writable(path.into()));
        }
        if ![0, rustix::process::geteuid().as_raw()].contains(&about.uid()) {
            return Err(TokenError::Stranger { path: path.into(), owner: about.uid() });
        }
        if about.len() > LONGEST_FILE {
            return Err(TokenError::Full);
        }
        let mut text = String::new();
        io::Read::read_to_string(&mut file, &mut text).map_err(system)?;
        Self::parse(&text).map_err(|why| TokenError::Unreadable { path: path.into(), why })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let line = |place: usize| text.bytes().take(place).filter(|&it| it == b'\n').count() + 1;
        let text: Text = toml::from_str(text).map_err(|error| {
            let message = error.message().lines().collect::<Vec<_>>().join("; ");
            format!("line {}: {message}", line(error.span().map_or(0, |span| span.start)))
        })?;
        let entries = text.token.into_iter().map(|entry| {
            let Entry { name, sha256, role, names, created } = entry;
            let digest = from_hex(&sha256)
                .ok_or_else(|| format!("token '{name}': sha256 is not 64 hexadecimal digits"))?;
            check(&name, &names).map_err(|error| error.to_string())?;
            Ok(TokenEntry { name, role, names, created, digest })
        });
        let entries: Vec<TokenEntry> = entries.collect::<Result<_, String>>()?;
        for (place, entry) in entries.iter().enumerate() {
            let before = &entries[..place];
            if before.iter().any(|it| it.name == entry.name || it.digest == entry.digest) {
                return Err(format!("token '{}' is there twice; take one out", entry.name));
            }
        }
        if entries.len() > MOST_TOKENS {
            return Err(TokenError::Full.to_string());
        }
        Ok(TokenFile { entries })
    }

    /// Makes a token, and returns it: it is nowhere else.
    pub fn add(
        &mut self,
        name: &str,
        role: Role,
        names: &[String],
        created: &str,
    ) -> Result<String, TokenError> {
        check(name, names)?;
        if self.entries.iter().any(|entry| entry.name == name) {
            return Err(TokenError::Twice(name.to_string()));
        }
        if self.entries.len() >= MOST_TOKENS {
            return Err(TokenError::Full);
        }
        let token = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(secret::<BYTES>()));
        self.entries.push(TokenEntry {
            name: name.to_string(),
            role,
            names: names.to_vec(),
            created: created.to_string(),
            digest: digest(&token),
        });
        Ok(token)
    }

    /// Takes a token out.
    pub fn revoke(&mut self, name: &str) -> Result<(), TokenError> {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.name != name);
        if self.entries.len() == before {
            let known: Vec<&str> = self.entries.iter().map(|it| it.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
            return Err(TokenError::Unknown { name: name.to_string(), known });
        }
        Ok(())
    }

    /// Changes the file at `path`, or makes it: as a whole or not at all. Others who do so wait.
    pub fn change<T>(
        path: &Path,
        change: impl FnOnce(&mut TokenFile) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let system =
            |doing| move |reason| TokenError::System { doing, path: path.to_path_buf(), reason };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = File::open(parent.unwrap_or(Path::new("."))).map_err(system("write"))?;
        // It is the directory that is locked: the file itself is replaced.
        directory.lock().map_err(system("lock"))?;
        let mut tokens = match Self::read(path) {
            Err(TokenError::System { reason, .. }) if reason.kind() == io::ErrorKind::NotFound => {
                TokenFile::default()
            }
            read => read?,
        };
        let changed = change(&mut tokens)?;
        tokens.write(path, &directory).map_err(system("write"))?;
        Ok(changed)
    }

    fn write(&self, path: &Path, directory: &File) -> io::Result<()> {
        let token = self.entries.iter().map(|entry| Entry {
            name: entry.name.clone(),
            sha256: to_hex(&entry.digest),
            role: entry.role,
            names: entry.names.clone(),
            created: entry.created.clone(),
        });
        let text = toml::to_string(&Text { token: token.collect() }).map_err(io::Error::other)?;
        let mut name = path.as_os_str().to_os_string();
        name.push(".new");
        let new = PathBuf::from(name);
        // One may be left of a process that was killed. The directory is locked: it is nobody's.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        directory.sync_all()
    }
}

fn check(name: &str, names: &[String]) -> Result<(), TokenError> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !(1..=LONGEST_TOKEN_NAME).contains(&name.len()) || !name.bytes().all(fits) {
        return Err(TokenError::Name(name.to_string()));
    }
    if names.iter().any(String::is_empty) { Err(TokenError::Pattern) } else { Ok(()) }
}

fn to_hex(digest: &Digest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Digest> {
    let mut digest = Digest::default();
    if text.len() != 2 * digest.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (place, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(digest)
}
