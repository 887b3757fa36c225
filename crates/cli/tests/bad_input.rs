//! Wrong input: one line that names the place and the remedy, exit code 2, nothing done.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use support::Folder;

/// Runs each command line (split at spaces, '' for an empty word) and looks for the texts.
#[track_caller]
fn refuses(cases: &[(&str, &[&str])]) {
    let folder = Folder::new();
    for (line, texts) in cases {
        let words = line.split(' ').map(|word| if word == "''" { "" } else { word });
        let ran = folder.run(&words.collect::<Vec<_>>());
        assert_eq!(ran.code, Some(2), "{line}: {ran:?}");
        ran.refused(texts);
    }
    assert!(folder.names().is_empty());
}

#[test]
fn unknown_names_are_refused_with_the_nearest_and_all_there_are() {
    refuses(&[
        ("algorithms lampport", &["there is no algorithm 'lampport'. Did you mean 'lamport'?"]),
        ("algorithms LAMPORT", &["Did you mean 'lamport'?"]),
        ("check übung", &["'übung'", "There are: coordinator, lamport, "]),
        ("check ''", &["there is no algorithm ''"]),
        ("sim --algorithm raymnd", &["Did you mean 'raymond'?"]),
        ("compare --algorithms lamport,", &["there is no algorithm ''"]),
        ("check lamport --mutant no-tie", &["mutant of lamport", "Did you mean 'no-tie-break'?"]),
        ("check lamport --order lifo", &["--order: 'lifo'", "say fifo or any"]),
        ("check lamport --network lifo", &["--order: 'lifo'", "say fifo or any"]),
        ("check lamport --start asleep", &["--start: 'asleep'", "idle, inside:NODE or token:NODE"]),
        ("check lamport --start inside:x", &["--start: 'inside:x'"]),
        ("check lamport --start token:7", &["names node 7, but the nodes are 0 to 2"]),
        ("sim --algorithm lamport --start asleep", &["--start: 'asleep'", "idle, inside:NODE"]),
        ("sim --algorithm lamport --start inside:1|2", &["2 nodes inside", "one in at a time"]),
        ("check bouabdallah-laforest --start inside:0=0|1=0", &["inside with resource 0"]),
        ("sim --algorithm bouabdallah-laforest --start inside:0=0,7", &["resource 7"]),
        (
            "sim --algorithm lamport --start inside:0=0,0",
            &["--start: '0,0' claims a resource twice"],
        ),
        ("check lamport --start inside:0=", &["--start: '' is no claim"]),
        ("compare --load mediun", &["--load: there is no load 'mediun'", "low, medium, high"]),
        ("compare --quorum square", &["--quorum: ", "say grid or plane"]),
        ("sim --algorithm lamport --order lifo", &["--order: ", "say fifo or any"]),
    ]);
}

#[test]
fn numbers_that_cannot_be_are_refused_with_what_can() {
    refuses(&[
        ("compare --nodes abc", &["--nodes: 'abc' is no whole number of at least 1"]),
        ("compare --nodes 4,", &["--nodes: ''"]),
        ("compare --nodes -4", &["--nodes: '-4'"]),
        ("compare --nodes 0", &["--nodes: '0'"]),
        ("compare --nodes 99999999999", &["--nodes: '99999999999' is too large"]),
        ("compare --seed -1", &["--seed: '-1' is no whole number"]),
        ("compare --entries 0", &["--entries: must be at least 1"]),
        ("compare --hold x", &["--hold: 'x' is no distribution: say constant:1, "]),
        ("compare --delay -1", &["--delay: '-1' is no distribution"]),
        ("compare --delay uniform:2..1", &["--delay: ", "put the smaller time first"]),
        ("compare --rate NaN", &["--rate: 'NaN' is not between 0.000001 and 1000000"]),
        ("compare --rate -1", &["--rate: '-1' is not between"]),
        ("compare --rate often", &["--rate: 'often' is not between"]),
        ("check lamport --nodes 0", &["'lamport' runs on 1 to 4096 nodes, not 0"]),
        ("check lamport --nodes 99999", &["'lamport' runs on 1 to 4096 nodes, not 99999"]),
        ("check lamport --requests 0", &["--requests: '0' is no whole number of at least 1"]),
        ("check lamport --threads 0", &["--threads: '0'", "give 1 to 256"]),
        ("check lamport --states 0", &["--states: '0'"]),
        ("check lamport --memory NaN", &["--memory: 'NaN'", "positive number of GiB"]),
        ("check lamport --memory -1", &["--memory: '-1'"]),
        ("check lamport --memory much", &["--memory: 'much' is no number"]),
        ("sim --algorithm lamport --nodes ''", &["--nodes: '' is no whole number"]),
        ("sim --algorithm lamport --nodes -3", &["--nodes: '-3' is no whole number"]),
        ("sim --algorithm lamport --time 1e9", &["--time: '1e9' is no time"]),
        ("sim --algorithm lamport --entries 0", &["--entries: must be at least 1"]),
        ("sim --algorithm lamport --arrivals open --rate inf", &["--rate: 'inf' is not between"]),
        ("sim --algorithm lamport --rate 1", &["--rate: belongs to 'open' arrivals"]),
        ("sim --algorithm lamport --from 3", &["--from: ", "--diagram"]),
    ]);
}

#[test]
fn shapes_that_cannot_be_are_refused_with_the_remedy() {
    let plane = "as 7, 13, 21 or 31, but none of 12; the nearest is 13";
    refuses(&[
        ("sim --algorithm maekawa --nodes 12 --quorum plane", &[plane, "the nearest is 13"]),
        ("check maekawa --nodes 12 --quorum plane", &[plane]),
        ("sim --algorithm raymond --nodes 4 --tree -,2,3,1", &["cycle", "from node 1"]),
        ("check raymond --nodes 4 --tree -,2,3,1", &["cycle"]),
        ("compare --algorithms raymond --nodes 4 --tree -,2,3,1", &["cycle"]),
        ("check raymond --tree -,0", &["lists 2 parents for 3 nodes"]),
        ("check raymond --tree -,-,0", &["2 roots"]),
        ("check raymond --tree bush", &["--tree: 'bush' is no tree: say binary, star, chain"]),
        ("check lamport --tree star", &["'lamport' takes no tree; leave it out"]),
    ]);
}

#[test]
fn clusters_and_claims_that_cannot_be_are_refused_with_the_remedy() {
    refuses(&[
        ("compare --clusters 4,0", &["--clusters: cluster 1 has no members"]),
        ("compare --clusters 0,1|1,2", &["--clusters: node 1 is in two clusters; put it in one"]),
        ("compare --clusters teams", &["--clusters: 'teams' describes no clusters: say 4x8"]),
        (
            "compare --clusters 2x2 --wan 4 --delay 1",
            &["--delay: is said by 'network.wan' already"],
        ),
        ("compare --algorithms lamport --quorum square", &["--quorum: ", "say grid or plane"]),
        ("check lamport --clusters 3x1", &["'lamport' takes no clusters; leave it out"]),
        ("check raymond-k --k N/0", &["--k: 'N/0' is no part of the nodes"]),
        ("compare --wan 50", &["--wan: needs clusters"]),
        ("compare --locality 0.9 --load low", &["--locality: needs clusters"]),
        ("compare --clusters 2x2 --locality 2", &["--locality: '2' is no number from 0 to 1"]),
        ("compare --claim 0", &["--claim: '0' asks for nothing"]),
        ("compare --claim 3..1", &["--claim: '3..1' ends before it begins"]),
        ("compare --claim 2", &["--claim: '2' is more than there are resources (1)"]),
        ("compare --resources 3 --claim 1..4", &["more than there are resources (3)"]),
        ("compare --resources 0", &["there are 1 to 1000000 resources, not 0"]),
        ("compare --resources 3 --skew -1", &["--skew: '-1' is no number from 0 to 100"]),
        ("compare --resources 3 --skew NaN", &["--skew: 'NaN' is no number from 0 to 100"]),
        ("sim --algorithm lamport --clusters 5x1 --nodes 4", &["--clusters: ", "are 4 nodes"]),
        ("sim --algorithm lamport --clusters 0,1|1", &["--clusters: node 1 is in two clusters"]),
        ("sim --algorithm bertier --clusters 2x2 --proxies 0,1", &["node 1 cannot be the proxy"]),
        ("check bertier --nodes 4 --clusters 2x2 --proxies 0,1", &["of cluster 1", "not a member"]),
        ("compare --algorithms bertier --clusters 2x2 --proxies 0,9", &["node 9 cannot be"]),
        ("sim --algorithm bertier --clusters 2x2 --proxies 0", &["1 proxies for 2 clusters"]),
        ("check bertier --nodes 4 --proxies 0,x", &["--proxies: '0,x' names no proxies", "1,5"]),
        ("compare --clusters 2x2 --proxies ''", &["--proxies: '' names no proxies"]),
        ("sim --algorithm lamport --proxies 0,1", &["'lamport' takes no proxies"]),
        ("sim --algorithm bertier --clusters 0,1|", &["--clusters: cluster 1 has no members"]),
        ("check bertier --nodes 4 --clusters 4,0", &["cluster 1 has no members"]),
        ("check bertier --nodes 4 --clusters 0,1|1,2,3", &["node 1 is in two clusters"]),
        ("check bertier --nodes 4 --clusters 5x1", &["have 5 members, but there are 4 nodes"]),
        ("sim --algorithm lamport --max-preempt 3", &["'lamport' takes no max-preempt"]),
        ("sim --algorithm lamport --resources 0", &["there are 1 to 1000000 resources, not 0"]),
    ]);
    let folder = Folder::new();
    let schedule = ["sim", "--algorithm", "lamport", "--arrivals", "schedule", "--resources", "3"];
    for (request, text) in [
        ("1 at 1 for 0,3", "names resource 3, but the resources are 0 to 2"),
        ("1 at 1 for 1,1", "names resource 1 twice; name it once"),
        ("1 at 1 for ", "asks for nothing: name at least one resource"),
    ] {
        let ran = folder.run(&[&schedule[..], &["--request", request]].concat());
        ran.refused(&["--request: ", text]);
    }
}

#[test]
fn holders_and_detectors_that_cannot_be_are_refused_with_the_remedy() {
    let robust = |rest: &str| format!("sim --algorithm robust-k --nodes 4 {rest}");
    let k = "k is how many may be inside at once: among 4 nodes 1 to 4";
    let late = "the detector tests every 30ms but waits 40ms for an answer";
    let cases: [(String, &[&str]); 16] = [
        (robust("--k 0"), &[k, "not 0"]),
        (robust("--k 5"), &[k, "not 5"]),
        (robust("--k many"), &["--k: 'many' is no whole number"]),
        ("check raymond-k --nodes 4 --k 0".to_string(), &[k, "not 0"]),
        ("check raymond-k --nodes 4 --k 5".to_string(), &[k, "not 5"]),
        ("check lamport --k 2".to_string(), &["'lamport' takes no k; leave it out"]),
        (robust("--k 2 --resources 3"), &["several may be inside at once (k is 2) only where"]),
        ("check robust-k --crashes 3".to_string(), &["--crashes: 3 of 3 nodes", "one alive"]),
        (
            robust("--test-interval 0.03 --test-timeout 0.04"),
            &[late, "make test-interval at least"],
        ),
        (robust("--test-interval 1 --test-timeout 0"), &["test-timeout must be more than 0"]),
        (robust("--test-interval 1"), &["test-timeout: is missing; 'test-interval' needs it"]),
        (robust("--news immediate"), &["test-interval: is missing; 'news' needs it"]),
        (
            robust("--ack-timeout 0.000001"),
            &["--ack-timeout: '0.000001' is less than a thousandth of what a message takes (1)"],
        ),
        (
            robust("--delay 5 --test-interval 0.004 --test-timeout 0.001"),
            &["--test-interval: '0.004' is less than a thousandth of what a message takes (5)"],
        ),
        (robust("--ack-timeout 0"), &["ack-timeout must be more than 0"]),
        (robust("--requesters 0..4"), &["--requesters: names node 4, but the nodes are 0 to 3"]),
    ];
    for (line, texts) in cases {
        refuses(&[(&line, texts)]);
    }
}

#[test]
fn crashes_that_cannot_be_are_refused_with_the_remedy() {
    let folder = Folder::new();
    let cases: [(&[&str], &str); 4] = [
        (&["crash 4 at 1"], "names node 4, but the nodes are 0 to 3"),
        (&["crash 2 at 1", "crash 2 at 9"], "node 2 crashes twice; a crashed node does not come"),
        (
            &["crash 0 at 1", "crash 1 at 1", "crash 2 at 1", "crash 3 at 1"],
            "all 4 nodes crash; leave at least one alive",
        ),
        (&["crash 2 sometimes"], "say 'crash 3 at 5'"),
    ];
    for (faults, text) in cases {
        let mut arguments = vec!["sim", "--algorithm", "robust-k", "--nodes", "4"];
        arguments.extend(faults.iter().flat_map(|fault| ["--fault", fault]));
        folder.run(&arguments).refused(&["--fault: ", text]);
    }
}

#[test]
fn places_that_cannot_be_written_are_refused_before_any_work() {
    refuses(&[
        ("compare --csv -", &["'-'", "/dev/stdout is standard output"]),
        ("sim --algorithm lamport --json -", &["'-'", "/dev/stdout is standard output"]),
        ("check lamport --trace -", &["'-'", "/dev/stdout is standard output"]),
        ("compare --csv missing/rows.csv", &["'missing/rows.csv'", "the folder does not exist"]),
        ("compare --json .", &["'.'", "it is a folder"]),
        ("compare --json /etc/hostname/x", &["its parent is not a folder"]),
        ("compare --csv /proc/rows.csv", &["'/proc/rows.csv'", "choose a file in a folder"]),
        ("compare --plot rows", &["'rows'", "choose a name that ends in .svg, .png or .pdf"]),
        ("compare --plot rows.gif", &["'rows.gif'", ".svg, .png or .pdf"]),
        ("sim --algorithm lamport --trace ''", &["the name is empty"]),
        ("sim --algorithm lamport --diagram run", &[".svg, .png or .pdf"]),
        ("check lamport --diagram broken.gif", &[".svg, .png or .pdf"]),
    ]);
}

#[test]
fn long_input_is_not_repeated_in_full() {
    let folder = Folder::new();
    let long = "x".repeat(50_000);
    for arguments in [
        &["sim", "--algorithm", "raymond", "--clusters", "99999x99999"][..],
        &["sim", "--algorithm", "raymond", "--tree", &long],
        &["compare", "--clusters", "99999x99999"],
        &["check", &long],
        &["check", "lamport", "--order", &long],
        &["experiment", &long],
    ] {
        let ran = folder.run(arguments).refused(&["..'"]);
        assert!(ran.stderr.len() < 1000, "{}", ran.stderr);
    }
}

#[test]
fn what_cannot_be_drawn_is_refused_before_the_run() {
    // The runs would take hours.
    let endless = "--entries 1000000000";
    refuses(&[
        (
            &format!("sim --algorithm raymond --nodes 65 --diagram run.svg {endless}"),
            &["the run has 65 nodes, more than the 64 that can be drawn"],
        ),
        (
            &format!(
                "sim --algorithm raymond --nodes 65 --tree-diagram t.svg --tree-at 1 {endless}"
            ),
            &["the run has 65 nodes, more than the 64"],
        ),
        (
            &format!("sim --algorithm raymond --diagram run.svg {endless}"),
            &["the run has more than the 300 steps", "choose a window with --from and --to"],
        ),
        ("check lamport --nodes 65 --diagram broken.svg", &["the group has 65 nodes"]),
    ]);
}

#[test]
fn broken_scenario_files_are_refused_with_the_place_in_the_file() {
    let folder = Folder::new();
    let cases: [(&[u8], &str); 9] = [
        (b"nodes = 3\nseed = = 4\n", "run.toml: line 2, column 8: "),
        (b"nodes = 3\nnodes = 4\n", "run.toml: line 2, column 1: duplicate key"),
        (b"nodse = 3\n", "run.toml: there is no key 'nodse'. Did you mean 'nodes'?"),
        (b"nodes = 3\n", "run.toml: algorithm: is missing"),
        (b"nodes = []\n", "run.toml: nodes: takes one value, not a list"),
        (b"[output]\ntrace = ['a', 'b']\n", "run.toml: output.trace: takes one value, not a list"),
        (b"nodes = true\n", "run.toml: 'nodes' must be a text, a number or a list of them"),
        (b"algorithm = 'lamprt'\n", "run.toml: there is no algorithm 'lamprt'"),
        (b"\xff\xfe", "cannot read the scenario 'run.toml': it is not text"),
    ];
    for (content, text) in cases {
        folder.write("run.toml", content);
        folder.run(&["sim", "run.toml"]).refused(&[text]);
    }
    folder.run(&["sim", "none.toml"]).refused(&["'none.toml': there is no such file"]);
    folder.run(&["sim", "."]).refused(&["'.': it is a folder"]);
    for command in ["sim", "experiment"] {
        folder.run(&[command, "/dev/zero"]).refused(&["'/dev/zero': it is larger than 16 MiB"]);
    }
}

#[test]
fn unknown_flags_and_commands_are_refused_with_the_nearest() {
    let folder = Folder::new();
    let cases: [(&[&str], &str); 5] = [
        (&["simm"], "a similar subcommand exists: 'sim'"),
        (&["sim", "--nods", "3"], "a similar argument exists: '--nodes'"),
        (&["compare", "--rate", "1", "--load", "low"], "cannot be used with '--load"),
        (&["compare", "--clusters", "2x2", "--nodes", "4"], "cannot be used with '--nodes"),
        // A forgotten value is not taken from the next flag.
        (&["sim", "--trace", "--self-check"], "a value is required for '--trace <FILE>'"),
    ];
    for (arguments, text) in cases {
        let ran = folder.run(arguments);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains(text), "{}", ran.stderr);
    }
    assert!(folder.names().is_empty());
}
