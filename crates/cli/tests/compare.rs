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
    assert_eq!(named, algorithms().repeat(9));
    let widest = ran.stdout.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 120, "{widest} columns");
}

#[test]
fn the_groups_of_a_load_and_a_size_are_parted_by_blank_lines() {
    let arguments = ["compare", "--algorithms", "lamport,raymond", "--nodes", "2,4"];
    let ran = Folder::new().run(&[&arguments[..], &["--entries", "20"]].concat()).quietly(0);
    let body = ran.stdout.split_once("---\n").unwrap().1.split_once("\n\nmsgs:").unwrap().0;
    let sizes: Vec<usize> = body.split("\n\n").map(|group| group.lines().count()).collect();
    assert_eq!(sizes, [2; 6]);
}

/// A figure over seeds as the table shows it: its mean, and what follows a ±.
fn mean_shown(figure: &Value) -> String {
    shown(&figure["mean"])
}

#[test]
fn csv_json_and_table_show_the_same_figures() {
    let folder = Folder::new();
    let flags = ["--nodes", "4,9", "--entries", "200", "--seeds", "3", "--delay", "exp:1"];
    let files = ["--csv", "runs.csv", "--json", "rows.json"];
    let ran = folder.run(&[&["compare"], &flags[..], &files].concat()).quietly(0);
    let ran = ran.says("seeds 1 to 3");
    let (csv, json) = (folder.read("runs.csv"), folder.json("rows.json"));
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let rows_wanted = 6 * ENTRIES.len();
    let json = json["rows"].as_array().unwrap().clone();
    let table = rows(&ran.stdout);
    assert_eq!((table.len(), json.len()), (rows_wanted, rows_wanted));
    for (cells, record) in table.iter().zip(&json) {
        let plain: Vec<&str> = cells[..3].to_vec();
        let nodes = record["nodes"].to_string();
        assert_eq!(
            plain,
            [record["load"].as_str().unwrap(), &nodes, record["algorithm"].as_str().unwrap()]
        );
        let mean = cells[3].split('±').next().unwrap();
        assert_eq!(mean, mean_shown(&record["figures"]["messages_per_entry"]));
        for (repeat, run) in record["runs"].as_array().unwrap().iter().enumerate() {
            let line = lines.next().unwrap();
            let field = |name: &str| line[head.iter().position(|one| *one == name).unwrap()];
            assert_eq!(
                (record["algorithm"].as_str(), record["load"].as_str()),
                (Some(field("algorithm")), Some(field("load")))
            );
            assert_eq!(field("seed"), (repeat + 1).to_string());
            assert_eq!(run["seed"].to_string(), field("seed"));
            for name in ["messages_per_entry", "delay", "response_mean", "longest_wait"] {
                // A reader of JSON may be off by the last digit.
                let (csv, json): (Option<f64>, _) = (field(name).parse().ok(), run[name].as_f64());
                let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs();
                let is_same = csv.zip(json).map_or(csv == json, |(csv, json)| close(csv, json));
                assert!(is_same, "{name} of {line:?}: {json:?}");
            }
        }
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn the_command_of_every_run_repeats_its_figures() {
    let folder = Folder::new();
    let flags = ["--algorithms", "lamport,maekawa,robust-k", "--nodes", "4", "--entries", "50"];
    let more = ["--hold", "uniform:0.5..1.5", "--seed", "7", "--seeds", "2"];
    for load in [&["--load", "low,medium,high"][..], &["--rate", "0.25"], &["--think", "exp:9"]] {
        let arguments = [&["compare", "--json", "rows.json"], &flags[..], &more, load].concat();
        folder.run(&arguments).quietly(0);
        let document = folder.json("rows.json");
        for row in document["rows"].as_array().unwrap() {
            for repeated in row["runs"].as_array().unwrap() {
                let command = repeated["command"].as_str().unwrap();
                folder.shell(&format!("{command} --json run.json")).quietly(0);
                let run = folder.json("run.json");
                for (name, value) in repeated.as_object().unwrap() {
                    assert_eq!(&run[name], value, "{name} of {command}");
                }
            }
        }
    }
}

#[test]
fn with_k_those_that_let_several_in_are_compared() {
    let folder = Folder::new();
    let flags = ["--k", "3", "--nodes", "8", "--load", "high", "--entries", "200"];
    let ran = folder.run(&[&["compare", "--json", "rows.json"], &flags[..]].concat()).quietly(0);
    let named: Vec<&str> = rows(&ran.stdout).iter().map(|row| row[2]).collect();
    assert_eq!(named, ["raymond-k", "robust-k"]);
    let k = |ran: &str| rows(ran).iter().map(|row| row[3].to_string()).collect::<Vec<_>>();
    assert_eq!(k(&ran.stdout), ["3", "3"]);
    assert_eq!(folder.json("rows.json")["rows"][0]["k"], 3);
    // One that lets nobody else in is compared too, if it is named.
    let both = ["--algorithms", "raymond-k,lamport"];
    let ran = folder.run(&[&["compare"], &flags[..], &both].concat()).quietly(0);
    assert_eq!(k(&ran.stdout), ["3", "1"]);
}

#[test]
fn a_think_time_is_a_load_of_its_own() {
    let folder = Folder::new();
    let flags = ["--algorithms", "lamport", "--nodes", "4", "--entries", "100"];
    let run = |more: &[&str]| folder.run(&[&["compare"], &flags[..], more].concat());
    run(&["--think", "exp:5"]).quietly(0).says("think exp:5  4  lamport");
    let both = run(&["--think", "exp:5", "--load", "low"]);
    assert_eq!(both.code, Some(2));
    assert!(both.stderr.contains("cannot be used with '--load"), "{}", both.stderr);
    run(&["--think", "exp:5", "--rate", "1"]).refused(&["leave one of them out"]);
}

#[test]
fn what_the_seeds_do_not_decide_is_said() {
    let flags = ["--algorithms", "lamport,lamport", "--nodes", "8", "--load", "medium"];
    // Nobody is better than itself.
    let ran =
        Folder::new().run(&[&["compare"], &flags[..], &["--entries", "300"]].concat()).quietly(0);
    ran.says("fewest messages    all (");
    let one = ["--entries", "300", "--seeds", "1"];
    let ran = Folder::new().run(&[&["compare"], &flags[..], &one].concat()).quietly(0);
    ran.says("(one seed, so no interval)");
    for wrong in ["0", "1001", "x"] {
        let ran = Folder::new().run(&["compare", "--seeds", wrong]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("--seeds"), "{}", ran.stderr);
    }
}

#[test]
fn a_run_that_takes_too_many_events_is_given_up_with_what_to_change() {
    let flags = ["compare", "--algorithms", "lamport", "--nodes", "4", "--events", "1000"];
    let ran = Folder::new().run(&flags).quietly(4);
    ran.says("as many events as it may; allow it more with --events").says("--events 1000");
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
    for (row, inside) in folder.json("rows.json")["rows"].as_array().unwrap().iter().zip(&inside) {
        let measured = row["figures"]["concurrency"]["mean"].as_f64().unwrap();
        assert!((measured - inside).abs() < 0.01);
        folder.shell(row["runs"][0]["command"].as_str().unwrap()).quietly(0).says("possible");
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
    assert_eq!(nodes, ["32"; 6]);
    for row in folder.json("rows.json")["rows"].as_array().unwrap() {
        let run = &row["runs"][1];
        let command = run["command"].as_str().unwrap();
        folder.shell(&format!("{command} --json run.json")).quietly(0).says("clusters    ");
        assert_eq!(folder.json("run.json")["messages_between"], run["messages_between"]);
    }
}

#[test]
fn plots_are_written_in_the_format_that_their_name_says() {
    let folder = Folder::new();
    let flags = ["compare", "--algorithms", "lamport", "--nodes", "2,4", "--entries", "20"];
    for name in ["rows.svg", "rows.png", "rows.pdf"] {
        folder.run(&[&flags[..], &["--plot", name]].concat()).quietly(0);
    }
    let picture = folder.read("rows.svg");
    assert!(picture.starts_with("<svg"));
    // Once for each load and figure.
    let note = ">means of seeds 1 to 5; bars: Student's interval of 95 %<";
    assert!(picture.matches(note).count() >= 2, "{picture}");
    assert!(std::fs::read(folder.path("rows.png")).unwrap().starts_with(b"\x89PNG\r\n\x1a\n"));
    assert!(std::fs::read(folder.path("rows.pdf")).unwrap().starts_with(b"%PDF-1.7\n"));
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
