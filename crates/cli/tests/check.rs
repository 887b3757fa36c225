//! `catraca check`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use catraca_algorithms::registry::ENTRIES;
use support::Folder;

/// A mutant that two nodes give away in a few steps.
const BROKEN: [&str; 6] = ["check", "lamport", "--nodes", "2", "--mutant", "no-tie-break"];

#[test]
fn two_nodes_of_every_algorithm_hold() {
    let folder = Folder::new();
    let ran = folder.run(&["check", "all", "--nodes", "2"]).quietly(0);
    let verdicts = ran.stdout.lines().filter(|line| line.ends_with("  holds")).count();
    assert_eq!(verdicts, ENTRIES.len(), "{}", ran.stdout);
    assert!(folder.names().is_empty());
}

#[test]
fn the_violation_of_a_mutant_is_told_in_words_and_written_as_a_trace() {
    let folder = Folder::new();
    let ran = folder.run(&BROKEN).quietly(3).says("VIOLATED: mutual exclusion");
    let ran = ran.says("nodes 0 and 1 are inside at the same time");
    let ran = ran.says("   1  node 0 asks: sends request 1 to 1\n");
    ran.says("Written to lamport-no-tie-break.trace; ");
    assert_eq!(folder.names(), ["lamport-no-tie-break.trace"]);
    let replayed = folder.run(&["replay", "lamport-no-tie-break.trace"]).quietly(3);
    replayed.says("violation at event 5: ").says("the replay does exactly what the trace says");
}

#[test]
fn the_trace_of_a_violation_can_be_drawn_by_check_and_by_replay() {
    let folder = Folder::new();
    let outputs = ["--trace", "broken.trace", "--diagram", "check.svg"];
    folder.run(&[&BROKEN[..], &outputs].concat()).quietly(3);
    for name in ["replay.svg", "replay.png"] {
        folder.run(&["replay", "broken.trace", "--diagram", name]).quietly(3);
    }
    assert!(folder.read("check.svg").starts_with("<svg"));
    assert_eq!(folder.read("check.svg"), folder.read("replay.svg"));
    assert!(std::fs::read(folder.path("replay.png")).unwrap().starts_with(b"\x89PNG\r\n\x1a\n"));
    let names = ["broken.trace", "check.svg", "replay.png", "replay.svg"];
    assert_eq!(folder.names(), names);
}

#[test]
fn out_of_memory_is_no_verdict_and_says_what_to_do() {
    let ran = Folder::new().run(&["check", "lamport", "--memory", "0.000001"]).quietly(4);
    let ran = ran.says("no verdict: out of memory").says(" of the 1.0 KiB allowed; ");
    ran.says("Take fewer nodes or requests, or raise --memory.");
}

#[test]
fn a_group_that_is_too_large_is_no_verdict_and_says_how_large_it_may_be() {
    let large = ["check", "raymond", "--nodes", "1000000", "--states", "10"];
    let ran = Folder::new().run(&large).quietly(4).says("no verdict: too many nodes");
    ran.says("raymond: too many nodes to be explored; take up to 64.");
    let sets = ["check", "bouabdallah-laforest", "--resources", "100000"];
    Folder::new().run(&sets).quietly(4).says("too many resources to be explored; ");
}

#[test]
fn too_many_states_are_no_verdict_and_say_what_to_do() {
    let ran = Folder::new().run(&["check", "lamport", "--states", "100"]).quietly(4);
    ran.says("no verdict: too many states").says("gave up after 100 states; ");
}

#[test]
fn an_unwritable_trace_is_refused_before_the_search() {
    // The search would take minutes.
    let arguments = ["check", "lamport", "--nodes", "4", "--trace", "missing/broken.trace"];
    Folder::new().run(&arguments).refused(&["cannot write 'missing/broken.trace'"]);
}

#[test]
fn one_algorithm_is_needed_for_what_belongs_to_one() {
    let arguments = ["check", "all", "--mutant", "no-tie-break"];
    Folder::new().run(&arguments).refused(&["--mutant needs one algorithm, not 'all'"]);
}

#[test]
fn a_group_survives_a_member_that_is_paused_and_the_verdict_says_what_it_covers() {
    let arguments = ["check", "naimi-trehel", "--members", "2", "--fault", "pause:1"];
    let ran = Folder::new().run(&arguments).quietly(0).says("  holds");
    let ran =
        ran.says("Explored: 2 clients ask, at the beginning all are idle; one fault (pause:1)");
    ran.says("Not explored: clocks of different rates");
}

#[test]
fn a_broken_rule_of_views_is_told_in_words() {
    let arguments = "check naimi-trehel --members 2 --fault pause:1 --mutant valid-for-ever";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let ran = Folder::new().run(&arguments).quietly(3).says("VIOLATED: ");
    ran.says("  B is paused\n").says("  a third of a lease passes\n");
}

#[test]
fn a_fault_that_cannot_be_explored_is_refused() {
    for (arguments, words) in [
        ("--members 3 --fault burn", "'burn' is no fault: say crash, restart, pause or cut"),
        ("--members 3 --fault crash:3", "there is no member 3 that could fail"),
        ("--members 1 --fault crash", "there are 1 members in a group that changes; say 2 to 5"),
        ("--members 3 --fault crash --mutant none", "there is no broken rule of views 'none'"),
    ] {
        let arguments: Vec<&str> =
            ["check", "naimi-trehel"].into_iter().chain(arguments.split(' ')).collect();
        Folder::new().run(&arguments).refused(&[words]);
    }
    for (arguments, words) in [
        ("--members 3 --fault crash --next-view same", "cannot be used with"),
        ("--members 3 --fault crash --cancels 1", "cannot be used with"),
        ("--members 3 --askers 2", "--fault <FAULT>"),
        ("--fault crash", "--members <N>"),
    ] {
        let arguments: Vec<&str> =
            ["check", "naimi-trehel"].into_iter().chain(arguments.split(' ')).collect();
        let ran = Folder::new().run(&arguments);
        assert!(ran.code == Some(2) && ran.stderr.contains(words), "{ran:?}");
    }
}
