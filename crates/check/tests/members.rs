//! Whole members: local queues, hand-over, cancellation, fences and changes of the view, explored
//! exhaustively in small groups. The pinned counts tell when behaviour changes.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use std::time::Duration;

use catraca_algorithms::registry;
use catraca_check::group::{NextView, Setting, SettingError, Violation, check, mutants, property};
use catraca_check::{Limits, Report, Verdict};
use catraca_group::{Turns, Wait};

fn explore(setting: &Setting) -> Report<Violation> {
    check(setting, &Limits { threads: 2, ..Limits::default() }, &mut |_| {}).unwrap()
}

/// Explores a group in which everything holds, and compares states and depth.
fn assert_holds(setting: &Setting, counts: (u64, usize)) {
    let report = explore(setting);
    assert_eq!(report.verdict, Verdict::Holds, "{setting:?}");
    assert_eq!((report.states, report.depth), counts, "{setting:?}");
}

fn violation(setting: &Setting) -> Violation {
    match explore(setting).verdict {
        Verdict::Violated(violation) => *violation,
        other => panic!("{other:?}: {setting:?}"),
    }
}

/// Turns of one round, in which those who wait are served once.
fn one_round(handovers: u8) -> Turns {
    Turns { handovers, rounds: 1 }
}

fn names(sets: &[&[&str]]) -> Vec<Vec<String>> {
    sets.iter().map(|set| set.iter().map(|name| name.to_string()).collect()).collect()
}

const SINGLE: [&str; 5] =
    ["naimi-trehel", "ricart-agrawala", "suzuki-kasami", "maekawa", "raymond"];

#[test]
fn clients_of_two_members_share_a_lock_and_may_give_up_whatever_the_bound_on_handovers() {
    // With two clients a member, a lock is handed over once in a turn: the bounds 1 and 2 are the
    // same.
    for (algorithm, never, once) in [
        ("naimi-trehel", (1010, 14), (1324, 14)),
        ("ricart-agrawala", (2572, 16), (3243, 16)),
        ("suzuki-kasami", (1124, 16), (1440, 16)),
        ("maekawa", (4445, 20), (5572, 20)),
        ("raymond", (1010, 14), (1324, 14)),
    ] {
        for (handovers, counts) in [(0, never), (1, once), (2, once)] {
            assert_holds(
                &Setting { turns: one_round(handovers), ..Setting::new(algorithm) },
                counts,
            );
        }
    }
}

#[test]
fn three_clients_of_each_member_hand_a_lock_over_once_or_twice() {
    for (handovers, counts) in [(0, (6188, 16)), (1, (12_076, 18)), (2, (14_051, 18))] {
        let setting = Setting { clients: 3, cancels: 0, ..Setting::new("naimi-trehel") };
        assert_holds(&Setting { turns: one_round(handovers), ..setting }, counts);
    }
}

#[test]
fn clients_that_ask_twice_take_turns() {
    // In turns of one round whoever comes again waits for the next turn; in usual ones it does not.
    for (algorithm, one, usual) in [
        ("naimi-trehel", (8430, 26), (15_107, 21)),
        ("ricart-agrawala", (28_181, 32), (38_659, 32)),
        ("suzuki-kasami", (13_845, 32), (24_403, 32)),
        ("raymond", (8430, 26), (15_107, 21)),
    ] {
        for (turns, counts) in [(one_round(2), one), (Turns::USUAL, usual)] {
            let setting = Setting { turns, requests: 2, cancels: 0, ..Setting::new(algorithm) };
            assert_holds(&setting, counts);
        }
    }
}

#[test]
fn three_members_share_a_lock() {
    let counts = [(438, 13), (7583, 18), (1749, 15), (3575, 19), (383, 14)];
    for (algorithm, counts) in SINGLE.into_iter().zip(counts) {
        assert_holds(&Setting { members: 3, clients: 1, ..Setting::new(algorithm) }, counts);
    }
}

#[test]
fn patience_that_ends_at_any_moment_leaves_nothing_behind() {
    let wait = Wait::AtMost(Duration::from_secs(1));
    for (algorithm, counts) in [("naimi-trehel", (3227, 16)), ("ricart-agrawala", (8063, 16))] {
        assert_holds(&Setting { wait, ..Setting::new(algorithm) }, counts);
    }
}

#[test]
fn who_does_not_wait_for_others_is_refused_or_served() {
    let setting = Setting { wait: Wait::no(), ..Setting::new("naimi-trehel") };
    assert_holds(&setting, (20_988, 24));
}

#[test]
fn a_semaphore_lets_two_in_from_either_member() {
    let setting = Setting { permits: 2, ..Setting::new("raymond-k") };
    for (handovers, counts) in [(0, (21_863, 24)), (1, (36_022, 24))] {
        assert_holds(
            &Setting { turns: one_round(handovers), cancels: 0, ..setting.clone() },
            counts,
        );
    }
    let alone = Setting { members: 1, clients: 4, ..setting };
    for (handovers, counts) in [(0, (708, 8)), (2, (862, 8))] {
        assert_holds(&Setting { turns: one_round(handovers), ..alone.clone() }, counts);
    }
}

#[test]
fn sets_that_overlap_exclude_each_other() {
    for (algorithm, sets, counts) in [
        ("bouabdallah-laforest", &[&["x", "y"][..], &["y"]][..], (3845, 22)),
        ("bouabdallah-laforest", &[&["x", "y"], &["y", "z"], &["x"]], (3781, 22)),
        ("naimi-trehel", &[&["x", "y"], &["y", "x"]], (4509, 22)),
    ] {
        assert_holds(&Setting { names: names(sets), ..Setting::new(algorithm) }, counts);
    }
}

#[test]
fn in_the_next_view_who_is_inside_stays_and_who_waits_is_served() {
    let views = [NextView::Same, NextView::Without(0), NextView::Without(1)];
    for (algorithm, counts) in [
        ("naimi-trehel", [(9970, 17), (1692, 14), (1691, 14)]),
        ("ricart-agrawala", [(18_254, 17), (3680, 17), (3672, 17)]),
        ("raymond", [(9970, 17), (1692, 14), (1691, 14)]),
    ] {
        for (view, counts) in views.into_iter().zip(counts) {
            assert_holds(&Setting { next_view: Some(view), ..Setting::new(algorithm) }, counts);
        }
    }
    let semaphore = Setting { permits: 2, clients: 1, ..Setting::new("raymond-k") };
    for (view, counts) in views.into_iter().zip([(1964, 13), (348, 12), (348, 12)]) {
        assert_holds(&Setting { next_view: Some(view), ..semaphore.clone() }, counts);
    }
    let names = names(&[&["x", "y"], &["y"]]);
    let sets = Setting { names, ..Setting::new("bouabdallah-laforest") };
    for (view, counts) in views.into_iter().skip(1).zip([(4101, 22), (4088, 22)]) {
        assert_holds(&Setting { next_view: Some(view), ..sets.clone() }, counts);
    }
}

#[test]
fn two_of_three_members_go_on_without_the_third() {
    for (algorithm, counts) in [
        ("naimi-trehel", [(301, 14), (236, 13), (301, 14)]),
        ("raymond", [(278, 15), (210, 14), (278, 15)]),
    ] {
        let setting = Setting { members: 3, clients: 1, cancels: 0, ..Setting::new(algorithm) };
        for (gone, counts) in counts.into_iter().enumerate() {
            let next_view = Some(NextView::Without(gone));
            assert_holds(&Setting { next_view, ..setting.clone() }, counts);
        }
    }
}

#[test]
fn every_algorithm_of_the_catalogue_lives_through_a_change_of_the_view() {
    for algorithm in registry::ENTRIES {
        for view in [NextView::Same, NextView::Without(0), NextView::Without(1)] {
            let next_view = Some(view);
            let setting = Setting { clients: 1, next_view, ..Setting::new(algorithm.name) };
            assert_eq!(explore(&setting).verdict, Verdict::Holds, "{setting:?}");
        }
    }
}

#[test]
fn every_mutant_is_caught_in_a_group_in_which_nothing_else_is_wrong() {
    for (mutant, steps) in mutants::ALL.iter().zip([3, 3, 7, 4, 3, 3, 4, 5, 3, 3, 2, 5, 5]) {
        let setting = mutant.setting("naimi-trehel");
        let found = violation(&setting);
        assert_eq!((found.property, found.steps.len()), (mutant.property, steps), "{found:#?}");
        let correct = Setting { mutant: None, ..setting };
        assert_eq!(explore(&correct).verdict, Verdict::Holds, "{mutant:?}");
    }
}

#[test]
fn broken_queues_are_caught_under_every_algorithm() {
    for mutant in mutants::ALL {
        for algorithm in SINGLE {
            // A grant to a single member may not need the others: what is found may differ.
            let found = violation(&mutant.setting(algorithm));
            assert!(found.steps.len() <= 14, "{algorithm}, {mutant:?}: {found:#?}");
        }
    }
}

#[test]
fn a_mutant_of_semaphores_repeats_a_fence() {
    let setting = Setting {
        turns: one_round(2),
        permits: 2,
        members: 1,
        clients: 4,
        ..Setting::new("raymond-k")
    };
    let found = violation(&setting.mutated("handover-keeps-fence").unwrap());
    assert_eq!(found.property, property::FENCES_UNIQUE);
    assert_eq!(found.what, "x: fence 1.6.0 comes for the second time");
}

#[test]
fn a_counterexample_says_in_words_what_happens() {
    let setting = Setting { members: 1, turns: one_round(2), ..Setting::new("naimi-trehel") };
    let found = violation(&setting.mutated("turn-grows-with-its-queue").unwrap());
    let steps =
        found.steps.iter().map(|step| format!("{}: {}", step.action, step.effects.join(", ")));
    assert_eq!(
        steps.collect::<Vec<_>>(),
        [
            "A1 asks for x: A1 is inside, fence x 1.1.0",
            "A2 asks for x: ",
            "A1 leaves x: A2 is inside, fence x 1.1.1"
        ]
    );
    assert_eq!(
        found.what,
        "fence 1.1.1: the lock was handed over more than 0 times in a turn that began with so few"
    );
}

#[test]
fn a_search_stops_at_its_limit() {
    let limits = Limits { state_limit: Some(100), ..Limits::default() };
    let report = check(&Setting::new("maekawa"), &limits, &mut |_| {}).unwrap();
    assert_eq!(report.verdict, Verdict::TooManyStates { limit: 100 });
}

#[test]
fn what_cannot_be_explored_is_refused_in_words() {
    let usual = || Setting::new("naimi-trehel");
    let refusals = [
        (Setting { members: 0, ..usual() }, "there are 0 members; say 1 to 26"),
        (Setting { clients: 10, ..usual() }, "there are 10 clients of a member; say 1 to 9"),
        (Setting { permits: 65, ..usual() }, "no member takes such requests"),
        (Setting { names: names(&[&["a b"]]), ..usual() }, "no member takes such requests"),
        (Setting { turns: one_round(64), ..usual() }, "at most 63 times in a row"),
        (
            Setting { turns: Turns { rounds: 0, ..Turns::USUAL }, ..usual() },
            "a turn has 1 to 64 rounds",
        ),
        (
            Setting { next_view: Some(NextView::Without(2)), ..usual() },
            "member 2 cannot be left out",
        ),
        (Setting::new("nobody"), "'nobody'"),
    ];
    for (setting, words) in refusals {
        let error = check(&setting, &Limits::default(), &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let alone = Setting { members: 1, next_view: Some(NextView::Without(0)), ..usual() };
    assert_eq!(check(&alone, &Limits::default(), &mut |_| {}), Err(SettingError::NobodyLeft));
    assert!(matches!(usual().mutated("none"), Err(SettingError::UnknownMutant(..))));
}
