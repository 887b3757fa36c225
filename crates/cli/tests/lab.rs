//! The interactive lab: `catraca lab serve` as a real process, and its page in a real browser.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::browser::{Browser, keys};
use support::service::Process;
use support::{Folder, GENEROUS};

/// A lab that is served, and where.
struct Lab {
    process: Process,
    address: String,
    _folder: Folder,
}

impl Lab {
    fn start() -> Self {
        let folder = Folder::new();
        let process = Process::start(folder.command(&["lab", "serve", "--listen", "127.0.0.1:0"]));
        process.says("(Ctrl-C ends it)");
        let said = process.stdout();
        let address = said.split("http://").nth(1).unwrap().split('/').next().unwrap().to_string();
        Lab { process, address, _folder: folder }
    }

    /// Opens the page at a state, and waits until it shows it.
    fn open(&self, browser: &Browser, link: &str) {
        browser.goto("about:blank");
        browser.goto(&format!("http://{}/#{link}", self.address));
        settled(browser);
    }

    /// Sends bytes over a connection of its own and returns what comes back.
    fn say(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(GENEROUS)).unwrap();
        // The lab may have hung up already, which shows.
        stream.write_all(bytes).ok();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).ok();
        String::from_utf8(said).unwrap()
    }

    fn ask(&self, path: &str, question: &Value) -> (String, Value) {
        let said = self.say(question_at(path, &question.to_string()).as_bytes());
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_string(), serde_json::from_str(body).unwrap())
    }
}

fn question_at(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

/// Waits until the page has done all that it was asked for.
#[track_caller]
fn settled(browser: &Browser) {
    let done =
        "return document.body.dataset.waiting === '0' && !!document.querySelector('#choices h2')";
    browser.wait_for("the page has done all that was asked", done);
}

fn press(browser: &Browser, keys: &str) {
    browser.press(keys);
    settled(browser);
}

const LINK: &str = "return location.hash.slice(1)";
const STEP: &str = "return Number(document.body.dataset.step)";

#[test]
fn an_algorithm_is_stepped_to_an_entry_by_keyboard_alone() {
    let (lab, browser) = (Lab::start(), Browser::start());
    browser.resize(1400, 900);
    lab.open(&browser, "algorithm=naimi-trehel&nodes=3&requests=1");
    assert_eq!(browser.run_script(STEP), 0);
    // The applications can ask: node 1 does, then its request arrives, then the token.
    press(&browser, "2");
    assert_eq!(browser.run_script(LINK), "algorithm=naimi-trehel&nodes=3&requests=1&steps=a1");
    // Fast keys act on the state that they see.
    press(&browser, "11");
    let link = "algorithm=naimi-trehel&nodes=3&requests=1&steps=a1.m1-0.m0-1";
    assert_eq!(browser.run_script(LINK), link);
    let inside = "return document.querySelector('.node.inside').getAttribute('aria-label')";
    assert_eq!(browser.run_script(inside), "node 1, inside");
    let rule = "return document.querySelector('#rule pre').textContent";
    assert!(browser.run_script(rule).as_str().unwrap().contains("fn on_token("));

    press(&browser, keys::LEFT);
    assert_eq!(browser.run_script(STEP), 2);
    assert_eq!(browser.run_script("return document.querySelectorAll('.node.inside').length"), 0);
    press(&browser, "uu");
    assert_eq!(browser.run_script(STEP), 0);
    press(&browser, keys::END);
    assert_eq!(browser.run_script(LINK), link);
    press(&browser, keys::HOME);
    press(&browser, &keys::RIGHT.repeat(3));
    assert_eq!(browser.run_script(LINK), link);
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn a_link_reproduces_a_state_and_one_that_leads_nowhere_says_why() {
    let (lab, browser) = (Lab::start(), Browser::start());
    let link = "algorithm=maekawa&nodes=4&requests=1&steps=a0.a3.m0-1.m3-1.m0-2";
    lab.open(&browser, link);
    let shown = "return document.getElementById('nodes').textContent";
    let there = browser.run_script(shown);
    assert_eq!(browser.run_script(STEP), 5);
    browser.run_script("location.reload()");
    settled(&browser);
    assert_eq!((browser.run_script(LINK), browser.run_script(shown)), (json!(link), there));

    let problem = "return document.getElementById('problem').textContent";
    lab.open(&browser, "algorithm=naimi-trehel&nodes=2&steps=a1.l0");
    let said = browser.run_script(problem);
    assert!(said.as_str().unwrap().contains("Step 2 of the link, 'l0', cannot happen"), "{said}");
    assert_eq!(browser.run_script(STEP), 1);
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn a_link_that_leads_nowhere_is_opened_first_and_shows_what_is_wrong_and_the_form_alone() {
    let (lab, browser) = (Lab::start(), Browser::start());
    browser.goto(&format!("http://{}/#algorithm=evolving-helary", lab.address));
    let problem = "return document.getElementById('problem')?.textContent ?? ''";
    browser.wait_for(
        "it says why",
        "return document.getElementById('problem')?.hidden === false && document.getElementById('group').open",
    );
    let said = browser.run_script(problem);
    assert!(said.as_str().unwrap().contains("catraca graph run GRAPH"), "{said}");
    let seen = "return [...document.querySelectorAll('main.lab button, main.lab section, main.lab #diagram')]
        .filter(it => it.offsetParent && !it.closest('#group')).map(it => it.id || it.textContent)";
    assert_eq!(browser.run_script(seen), json!([]));
    // From there one goes on as from everywhere else.
    browser.run_script("document.querySelector('#group form').requestSubmit()");
    settled(&browser);
    assert_eq!(browser.run_script(problem), "");
    let shown = browser.run_script(seen);
    assert!(shown.as_array().unwrap().iter().any(|it| it == "diagram"), "{shown}");
    assert!(!shown.as_array().unwrap().iter().any(|it| it == "Next of this way"), "{shown}");
}

#[test]
fn a_mutant_is_broken_by_the_way_that_the_checker_shows() {
    let (lab, browser) = (Lab::start(), Browser::start());
    browser.resize(1400, 900);
    lab.open(&browser, "algorithm=lamport&mutant=no-tie-break&nodes=2&requests=1");
    press(&browser, "c");
    browser.wait_for("the checker has a way", "return !!document.querySelector('.follow-breach')");
    let said = browser.run_script("return document.getElementById('checker').innerText");
    assert!(said.as_str().unwrap().contains("mutual exclusion: nodes 0 and 1"), "{said}");
    let count = browser.run_script("return document.querySelectorAll('.way li').length");
    browser.click(".follow-breach");
    settled(&browser);
    press(&browser, &"n".repeat(count.as_u64().unwrap() as usize));
    assert_eq!(browser.run_script(STEP), count);
    let broken = browser.run_script("return document.querySelector('#step .broken').textContent");
    assert!(broken.as_str().unwrap().contains("mutual exclusion"), "{broken}");
    assert_eq!(browser.run_script("return document.querySelectorAll('.violation').length"), 1);
    let expected = browser.run_script("return document.getElementById('expected').innerText");
    assert!(expected.as_str().unwrap().contains("does nothing"), "{expected}");
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn a_correct_algorithm_is_said_to_be_safe_from_here_and_a_way_to_an_entry_is_followed() {
    let (lab, browser) = (Lab::start(), Browser::start());
    lab.open(&browser, "algorithm=ricart-agrawala&nodes=2");
    press(&browser, "c");
    browser.wait_for("it is safe", "return !!document.querySelector('#checker .holds')");
    let said = browser.run_script("return document.getElementById('checker').innerText");
    let said = said.as_str().unwrap();
    assert!(said.contains("Everything that can follow: 179 states"), "{said}");
    assert!(said.contains("node 1 can enter in 3 steps"), "{said}");
    browser.click(".entries li:nth-child(2) button");
    settled(&browser);
    press(&browser, "nnn");
    let inside = "return document.querySelector('.node.inside').getAttribute('aria-label')";
    assert_eq!(browser.run_script(inside), "node 1, inside");
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn the_next_step_is_predicted_and_the_answers_are_counted() {
    let (lab, browser) = (Lab::start(), Browser::start());
    lab.open(&browser, "algorithm=naimi-trehel&nodes=2&requests=1&predict=yes");
    // Node 1 asks: it sends a request to node 0, which is the first box of the table.
    browser.press("2");
    let asks = "return !!document.querySelector('#exercise input')";
    browser.wait_for("the page asks", asks);
    assert_eq!(browser.run_script(STEP), 0, "the outcome is hidden");
    browser.press(&format!("{} {}", keys::TAB, keys::ENTER));
    let verdict = "return document.querySelector('#exercise [role=status]')?.textContent ?? ''";
    let compared = "return !!document.querySelector('#exercise [role=status]')";
    browser.wait_for("it compares", compared);
    let said = browser.run_script(verdict);
    assert!(said.as_str().unwrap().starts_with("✓ Right"), "{said}");
    press(&browser, keys::ENTER);
    assert_eq!(browser.run_script(STEP), 1);
    // The request arrives; nobody is ticked, although the token leaves.
    browser.press("1");
    browser.wait_for("the page asks", &format!("{asks} && document.body.dataset.waiting === '1'"));
    // The focus is on a choice or on the first box; what counts is the form.
    browser.run_script("document.querySelector('#exercise form').requestSubmit()");
    let said = browser.run_script(verdict);
    assert!(said.as_str().unwrap().starts_with("✗ Not quite"), "{said}");
    assert!(said.as_str().unwrap().contains("1 of 2 right"), "{said}");
    press(&browser, keys::ENTER);
    assert_eq!(
        browser.run_script("return document.getElementById('score').textContent"),
        "1 of 2 right"
    );
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn a_message_is_delivered_by_a_click_on_it_and_a_column_goes_back_there() {
    let (lab, browser) = (Lab::start(), Browser::start());
    browser.resize(1400, 900);
    lab.open(&browser, "algorithm=naimi-trehel&nodes=2&requests=1&steps=a1");
    let click = "document.querySelector('[data-message] polygon').dispatchEvent(new MouseEvent('click', { bubbles: true }))";
    browser.run_script(click);
    settled(&browser);
    let link = browser.run_script(LINK);
    assert!(link.as_str().unwrap().ends_with("steps=a1.m1-0"), "{link}");
    let circle = "const box = document.querySelector('.event circle').getBoundingClientRect();\
                  document.querySelector('#diagram svg').dispatchEvent(new MouseEvent('click',\
                  { bubbles: true, clientX: box.left + box.width / 2, clientY: box.top }))";
    browser.run_script(circle);
    settled(&browser);
    assert_eq!(browser.run_script(STEP), 1);
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn another_group_is_chosen_in_the_form_and_a_mutant_comes_with_the_group_that_catches_it() {
    let (lab, browser) = (Lab::start(), Browser::start());
    lab.open(&browser, "algorithm=naimi-trehel");
    press(&browser, "g");
    browser.run_script(
        "const form = document.querySelector('#group form').elements;\
         form.algorithm.value = 'raymond-k'; form.algorithm.dispatchEvent(new Event('change'));\
         form.mutant.selectedIndex = 1; form.mutant.dispatchEvent(new Event('change'));",
    );
    browser.click("#group form button");
    settled(&browser);
    let link = browser.run_script(LINK);
    let link = link.as_str().unwrap();
    assert!(link.starts_with("algorithm=raymond-k") && link.contains("mutant="), "{link}");
    assert_eq!(browser.run_script("return document.getElementById('problem').hidden"), true);
    assert!(
        browser.run_script("return document.querySelectorAll('.choice').length").as_u64() > Some(0)
    );
    assert_eq!(browser.console_messages(), [""; 0]);
}

/// Sets a field of the form, as somebody who types into it.
fn fill(browser: &Browser, name: &str, value: &str) {
    browser.run_script(&format!(
        "const field = document.querySelector('#group form').elements.namedItem('{name}');\
         field.value = '{value}';\
         for (const kind of ['input', 'change']) field.dispatchEvent(new Event(kind, {{ bubbles: true }}));"
    ));
}

fn submit(browser: &Browser) {
    browser.run_script("document.querySelector('#group form').requestSubmit()");
    settled(browser);
}

#[test]
fn the_form_can_take_back_all_that_a_link_has_said() {
    let (lab, browser) = (Lab::start(), Browser::start());
    let problem = "return document.getElementById('problem').textContent";
    let nodes =
        "return [document.querySelector('[name=nodes]').disabled, document.title.split(':')[0]]";
    // Clusters say how many nodes there are, until they are left out.
    lab.open(&browser, "algorithm=bertier&clusters=3,2");
    assert_eq!(browser.run_script(nodes), json!([true, "bertier on 5 nodes"]));
    fill(&browser, "clusters", "2,2");
    submit(&browser);
    assert_eq!(browser.run_script(nodes), json!([true, "bertier on 4 nodes"]));
    fill(&browser, "clusters", "");
    submit(&browser);
    assert_eq!(browser.run_script(nodes), json!([false, "bertier on 3 nodes"]));
    // What was said of sets is not said of an algorithm without.
    lab.open(&browser, "algorithm=bouabdallah-laforest&resources=3&claims=0,1|1,2|0,2&predict=yes");
    fill(&browser, "algorithm", "lamport");
    submit(&browser);
    assert_eq!(browser.run_script(problem), "");
    let link = browser.run_script(LINK);
    let link = link.as_str().unwrap();
    assert!(link.starts_with("algorithm=lamport&nodes=3") && !link.contains("claims"), "{link}");
    assert!(link.contains("predict=yes"), "the exercise goes on: {link}");
    // What is refused stays in the form, and is mended there.
    lab.open(&browser, "algorithm=bouabdallah-laforest&resources=3");
    fill(&browser, "claims", "0,7");
    submit(&browser);
    let said = browser.run_script(problem);
    assert!(said.as_str().unwrap().contains("there is no resource 7"), "{said}");
    let is_open = "return document.getElementById('group').open";
    fill(&browser, "claims", "0,2");
    submit(&browser);
    assert_eq!(browser.run_script(problem), "");
    assert_eq!(browser.run_script(is_open), false);
    // A link that asks for what its algorithm does not take shows it too.
    browser.goto("about:blank");
    browser.goto(&format!("http://{}/#algorithm=lamport&k=2", lab.address));
    browser.wait_for(
        "it says why",
        "return document.getElementById('problem')?.hidden === false && document.getElementById('group').open",
    );
    assert!(browser.run_script(problem).as_str().unwrap().contains("takes no k"));
    fill(&browser, "k", "");
    submit(&browser);
    assert_eq!(browser.run_script(problem), "");
    let evolving = "return document.querySelector('#group .evolving').textContent";
    let said = browser.run_script(evolving);
    assert!(said.as_str().unwrap().contains("'catraca graph run GRAPH --algorithm"), "{said}");
}

#[test]
fn the_page_fits_a_phone_and_a_wide_screen_in_light_and_dark() {
    let (lab, browser) = (Lab::start(), Browser::start());
    let states = [
        ("entry", "algorithm=maekawa&nodes=4&requests=1&steps=a0.a3.m0-1.m3-1.m0-2.m3-2"),
        (
            "broken",
            "algorithm=lamport&mutant=no-tie-break&nodes=2&requests=1&steps=a0.a1.m0-1.m1-0.m1-0.m0-1",
        ),
    ];
    for (width, dark) in [(400, false), (400, true), (1400, false), (1400, true)] {
        browser.resize(width, 1000);
        browser.dark(dark);
        for (name, link) in states {
            lab.open(&browser, link);
            press(&browser, "c");
            browser.wait_for("the checker answers", "return !!document.querySelector('.entries')");
            let wide = browser.run_script("return document.documentElement.scrollWidth");
            assert!(wide.as_u64().unwrap() <= u64::from(width), "{wide} at {width}");
            let back = browser.run_script("return getComputedStyle(document.body).backgroundColor");
            assert_eq!(back.as_str().unwrap().contains("rgb(21, 24, 28)"), dark, "{back}");
            assert_eq!(browser.console_messages(), [""; 0]);
            let shade = if dark { "dark" } else { "light" };
            support::keep_picture(&browser, &format!("lab-{name}-{width}-{shade}"));
        }
    }
}

#[test]
fn a_port_that_is_taken_and_a_wrong_address_are_refused_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = Folder::new();
    folder.run(&["lab", "serve", "--listen", &address]).refused(&[
        &format!("cannot listen at {address}: address in use"),
        "take another port, or 0 for a free one",
    ]);
    let wrong = folder.run(&["lab", "serve", "--listen", "localhost"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("'localhost' is no address and port"), "{}", wrong.stderr);
}

#[test]
fn ctrl_c_and_sigterm_end_it_within_a_second_whatever_it_does() {
    for signal in ["INT", "TERM"] {
        let lab = Lab::start();
        // Somebody is connected and says nothing, and the checker has much to do.
        let idle = TcpStream::connect(&lab.address).unwrap();
        let mut asking = TcpStream::connect(&lab.address).unwrap();
        let question = json!({ "link": "algorithm=maekawa&nodes=7&requests=9", "states": 2_000_000, "seconds": 60 });
        asking.write_all(question_at("/explore", &question.to_string()).as_bytes()).unwrap();
        assert!(lab.say(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").contains("200 OK"));
        let begin = Instant::now();
        lab.process.signal(signal);
        let ended = lab.process.ends();
        assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{signal}");
        drop(idle);
    }
}

#[test]
fn a_site_that_leads_to_this_machine_and_a_page_of_a_site_are_turned_away() {
    let lab = Lab::start();
    let host = |host: &str| lab.say(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    assert!(host("example.com").starts_with("HTTP/1.1 421"), "{}", host("example.com"));
    assert!(host("127.0.0.1.example.com:80").starts_with("HTTP/1.1 421"));
    assert!(host("localhost").starts_with("HTTP/1.1 200"));
    assert!(lab.say(b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400"));
    let body = json!({ "link": "algorithm=lamport" }).to_string();
    let site =
        question_at("/state", &body).replace("\r\n\r\n", "\r\nSec-Fetch-Site: cross-site\r\n\r\n");
    assert!(lab.say(site.as_bytes()).starts_with("HTTP/1.1 403"));
    let plain = question_at("/state", &body).replace("application/json", "text/plain");
    assert!(lab.say(plain.as_bytes()).starts_with("HTTP/1.1 415"));
    let head = host("localhost");
    let head = head.split("\r\n\r\n").next().unwrap();
    assert!(head.contains("script-src 'self'") && !head.contains("unsafe"), "{head}");
    assert!(head.contains("frame-ancestors 'none'") && head.contains("nosniff"), "{head}");
}

#[test]
fn hostile_requests_are_answered_in_few_words_and_the_lab_goes_on() {
    let lab = Lab::start();
    let huge = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(100_000));
    let said = lab.say(huge.as_bytes());
    assert!(
        said.is_empty() || said.starts_with("HTTP/1.1 414") || said.starts_with("HTTP/1.1 431"),
        "{said}"
    );
    let long = question_at("/state", &"x".repeat(200_000));
    assert!(lab.say(long.as_bytes()).starts_with("HTTP/1.1 413"));
    for (link, text) in [
        ("", "algorithm"),
        ("algorithm=lamport&nodes=4000000000", "up to 12 nodes"),
        ("algorithm=lamport&steps=zz", "is no step"),
        ("algorithm=bertier&clusters=1000000x4294967295", "clusters"),
    ] {
        let (status, answer) = lab.ask("/state", &json!({ "link": link }));
        assert!(status.contains("400"), "{link}: {status}");
        assert!(answer["error"].as_str().unwrap().contains(text), "{link}: {answer}");
        assert!(answer.to_string().len() < 400, "{answer}");
    }
    let steps = "a0.".repeat(2_001);
    let (_, answer) =
        lab.ask("/state", &json!({ "link": format!("algorithm=lamport&steps={steps}") }));
    assert!(answer["error"].as_str().unwrap().contains("2000 steps"));
    for bytes in ["", "\0\0\0", "GET\r\n\r\n", "POST /state HTTP/1.1\r\nHost: localhost\r\n\r\n"] {
        lab.say(bytes.as_bytes());
    }
    assert!(lab.say(b"DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert!(lab.say(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 404"));
    let (status, _) = lab.ask("/state", &json!({ "link": "algorithm=lamport" }));
    assert!(status.contains("200"), "{status}");
}

#[test]
fn a_thousand_questions_at_once_are_all_answered_with_bounded_memory() {
    let lab = Lab::start();
    let link = "algorithm=ricart-agrawala&nodes=3&steps=a0.a1.a2.m0-1.m0-2";
    let question = question_at("/state", &json!({ "link": link }).to_string());
    let askers: Vec<_> = (0..1_000)
        .map(|_| {
            // A full backlog lets connecting wait; it is not refused.
            let mut stream = TcpStream::connect(&lab.address).unwrap();
            stream.set_read_timeout(Some(GENEROUS)).unwrap();
            stream.write_all(question.as_bytes()).unwrap();
            stream
        })
        .collect();
    for mut stream in askers {
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    }
    let memory = std::fs::read_to_string(format!("/proc/{}/status", lab.process.id())).unwrap();
    let peak = memory.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
    assert!(peak < 300 << 10, "{peak} KiB");
}

#[test]
fn a_question_that_is_taken_back_makes_way_for_the_next_one() {
    let lab = Lab::start();
    let long = json!({ "link": "algorithm=maekawa&nodes=7&requests=9", "states": 2_000_000, "seconds": 60 });
    let mut asking = TcpStream::connect(&lab.address).unwrap();
    asking.write_all(question_at("/explore", &long.to_string()).as_bytes()).unwrap();
    let short = json!({ "link": "algorithm=ricart-agrawala&nodes=2" });
    // While it goes on, others are told so.
    let begin = Instant::now();
    loop {
        let (status, answer) = lab.ask("/explore", &short);
        if status.contains("503") {
            assert!(answer["error"].as_str().unwrap().contains("busy"), "{answer}");
            break;
        }
        assert!(begin.elapsed() < GENEROUS, "the long question was never looked at");
    }
    drop(asking);
    let begin = Instant::now();
    loop {
        let (status, answer) = lab.ask("/explore", &short);
        if status.contains("200") {
            assert_eq!(answer["states"], 179);
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "{status}");
    }
}
