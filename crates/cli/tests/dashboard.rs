//! The dashboard of a node, in a real browser.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use serde_json::{Value, json};
use support::Folder;
use support::browser::{Browser, keys};
use support::dashboard::ask;
use support::service::{Process, Service, addresses};

const LIVE: &str = "return document.getElementById('live')?.dataset.state === 'live'";

/// A group whose first member serves the dashboard, and where.
fn group(count: u16, flags: &[&str]) -> (Service, String) {
    let http = addresses(1).remove(0);
    let folder = Folder::new();
    let mut service = Service { folder, addresses: addresses(count), nodes: Vec::new() };
    for member in 0..usize::from(count) {
        let own = ["--http", &http];
        let more = if member == 0 { &own[..] } else { &[] };
        let node = service.node(member, &[flags, more].concat());
        service.nodes.push(node);
    }
    service.is_whole();
    (service, http)
}

/// A browser that looks at a view of a dashboard that is live.
fn look(http: &str, view: &str) -> Browser {
    let browser = Browser::start();
    browser.resize(1400, 900);
    browser.goto(&format!("http://{http}/#/{view}"));
    browser.wait_for("the page is live", LIVE);
    browser
}

fn go(browser: &Browser, view: &str) {
    browser.run_script(&format!("location.hash = '#/{view}'"));
}

/// Waits until the view shows a text, or does not.
#[track_caller]
fn shows(browser: &Browser, text: &str, is_shown: bool) {
    let script = "return document.getElementById('view').textContent.includes(TEXT) === IS";
    let script = script.replace("TEXT", &json!(text).to_string());
    let script = script.replace("IS", &is_shown.to_string());
    browser.wait_for(&format!("'{text}' is shown: {is_shown}"), &script);
}

/// A lock that is held until what this returns is dropped.
fn held(service: &Service, name: &str, label: &str) -> Process {
    let words = ["--label", label, name, "--", "sh", "-c", "echo inside; exec sleep 1000"];
    let lock = service.client(0, &["lock"], &words);
    lock.says("inside");
    lock
}

/// The address of a lock's view.
fn lock_view(name: &str) -> String {
    let encoded: Vec<String> = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
    format!("lock/{}", encoded.concat())
}

fn token(folder: &Folder, name: &str, role: &str) -> String {
    let words = ["token", "add", name, "--role", role, "--file", "tokens"];
    folder.run(&words).stdout.trim().to_string()
}

#[test]
fn a_lock_that_is_taken_appears_and_disappears_when_it_is_given_back() {
    let (service, http) = group(1, &[]);
    let browser = look(&http, "locks");
    shows(&browser, "Nobody holds a lock", true);
    let lock = held(&service, "deploy/web", "release 7");
    shows(&browser, "deploy/web", true);
    shows(&browser, "release 7", true);
    let waiting = service.client(0, &["lock"], &["--label", "second", "deploy/web", "--", "true"]);
    let queue =
        "return document.querySelector('tbody td[data-label=Waiting]')?.textContent === '1'";
    browser.wait_for("one waits", queue);
    shows(&browser, "held, wanted", true);
    go(&browser, &lock_view("deploy/web"));
    shows(&browser, "second", true);
    lock.signal("TERM");
    lock.ends();
    waiting.ends().quietly(0);
    shows(&browser, "Nobody is inside", true);
    go(&browser, "locks");
    shows(&browser, "deploy/web", false);
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn a_name_or_label_with_html_in_it_is_a_text() {
    let (service, http) = group(1, &[]);
    let hostile = "<img/src=x/onerror=alert(1)>&lt;\"'`";
    let label = "<script>document.title='broken'</script>";
    let _lock = held(&service, hostile, label);
    let browser = look(&http, "locks");
    for view in ["locks".to_string(), lock_view(hostile)] {
        go(&browser, &view);
        shows(&browser, hostile, true);
        shows(&browser, label, true);
    }
    assert_eq!(
        browser.run_script("return document.querySelectorAll('img, main script').length"),
        0
    );
    assert!(!browser.run_script("return document.title").as_str().unwrap().contains("broken"));
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn everything_is_reached_by_keyboard_and_has_a_name() {
    let (service, http) = group(1, &[]);
    let _lock = held(&service, "deploy", "me");
    let browser = look(&http, "locks");
    shows(&browser, "deploy", true);
    browser.run_script("document.activeElement.blur()");
    let focused = "const it = document.activeElement; return it.id || it.textContent";
    let mut seen = Vec::new();
    for _ in 0..20 {
        browser.press(keys::TAB);
        seen.push(browser.run_script(focused).as_str().unwrap_or_default().to_string());
    }
    for wanted in
        ["Skip to the content", "Members", "search", "order", "deploy", "Release by force"]
    {
        assert!(seen.iter().any(|it| it == wanted), "{wanted} is not among {seen:?}");
    }
    let nameless = "return [...document.querySelectorAll('a, button, input, select')]
        .filter(it => !it.hidden && !(it.textContent.trim() || it.getAttribute('aria-label') || it.labels?.length))
        .map(it => it.outerHTML)";
    assert_eq!(browser.run_script(nameless), json!([]));
    browser.run_script("document.querySelector('.skip').focus()");
    browser.press(keys::ENTER);
    let at = "return [document.activeElement.id, location.hash]";
    assert_eq!(browser.run_script(at), json!(["view", "#/locks"]));
    // A lock is opened and released by force with keys alone.
    browser.run_script("document.querySelector('tbody a').focus()");
    browser.press(keys::ENTER);
    shows(&browser, "Inside", true);
    browser.wait_for("its button is there", "return !!document.querySelector('button.force')");
    browser.run_script("document.querySelector('button.force').focus()");
    browser.press(keys::ENTER);
    browser.wait_for("it asks", "return document.querySelector('dialog')?.open === true");
    browser.press(keys::ESCAPE);
    browser.wait_for("it asks no more", "return document.querySelector('dialog') === null");
    browser.wait_for("the button is there", "return !!document.querySelector('button.force')");
    browser.run_script("document.querySelector('button.force').focus()");
    browser.press(keys::ENTER);
    browser.press("gone for good");
    browser.press(keys::ENTER);
    shows(&browser, "Nobody is inside", true);
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn views_fit_a_phone_and_a_wide_screen_in_light_and_dark() {
    let (service, http) = group(3, &[]);
    let _one =
        held(&service, "a-name-that-is-very-long/and-has/no-place/to-be-broken/0123456789", "me");
    let _two = held(&service, "deploy", "me");
    let _waiting = service.client(1, &["lock"], &["--label", "second", "deploy", "--", "true"]);
    service.client(0, &["lock"], &["quick", "--", "true"]).ends().quietly(0);
    // "ann:x" and "bob:x", as clients send them.
    for (who, path) in
        [("YW5uOng=", "art/map.psd"), ("Ym9iOng=", "art/a-hero-with-a-name/cape.psd")]
    {
        let asked = json!({"path": path, "note": "somewhat longer than a note is as a rule"});
        let locked =
            ask(&http, &format!("Basic {who}"), "POST", "/git/art/game/locks", Some(&asked));
        assert_eq!(locked.0, 201, "{locked:?}");
    }
    let browser = look(&http, "");
    browser.run_script("sessionStorage.setItem('catraca-git-name', 'ann')");
    // What shows that a view has something to show.
    let lock = lock_view("deploy");
    let views = [
        (
            "overview",
            "",
            "!!document.querySelector('.chart .bar') && !!document.querySelector('.line[d^=M]')",
        ),
        ("locks", "locks", "document.querySelectorAll('.locks tbody tr').length >= 2"),
        ("members", "members", "document.querySelectorAll('.picture .link.up').length === 3"),
        (
            "lock",
            &lock,
            "!!document.querySelector('.pointers .inside') && !!document.querySelector('.pointers .waiting')",
        ),
        ("git", "git", "!!document.querySelector('table.repositories a')"),
        (
            "repository",
            "git?repo=art%2Fgame",
            "document.querySelectorAll('table.files tbody tr').length === 2",
        ),
    ];
    for (width, dark) in [(400, false), (400, true), (1400, false), (1400, true)] {
        browser.resize(width, 900);
        browser.dark(dark);
        for (name, view, is_there) in views {
            go(&browser, view);
            browser
                .wait_for(&format!("{name} has something to show"), &format!("return {is_there}"));
            let wide = browser.run_script("return document.documentElement.scrollWidth");
            assert!(wide.as_u64().unwrap() <= u64::from(width), "{name}: {wide} at {width}");
            let back = browser.run_script("return getComputedStyle(document.body).backgroundColor");
            assert_eq!(back.as_str().unwrap().contains("rgb(20, 23, 28)"), dark, "{back}");
            support::keep_picture(
                &browser,
                &format!("{name}-{width}-{}", if dark { "dark" } else { "light" }),
            );
        }
    }
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn a_group_is_shown_with_its_members_links_and_views() {
    let (mut service, http) = group(3, &["--lease", "3s"]);
    let browser = look(&http, "members");
    shows(&browser, "3 of 3 in view", true);
    let links = "return document.querySelectorAll('.picture .link.up').length === 3";
    browser.wait_for("all links are up, those between others too", links);
    shows(&browser, "All 3 links of the group are up.", true);
    let picture = browser.run_script("return document.querySelector('.picture svg').ariaLabel");
    assert!(picture.as_str().unwrap().contains("b in the view, link up"), "{picture}");
    shows(&browser, "leads", true);
    let lost = service.nodes.pop().unwrap();
    lost.signal("KILL");
    shows(&browser, "did not renew", true);
    shows(&browser, "2 of 3 in view", true);
    let alarm = "return document.getElementById('alarm').textContent.includes(\"member 'c'\")";
    browser.wait_for("its loss is said on every view", alarm);
    go(&browser, "");
    shows(&browser, "member 'c' is not in the view", true);
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn a_page_asks_for_a_token_and_shows_no_more_than_it_is_good_for() {
    let folder = Folder::new();
    let (observer, root) =
        (token(&folder, "olga", "observe"), token(&folder, "root", "administer"));
    let [address, http] = <[String; 2]>::try_from(addresses(2)).unwrap();
    let own = ["node", "--listen", &address, "--http", &http, "--tokens", "tokens", "--data", "d"];
    let node = Process::start(folder.command(&own));
    node.says("listens at");
    let mut lock = folder.command(&[
        "lock",
        "--node",
        &address,
        "deploy",
        "--",
        "sh",
        "-c",
        "echo inside; exec sleep 1000",
    ]);
    lock.env("CATRACA_TOKEN", &root);
    let lock = Process::start(lock);
    lock.says("inside");

    let browser = Browser::start();
    browser.resize(1400, 900);
    browser.goto(&format!("http://{http}/#/locks"));
    let asks = "return document.activeElement.id === 'token'";
    browser.wait_for("it asks for a token", asks);
    browser.press("wrong");
    browser.press(keys::ENTER);
    browser.wait_for("it asks again", "return document.querySelector('form.token .bad') !== null");
    // That a request without a token was refused is the browser's own word.
    browser.console_messages();
    let enter = |token: &str| {
        browser.wait_for("it asks for a token", asks);
        browser.press(token);
        browser.press(keys::ENTER);
        browser.wait_for("the page is live", LIVE);
        shows(&browser, "deploy", true);
        browser.wait_for("its button is there", "return !!document.querySelector('button.force')");
    };
    enter(&observer);
    let kept = "return [localStorage.length, sessionStorage.length, document.cookie, location.href.includes('cat_')]";
    assert_eq!(browser.run_script(kept), json!([0, 1, "", false]));
    assert_eq!(browser.run_script("return document.querySelector('button.force').disabled"), true);
    shows_who(&browser, "olga may look");
    // The page is not what keeps it from that: the node does.
    let steal = "return fetch('/v1/force-release', { method: 'POST', body: JSON.stringify({ name: 'deploy' }),
        headers: { 'content-type': 'application/json', authorization: `Bearer ${sessionStorage.getItem('catraca-token')}` } })
        .then(async answer => [answer.status, (await answer.json()).code])";
    assert_eq!(browser.run_script(steal), json!([403, "wrong-role"]));
    browser.console_messages();

    browser.click("#who button");
    enter(&root);
    // Between the two it had none.
    browser.console_messages();
    shows_who(&browser, "root may administer");
    assert_eq!(browser.run_script("return document.querySelector('button.force').disabled"), false);
    browser.click("button.force");
    browser.press("on purpose");
    browser.press(keys::ENTER);
    shows(&browser, "Nobody holds a lock", true);
    assert_eq!(browser.console_messages(), [""; 0]);

    // A token that is revoked is not shown anything more.
    folder.run(&["token", "revoke", "root", "--file", "tokens"]).quietly(0);
    node.signal("HUP");
    browser
        .wait_for("it asks for a token again", "return document.getElementById('token') !== null");
}

#[track_caller]
fn shows_who(browser: &Browser, who: &str) {
    let script = format!("return document.getElementById('who').textContent.startsWith('{who}')");
    browser.wait_for(who, &script);
}

#[test]
fn a_page_says_that_its_node_is_gone_and_goes_on_when_it_is_back() {
    let (mut service, http) = group(1, &["--lease", "2s"]);
    let browser = look(&http, "locks");
    let node = service.nodes.pop().unwrap();
    node.signal("KILL");
    node.ends();
    let is_lost = "return document.getElementById('live').dataset.state === 'lost'";
    browser.wait_for("the page says so", is_lost);
    let words = browser.run_script("return document.getElementById('live').textContent");
    assert!(words.as_str().unwrap().starts_with("Not live"), "{words}");
    service.nodes.push(service.node(0, &["--lease", "2s", "--http", &http]));
    service.is_whole();
    browser.wait_for("the page is live again", LIVE);
    let _lock = held(&service, "after", "me");
    shows(&browser, "after", true);
}

#[test]
fn a_list_is_searched_chosen_and_ordered_and_has_pages() {
    let (service, http) = group(1, &[]);
    let names: Vec<String> = (0..120).map(|number| format!("job/{number:03}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    for part in all.chunks(60) {
        let words = [&["--durable", "--owner", "ann"], part].concat();
        service.client(0, &["lock"], &words).ends().quietly(0);
    }
    let _other = held(&service, "other", "somebody");
    let browser = look(&http, "locks");
    let rows =
        "return [...document.querySelectorAll('tbody tr')].filter(it => it.isConnected).length";
    browser.wait_for("a page is full", &format!("{rows} === 50"));
    shows(&browser, "Page 1 of 3", true);
    browser.click(".pages button:last-child");
    browser.wait_for(
        "the second page",
        "return document.querySelector('tbody a').textContent === 'job/050'",
    );
    browser.click("#search");
    browser.press("job/11");
    browser.wait_for("ten begin so", &format!("{rows} === 10"));
    assert!(
        browser.run_script("return location.hash").as_str().unwrap().contains("search=job%2F11")
    );
    let choose = |id: &str, value: &str| {
        let script = "const it = document.getElementById(ID); it.value = VALUE; it.dispatchEvent(new Event('change'))";
        browser.run_script(
            &script
                .replace("ID", &json!(id).to_string())
                .replace("VALUE", &json!(value).to_string()),
        );
    };
    choose("where", "contains");
    browser.run_script("document.getElementById('search').value = '19'; document.getElementById('search').form.requestSubmit()");
    browser.wait_for("two contain that", &format!("{rows} === 2"));
    choose("where", "holder");
    browser.run_script("document.getElementById('search').value = 'SOMEBODY'; document.getElementById('search').form.requestSubmit()");
    browser.wait_for("one is held by them", &format!("{rows} === 1"));
    browser.run_script("document.getElementById('search').value = ''; document.getElementById('search').form.requestSubmit()");
    choose("choice", "durable");
    shows(&browser, "120 locks", true);
    choose("choice", "waited");
    shows(&browser, "No lock is like that.", true);
    choose("choice", "all");
    choose("order", "held");
    let first: Value = browser.run_script("return document.querySelector('tbody a').textContent");
    assert!(first.as_str().unwrap().starts_with("job/"), "{first}");
    assert_eq!(browser.console_messages(), [""; 0]);
}

/// What the page's own list does with parts and changes, told by a node that is made up.
const MODEL: &str = r#"
    return import('/assets/model.js').then(async ({ Model, compareNames, first }) => {
        const holder = (name, fence) => ({ name, member: 'a', fence, label: 'l', held_ms: 1 });
        const lock = (name, fence) => ({ name, permits: 1, holders: [holder(name, fence)], queue: [] });
        const parts = { first: { locks: [lock('a', '1'), lock('c', '2')], next: 'second', silent: [] },
            second: { locks: [{ ...lock('c', '2'), holders: [], queue: [{ member: 'a', place: 1, label: 'w', waited_ms: 1 }] },
                lock('e', '3')], next: null, silent: ['b'] } };
        const api = { json: async path => parts[new URL(path, location).searchParams.get('cursor') ?? 'first'] };
        const model = new Model(api, () => {});
        const names = () => [...model.locks.values()].map(it => it.name + it.holders.length + it.queue.length).sort();
        const seen = [];
        model.want(1);
        await model.reading;
        seen.push(names(), model.isWhole);
        const enter = (name, fence) => ({ name, permits: 1, entered: [{ member: 'a', label: 'n', fence, ago_ms: 5 }] });
        // What was not read is not wanted yet; what is between is.
        model.apply({ locks: [enter('b', '7'), enter('d', '8')] });
        seen.push(names());
        model.want(100);
        await model.reading;
        seen.push(names(), model.isWhole, model.silent);
        model.apply({ locks: [{ name: 'a', permits: 1, left: ['1'] }, { name: 'c', permits: 1, waited: [{ member: 'a', label: 'w' }] },
            enter('z', '9'), { name: 'unknown', permits: 1, left: ['4'] }] });
        seen.push(names());
        seen.push(['\u{10ffff}', '\uffff', 'b', 'a', 'aa', '\u{10000}'].sort(compareNames).map(it => it.codePointAt(0)));
        const numbers = Array.from({ length: 1000 }, (_, index) => (index * 7919) % 1000);
        seen.push(first(numbers, it => it % 2 === 0, (one, two) => one - two, 3));
        return seen;
    })"#;

#[test]
fn a_page_keeps_its_list_as_a_node_tells_of_it() {
    let (_service, http) = group(1, &[]);
    let browser = look(&http, "");
    let expected = json!([
        ["a10", "c10"],
        false,
        ["a10", "b10", "c10"],
        ["a10", "b10", "c11", "e10"],
        true,
        ["b"],
        ["b10", "c10", "e10", "z10"],
        [0x61, 0x61, 0x62, 0xffff, 0x10000, 0x10ffff],
        {"best": [0, 2, 4], "total": 500},
    ]);
    assert_eq!(browser.run_script(MODEL), expected);
}

/// What the picture of the members makes of links that are told by a node that is made up.
const LINKS: &str = r#"
    return import('/assets/members.js').then(({ drawn, inWords, linksOf }) => {
        const member = (name, link) => ({ name, link, in_view: true, renewed_millis: 1 });
        const status = { members: [member('a', 'this node'), member('b', 'up'), member('c', 'refused'), member('d', 'up')],
            registry: null, lease_millis: 9 };
        const link = (from, to, up) => ({ from, to, up });
        const links = linksOf(status, { links: [link('b', 'a', true), link('b', 'd', true), link('d', 'b', false), link('b', 'c', false)] });
        const picture = drawn(status, links, false);
        const shown = [...picture.querySelectorAll('.link')].map(it => [it.dataset.from, it.dataset.to, it.classList[1]]);
        return [shown, inWords(links), picture.querySelectorAll('.link.one-way .sign').length,
            linksOf(status, null).map(it => it.state)];
    })"#;

#[test]
fn links_between_others_are_drawn_and_those_that_work_one_way_alone_are_marked() {
    let (_service, http) = group(1, &[]);
    let browser = look(&http, "");
    let shown = json!([
        ["c", "d", "unknown"],
        ["a", "b", "up"],
        ["a", "d", "up"],
        ["b", "c", "down"],
        ["a", "c", "refused"],
        ["b", "d", "one-way"],
    ]);
    let words = json!([
        "a and c refuse each other",
        "b and c do not reach each other",
        "b reaches d, but d does not reach b",
        "between c and d nobody has told",
    ]);
    let alone = json!(["up", "refused", "up", "unknown", "unknown", "unknown"]);
    assert_eq!(browser.run_script(LINKS), json!([shown, words, 1, alone]));
}
