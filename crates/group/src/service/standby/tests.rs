//! Groups whose members are lost while clients have timed holds.

use alloc::string::ToString;
use alloc::vec;
use core::time::Duration;

use super::*;
use crate::member::{Input, WholeMember};
use crate::membership::Leaving;
use crate::service::durable::tests::Group;
use crate::session::Who;
use crate::timed::{AcquireTimed, Operation, Renewal, TimedHold, Which};
use crate::wait::Wait;

const TTL: Duration = Duration::from_secs(120);
/// A member that is lost is out of the view after this time.
const LOST: Duration = Duration::from_secs(12);
const SOON: Duration = Duration::from_millis(200);

fn asked(id: u128, name: &str, permits: u32) -> AcquireTimed {
    AcquireTimed {
        id: HoldId(id),
        names: vec![name.to_string()],
        permits,
        wait: Wait::Forever,
        ttl: TTL,
        who: Who { label: "job".into(), ..Who::default() },
        token: b"mine".to_vec(),
    }
}

impl Group {
    /// Asks for a timed hold; the asker has the same number as the hold.
    fn ask_timed(&mut self, site: usize, id: u128, name: &str) {
        self.input(site, Input::AcquireTimed(id as u64, asked(id, name, 1)));
    }

    fn held(&self, asker: u64) -> TimedHold {
        (**self.timed[&asker].as_ref().unwrap()).clone()
    }

    /// Does something with a hold, and says what came of it.
    fn operate(
        &mut self,
        site: usize,
        which: Which,
        operation: Operation,
    ) -> Result<TimedHold, Refusal> {
        let asker = 1_000_000 + self.timed.len() as u64;
        self.input(site, Input::Timed(asker, which, operation));
        self.timed[&asker].clone().map(|hold| *hold)
    }

    fn look(&mut self, site: usize, id: u128) -> Result<TimedHold, Refusal> {
        self.operate(site, Which::Id(HoldId(id)), Operation::Look)
    }

    fn copies(&self, site: usize) -> usize {
        let member: &WholeMember = self.sites[site].member.as_ref().unwrap();
        member.service().standby.copies.len()
    }

    /// A name whose token begins at `site` in the present view.
    fn name_at(&self, site: usize) -> String {
        let member = self.sites[site].member.as_ref().unwrap();
        let view = member.service().view();
        let mut names = (0..).map(|number: u32| alloc::format!("lock/{number}"));
        names.find(|name| view.home(name) == view.me).unwrap()
    }
}

use alloc::string::String;

#[test]
fn a_grant_is_confirmed_when_the_standby_remembers_it_and_not_before() {
    for (mutant, is_early) in [(None, false), (Some("confirmed-unremembered"), true)] {
        let mut group = Group::with(3, "naimi-trehel", mutant);
        let name = group.name_at(0);
        group.crash(1);
        group.ask_timed(0, 1, &name);
        group.pass(SOON);
        assert_eq!(group.timed.contains_key(&1), is_early, "{mutant:?}");
        group.pass(LOST);
        assert_eq!(group.held(1).member, "m0");
        assert_eq!(group.copies(2), 1);
    }
}

#[test]
fn a_renewal_is_confirmed_when_the_standby_remembers_it_and_not_before() {
    let mut group = Group::of(3, "naimi-trehel");
    let name = group.name_at(0);
    group.ask_timed(0, 1, &name);
    assert_eq!((group.copies(1), group.copies(2)), (1, 0));
    group.crash(1);
    let renew = Operation::Renew(Renewal::To(2 * TTL));
    group.input(0, Input::Timed(7, Which::Id(HoldId(1)), renew));
    group.pass(SOON);
    assert!(!group.timed.contains_key(&7));
    group.pass(LOST);
    assert_eq!(group.held(7).ttl, 2 * TTL);
    group.crash(0);
    group.pass(LOST);
    let hold = group.look(2, 1).unwrap();
    assert!(hold.left > TTL, "{hold:?}");
}

#[test]
fn a_hold_survives_the_loss_of_one_member_after_the_other() {
    for algorithm in ["naimi-trehel", "maekawa", "bouabdallah-laforest", "raymond-k"] {
        let mut group = Group::of(3, algorithm);
        group.ask_timed(0, 1, "x");
        group.pass(SOON);
        let before = group.held(1);
        for lost in [0, 1] {
            group.crash(lost);
            group.pass(LOST);
            assert!(!group.is_free(2, "x"), "{algorithm}");
            let hold = group.look(2, 1).unwrap();
            assert_ne!(hold.member, alloc::format!("m{lost}"));
            assert_eq!((&hold.fences, &hold.token), (&before.fences, &before.token));
            assert!(hold.left < before.left);
            group.start(lost);
            group.pass(LOST);
        }
        let which = Which::Name { name: "x".into(), token: Some(b"mine".to_vec()) };
        let renewed = group.operate(1, which.clone(), Operation::Renew(Renewal::To(TTL))).unwrap();
        assert_eq!(renewed.ttl, TTL);
        group.operate(0, which, Operation::Release).unwrap();
        assert!(group.is_free(1, "x") && group.is_free(2, "x"));
        assert_eq!((0..3).map(|site| group.copies(site)).sum::<usize>(), 0);
        assert_eq!(group.anomalies, [""; 0]);
    }
}

#[test]
fn what_was_taken_over_ends_at_its_time() {
    let mut group = Group::of(3, "naimi-trehel");
    group.ask_timed(0, 1, "x");
    group.pass(SOON);
    group.crash(0);
    group.pass(LOST);
    assert!(group.look(1, 1).is_ok());
    group.pass(TTL);
    assert!(matches!(group.look(1, 1), Err(Refusal::NoSuchHold(_))));
    assert!(group.is_free(1, "x"));
}

#[test]
fn a_member_that_leaves_in_order_hands_its_timed_holds_over() {
    let mut group = Group::of(3, "naimi-trehel");
    group.ask_timed(0, 1, "x");
    group.pass(SOON);
    let before = group.held(1);
    group.input(0, Input::Leave(Leaving::ForGood, TTL));
    // Nobody waits for its end, nor for the lease.
    group.pass(Duration::from_secs(1));
    assert!(group.sites[0].member.is_none());
    let hold = group.look(2, 1).unwrap();
    assert_eq!((hold.member.as_str(), hold.fences), ("m1", before.fences));
    assert!(!group.is_free(2, "x"));
    group.operate(2, Which::Id(HoldId(1)), Operation::Release).unwrap();
    assert!(group.is_free(2, "x"));
}

#[test]
fn who_joins_becomes_a_standby_and_the_one_before_forgets() {
    let mut group = Group::of(3, "naimi-trehel");
    group.crash(2);
    group.pass(LOST);
    group.ask_timed(1, 1, "x");
    group.pass(SOON);
    assert_eq!(group.copies(0), 1);
    group.start(2);
    group.pass(LOST);
    assert_eq!((group.copies(0), group.copies(2)), (0, 1));
}

#[test]
fn nobody_remembers_what_is_released() {
    for (mutant, is_there) in [(None, false), (Some("timed-release-untold"), true)] {
        let mut group = Group::with(3, "naimi-trehel", mutant);
        group.ask_timed(0, 1, "x");
        group.pass(SOON);
        group.operate(2, Which::Id(HoldId(1)), Operation::Release).unwrap();
        assert_eq!(group.copies(1), usize::from(is_there), "{mutant:?}");
        group.crash(0);
        group.pass(LOST);
        assert_eq!(group.look(2, 1).is_ok(), is_there, "{mutant:?}");
        assert_eq!(group.is_free(2, "x"), !is_there, "{mutant:?}");
    }
}

#[test]
fn a_group_of_one_confirms_at_once_and_loses_everything_with_its_member() {
    let mut group = Group::of(1, "naimi-trehel");
    group.ask_timed(0, 1, "x");
    assert_eq!(group.held(1).member, "m0");
    group.crash(0);
    group.start(0);
    group.pass(LOST);
    assert!(matches!(group.look(0, 1), Err(Refusal::NoSuchHold(_))));
    assert!(group.is_free(0, "x"));
}

#[test]
fn a_permit_is_passed_on_when_nobody_remembers_it() {
    let mut group = Group::of(2, "raymond-k");
    for id in [1, 2] {
        group.input(0, Input::AcquireTimed(id as u64, asked(id, "x", 2)));
    }
    group.pass(SOON);
    assert!(group.held(1).fences != group.held(2).fences);
    group.input(0, Input::AcquireTimed(3, asked(3, "x", 2)));
    group.crash(1);
    group.operate(0, Which::Id(HoldId(1)), Operation::Release).unwrap();
    group.pass(SOON);
    assert!(!group.timed.contains_key(&3));
    // Who remembered it is gone.
    group.pass(LOST);
    assert!(group.timed[&3].is_ok());
}

#[test]
fn who_has_little_patience_does_not_wait_for_a_standby_that_is_lost() {
    let mut group = Group::of(2, "naimi-trehel");
    let name = group.name_at(0);
    group.crash(1);
    let hasty = AcquireTimed { wait: Wait::no(), ..asked(1, &name, 1) };
    group.input(0, Input::AcquireTimed(1, hasty));
    group.pass(SOON);
    assert!(!group.timed.contains_key(&1));
    group.pass(SOON);
    assert_eq!(group.timed[&1], Err(Refusal::Silent("m1".into())));
    group.pass(LOST);
    assert!(group.is_free(0, &name));
}

#[test]
fn a_member_remembers_only_so_many() {
    let mut group = Group::of(2, "naimi-trehel");
    let now = group.now;
    let member = group.sites[1].member.take().unwrap();
    let mut member = member;
    let copy = |id: u128| {
        let AcquireTimed { id, names, permits, ttl, who, token, .. } = asked(id, "x", 1);
        let (fences, member) = (vec![1], "m0".into());
        let hold = TimedHold { id, names, permits, fences, who, token, member, ttl, left: TTL };
        TimedCopy { version: (crate::Epoch::FIRST, 1), hold, parts: Vec::new() }
    };
    let mut driver = crate::testing::Recorder { now, ..Default::default() };
    member.serve(&mut driver, &mut Vec::new(), |service, host, _| {
        for id in 0..MOST_COPIES as u128 {
            assert_eq!(service.remember(0, copy(id), host), Answer::Remembered(true));
        }
        assert_eq!(service.remember(0, copy(u128::MAX), host), Answer::Remembered(false));
        // One that is known is replaced.
        assert_eq!(service.remember(0, copy(7), host), Answer::Remembered(true));
        assert_eq!(service.forget_copy(HoldId(7)), Answer::Forgotten);
        assert_eq!(service.remember(0, copy(u128::MAX), host), Answer::Remembered(true));
    });
    // What is over is forgotten.
    driver.now = now + TTL;
    member.serve(&mut driver, &mut Vec::new(), |service, host, _| {
        assert_eq!(service.remember(0, copy(1), host), Answer::Remembered(true));
        assert_eq!(service.standby.copies.len(), 1);
    });
}

#[test]
fn the_newest_fence_is_that_of_the_last_grant_anywhere() {
    let mut group = Group::of(3, "naimi-trehel");
    let newest = |group: &mut Group, asker| {
        group.input(2, Input::NewestFence(asker, "x".into(), 1));
        group.fences[&asker].clone()
    };
    assert_eq!(newest(&mut group, 1), Ok(None));
    group.ask_timed(0, 1, "x");
    group.pass(SOON);
    let first = group.held(1).fences[0];
    assert_eq!(newest(&mut group, 2), Ok(Some(first)));
    group.operate(1, Which::Id(HoldId(1)), Operation::Release).unwrap();
    assert_eq!(newest(&mut group, 3), Ok(Some(first)));
    group.ask_timed(1, 2, "x");
    group.pass(SOON);
    let second = group.held(2).fences[0];
    assert!(second > first);
    assert_eq!(newest(&mut group, 4), Ok(Some(second)));
    group.operate(0, Which::Id(HoldId(2)), Operation::Release).unwrap();
    // What was granted in an earlier view is not known any more when nobody is inside.
    group.crash(0);
    group.pass(LOST);
    assert_eq!(newest(&mut group, 5), Ok(None));
    group.input(2, Input::NewestFence(6, "a b".into(), 1));
    assert!(matches!(group.fences[&6], Err(Refusal::Name(_))));
}
