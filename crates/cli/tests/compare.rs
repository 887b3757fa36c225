//! `catraca compare`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use catraca_algorithms::registry::ENTRIES;
use serde_json::Value;
use support::Folder;

fn algorithms() -> Vec<&'static str> {
    ENTRIES.iter().map(|entry| entry.name).collect()
}

/// The rows of the first table: what is between the rule and the legend, without blank lines.
fn rows(stdout: &str) -> Vec<Vec<&str>> {
    let body = stdout.lines().skip_while(|line| !line.starts_with("---")).skip(1);
    let rows = body.take_while(|line| !line.starts_with("msgs:")).filter(|line| !line.is_empty());
    rows.map(|line| line.split_whitespace().collect()).collect()
}

/// A figure as the table shows it.
fn shown(value: &Value) -> String {
    match value.as_f64() {
        None => "-".to_string(),
        Some(value) if value >= 1000.0 => format!("{value:.0}"),
        Some(value) if value >= 100.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

#[test]
fn without_arguments_all_algorithms_are_compared_and_nothing_is_complained_about() {
    let ran = Folder::new().run(&["compare"]).quietly(0);
    let named: Vec<&str> = rows(&ran.stdout).iter().map(|row| row[2]).collect();
    assert_eq!(named, algorithms().repeat(6));
    let widest = ran.stdout.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 120, "{widest} columns");
}

#[test]
fn the_groups_of_a_load_and_a_size_are_parted_by_blank_lines() {
    let arguments = ["compare", "--algorithms", "lamport,raymond", "--nodes", "2,4"];
    let ran = Folder::new().run(&[&arguments[..], &["--entries", "20"]].concat()).quietly(0);
    let body = ran.stdout.split_once("---\n").unwrap().1.split_once("\n\nmsgs:").unwrap().0;
    let sizes: Vec<usize> = body.split("\n\n").map(|group| group.lines().count()).collect();
    assert_eq!(sizes, [2, 2, 2, 2]);
}

#[test]
fn csv_json_and_table_show_the_same_figures() {
    let folder = Folder::new();
    let flags = ["--nodes", "4,9", "--entries", "200", "--csv", "rows.csv", "--json", "rows.json"];
    let ran = folder.run(&[&["compare"], &flags[..]].concat()).quietly(0);
    let (csv, json) = (folder.read("rows.csv"), folder.json("rows.json"));
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let (table, json) = (rows(&ran.stdout), json.as_array().unwrap().clone());
    let rows_wanted = 4 * ENTRIES.len();
    assert_eq!(
        (table.len(), json.len(), lines.clone().count()),
        (rows_wanted, rows_wanted, rows_wanted)
    );
    for ((cells, record), line) in table.iter().zip(&json).zip(lines) {
        assert_eq!(line.len(), head.len());
        let field = |name: &str| line[head.iter().position(|column| *column == name).unwrap()];
        for name in ["algorithm", "load"] {
            assert_eq!(record[name], field(name));
        }
        for name in ["nodes", "messages_per_entry", "delay", "response_mean", "longest_wait"] {
            assert_eq!(field(name).parse().ok(), record[name].as_f64(), "{name} of {line:?}");
        }
        assert_eq!(cells[..3], [field("load"), field("nodes"), field("algorithm")]);
        assert_eq!(cells[3], shown(&record["messages_per_entry"]));
        // A blank S2 leaves the row without a cell, so the rest is counted from the end.
        let names = ["delay", "response_mean", "response_p99", "longest_wait"];
        for (name, cell) in names.iter().zip(&cells[cells.len() - 7..]) {
            assert_eq!(*cell, shown(&record[*name]), "{name} of {line:?}");
        }
    }
}

#[test]
fn the_command_of_every_row_reproduces_its_figures() {
    let folder = Folder::new();
    let flags = ["--nodes", "4", "--entries", "100", "--hold", "uniform:0.5..1.5", "--seed", "7"];
    for load in [["--load", "low,high"], ["--rate", "0.25"]] {
        folder.run(&[&["compare", "--json", "rows.json"], &flags[..], &load].concat()).quietly(0);
        for row in folder.json("rows.json").as_array().unwrap() {
            let command = row["command"].as_str().unwrap();
            folder.shell(&format!("{command} --json run.json")).quietly(0);
            for (name, value) in folder.json("run.json").as_object().unwrap() {
                assert_eq!(&row[name], value, "{name} of {command}");
            }
        }
    }
}

#[test]
fn the_kinds_of_messages_have_a_table_of_their_own() {
    let flags = ["--algorithms", "lamport", "--nodes", "4", "--load", "low", "--kinds"];
    let ran = Folder::new().run(&[&["compare"], &flags[..]].concat()).quietly(0);
    ran.says("low   4  lamport    request 3.00, reply 3.00, release 3.00");
}

/// The cells of a column, by its name.
fn column(stdout: &str, name: &str) -> Vec<f64> {
    let head = stdout.lines().find(|line| line.starts_with("load")).unwrap();
    // Counted from the end, because a cell of S2 may be blank.
    let from_end = head.split_whitespace().rev().position(|word| word == name).unwrap();
    rows(stdout).iter().map(|row| row[row.len() - 1 - from_end].parse().unwrap()).collect()
}

#[test]
fn sets_have_columns_of_how_many_are_inside_and_how_many_could_be() {
    let folder = Folder::new();
    let flags = ["--nodes", "6", "--entries", "200", "--resources", "8", "--claim", "1..2"];
    let more = ["--hold", "20", "--load", "high", "--json", "rows.json", "--csv", "rows.csv"];
    let ran = folder.run(&[&["compare"], &flags[..], &more].concat()).quietly(0);
    let (inside, possible) = (column(&ran.stdout, "inside"), column(&ran.stdout, "possible"));
    // The algorithm for sets, one lock for everything, single locks in order.
    assert_eq!(inside.len(), 3);
    assert!(inside[0] > 1.0 && inside[1] <= 1.0 && inside[2] > 1.0, "{inside:?}");
    for (inside, possible) in inside.iter().zip(&possible) {
        assert!(inside <= possible && 2.0 < *possible, "{inside} of {possible}");
    }
    for (row, inside) in folder.json("rows.json").as_array().unwrap().iter().zip(&inside) {
        assert!((row["concurrency"].as_f64().unwrap() - inside).abs() < 0.01);
        folder.shell(row["command"].as_str().unwrap()).quietly(0).says("possible");
    }
    assert!(folder.read("rows.csv").contains(",concurrency,concurrency_possible,"));
    let plain = folder.run(&["compare", "--algorithms", "lamport", "--nodes", "4"]).quietly(0);
    assert!(!plain.stdout.contains("possible"));
}

#[test]
fn clusters_have_a_column_of_messages_between_them() {
    let folder = Folder::new();
    let flags = ["--algorithms", "ricart-agrawala,raymond", "--clusters", "4x8", "--entries", "64"];
    let more = ["--wan", "50", "--lan", "1", "--locality", "0.9", "--max-preempt", "3"];
    let ran = folder.run(&[&["compare", "--json", "rows.json"], &flags[..], &more].concat());
    let ran = ran.quietly(0).says("constant:1 within clusters, constant:50 between");
    // 24 of the 31 others are in other clusters.
    assert_eq!(column(&ran.stdout, "between")[0], 48.0);
    let nodes: Vec<&str> = rows(&ran.stdout).iter().map(|row| row[1]).collect();
    assert_eq!(nodes, ["32"; 4]);
    for row in folder.json("rows.json").as_array().unwrap() {
        let command = row["command"].as_str().unwrap();
        folder.shell(&format!("{command} --json run.json")).quietly(0).says("clusters    ");
        assert_eq!(folder.json("run.json")["messages_between"], row["messages_between"]);
    }
}

#[test]
fn plots_are_written_in_the_format_that_their_name_says() {
    let folder = Folder::new();
    let flags = ["compare", "--algorithms", "lamport", "--nodes", "2,4", "--entries", "20"];
    for name in ["rows.svg", "rows.png"] {
        folder.run(&[&flags[..], &["--plot", name]].concat()).quietly(0);
    }
    assert!(folder.read("rows.svg").starts_with("<svg"));
    assert!(std::fs::read(folder.path("rows.png")).unwrap().starts_with(b"\x89PNG\r\n\x1a\n"));
}

#[test]
fn a_load_that_nobody_can_serve_is_given_up_and_says_so() {
    let flags = ["--algorithms", "lamport,raymond", "--nodes", "4", "--rate", "1e6"];
    let ran = Folder::new().run(&[&["compare", "--entries", "100"], &flags[..]].concat());
    let ran = ran.quietly(4).says("gave up: more than a million requests wait");
    assert!(!ran.stdout.contains("fewest messages"), "{}", ran.stdout);
}

#[test]
fn theory_is_shown_only_where_it_covers_the_load() {
    let folder = Folder::new();
    let flags = ["--algorithms", "naimi-trehel", "--clusters", "2x2", "--entries", "50"];
    let theory = |more: &[&str]| {
        let ran = folder.run(&[&["compare", "--load", "low"], &flags[..], more].concat());
        rows(&ran.quietly(0).stdout)[0][4].to_string()
    };
    assert_ne!(theory(&[]), "-");
    assert_eq!(theory(&["--locality", "0.9"]), "-");
}
