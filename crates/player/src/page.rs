//! The HTML file: style, data and script in one, so that it can be mailed and opened anywhere.

use base64::Engine as _;
use sha2::{Digest as _, Sha256};

use crate::contacts::Contacts;
use crate::record::Recording;

const STYLE: &str = include_str!("../assets/player.css");

/// The script's modules, each after those that it imports from.
const MODULES: &[(&str, &str)] = &[
    ("run.js", include_str!("../assets/run.js")),
    ("svg.js", include_str!("../assets/svg.js")),
    ("diagram.js", include_str!("../assets/diagram.js")),
    ("nodes.js", include_str!("../assets/nodes.js")),
    ("details.js", include_str!("../assets/details.js")),
    ("controls.js", include_str!("../assets/controls.js")),
    ("player.js", include_str!("../assets/player.js")),
];

/// A part of the page by its name, `player.css` or that of a module: runs look the same wherever they are
/// shown.
pub fn asset(name: &str) -> Option<&'static str> {
    let style = ("player.css", STYLE);
    MODULES.iter().chain([&style]).find(|(it, _)| *it == name).map(|(_, text)| *text)
}

/// The modules of the page of an evolving graph.
const CONTACT_MODULES: &[(&str, &str)] = &[
    ("controls.js", include_str!("../assets/controls.js")),
    ("svg.js", include_str!("../assets/svg.js")),
    ("journeys.js", include_str!("../assets/journeys.js")),
    ("graph.js", include_str!("../assets/graph.js")),
    ("timeline.js", include_str!("../assets/timeline.js")),
    ("contacts.js", include_str!("../assets/contacts.js")),
];

/// The page that plays a run.
pub fn page(run: &Recording) -> Result<String, serde_json::Error> {
    Ok(html("Catraca: a run", &serde_json::to_string(run)?, &script(MODULES)))
}

/// The page that plays a run on an evolving graph.
pub fn contacts_page(run: &Contacts) -> Result<String, serde_json::Error> {
    let data = serde_json::to_string(run)?;
    Ok(html("Catraca: a run on an evolving graph", &data, &script(CONTACT_MODULES)))
}

fn html(title: &str, data: &str, script: &str) -> String {
    let data = harmless(data);
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
        hash(script),
        hash(STYLE)
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <noscript>This page shows a run step by step and needs JavaScript for it.</noscript>\n\
         <script type=\"application/json\" id=\"run\">{data}</script>\n\
         <script type=\"module\">{script}</script>\n</body>\n</html>\n"
    )
}

/// One module of all: within one file nothing can be imported, because nothing has an address.
fn script(modules: &[(&str, &str)]) -> String {
    let lines = modules.iter().flat_map(|(_, module)| module.lines());
    let lines = lines.filter(|line| !line.starts_with("import "));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix("export ").unwrap_or(line)).collect();
    lines.join("\n")
}

/// What a content security policy calls an embedded script or style.
fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(digest))
}

/// JSON in which nothing can end the element that it is in. A `<` occurs only within strings.
fn harmless(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use catraca_algorithms::Spec;
    use catraca_core::{Claim, Fence, Input, NodeId};
    use catraca_trace::{Event, Header, Origin, Outcome, Step, Trace};

    use super::*;
    use crate::{Window, record};

    /// Node 0, which has the token, asks and enters.
    fn one_entry() -> Recording {
        let spec = Spec::new("naimi-trehel", 2);
        let step = Step {
            at: 0,
            node: NodeId(0),
            input: Input::Request(Claim::single()),
            delivers: None,
            outcomes: vec![Outcome::Granted(Fence(1))],
        };
        let header = Header::new(Origin::Check, spec, 1);
        record(&Trace { header, events: vec![Event::Step(step)] }, Window::default()).unwrap()
    }

    #[test]
    fn the_policy_names_the_script_and_the_style_that_the_page_has() {
        let page = page(&one_entry()).unwrap();
        let between = |begin: &str, end: &str| {
            page.split_once(begin).unwrap().1.split_once(end).unwrap().0.to_string()
        };
        let script = between("<script type=\"module\">", "</script>");
        let policy = between("Content-Security-Policy\" content=\"", "\"");
        assert!(policy.contains(&format!("script-src '{}'", hash(&script))), "{policy}");
        let style = hash(&between("<style>", "</style>"));
        assert!(policy.contains(&format!("style-src '{style}'")), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
    }

    #[test]
    fn the_page_names_no_address_but_that_of_svg() {
        let page = page(&one_entry()).unwrap().replace("http://www.w3.org/2000/svg", "");
        assert!(!page.contains("http://") && !page.contains("https://"));
    }

    #[test]
    fn no_text_of_a_run_can_end_its_element() {
        assert_eq!(harmless("[\"</script>\"]"), "[\"\\u003c/script>\"]");
        let back: Vec<String> = serde_json::from_str(&harmless("[\"</script>\"]")).unwrap();
        assert_eq!(back, ["</script>"]);
    }

    #[test]
    fn the_modules_make_one_script_without_imports_and_with_every_name_once() {
        for modules in [MODULES, CONTACT_MODULES] {
            let script = script(modules);
            assert!(!script.contains("\nimport ") && !script.contains("\nexport "));
            let mut names: Vec<&str> = script
                .lines()
                .filter_map(|line| {
                    ["function ", "const ", "class "].iter().find_map(|it| line.strip_prefix(it))
                })
                .filter_map(|rest| rest.split(['(', ' ']).next())
                .collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert!(all > 10 && names.len() == all, "{names:?}");
        }
    }

    #[test]
    fn the_page_has_the_colours_of_all_other_pictures() {
        let script = script(MODULES);
        let table = script.split_once("KIND_NUMBERS = {").unwrap().1.split_once('}').unwrap().0;
        let entries: Vec<(String, usize)> = table
            .split(',')
            .filter_map(|entry| entry.trim().rsplit_once(": "))
            .map(|(kind, number)| (kind.trim_matches('\'').to_string(), number.parse().unwrap()))
            .collect();
        for (kind, number) in &entries {
            assert_eq!(catraca_trace::kind_number(kind), Some(*number), "{kind}");
        }
        let known = |kind: &&str| entries.iter().any(|(one, _)| one == kind);
        for entry in catraca_algorithms::registry::ENTRIES {
            let kinds = Spec::new(entry.name, 4).visit(Kinds).unwrap();
            assert_eq!(kinds.iter().find(|kind| !known(kind)), None, "{}", entry.name);
        }
        for number in 0..catraca_trace::KIND_NUMBERS {
            assert!(STYLE.contains(&format!(".message.kind-{number} {{")), "{number}");
        }
    }

    struct Kinds;

    impl catraca_algorithms::Visitor for Kinds {
        type Output = &'static [&'static str];

        fn visit<A: catraca_core::Algorithm>(self, _: A::Config) -> Self::Output {
            <A::Message as catraca_core::Message>::KINDS
        }
    }
}
