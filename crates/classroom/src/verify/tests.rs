use super::*;

fn id(text: &str) -> ProcessId {
    text.parse().unwrap()
}

fn at(micros: u32) -> String {
    format!("2025-07-17 01:28:{:02}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// A log of what is said in words, one microsecond after the other from 10 on:
/// 'request 1, grant 1, release 1'.
fn log(words: &str) -> String {
    let mut text = String::new();
    for (time, word) in (10..).zip(words.split(", ")) {
        let (kind, name) = word.split_once(' ').unwrap();
        let (kind, said) = match kind {
            "request" => (Kind::Request, "RECEBIDO"),
            "grant" => (Kind::Grant, "ENVIADO"),
            "release" => (Kind::Release, "RECEBIDO"),
            other => panic!("{other}"),
        };
        let message = Message::new(kind, id(name), 0);
        let digit = char::from(kind.digit());
        text.push_str(&format!("{} | {digit} | {name} | {said}: {message}\n", at(time)));
    }
    text
}

/// A result file of '1 at 11, 2 at 14'.
fn result(words: &str) -> String {
    let line = |word: &str| {
        let (name, time) = word.split_once(" at ").unwrap();
        format!("{name} {}\n", at(time.parse().unwrap()))
    };
    words.split(", ").filter(|word| !word.is_empty()).map(line).collect()
}

const LOG: &str =
    "request 1, grant 1, request 2, request 3, release 1, grant 2, release 2, grant 3, release 3";
const RESULT: &str = "1 at 11, 2 at 16, 3 at 17";

fn verified(log: &str, result: &str) -> Result<Account, Defect> {
    let processes = ["1", "2", "3"].map(id).to_vec();
    verify(log, result, &Expected { processes, rounds: 1, hold: Duration::ZERO })
}

/// A right run in which `from` was replaced by `to` has this defect.
#[track_caller]
fn finds(which: &str, from: &str, to: &str, defect: Defect) {
    let (mut log_words, mut result_words) = (LOG.to_string(), RESULT.to_string());
    let words = if which == "log" { &mut log_words } else { &mut result_words };
    assert!(words.contains(from), "{words}");
    *words = words.replacen(from, to, 1);
    assert_eq!(verified(&log(&log_words), &result(&result_words)), Err(defect));
}

#[test]
fn a_right_run_is_accounted_for() {
    let micros = Duration::from_micros;
    let share = |name, waited| {
        let waited = micros(waited);
        Share { id: id(name), entries: 1, waited, longest: waited }
    };
    let shares = vec![share("1", 1), share("2", 3), share("3", 4)];
    let account = Account { total: micros(8), shares };
    assert_eq!(verified(&log(LOG), &result(RESULT)), Ok(account));
}

#[test]
fn a_grant_while_another_is_inside_is_found() {
    let defect = Defect::GrantedTwice { number: 5, id: id("2"), holder: id("1") };
    finds("log", "release 1, grant 2", "grant 2, release 1", defect);
}

#[test]
fn overlapping_entries_are_found() {
    finds("result", "2 at 16", "2 at 13", Defect::Overlap { number: 2, id: id("2") });
    finds("result", "3 at 17", "3 at 15", Defect::Overlap { number: 3, id: id("3") });
}

#[test]
fn a_grant_out_of_the_order_of_requests_is_found() {
    let swapped = "grant 3, release 3, grant 2, release 2";
    let defect = Defect::Overtaken { number: 6, id: id("3"), first: id("2") };
    finds("log", "grant 2, release 2, grant 3, release 3", swapped, defect);
}

#[test]
fn a_swapped_order_of_entries_is_found() {
    let defect = Defect::Mismatch { number: 2, granted: Some(id("2")), entered: Some(id("3")) };
    finds("result", "2 at 16, 3 at 17", "3 at 16, 2 at 17", defect);
}

#[test]
fn a_missing_entry_and_one_too_many_are_found() {
    let defect = Defect::Mismatch { number: 3, granted: Some(id("3")), entered: None };
    finds("result", ", 3 at 17", "", defect);
    let defect = Defect::Mismatch { number: 4, granted: None, entered: Some(id("1")) };
    finds("result", "3 at 17", "3 at 17, 1 at 19", defect);
    let defect = Defect::Mismatch { number: 1, granted: Some(id("1")), entered: Some(id("2")) };
    finds("result", "1 at 11, ", "", defect);
}

#[test]
fn entries_before_their_grant_or_after_their_release_are_found() {
    finds("result", "1 at 11", "1 at 10", Defect::BeforeGrant { number: 1, id: id("1") });
    finds("result", "1 at 11", "1 at 15", Defect::AfterRelease { number: 1, id: id("1") });
}

#[test]
fn messages_out_of_place_are_found() {
    let out = |number, kind, name| {
        let message = Message::new(kind, id(name), 0);
        Defect::OutOfPlace { number, message }
    };
    finds("log", "release 1", "release 3", out(5, Kind::Release, "3"));
    finds("log", "request 3", "request 2", out(4, Kind::Request, "2"));
    finds("log", "request 1", "grant 1", out(1, Kind::Grant, "1"));
    finds("log", ", release 3", "", Defect::Unfinished { id: id("3") });
    finds("log", ", grant 3, release 3", "", Defect::Unfinished { id: id("3") });
}

#[test]
fn wrong_counts_are_found() {
    let words = "request 1, grant 1, release 1, request 2, grant 2, release 2";
    let defect = Defect::Rounds { id: id("3"), entries: 0, rounds: 1 };
    assert_eq!(verified(&log(words), &result("1 at 11, 2 at 14")), Err(defect));
    let twice = format!("{LOG}, request 2, grant 2, release 2");
    let defect = Defect::Rounds { id: id("2"), entries: 2, rounds: 1 };
    assert_eq!(verified(&log(&twice), &result(&format!("{RESULT}, 2 at 20"))), Err(defect));
    let stranger = format!("{LOG}, request 9, grant 9, release 9");
    let defect = Defect::Stranger { id: id("9") };
    assert_eq!(verified(&log(&stranger), &result(&format!("{RESULT}, 9 at 20"))), Err(defect));
    let defect = Defect::Rounds { id: id("1"), entries: 0, rounds: 1 };
    assert_eq!(verified("", ""), Err(defect));
}

#[test]
fn entries_closer_than_the_hold_are_found() {
    let expect = |micros| Expected {
        processes: ["1", "2", "3"].map(id).to_vec(),
        rounds: 1,
        hold: Duration::from_micros(micros),
    };
    let check = |micros| verify(&log(LOG), &result(RESULT), &expect(micros));
    assert!(check(1).is_ok());
    let (apart, hold) = (Duration::from_micros(1), Duration::from_micros(2));
    assert_eq!(check(2), Err(Defect::TooClose { number: 3, id: id("3"), apart, hold }));
}

#[test]
fn lines_that_are_not_in_the_format_are_found() {
    let (right, entries) = (log(LOG), result(RESULT));
    assert_eq!(verified(&format!("{right}x\n"), &entries), Err(Defect::NoLine { number: 10 }));
    assert_eq!(verified(&right, &format!("\n{entries}")), Err(Defect::NoEntry { number: 1 }));
    let closed = format!("{} | - | 3 | CLOSED: why\n{right}", at(9));
    let defect = Defect::Closed { number: 1, who: "3".to_string(), why: "why".to_string() };
    assert_eq!(verified(&closed, &entries), Err(defect));
}

/// The first grant of the two excerpts was sent at 30.120578, and its entry was at 30.120577: S3
/// writes the line of the log after it has sent the message. Reference: S3, section 3.
#[test]
fn paper_the_excerpts_do_not_show_that_an_entry_follows_its_grant() {
    let log = "\
2025-07-17 01:28:30.119990 | 1 | 76 | RECEBIDO: 1|76|89820
2025-07-17 01:28:30.120578 | 2 | 76 | ENVIADO: 2|76|45299
2025-07-17 01:28:30.124454 | 1 | 13 | RECEBIDO: 1|13|90201
2025-07-17 01:28:30.125977 | 1 | 54 | RECEBIDO: 1|54|27639
2025-07-17 01:28:30.133501 | 1 | 23 | RECEBIDO: 1|23|58900
2025-07-17 01:28:30.136662 | 1 | 16 | RECEBIDO: 1|16|23053
2025-07-17 01:28:31.826115 | 3 | 76 | RECEBIDO: 3|76|47286
2025-07-17 01:28:31.827065 | 2 | 13 | ENVIADO: 2|13|26429
2025-07-17 01:28:32.984513 | 1 | 76 | RECEBIDO: 1|76|04941
";
    assert_eq!(stays(log).unwrap_err(), Defect::Unfinished { id: id("13") });
    let whole: String =
        log.split_inclusive('\n').filter(|line| line.contains("| 76 |")).take(3).collect();
    let entry = "76 2025-07-17 01:28:30.120577\n";
    let hold = Duration::from_secs(2);
    let expected = Expected { processes: vec![id("76")], rounds: 1, hold };
    let defect = Defect::BeforeGrant { number: 1, id: id("76") };
    assert_eq!(verify(&whole, entry, &expected), Err(defect));
}

/// 'espera 2 segundos', yet the second entry of the excerpt is 1.71 s after the first.
/// Reference: S3, sections 2 and 3.
#[test]
fn paper_the_excerpt_of_results_does_not_hold_for_two_seconds() {
    let result = "\
76 2025-07-17 01:28:30.120577
13 2025-07-17 01:28:31.827072
";
    let (apart, hold) = (Duration::from_micros(1_706_495), Duration::from_secs(2));
    let defect = Defect::TooClose { number: 2, id: id("13"), apart, hold };
    assert_eq!(apart_of(result, hold), Err(defect));
}

fn apart_of(result: &str, hold: Duration) -> Result<(), Defect> {
    apart(&entries(result)?, hold)
}
