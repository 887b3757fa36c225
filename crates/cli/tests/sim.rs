//! `catraca sim`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use catraca_sim::KEYS;
use support::Folder;

#[test]
fn without_a_file_and_an_algorithm_an_example_is_given() {
    let folder = Folder::new();
    folder.run(&["sim"]).refused(&["'catraca sim --algorithm lamport --nodes 5'"]);
    folder.shell("catraca sim --algorithm lamport --nodes 5").quietly(0);
    folder.run(&["sim", "--nodes", "3"]).refused(&["say what to run"]);
}

#[test]
fn a_file_that_an_editor_has_marked_as_utf_8_is_read() {
    let folder = Folder::new();
    folder.write("run.toml", "\u{feff}algorithm = 'lamport'\nnodes = 3\n[run]\nentries = 4\n");
    folder.run(&["sim", "run.toml"]).quietly(0).says("lamport");
}

#[test]
fn a_self_check_finds_two_runs_equal() {
    let arguments = ["sim", "--algorithm", "maekawa", "--delay", "exp:1", "--self-check"];
    Folder::new().run(&arguments).quietly(0).says("two runs are equal in every step, digest ");
}

#[test]
fn the_same_seed_gives_the_same_trace_byte_by_byte_and_another_seed_another() {
    let folder = Folder::new();
    let flags = ["sim", "--algorithm", "singhal", "--delay", "exp:1", "--entries", "50"];
    let trace = |name: &str, seed: &str| {
        folder.run(&[&flags[..], &["--trace", name, "--seed", seed]].concat()).quietly(0);
        folder.read(name)
    };
    let first = trace("first.trace", "5");
    assert!(first.lines().count() > 100);
    assert_eq!(first, trace("second.trace", "5"));
    assert_ne!(first, trace("third.trace", "6"));
}

#[test]
fn a_violation_is_told_with_the_command_that_reproduces_it() {
    let folder = Folder::new();
    let flags = ["sim", "--algorithm", "lamport", "--mutant", "no-tie-break", "--nodes", "3"];
    let ran = folder.run(&flags).quietly(3).says("violation   mutual exclusion at 2: ");
    let command = ran.stdout.lines().last().unwrap().strip_prefix("reproduce   ").unwrap();
    assert_eq!(folder.shell(command).quietly(3).stdout, ran.stdout);
}

#[test]
fn json_and_diagram_are_written() {
    let folder = Folder::new();
    let flags = ["sim", "--algorithm", "raymond", "--nodes", "3", "--rounds", "2"];
    let outputs = ["--json", "run.json", "--diagram", "run.svg"];
    folder.run(&[&flags[..], &outputs].concat()).quietly(0);
    assert_eq!(folder.json("run.json")["entries"], 6);
    assert!(folder.read("run.svg").starts_with("<svg"));
    assert_eq!(folder.names(), ["run.json", "run.svg"]);
}

/// A group that brings its own detector.
const ROBUST: &[&str] = &["--algorithm", "robust-k", "--test-interval", "4", "--test-timeout", "3"];

/// A group of whole members.
const THREE: &[&str] = &["--members", "3"];

/// For every key: what else the run needs, a wrong value for the file, a right one for the flag.
const VALUES: &[(&str, &[&str], &str, &str)] = &[
    ("algorithm", &[], "nope", "lamport"),
    ("nodes", &[], "0", "3"),
    ("members", &[], "65", "3"),
    ("clients", THREE, "0", "8"),
    ("handovers", THREE, "64", "2"),
    ("turn-rounds", THREE, "0", "2"),
    ("ttl", THREE, "0", "none"),
    ("resources", &[], "0", "3"),
    ("clusters", &[], "2,0", "2x4"),
    ("max-preempt", &["--algorithm", "bertier"], "x", "3"),
    ("proxies", &["--algorithm", "bertier", "--clusters", "2,1"], "x", "1,2"),
    ("k", &["--algorithm", "robust-k"], "0", "2"),
    ("test-interval", &["--algorithm", "robust-k", "--test-timeout", "3"], "x", "4"),
    ("test-timeout", &["--algorithm", "robust-k", "--test-interval", "4"], "5", "3"),
    ("news", ROBUST, "slow", "immediate"),
    ("ack-timeout", ROBUST, "0", "9"),
    ("tree", &["--algorithm", "raymond", "--nodes", "3"], "bush", "-,0,0"),
    ("quorum", &["--algorithm", "maekawa"], "square", "grid"),
    ("mutant", &[], "nope", "release-not-sent"),
    ("start", &[], "inside:9", "inside:1"),
    ("workload.arrivals", &[], "often", "serial"),
    ("workload.think", &[], "-1", "exp:2"),
    ("workload.rounds", &[], "0", "2"),
    ("workload.requesters", &[], "0..9", "1,2"),
    ("workload.pause", &["--arrivals", "serial"], "long", "2"),
    ("workload.rate", &["--arrivals", "open"], "nan", "0.5"),
    ("workload.burst", &["--arrivals", "bursts", "--every", "9"], "0", "2"),
    ("workload.every", &["--arrivals", "bursts", "--burst", "2"], "0", "9"),
    ("workload.schedule", &["--arrivals", "schedule"], "9 at 1", "1 at 1"),
    ("workload.hold", &[], "x", "uniform:1..2"),
    ("workload.at-once", THREE, "0", "2"),
    ("workload.tries", THREE, "1.5", "0.5"),
    ("workload.limited", THREE, "-1", "0.5"),
    ("workload.limit", THREE, "x", "2"),
    ("workload.cancels", THREE, "2", "0.5"),
    ("workload.patience", THREE, "x", "exp:1"),
    ("workload.vanishes", THREE, "x", "0.1"),
    ("workload.claim", &["--resources", "3"], "3..1", "1..3"),
    ("workload.skew", &["--resources", "3"], "-1", "0.8"),
    ("workload.locality", &["--arrivals", "serial", "--clusters", "2x2"], "2", "0.9"),
    ("network.delay", &[], "x", "2"),
    ("network.order", &[], "lifo", "fifo"),
    ("network.lan", &["--clusters", "2x2"], "x", "2"),
    ("network.wan", &["--clusters", "2x2"], "x", "exp:20"),
    ("network.matrix", &["--clusters", "5"], "x", "1"),
    ("faults.events", &[], "crash 9 at 1", "crash 1 at 9"),
    ("faults.detector", &[], "x", "2"),
    ("run.seed", &[], "-1", "2"),
    ("run.entries", &[], "0", "2"),
    ("run.time", &[], "soon", "5"),
    ("run.warmup", &[], "x", "1"),
    ("run.events", &[], "0", "9999"),
    ("run.max-bypass", &[], "x", "9"),
    ("output.trace", &[], "missing/run.trace", "run.trace"),
    ("output.log", THREE, "missing/run.log", "run.log"),
    ("output.diagram", &[], "run.gif", "run.svg"),
    ("output.tree-diagram", &["--algorithm", "raymond", "--tree-at", "1"], "tree.gif", "tree.svg"),
    ("output.tree-at", &["--algorithm", "raymond", "--tree-diagram", "at.svg"], "-1", "2.5"),
    ("output.from", &["--diagram", "run.svg"], "x", "0"),
    ("output.to", &["--diagram", "run.svg"], "x", "9"),
    ("output.html", &[], "missing/run.html", "run.html"),
    ("output.html-from", &["--html", "run.html"], "x", "0"),
    ("output.html-to", &["--html", "run.html"], "x", "9"),
    ("output.json", &[], "missing/run.json", "run.json"),
];

#[test]
fn every_key_can_be_said_in_the_file_and_is_overridden_by_its_flag() {
    let folder = Folder::new();
    let paths: Vec<&str> = KEYS.iter().map(|key| key.path).collect();
    assert_eq!(VALUES.iter().map(|value| value.0).collect::<Vec<_>>(), paths);
    for (key, (path, others, wrong, right)) in KEYS.iter().zip(VALUES) {
        let mut file = format!("{path} = '{wrong}'\n");
        if !["algorithm", "tree", "quorum"].contains(path) {
            file.push_str("algorithm = 'lamport'\n");
        }
        folder.write("run.toml", file);
        // Short, unless the length is the question.
        let short: &[&str] = if *path == "run.entries" { &[] } else { &["--entries", "5"] };
        let common = [&["sim", "run.toml"], *others, short].concat();
        // The file's value is read, or it would not be wrong.
        folder.run(&common).refused(&[]);
        let flag = format!("--{}", key.flag);
        let ran = folder.run(&[&common[..], &[&flag, right]].concat());
        // Only a mutant does something wrong.
        let code = if *path == "mutant" { 3 } else { 0 };
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), ""), "{path}: {}", ran.stdout);
    }
}

#[test]
fn what_is_wrong_is_found_where_it_was_said() {
    let folder = Folder::new();
    folder.write("run.toml", "algorithm = 'lamport'\n[workload]\nhold = 'x'\n");
    folder.run(&["sim", "run.toml"]).refused(&["run.toml: workload.hold: 'x' is no distribution"]);
    let both = ["sim", "run.toml", "--hold", "y"];
    folder.run(&both).refused(&["catraca: --hold: 'y' is no distribution"]);
    let good = ["sim", "run.toml", "--hold", "1", "--nodes", "0"];
    folder.run(&good).refused(&["catraca: 'lamport' runs on 1 to"]);
}

#[test]
fn trees_are_drawn_at_the_instants_that_are_named_as_replay_draws_them() {
    let folder = Folder::new();
    let draw = |flags: &[&str]| {
        let group = ["sim", "--algorithm", "naimi-trehel", "--nodes", "4", "--rounds", "1"];
        folder.run(&[&group[..], &["--tree-diagram", "tree.svg"], flags].concat())
    };
    let instants = ["--tree-at", "0", "--tree-at", "2.5"];
    draw(&[&instants[..], &["--trace", "run.trace"]].concat()).quietly(0);
    let replay = ["replay", "run.trace", "--tree-diagram", "again.svg"];
    folder.run(&[&replay[..], &instants].concat()).quietly(0);
    assert_eq!(folder.read("tree.svg"), folder.read("again.svg"));
    assert!(folder.read("tree.svg").contains("(b) at time 2.5"));
    draw(&[]).refused(&["--tree-diagram draws single instants", "--tree-at 2.5"]);
    draw(&["--tree-at", "soon"]).refused(&["--tree-at: 'soon' is no time"]);
    draw(&["--tree-at", "-1"]).refused(&["--tree-at: '-1' is no time"]);
    // These show only after the run, whose figures are not lost.
    let late = draw(&["--tree-at", "99"]);
    assert_eq!(late.code, Some(2));
    assert!(
        late.stderr.contains("the run ends at time 7, and there is nothing to draw at time 99")
    );
    let lamport = ["sim", "--algorithm", "lamport", "--tree-at", "1"];
    folder.run(&lamport).refused(&["--tree-at: says when; say where with --tree-diagram"]);
    let lamport = [&lamport[..], &["--tree-diagram", "lamport.svg"]].concat();
    let no_tree = folder.run(&lamport);
    assert_eq!(no_tree.code, Some(2));
    assert!(no_tree.stderr.contains("its nodes do not point to each other"), "{no_tree:?}");
    assert_eq!(folder.names(), ["again.svg", "run.trace", "tree.svg"]);
}

#[test]
fn a_run_may_begin_with_several_inside_who_hold_different_resources() {
    let folder = Folder::new();
    let group = ["sim", "--algorithm", "bouabdallah-laforest", "--resources", "3", "--rounds", "2"];
    let start = ["--start", "inside:0=0,1|2=2", "--trace", "run.trace"];
    folder.run(&[&group[..], &start].concat()).quietly(0);
    let header = folder.read("run.trace").lines().next().unwrap().to_string();
    assert!(header.contains(r#""inside":{"0":[0,1],"2":[2]},"token":0"#), "{header}");
    folder.write(
        "run.toml",
        "algorithm = 'bouabdallah-laforest'\nresources = 3\nstart = 'inside:0=0,1|2=2'\n\
         [workload]\nrounds = 2\n[output]\ntrace = 'again.trace'\n",
    );
    folder.run(&["sim", "run.toml"]).quietly(0);
    assert_eq!(folder.read("run.trace"), folder.read("again.trace"));
}

#[test]
fn a_run_in_which_time_does_not_advance_gives_up_and_says_what_to_change() {
    let one = ["--algorithm", "raymond", "--nodes", "1", "--hold", "0", "--time", "1"];
    let many = ["--algorithm", "lamport", "--hold", "0", "--delay", "0", "--time", "1"];
    for flags in [&one[..], &many] {
        let ran = Folder::new().run(&[&["sim"], flags].concat()).quietly(4);
        let ran = ran.says("gave up     more than ten million events happen at one instant");
        ran.says("reproduce   catraca sim --algorithm");
    }
}

#[test]
fn a_run_for_which_there_is_no_number_for_the_time_gives_up() {
    let flags = ["--algorithm", "raymond", "--hold", "1000000000", "--entries", "100000"];
    let ran = Folder::new().run(&[&["sim"], &flags[..]].concat()).quietly(4);
    ran.says("gave up     the clock cannot count further");
}

#[test]
fn a_deadlock_is_told_although_requests_keep_coming() {
    let mutant = ["--algorithm", "maekawa", "--nodes", "2", "--mutant", "deaf-to-failed"];
    let open = ["--arrivals", "open", "--rate", "1", "--entries", "1000000"];
    let ran = Folder::new().run(&[&["sim"], &mutant[..], &open].concat()).quietly(3);
    ran.says("violation   nobody waits for ever at ").says("these nodes wait: 0, 1");
}

#[test]
fn messages_of_requests_that_were_not_served_are_said_to_count() {
    let folder = Folder::new();
    let flags = ["sim", "--algorithm", "lamport", "--nodes", "3"];
    let ended = folder.run(&[&flags[..], &["--entries", "4"]].concat()).quietly(0);
    ended.says(" per entry, with the messages of those still waiting\n");
    let served = folder.run(&[&flags[..], &["--rounds", "4"]].concat()).quietly(0);
    served.says("6.00 per entry\n").says(" in the time T+E of a message and a stay\n");
}

/// A small run of members.
const MEMBERS: [&str; 9] =
    ["sim", "--members", "3", "--clients", "8", "--algorithm", "naimi-trehel", "--entries", "100"];

#[test]
fn members_run_with_their_clients_and_twice_the_same() {
    let folder = Folder::new();
    let outputs = ["--self-check", "--json", "run.json", "--log", "run.log", "--tries", "0.3"];
    let seen = folder.run(&[&MEMBERS[..], &outputs].concat()).quietly(0);
    seen.says("naimi-trehel: 3 members, 8 clients, 1 lock, seed 1")
        .says(" by hand-over, ")
        .says(" over clients, ")
        .says("verdict     no invariant broke")
        .says("two runs are equal in every step, digest ");
    assert!(folder.read("run.json").contains("\"entries\": 100"));
    assert!(folder.read("run.log").contains(" client 7 says Ask(1, "));
    folder.write(
        "run.toml",
        "members = 3\nclients = 8\nalgorithm = 'naimi-trehel'\n[workload]\ntries = 0.3\n\
         [run]\nentries = 100\n[output]\njson = 'again.json'\n",
    );
    folder.run(&["sim", "run.toml"]).quietly(0);
    assert_eq!(folder.read("run.json"), folder.read("again.json"));
}

#[test]
fn what_breaks_among_members_is_shown_with_the_command_that_repeats_it() {
    let broken = Folder::new().run(&[&MEMBERS[..], &["--mutant", "drops-grants"]].concat());
    broken.quietly(3).says("violation   nobody waits for ever at ").says(
        "reproduce   catraca sim --algorithm naimi-trehel --members 3 --clients 8 --mutant \
         drops-grants --entries 100",
    );
}

#[test]
fn clients_that_wait_for_a_crashed_member_are_stuck_and_no_violation() {
    let crash = ["--fault", "crash 0 at 10"];
    let stuck = Folder::new().run(&[&MEMBERS[..], &crash].concat()).quietly(0);
    stuck.says("stuck       these wait for a member that has crashed").says("no invariant broke");
}

#[test]
fn what_belongs_to_nodes_is_refused_for_members_and_the_other_way_round() {
    let folder = Folder::new();
    folder.run(&[&MEMBERS[..], &["--nodes", "3"]].concat()).refused(&["--nodes: belongs to runs"]);
    folder
        .run(&["sim", "--algorithm", "lamport", "--clients", "3"])
        .refused(&["--clients: belongs to runs of members; say how many with 'members'"]);
    folder
        .run(&[&MEMBERS[..], &["--ttl", "0"]].concat())
        .refused(&["a session lasts 0.1 to 86400"]);
}
