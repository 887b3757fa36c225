//! What Redis does with keys, done with locks: a key is held, with a value and a time to live, or it is
//! not there.
//!
//! A key that was set with a time to live is a timed hold, whose token is the value. One that was set
//! without is a durable hold: it never expires, and neither does that in Redis. Whoever holds the same lock
//! over another interface holds the key too.

mod set;

use std::time::Duration;

use catraca_group::{
    AcquireDurable, DurableHold, HoldId, Line, LockName, Query, Refusal, Renewal, Selection,
    Target, TimedHold, Unlock, Wait, Which, Who,
};
use sha2::{Digest, Sha256};

use crate::access::Identity;
use crate::gateway::{Asking, Gateway};
use crate::secret::secret;

use super::failure::Failure;
use super::frame::integer;
use super::script::{Unit, hex};

pub(crate) use set::{SetOptions, check_expire, count};

/// Marks the owners of durable holds that were taken over this protocol.
const OWNER: &str = "resp:";

/// The keys, as one client sees them.
pub(crate) struct Keys<'a> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) identity: &'a Identity,
    /// Who asks, as lists show it.
    pub(crate) who: &'a Who,
    /// How long a key that is not free is waited for.
    pub(crate) park: Duration,
}

/// Whoever holds a key.
pub(crate) enum Holder {
    Timed(TimedHold),
    Durable(DurableHold),
    /// Over another interface.
    Else(Line),
}

/// What became of comparing the value of keys.
pub(crate) enum Compared {
    /// All are held with this value.
    Equal(Equal),
    /// Nobody holds one of them.
    Free(Equal),
    /// One of them is held with another value.
    Other(Equal),
}

impl Compared {
    /// Those that are held with this value, whatever the others are.
    pub(crate) fn equal(self) -> Equal {
        match self {
            Compared::Equal(equal) | Compared::Free(equal) | Compared::Other(equal) => equal,
        }
    }
}

/// The holds of keys that have one value.
#[derive(Default)]
pub(crate) struct Equal {
    /// How many of the keys they are.
    pub(crate) count: usize,
    timed: Vec<TimedHold>,
    durable: Vec<DurableHold>,
}

impl Equal {
    /// The shortest time that is left, if they do not stay for ever.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.timed.iter().map(|hold| hold.left).min()
    }
}

/// How a time to live is to change.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    Renew(Renewal),
    /// It is over already.
    End,
}

/// The name of a lock that a key is.
pub(crate) fn name(key: &[u8]) -> Result<&str, Failure> {
    let text = std::str::from_utf8(key).map_err(|_| Failure::NoText)?;
    Ok(LockName::new(text)?.as_str())
}

/// A time that a client gives.
pub(crate) fn duration(text: &[u8], unit: Unit) -> Result<Option<Duration>, Failure> {
    let number = integer(text).ok_or(Failure::Integer)?;
    let millis = match unit {
        Unit::Millis => Some(number),
        Unit::Seconds => number.checked_mul(1000),
    };
    let millis = millis.ok_or(Failure::Integer)?;
    Ok(u64::try_from(millis).ok().filter(|&millis| millis > 0).map(Duration::from_millis))
}

/// How Redis tells a time that is left.
pub(crate) fn told(left: Duration, unit: Unit) -> i64 {
    let millis = i64::try_from(left.as_millis()).unwrap_or(i64::MAX);
    match unit {
        Unit::Millis => millis,
        Unit::Seconds => millis.saturating_add(500) / 1000,
    }
}

impl Keys<'_> {
    /// Takes all of these locks with a value, for so long. Returns false if somebody else has one.
    pub(crate) async fn acquire(
        &self,
        names: Vec<String>,
        value: &[u8],
        ttl: Duration,
    ) -> Result<bool, Failure> {
        let (wait, who, token) = (self.wait(), self.who.clone(), value.to_vec());
        let asked = Asking { names, permits: 1, wait, ttl, who, token };
        granted(self.gateway.acquire(asked).await)
    }

    /// Takes a lock with a value, until it is released. Returns false if somebody else has it.
    pub(crate) async fn acquire_for_ever(&self, name: &str, value: &[u8]) -> Result<bool, Failure> {
        let owner = self.owner(value);
        self.identity.may_own(&owner)?;
        // Each request has another name: otherwise the same value twice would be the same hold.
        let request = hex(&secret::<16>());
        let (names, wait, note) = (vec![name.to_string()], self.wait(), escaped(value));
        let asked = AcquireDurable { names, permits: 1, wait, owner, note, request };
        granted(self.gateway.acquire_durable(asked).await)
    }

    /// How long to wait for whoever holds a lock.
    fn wait(&self) -> Wait {
        if self.park.is_zero() { Wait::no() } else { Wait::AtMost(self.park) }
    }

    /// The owner of durable holds of this client with this value.
    fn owner(&self, value: &[u8]) -> String {
        let digest = hex(&Sha256::digest(value)[..16]);
        match self.identity.proven_name() {
            Some(name) => format!("{name}/{OWNER}{digest}"),
            None => format!("{OWNER}{digest}"),
        }
    }

    /// Whoever holds a key.
    pub(crate) async fn holder(&self, name: &str) -> Result<Option<Holder>, Failure> {
        let which = Which::Name { name: name.to_string(), token: None };
        if let Some(timed) = found(self.gateway.look(&which).await)? {
            return Ok(Some(Holder::Timed(timed)));
        }
        if let Some(durable) = self.durable(name).await? {
            return Ok(Some(Holder::Durable(durable)));
        }
        Ok(self.lines(name).await?.into_iter().next().map(Holder::Else))
    }

    /// Those who hold the lock, over whichever interface.
    pub(crate) async fn lines(&self, name: &str) -> Result<Vec<Line>, Failure> {
        let names = Selection::Name(name.to_string());
        let query = Query { whole_group: true, names, after: None, limit: 64 };
        let page = self.gateway.page(query).await?;
        let lines: Vec<Line> = page.lines.into_iter().filter(|line| line.key.place == 0).collect();
        match page.silent.into_iter().next() {
            // Somebody there may hold it.
            Some(member) if lines.is_empty() => Err(Refusal::Silent(member).into()),
            _ => Ok(lines),
        }
    }

    /// Compares the value of all of these keys.
    pub(crate) async fn compare(
        &self,
        names: &[String],
        value: &[u8],
    ) -> Result<Compared, Failure> {
        let mut equal = Equal::default();
        let (mut is_free, mut is_other) = (false, false);
        for (place, name) in names.iter().enumerate() {
            if equal.timed.iter().any(|hold| hold.names.contains(name))
                || names[..place].contains(name)
            {
                equal.count += 1;
                continue;
            }
            let token = Some(value.to_vec());
            let which = Which::Name { name: name.clone(), token };
            match self.gateway.look(&which).await {
                Ok(hold) => {
                    together(&hold, names)?;
                    equal.timed.push(hold);
                    equal.count += 1;
                }
                Err(Refusal::OtherHolder(_)) => is_other = true,
                Err(Refusal::NoSuchHold(_)) => match self.durable(name).await? {
                    Some(hold) if hold.owner == self.owner(value) => {
                        equal.durable.push(hold);
                        equal.count += 1;
                    }
                    Some(_) => is_other = true,
                    None => is_free = true,
                },
                Err(why) => return Err(why.into()),
            }
        }
        Ok(match () {
            () if is_other => Compared::Other(equal),
            () if is_free => Compared::Free(equal),
            () => Compared::Equal(equal),
        })
    }

    /// The durable hold of a key, if there is one.
    async fn durable(&self, name: &str) -> Result<Option<DurableHold>, Failure> {
        match self.gateway.durable(Target::Name(name.to_string())).await {
            // Several have permits of a semaphore of this name.
            Err(Refusal::NoRegistry | Refusal::SeveralHolds(..)) => Ok(None),
            durable => found(durable),
        }
    }

    /// Releases holds. Returns how many there were.
    pub(crate) async fn release(&self, equal: Equal) -> Result<usize, Failure> {
        let mut released = 0;
        for TimedHold { id, .. } in equal.timed {
            let gone = found(self.gateway.release(&Which::Id(id)).await)?;
            released += usize::from(gone.is_some());
        }
        for DurableHold { id, owner, .. } in equal.durable {
            released += usize::from(self.unlock(id, owner).await?);
        }
        Ok(released)
    }

    /// Releases a durable hold. Returns false if it is gone already.
    async fn unlock(&self, id: HoldId, owner: String) -> Result<bool, Failure> {
        self.identity.may_own(&owner)?;
        let unlock = Unlock { target: Target::Id(id), owner: Some(owner) };
        Ok(found(self.gateway.unlock(unlock).await)?.is_some())
    }

    /// Changes how long holds live. Returns false if one is gone.
    pub(crate) async fn change(&self, equal: Equal, change: Change) -> Result<bool, Failure> {
        let Change::Renew(renewal) = change else {
            return Ok(self.release(equal).await? > 0);
        };
        if let Some(hold) = equal.durable.first() {
            return Err(Failure::Durable(hold.names.join(" ")));
        }
        let mut is_done = true;
        for TimedHold { id, .. } in equal.timed {
            is_done &= found(self.gateway.renew(&Which::Id(id), renewal).await)?.is_some();
        }
        Ok(is_done)
    }

    /// Changes how long a key lives, whoever holds it. Returns false if nobody does.
    pub(crate) async fn expire(&self, name: &str, change: Change) -> Result<bool, Failure> {
        let names = [name.to_string()];
        match self.holder(name).await? {
            None => Ok(false),
            Some(Holder::Timed(hold)) => {
                together(&hold, &names)?;
                self.change(Equal { count: 1, timed: vec![hold], ..Equal::default() }, change).await
            }
            Some(Holder::Durable(hold)) if is_own(&hold.owner) => {
                self.change(Equal { count: 1, durable: vec![hold], ..Equal::default() }, change)
                    .await
            }
            Some(Holder::Durable(hold)) => Err(elsewhere(name, hold.owner)),
            Some(Holder::Else(line)) => Err(elsewhere(name, described(&line))),
        }
    }

    /// Deletes keys, whoever holds them. Returns how many were held.
    pub(crate) async fn delete(&self, names: &[String]) -> Result<usize, Failure> {
        let mut all = Equal::default();
        for (place, name) in names.iter().enumerate() {
            if names[..place].contains(name)
                || all.timed.iter().any(|hold| hold.names.contains(name))
            {
                all.count += usize::from(!names[..place].contains(name));
                continue;
            }
            match self.holder(name).await? {
                None => continue,
                Some(Holder::Timed(hold)) => {
                    together(&hold, names)?;
                    all.timed.push(hold);
                }
                Some(Holder::Durable(hold)) if is_own(&hold.owner) => all.durable.push(hold),
                Some(Holder::Durable(hold)) => return Err(elsewhere(name, hold.owner)),
                Some(Holder::Else(line)) => return Err(elsewhere(name, described(&line))),
            }
            all.count += 1;
        }
        let count = all.count;
        self.release(all).await?;
        Ok(count)
    }

    /// The fence with which a key is held; with a value, only if it is that of the holder.
    pub(crate) async fn fence(
        &self,
        name: &str,
        value: Option<&[u8]>,
    ) -> Result<Option<u64>, Failure> {
        let fence_of = |names: &[String], fences: &[u64]| {
            let found = names.iter().zip(fences).find(|(held, _)| *held == name);
            found.map(|(_, &fence)| fence)
        };
        if let Some(value) = value {
            let Compared::Equal(equal) = self.compare(&[name.to_string()], value).await? else {
                return Ok(None);
            };
            let timed = equal.timed.iter().map(|hold| fence_of(&hold.names, &hold.fences));
            let durable = equal.durable.iter().map(|hold| fence_of(&hold.names, &hold.fences));
            return Ok(timed.chain(durable).flatten().next());
        }
        Ok(self.lines(name).await?.into_iter().find_map(|line| line.fence))
    }
}

impl Holder {
    /// The value that the key has.
    pub(crate) fn value(&self) -> Vec<u8> {
        match self {
            Holder::Timed(hold) => hold.token.clone(),
            Holder::Durable(hold) if is_own(&hold.owner) => unescaped(&hold.note),
            Holder::Durable(hold) => format!("catraca:{}", hold.owner).into_bytes(),
            Holder::Else(line) => format!("catraca:{}", described(line)).into_bytes(),
        }
    }

    /// How long the key lives; nothing if it does not expire.
    pub(crate) fn left(&self) -> Option<Duration> {
        match self {
            Holder::Timed(hold) => Some(hold.left),
            Holder::Durable(_) | Holder::Else(_) => None,
        }
    }
}

/// Whether a request was granted; that somebody else has it is no failure.
fn granted<T>(asked: Result<T, Refusal>) -> Result<bool, Failure> {
    match asked {
        Ok(_) => Ok(true),
        Err(Refusal::Taken | Refusal::TimedOut | Refusal::OtherHolder(_)) => Ok(false),
        Err(why) => Err(why.into()),
    }
}

/// What was looked for, if it is there.
fn found<T>(looked: Result<T, Refusal>) -> Result<Option<T>, Failure> {
    match looked {
        Ok(it) => Ok(Some(it)),
        Err(Refusal::NoSuchHold(_)) => Ok(None),
        Err(why) => Err(why.into()),
    }
}

/// A hold of several locks ends at once: all of them have to be named.
fn together(hold: &TimedHold, names: &[String]) -> Result<(), Failure> {
    match hold.names.iter().find(|held| !names.contains(held)) {
        None => Ok(()),
        Some(_) => {
            let named = names.iter().find(|name| hold.names.contains(name));
            let named = named.cloned().unwrap_or_default();
            Err(Failure::Together(named, hold.names.join(", ")))
        }
    }
}

/// Whether a durable hold was taken over this protocol.
fn is_own(owner: &str) -> bool {
    let last = owner.rsplit_once('/').map_or(owner, |(_, last)| last);
    last.strip_prefix(OWNER).is_some_and(|digest| digest.len() == 32)
}

fn elsewhere(name: &str, holder: String) -> Failure {
    Failure::Elsewhere(name.to_string(), holder)
}

/// Who a line of a list is about.
fn described(line: &Line) -> String {
    match &line.durable {
        Some(durable) => durable.owner.clone(),
        None => format!("{}@{}", line.label, line.key.node),
    }
}

/// A value as the note of a durable hold, for people to read and for [`unescaped`].
fn escaped(value: &[u8]) -> String {
    let one = |&byte: &u8| match byte {
        b'\\' => "\\\\".to_string(),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    value.iter().map(one).collect()
}

fn unescaped(note: &str) -> Vec<u8> {
    let (mut value, mut rest) = (Vec::new(), note.as_bytes());
    loop {
        rest = match rest {
            [] => return value,
            [b'\\', b'x', high, low, after @ ..] => {
                let digit = |hex: u8| char::from(hex).to_digit(16).unwrap_or_default() as u8;
                value.push(digit(*high) << 4 | digit(*low));
                after
            }
            [b'\\', byte, after @ ..] | [byte, after @ ..] => {
                value.push(*byte);
                after
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read_and_told_as_redis_does() {
        let read = |text: &str, unit| duration(text.as_bytes(), unit).ok();
        assert_eq!(read("1500", Unit::Millis), Some(Some(Duration::from_millis(1500))));
        assert_eq!(read("2", Unit::Seconds), Some(Some(Duration::from_secs(2))));
        assert_eq!(read("0", Unit::Millis), Some(None));
        assert_eq!(read("-1", Unit::Seconds), Some(None));
        for wrong in ["", "x", "1.5", "+1", " 1", "9223372036854775807"] {
            assert_eq!(read(wrong, Unit::Seconds), None, "{wrong}");
        }
        let millis = Duration::from_millis;
        let told = [1, 499, 500, 1499, 1500].map(|it| told(millis(it), Unit::Seconds));
        assert_eq!(told, [0, 0, 1, 1, 2]);
    }

    #[test]
    fn a_key_that_names_no_lock_is_refused() {
        assert!(name(b"orders/42").is_ok());
        for wrong in [&b""[..], b"a b", b"\xff", &[b'x'; 256]] {
            assert!(name(wrong).is_err());
        }
    }

    #[test]
    fn owners_of_this_protocol_are_known() {
        let digest = "0".repeat(32);
        for own in [format!("resp:{digest}"), format!("ci/resp:{digest}")] {
            assert!(is_own(&own));
        }
        for other in ["alice", "resp:x", "resp/alice", &format!("xresp:{digest}")] {
            assert!(!is_own(other), "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_value_comes_back_from_its_note(value in proptest::collection::vec(any::<u8>(), 0..60)) {
            prop_assert_eq!(unescaped(&escaped(&value)), value);
        }
    }
}
