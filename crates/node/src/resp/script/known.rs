//! Which scripts are known: those of libraries by the digests of their normal forms, and the usual ways
//! to write one oneself.

use sha2::{Digest, Sha256};

use super::{Act, Answer, Script, Ttl, Unit, lua};

use Answer::{Count, Error, Integer, Left, Nil, Ok};

const DONE: Answer = Integer(1);
const NOT: Answer = Integer(0);
/// What Redis makes of `redis.error_reply('ERROR')`.
const FAILED: Answer = Error("ERR ERROR");

const fn millis(place: usize) -> Ttl {
    Ttl { place, unit: Unit::Millis, added: None }
}

const fn seconds(place: usize) -> Ttl {
    Ttl { place, unit: Unit::Seconds, added: None }
}

const fn script(act: Act, done: Answer, free: Answer, other: Answer) -> Script {
    Script { act, value: 1, done, free, other }
}

/// The same with its value at another place.
const fn with_value(value: usize, script: Script) -> Script {
    Script { value, ..script }
}

const RELEASE: Script = script(Act::Release, DONE, NOT, NOT);
const RENEW: Script = script(Act::Renew(millis(2)), DONE, NOT, NOT);
const RENEW_SECONDS: Script = script(Act::Renew(seconds(2)), DONE, NOT, NOT);
const EXTEND: Script =
    script(Act::Renew(Ttl { place: 2, unit: Unit::Millis, added: Some(3) }), DONE, NOT, NOT);
const ACQUIRE: Script = script(Act::Acquire(millis(2)), DONE, NOT, NOT);
const ACQUIRE_SECONDS: Script = script(Act::Acquire(seconds(2)), DONE, NOT, NOT);
const SET: Script = script(Act::Acquire(millis(2)), Ok, Nil, Nil);
const SET_SECONDS: Script = script(Act::Acquire(seconds(2)), Ok, Nil, Nil);

/// Scripts of libraries: the digest of the normal form, the first 32 digits of it; where it was seen; and
/// what it does.
#[rustfmt::skip]
const LIBRARIES: &[(&str, &str, Script)] = &[
    ("89d67c5edd9ce85383539a46ea02e45a", "redis-py 8.1.0, release", RELEASE),
    ("757c9a3862882b46d2b0034813b3c21b", "redis-py 8.1.0, extend", EXTEND),
    ("ac638923b88d2052f055601d13e475d2", "redis-py 8.1.0, reacquire", RENEW),
    ("9ebb7dee7e7f1b740d009f6ec0357328", "pottery 3.0.1, locked", script(Act::Left(Unit::Millis), Left, NOT, NOT)),
    ("bedf3c543fed5af4a93dc4f07a6b5dad", "aioredlock 0.7.3, set and extend", script(Act::AcquireAgain(millis(2), None), Ok, FAILED, FAILED)),
    ("1c56ab4150946b5846f10840e097af73", "aioredlock 0.7.3, unset", script(Act::Release, DONE, Ok, FAILED)),
    ("ebbd7c3e87f5cae173dc8755b948b768", "aioredlock 0.7.3, time left", script(Act::Left(Unit::Seconds), Left, FAILED, FAILED)),
    ("643360eaab4dc23807d6f13ed9bc6da2", "sherlock 0.4.1, acquire", ACQUIRE_SECONDS),
    ("cf30239552eeb3d922aa3c551cb5cbae", "sherlock 0.4.1, release", RELEASE),
    ("ecd006ec2e5f555f7cce8ba4812715e4", "sherlock 0.4.1, renew", RENEW_SECONDS),
    ("3b57e865dfeb37a13d15b8d546dfd1f3", "redlock 4.2.0 and 5.0.0-beta.2, acquire", script(Act::Acquire(millis(2)), Count, NOT, NOT)),
    ("2097bba576083dd0fc78e2cb1dd6bb0a", "redlock 4.2.0 and 5.0.0-beta.2, release", script(Act::Release, Count, NOT, NOT)),
    ("7e95966f4325b1e92c0efd056bf8a21c", "redlock 4.2.0 and 5.0.0-beta.2, extend", script(Act::Renew(millis(2)), Count, NOT, NOT)),
    ("1c6b1563ab8f3dd9151b072e701888de", "@sesamecare-oss/redlock 1.4.0, acquire", with_value(2, script(Act::Acquire(millis(3)), Count, NOT, NOT))),
    ("4f58c582b7d082fe76ad6a94101fe16e", "@sesamecare-oss/redlock 1.4.0, release", with_value(2, script(Act::Release, Count, NOT, NOT))),
    ("b261991e6575c45f1c52202328832ef2", "@sesamecare-oss/redlock 1.4.0, extend", with_value(2, script(Act::Renew(millis(3)), Count, NOT, NOT))),
    ("3688fd5f518a2bf2999b57e7b2797dac", "redis-semaphore 5.8.0, release", RELEASE),
    ("d61bc0957a9573204d1b4b6929e8046c", "redis-semaphore 5.8.0, refresh", RENEW),
    ("24cc1477f8e70eba5e65620851e92383", "redsync 4, unlock", script(Act::Release, DONE, Integer(-1), NOT)),
    ("1bc5b28ef7b1d3beb2410b40996426d6", "redsync 4, extend or set", script(Act::AcquireAgain(millis(2), None), DONE, NOT, NOT)),
    ("c2dd1e90972f64bb118db0ea703f3b60", "bsm/redislock 0.9, obtain", script(Act::AcquireAgain(millis(3), None), Ok, Nil, Nil)),
    ("fbeedddaf29f8e7a5e56cac5025374a8", "bsm/redislock 0.9, release", script(Act::Release, Ok, Nil, Nil)),
    ("6291a8765783bae36160aa840b2ca9cb", "bsm/redislock 0.9, refresh", script(Act::Renew(millis(2)), Ok, Nil, Nil)),
    ("1d81b018658b138a367796bbf77bcede", "bsm/redislock 0.9, time left", script(Act::Left(Unit::Millis), Left, Nil, Nil)),
    ("4b3366d8a3146e637880bb2e108e51a3", "redlock-rb 2, lock and extend", script(Act::AcquireAgain(millis(2), Some(3)), Ok, Nil, Nil)),
    ("b46410e514cced31fc73eec0c70c99b2", "redlock-rb 2, time left", script(Act::Look, Nil, Nil, Nil)),
    ("68b43dec631974e79f92e8d77d3220a7", "RedLock.net 2, extend", script(Act::AcquireAgain(millis(2), None), DONE, Integer(-1), Integer(-1))),
    ("039d86506cc6de67e7c26ab76587a4c5", "rslock 0.7, extend", RENEW),
    ("0a17cc7cda91a5fa808463e1e6373387", "Spring Integration, obtain", script(Act::AcquireAgain(millis(2), None), DONE, Nil, Nil)),
    ("0ba82da3ac22714c1d5cb826928a83fe", "Spring Integration, release", script(Act::Release, DONE, Nil, Nil)),
    ("85cabcb575adca367b0c13089a25fc05", "Spring Integration, renew", script(Act::Renew(millis(2)), DONE, Nil, Nil)),
];

/// The usual ways to write that something is done if the value is the holder's: `ACT` is what is done.
/// The second one is in the documentation of Redis, and of very many libraries.
const IF_EQUAL: [&str; 6] = [
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return ACT end return 0",
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return ACT else return 0 end",
    "if redis.call('GET', KEYS[1]) == ARGV[1] then ACT return 1 end return 0",
    "if redis.call('GET', KEYS[1]) == ARGV[1] then ACT return 1 else return 0 end",
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return ACT",
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end ACT return 1",
];

const ACTS: [(&str, Script); 3] = [
    ("redis.call('DEL', KEYS[1])", RELEASE),
    ("redis.call('PEXPIRE', KEYS[1], ARGV[2])", RENEW),
    ("redis.call('EXPIRE', KEYS[1], ARGV[2])", RENEW_SECONDS),
];

/// The usual ways to set a value that is not there: `TRY` is how.
const IF_SET: [&str; 2] =
    ["if TRY then return 1 else return 0 end", "if TRY then return 1 end return 0"];

const SETS: [(&str, Script, Script); 4] = [
    ("redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])", ACQUIRE, SET),
    ("redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX')", ACQUIRE, SET),
    ("redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2])", ACQUIRE_SECONDS, SET_SECONDS),
    ("redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2], 'NX')", ACQUIRE_SECONDS, SET_SECONDS),
];

const IF_NEW: [&str; 2] = [
    "if redis.call('SETNX', KEYS[1], ARGV[1]) == 1 then ACT return 1 else return 0 end",
    "if redis.call('SETNX', KEYS[1], ARGV[1]) == 1 then ACT return 1 end return 0",
];

/// Every known script.
pub(super) fn all() -> impl Iterator<Item = (Prefix, Script)> {
    let of_libraries = LIBRARIES.iter().map(|&(digits, _, script)| (from_hex(digits), script));
    of_libraries.chain(usual().map(|(text, script)| (of_text(&text), script)))
}

/// The scripts that people write themselves.
fn usual() -> impl Iterator<Item = (String, Script)> {
    let equal = ACTS.iter().flat_map(|&(act, script)| {
        IF_EQUAL.iter().map(move |form| (form.replace("ACT", act), script))
    });
    let set = SETS.iter().flat_map(|&(set, acquire, plain)| {
        let tested = IF_SET.iter().map(move |form| (form.replace("TRY", set), acquire));
        tested.chain([(format!("return {set}"), plain)])
    });
    let new = [ACTS[1].0, ACTS[2].0].into_iter().zip([ACQUIRE, ACQUIRE_SECONDS]);
    let new = new.flat_map(|(act, script)| {
        IF_NEW.iter().map(move |form| (form.replace("ACT", act), script))
    });
    equal.chain(set).chain(new)
}

/// The beginning of a digest.
pub(super) type Prefix = [u8; 16];

/// The beginning of the digest of a normal form.
pub(super) fn prefix(form: &[u8]) -> Prefix {
    let digest = Sha256::digest(form);
    let mut prefix = [0; 16];
    prefix.copy_from_slice(&digest[..16]);
    prefix
}

fn of_text(text: &str) -> Prefix {
    // What is written here can be read.
    prefix(&lua::normal_form(text.as_bytes()).unwrap_or_default())
}

fn from_hex(digits: &str) -> Prefix {
    u128::from_str_radix(digits, 16).unwrap_or_default().to_be_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_known_script_is_known_once() {
        let all: Vec<Prefix> = all().map(|(prefix, _)| prefix).collect();
        let different: BTreeSet<&Prefix> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        assert!(!all.contains(&Prefix::default()) && !all.contains(&prefix(b"")));
        assert_eq!(all.len(), LIBRARIES.len() + 18 + 12 + 4);
    }
}
