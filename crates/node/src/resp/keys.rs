//! What Redis does with keys, done with locks: a key is held, with a value and a time to live, or it is
//! not there.
//!
//! A key that was set with a time to live is a timed hold, whose token is the value. One that was set
//! without is a durable hold: it never expires, and neither does that in Redis. Whoever holds the same lock
//! over another interface holds the key too.

mod holder;
mod set;
mod value;

use std::time::Duration;

use catraca_group::{
    AcquireDurable, DurableHold, HoldId, Line, Operation, Query, Refusal, Renewal, Selection,
    Target, TimedHold, Unlock, Wait, Which, Who,
};
use sha2::{Digest, Sha256};

use crate::access::Identity;
use crate::gateway::{Asking, Gateway};
use crate::secret::secret;

use super::failure::Failure;
use super::script::hex;

use holder::{OWNER, asked_by, described, is_own, together};
use value::{check_value, escaped};

pub(crate) use holder::{Compared, Equal, Holder};
pub(crate) use set::{SetOptions, check_expire, count};
pub(crate) use value::{duration, name, told};

/// The keys, as one client sees them.
pub(crate) struct Keys<'a> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) identity: &'a Identity,
    /// Who asks, as lists show it.
    pub(crate) who: &'a Who,
    /// How long a key that is not free is waited for.
    pub(crate) park: Duration,
}

/// How a time to live is to change.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    Renew(Renewal),
    /// It is over already.
    End,
}

/// What came of comparing and acting in one step.
pub(crate) enum Once {
    Done,
    /// Nobody holds the key.
    Free,
    /// It is not one timed hold of this key with this value: one has to look which it is.
    Look,
}

/// What was found of a key among timed holds.
enum Looked {
    Timed(Box<TimedHold>),
    /// Nobody holds it, in any way.
    Free,
    /// It is held with another value, or over another interface, or durably.
    Otherwise,
}

impl Keys<'_> {
    /// Takes all of these locks with a value, for so long. Returns false if somebody else has one.
    pub(crate) async fn acquire(
        &self,
        names: Vec<String>,
        value: &[u8],
        ttl: Duration,
    ) -> Result<bool, Failure> {
        check_value(value)?;
        let (wait, who, token) = (self.wait(), self.who.clone(), value.to_vec());
        let asked = Asking { names, permits: 1, wait, ttl, who, token };
        granted(self.gateway.acquire(asked).await)
    }

    /// Takes a lock with a value, until it is released. Returns false if somebody else has it.
    pub(crate) async fn acquire_for_ever(&self, name: &str, value: &[u8]) -> Result<bool, Failure> {
        check_value(value)?;
        let owner = self.owner(value);
        self.identity.may_own(&owner)?;
        // Each request has another name: otherwise the same value twice would be the same hold.
        let request = hex(&secret::<16>());
        let (names, wait, note) = (vec![name.to_string()], self.wait(), escaped(value));
        let asked = AcquireDurable { names, permits: 1, wait, owner, note, request };
        granted(self.gateway.acquire_durable(asked, &self.who.identity).await)
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
        match self.look(name, None).await? {
            Looked::Timed(hold) => Ok(Some(Holder::Timed(*hold))),
            Looked::Free => Ok(None),
            Looked::Otherwise => match self.durable(name).await? {
                Some(hold) => Ok(Some(Holder::Durable(hold))),
                None => Ok(self.lines(name).await?.into_iter().next().map(Holder::Else)),
            },
        }
    }

    /// Looks for a timed hold of a key, with this value if one is given.
    async fn look(&self, name: &str, value: Option<&[u8]>) -> Result<Looked, Failure> {
        let token = value.map(<[u8]>::to_vec);
        let which = Which::Name { name: name.to_string(), token };
        match self.gateway.look(&which).await {
            Ok(hold) => Ok(Looked::Timed(Box::new(hold))),
            Err(Refusal::NoSuchHold(_)) => Ok(Looked::Free),
            Err(Refusal::OtherHolder(_)) => Ok(Looked::Otherwise),
            Err(why) => Err(why.into()),
        }
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
            if equal.covers(name) {
                equal.count += 1;
                continue;
            }
            if names[..place].contains(name) {
                continue;
            }
            match self.look(name, Some(value)).await? {
                Looked::Free => is_free = true,
                // Who has no value proves nothing by saying none.
                Looked::Timed(hold) if hold.token.is_empty() => is_other = true,
                Looked::Timed(hold) => {
                    together(&hold, names)?;
                    equal.timed.push(*hold);
                    equal.count += 1;
                }
                Looked::Otherwise => match self.durable_with(name, value).await? {
                    Some(hold) => {
                        equal.durable.push(hold);
                        equal.count += 1;
                    }
                    None => is_other = true,
                },
            }
        }
        Ok(match () {
            () if is_other => Compared::Other(equal),
            () if is_free => Compared::Free(equal),
            () => Compared::Equal(equal),
        })
    }

    /// The durable hold of a key that is not held with this value by a timed one, if it is held so.
    async fn durable_with(&self, name: &str, value: &[u8]) -> Result<Option<DurableHold>, Failure> {
        // Mostly it is a timed one with another value, and the registry need not be asked.
        let Looked::Otherwise = self.look(name, None).await? else { return Ok(None) };
        let durable = self.durable(name).await?;
        Ok(durable.filter(|hold| hold.owner == self.owner(value)))
    }

    /// The durable hold of a key, if there is one.
    async fn durable(&self, name: &str) -> Result<Option<DurableHold>, Failure> {
        match self.gateway.durable(Target::Name(name.to_string())).await {
            // Several have permits of a semaphore of this name.
            Err(Refusal::NoRegistry | Refusal::SeveralHolds(..)) => Ok(None),
            durable => found(durable),
        }
    }

    /// Does something with the timed hold of one key, if it holds that key only and, where a value is given,
    /// has this value: in one step, where comparing and then doing it would be two.
    async fn at_once(
        &self,
        names: &[String],
        value: Option<&[u8]>,
        operation: Operation,
    ) -> Result<Once, Failure> {
        // Nobody has the empty value, and how that is answered depends on who holds the key.
        let ([name], false) = (names, value.is_some_and(<[u8]>::is_empty)) else {
            return Ok(Once::Look);
        };
        let which = Which::Alone { name: name.clone(), token: value.map(<[u8]>::to_vec) };
        match self.gateway.operate(which, operation).await {
            Ok(_) => Ok(Once::Done),
            Err(Refusal::NoSuchHold(_)) => Ok(Once::Free),
            Err(Refusal::OtherHolder(_)) => Ok(Once::Look),
            Err(why) => Err(why.into()),
        }
    }

    /// Releases one key if it has this value, at once where that can be done.
    pub(crate) async fn release_at_once(
        &self,
        names: &[String],
        value: &[u8],
    ) -> Result<Once, Failure> {
        self.at_once(names, Some(value), Operation::Release).await
    }

    /// Changes how long one key lives if it has this value, at once where that can be done.
    pub(crate) async fn change_at_once(
        &self,
        names: &[String],
        value: &[u8],
        change: Change,
    ) -> Result<Once, Failure> {
        let operation = match change {
            Change::Renew(renewal) => Operation::Renew(renewal),
            Change::End => Operation::Release,
        };
        self.at_once(names, Some(value), operation).await
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
        Ok(found(self.gateway.unlock(unlock, &self.identity.name).await)?.is_some())
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
            Some(Holder::Timed(hold)) if hold.token.is_empty() => {
                Err(elsewhere(name, asked_by(&hold)))
            }
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
        match self.at_once(names, None, Operation::Release).await? {
            Once::Done => return Ok(1),
            Once::Free => return Ok(0),
            Once::Look => {}
        }
        let mut all = Equal::default();
        for (place, name) in names.iter().enumerate() {
            if names[..place].contains(name) {
                continue;
            }
            if all.covers(name) {
                all.count += 1;
                continue;
            }
            match self.holder(name).await? {
                None => continue,
                Some(Holder::Timed(hold)) if hold.token.is_empty() => {
                    return Err(elsewhere(name, asked_by(&hold)));
                }
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

fn elsewhere(name: &str, holder: String) -> Failure {
    Failure::Elsewhere(name.to_string(), holder)
}
