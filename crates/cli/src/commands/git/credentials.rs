//! How a user proves who it is: as git does it, by git's own credential helpers.

use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::address::Address;
use super::repository::{git, run_with};
use crate::failure::Failure;
use crate::interrupt;

/// A name and a password that git gave.
pub(super) struct Credential {
    /// All that git said, to be given back to it as it is.
    text: Vec<u8>,
    pub(super) header: String,
}

/// The value of the header `Authorization`.
pub(super) fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// The same, for a token.
pub(super) fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

impl Credential {
    /// Asks git, which asks its helpers, and then the user if `may_ask`.
    pub(super) fn fill(address: &Address, may_ask: bool) -> Result<Self, Failure> {
        let mut question = format!("protocol={}\nhost={}\n", address.scheme(), address.authority());
        question += &format!("path={}\n", address.path.trim_start_matches('/'));
        if let Some(user) = &address.user {
            question += &format!("username={user}\n");
        }
        question.push('\n');
        let answer = run_with(&mut credential("fill", may_ask), question.into_bytes());
        let text = match answer {
            Ok(text) => text,
            Err(_) if interrupt::requested() => return Err(Failure::Interrupted),
            Err(_) => {
                return Err(Failure::input(format!(
                    "{address} wants to know who you are, and git has no name and password for it: \
                     run the command at a terminal, set up a credential helper (git help \
                     credentials), or give a token with --token-file and --url"
                )));
            }
        };
        let said = String::from_utf8_lossy(&text);
        let value = |key: &str| {
            let mut lines = said.lines();
            lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap_or_default()
        };
        let header = basic(value("username"), value("password"));
        Ok(Credential { text, header })
    }

    /// They were right: git may keep them.
    pub(super) fn approve(&self) {
        // A helper that cannot keep them has said so; they are good all the same.
        run_with(&mut credential("approve", false), self.text.clone()).ok();
    }

    /// They were wrong: git forgets them.
    pub(super) fn reject(&self) {
        run_with(&mut credential("reject", false), self.text.clone()).ok();
    }
}

fn credential(action: &str, may_ask: bool) -> Command {
    let mut command = git();
    command.args(["credential", action]);
    if !may_ask {
        // An empty one is none, whatever the configuration says.
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ASKPASS", "");
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_password_are_sent_as_basic() {
        assert_eq!(basic("ana", "secret"), "Basic YW5hOnNlY3JldA==");
        assert_eq!(bearer("cat_1"), "Bearer cat_1");
    }
}
