//! What a known script does with keys, and what it answers.

use std::time::Duration;

use catraca_group::Renewal;

use super::failure::Failure;
use super::frame::Command;
use super::keys::{Change, Compared, Equal, Holder, Keys, Once, count, duration, name, told};
use super::reply::Replies;
use super::script::{Act, Answer, Script, Ttl, Unit};

/// The words of an `EVAL` that come behind the script: the keys, and the arguments.
pub(crate) struct Words<'a> {
    pub(crate) keys: Vec<String>,
    arguments: Vec<&'a [u8]>,
}

impl<'a> Words<'a> {
    /// Reads `EVAL script numkeys key ... argument ...`.
    pub(crate) fn read(command: Command<'a>) -> Result<Self, Failure> {
        let count = count(command.word(2))?;
        let mut words = command.from(3);
        if count > words.len() {
            let text = "ERR Number of keys can't be greater than number of args";
            return Err(Failure::Said(text.into()));
        }
        let keys = words.by_ref().take(count).map(|key| Ok(name(key)?.to_string()));
        let keys: Vec<String> = keys.collect::<Result<_, Failure>>()?;
        if keys.is_empty() {
            return Err(Failure::Said(
                "ERR a script of a lock library has at least one key".into(),
            ));
        }
        Ok(Words { keys, arguments: words.collect() })
    }

    /// `ARGV[place]`.
    fn argument(&self, place: usize) -> Result<&'a [u8], Failure> {
        let argument = place.checked_sub(1).and_then(|place| self.arguments.get(place)).copied();
        argument.ok_or_else(|| Failure::Said(format!("ERR this script needs ARGV[{place}]")))
    }

    fn ttl(&self, ttl: Ttl) -> Result<Option<Duration>, Failure> {
        duration(self.argument(ttl.place)?, ttl.unit)
    }

    /// A time to live for a new hold.
    fn new_ttl(&self, ttl: Ttl) -> Result<Duration, Failure> {
        self.ttl(ttl)?.ok_or_else(|| {
            Failure::Said(
                "ERR the time to live is not positive: Redis would delete the key at once, and the lock would exclude nobody; give it an expiry".into(),
            )
        })
    }

    /// How a time to live changes.
    fn change(&self, ttl: Ttl) -> Result<Change, Failure> {
        let is_added = match ttl.added {
            Some(place) => self.argument(place)? == b"0",
            None => false,
        };
        Ok(match self.ttl(ttl)? {
            Some(more) if is_added => Change::Renew(Renewal::By(more)),
            Some(ttl) => Change::Renew(Renewal::To(ttl)),
            None if is_added => Change::Renew(Renewal::By(Duration::ZERO)),
            None => Change::End,
        })
    }
}

/// Does what a known script does.
pub(crate) async fn evaluate(
    script: &Script,
    words: Words<'_>,
    keys: &Keys<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    let outcome = match script.act {
        Act::Look => return look(&words, keys, replies).await,
        Act::Acquire(ttl) => acquire(script, &words, words.new_ttl(ttl)?, keys).await?,
        Act::AcquireAgain(ttl, allowed) => {
            let new = words.new_ttl(ttl)?;
            let change = words.change(ttl)?;
            let may_begin = match allowed {
                Some(place) => words.argument(place)? == b"yes",
                None => true,
            };
            match compare(script, &words, keys).await? {
                Compared::Equal(equal) => changed(keys, equal, change).await?,
                Compared::Free(_) if may_begin => acquire(script, &words, new, keys).await?,
                Compared::Free(_) => Outcome::Free,
                Compared::Other(_) => Outcome::Other,
            }
        }
        Act::Renew(ttl) => {
            let change = words.change(ttl)?;
            let value = words.argument(script.value)?;
            match keys.change_at_once(&words.keys, value, change).await? {
                Once::Done => Outcome::Done,
                Once::Free => Outcome::Free,
                Once::Look => match compare(script, &words, keys).await? {
                    Compared::Equal(equal) => changed(keys, equal, change).await?,
                    Compared::Free(_) => Outcome::Free,
                    Compared::Other(_) => Outcome::Other,
                },
            }
        }
        Act::Release => release(script, &words, keys).await?,
        Act::Left(unit) => match compare(script, &words, keys).await? {
            Compared::Equal(equal) => {
                Outcome::Left(equal.left().map_or(-1, |left| told(left, unit)))
            }
            Compared::Free(_) => Outcome::Free,
            Compared::Other(_) => Outcome::Other,
        },
    };
    answer(script, outcome, words.keys.len(), replies);
    Ok(())
}

/// What a script has come to.
enum Outcome {
    Done,
    /// So many keys, of those that a script counts.
    Counted(usize),
    Left(i64),
    Free,
    Other,
}

fn answer(script: &Script, outcome: Outcome, keys: usize, replies: &mut Replies) {
    let (answer, count) = match outcome {
        Outcome::Left(left) => return replies.integer(left),
        Outcome::Done => (script.done, keys),
        Outcome::Counted(count) => (script.done, count),
        Outcome::Free => (script.free, 0),
        Outcome::Other => (script.other, 0),
    };
    match answer {
        Answer::Integer(number) => replies.integer(number),
        Answer::Count => replies.integer(i64::try_from(count).unwrap_or(i64::MAX)),
        Answer::Left => replies.integer(0),
        Answer::Ok => replies.ok(),
        Answer::Nil => replies.nil(),
        Answer::Error(text) => replies.error(text),
    }
}

async fn acquire(
    script: &Script,
    words: &Words<'_>,
    ttl: Duration,
    keys: &Keys<'_>,
) -> Result<Outcome, Failure> {
    let value = words.argument(script.value)?;
    match keys.acquire(words.keys.clone(), value, ttl).await? {
        true => Ok(Outcome::Done),
        false => Ok(Outcome::Other),
    }
}

async fn compare(script: &Script, words: &Words<'_>, keys: &Keys<'_>) -> Result<Compared, Failure> {
    keys.compare(&words.keys, words.argument(script.value)?).await
}

async fn changed(keys: &Keys<'_>, equal: Equal, change: Change) -> Result<Outcome, Failure> {
    match keys.change(equal, change).await? {
        true => Ok(Outcome::Done),
        // It has just ended.
        false => Ok(Outcome::Free),
    }
}

async fn release(script: &Script, words: &Words<'_>, keys: &Keys<'_>) -> Result<Outcome, Failure> {
    match keys.release_at_once(&words.keys, words.argument(script.value)?).await? {
        // A script that counts its keys has one of them, or none.
        Once::Done => return Ok(Outcome::Done),
        Once::Free if script.done == Answer::Count => return Ok(Outcome::Counted(0)),
        Once::Free => return Ok(Outcome::Free),
        Once::Look => {}
    }
    let compared = compare(script, words, keys).await?;
    if script.done == Answer::Count {
        // Those with this value are released, whatever the others are.
        let equal = compared.equal();
        let count = equal.count;
        keys.release(equal).await?;
        return Ok(Outcome::Counted(count));
    }
    match compared {
        Compared::Equal(equal) => match keys.release(equal).await? {
            0 => Ok(Outcome::Free),
            _ => Ok(Outcome::Done),
        },
        Compared::Free(_) => Ok(Outcome::Free),
        Compared::Other(_) => Ok(Outcome::Other),
    }
}

async fn look(words: &Words<'_>, keys: &Keys<'_>, replies: &mut Replies) -> Result<(), Failure> {
    let holder = keys.holder(&words.keys[0]).await?;
    replies.array(2);
    match &holder {
        Some(holder) => replies.bulk(holder.value()),
        None => replies.nil(),
    }
    replies.integer(left(holder.as_ref(), Unit::Millis));
    Ok(())
}

/// How Redis tells how long a key lives: -1 if it does not expire, -2 if it is not there.
pub(crate) fn left(holder: Option<&Holder>, unit: Unit) -> i64 {
    match holder {
        None => -2,
        Some(holder) => holder.left().map_or(-1, |left| told(left, unit)),
    }
}
