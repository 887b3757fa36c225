//! Members that say anything: whatever comes over a link, a member neither panics nor fills its memory.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use catraca_core::{Claim, ResourceId};

use super::durable::tests::{Group, Site};
use super::*;
use crate::durable::{AcquireDurable, HoldId};
use crate::member::Input;
use crate::question::PeerMessage;
use crate::request::Acquire;
use crate::session::Who;
use crate::shard::HeldLock;
use crate::timed::AcquireTimed;
use crate::wait::Wait;

const LONG: Duration = Duration::from_secs(3600);
/// A member that is lost is out of the view after this time.
const LOST: Duration = Duration::from_secs(12);
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// What a member says that lies.
type Change = fn(&mut HeldLock);

/// A message that a member is about to hear.
type About = (Site, Run, Vec<u8>);

/// Everything that members hear from the loss of one until the view without it has begun: there are
/// ordinary, durable and timed holds at each of them.
fn change_of_view(algorithm: &'static str) -> Vec<About> {
    let mut group = Group::of(4, algorithm);
    for (site, name) in (0..4).zip(NAMES) {
        let names = |of: &str| vec![alloc::format!("{of}/{name}")];
        let (request, wait) = (name.to_string(), Wait::Forever);
        let (owner, note) = ("ann".to_string(), "why".to_string());
        let (names_of_durable, permits) = (names("durable"), 1);
        let durable =
            AcquireDurable { names: names_of_durable, permits, wait, owner, note, request };
        group.input(site, Input::AcquireDurable(site as u64, None, durable, 7));
        let (id, who) = (HoldId(100 + site as u128), Who::default());
        let (names_of_timed, token) = (names("timed"), b"mine".to_vec());
        let timed =
            AcquireTimed { id, names: names_of_timed, permits, wait, ttl: LONG, who, token };
        group.input(site, Input::AcquireTimed(100 + site as u64, timed));
        ask(&mut |input| group.input(site, input), &names("plain"), 1);
        ask(&mut |input| group.input(site, input), &["many".to_string()], 2);
        group.pass(Duration::from_millis(100));
    }
    // Some of these find their homes at others when their member is gone.
    for number in 0..6 {
        let (owner, note) = ("ann".to_string(), String::new());
        let (names, request) = (vec![alloc::format!("more/{number}")], number.to_string());
        let (permits, wait) = (1, Wait::Forever);
        let durable = AcquireDurable { names, permits, wait, owner, note, request };
        group.input(2, Input::AcquireDurable(10 + number, None, durable, 7));
    }
    group.heard = Some(Vec::new());
    group.crash(2);
    group.pass(LOST);
    assert_eq!(group.anomalies, Vec::<&str>::new());
    group.heard.take().unwrap()
}

/// The program that runs the member asks for these names, each with so many permits.
fn ask(input: &mut dyn FnMut(Input<'static>), names: &[String], permits: u32) {
    for name in names {
        let names = vec![name.clone()];
        input(Input::Acquire(Acquire { names, permits, wait: Wait::Forever }));
    }
}

/// Lets the member hear something, and then be asked for every name that it may have heard of.
fn hears(about: &About, message: PeerMessage<'_>) -> Vec<Output> {
    let (mut site, run, _) = about.clone();
    let mut member = site.member.take().unwrap();
    let mut out = Vec::new();
    member.step(Input::Hear(run, message), &mut site, &mut out);
    let of = |of: &'static str| NAMES.map(|name| alloc::format!("{of}/{name}"));
    let names = ["plain", "timed", "durable"].map(of).concat();
    let mut input = |input: Input<'static>| member.step(input, &mut site, &mut Vec::new());
    ask(&mut input, &names, 1);
    ask(&mut input, &["many".to_string()], 2);
    out
}

fn is_anomaly(output: &Output) -> bool {
    matches!(output, Output::Anomaly(_))
}

/// The same numbers in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        // Knuth's MMIX.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    /// The same bytes with some of them changed, lost or added.
    fn changed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut changed = bytes.to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(changed.len());
            match self.below(6) {
                0 => changed[at] ^= 1 << self.below(8),
                1 => changed[at] = changed[at].wrapping_add(1),
                2 => changed[at] = [0, 1, 2, 63, 64, 127, 128, 255][self.below(8)],
                // The largest numbers that can be written in two, three and five bytes.
                3 => {
                    let large =
                        [&[0xff, 0x7f][..], &[0xff, 0xff, 0x03], &[0xff, 0xff, 0xff, 0xff, 0x0f]];
                    let large = large[self.below(3)].iter().copied();
                    changed.splice(at..=at, large);
                }
                4 => changed.insert(at, self.below(256) as u8),
                _ if changed.len() > 1 => drop(changed.remove(at)),
                _ => {}
            }
        }
        changed
    }
}

#[test]
fn whatever_members_say_while_the_view_changes_nobody_panics() {
    let mut draw = Draw(20_261_119);
    let (mut read, mut refused) = (0, 0);
    for algorithm in ["naimi-trehel", "singhal", "maekawa", "raymond-k", "bouabdallah-laforest"] {
        for about in change_of_view(algorithm) {
            for _ in 0..300 {
                let bytes = draw.changed(&about.2);
                let Ok(message) = postcard::from_bytes::<PeerMessage<'_>>(&bytes) else { continue };
                read += 1;
                refused += usize::from(hears(&about, message).iter().any(is_anomaly));
            }
        }
    }

    assert!(read > 2000, "{read} of them could be read");
    assert!(refused > 100, "{refused} of {read} were told as anomalies");
}

/// Those messages of a change of the view that `part` says are of one kind, and what they say.
fn of_kind(algorithm: &'static str, is_it: fn(&ViewMessage) -> bool) -> Vec<(About, ViewMessage)> {
    let all = change_of_view(algorithm).into_iter().filter_map(|about| {
        let message = match postcard::from_bytes::<PeerMessage<'_>>(&about.2) {
            Ok(PeerMessage::View(message)) if is_it(&message) => Some(message),
            _ => None,
        };
        message.map(|message| (about, message))
    });
    all.collect()
}

#[test]
fn what_nobody_can_hold_is_in_no_report_and_no_table() {
    let large = Claim::of([ResourceId(70_000)]);
    let wrong: [(&str, Change); 7] = [
        ("a seat that there is not", |held| held.seat = u16::MAX),
        ("a member that there is not", |held| held.member = "somebody".into()),
        ("no permit", |held| held.permits = 0),
        ("too many permits", |held| held.permits = u32::MAX),
        ("no name", |held| held.name.clear()),
        ("a name that cannot be", |held| held.name = "a b".into()),
        ("nothing of a lock", |held| held.claim = Claim::of([])),
    ];
    for algorithm in ["singhal", "bouabdallah-laforest"] {
        let has_locks = |message: &ViewMessage| match message {
            ViewMessage::Report { part, .. } | ViewMessage::Table { part, .. } => !part.is_empty(),
            _ => false,
        };
        let messages = of_kind(algorithm, has_locks);
        assert!(messages.len() >= 2, "a report and a table");
        for (about, sound) in messages {
            assert!(!hears(&about, PeerMessage::View(sound.clone())).iter().any(is_anomaly));
            let says = |change: &dyn Fn(&mut HeldLock), what: &str| {
                let mut message = sound.clone();
                match &mut message {
                    ViewMessage::Report { part, .. } | ViewMessage::Table { part, .. } => {
                        part.iter_mut().for_each(change);
                    }
                    _ => unreachable!(),
                }
                let out = hears(&about, PeerMessage::View(message));
                assert!(out.iter().any(is_anomaly), "{algorithm}: {what}");
                assert!(!out.iter().any(|output| matches!(output, Output::Began(_))), "{what}");
            };
            for (what, change) in &wrong {
                says(change, what);
            }
            says(&|held| held.claim = large.clone(), "a resource that there is not");
        }
    }
}

#[test]
fn holds_that_cannot_be_are_neither_taken_over_nor_remembered() {
    let has_holds = |message: &ViewMessage| {
        let is_it = matches!(
            message,
            ViewMessage::Orphans { .. } | ViewMessage::TakeOver { .. } | ViewMessage::Adopt { .. }
        );
        is_it
    };
    let messages = of_kind("naimi-trehel", has_holds);
    assert!(!messages.is_empty());
    for (about, sound) in messages {
        assert!(!hears(&about, PeerMessage::View(sound.clone())).iter().any(is_anomaly));
        let mut message = sound;
        match &mut message {
            ViewMessage::Orphans { copies, .. } | ViewMessage::TakeOver { copies, .. } => {
                copies[0].hold.left = Duration::MAX;
            }
            ViewMessage::Adopt { holds, .. } => holds[0].hold.permits = 0,
            _ => unreachable!(),
        }
        assert!(hears(&about, PeerMessage::View(message)).iter().any(is_anomaly));
    }
    let mut asked = 0;
    for about in change_of_view("naimi-trehel") {
        let bytes = about.2.clone();
        if let Ok(PeerMessage::Ask { epoch, number, question: Question::Remember(copy) }) =
            postcard::from_bytes(&bytes)
        {
            asked += 1;
            let mut copy = copy.clone();
            copy.parts[0].key = "nobody's lock".into();
            let question = Question::Remember(copy);
            let out = hears(&about, PeerMessage::Ask { epoch, number, question });
            assert!(out.iter().any(is_anomaly), "{out:?}");
        }
    }
    assert!(asked > 0, "nobody was asked to remember a hold");
}
