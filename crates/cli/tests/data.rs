//! What is written for other programs: documents that fit their schemas, and tables that others can read.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use serde_json::{Value, json};
use support::{Folder, schema};

/// `docs/DATA.md` shows how to read what these commands write; `documents` runs what it shows.
const WRITTEN: [&str; 4] = [
    "sim --algorithm maekawa --nodes 4 --entries 50 --delay exp:1 --json run.json",
    "sim --algorithm raymond --members 3 --clients 5 --entries 50 --tries 0.3 --json members.json",
    "compare --algorithms lamport,raymond,naimi-trehel --nodes 4,8 --entries 100 --hold exp:1 \
     --csv runs.csv --json rows.json",
    "experiment mine.toml --out figures",
];

const MINE: &str = "algorithm = 'lamport'\n[workload]\nrounds = 3\n[network]\ndelay = 'exp:1'\n\
     [experiment]\ntitle = 'Mine'\npaper = 'S2'\nquestion = 'How many?'\nunit = 'a minute'\n\
     columns = ['messages_per_entry', 'response_mean', 'messages_within']\n\
     formulas = ['3(N - 1)']\nvary.nodes = [2, 4]\n\
     [[experiment.chart]]\nname = 'messages'\ntitle = 'm'\nx = 'nodes'\ny = 'messages_per_entry'\n\
     [[experiment.claim]]\nsection = '8'\nsays = 'three'\nfigure = 'messages_per_entry'\n\
     is = '3(N - 1)'\nverdict = 'holds'\nwhy = 'So it is.'\n";

/// A folder with all of it.
fn written() -> Folder {
    let folder = Folder::new();
    folder.write("mine.toml", MINE);
    for command in WRITTEN {
        folder.run(&command.split_whitespace().collect::<Vec<_>>()).quietly(0);
    }
    folder
}

#[track_caller]
fn fits(schema: &str, document: &Value) {
    assert_eq!(schema::wrong(schema, document), [""; 0], "{schema}");
}

#[test]
fn every_document_fits_its_schema_and_says_what_it_is() {
    let folder = written();
    for (file, schema, format) in [
        ("run.json", "run.schema.json", "catraca-run-1"),
        ("members.json", "members.schema.json", "catraca-members-1"),
        ("rows.json", "comparison.schema.json", "catraca-comparison-1"),
        ("figures/mine.json", "experiment.schema.json", "catraca-experiment-1"),
    ] {
        let document = folder.json(file);
        fits(schema, &document);
        assert_eq!(document["format"], format);
        assert_eq!(document["version"], env!("CARGO_PKG_VERSION"));
        let command = document["command"].as_str().unwrap();
        assert!(command.starts_with("catraca "), "{command}");
    }
    let run = folder.json("run.json");
    assert_eq!(
        (&run["algorithm"], &run["nodes"], &run["seed"]),
        (&json!("maekawa"), &json!(4), &json!(1))
    );
    assert!(run["by_kind"]["request"].as_u64().unwrap() > 0);
}

#[test]
fn a_run_that_breaks_an_invariant_or_gives_up_fits_the_schema_too() {
    let folder = Folder::new();
    let broken = "sim --algorithm coordinator --nodes 5 --fault 'crash 0 at 5' --json run.json";
    folder.shell(&format!("catraca {broken}")).quietly(3);
    fits("run.schema.json", &folder.json("run.json"));
    assert!(folder.json("run.json")["violation"]["what"].is_string());
    let bounded = "sim --algorithm lamport --nodes 5 --events 100 --json run.json";
    folder.shell(&format!("catraca {bounded}")).quietly(4);
    fits("run.schema.json", &folder.json("run.json"));
    assert_eq!(folder.json("run.json")["end"], "event-bound");
}

#[test]
fn runs_on_a_graph_say_what_their_numbers_mean_and_how_to_make_them_again() {
    let folder = Folder::new();
    folder.write("samples.dat", "1262454020 1 2\n1262454060 2 3\n1262454100 1 2\n");
    let run = "graph run samples.dat --instant 20 --requesters 3";
    folder.shell(&format!("catraca {run} --labels l.svg --json=run.json")).quietly(0);
    let document = folder.json("run.json");
    fits("graph-run.schema.json", &document);
    assert_eq!(document["format"], "catraca-graph-run-1");
    assert_eq!(document["command"], format!("catraca {run}"));
    assert_eq!((&document["names"], &document["last"]), (&json!(["1", "2", "3"]), &json!(4)));
    let clock = json!({
        "origin": 1262454020.0, "origin_date": "2010-01-02 17:40:20 UTC", "instant": 20.0
    });
    assert_eq!(document["clock"], clock);
    assert_eq!(document["runs"].as_array().unwrap().len(), 2);
    // In the own format there are no times, and a request may wait for ever.
    folder.write("own.txt", "catraca graph\nnodes 3\ncycle 0\n0 0 1\n");
    folder.run(&["graph", "run", "own.txt", "--json", "run.json"]).quietly(0);
    let document = folder.json("run.json");
    fits("graph-run.schema.json", &document);
    assert_eq!((&document["clock"], &document["cycle"]), (&Value::Null, &json!(0)));
}

#[test]
fn the_check_of_schemas_finds_what_is_wrong() {
    let folder = Folder::new();
    folder
        .run(&["sim", "--algorithm", "lamport", "--entries", "9", "--json", "run.json"])
        .quietly(0);
    let right = folder.json("run.json");
    let wrong = |change: &dyn Fn(&mut Value)| {
        let mut document = right.clone();
        change(&mut document);
        schema::wrong("run.schema.json", &document)
    };
    assert_eq!(wrong(&|_| {}), [""; 0]);
    type Change<'a> = (&'a dyn Fn(&mut Value), &'a str);
    let changes: [Change<'_>; 6] = [
        (&|run| run["format"] = json!("catraca-run-0"), "$.format: must be \"catraca-run-1\""),
        (&|run| run["nodes"] = json!(-1), "$.nodes: must be at least 0"),
        (&|run| run["end"] = json!("never"), "$.end: must be one of"),
        (&|run| run["by_kind"] = json!([["request", 3]]), "$.by_kind: must be of type \"object\""),
        (&|run| run["more"] = json!(1), "$: must not have 'more'"),
        (&|run| drop(run.as_object_mut().unwrap().remove("delay")), "$: must have \"delay\""),
    ];
    for (change, what) in changes {
        let found = wrong(change);
        assert!(found.iter().any(|one| one.starts_with(what)), "{what}: {found:?}");
    }
}

#[test]
fn the_command_of_a_document_makes_the_same_document() {
    let folder = written();
    for (file, flag) in [("run.json", "--json again.json"), ("rows.json", "--json again.json")] {
        let document = folder.json(file);
        let command = document["command"].as_str().unwrap();
        folder.shell(&format!("{command} {flag}")).quietly(0);
        assert_eq!(folder.json("again.json"), document, "{command}");
    }
}

#[test]
fn the_page_names_the_commands_whose_files_it_reads() {
    let page = include_str!("../../../docs/DATA.md").replace("\\\n    ", "");
    for command in WRITTEN {
        assert!(page.contains(&format!("\n$ catraca {command}\n")), "{command}");
    }
}
