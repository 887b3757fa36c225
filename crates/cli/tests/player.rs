//! The page that plays a run: `--html` of sim, check and replay, in a real browser.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use serde_json::Value;
use support::Folder;
use support::browser::{Browser, keys};

const STEP: &str = "return Number(document.body.dataset.step)";

/// A folder with `run.html` in it, a short run.
fn played() -> Folder {
    let folder = Folder::new();
    let flags = ["--algorithm", "naimi-trehel", "--nodes", "4", "--entries", "6"];
    folder.run(&[&["sim", "--html", "run.html"], &flags[..]].concat()).quietly(0);
    folder
}

/// A folder with `why.html` in it, a counterexample.
fn broken() -> Folder {
    let folder = Folder::new();
    let flags = ["--nodes", "2", "--mutant", "no-tie-break", "--html", "why.html"];
    let ran = folder.run(&[&["check", "lamport"], &flags[..]].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), ""), "{}", ran.stdout);
    folder
}

#[test]
fn a_run_is_stepped_by_keyboard_without_a_word_on_the_console() {
    let folder = played();
    let browser = Browser::start();
    browser.resize(1400, 900);
    browser.open(&folder.path("run.html"));
    assert_eq!(browser.run_script(STEP), 0);
    browser.press(keys::RIGHT);
    browser.press(keys::RIGHT);
    assert_eq!(browser.run_script(STEP), 2);
    browser.press(keys::LEFT);
    assert_eq!(browser.run_script(STEP), 1);
    let words = "return document.querySelector('#step .words').textContent";
    assert!(browser.run_script(words).as_str().unwrap().starts_with("node "));
    browser.press("n");
    let inside = "return document.querySelectorAll('.node.inside').length";
    assert_eq!(browser.run_script(inside), 1);
    browser.press(keys::HOME);
    assert_eq!(browser.run_script(STEP), 0);
    browser.press(" ");
    browser.wait_for("the run plays", "return Number(document.body.dataset.step) > 1");
    browser.press(" ");
    browser.press("?");
    assert_eq!(browser.run_script("return document.querySelector('dialog').open"), true);
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn what_every_node_knows_is_the_same_forwards_and_back() {
    let folder = played();
    let browser = Browser::start();
    browser.open(&folder.path("run.html"));
    let known = "return document.getElementById('nodes').textContent";
    browser.press(&keys::RIGHT.repeat(5));
    let there = browser.run_script(known);
    browser.press(keys::END);
    assert_ne!(browser.run_script(known), there);
    browser.press(keys::HOME);
    browser.press(&keys::RIGHT.repeat(5));
    assert_eq!(browser.run_script(known), there);
}

#[test]
fn arrows_from_before_what_is_shown_do_not_cross_the_names_of_nodes() {
    let folder = Folder::new();
    let flags = ["sim", "--algorithm", "lamport", "--nodes", "5", "--entries", "20"];
    folder.run(&[&flags[..], &["--html", "run.html"]].concat()).quietly(0);
    let browser = Browser::start();
    browser.resize(400, 900);
    browser.open(&folder.path("run.html"));
    browser.press(keys::END);
    let begins = "const edge = document.querySelector('#diagram svg').getBoundingClientRect().left + 62;
        return [...document.querySelectorAll('.message')].some(it => it.getBoundingClientRect().left < edge - 5)";
    assert_eq!(browser.run_script(begins), true, "some begin before what is shown");
    let crossing = "const { left, top, height } = document.querySelector('#diagram svg').getBoundingClientRect();
        const found = new Set();
        for (let x = 2; x < 60; x += 2) for (let y = 2; y < height; y += 1) {
            const it = document.elementFromPoint(left + x, top + y)?.closest('.message');
            if (it) found.add(it.textContent);
        }
        return [...found]";
    assert_eq!(browser.run_script(crossing), serde_json::json!([]));
}

#[test]
fn kinds_of_messages_are_hidden_and_a_request_is_followed() {
    let folder = played();
    let browser = Browser::start();
    browser.open(&folder.path("run.html"));
    browser.press(keys::END);
    let drawn = "return document.querySelectorAll('.message').length";
    let all = browser.run_script(drawn).as_u64().unwrap();
    browser.click("#kinds input");
    assert!(browser.run_script(drawn).as_u64().unwrap() < all);
    browser.press(keys::HOME);
    browser.press("nf");
    let pressed = "return document.querySelectorAll('[aria-pressed=true]').length";
    assert_eq!(browser.run_script(pressed), 1);
    assert!(
        browser.run_script("return document.querySelectorAll('.faint').length").as_u64() > Some(0)
    );
    assert_eq!(browser.console_messages(), [""; 0]);
}

/// Node 1 asks, enters and leaves; then node 2 asks node 0, which sends the request on to node 1.
#[test]
fn what_an_entry_depends_on_and_what_depends_on_it_is_exactly_what_stays_bright() {
    let folder = Folder::new();
    let run = "catraca sim --algorithm naimi-trehel --nodes 3 --arrivals schedule --request '1 at 0' \
               --request '2 at 9' --html run.html";
    folder.shell(run).quietly(0);
    let browser = Browser::start();
    browser.resize(1400, 900);
    browser.open(&folder.path("run.html"));
    let faint = |what: &str| {
        let titles = format!(
            "return [...document.querySelectorAll('.{what}.faint title')].map(it => it.textContent)"
        );
        let titles = browser.run_script(&titles);
        titles
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap().to_string())
            .collect::<Vec<_>>()
    };
    browser.press(keys::END);
    assert_eq!(browser.run_script(STEP), 9);
    browser.press(keys::HOME);
    // Of the entry of node 1 all depends but that node 2 asks.
    browser.press("nf");
    let (events, messages) = (faint("event"), faint("message"));
    assert_eq!((events.len(), messages.len()), (1, 1), "{events:?} {messages:?}");
    assert!(
        events[0].contains("node 2") && messages[0].ends_with("2 to 0"),
        "{events:?} {messages:?}"
    );
    // Before the entry of node 2 comes everything, because its request comes to node 1.
    browser.press("fnf");
    assert_eq!((faint("event").len(), faint("message").len()), (0, 0));
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn a_counterexample_opens_at_its_violation_beside_what_should_have_happened() {
    let folder = broken();
    let browser = Browser::start();
    browser.open(&folder.path("why.html"));
    let last = folder.read("lamport-no-tie-break.trace").lines().count() - 1;
    assert_eq!(browser.run_script(STEP), last);
    let wrong = browser.run_script("return document.querySelector('.broken').textContent");
    assert!(wrong.as_str().unwrap().contains("mutual exclusion"), "{wrong}");
    let inside = "return document.querySelectorAll('.node.inside').length";
    assert_eq!(browser.run_script(inside), 2);
    let expected = browser.run_script("return document.getElementById('expected').innerText");
    let expected = expected.as_str().unwrap();
    assert!(expected.contains("does nothing") && expected.contains("enters with"), "{expected}");
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn pages_fit_a_phone_and_a_wide_screen_in_light_and_dark() {
    let (run, why) = (played(), broken());
    let browser = Browser::start();
    for (width, dark) in [(400, false), (400, true), (1400, false), (1400, true)] {
        browser.resize(width, 900);
        browser.dark(dark);
        for page in [run.path("run.html"), why.path("why.html")] {
            browser.open(&page);
            browser.press("n");
            let wide = browser.run_script("return document.documentElement.scrollWidth");
            assert!(wide.as_u64().unwrap() <= u64::from(width), "{wide} at {width}");
            let back = browser.run_script("return getComputedStyle(document.body).backgroundColor");
            assert_eq!(back.as_str().unwrap().contains("rgb(21, 24, 28)"), dark, "{back}");
            assert_eq!(browser.console_messages(), [""; 0]);
            let stem = page.file_stem().unwrap().to_str().unwrap();
            support::keep_picture(
                &browser,
                &format!("{stem}-{width}-{}", if dark { "dark" } else { "light" }),
            );
        }
    }
}

#[test]
fn a_trace_is_played_in_part() {
    let folder = Folder::new();
    let flags =
        ["--algorithm", "lamport", "--nodes", "3", "--entries", "5", "--trace", "run.trace"];
    folder.run(&[&["sim"], &flags[..]].concat()).quietly(0);
    folder.run(&["replay", "run.trace", "--html", "all.html"]).quietly(0);
    let part = ["replay", "run.trace", "--html", "part.html", "--html-from", "1", "--html-to", "3"];
    folder.run(&part).quietly(0);
    assert!(folder.read("part.html").len() < folder.read("all.html").len());
    let nothing = ["replay", "run.trace", "--html", "no.html", "--html-from", "500"];
    folder.run(&nothing).refused(&["'run.trace' has no steps to show", "choose a wider part"]);
    let alone = ["replay", "run.trace", "--html-from", "1"];
    assert_eq!(folder.run(&alone).code, Some(2));
    assert_eq!(folder.names(), ["all.html", "part.html", "run.trace"]);
}

#[test]
fn what_cannot_be_played_is_refused_with_what_to_do() {
    let folder = Folder::new();
    let sim = |flags: &str| {
        let words: Vec<&str> = flags.split(' ').collect();
        folder.run(&[&["sim", "--algorithm", "lamport", "--html"], &words[..]].concat())
    };
    sim("missing/run.html --nodes 3").refused(&["cannot write 'missing/run.html'"]);
    sim("run.html --nodes 101").refused(&["101 nodes", "up to 100"]);
    sim("run.html --nodes 10 --entries 2000 --html-from 5 --html-to 20").quietly(0);
    assert_eq!(folder.names(), ["run.html"]);
    let members = ["check", "naimi-trehel", "--members", "2", "--html", "why.html"];
    folder.run(&members).refused(&["--html is for nodes", "told in words", "leave out --members"]);
}

/// The command that a page says shows the next part.
fn next_part(notice: &str) -> Vec<String> {
    let (_, command) = notice.trim().split_once("The next part: catraca ").unwrap();
    command.split(' ').map(str::to_string).collect()
}

#[test]
fn a_run_that_is_too_long_for_a_page_is_cut_and_the_next_part_is_a_command_away() {
    let folder = Folder::new();
    let long =
        "sim --algorithm lamport --nodes 10 --entries 3000 --trace run.trace --html run.html";
    let ran = folder.run(&long.split(' ').collect::<Vec<_>>());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("the first 20000 steps of the run"), "{}", ran.stderr);
    assert!(ran.stdout.contains("3,000"), "the run goes on to its end: {}", ran.stdout);
    let browser = Browser::start();
    let notice = "return document.querySelector('.notice').textContent";
    let shown = "return JSON.parse(document.getElementById('run').textContent).events";
    browser.open(&folder.path("run.html"));
    let said = browser.run_script(notice);
    let said = said.as_str().unwrap();
    let last = browser.run_script(&format!("{shown}.length")).as_u64();
    assert_eq!((last, next_part(said)), (Some(20_000), next_part(&ran.stderr)));
    let end = browser.run_script(&format!("{shown}.at(-1).at")).as_u64();

    // The next part begins where this one ends, and fits, in the same way for the trace.
    let next = next_part(said);
    let again = folder.run(&next.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""));
    browser.open(&folder.path("run.html"));
    assert_eq!(browser.run_script("return document.querySelector('.notice')"), Value::Null);
    assert!(browser.run_script(&format!("{shown}[0].at")).as_u64() >= end);
    let replay = folder.run(&["replay", "run.trace", "--html", "again.html"]);
    assert_eq!(replay.code, Some(0), "{}", replay.stderr);
    let ends = |words: &[String]| words[words.len() - 4..].to_vec();
    let replayed = next_part(&replay.stderr);
    assert_eq!(
        (&replayed[..2], ends(&replayed)),
        (&["replay".to_string(), "run.trace".to_string()][..], ends(&next))
    );
}

#[test]
fn the_rule_of_each_step_is_shown_from_the_source_of_the_algorithm() {
    let (run, why) = (played(), broken());
    let browser = Browser::start();
    browser.open(&run.path("run.html"));
    let rule = "return document.getElementById('rule').innerText";
    assert_eq!(browser.run_script("return document.getElementById('rule').hidden"), true);
    browser.press(keys::RIGHT);
    let asks = browser.run_script(rule);
    assert!(asks.as_str().unwrap().contains("fn on_request("), "{asks}");
    browser.press("n");
    let enters = browser.run_script(rule);
    assert!(enters.as_str().unwrap().contains("fn on_"), "{enters}");
    browser.open(&why.path("why.html"));
    let flaw = browser.run_script(rule);
    assert!(flaw.as_str().unwrap().contains("The flaw of 'no-tie-break'"), "{flaw}");
    assert_eq!(browser.console_messages(), [""; 0]);
}

/// A folder with `ring.txt`, and `run.html`, a run on it.
fn met() -> Folder {
    let folder = Folder::new();
    folder.run(&["graph", "generate", "ring", "--nodes", "6", "--output", "ring.txt"]).quietly(0);
    let flags = ["ring.txt", "--algorithm", "evolving-helary", "--html", "run.html"];
    folder.run(&[&["graph", "run"], &flags[..]].concat()).quietly(0);
    folder
}

#[test]
fn a_run_on_an_evolving_graph_is_an_animation_with_labels_and_journeys() {
    let folder = met();
    let browser = Browser::start();
    for (width, dark) in [(400, true), (1400, false)] {
        browser.resize(width, 900);
        browser.dark(dark);
        browser.open(&folder.path("run.html"));
        assert_eq!(browser.run_script(STEP), 0);
        assert_eq!(browser.run_script("return document.querySelectorAll('.spot').length"), 6);
        assert_eq!(
            browser.run_script("return document.querySelectorAll('.spot .token').length"),
            1
        );
        browser.press("n");
        let said = browser.run_script("return document.getElementById('step').innerText");
        assert!(said.as_str().unwrap().contains("enters at"), "{said}");
        browser.press(keys::HOME);
        browser.press(keys::RIGHT);
        assert_eq!(browser.run_script(STEP), 1);
        assert!(
            browser.run_script("return document.querySelectorAll('.contact').length").as_u64()
                > Some(0)
        );
        browser.press("j");
        assert!(
            browser.run_script("return document.querySelectorAll('.hop').length").as_u64()
                > Some(0)
        );
        browser.press(" ");
        browser.wait_for("it plays", "return Number(document.body.dataset.step) > 2");
        browser.press(" ");
        let wide = browser.run_script("return document.documentElement.scrollWidth");
        assert!(wide.as_u64().unwrap() <= u64::from(width), "{wide} at {width}");
        assert_eq!(browser.console_messages(), [""; 0]);
        support::keep_picture(&browser, &format!("contacts-{width}"));
    }
}

/// a and b meet at 0, c and d at 1 and at 3, b and c at 2, a and d at 5.
#[test]
fn journeys_on_a_page_are_those_that_arrive_first() {
    let folder = Folder::new();
    let graph = "catraca graph\nnames a b c d\n0 a b\n1 c d\n2 b c\n3 c d\n5 a d\n";
    folder.write("four.txt", graph);
    let run = "catraca graph run four.txt --algorithm evolving-helary --endless --html run.html";
    folder.shell(run).quietly(0);
    let browser = Browser::start();
    browser.open(&folder.path("run.html"));
    let way = |from: u32, to: u32| {
        let script = format!(
            "const [drawn, from, to] = document.querySelectorAll('#ways input, #ways select');\
             [drawn.checked, from.value, to.value] = [true, {from}, {to}];\
             to.dispatchEvent(new Event('change'));\
             return document.querySelector('#ways .when').textContent"
        );
        browser.run_script(&script).as_str().unwrap().to_string()
    };
    assert_eq!(way(0, 3), "a meets b at 0, b meets c at 2, c meets d at 3.");
    assert_eq!(browser.run_script("return document.querySelectorAll('#graph .hop').length"), 3);
    assert_eq!(way(3, 0), "d meets a at 5.", "the way over c and b comes too late");
    assert_eq!(way(2, 0), "c meets d at 1, d meets a at 5.");
    assert_eq!(way(1, 1), "A journey leads to another node.");
    browser.press(keys::END);
    assert_eq!(way(0, 3), "a meets d at 5.");
    assert_eq!(way(1, 2), "No journey leads from b to c from here on.");
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn a_page_of_an_evolving_graph_that_cannot_be_is_refused_with_what_to_do() {
    let folder = met();
    let run = |flags: &[&str]| {
        folder.run(&[&["graph", "run", "ring.txt", "--html", "no.html"], flags].concat())
    };
    run(&[]).refused(&["--html plays one run", "--algorithm"]);
    let one = ["--algorithm", "evolving-helary"];
    run(&[&one[..], &["--html-from", "100000"]].concat())
        .refused(&["has no steps to show", "--html-from"]);
    assert_eq!(folder.names(), ["ring.txt", "run.html"]);
    folder.run(&["graph", "generate", "ring", "--nodes", "101", "--output", "wide.txt"]).quietly(0);
    let wide = ["graph", "run", "wide.txt", "--html", "no.html"];
    folder.run(&[&wide[..], &one].concat()).refused(&["101 nodes", "up to 100"]);
    // Nothing happens for long, and then too late for a page.
    folder.write("late.txt", "catraca graph\nnodes 2\n0 0 1\n200001 0 1\n");
    let late = ["graph", "run", "late.txt", "--request", "1@200001", "--html", "late.html"];
    let late = [&late[..], &one].concat();
    folder.run(&late).refused(&["begin and end up to instant 200000", "--html-to T"]);
    folder.run(&[&late[..], &["--html-to", "9"]].concat()).quietly(0);
    assert!(folder.names().contains(&"late.html".to_string()));
}
