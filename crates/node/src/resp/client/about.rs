//! Commands about the connection, as clients of Redis send them before they do anything.

use std::sync::Arc;

use crate::access::{Denied, Identity};
use crate::resp::command::{self, ALL, Spec};
use crate::resp::failure::{Failure, unknown_part, wrong_count};
use crate::resp::frame::{Command, integer};
use crate::resp::reply::Replies;

use super::{Client, known_name};

/// The version of Redis that clients are told: they choose by it what to send.
const REDIS_VERSION: &str = "7.2.0";
/// As many databases as Redis has, all of which are the same locks.
const DATABASES: i64 = 16;
/// The longest name of a client, in bytes.
const LONGEST_NAME: usize = 128;

impl Client {
    /// `AUTH [user] token`.
    pub(super) fn auth(&mut self, command: Command<'_>) -> Result<(), Failure> {
        let user = (command.len() == 3).then(|| command.word(1));
        self.identify(user, command.word(command.len() - 1))?;
        self.replies.ok();
        Ok(())
    }

    /// Somebody says who it is. The user may be left out; if it is said, it is the name of the token.
    fn identify(&mut self, user: Option<&[u8]>, token: &[u8]) -> Result<(), Failure> {
        let wrong = || {
            self.shared
                .engine
                .deny(None, "a token came with the name of another one, or is no text");
            Failure::Said("WRONGPASS this user has no such token".into())
        };
        let token = std::str::from_utf8(token).map_err(|_| wrong())?;
        let identity = self.shared.access.identify(Some(token), &self.origin)?;
        let is_its = |user: &[u8]| user == b"default" || user == identity.name.as_bytes();
        if identity.proven_name().is_some() && !user.is_none_or(is_its) {
            return Err(wrong());
        }
        let is_known = self.identity.as_ref().is_ok_and(|before| before.is_same(&identity));
        if !is_known {
            self.shared.engine.record_token(&identity, &format!("RESP, from {}", self.who.host));
        }
        self.become_somebody(Ok(Arc::new(identity)));
        Ok(())
    }

    fn become_somebody(&mut self, identity: Result<Arc<Identity>, Denied>) {
        self.who.identity = known_name(&identity);
        self.identity = identity;
    }

    /// `HELLO [version [AUTH user token] [SETNAME name]]`.
    pub(super) fn hello(&mut self, command: Command<'_>) -> Result<(), Failure> {
        let version = match command.word(1) {
            b"" => None,
            text => Some(integer(text).ok_or_else(|| {
                Failure::Said("ERR Protocol version is not an integer or out of range".into())
            })?),
        };
        if version.is_some_and(|version| !(2..=3).contains(&version)) {
            return Err(Failure::Said("NOPROTO unsupported protocol version".into()));
        }
        let mut words = command.from(2);
        let mut name = None;
        while let Some(word) = words.next() {
            match word.to_ascii_uppercase().as_slice() {
                b"AUTH" => {
                    let user = words.next().ok_or(Failure::Syntax)?;
                    self.identify(Some(user), words.next().ok_or(Failure::Syntax)?)?;
                }
                b"SETNAME" => name = Some(words.next().ok_or(Failure::Syntax)?),
                _ => return Err(Failure::Syntax),
            }
        }
        self.identity()?;
        if let Some(name) = name {
            self.rename(name)?;
        }
        self.replies.is_resp3 = version.map_or(self.replies.is_resp3, |version| version == 3);
        let protocol = if self.replies.is_resp3 { 3 } else { 2 };
        let replies = &mut self.replies;
        replies.map(8);
        for (key, value) in [
            ("server", "catraca"),
            ("version", REDIS_VERSION),
            ("catraca_version", env!("CARGO_PKG_VERSION")),
            ("mode", "standalone"),
            ("role", "master"),
        ] {
            replies.bulk(key);
            replies.bulk(value);
        }
        replies.bulk("proto");
        replies.integer(protocol);
        replies.bulk("id");
        replies.integer(i64::try_from(self.number).unwrap_or(i64::MAX));
        replies.bulk("modules");
        replies.array(0);
        Ok(())
    }

    fn rename(&mut self, name: &[u8]) -> Result<(), Failure> {
        if name.len() > LONGEST_NAME || !name.iter().all(u8::is_ascii_graphic) {
            return Err(Failure::Said(format!(
                "ERR Client names cannot contain spaces, newlines or special characters, and have at most {LONGEST_NAME}"
            )));
        }
        self.who.label = String::from_utf8_lossy(name).into_owned();
        Ok(())
    }

    pub(super) fn client(&mut self, command: Command<'_>) -> Result<(), Failure> {
        match (command.word(1).to_ascii_uppercase().as_slice(), command.len()) {
            (b"SETNAME", 3) => {
                self.rename(command.word(2))?;
                self.replies.ok();
            }
            (b"GETNAME", 2) if self.who.label.is_empty() => self.replies.nil(),
            (b"GETNAME", 2) => self.replies.bulk(&self.who.label),
            (b"ID", 2) => self.replies.integer(i64::try_from(self.number).unwrap_or(i64::MAX)),
            (b"INFO", 2) => {
                let version = if self.replies.is_resp3 { 3 } else { 2 };
                let (id, name, host) = (self.number, &self.who.label, &self.who.host);
                let line = format!("id={id} addr={host} name={name} db=0 resp={version}\n");
                self.replies.bulk(line);
            }
            // What a client's library is called, and what Redis would keep of its keys.
            (b"SETINFO", 4) | (b"NO-EVICT" | b"NO-TOUCH", 3) => self.replies.ok(),
            (b"SETNAME" | b"GETNAME" | b"ID" | b"INFO" | b"SETINFO", _) => {
                return Err(wrong_count("client"));
            }
            _ => return Err(unknown_part("CLIENT", command.word(1))),
        }
        Ok(())
    }

    pub(super) fn commands(&mut self, command: Command<'_>) -> Result<(), Failure> {
        let replies = &mut self.replies;
        match command.word(1).to_ascii_uppercase().as_slice() {
            b"" => {
                replies.array(ALL.len());
                ALL.iter().for_each(|spec| describe(spec, replies));
            }
            b"COUNT" => replies.integer(ALL.len() as i64),
            b"DOCS" => replies.map(0),
            b"INFO" => {
                replies.array(command.len() - 2);
                for name in command.from(2) {
                    match command::find(name) {
                        Some(spec) => describe(spec, replies),
                        None => replies.nil(),
                    }
                }
            }
            _ => return Err(unknown_part("COMMAND", command.word(1))),
        }
        Ok(())
    }

    /// What clients look at before they believe that a server can be used.
    pub(super) fn info(&mut self) {
        let version = env!("CARGO_PKG_VERSION");
        let status = self.shared.gateway.status();
        let text = format!(
            "# Server\r\nredis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\ncatraca_version:{version}\r\n\
             \r\n# Persistence\r\nloading:0\r\n\
             \r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\
             \r\n# Locks\r\nheld:{}\r\nwaiting:{}\r\ngrants:{}\r\n",
            status.held, status.waiting, status.grants
        );
        self.replies.bulk(text);
    }

    pub(super) fn ping(&mut self, command: Command<'_>) {
        match command.len() {
            // In the form of a message, where the answer could be taken for one.
            _ if self.watching.is_on() && !self.replies.is_resp3 => {
                self.replies.array(2);
                self.replies.bulk("pong");
                self.replies.bulk(command.word(1));
            }
            1 => self.replies.simple("PONG"),
            _ => self.replies.bulk(command.word(1)),
        }
    }

    /// All databases are the same locks.
    pub(super) fn select(&mut self, command: Command<'_>) -> Result<(), Failure> {
        match integer(command.word(1)) {
            None => Err(Failure::Integer),
            Some(number) if (0..DATABASES).contains(&number) => {
                self.replies.ok();
                Ok(())
            }
            Some(_) => Err(Failure::Said("ERR DB index is out of range".into())),
        }
    }

    /// The connection is as it was at its beginning: what it held is free.
    pub(super) fn reset(&mut self) {
        self.bound.reset();
        self.watching.end(None);
        self.become_somebody(self.shared.access.identify(None, &self.origin).map(Arc::new));
        self.who.label.clear();
        self.park = self.shared.park;
        self.replies.is_resp3 = false;
        self.replies.simple("RESET");
    }
}

/// What `COMMAND` says of one: its name, how many words it has, and of flags and keys nothing.
fn describe(spec: &Spec, replies: &mut Replies) {
    replies.array(6);
    replies.bulk(spec.name.to_lowercase());
    replies.integer(spec.arity());
    replies.array(0);
    (0..3).for_each(|_| replies.integer(0));
}
