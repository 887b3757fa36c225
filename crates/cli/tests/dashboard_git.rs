//! The locks of files in Git repositories, in a real browser.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use serde_json::{Value, json};
use support::Folder;
use support::browser::{Browser, keys};
use support::dashboard::{Group, ask};
use support::service::{Process, Service, addresses};

/// "ann:x", as a client sends it.
const ANN: &str = "Basic YW5uOng=";
/// "bob:x".
const BOB: &str = "Basic Ym9iOng=";
const LOCKS: &str = "/git/art/game/locks";
const REPOSITORY: &str = "git?repo=art%2Fgame";
const ROWS: &str = "return document.querySelectorAll('table.files tbody tr').length";

/// A node that knows no tokens.
fn open() -> Group {
    let group = Group::start(1, &[]);
    group.service.is_whole();
    group
}

/// A node that wants tokens, and where stealing is for those who administer. With the tokens of an observer, of
/// somebody who may lock, and of an administrator.
fn guarded() -> (Group, [String; 3]) {
    let folder = Folder::new();
    let tokens =
        [("olga", "observe"), ("ann", "lock"), ("root", "administer")].map(|(name, role)| {
            let add = ["token", "add", name, "--role", role, "--file", "tokens"];
            folder.run(&add).quietly(0).stdout.trim().to_string()
        });
    let mut at = addresses(2);
    let (http, listen) = (at.remove(1), at.remove(0));
    let config = format!(
        "name = 'alone'\nlisten = '{listen}'\n[security]\ntokens = 'tokens'\n[git]\nsteal = 'administer'\n"
    );
    folder.write("a.toml", config);
    let flags = ["node", "--config", "a.toml", "--data", "d", "--http", &http];
    let node = Process::start(folder.command(&flags));
    node.says(&format!("listens at {listen}"));
    let service = Service { folder, addresses: vec![listen], nodes: vec![node] };
    let group = Group { service, http: vec![http] };
    (group, tokens)
}

fn lock(group: &Group, who: &str, path: &str, note: &str) -> Value {
    let asked = json!({"path": path, "note": note});
    let (status, answer) = ask(&group.http[0], who, "POST", LOCKS, Some(&asked));
    assert_eq!(status, 201, "{answer}");
    answer["lock"].clone()
}

/// The path and the owner of every lock, as the API that `git lfs locks` uses tells them.
fn locks(group: &Group, who: &str) -> Vec<(String, String)> {
    let (status, listed) = ask(&group.http[0], who, "GET", LOCKS, None);
    assert_eq!(status, 200, "{listed}");
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let locks = listed["locks"].as_array().unwrap().iter();
    locks.map(|lock| (text(&lock["path"]), text(&lock["owner"]["name"]))).collect()
}

/// Opens the repository, and says the name or the token that is asked for.
fn enter(browser: &Browser, group: &Group, field: &str, said: &str) {
    browser.goto(&group.page(0, REPOSITORY));
    browser.wait_for(
        "it is asked who we are",
        &format!("return document.querySelector('#{field}') !== null"),
    );
    browser.fill(&format!("#{field}"), said);
    browser.press(keys::ENTER);
    browser.wait_for(
        "the locks are there",
        "return /^\\d.* locks?/.test(document.querySelector('section [role=status]')?.textContent ?? '')",
    );
}

fn row(path: &str) -> String {
    format!(
        "[...document.querySelectorAll('table.files tbody tr')].find((it) => it.dataset.path === {})",
        json!(path)
    )
}

/// Presses a button of a row, and the button `answer` of what it asks then.
fn choose(browser: &Browser, path: &str, button: &str, note: &str, answer: &str) {
    browser.run_script(&format!("{}.querySelector('button.{button}').click()", row(path)));
    assert_eq!(browser.run_script("return document.querySelector('dialog').open"), true);
    if !note.is_empty() {
        browser.press(note);
    }
    browser.click(&format!("dialog button[value={answer}]"));
    browser.wait_for("the question is gone", "return document.querySelector('dialog') === null");
}

#[test]
fn a_file_is_locked_and_unlocked_through_the_page_and_what_others_do_is_shown_at_once() {
    let group = open();
    let browser = Browser::start();
    browser.resize(1400, 900);
    enter(&browser, &group, "git-name", "ann");
    browser.fill("#path", "art/hero one.psd");
    browser.fill("#note", "new cape");
    browser.press(keys::ENTER);
    browser.wait_for(
        "it is in the table",
        &format!("return {} !== undefined", row("art/hero one.psd")),
    );
    assert_eq!(locks(&group, BOB), [("art/hero one.psd".to_string(), "ann".to_string())]);

    let theirs = lock(&group, BOB, "art/map.psd", "");
    browser.wait_for(
        "what another one does is shown",
        &format!("return {} !== undefined", row("art/map.psd")),
    );
    let unlock = format!("{LOCKS}/{}/unlock", theirs["id"].as_str().unwrap());
    assert_eq!(ask(&group.http[0], BOB, "POST", &unlock, Some(&json!({}))).0, 200);
    browser
        .wait_for("and that it is over", &format!("return {} === undefined", row("art/map.psd")));

    // Whoever asks for what somebody has is told who that is.
    lock(&group, BOB, "art/sky.psd", "clouds");
    // The first one may be answered still, which must not take away what is typed now.
    browser.fill("#path", "art/sky.psd");
    browser.press(keys::ENTER);
    browser.wait_for(
        "it is refused",
        "return document.querySelector('.repository .notice').textContent.includes('bob')",
    );
    choose(&browser, "art/hero one.psd", "unlock", "", "no");
    assert_eq!(locks(&group, BOB).len(), 2, "it was not meant");
    choose(&browser, "art/hero one.psd", "unlock", "", "yes");
    browser.wait_for("it is gone", &format!("return {} === undefined", row("art/hero one.psd")));
    assert_eq!(locks(&group, BOB), [("art/sky.psd".to_string(), "bob".to_string())]);
    // A node that knows no tokens believes everybody all.
    choose(&browser, "art/sky.psd", "steal", "bob is away", "yes");
    browser.wait_for(
        "it is ours",
        &format!("return {}.querySelector('button.unlock') !== null", row("art/sky.psd")),
    );
    assert_eq!(locks(&group, BOB), [("art/sky.psd".to_string(), "ann".to_string())]);
    let (_, listed) = ask(&group.http[0], BOB, "GET", LOCKS, None);
    assert_eq!(listed["locks"][0]["note"], "bob is away");
    // The browser itself reports the request that was refused, and nothing else.
    let said = browser.console_messages();
    assert!(said.len() == 1 && said[0].contains("409"), "{said:?}");
}

/// Answers to what changes something come to the page when the test says so.
const HELD_BACK: &str = "
    const ask = window.fetch;
    window.fetch = async (path, options) => {
        const answer = await ask(path, options);
        if (options?.method === 'POST') await new Promise(resolve => { window.comes = resolve; });
        return answer;
    }";

#[test]
fn whoever_types_on_while_a_lock_is_answered_keeps_what_is_typed() {
    let group = open();
    let browser = Browser::start();
    enter(&browser, &group, "git-name", "ann");
    browser.run_script(HELD_BACK);
    browser.fill("#path", "art/one.psd");
    browser.press(keys::ENTER);
    // What happens is told sooner than the request is answered.
    browser.wait_for("it is shown", &format!("return {} !== undefined", row("art/one.psd")));
    browser.fill("#path", "art/two.psd");
    let answered = "return window.comes !== undefined";
    let comes = "comes(); delete window.comes";
    browser.wait_for("it is answered", answered);
    browser.run_script(comes);
    let done = "return document.querySelector('.notice.done')?.hidden === false";
    browser.wait_for("it is said to be locked", done);
    let typed = "return document.querySelector('#path').value";
    assert_eq!(browser.run_script(typed), "art/two.psd");
    browser.press(keys::ENTER);
    browser.wait_for("the next is shown", &format!("return {} !== undefined", row("art/two.psd")));
    browser.wait_for("it is answered", answered);
    browser.run_script(comes);
    browser.wait_for("what was locked is not there any more", &format!("{typed} === ''"));
    assert_eq!(browser.console_messages(), [""; 0]);
}

/// Goes on with the tab key until a button of this class has the focus, and presses it.
fn press_button(browser: &Browser, class: &str) {
    let is_there = format!("return document.activeElement.classList.contains('{class}')");
    for _ in 0..60 {
        if browser.run_script(&is_there) == true {
            return browser.press(keys::ENTER);
        }
        browser.press(keys::TAB);
    }
    panic!("no button '{class}' is reached by keyboard");
}

#[test]
fn a_lock_is_stolen_and_given_back_with_keys_alone() {
    let group = open();
    lock(&group, BOB, "art/sky.psd", "clouds");
    let browser = Browser::start();
    enter(&browser, &group, "git-name", "ann");
    let asks = "return document.querySelector('dialog')?.open === true";
    press_button(&browser, "steal");
    browser.wait_for("it asks why", asks);
    browser.press("bob is away");
    // Past the button that leaves the lock as it is.
    browser.press(&keys::TAB.repeat(2));
    browser.press(keys::ENTER);
    browser.wait_for(
        "it is ours",
        &format!("return {}?.querySelector('button.unlock') != null", row("art/sky.psd")),
    );
    assert_eq!(locks(&group, BOB), [("art/sky.psd".to_string(), "ann".to_string())]);
    let (_, listed) = ask(&group.http[0], BOB, "GET", LOCKS, None);
    assert_eq!(listed["locks"][0]["note"], "bob is away");
    press_button(&browser, "unlock");
    browser.wait_for("it asks whether that is meant", asks);
    browser.press(keys::TAB);
    browser.press(keys::ENTER);
    browser.wait_for("it is gone", &format!("return {} === undefined", row("art/sky.psd")));
    assert_eq!(locks(&group, BOB), []);
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn whoever_is_robbed_of_a_lock_is_told_on_the_page_as_long_as_the_thief_has_it() {
    let group = open();
    let hero = lock(&group, ANN, "art/hero.psd", "mine");
    let browser = Browser::start();
    enter(&browser, &group, "git-name", "ann");
    let robbed = "return document.querySelector('.robbed')";
    assert_eq!(browser.run_script(&format!("{robbed}.hidden")), true);
    let steal = format!("{LOCKS}/{}/steal", hero["id"].as_str().unwrap());
    let note = json!({"note": "ann is away"});
    let (status, answer) = ask(&group.http[0], BOB, "POST", &steal, Some(&note));
    assert_eq!(status, 200, "{answer}");
    let words = "bob has stolen art/hero.psd from you (ann is away).";
    let told = format!("{robbed}?.textContent.includes('{words}') === true");
    browser.wait_for("she is told at once", &told);
    let marked = format!("return {}.textContent.includes('stolen from you')", row("art/hero.psd"));
    assert_eq!(browser.run_script(&marked), true);
    // Who comes later is told too.
    browser.goto("about:blank");
    browser.goto(&group.page(0, REPOSITORY));
    browser.wait_for("she is told again", &told);
    let unlock = format!("{LOCKS}/{}/unlock", answer["lock"]["id"].as_str().unwrap());
    assert_eq!(ask(&group.http[0], BOB, "POST", &unlock, Some(&json!({}))).0, 200);
    browser.wait_for("it is over", &format!("{robbed}.hidden === true"));
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn whoever_may_not_steal_is_not_offered_it_and_is_refused_and_an_administrator_can() {
    let (group, [observer, locker, administrator]) = guarded();
    let bearer = |token: &str| format!("Bearer {token}");
    let of_root = lock(&group, &bearer(&administrator), "art/hero.psd", "mine");
    let browser = Browser::start();
    enter(&browser, &group, "token", &observer);
    assert_eq!(browser.run_script("return document.querySelector('#path')"), Value::Null);
    assert_eq!(browser.run_script("return document.querySelectorAll('.doing button').length"), 0);

    let steal = format!("{LOCKS}/{}/steal", of_root["id"].as_str().unwrap());
    for token in [&observer, &locker] {
        let (status, refused) =
            ask(&group.http[0], &bearer(token), "POST", &steal, Some(&json!({})));
        assert_eq!((status, &refused["code"]), (403, &json!("wrong-role")), "{refused}");
    }
    browser.run_script("sessionStorage.clear()");
    browser.goto("about:blank");
    enter(&browser, &group, "token", &locker);
    browser.wait_for("one may lock", "return document.querySelector('#path') !== null");
    assert_eq!(browser.run_script("return document.querySelectorAll('.doing button').length"), 0);
    lock(&group, &bearer(&locker), "art/map.psd", "");
    browser.wait_for(
        "one's own can be unlocked",
        &format!("return {}?.querySelector('button.unlock') != null", row("art/map.psd")),
    );

    browser.run_script("sessionStorage.clear()");
    browser.goto("about:blank");
    enter(&browser, &group, "token", &administrator);
    choose(&browser, "art/map.psd", "steal", "ann is on holiday", "yes");
    let expected = [("art/hero.psd", "root"), ("art/map.psd", "root")];
    browser.wait_for(
        "it is stolen",
        &format!("return {}.querySelector('button.unlock') !== null", row("art/map.psd")),
    );
    let owned = locks(&group, &bearer(&observer));
    assert_eq!(owned, expected.map(|(path, owner)| (path.to_string(), owner.to_string())));
    // The browser itself reports that it had no token at first.
    let said = browser.console_messages();
    assert!(said.iter().all(|line| line.contains("401")), "{said:?}");
}

#[test]
fn paths_and_notes_are_shown_as_texts_whatever_is_in_them() {
    let group = open();
    let hostile = [
        "<img src=x onerror=alert(1)>.psd".to_string(),
        "a\"b'c&amp;.psd".to_string(),
        "ünï/cødé/日本語 \u{202e}gpj.psd".to_string(),
        "line\nbreak\u{1b}[31m.psd".to_string(),
        format!("{}/long.psd", "very-long-name-without-any-space".repeat(23)),
    ];
    for path in &hostile {
        lock(&group, BOB, path, "<script>alert(2)</script>");
    }
    let browser = Browser::start();
    browser.resize(400, 800);
    enter(&browser, &group, "git-name", "ann");
    assert_eq!(browser.run_script(ROWS), hostile.len());
    for path in &hostile {
        assert_eq!(
            browser.run_script(&format!("return {} !== undefined", row(path))),
            true,
            "{path}"
        );
    }
    let cells = browser
        .run_script("return [...document.querySelectorAll('td.path')].map((it) => it.textContent)");
    let cells: Vec<&str> =
        cells.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert!(cells.contains(&"<img src=x onerror=alert(1)>.psd"), "{cells:?}");
    assert!(cells.contains(&"ünï/cødé/日本語 ⟨U+202E⟩gpj.psd"), "{cells:?}");
    assert!(cells.contains(&"line␊break␛[31m.psd"), "{cells:?}");
    let made = "return document.querySelectorAll('main img, main script').length";
    assert_eq!(browser.run_script(made), 0);
    let overflow = "return document.documentElement.scrollWidth <= innerWidth";
    assert_eq!(browser.run_script(overflow), true);
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn many_locks_are_searched_sorted_and_turned_over_in_pages() {
    let group = open();
    let paths: Vec<String> = (0..250).map(|number| format!("art/file-{number:03}.psd")).collect();
    let asked = json!({"paths": paths, "note": "a set"});
    let (status, answer) =
        ask(&group.http[0], BOB, "POST", "/git/art/game/locks/batch", Some(&asked));
    assert_eq!(status, 201, "{answer}");
    lock(&group, ANN, "zoo/lion.psd", "roars");
    let browser = Browser::start();
    browser.goto(&group.page(0, "git"));
    browser.wait_for(
        "the repository is listed",
        "return document.querySelector('table.repositories a') !== null",
    );
    let listed =
        browser.run_script("return document.querySelector('table.repositories tbody').textContent");
    assert!(listed.as_str().unwrap().starts_with("art/game251"), "{listed}");
    enter(&browser, &group, "git-name", "ann");
    assert_eq!(browser.run_script(ROWS), 100);
    let first = "return document.querySelector('table.files tbody tr').dataset.path";
    assert_eq!(browser.run_script(first), "art/file-000.psd");
    browser.click(".turning button:last-child");
    assert_eq!(browser.run_script(first), "art/file-100.psd");
    // By path, downwards.
    browser.click("th button.sort");
    assert_eq!(browser.run_script(first), "zoo/lion.psd");
    let sorted = "return document.querySelector('th').getAttribute('aria-sort')";
    assert_eq!(browser.run_script(sorted), "descending");
    browser.click("#find");
    browser.press("FILE 7");
    browser.wait_for("those are found that have both", &format!("{ROWS} === 43"));
    browser.run_script("document.querySelector('#find').value = ''");
    browser.click("#find");
    browser.press("roars");
    browser.wait_for("a note is found", &format!("{ROWS} === 1"));
    assert_eq!(browser.run_script(first), "zoo/lion.psd");
    assert_eq!(browser.console_messages(), [""; 0]);
}
