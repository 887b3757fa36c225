//! One client of the Redis protocol: who it is, and what it is answered.

mod about;
mod own;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use catraca_group::Who;

use crate::access::{Access, Denied, Identity, Origin, Role};
use crate::changes::Item;
use crate::engine::Engine;
use crate::gateway::Gateway;

use super::bound::Bound;
use super::command::{self, What};
use super::evaluation::{self, Words};
use super::failure::{Failure, unknown_command, unknown_part, wrong_count};
use super::frame::Command;
use super::keys::{Change, Compared, Keys, Once, SetOptions, check_expire, duration, name};
use super::reply::Replies;
use super::script::{Texts, Unit};
use super::watch::{self, Watching};

/// What all clients of a node share.
pub(crate) struct Shared {
    pub(crate) engine: Arc<Engine>,
    pub(crate) gateway: Gateway,
    pub(crate) access: Arc<Access>,
    /// The scripts that clients have sent.
    pub(crate) texts: Texts,
    /// How long a `SET NX` waits in the queue of its lock.
    pub(crate) park: Duration,
    last: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        engine: Arc<Engine>,
        gateway: Gateway,
        access: Arc<Access>,
        park: Duration,
    ) -> Self {
        Shared { engine, gateway, access, texts: Texts::default(), park, last: AtomicU64::new(0) }
    }
}

/// Whether the connection goes on after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    GoOn,
    End,
}

/// One client.
pub(crate) struct Client {
    shared: Arc<Shared>,
    /// Where it comes from.
    origin: Origin,
    /// Who it is, or why that is not known.
    pub(crate) identity: Result<Arc<Identity>, Denied>,
    number: u64,
    /// What it calls itself.
    who: Who,
    park: Duration,
    pub(crate) bound: Bound,
    pub(crate) watching: Watching,
    pub(crate) replies: Replies,
}

impl Client {
    /// A client at the address `from`, on `machine`.
    pub(crate) fn new(shared: &Arc<Shared>, origin: Origin, from: IpAddr, machine: IpAddr) -> Self {
        let identity = shared.access.identify(None, &origin).map(Arc::new);
        Client {
            origin,
            number: shared.last.fetch_add(1, Ordering::Relaxed) + 1,
            who: Who { host: from.to_string(), identity: known_name(&identity), ..Who::default() },
            identity,
            park: shared.park,
            bound: Bound::new(&shared.engine, machine),
            watching: Watching::default(),
            replies: Replies::default(),
            shared: Arc::clone(shared),
        }
    }

    /// Whether it is known who it is.
    pub(crate) fn is_identified(&self) -> bool {
        self.identity.is_ok()
    }

    /// Whether it was known who it is, and is no more.
    pub(crate) fn is_revoked(&self) -> bool {
        self.identity.as_ref().is_ok_and(|identity| !identity.is_known())
    }

    /// Tells something that has happened, if the client may see it.
    pub(crate) fn tell(&mut self, item: &Item) {
        let is_seen = match (item, &self.identity) {
            (Item::Change(change), Ok(identity)) => identity.sees(&change.name),
            (Item::Gap(_), Ok(_)) => true,
            (_, Err(_)) => false,
        };
        if is_seen {
            watch::tell(item, &mut self.replies);
        }
    }

    /// Answers a command. Dropping this takes back whatever waits.
    pub(crate) async fn answer(&mut self, command: Command<'_>) -> Next {
        if command.len() == 0 {
            return Next::GoOn;
        }
        match self.carry_out(command).await {
            Ok(next) => next,
            Err(failure) => {
                if let Failure::Denied(why) = &failure {
                    self.shared.engine.deny(why.who(), &why.to_string());
                }
                self.replies.error(&failure.to_string());
                if matches!(failure, Failure::Over(_)) { Next::End } else { Next::GoOn }
            }
        }
    }

    async fn carry_out(&mut self, command: Command<'_>) -> Result<Next, Failure> {
        let called = command.word(0);
        if is_http(called) {
            // Whatever follows is meant for somebody else: a page in a browser may have sent it.
            tracing::warn!("a client speaks HTTP at the port of the Redis protocol");
            return Ok(Next::End);
        }
        let Some(spec) = command::find(called) else { return Err(unknown_command(called)) };
        if !spec.takes(command.len()) {
            return Err(wrong_count(spec.name));
        }
        if let Some(role) = spec.role {
            self.identity()?.may(role, [])?;
        }
        self.watching.check(spec, self.replies.is_resp3)?;
        match spec.what {
            What::Quit => {
                self.replies.ok();
                return Ok(Next::End);
            }
            What::Set => self.set(command).await?,
            What::SetNx => self.set_new(command).await?,
            What::EvalSha | What::Eval => self.evaluate(command, spec.what).await?,
            What::Get => self.get(command).await?,
            What::Exists => self.exists(command).await?,
            What::Del => self.delete(command).await?,
            What::DelEx | What::DelIfEq => self.delete_equal(command, spec.what).await?,
            What::Left(unit) => self.left(command, unit).await?,
            What::Expire(unit) => self.expire(command, unit).await?,
            What::Script => self.script(command)?,
            What::Lock => self.lock(command).await?,
            What::Unlock => self.unlock(command).await?,
            What::Renew => self.renew(command).await?,
            What::Certain => self.certain()?,
            What::Check => self.check(command).await?,
            What::Fence => self.fence(command).await?,
            What::Locks => self.locks(command).await?,
            What::Park => self.park(command)?,
            What::Status => self.status(),
            What::Help => self.help(),
            What::Watch => self.watch(command)?,
            What::Unwatch => self.watching.end(Some(&mut self.replies)),
            What::Auth => self.auth(command)?,
            What::Hello => self.hello(command)?,
            What::Client => self.client(command)?,
            What::Command => self.commands(command)?,
            What::Info => self.info(),
            What::Ping => self.ping(command),
            What::Echo => self.replies.bulk(command.word(1)),
            What::Select => self.select(command)?,
            What::Reset => self.reset(),
        }
        Ok(Next::GoOn)
    }

    fn identity(&self) -> Result<&Identity, Failure> {
        match &self.identity {
            Ok(identity) => Ok(identity),
            Err(denied) => Err(denied.clone().into()),
        }
    }

    /// The key at a place of a command, which the client may use.
    fn key(&self, command: Command<'_>, place: usize, role: Role) -> Result<String, Failure> {
        let name = name(command.word(place))?;
        self.identity()?.may(role, [name])?;
        Ok(name.to_string())
    }

    /// All keys from a place of a command on, which the client may use.
    fn keys_from(
        &self,
        command: Command<'_>,
        place: usize,
        role: Role,
    ) -> Result<Vec<String>, Failure> {
        (place..command.len()).map(|place| self.key(command, place, role)).collect()
    }

    fn keys(&self) -> Result<Keys<'_>, Failure> {
        let (gateway, identity) = (&self.shared.gateway, self.identity()?);
        Ok(Keys { gateway, identity, who: &self.who, park: self.park })
    }

    async fn set(&mut self, command: Command<'_>) -> Result<(), Failure> {
        let options = SetOptions::read(command, 3)?;
        let name = self.key(command, 1, Role::Lock)?;
        let (value, keys) = (command.word(2), self.keys()?);
        let is_set = match options {
            SetOptions { is_new: true, ttl: Some(ttl) } => {
                keys.acquire(vec![name], value, ttl).await?
            }
            SetOptions { is_new: true, ttl: None } => keys.acquire_for_ever(&name, value).await?,
            SetOptions { is_new: false, ttl: Some(ttl) } => {
                keys.expire(&name, Change::Renew(catraca_group::Renewal::To(ttl))).await?
            }
            SetOptions { is_new: false, ttl: None } => return Err(Failure::Durable(name)),
        };
        match is_set {
            true => self.replies.ok(),
            false => self.replies.nil(),
        }
        Ok(())
    }

    async fn set_new(&mut self, command: Command<'_>) -> Result<(), Failure> {
        let name = self.key(command, 1, Role::Lock)?;
        let is_set = self.keys()?.acquire_for_ever(&name, command.word(2)).await?;
        self.replies.integer(i64::from(is_set));
        Ok(())
    }

    async fn evaluate(&mut self, command: Command<'_>, what: What) -> Result<(), Failure> {
        let script = match what {
            What::EvalSha => self.shared.texts.find(command.word(1)).ok_or(Failure::NoScript)?,
            _ => self.shared.texts.load(command.word(1))?.0,
        };
        let words = Words::read(command)?;
        self.identity()?.may(Role::Lock, words.keys.iter().map(String::as_str))?;
        let (gateway, who, park) = (&self.shared.gateway, &self.who, self.park);
        let identity = self.identity.as_ref().map_err(Denied::clone)?;
        let keys = Keys { gateway, identity, who, park };
        evaluation::evaluate(script, words, &keys, &mut self.replies).await
    }

    async fn get(&mut self, command: Command<'_>) -> Result<(), Failure> {
        let name = self.key(command, 1, Role::Observe)?;
        match self.keys()?.holder(&name).await? {
            Some(holder) => self.replies.bulk(holder.value()),
            None => self.replies.nil(),
        }
        Ok(())
    }

    async fn exists(&mut self, command: Command<'_>) -> Result<(), Failure> {
        let mut count = 0;
        for name in self.keys_from(command, 1, Role::Observe)? {
            count += i64::from(self.keys()?.holder(&name).await?.is_some());
        }
        self.replies.integer(count);
        Ok(())
    }

    async fn delete(&mut self, command: Command<'_>) -> Result<(), Failure> {
        let names = self.keys_from(command, 1, Role::Lock)?;
        let count = self.keys()?.delete(&names).await?;
        self.replies.integer(i64::try_from(count).unwrap_or(i64::MAX));
        Ok(())
    }

    /// `DELEX key IFEQ value`, and `DELIFEQ key value`.
    async fn delete_equal(&mut self, command: Command<'_>, what: What) -> Result<(), Failure> {
        let value = match (what, command.len()) {
            (What::DelIfEq, _) => command.word(2),
            (_, 2) => return self.delete(command).await,
            (_, 4) if command.word(2).eq_ignore_ascii_case(b"IFEQ") => command.word(3),
            (_, 4) => return Err(Failure::Said("ERR DELEX is served with IFEQ only".into())),
            _ => return Err(Failure::Syntax),
        };
        let names = [self.key(command, 1, Role::Lock)?];
        let keys = self.keys()?;
        let count = match keys.release_at_once(&names, value).await? {
            Once::Done => 1,
            Once::Free => 0,
            Once::Look => match keys.compare(&names, value).await? {
                Compared::Equal(equal) => keys.release(equal).await?,
                Compared::Free(_) | Compared::Other(_) => 0,
            },
        };
        self.replies.integer(i64::from(count > 0));
        Ok(())
    }

    async fn left(&mut self, command: Command<'_>, unit: Unit) -> Result<(), Failure> {
        let name = self.key(command, 1, Role::Observe)?;
        let holder = self.keys()?.holder(&name).await?;
        self.replies.integer(evaluation::left(holder.as_ref(), unit));
        Ok(())
    }

    async fn expire(&mut self, command: Command<'_>, unit: Unit) -> Result<(), Failure> {
        check_expire(command.word(3))?;
        let change = match duration(command.word(2), unit)? {
            Some(ttl) => Change::Renew(catraca_group::Renewal::To(ttl)),
            None => Change::End,
        };
        let name = self.key(command, 1, Role::Lock)?;
        let is_done = self.keys()?.expire(&name, change).await?;
        self.replies.integer(i64::from(is_done));
        Ok(())
    }

    fn script(&mut self, command: Command<'_>) -> Result<(), Failure> {
        let texts = &self.shared.texts;
        match (command.word(1).to_ascii_uppercase().as_slice(), command.len()) {
            (b"LOAD", 3) => {
                let (_, digest) = texts.load(command.word(2))?;
                self.replies.bulk(digest);
            }
            (b"EXISTS", 3..) => {
                self.replies.array(command.len() - 2);
                for digest in command.from(2) {
                    self.replies.integer(i64::from(texts.find(digest).is_some()));
                }
            }
            (b"FLUSH", 2 | 3) => {
                texts.forget();
                self.replies.ok();
            }
            (b"LOAD" | b"EXISTS" | b"FLUSH", _) => return Err(wrong_count("script")),
            _ => return Err(unknown_part("SCRIPT", command.word(1))),
        }
        Ok(())
    }
}

/// Its name, for whoever looks later at what it held; empty if it is nobody in particular.
fn known_name(identity: &Result<Arc<Identity>, Denied>) -> String {
    let name = identity.as_ref().ok().and_then(|identity| identity.known_name());
    name.unwrap_or_default().to_string()
}

/// Words that begin a line of HTTP.
fn is_http(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"POST") || word.eq_ignore_ascii_case(b"Host:")
}
