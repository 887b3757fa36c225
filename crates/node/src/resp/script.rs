//! Scripts of lock libraries: recognised by their normal form, never run.
//!
//! What the libraries send in Lua comes down to five meanings: try to acquire, and compare the value with
//! the holder's to release, to renew, to tell the time that is left, or to look. Every other script is
//! refused by name.

mod known;
mod lua;

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use crate::mutex::hold;

/// So many texts of scripts are remembered by their digests. A client that asks by a digest that is
/// forgotten sends the text again.
pub(crate) const MOST_TEXTS: usize = 4096;

/// A place among the arguments of a script, `ARGV[1]` is 1.
pub(crate) type Place = usize;

/// What a known script does with all of its keys: all of them, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) act: Act,
    /// Where the value is that the client proves itself with.
    pub(crate) value: Place,
    /// The answer if it was done.
    pub(crate) done: Answer,
    /// The answer if nobody holds the lock.
    pub(crate) free: Answer,
    /// The answer if somebody holds it with another value.
    pub(crate) other: Answer,
}

/// What a known script does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Acquires, if nobody holds it.
    Acquire(Ttl),
    /// Renews, if it is held with this value; else acquires, if nobody holds it and, where a place is
    /// given, the argument there is `yes`.
    AcquireAgain(Ttl, Option<Place>),
    /// Releases, if it is held with this value.
    Release,
    /// Renews, if it is held with this value.
    Renew(Ttl),
    /// Says how long it is held with this value.
    Left(Unit),
    /// Says with which value it is held, and how long.
    Look,
}

/// Where the time to live is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ttl {
    pub(crate) place: Place,
    pub(crate) unit: Unit,
    /// If the argument there is `0`, it is added to the time that is left.
    pub(crate) added: Option<Place>,
}

/// What a time is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Millis,
    Seconds,
}

/// How a script answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Integer(i64),
    /// The number of keys.
    Count,
    /// The time that is left.
    Left,
    Ok,
    Nil,
    Error(&'static str),
}

/// Why a script is not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ScriptError {
    /// It is not Lua, or has no end.
    #[error(
        "ERR this script cannot be read; Catraca runs no scripts, it recognises those of lock libraries"
    )]
    Unreadable,
    /// It is not among the known ones.
    #[error(
        "ERR this script is none of the known scripts of lock libraries ({hint}normal form {form}); Catraca runs no scripts. docs/REDIS.md lists what is recognised"
    )]
    Unknown {
        /// What it may be, with a separator behind it.
        hint: String,
        /// The digest of its normal form.
        form: String,
    },
}

/// The known scripts, by the digests of their normal forms.
static KNOWN: LazyLock<HashMap<known::Prefix, Script>> = LazyLock::new(|| known::all().collect());

/// The script that has the same normal form as `text`.
pub(crate) fn recognise(text: &[u8]) -> Result<&'static Script, ScriptError> {
    let form = lua::normal_form(text).map_err(|_| ScriptError::Unreadable)?;
    let prefix = known::prefix(&form);
    KNOWN.get(&prefix).ok_or_else(|| ScriptError::Unknown { hint: hint(&form), form: hex(&prefix) })
}

/// Which library a script may be of, by what it does that no other does.
fn hint(form: &[u8]) -> String {
    let has = |what: &str| form.windows(what.len()).any(|window| window == what.as_bytes());
    let library = match () {
        () if has("\"HINCRBY\"") && has("\"HEXISTS\"") => "it looks like one of Redisson",
        () if has("\"ZADD\"") || has("\"ZREMRANGEBYSCORE\"") => {
            "it looks like a semaphore in a sorted set, as of redis-semaphore"
        }
        () if has("\"LPUSH\"") || has("\"RPUSH\"") => {
            "it looks like one of python-redis-lock, which hands over through lists"
        }
        () if has("\"PUBLISH\"") => {
            "it publishes messages, as Spring's PUB_SUB_LOCK does: choose SPIN_LOCK there"
        }
        () => return String::new(),
    };
    format!("{library}; ")
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digest that clients call a script by.
type Sha1 = [u8; 20];

/// The texts that clients have sent, by their digests, as far as they were recognised.
#[derive(Default)]
pub(crate) struct Texts(Mutex<HashMap<Sha1, &'static Script>>);

impl Texts {
    /// Recognises a text and remembers it. Returns its digest too.
    pub(crate) fn load(&self, text: &[u8]) -> Result<(&'static Script, String), ScriptError> {
        let digest = sha1(text);
        if let Some(script) = self.with(&digest) {
            return Ok((script, hex(&digest)));
        }
        let script = recognise(text)?;
        let mut texts = hold(&self.0);
        if texts.len() >= MOST_TEXTS {
            texts.clear();
        }
        texts.insert(digest, script);
        Ok((script, hex(&digest)))
    }

    /// The script that a client calls by this digest, in hexadecimal digits.
    pub(crate) fn find(&self, digest: &[u8]) -> Option<&'static Script> {
        let digest: &[u8; 40] = digest.try_into().ok()?;
        let mut bytes = [0; 20];
        for (byte, pair) in bytes.iter_mut().zip(digest.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = (digit(0)? << 4 | digit(1)?) as u8;
        }
        self.with(&bytes)
    }

    /// Forgets all texts.
    pub(crate) fn forget(&self) {
        hold(&self.0).clear();
    }

    fn with(&self, digest: &Sha1) -> Option<&'static Script> {
        hold(&self.0).get(digest).copied()
    }
}

/// The digest by which the Redis protocol names scripts; nothing is kept secret by it.
fn sha1(text: &[u8]) -> Sha1 {
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, text);
    let mut bytes = [0; 20];
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASE: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

    #[test]
    fn a_script_is_recognised_however_it_is_written() {
        let script = recognise(RELEASE.as_bytes()).unwrap();
        assert_eq!(script.act, Act::Release);
        let other =
            RELEASE.replace('\'', "\"").replace("del", "DEL").replace(" then ", "\n\tthen\n");
        assert_eq!(recognise(other.as_bytes()), Ok(script));
    }

    #[test]
    fn any_other_script_is_refused_and_says_what_it_may_be() {
        let error = |text: &str| recognise(text.as_bytes()).unwrap_err().to_string();
        let other = error(&RELEASE.replace("return 0", "return 1"));
        assert!(other.contains("none of the known scripts") && other.contains("normal form"));
        let redisson = error(
            "if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return redis.call('hincrby', KEYS[1], ARGV[2], 1) end",
        );
        assert!(redisson.contains("Redisson"), "{redisson}");
        assert!(error("return '").contains("cannot be read"));
    }

    #[test]
    fn a_text_is_found_by_its_digest_until_there_are_too_many() {
        let texts = Texts::default();
        let (script, digest) = texts.load(RELEASE.as_bytes()).unwrap();
        assert_eq!(digest.len(), 40);
        assert_eq!(texts.find(digest.as_bytes()), Some(script));
        assert_eq!(texts.find(digest.to_uppercase().as_bytes()), Some(script));
        for wrong in ["", "abc", &digest[1..], &digest.replace(&digest[..1], "x")] {
            assert_eq!(texts.find(wrong.as_bytes()), None);
        }
        for spaces in 1..MOST_TEXTS {
            texts.load(format!("{RELEASE}{}", " ".repeat(spaces)).as_bytes()).unwrap();
        }
        assert!(texts.find(digest.as_bytes()).is_some());
        texts.load(format!("{RELEASE}\n").as_bytes()).unwrap();
        assert_eq!(texts.find(digest.as_bytes()), None);
    }

    #[test]
    fn a_digest_is_the_one_that_redis_gives() {
        assert_eq!(hex(&sha1(b"return 1")), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
    }
}
