//! `catraca graph` as users run it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::io::Write;

use support::Folder;

/// Erratum 5 of S1: w meets v, then u.
const ERRATUM: &str = "catraca graph\nnames w u v\n1 w v\n5 w u\n";
/// The contacts of S1's Figures 2 and 3.
const FIGURE: &str = "catraca graph\nnames v1 v2 v3\nlast 5\n1 v1 v2\n2 v2 v3\n3 v1 v2\n4 v1 v3\n";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("erratum.txt", ERRATUM);
    folder.write("figure.txt", FIGURE);
    folder
}

#[test]
fn check_says_what_holds_and_what_follows() {
    let folder = folder();
    folder
        .run(&["graph", "check", "erratum.txt", "--requesters", "w"])
        .quietly(0)
        .says("C1          fails  no journey from u to v; only back: v --1--> w --5--> u")
        .says("round trip  holds  for one: w --5--> u, and u --5--> w")
        .says("C2          ?      is about 'for ever'")
        .says("evolving-ricart-agrawala will work: one node asks");
    folder
        .run(&["graph", "check", "erratum.txt", "--token", "v"])
        .quietly(0)
        .says("evolving-ricart-agrawala must fail: a node that asks has no round trip")
        .says("evolving-helary depends on the schedule");
    folder
        .run(&["graph", "check", "erratum.txt", "--repeat", "--conditions", "c2,c4"])
        .quietly(0)
        .says("C2          holds")
        .says("evolving-helary will work: C4 holds, which suffices");
}

#[test]
fn a_run_tells_who_is_served_and_draws_it() {
    let folder = folder();
    let run = ["graph", "run", "figure.txt", "--requesters", "v1,v3", "--token", "v2"];
    folder.run(&run).quietly(0).says("evolving-helary: everybody was served, by instant 5");
    let strip = ["--algorithm", "evolving-helary", "--strip", "run.svg", "--json", "run.json"];
    folder.run(&[&run[..], &strip].concat()).quietly(0);
    let svg = folder.read("run.svg");
    assert_eq!(svg.matches(r#"class="snapshot""#).count(), 6);
    let entered =
        |entry: usize| folder.json("run.json")["runs"][0]["served"][entry]["entered"].clone();
    assert_eq!((entered(0), entered(1)), (1.into(), 4.into()));
    let alone = ["graph", "run", "erratum.txt", "--request", "u@2", "--repeat=6"];
    folder
        .run(&alone)
        .refused(&["--repeat: the trace ends with instant 5, but is to repeat from 6"]);
    let ring = ["graph", "generate", "static", "--shape", "path", "--nodes", "4", "-o", "path.txt"];
    folder.run(&ring).quietly(0);
    let endless = ["graph", "run", "path.txt", "--endless"];
    folder.run(&endless).refused(&["say --until, --entries or --rounds"]);
    folder
        .run(&[&endless[..], &["--entries", "50"]].concat())
        .quietly(0)
        .says("50 entries, as asked");
}

#[test]
fn who_waits_for_ever_is_named_and_a_broken_algorithm_is_caught() {
    let folder = folder();
    folder.write("apart.txt", "catraca graph\nnodes 3\ncycle 0\n0 0 1\n");
    folder
        .run(&["graph", "run", "apart.txt", "--algorithm", "evolving-ricart-agrawala"])
        .quietly(0)
        .says("nothing changes any more")
        .says("2 waits for ever, since instant 0");
    let mutant = ["graph", "run", "triangle.txt", "--mutant", "answers-while-requesting"];
    folder.write("triangle.txt", "catraca graph\nnodes 2\n0 0 1\n");
    let broken = [&mutant[..], &["--algorithm", "evolving-ricart-agrawala"]].concat();
    folder.run(&broken).quietly(3).says("violation of mutual exclusion");
}

#[test]
fn journeys_are_printed_and_drawn() {
    let folder = folder();
    folder
        .run(&["graph", "journey", "erratum.txt", "v", "u", "--draw", "journey.svg"])
        .quietly(0)
        .says("foremost  v --1--> w --5--> u")
        .says("leaves at 1, arrives at 5, 2 hops, takes 4 instants")
        .says("there is no journey back after the arrival");
    assert!(folder.read("journey.svg").contains(r#"class="journey""#));
    folder
        .run(&["graph", "journey", "erratum.txt", "u", "v", "--from", "2"])
        .quietly(0)
        .says("there is no journey from u to v from instant 2 on");
}

#[test]
fn every_kind_of_graph_can_be_generated_converted_and_looked_at() {
    let folder = folder();
    for kind in ["edge-markovian", "waypoint", "buses", "static", "ring"] {
        folder.run(&["graph", "generate", kind, "--output", "graph.txt"]).quietly(0);
        folder.run(&["graph", "info", "graph.txt"]).quietly(0).says("ordered pairs are connected");
        for format in ["sociopatterns", "csv", "one"] {
            let to = ["--to", format, "--until", "30", "--output", "other.txt"];
            folder.run(&[&["graph", "convert", "graph.txt"][..], &to].concat()).quietly(0);
            let back = folder.run(&["graph", "info", "other.txt"]).quietly(0);
            back.says(&format!("format      {format}"));
        }
        folder.run(&["graph", "draw", "graph.txt", "chart.svg", "--chart"]).quietly(0);
        folder.run(&["graph", "draw", "graph.txt", "strip.svg", "--to", "9"]).quietly(0);
    }
    folder.run(&["graph", "draw", "figure.txt", "strip.png"]).quietly(0);
    assert!(std::fs::read(folder.path("strip.png")).unwrap().starts_with(b"\x89PNG"));
}

/// As SocioPatterns publishes them: seconds since 1970, a sample every 20 seconds.
const SAMPLES: &str = "1262454020 1 2\n1262454040 1 2\n1262454060 2 3\n1262454060 3 3\n";

#[test]
fn times_of_a_file_begin_at_the_first_contact_and_are_told_as_dates() {
    let folder = Folder::new();
    folder.write("samples.dat", SAMPLES);
    let info = ["graph", "info", "samples.dat"];
    folder
        .run(&info)
        .quietly(0)
        .says("passed over 1 contact of a node with itself")
        .says("its samples are 20 s apart; --instant joins those that follow each other");
    folder
        .run(&[&info[..], &["--instant", "20"]].concat())
        .quietly(0)
        .says("instant 0 begins at 1262454020 of the file, 2010-01-02 17:40:20 UTC; an instant is 20 s")
        .says("graph       3 nodes, 2 contacts, instants 0 to 2")
        .says("lengths     1.50 instants on average, 2 instants (40 s) at most");
    let journey = ["graph", "journey", "samples.dat", "1", "3", "--instant", "20"];
    let ran = folder.run(&journey);
    ran.says(
        "leaves at 0 (2010-01-02 17:40:20 UTC), arrives at 2 (2010-01-02 17:41:00 UTC), 2 hops",
    )
    .complained(&["passed over 1 contact of a node with itself"]);
    let seconds = [&journey[..], &["--times", "seconds", "--origin", "1262454000"]].concat();
    folder
        .run(&seconds)
        .says("leaves at 1 (20 s), arrives at 3 (60 s), 2 hops, takes 2 instants (40 s)");
    for (flag, value, why) in [
        ("--times", "hours", "times cannot be told as 'hours': say instants, seconds or dates"),
        ("--origin", "noon", "'noon' is no beginning of time: say 'first'"),
        ("--origin", "-3", "'-3' is no beginning of time"),
        ("--origin", "2000000000", "the file ends without a contact"),
    ] {
        folder.run(&[&info[..], &[flag, value]].concat()).refused(&[why]);
    }
    folder.write("own.txt", FIGURE);
    folder
        .run(&["graph", "info", "own.txt", "--times", "dates"])
        .refused(&["--times: Catraca's own format has instants alone"]);
}

#[test]
fn the_chart_of_a_long_trace_is_small() {
    let folder = Folder::new();
    let line = |at: u32| format!("{at} {} {}\n", at * 31 % 97, 97 + at * 17 % 89);
    folder.write("long.dat", (0..100_000).map(line).collect::<String>());
    folder.run(&["graph", "draw", "long.dat", "chart.svg", "--chart"]).quietly(0);
    let size = folder.read("chart.svg").len();
    assert!(size < 2_000_000, "{size}");
}

#[test]
fn the_propositions_are_searched_and_the_counterexample_drawn() {
    let folder = folder();
    let search = ["graph", "propositions", "--instants", "2", "--strip", "why.svg"];
    folder
        .run(&search)
        .quietly(0)
        .says("all 64 graphs with 3 nodes and 2 instants")
        .says("the smallest counterexample to proposition 1:\n  3 nodes, 2 contacts")
        .says("  0 enters at instant 1");
    assert!(folder.read("why.svg").contains(r#"class="snapshot""#));
    folder.run(&["graph", "propositions", "--random", "50", "--nodes", "5"]).quietly(0);
}

#[test]
fn a_mutant_in_place_of_an_algorithm_breaks_a_proposition_on_a_small_graph() {
    let folder = folder();
    let mutant = |name| ["graph", "propositions", "--instants", "2", "--mutant", name];
    folder
        .run(&mutant("evolving-helary:keeps-token"))
        .quietly(3)
        .says("the smallest counterexample to safety:")
        .says("violation of mutual exclusion");
    let other = folder.run(&mutant("evolving-helary:no-such"));
    assert_eq!((other.code, other.stdout.as_str()), (Some(2), ""), "{}", other.stderr);
    assert!(other.stderr.contains("there is no such mutant; there are "), "{}", other.stderr);
}

#[test]
fn the_catalogue_lists_them() {
    let folder = folder();
    folder.run(&["algorithms"]).quietly(0).says("evolving-ricart-agrawala  permission");
    folder.run(&["algorithms", "evolving-helary"]).quietly(0).says("keeps-token");
}

#[test]
fn files_that_are_no_traces_are_refused_with_the_line() {
    let folder = Folder::new();
    let cases: [(&[u8], &[&str]); 10] = [
        (b"", &["'bad', line 0: the file ends without a contact"]),
        (b"# only a remark\n", &["'bad', line 1: the file ends without a contact"]),
        (
            b"9 CONN a b up\n3 CONN b c up\n",
            &["line 2: the event at 3 comes after one at 9", "in the order of time"],
        ),
        (
            b"catraca graph\n2 a a\n",
            &["line 2: node a is in contact with itself; leave the line out"],
        ),
        (b"1 a b\n-2 a b\n", &["line 2: the time -2 is negative; times begin at 0"]),
        (b"start,end,a,b\n5,3,x,y\n", &["line 2: the contact ends at 3, before it begins at 5"]),
        (
            b"Dear Sir,\nI write\n",
            &["'bad', line 1: 'Dear Sir,' is not a head with the columns start and end"],
        ),
        (
            b"hello world\n",
            &["line 1: 'hello world' is the beginning of no trace; say which format"],
        ),
        (b"1 a b\n\xff\xfe\n", &["line 2: it is not text; this is no trace"]),
        (b"\x7fELF\0\0\0", &["line 1: it is not text; this is no trace"]),
    ];
    for (content, texts) in cases {
        folder.write("bad", content);
        folder.run(&["graph", "info", "bad"]).refused(texts);
    }
    folder
        .run(&["graph", "info", "none"])
        .refused(&["cannot read the trace 'none': there is no such file"]);
    folder.run(&["graph", "info", "."]).refused(&["'.': it is a folder"]);
}

/// Only its beginning is read: a sparse file of a gigabyte without a line, and one of zeros.
#[test]
fn a_gigabyte_that_is_no_trace_is_refused_at_once() {
    let folder = Folder::new();
    for beginning in ["", "1 a b\n"] {
        let mut file = std::fs::File::create(folder.path("huge")).unwrap();
        file.write_all(beginning.as_bytes()).unwrap();
        file.set_len(1 << 30).unwrap();
        drop(file);
        let ran = folder.run(&["graph", "info", "huge"]);
        ran.refused(&["this is no trace", if beginning.is_empty() { "line 1" } else { "line 2" }]);
    }
}

#[test]
fn wrong_questions_are_refused_with_the_remedy() {
    let folder = folder();
    let cases: [(&str, &[&str]); 13] = [
        (
            "check erratum.txt --requesters w,q",
            &["--requesters: there is no node 'q' in 'erratum.txt'; its 3 nodes are w, u, v"],
        ),
        ("check erratum.txt --token 7", &["--token: there is no node '7'"]),
        (
            "check erratum.txt --conditions c2",
            &[
                "'erratum.txt', line 4: the trace ends with instant 5, and C2 is about 'for ever'",
                "--repeat",
            ],
        ),
        (
            "check erratum.txt --conditions c5",
            &["--conditions: there is no condition 'c5': say c1"],
        ),
        ("check erratum.txt --format xml", &["--format: there is no format 'xml'"]),
        ("check erratum.txt --instant 0", &["--instant: '0' is no length of an instant"]),
        ("journey erratum.txt w w", &["A and B are the same node; name two"]),
        ("journey erratum.txt w x", &["B: there is no node 'x'"]),
        (
            "run erratum.txt --algorithm lamport",
            &["there is no algorithm for evolving graphs 'lamport'"],
        ),
        ("run erratum.txt --request w", &["--request: 'w' is no request: say NODE@T"]),
        (
            "convert erratum.txt --repeat --to csv",
            &["--to: the format 'csv' cannot say that a graph repeats for ever"],
        ),
        ("generate edge-markovian --birth 2", &["--birth: '2' is no chance"]),
        (
            "propositions --nodes 6 --instants 9",
            &["too many graphs with 6 nodes and 9 instants", "--random"],
        ),
    ];
    for (line, texts) in cases {
        let words: Vec<&str> = ["graph"].into_iter().chain(line.split(' ')).collect();
        folder.run(&words).refused(texts);
    }
}
