//! The commands of Catraca itself.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use catraca_group::{
    Acquire, HoldId, Line, LineKey, Query, Readiness, Refusal, Renewal, Selection, Wait, Which, Who,
};

use crate::access::Role;
use crate::gateway::Asking;
use crate::resp::command::HELP;
use crate::resp::failure::Failure;
use crate::resp::frame::{Command, integer};
use crate::resp::keys::{duration, name};
use crate::resp::reply::Replies;
use crate::resp::script::Unit;

use super::Client;

/// How many lines a page of `CATRACA.LOCKS` has at the most.
const PAGE: u32 = 200;
/// Nobody waits for longer, or lets a `SET NX` wait for longer.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// What `CATRACA.LOCK` asks for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    names: Vec<String>,
    wait: Wait,
    ttl: Option<Duration>,
    permits: u32,
    label: Option<String>,
}

impl Asked {
    /// Reads `CATRACA.LOCK name [name ...] [WAIT ms] [TTL ms] [PERMITS n] [LABEL text]`. The first word is
    /// a name, whatever it is.
    fn read(command: Command<'_>) -> Result<Self, Failure> {
        let names = vec![name(command.word(1))?.to_string()];
        let mut asked = Asked { names, wait: Wait::Forever, ttl: None, permits: 1, label: None };
        let mut words = command.from(2);
        let mut has_options = false;
        while let Some(word) = words.next() {
            let option = word.to_ascii_uppercase();
            let is_option = matches!(option.as_slice(), b"WAIT" | b"TTL" | b"PERMITS" | b"LABEL");
            if !is_option {
                if has_options {
                    return Err(Failure::Syntax);
                }
                asked.names.push(name(word)?.to_string());
                continue;
            }
            has_options = true;
            let given = words.next().ok_or(Failure::Syntax)?;
            match option.as_slice() {
                b"WAIT" => {
                    let limit = bounded(given)?;
                    asked.wait = if limit.is_zero() { Wait::no() } else { Wait::AtMost(limit) };
                }
                b"TTL" => {
                    let ttl = duration(given, Unit::Millis)?;
                    asked.ttl = Some(ttl.ok_or(Failure::Expiry("catraca.lock"))?);
                }
                b"PERMITS" => {
                    let permits = integer(given).ok_or(Failure::Integer)?;
                    asked.permits = u32::try_from(permits).map_err(|_| Failure::Integer)?;
                }
                _ => asked.label = Some(String::from_utf8_lossy(given).into_owned()),
            }
        }
        Ok(asked)
    }
}

/// A time in milliseconds, which may be none and not too long.
fn bounded(text: &[u8]) -> Result<Duration, Failure> {
    let millis = integer(text).and_then(|millis| u64::try_from(millis).ok());
    let time = millis.map(Duration::from_millis).ok_or(Failure::Integer)?;
    if time > LONGEST_WAIT { Err(Failure::Integer) } else { Ok(time) }
}

/// A hold that is called by its id.
fn hold_id(text: &[u8]) -> Option<HoldId> {
    let digits = std::str::from_utf8(text).ok().filter(|digits| digits.len() == 32)?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u128::from_str_radix(digits, 16).ok().map(HoldId)).flatten()
}

impl Client {
    pub(super) async fn lock(&mut self, command: Command<'_>) -> Result<(), Failure> {
        let Asked { names, wait, ttl, permits, label } = Asked::read(command)?;
        self.identity()?.may(Role::Lock, names.iter().map(String::as_str))?;
        let granted = match ttl {
            Some(ttl) => {
                let label = label.unwrap_or_else(|| self.who.label.clone());
                let who = Who { label, ..self.who.clone() };
                let asked = Asking { names, permits, wait, ttl, who, token: Vec::new() };
                let granted = self.shared.gateway.acquire(asked).await;
                granted.map(|hold| (hold.id.to_string(), hold.fences)).map_err(Failure::Refused)
            }
            None => {
                let asked = Acquire { names, permits, wait };
                self.bound.acquire(asked, label, &self.who).await
            }
        };
        match granted {
            Ok((id, fences)) => {
                self.replies.array(1 + fences.len());
                self.replies.bulk(id);
                fences.iter().for_each(|&fence| number(fence, &mut self.replies));
                Ok(())
            }
            Err(Failure::Refused(Refusal::Taken | Refusal::TimedOut)) => {
                self.replies.nil();
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    pub(super) async fn unlock(&mut self, command: Command<'_>) -> Result<(), Failure> {
        let called = String::from_utf8_lossy(command.word(1));
        if let Some(number) = self.bound.find(&called) {
            self.bound.release(number)?;
            self.replies.integer(1);
            return Ok(());
        }
        let is_released = match hold_id(command.word(1)) {
            Some(id) => {
                self.timed(id).await? && {
                    let released = self.shared.gateway.release(&Which::Id(id)).await;
                    is_there(released)?
                }
            }
            None => false,
        };
        self.replies.integer(i64::from(is_released));
        Ok(())
    }

    /// Whether there is a timed hold of this id, whose locks the client may use.
    async fn timed(&self, id: HoldId) -> Result<bool, Failure> {
        match self.shared.gateway.look(&Which::Id(id)).await {
            Ok(hold) => {
                self.identity()?.may(Role::Lock, hold.names.iter().map(String::as_str))?;
                Ok(true)
            }
            Err(Refusal::NoSuchHold(_)) => Ok(false),
            Err(why) => Err(why.into()),
        }
    }

    pub(super) async fn renew(&mut self, command: Command<'_>) -> Result<(), Failure> {
        let called = String::from_utf8_lossy(command.word(1));
        if self.bound.find(&called).is_some() {
            return Err(Failure::Said(format!(
                "ERR '{called}' belongs to this connection and lives as long: there is nothing to renew"
            )));
        }
        let ttl = duration(command.word(2), Unit::Millis)?;
        let ttl = ttl.ok_or(Failure::Expiry("catraca.renew"))?;
        let is_renewed = match hold_id(command.word(1)) {
            Some(id) => {
                self.timed(id).await? && {
                    let renewed = self.shared.gateway.renew(&Which::Id(id), Renewal::To(ttl)).await;
                    is_there(renewed)?
                }
            }
            None => false,
        };
        self.replies.integer(i64::from(is_renewed));
        Ok(())
    }

    pub(super) fn certain(&mut self) -> Result<(), Failure> {
        self.bound.check()?;
        let certain = self.shared.gateway.certain().as_millis();
        self.replies.integer(i64::try_from(certain).unwrap_or(i64::MAX));
        Ok(())
    }

    pub(super) async fn check(&mut self, command: Command<'_>) -> Result<(), Failure> {
        let name = self.key(command, 1, Role::Observe)?;
        let fence = integer(command.word(2)).and_then(|fence| u64::try_from(fence).ok());
        let fence = fence.ok_or(Failure::Integer)?;
        let lines = self.keys()?.lines(&name).await?;
        let is_held = lines.iter().any(|line| line.fence == Some(fence));
        self.replies.integer(i64::from(is_held));
        Ok(())
    }

    pub(super) async fn fence(&mut self, command: Command<'_>) -> Result<(), Failure> {
        let name = self.key(command, 1, Role::Observe)?;
        let value = (command.len() == 3).then(|| command.word(2));
        match self.keys()?.fence(&name, value).await? {
            Some(fence) => number(fence, &mut self.replies),
            None => self.replies.nil(),
        }
        Ok(())
    }

    pub(super) async fn locks(&mut self, command: Command<'_>) -> Result<(), Failure> {
        let names = match command.word(1) {
            b"" => Selection::All,
            prefix => {
                let prefix = std::str::from_utf8(prefix).map_err(|_| Failure::NoText)?;
                Selection::Prefix(prefix.to_string())
            }
        };
        let after = cursor(command.word(2))?;
        let query = Query { whole_group: true, names, after, limit: PAGE };
        let gateway = &self.shared.gateway;
        let make = async |query| gateway.page(query).await.ok();
        let page = self.identity()?.visible(query, make).await.ok_or(Refusal::Stopped)?;
        let next = page.lines.last().filter(|_| page.more).map(|line| &line.key);
        let next = next.map_or_else(|| "0".to_string(), written);
        let replies = &mut self.replies;
        replies.array(3);
        replies.bulk(next);
        replies.array(page.lines.len());
        page.lines.iter().for_each(|line| describe(line, replies));
        // Members that did not answer: what they have is missing.
        replies.array(page.silent.len());
        page.silent.iter().for_each(|member| replies.bulk(member));
        Ok(())
    }

    pub(super) fn watch(&mut self, command: Command<'_>) -> Result<(), Failure> {
        let prefix = std::str::from_utf8(command.word(1)).map_err(|_| Failure::NoText)?;
        let subscription = self.shared.gateway.changes(prefix.to_string(), None);
        self.watching.begin(subscription, &mut self.replies);
        Ok(())
    }

    pub(super) fn park(&mut self, command: Command<'_>) -> Result<(), Failure> {
        self.park = bounded(command.word(1))?;
        self.replies.ok();
        Ok(())
    }

    pub(super) fn status(&mut self) {
        let status = self.shared.gateway.status();
        let is_ready = status.readiness == Readiness::Ready;
        let members = status.members.iter().filter(|member| member.is_in_view).count();
        let replies = &mut self.replies;
        replies.map(9);
        for (key, value) in [("group", &status.group), ("member", &status.node)] {
            replies.bulk(key);
            replies.bulk(value);
        }
        let numbers = [
            ("ready", u64::from(is_ready)),
            ("epoch", u64::from(status.epoch)),
            ("members", members as u64),
            ("held", status.held),
            ("waiting", status.waiting),
            ("grants", status.grants),
            ("locks", status.locks),
        ];
        for (key, value) in numbers {
            replies.bulk(key);
            replies.integer(i64::try_from(value).unwrap_or(i64::MAX));
        }
    }

    pub(super) fn help(&mut self) {
        self.replies.array(HELP.len());
        HELP.iter().for_each(|line| self.replies.bulk(line));
    }
}

/// A fence, as a text: numbers of some languages end at 2^53.
fn number(fence: u64, replies: &mut Replies) {
    replies.bulk(fence.to_string());
}

fn is_there<T>(done: Result<T, Refusal>) -> Result<bool, Failure> {
    match done {
        Ok(_) => Ok(true),
        Err(Refusal::NoSuchHold(_)) => Ok(false),
        Err(why) => Err(why.into()),
    }
}

/// One holder or waiter.
fn describe(line: &Line, replies: &mut Replies) {
    replies.map(8);
    let owner = line.durable.as_ref().map_or("", |durable| &durable.owner);
    for (key, value) in [
        ("name", line.key.name.as_str()),
        ("member", &line.key.node),
        ("label", &line.label),
        ("host", &line.host),
        ("owner", owner),
    ] {
        replies.bulk(key);
        replies.bulk(value);
    }
    replies.bulk("place");
    replies.integer(i64::from(line.key.place));
    replies.bulk("fence");
    match line.fence {
        Some(fence) => number(fence, replies),
        None => replies.nil(),
    }
    replies.bulk("millis");
    replies.integer(i64::try_from(line.millis).unwrap_or(i64::MAX));
}

/// Where the next page begins, for the client to say.
fn written(key: &LineKey) -> String {
    // A key that was made here can be written.
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(key).unwrap_or_default())
}

/// Where a page begins: at the beginning, or where the client was told.
fn cursor(text: &[u8]) -> Result<Option<LineKey>, Failure> {
    if text.is_empty() || text == b"0" {
        return Ok(None);
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).ok();
    let key = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let wrong = || Failure::Said("ERR invalid cursor: say the one of the page before, or 0".into());
    key.map(Some).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use crate::resp::frame::Decoder;

    use super::*;

    fn read(line: &str) -> Result<Asked, String> {
        let line = format!("CATRACA.LOCK {line}\r\n");
        let mut decoder = Decoder::default();
        decoder.check(line.as_bytes()).unwrap().unwrap();
        Asked::read(decoder.command(line.as_bytes())).map_err(|failure| failure.to_string())
    }

    #[test]
    fn what_is_asked_for_is_read() {
        let asked = read("a b WAIT 100 TTL 2000 PERMITS 3 LABEL 'me and you'").unwrap();
        let names = vec!["a".to_string(), "b".to_string()];
        let (wait, ttl) = (Wait::AtMost(Duration::from_millis(100)), Some(Duration::from_secs(2)));
        let label = Some("me and you".to_string());
        assert_eq!(asked, Asked { names, wait, ttl, permits: 3, label });
        assert_eq!(read("wait wait 0").unwrap().wait, Wait::no());
        assert_eq!(read("wait").unwrap().wait, Wait::Forever);
        for wrong in ["a WAIT", "a WAIT x", "a WAIT -1", "a WAIT 86400001", "a WAIT 1 b", "a TTL 0"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_page_begins_where_the_last_one_ended() {
        let (name, node) = ("x".to_string(), "a".to_string());
        let key = LineKey { name, permits: 1, place: 2, node, ticket: 7 };
        assert_eq!(cursor(written(&key).as_bytes()).ok().flatten(), Some(key));
        assert!(matches!(cursor(b"0"), Ok(None)));
        assert!(cursor(b"!").is_err() && cursor(b"AAAA").is_err());
    }

    #[test]
    fn only_all_digits_of_an_id_are_one() {
        let id = HoldId(7);
        assert_eq!(hold_id(id.to_string().as_bytes()), Some(id));
        for wrong in ["", "7", &"x".repeat(32), &"+".repeat(32), &"0".repeat(33)] {
            assert_eq!(hold_id(wrong.as_bytes()), None);
        }
    }
}
