//! `catraca experiment`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::sync::atomic::AtomicBool;

use support::Folder;
use support::browser::Browser;

/// An experiment of the user's, with one more line.
fn mine(more: &str) -> String {
    format!(
        "algorithm = 'lamport'\n[workload]\nrounds = 2\n[experiment]\ntitle = 'Mine'\n\
         paper = 'S2'\nquestion = 'How many?'\ncolumns = ['messages_per_entry', 'delay']\n\
         formulas = ['3(N - 1)']\nvary.nodes = [2, 4]\n{more}\n"
    )
}

const CHART: &str = "[[experiment.chart]]\nname = 'time'\ntitle = 'Over time'\nover_time = 2\n\
                     y = ['messages.request', 'entries']";

fn claim(verdict: &str) -> String {
    format!(
        "[[experiment.claim]]\nsection = '8'\nsays = 'three per node'\n\
         figure = 'messages_per_entry'\nis = '3(N - 1)'\nverdict = '{verdict}'\nwhy = 'So it is.'"
    )
}

#[test]
fn the_list_names_every_experiment_and_where_it_comes_from() {
    let ran = Folder::new().run(&["experiment", "list"]).quietly(0);
    for name in catraca_lab::names() {
        assert!(ran.stdout.lines().any(|line| line.starts_with(&format!("{name} "))), "{name}");
    }
    let widest = ran.stdout.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 120, "{widest} columns");
}

#[test]
fn an_embedded_experiment_runs_anywhere_and_writes_nothing_without_being_asked() {
    let folder = Folder::new();
    let ran = folder.run(&["experiment", "schedule"]).quietly(0);
    ran.says("entries  messages  longest").says("1 picture with --out DIR: schedule.svg");
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn tables_and_pictures_go_into_the_folder() {
    let folder = Folder::new();
    folder.write("mine.toml", mine(CHART));
    folder
        .run(&["experiment", "mine.toml", "--out", "new/figures"])
        .quietly(0)
        .says("Means of 5 seeds (1 to 5)")
        .says("mine-time.svg");
    assert_eq!(folder.names(), ["mine.toml", "new"]);
    let csv = folder.read("new/figures/mine.csv");
    let expected = "nodes,first_seed,seeds,messages_per_entry,messages_per_entry.ci95,delay,delay.ci95,\
                    3(N - 1)\n2,1,5,3,0,1,0,3\n4,1,5,9,0,1,0,9\n";
    assert_eq!(csv, expected);
    let picture = folder.read("new/figures/mine-time.svg");
    assert!(picture.contains(">4, entries</text>"));
    assert!(
        picture.contains(">means of seeds 1 to 5; bars: Student's interval of 95 %<"),
        "{picture}"
    );
}

#[test]
fn every_run_of_an_experiment_is_written_with_its_seed_and_the_command_that_repeats_it() {
    let folder = Folder::new();
    folder.write("mine.toml", mine(""));
    folder.run(&["experiment", "mine.toml", "--out", ".", "--seeds", "2"]).quietly(0);
    let csv = folder.read("mine-runs.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "nodes,seed,messages_per_entry,delay,command");
    let command = "catraca sim --algorithm lamport --nodes 2 --rounds 2";
    assert_eq!(lines[1..3], [format!("2,1,3,1,{command}"), format!("2,2,3,1,{command} --seed 2")]);
    assert_eq!(lines.len(), 1 + 4);
}

#[test]
fn pictures_are_written_as_pdf_too_if_that_is_asked_for() {
    let folder = Folder::new();
    folder.write("mine.toml", mine(CHART));
    folder
        .run(&["experiment", "mine.toml", "--out", ".", "--pdf"])
        .quietly(0)
        .says("mine-time.pdf");
    assert!(std::fs::read(folder.path("mine-time.pdf")).unwrap().starts_with(b"%PDF-"));
    let without = folder.run(&["experiment", "mine.toml", "--pdf"]);
    assert_eq!(without.code, Some(2));
    assert!(without.stderr.contains("--out <DIR>"), "{}", without.stderr);
}

#[test]
fn one_seed_is_said_to_leave_figures_uncertain() {
    let folder = Folder::new();
    folder.write("mine.toml", mine(""));
    let ran = folder.run(&["experiment", "mine.toml", "--seeds", "1"]).quietly(0);
    ran.says("One seed, so no interval says how certain these figures are.");
    // What one seed says of a claim is said to be of one seed, and contradicts nothing.
    folder.write("wrong.toml", mine(&claim("wrong")));
    let ran = folder.run(&["experiment", "wrong.toml", "--seeds", "1", "--out", "."]).quietly(0);
    ran.says("holds with one seed: three per node")
        .says("one seed is not certain; on record is 'wrong'");
    let claims = &folder.json("wrong.json")["claims"];
    assert_eq!((&claims[0]["found"], &claims[0]["seeds"]), (&"holds".into(), &1.into()));
}

/// As 'catraca experiment all' writes it, of one small experiment.
fn report() -> String {
    let text = mine(&format!("{CHART}\n{}", claim("wrong")));
    let experiment = catraca_lab::read_file("mine.toml".as_ref(), &text).unwrap();
    let results = experiment.measure(1, &AtomicBool::new(false), |_| {}).unwrap().unwrap();
    let drawn = experiment.pictures(&results).unwrap();
    catraca_lab::page(&[(experiment, results, drawn)])
}

/// The least contrast of what is read on the page, with what it is of.
const CONTRAST: &str = "
    const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = (colour) => {
        const [r, g, b] = parts(colour).slice(0, 3).map(it => it / 255)
            .map(it => it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const paper = (element) => {
        for (let it = element; it; it = it.parentElement) {
            const colour = getComputedStyle(it).backgroundColor;
            if ((parts(colour)[3] ?? 1) > 0) return colour;
        }
        return 'rgb(255, 255, 255)';
    };
    const texts = [...document.querySelectorAll('body *')].filter(it => !it.closest('svg, style') &&
        [...it.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()));
    const seen = texts.map((it) => {
        const [one, other] = [light(getComputedStyle(it).color), light(paper(it))].sort((a, b) => b - a);
        return [(one + 0.05) / (other + 0.05), it.tagName + '.' + it.className];
    });
    return seen.sort((a, b) => a[0] - b[0])[0]";

#[test]
fn the_report_can_be_read_on_a_phone_and_a_wide_screen_in_light_and_dark_and_by_keyboard() {
    let folder = Folder::new();
    folder.write("report.html", report());
    let browser = Browser::start();
    for (width, dark) in [(400, false), (1400, true)] {
        browser.resize(width, 900);
        browser.dark(dark);
        browser.open(&folder.path("report.html"));
        let wide = browser.run_script("return document.documentElement.scrollWidth");
        assert!(wide.as_u64().unwrap() <= u64::from(width), "{wide} at {width}");
        let least = browser.run_script(CONTRAST);
        assert!(least[0].as_f64().unwrap() >= 4.5, "{least} at {width}");
        support::keep_picture(&browser, &format!("report-{width}"));
    }
    // What can be scrolled has the focus in turn, and a name.
    let unnamed = "return [...document.querySelectorAll('[tabindex]')]
        .filter(it => !it.getAttribute('aria-label') || !it.getAttribute('role')).length";
    assert_eq!(browser.run_script(unnamed), 0);
    assert_eq!(browser.run_script("return document.querySelectorAll('figure svg').length"), 1);
    let verdict = "return document.querySelector('.verdict').textContent";
    assert_eq!(browser.run_script(verdict), "holds");
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn a_finding_against_the_record_is_told_and_has_its_exit_code() {
    let folder = Folder::new();
    folder.write("holds.toml", mine(&claim("holds")));
    folder.write("wrong.toml", mine(&claim("wrong")));
    folder.run(&["experiment", "holds.toml"]).quietly(0).says("holds: three per node (S2, 8)");
    let ran = folder.run(&["experiment", "./wrong.toml", "--out", "."]).quietly(3);
    ran.says("2: 3.00 (3.00); 4: 9.00 (9.00)").says("ON RECORD IS 'wrong'");
    assert!(
        folder.names().contains(&"wrong.csv".to_string()),
        "the files are written all the same"
    );
}

#[test]
fn a_verdict_that_seeds_leave_open_contradicts_nothing() {
    let folder = Folder::new();
    folder.write("open.toml", mine(&claim("open")));
    let ran = folder.run(&["experiment", "open.toml"]).quietly(0);
    ran.says("holds: three per node").says("decided by these seeds; on record is 'open'");
    // Two seeds of a random delay say little of how long a hand-over takes.
    let random = mine(&claim("holds"))
        .replace("[workload]", "[network]\ndelay = 'exp:1'\n[workload]")
        .replace(
            "figure = 'messages_per_entry'\nis = '3(N - 1)'",
            "figure = 'delay'\nat_least = 1",
        );
    folder.write("random.toml", random);
    let ran = folder.run(&["experiment", "random.toml", "--seeds", "2"]).quietly(0);
    ran.says("open: three per node").says("open with these seeds; on record is 'holds'");
}

#[test]
fn a_run_that_breaks_what_it_should_not_is_told_with_its_command() {
    let folder = Folder::new();
    let broken = mine("breaks = 'nobody waits for ever'");
    folder.write("broken.toml", broken.replace("vary.nodes = [2, 4]", ""));
    let ran = folder.run(&["experiment", "broken.toml"]).quietly(3);
    ran.says("'nobody waits for ever' did not break; see catraca sim --algorithm lamport");
}

#[test]
fn the_base_scenario_of_an_experiment_still_runs_alone() {
    let folder = Folder::new();
    folder.write("mine.toml", mine(CHART));
    folder.run(&["sim", "mine.toml"]).quietly(0).says("lamport");
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let folder = Folder::new();
    let refused = |arguments: &[&str], texts: &[&str]| {
        folder.run(&[&["experiment"], arguments].concat()).refused(texts);
    };
    refused(&["shedule"], &["there is no experiment 'shedule'", "Did you mean 'schedule'?"]);
    refused(&["list", "--out", "x"], &["leave out --out"]);
    refused(&["none.toml"], &["cannot read the experiment 'none.toml': there is no such file"]);
    folder.write("run.toml", "algorithm = 'lamport'\n");
    refused(&["run.toml"], &["run.toml: [experiment]", "run it with 'catraca sim'"]);
    for (line, texts) in [
        ("tilte = 'x'", &["experiment: there is no key 'tilte'", "Did you mean 'title'?"][..]),
        ("[[experiment.chart]]\nname = 'a/b'\ntitle = ''", &["letters, digits"]),
        ("[[experiment.chart]]\nname = 'a'\ntitle = ''\ny = 'delay'\nx = 'node'", &["'nodes'?"]),
        ("[[experiment.chart]]\nname = 'a'\ntitle = ''\ny = 'delays'\nx = 'nodes'", &["'delay'?"]),
        (
            "[[experiment.chart]]\nname = 'a'\ntitle = ''\ny = 'entries'\nover_time = 0",
            &["more than 0"],
        ),
        (
            "[[experiment.chart]]\nname = 'a'\ntitle = ''\ny = 'delay'\nx = 'nodes'\n\
             [[experiment.chart.threshold]]\nlabel = 'here'",
            &["experiment.chart.threshold", "x = 25 or y = 0.5"],
        ),
        (
            "[[experiment.claim]]\nsection = ''\nsays = ''\nfigure = 'delay'",
            &["is, about, at_least"],
        ),
        ("vary.nodse = [1]", &["there is no key 'nodse'", "Did you mean 'nodes'?"]),
        ("vary.algorithm = ['lampport']", &["there is no algorithm 'lampport'", "'lamport'?"]),
    ] {
        folder.write("bad.toml", mine(line));
        refused(&["bad.toml"], &[&["bad.toml: "], texts].concat());
    }
    folder.write("bad.toml", mine("").replace("'3(N - 1)'", "'3 N'"));
    refused(&["bad.toml"], &["there is no formula '3 N'", "2(N - 1)"]);
    folder.write("bad.toml", mine("").replace("'delay'", "'messages.token'"));
    refused(&["bad.toml"], &["there is no kind of message 'token'", "request, reply, release"]);
    folder.write("bad.toml", mine("oh = = no"));
    refused(&["bad.toml"], &["bad.toml: line 11, column 6"]);
}

#[test]
fn a_folder_that_cannot_be_written_to_is_refused_before_anything_runs() {
    let folder = Folder::new();
    folder.write("file", "");
    let out = |path| folder.run(&["experiment", "schedule", "--out", path]);
    out("file").refused(&["cannot write to 'file': it is a file"]);
    out("file/below").refused(&["cannot write to 'file/below'", "choose another folder"]);
    out("/proc/nothing").refused(&["cannot write to '/proc/nothing'"]);
}

#[test]
fn the_page_of_all_experiments_is_offered_by_the_help() {
    Folder::new().run(&["experiment", "--help"]).quietly(0).says("report.html");
}

#[test]
fn a_scenario_file_that_is_missing_is_named_with_the_file_that_names_it() {
    let folder = Folder::new();
    folder.write(
        "mine.toml",
        "[experiment]\ntitle = 't'\nquestion = 'q'\ncolumns = ['delay']\n\
         [experiment.vary.way]\na = { file = 'base.toml' }\n",
    );
    let texts = ["mine.toml: ", "'base.toml' cannot be read: there is no such file", "beside"];
    folder.run(&["experiment", "mine.toml"]).refused(&texts);
    folder.run(&["experiment", "./mine.toml"]).refused(&["'./base.toml' cannot be read"]);
}

#[test]
fn a_group_that_is_too_large_to_draw_is_refused_before_the_runs() {
    let folder = Folder::new();
    folder.write(
        "mine.toml",
        "algorithm = 'lamport'\nnodes = 65\n[run]\nentries = 1000000000\n[experiment]\n\
         title = 't'\nquestion = 'q'\ncolumns = ['delay']\ndiagram = true\n",
    );
    folder.run(&["experiment", "mine.toml"]).refused(&["experiment.diagram: a run has 65 nodes"]);
}
