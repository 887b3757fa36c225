//! Members crash, pause and lose each other.

use std::time::Duration;

use catraca_core::property;
use catraca_sim::members::{Report, Setup};
use catraca_sim::{End, Faults, Time};

use crate::{correct, figures, impatient, small};

fn with_faults(setup: Setup, faults: &[&str]) -> Setup {
    let faults = faults.iter().map(|text| text.parse().unwrap()).collect();
    Setup { faults: Faults::new(faults, setup.members).unwrap(), ..setup }
}

/// Crashes are found within a few units.
fn robust(members: u32, clients: u32, rounds: u32) -> Setup {
    let mut setup = small("robust-k", members, clients, rounds);
    (setup.detector.interval, setup.detector.timeout) =
        (Duration::from_secs(3), Duration::from_secs(3));
    Setup { ttl: Some(Time::units(3)), ..setup }
}

#[track_caller]
fn everybody_is_served(report: &Report) {
    assert_eq!((report.end, report.waiting, report.is_stuck), (End::Quiet, 0, false));
}

#[test]
fn clients_that_wait_for_a_crashed_member_are_stuck_and_that_is_no_violation() {
    for algorithm in ["naimi-trehel", "coordinator", "lamport"] {
        let crash = with_faults(small(algorithm, 3, 6, 50), &["crash 0 at 10"]);
        let report = correct(&crash);
        assert!(report.is_stuck && report.waiting > 0, "{algorithm}: {report:?}");
        assert_eq!(report.end, End::Quiet);
    }
}

#[test]
fn with_an_algorithm_that_survives_crashes_the_group_goes_on() {
    for seed in 1..=10 {
        let setup = Setup { seed, ..robust(4, 8, 30) };
        let crashes = with_faults(setup, &["crash 0 at 10", "crash 2 at 20.5"]);
        let report = correct(&crashes);
        everybody_is_served(&report);
        assert!(report.entries >= 120, "four clients are left: {report:?}");
    }
}

#[test]
fn what_a_partition_holds_back_arrives_later() {
    let cut = "partition 0|1,2 from 5 to 30";
    for algorithm in ["naimi-trehel", "ricart-agrawala", "raymond"] {
        let setup = Setup { waiting: impatient(), ..small(algorithm, 3, 6, 20) };
        let report = correct(&with_faults(setup, &[cut]));
        everybody_is_served(&report);
        assert!(report.longest_wait > 10.0, "{algorithm}: {report:?}");
    }
}

#[test]
fn who_does_not_wait_is_told_that_a_member_does_not_answer() {
    let mut setup = Setup { waiting: impatient(), ..small("raymond", 3, 6, 40) };
    setup.waiting.tries = 0.6;
    let report = correct(&with_faults(setup, &["partition 0|1,2 from 5 to 30"]));
    assert!(report.refused.iter().any(|(code, _)| code == "member-silent"), "{report:?}");
}

#[test]
fn a_group_that_begins_apart_begins_when_it_is_together() {
    let mut setup = Setup { waiting: impatient(), ..small("singhal", 3, 6, 10) };
    setup.waiting.limited = 0.6;
    let report = correct(&with_faults(setup, &["partition 0|1,2 from 0 to 8"]));
    everybody_is_served(&report);
    assert!(report.refused.iter().any(|(code, _)| code == "not-ready"), "{report:?}");
}

#[test]
fn after_a_short_pause_nothing_is_lost_and_after_a_long_one_sessions_are() {
    let pause = |to: &str| {
        let fault = format!("pause 1 from 5 to {to}");
        let report = correct(&with_faults(small("naimi-trehel", 3, 9, 20), &[&fault]));
        everybody_is_served(&report);
        report
    };
    let (short, long) = (pause("9"), pause("60"));
    assert_eq!((short.lost, short.sessions), (0, 9));
    assert!(long.sessions > 9, "{long:?}");
}

#[test]
fn clients_of_a_member_that_is_taken_for_crashed_let_go_before_others_get_the_lock() {
    let mut lost = 0;
    for seed in 1..=20 {
        let mut setup = Setup { seed, ..robust(3, 9, 30) };
        setup.hold = "exp:3".parse().unwrap();
        let report = correct(&with_faults(setup, &["pause 1 from 10 to 50"]));
        let excluded = report.refused.iter().find(|(code, _)| code == "excluded");
        assert!(excluded.is_some(), "{report:?}");
        everybody_is_served(&report);
        lost += report.lost;
    }
    assert!(lost > 0, "nobody held a lock when the pause began");
}

#[test]
fn a_partition_that_is_taken_for_a_crash_breaks_exclusion_and_the_report_says_so() {
    let violation = |seed| {
        let setup = Setup { seed, ..robust(3, 9, 30) };
        figures(&with_faults(setup, &["partition 0|1,2 from 10 to 60"])).violation
    };
    let broken =
        (1..=20).filter_map(violation).find(|it| it.invariant == property::MUTUAL_EXCLUSION);
    let what = broken.unwrap().what;
    assert!(what.contains("was taken for crashed by member"), "{what}");
}
