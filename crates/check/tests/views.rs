//! Groups that change: three members, one lock, and one of them crashes, is restarted, is paused or is
//! cut off from the registry at any step. The pinned counts tell when behaviour changes.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use catraca_check::views::{Failure, Kind, Setting, Violation, check, mutants, property};
use catraca_check::{Limits, Report, Verdict};

/// A fault, and the states and the depth of the exploration.
type Pinned = (&'static str, (u64, usize));

fn explore(setting: &Setting) -> Report<Violation> {
    check(setting, &Limits { threads: 2, ..Limits::default() }, &mut |_| {}).unwrap()
}

fn violation(setting: &Setting) -> Violation {
    match explore(setting).verdict {
        Verdict::Violated(violation) => *violation,
        other => panic!("{other:?}: {setting:?}"),
    }
}

/// Three members, at two of which a client asks.
fn group(algorithm: &str) -> Setting {
    Setting { askers: 2, ..Setting::new(algorithm, Failure::of_any(Kind::Crash)) }
}

/// The same, in which the first client is inside already. Of a group in which everybody is idle these are
/// the runs in which it was let in before anything else happened.
fn with_holder(algorithm: &str) -> Setting {
    Setting { begins_inside: true, ..group(algorithm) }
}

#[track_caller]
fn assert_survives(setting: &Setting, pinned: &[Pinned]) {
    for &(fault, counts) in pinned {
        let setting = Setting { failure: fault.parse().unwrap(), ..setting.clone() };
        let report = explore(&setting);
        assert_eq!(report.verdict, Verdict::Holds, "{setting:?}");
        assert_eq!((report.states, report.depth), counts, "{setting:?}");
    }
}

#[test]
fn groups_of_every_family_survive_a_crash() {
    for (algorithm, [first, second, third]) in [
        ("naimi-trehel", [(443, 15), (411, 13), (946, 16)]),
        ("suzuki-kasami", [(918, 16), (958, 15), (977, 16)]),
        ("ricart-agrawala", [(1371, 19), (1275, 19), (2382, 19)]),
        ("maekawa", [(1445, 19), (1396, 19), (2533, 20)]),
        ("bouabdallah-laforest", [(549, 17), (517, 15), (1402, 18)]),
    ] {
        let pinned = [("crash:0", first), ("crash:1", second), ("crash:2", third)];
        assert_survives(&group(algorithm), &pinned);
    }
}

#[test]
fn a_crash_is_survived_while_everybody_asks() {
    let setting = Setting { askers: usize::MAX, ..group("naimi-trehel") };
    let pinned = [("crash:0", (3712, 20)), ("crash:1", (3568, 18)), ("crash:2", (4026, 20))];
    assert_survives(&setting, &pinned);
}

#[test]
fn a_semaphore_survives_a_crash() {
    // Three ask for two permits.
    let setting = Setting { permits: 2, askers: 3, ..with_holder("raymond-k") };
    let pinned = [("crash:0", (40_070, 27)), ("crash:1", (21_519, 26)), ("crash:2", (22_324, 26))];
    assert_survives(&setting, &pinned);
}

#[test]
fn a_semaphore_survives_a_restart() {
    let setting = Setting { permits: 2, ..with_holder("raymond-k") };
    assert_survives(&setting, &[("restart:0", (29_684, 27)), ("restart:2", (69_716, 27))]);
}

#[test]
fn a_semaphore_survives_a_restart_of_whoever_asks() {
    let setting = Setting { permits: 2, ..with_holder("raymond-k") };
    assert_survives(&setting, &[("restart:1", (154_140, 27))]);
}

/// Two clients ask for the same two locks, in different orders.
#[test]
fn sets_survive_a_crash_a_restart_and_a_pause() {
    let names = [["x", "y"], ["y", "x"]].map(|set| set.map(String::from).to_vec()).to_vec();
    let setting = Setting { names, ..with_holder("bouabdallah-laforest") };
    let pinned = [
        ("crash:0", (198, 14)),
        ("crash:1", (239, 13)),
        ("crash:2", (496, 15)),
        ("restart:1", (17_298, 23)),
        ("pause:1", (10_578, 23)),
    ];
    assert_survives(&setting, &pinned);
}

#[test]
fn a_semaphore_survives_a_pause() {
    let setting = Setting { permits: 2, ..with_holder("raymond-k") };
    assert_survives(&setting, &[("pause:2", (41_758, 31))]);
}

#[test]
fn a_semaphore_survives_a_pause_of_whoever_asks() {
    let setting = Setting { permits: 2, ..with_holder("raymond-k") };
    assert_survives(&setting, &[("pause:0", (48_319, 30)), ("pause:1", (54_818, 29))]);
}

#[test]
fn naimi_trehel_survives_a_restart() {
    let pinned =
        [("restart:0", (27_501, 24)), ("restart:1", (23_511, 24)), ("restart:2", (29_167, 24))];
    assert_survives(&group("naimi-trehel"), &pinned);
}

#[test]
fn naimi_trehel_survives_a_pause() {
    let pinned = [("pause:0", (21_944, 26)), ("pause:1", (19_177, 24)), ("pause:2", (13_552, 26))];
    assert_survives(&group("naimi-trehel"), &pinned);
}

#[test]
fn naimi_trehel_survives_a_cut_from_the_registry() {
    let pinned = [("cut:0", (17_491, 28)), ("cut:1", (10_080, 25)), ("cut:2", (7260, 21))];
    assert_survives(&group("naimi-trehel"), &pinned);
}

#[test]
fn suzuki_kasami_survives_a_restart_and_a_pause() {
    let pinned = [
        ("restart:0", (8653, 19)),
        ("restart:1", (11_747, 22)),
        ("restart:2", (19_249, 22)),
        ("pause:0", (10_395, 22)),
        ("pause:1", (10_372, 23)),
        ("pause:2", (7528, 22)),
    ];
    assert_survives(&with_holder("suzuki-kasami"), &pinned);
}

#[test]
fn ricart_agrawala_survives_a_restart_and_a_pause() {
    let pinned = [
        ("restart:0", (9676, 22)),
        ("restart:1", (19_266, 23)),
        ("restart:2", (20_496, 23)),
        ("pause:0", (12_407, 25)),
        ("pause:1", (12_505, 25)),
        ("pause:2", (9140, 25)),
    ];
    assert_survives(&with_holder("ricart-agrawala"), &pinned);
}

#[test]
fn maekawa_survives_a_restart() {
    let pinned =
        [("restart:0", (19_075, 24)), ("restart:1", (57_253, 26)), ("restart:2", (38_938, 26))];
    assert_survives(&with_holder("maekawa"), &pinned);
}

#[test]
fn maekawa_survives_a_pause() {
    let pinned = [("pause:0", (23_036, 27)), ("pause:1", (25_041, 27)), ("pause:2", (17_579, 28))];
    assert_survives(&with_holder("maekawa"), &pinned);
}

#[test]
fn bouabdallah_laforest_survives_a_restart_and_a_pause() {
    let pinned = [
        ("restart:0", (8007, 20)),
        ("restart:1", (17_298, 23)),
        ("restart:2", (13_751, 23)),
        ("pause:0", (9912, 23)),
        ("pause:1", (10_578, 23)),
        ("pause:2", (7131, 24)),
    ];
    assert_survives(&with_holder("bouabdallah-laforest"), &pinned);
}

#[test]
fn every_broken_rule_is_caught() {
    // That nothing else is wrong in these groups is shown above: they hold without the mutant.
    for (mutant, steps) in mutants::ALL.iter().zip([7, 7, 8, 6, 36, 7, 10, 10]) {
        let found = violation(&mutant.setting("naimi-trehel"));
        assert_eq!((found.property, found.steps.len()), (mutant.property, steps), "{found:#?}");
    }
}

#[test]
fn a_counterexample_says_in_words_what_happens() {
    let setting =
        Setting { members: 2, ..Setting::new("naimi-trehel", Failure::of(Kind::Crash, 1)) };
    let found = violation(&setting.mutated("excluded-early").unwrap());
    assert_eq!(found.property, property::MUTUAL_EXCLUSION);
    assert_eq!(found.what, "A1 and B1 are inside x at the same time, and may trust that");
    let actions: Vec<&str> = found.steps.iter().map(|step| step.action.as_str()).collect();
    for action in ["B1 asks for x", "B crashes", "a third of a lease passes"] {
        assert!(actions.contains(&action), "{actions:?}");
    }
    let last = found.steps.last().unwrap().effects.join(", ");
    assert!(last.contains("A1 is inside, fence x "), "{last}");
}

#[test]
fn what_cannot_be_explored_is_refused_in_words() {
    let usual = || group("naimi-trehel");
    for (setting, words) in [
        (
            Setting { members: 1, ..usual() },
            "there are 1 members in a group that changes; say 2 to 5",
        ),
        (Setting { clients: 4, ..usual() }, "there are 4 clients of a member"),
        (Setting { requests: 0, ..usual() }, "there are 0 requests of a client"),
        (Setting { askers: 0, ..usual() }, "there are 0 clients that ask"),
        (Setting { permits: 65, ..usual() }, "no member takes such requests"),
        (
            Setting { failure: Failure::of(Kind::Pause, 3), ..usual() },
            "there is no member 3 that could fail: members are numbered from 0 to 2",
        ),
        (group("nobody"), "'nobody'"),
    ] {
        let error = check(&setting, &Limits::default(), &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let error = usual().mutated("none").unwrap_err().to_string();
    assert!(error.starts_with("there is no broken rule of views 'none'; there are "), "{error}");
}
