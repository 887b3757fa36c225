//! Why a command is not done, as a client of the Redis protocol is told.

use catraca_group::{Class, NameError, Refusal};

use crate::access::Denied;

use super::script::ScriptError;

/// Why a command is not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{code} {0}", code = code(.0))]
    Refused(#[from] Refusal),
    #[error("{code} {0}", code = denial(.0))]
    Denied(#[from] Denied),
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A text that begins with its code.
    #[error("{0}")]
    Said(String),
    #[error("ERR syntax error")]
    Syntax,
    #[error("ERR value is not an integer or out of range")]
    Integer,
    #[error("ERR invalid expire time in '{0}' command")]
    Expiry(&'static str),
    #[error("ERR a key is the name of a lock, and this one is no text: its bytes are not UTF-8")]
    NoText,
    #[error("ERR '{0}' is held together with {1}: name all of these keys at once")]
    Together(String, String),
    #[error("ERR '{0}' never expires: it was taken without a time to live, which stays so")]
    Durable(String),
    #[error("ERR '{0}' is held by {1}, over another interface; it is released there, or by force")]
    Elsewhere(String, String),
    #[error("NOSCRIPT No matching script. Please use EVAL.")]
    NoScript,
    /// The locks of this connection are lost, and so it ends.
    #[error("{0}")]
    Over(String),
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Self {
        Failure::Refused(Refusal::Name(error))
    }
}

/// The first word of an error tells programs what kind it is.
fn code(refusal: &Refusal) -> &'static str {
    match refusal.class() {
        Class::Unavailable => "UNAVAILABLE",
        _ => "ERR",
    }
}

fn denial(denied: &Denied) -> &'static str {
    match denied {
        Denied::NoToken => "NOAUTH",
        Denied::UnknownToken | Denied::NoMember => "WRONGPASS",
        _ => "NOPERM",
    }
}

/// That so many words are not what a command has.
pub(crate) fn wrong_count(name: &str) -> Failure {
    let name = name.to_lowercase();
    Failure::Said(format!("ERR wrong number of arguments for '{name}' command"))
}

/// That there is no such command here.
pub(crate) fn unknown_command(name: &[u8]) -> Failure {
    let name = String::from_utf8_lossy(name.get(..64).unwrap_or(name));
    Failure::Said(format!(
        "ERR unknown command '{name}': Catraca serves locks, by SET NX, GET, DEL, EXPIRE, TTL, the scripts of lock libraries, and CATRACA.HELP"
    ))
}

/// That a command has no such part here.
pub(crate) fn unknown_part(command: &str, part: &[u8]) -> Failure {
    let part = String::from_utf8_lossy(part.get(..64).unwrap_or(part));
    Failure::Said(format!("ERR unknown subcommand '{part}' of {command}: it is not served"))
}
