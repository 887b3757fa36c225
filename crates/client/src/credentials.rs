//! What a client shows of itself, and whom it trusts.

use std::fmt;
use std::io;
use std::path::Path;

use crate::handshake::Proof;
use crate::tls::Tls;

/// A token file has no more bytes.
const LONGEST_FILE: u64 = 4096;

/// What a client shows of itself to a node, and whom it trusts. The usual one shows nothing, and trusts
/// whoever answers.
#[derive(Clone, Default)]
pub struct Credentials {
    token: Option<String>,
    tls: Option<Tls>,
}

/// It does not show the token.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Credentials");
        shown.field("has_token", &self.token.is_some()).field("tls", &self.tls).finish()
    }
}

impl Credentials {
    /// The same, with this token.
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// The same, with the token in this file.
    pub fn with_token_file(self, path: &Path) -> io::Result<Self> {
        let mut text = String::new();
        let file = std::fs::File::open(path)?;
        io::Read::read_to_string(&mut io::Read::take(file, LONGEST_FILE), &mut text)?;
        match text.trim() {
            "" => Err(io::Error::new(io::ErrorKind::InvalidData, "there is no token in it")),
            token => Ok(self.with_token(token)),
        }
    }

    /// The same, over TLS.
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// How connections are made safe, if they are.
    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// What is said after the hello.
    pub fn proof(&self) -> Proof {
        Proof { token: self.token.clone() }
    }
}
