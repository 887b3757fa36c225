//! The commands that are served: how many words each has, and what it takes to be allowed it.

use crate::access::Role;

use super::frame::MOST_ARGUMENTS;
use super::script::Unit;

/// Which command it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    // About the connection.
    Auth,
    Client,
    Command,
    Echo,
    Hello,
    Info,
    Ping,
    Quit,
    Reset,
    Select,
    // Keys, which are locks.
    Del,
    DelEx,
    DelIfEq,
    Eval,
    EvalSha,
    Exists,
    Expire(Unit),
    Get,
    Script,
    Set,
    SetNx,
    Left(Unit),
    // Own ones.
    Certain,
    Check,
    Fence,
    Help,
    Lock,
    Locks,
    Park,
    Renew,
    Status,
    Unlock,
    Unwatch,
    Watch,
}

/// One command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    /// In capitals.
    pub(crate) name: &'static str,
    pub(crate) what: What,
    /// How many words it has at least and at most, its name among them.
    least: usize,
    most: usize,
    /// What whoever says it must be allowed; nothing of those that anybody may say.
    pub(crate) role: Option<Role>,
}

impl Spec {
    /// Whether it can have so many words.
    pub(crate) fn takes(&self, words: usize) -> bool {
        (self.least..=self.most).contains(&words)
    }

    /// How Redis says how many words a command has: negative if there can be more.
    pub(crate) fn arity(&self) -> i64 {
        let least = self.least as i64;
        if self.most == self.least { least } else { -least }
    }
}

const ANY: usize = MOST_ARGUMENTS;
const OBSERVE: Option<Role> = Some(Role::Observe);
const LOCK: Option<Role> = Some(Role::Lock);

const fn spec(
    name: &'static str,
    what: What,
    least: usize,
    most: usize,
    role: Option<Role>,
) -> Spec {
    Spec { name, what, least, most, role }
}

/// Every command, in ascending order.
#[rustfmt::skip]
pub(crate) const ALL: &[Spec] = &[
    spec("AUTH", What::Auth, 2, 3, None),
    spec("CATRACA.CERTAIN", What::Certain, 1, 1, OBSERVE),
    spec("CATRACA.CHECK", What::Check, 3, 3, OBSERVE),
    spec("CATRACA.FENCE", What::Fence, 2, 3, OBSERVE),
    spec("CATRACA.HELP", What::Help, 1, 1, None),
    spec("CATRACA.LOCK", What::Lock, 2, ANY, LOCK),
    spec("CATRACA.LOCKS", What::Locks, 1, 3, OBSERVE),
    spec("CATRACA.PARK", What::Park, 2, 2, LOCK),
    spec("CATRACA.RENEW", What::Renew, 3, 3, LOCK),
    spec("CATRACA.STATUS", What::Status, 1, 1, OBSERVE),
    spec("CATRACA.UNLOCK", What::Unlock, 2, 2, LOCK),
    spec("CATRACA.UNWATCH", What::Unwatch, 1, 1, OBSERVE),
    spec("CATRACA.WATCH", What::Watch, 1, 2, OBSERVE),
    spec("CLIENT", What::Client, 2, ANY, OBSERVE),
    spec("COMMAND", What::Command, 1, ANY, OBSERVE),
    spec("DEL", What::Del, 2, ANY, LOCK),
    spec("DELEX", What::DelEx, 2, 4, LOCK),
    spec("DELIFEQ", What::DelIfEq, 3, 3, LOCK),
    spec("ECHO", What::Echo, 2, 2, OBSERVE),
    spec("EVAL", What::Eval, 3, ANY, LOCK),
    spec("EVALSHA", What::EvalSha, 3, ANY, LOCK),
    spec("EXISTS", What::Exists, 2, ANY, OBSERVE),
    spec("EXPIRE", What::Expire(Unit::Seconds), 3, 4, LOCK),
    spec("GET", What::Get, 2, 2, OBSERVE),
    spec("HELLO", What::Hello, 1, 7, None),
    spec("INFO", What::Info, 1, ANY, OBSERVE),
    spec("PEXPIRE", What::Expire(Unit::Millis), 3, 4, LOCK),
    spec("PING", What::Ping, 1, 2, OBSERVE),
    spec("PTTL", What::Left(Unit::Millis), 2, 2, OBSERVE),
    spec("QUIT", What::Quit, 1, ANY, None),
    spec("RESET", What::Reset, 1, 1, None),
    spec("SCRIPT", What::Script, 2, ANY, LOCK),
    spec("SELECT", What::Select, 2, 2, OBSERVE),
    spec("SET", What::Set, 3, ANY, LOCK),
    spec("SETNX", What::SetNx, 3, 3, LOCK),
    spec("TTL", What::Left(Unit::Seconds), 2, 2, OBSERVE),
    spec("UNLINK", What::Del, 2, ANY, LOCK),
];

/// The longest name of a command, in bytes.
const LONGEST: usize = 16;

/// The command of this name, in capitals or not.
pub(crate) fn find(name: &[u8]) -> Option<&'static Spec> {
    let mut capitals = [0; LONGEST];
    let capitals = capitals.get_mut(..name.len())?;
    capitals.copy_from_slice(name);
    capitals.make_ascii_uppercase();
    let found = ALL.binary_search_by(|spec| spec.name.as_bytes().cmp(capitals)).ok()?;
    Some(&ALL[found])
}

/// What `CATRACA.HELP` says.
pub(crate) const HELP: &[&str] = &[
    "CATRACA.LOCK name [name ...] [WAIT ms] [TTL ms] [PERMITS n] [LABEL text]",
    "    Takes all of these locks, or none. Answers the id and a fence for each name, or nil if the",
    "    time to wait is over; WAIT 0 waits for nobody. With TTL the locks live so long, wherever one",
    "    asks; without, they belong to this connection and are free when it ends.",
    "CATRACA.UNLOCK id|name",
    "    Releases locks: by id, or by one of their names if they belong to this connection.",
    "CATRACA.RENEW id ttl",
    "    Locks that live by a time to live shall live so many milliseconds from now on.",
    "CATRACA.CHECK name fence",
    "    Whether the lock is held with this fence now: 1 or 0.",
    "CATRACA.CERTAIN",
    "    For how many milliseconds, from asking, nobody else is let into what this connection holds,",
    "    whatever happens to the node. Ask again and again, and give the locks up in time.",
    "CATRACA.FENCE key [token]",
    "    The fence of whoever holds the lock, if the token is its value; nil if nobody does.",
    "CATRACA.LOCKS [prefix] [cursor]",
    "    Who holds and who waits, in pages: the cursor of the next one, '0' after the last, and lines.",
    "CATRACA.WATCH [prefix]",
    "    From now on tells what happens to locks, as messages; CATRACA.UNWATCH ends it.",
    "CATRACA.PARK ms",
    "    From now on a SET NX of this connection waits so long in the queue of the lock.",
    "CATRACA.STATUS",
    "    How this node is doing.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_in_order_and_every_one_is_found() {
        assert!(ALL.is_sorted_by(|one, next| one.name < next.name));
        for spec in ALL {
            assert_eq!(find(spec.name.as_bytes()), Some(spec));
            assert_eq!(find(spec.name.to_lowercase().as_bytes()), Some(spec));
            assert!(spec.takes(spec.least) && !spec.takes(spec.least - 1));
        }
        assert_eq!(ALL.iter().map(|spec| spec.name.len()).max(), Some(LONGEST - 1));
        for unknown in ["", "GE", "GETS", "FLUSHALL", &"X".repeat(17)] {
            assert_eq!(find(unknown.as_bytes()), None);
        }
    }

    #[test]
    fn help_names_every_own_command() {
        for spec in ALL.iter().filter(|spec| spec.name.starts_with("CATRACA.")) {
            let is_named = HELP.iter().any(|line| line.contains(spec.name));
            assert!(is_named || spec.what == What::Help, "{}", spec.name);
        }
    }
}
