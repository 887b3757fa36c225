//! What an algorithm does on each kind of input: the handlers, out of the text of its own source file.
//!
//! The text is that of the code that runs. Sources are formatted, so a function ends at the first closing
//! brace below its first line's place.

use std::collections::BTreeMap;

use serde::Serialize;

/// A handler, and what the message that it handles says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Rule {
    /// What the message means, where the input is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) says: Option<String>,
    /// The function that does the work, with the comment above it.
    pub(crate) code: String,
    /// Of a message, what calls it, where that is another function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) within: Option<String>,
}

/// Handlers by kind of input: `request`, `release`, `timer`, `suspect`, `trust`, `start`, and `message` with
/// the kind after it, as in `message token`.
pub(crate) type Rules = BTreeMap<String, Rule>;

const INPUTS: &[&str] = &["start", "request", "release", "timer", "suspect", "trust"];

/// The rules in the source file of an algorithm with messages of these kinds.
pub(crate) fn rules(source: &str, kinds: &[&str]) -> Rules {
    let lines: Vec<&str> = source.lines().collect();
    let mut rules = Rules::new();
    for input in INPUTS {
        if let Some(code) = function(&lines, &format!("on_{input}")) {
            rules.insert((*input).to_string(), Rule { says: None, code, within: None });
        }
    }
    let Some(on_message) = function(&lines, "on_message") else { return rules };
    for kind in kinds {
        let called = arm(&on_message, kind).and_then(|arm| called(&lines, &arm));
        let (code, within) = match called {
            Some(called) => (called, Some(on_message.clone())),
            None => (on_message.clone(), None),
        };
        let rule = Rule { says: meaning(&lines, kind), code, within };
        rules.insert(format!("message {kind}"), rule);
    }
    rules
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The first function of this name, with the comment above it, moved to the left.
fn function(lines: &[&str], name: &str) -> Option<String> {
    let begins = |line: &&str| {
        let line = line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        line.strip_prefix("fn ")
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with('(') || rest.starts_with('<'))
    };
    let first = lines.iter().position(begins)?;
    let end = format!("{}}}", " ".repeat(indent(lines[first])));
    let last = first + lines[first..].iter().position(|line| *line == end)?;
    let is_comment = |line: &&&str| line.trim_start().starts_with("///");
    let comments = lines[..first].iter().rev().take_while(is_comment).count();
    Some(moved_left(&lines[first - comments..=last]))
}

fn moved_left(lines: &[&str]) -> String {
    let by = lines.iter().filter(|line| !line.is_empty()).map(|line| indent(line)).min();
    let moved: Vec<&str> =
        lines.iter().map(|line| line.get(by.unwrap_or(0)..).unwrap_or_default()).collect();
    moved.join("\n")
}

/// `InqAck1` and `inq-ack1` are the same.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|it| it.to_ascii_lowercase()).collect()
}

/// The arm of a handler of messages that handles this kind, if it is one line.
fn arm(on_message: &str, kind: &str) -> Option<String> {
    let is_of_kind = |line: &&str| {
        let variant = line.trim_start().strip_prefix("Msg::").filter(|_| line.contains("=> "));
        let name = variant.and_then(|rest| rest.split(|it: char| !it.is_alphanumeric()).next());
        name.is_some_and(|name| plain(name) == plain(kind))
    };
    // What is checked of all messages comes before what is done with each.
    on_message.lines().rfind(is_of_kind).map(str::to_string)
}

/// The function that does the work of an arm: the one that it calls on itself.
fn called(lines: &[&str], arm: &str) -> Option<String> {
    let rest = arm.split_once("=> self.")?.1;
    function(lines, rest.split('(').next()?)
}

/// What a line says, if it is a comment on what follows.
fn comment<'a>(line: &&'a str) -> Option<&'a str> {
    line.trim_start().strip_prefix("///").map(str::trim)
}

/// The comment above a kind of message where the messages are declared.
fn meaning(lines: &[&str], kind: &str) -> Option<String> {
    let first = lines.iter().position(|line| line.ends_with("enum Msg {"))?;
    let last = first + lines[first..].iter().position(|line| *line == "}")?;
    let declared = &lines[first..last];
    let is_kind = |line: &&str| {
        let name = line.strip_prefix("    ").unwrap_or_default();
        name.split(|it: char| !it.is_alphanumeric())
            .next()
            .is_some_and(|it| plain(it) == plain(kind))
    };
    let at = declared.iter().position(is_kind)?;
    let mut words: Vec<&str> = declared[..at].iter().rev().map_while(comment).collect();
    words.reverse();
    if words.is_empty() { None } else { Some(words.join(" ")) }
}

#[cfg(test)]
mod tests {
    use catraca_algorithms::registry::ENTRIES;
    use catraca_algorithms::{Spec, Visitor};
    use catraca_core::{Algorithm, Message};

    use super::*;

    struct Kinds;

    impl Visitor for Kinds {
        type Output = &'static [&'static str];
        fn visit<A: Algorithm>(self, _config: A::Config) -> Self::Output {
            A::Message::KINDS
        }
    }

    #[test]
    fn every_algorithm_has_a_rule_for_asking_leaving_and_each_kind_of_message() {
        for entry in ENTRIES {
            let kinds = Spec::new(entry.name, 3).visit(Kinds).unwrap();
            let rules = rules(entry.file, kinds);
            let of =
                |input: &str| rules.get(input).unwrap_or_else(|| panic!("{}: {input}", entry.name));
            assert!(of("request").code.contains("fn on_request("), "{}", entry.name);
            assert!(of("release").code.contains("fn on_release("), "{}", entry.name);
            for kind in kinds {
                let rule = of(&format!("message {kind}"));
                let all = [Some(&rule.code), rule.within.as_ref()].into_iter().flatten();
                let lines: usize = all.clone().map(|code| code.lines().count()).sum();
                assert!(all.last().unwrap().contains("fn on_message("), "{}: {kind}", entry.name);
                assert!(lines <= 100, "{}: {kind}", entry.name);
            }
        }
    }

    #[test]
    fn most_messages_have_a_function_of_their_own_and_a_meaning() {
        let (mut all, mut called, mut meant) = (0, 0, 0);
        for entry in ENTRIES {
            let kinds = Spec::new(entry.name, 3).visit(Kinds).unwrap();
            for (_, rule) in rules(entry.file, kinds).iter().filter(|(kind, _)| kind.contains(' '))
            {
                all += 1;
                called += usize::from(rule.within.is_some());
                meant += usize::from(rule.says.is_some());
            }
        }
        assert!(called * 4 > all * 3 && meant * 2 > all, "{called} and {meant} of {all}");
    }

    #[test]
    fn a_rule_is_the_function_that_does_the_work_with_its_comment() {
        let source = ENTRIES.iter().find(|entry| entry.name == "naimi-trehel").unwrap().file;
        let rules = rules(source, &["request", "token"]);
        let request = &rules["message request"];
        assert_eq!(
            request.says.as_deref(),
            Some("'This node wants to enter.' It is passed on unchanged.")
        );
        assert!(request.code.contains("fn on_ask(&mut self"), "{}", request.code);
        assert!(!request.code.contains("fn on_message("), "{}", request.code);
        assert!(request.code.ends_with("\n}"), "{}", request.code);
        assert!(request.within.as_ref().unwrap().starts_with("fn on_message("));
        assert!(rules["message token"].code.contains("self.enter(out);"));
    }

    #[test]
    fn a_source_without_handlers_has_no_rules() {
        assert!(rules("", &["request"]).is_empty());
        assert!(rules("fn on_message() {", &["request"]).is_empty());
    }
}
