//! Whether a command said what a document shows.
//!
//! A line `...` stands for any number of lines, and `...` within a line for any text. What differs from
//! run to run is the same to it: ids of holds, moments, numbers of milliseconds, and how wide columns are. What
//! the shell says of its own jobs, when it finds the time for it, is not looked at.

/// Whether `said` is what is shown.
pub(crate) fn is_as_shown(shown: &[String], said: &str) -> bool {
    let shown: Vec<String> = shown.iter().map(|line| normal(line)).collect();
    let said = said.trim_end().lines().filter(|line| !is_of_a_job(line));
    let said: Vec<String> = said.map(normal).collect();
    lines_match(&shown, &said)
}

/// As in `bash: line 35:    16 Killed                  catraca lock ...`.
fn is_of_a_job(line: &str) -> bool {
    let of_shell = line.strip_prefix("bash: line ").and_then(|rest| rest.split_once(": "));
    of_shell.is_some_and(|(_, job)| job.split_whitespace().nth(1) == Some("Killed"))
}

fn lines_match(shown: &[String], said: &[String]) -> bool {
    match (shown, said) {
        ([], said) => said.is_empty(),
        ([any, rest @ ..], said) if any.trim() == "..." => {
            (0..=said.len()).any(|skipped| lines_match(rest, &said[skipped..]))
        }
        ([line, rest @ ..], [first, others @ ..]) => {
            line_matches(line, first) && lines_match(rest, others)
        }
        (_, []) => false,
    }
}

fn line_matches(shown: &str, said: &str) -> bool {
    let mut parts: Vec<&str> = shown.split("...").collect();
    let last = parts.pop().unwrap_or("");
    let Some((first, between)) = parts.split_first() else { return said == last };
    let Some(mut rest) = said.strip_prefix(first) else { return false };
    for part in between {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A line with what differs from run to run replaced.
fn normal(line: &str) -> String {
    let mut text = String::new();
    // Columns are as wide as what is in them; so are the lines below their heads.
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.len() == 1 && line.bytes().all(|byte| byte == b'-') {
        return "---".to_string();
    }
    let line = words.join(" ");
    let mut rest = line.as_str();
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len()).max(first.len_utf8());
        let (token, others) = rest.split_at(length);
        let digits = token.strip_prefix(':').unwrap_or("x");
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        text.push_str(match token {
            id if is_id(id) => "<id>",
            moment if is_moment(moment) => "<moment>",
            _ if is_number && text.ends_with("_ms\"") => ":<ms>",
            other => other,
        });
        rest = others;
    }
    text
}

/// Characters of which ids, moments and numbers are made.
fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':')
}

/// 32 hexadecimal digits, as the id of a hold has.
fn is_id(token: &str) -> bool {
    token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// As in `2026-11-18T10:39:48.002Z`.
fn is_moment(token: &str) -> bool {
    let shape: String = token.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape.starts_with("0000-00-00T00:00:00") && shape.ends_with('Z')
}

#[cfg(test)]
fn shown(text: &str) -> Vec<String> {
    text.lines().map(str::to_string).collect()
}

#[test]
fn what_is_shown_is_compared_line_by_line() {
    assert!(is_as_shown(&shown("a\nb"), "a\nb\n"));
    assert!(is_as_shown(&shown("a  \nb"), "a\nb   \n\n"));
    assert!(!is_as_shown(&shown("a\nb"), "a\nb\nc\n"));
    assert!(!is_as_shown(&shown("a\nb"), "a\n"));
    assert!(!is_as_shown(&shown("a"), "ä\n"));
    assert!(is_as_shown(&shown("a    b\n-----"), "a  b\n---\n"));
    assert!(!is_as_shown(&shown("-----"), "--x--\n"));
    assert!(is_as_shown(&shown("naïve → ü"), "naïve → ü\n"));
}

#[test]
fn dots_stand_for_what_is_left_out() {
    assert!(is_as_shown(&shown("a\n...\nd"), "a\nb\nc\nd\n"));
    assert!(is_as_shown(&shown("a\n...\nd"), "a\nd\n"));
    assert!(!is_as_shown(&shown("a\n...\nd"), "a\nb\nc\n"));
    assert!(is_as_shown(&shown("took ... s, ... times"), "took 1.5 s, 7 times\n"));
    assert!(!is_as_shown(&shown("took ... s"), "took 1.5 ms!\n"));
    assert!(!is_as_shown(&shown("ab...ba"), "aba\n"));
    assert!(is_as_shown(&shown("42.00..84.00"), "42.00..84.00\n"));
    assert!(!is_as_shown(&shown("42.00..84.00"), "42.00..94.00\n"));
}

#[test]
fn ids_moments_and_milliseconds_differ_from_run_to_run() {
    let one = r#"{"id":"a2b574c3a36a0a8875041da216483f37","fence":"12","held_ms":402,"at":"2026-11-18T10:39:48.002Z"}"#;
    let other = r#"{"id":"3966be408fa8de94676749edb929fe33","fence":"12","held_ms":7,"at":"2027-01-02T00:00:00.999Z"}"#;
    assert!(is_as_shown(&shown(one), other));
    assert!(!is_as_shown(&shown(one), &other.replace("12", "13")));
}
