//! The anatomy of a lock, in a real browser.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use serde_json::{Value, json};
use support::browser::Browser;
use support::dashboard::Group;
use support::service::Process;

/// Somebody who has the lock `x` at a member until its input ends.
fn holder(group: &Group, member: usize) -> Process {
    let mut command =
        group.service.command(member, &["lock"], &["x", "--", "sh", "-c", "echo in; read end"]);
    command.stdin(std::process::Stdio::piped());
    Process::start(command)
}

/// The member at which the picture shows the token alone.
fn has_token(member: &str) -> String {
    format!(
        "const at = [...document.querySelectorAll('.member[data-token]')].map((it) => it.dataset.member);\
         return at.length === 1 && at[0] === '{member}'"
    )
}

fn looks(member: &str, look: &str) -> String {
    format!("return document.querySelector('.member.{look}[data-member={member}]') !== null")
}

fn texts(browser: &Browser, selector: &str) -> Vec<String> {
    let script =
        format!("return [...document.querySelectorAll('{selector}')].map((it) => it.textContent)");
    let found: Value = browser.run_script(&script);
    found.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_string()).collect()
}

fn fits(browser: &Browser) -> bool {
    let script = "return document.documentElement.scrollWidth <= innerWidth";
    browser.run_script(script) == Value::Bool(true)
}

#[test]
fn pointers_are_drawn_and_the_token_is_followed_from_member_to_member() {
    let group = Group::start(3, &["--algorithm", "naimi-trehel"]);
    let mut first = holder(&group, 1);
    first.says("in");
    let browser = Browser::start();
    browser.resize(1400, 1000);
    browser.goto(&group.page(0, "lock/x"));
    browser.wait_for("the holder has the token", &has_token("b"));
    assert_eq!(browser.run_script(&looks("b", "inside")), true);
    let mut second = holder(&group, 2);
    browser.wait_for("the next one waits", &looks("c", "waiting"));
    // Whoever waits has asked, and the pointers have turned to it.
    browser.wait_for(
        "the token is passed on to it",
        "return document.querySelector('.arrow.next[data-from=b][data-to=c]') !== null",
    );
    let words = texts(&browser, ".pair .card tbody").join(" ");
    assert!(words.contains("passes the token on to c when it leaves"), "{words}");
    let said = "return document.querySelector('svg.pointers').getAttribute('aria-label')";
    let said = browser.run_script(said);
    assert!(said.as_str().unwrap().starts_with("Inside at b; the token is at b"), "{said}");
    // The list says of such a lock another word than of one that nobody waits for.
    let words = texts(&browser, ".pointers .member .label").join(" ");
    assert!(words.contains("waits") && words.contains("inside"), "{words}");
    first.end_input();
    browser.wait_for("the token has moved", &has_token("c"));
    browser.wait_for("the next one is inside", &looks("c", "inside"));
    second.says("in");
    browser.wait_for(
        "both grants are in the strip",
        "return document.querySelectorAll('.strip .grant').length === 2 \
         && document.querySelectorAll('.strip .grant.open').length === 1",
    );
    // Both fences are to be read, or the digits in which they differ; and how long the two steps took.
    let fences = texts(&browser, ".strip .grant text");
    assert_eq!(fences.len(), 2, "{fences:?}");
    let durations = ["holds", "handovers"].map(|what| {
        let of = format!(".durations [data-of={what}]");
        (
            texts(&browser, &format!("{of} figcaption p")).join(" "),
            texts(&browser, &format!("{of} .bar")).len(),
        )
    });
    for (said, bars) in &durations {
        assert!(said.contains("1 of the grants remembered: half within"), "{said}");
        assert!(*bars > 1, "{said}");
    }
    for (width, is_dark) in [(400, true), (1400, true), (1400, false)] {
        browser.resize(width, 1000);
        browser.dark(is_dark);
        assert!(fits(&browser), "{width}");
    }
    second.end_input();
    browser
        .wait_for("nobody is inside", "return document.querySelector('.member.inside') === null");
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn a_quorum_is_shown_with_those_of_it_that_have_granted() {
    let group = Group::start(3, &["--algorithm", "maekawa"]);
    let mut held = holder(&group, 1);
    held.says("in");
    let browser = Browser::start();
    browser.goto(&group.page(2, "lock/x"));
    browser.wait_for("the holder is inside", &looks("b", "inside"));
    let granted = "return [...document.querySelectorAll('.arrow.granted')]\
                   .every((it) => it.dataset.to === 'b')";
    assert_eq!(browser.run_script(granted), true);
    let shown = "const all = (what) => document.querySelectorAll(what).length;\
                 return all('.arrow.granted') > 0 && all('.pointers .halo') >= all('.arrow.granted')";
    assert_eq!(browser.run_script(shown), true, "arbiters of the quorum have granted");
    assert!(texts(&browser, ".pair .card tbody").join(" ").contains("Asks "));
    assert_eq!(browser.console_messages(), [""; 0]);
    held.end_input();
}

#[test]
fn a_name_that_nobody_has_used_is_shown_as_what_it_is_even_if_it_looks_like_html() {
    let group = Group::start(1, &[]);
    let browser = Browser::start();
    browser.goto(&group.page(0, "lock/%3Cimg%2Fsrc%3Dx%2Fonerror%3Dalert(1)%3E"));
    browser.wait_for(
        "it is said that nobody has used it",
        "return [...document.querySelectorAll('.notice')]\
         .some((it) => it.textContent.includes('nobody has asked for it'))",
    );
    assert_eq!(texts(&browser, "h2.name"), ["<img/src=x/onerror=alert(1)>"]);
    // There is no token of it yet, so none is on its way.
    let summary = texts(&browser, ".summary").join(" ");
    assert!(summary.contains("naimi-trehel") && !summary.contains("token"), "{summary}");
    assert_eq!(browser.run_script("return document.querySelectorAll('main img').length"), 0);
    assert_eq!(browser.console_messages(), [""; 0]);
}

/// What the page makes of grants that are made up.
const DURATIONS: &str = r#"
    return import('/assets/durations.js').then(({ handovers, histogram, holds }) => {
        const at = (ms) => new Date(1_700_000_000_000 + ms).toISOString();
        const grant = (begin, waited_ms, held_ms, state) => ({ at: at(begin), waited_ms, held_ms, state });
        const grants = [
            grant(0, null, 100, 'released'), grant(103, 50, 40, 'released'),
            // Nobody waited at the end of the one before: that is no hand-over.
            grant(500, 10, 20, 'moved'), grant(530, 25, 7, 'lost'),
            // By clocks of two members it begins before the other one ends.
            grant(536, 6, null, 'held'),
        ];
        const { count, p50_ms, p99_ms, buckets } = histogram([1, 3, 4, 5, 100]);
        const full = buckets.filter(it => it.count > 0).map(it => [it.at_most_ms, it.count]);
        return [holds(grants), handovers(grants), [count, p50_ms, p99_ms], full];
    })"#;
/// The digits in which fences differ.
const ENDINGS: &str = r#"
    return import('/assets/strip.js').then(({ endings }) => [
        endings(['137438953472', '137438953473']), endings(['99', '137438953600']), endings(['7'])])"#;

#[test]
fn durations_and_fences_are_told_from_the_grants_that_are_remembered() {
    let group = Group::start(1, &[]);
    let browser = Browser::start();
    browser.goto(&group.page(0, ""));
    let durations = json!([[100, 40, 7], [3, 0], [5, 4, 100], [[1, 1], [4, 2], [8, 1], [128, 1]]]);
    assert_eq!(browser.run_script(DURATIONS), durations);
    let endings = json!([["…472", "…473"], ["99", "137438953600"], ["7"]]);
    assert_eq!(browser.run_script(ENDINGS), endings);
}
