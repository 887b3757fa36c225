//! The pages of the algorithms, written from what the program itself knows of them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use catraca_algorithms::mutants::Caught;
use catraca_algorithms::registry::{self, ENTRIES};
use catraca_algorithms::{Entry, relabelling};
use catraca_sim::Scenario;

use super::measured;

/// Where the pages are.
pub(super) const FOLDER: &str = "docs/algorithms";

/// What stands at the end of every page.
const WRITTEN: &str =
    "\nWritten by `cargo xtask docs` from the algorithm's file and from runs; do not edit.\n";

/// What stands before the exercises.
const EXERCISES: &str = "\
## Break it

Each mutant is this algorithm with one deliberate mistake. Say which promise it breaks, and how, before you let the
program find it. The trace that it prints is a shortest one where the checker finds it; `--html why.html` plays it.
";

/// All files of the folder, with their texts.
pub(super) fn files() -> Result<Vec<(PathBuf, String)>> {
    let mut files = vec![(place("README.md"), index()?)];
    for entry in ENTRIES {
        let (picture, command) = measured::picture(entry.name)?;
        let figures = measured::table(entry.name)?;
        files.push((place(&format!("{}.md", entry.name)), page(entry, &command, &figures)?));
        files.push((place(&format!("{}.svg", entry.name)), picture));
    }
    for entry in relabelling::ENTRIES {
        let (picture, commands) = measured::strip_of(entry.name)?;
        let figures = measured::evolving_table(entry.name)?;
        let text = evolving_page(entry, &commands, &figures)?;
        files.push((place(&format!("{}.md", entry.name)), text));
        files.push((place(&format!("{}.svg", entry.name)), picture));
    }
    Ok(files)
}

fn place(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// The list of all algorithms.
fn index() -> Result<String> {
    let mut text = "\
# The catalogue

One page for each algorithm: its idea, source, assumptions and cost, a run as a picture, what runs measure, and
mutants to find. `catraca algorithms` prints the list, `catraca algorithms NAME` the text of a page. N is the
number of nodes, T the mean message delay.

| name | by | kind | channels | messages per entry | delay |
|---|---|---|---|---|---|
"
    .to_string();
    for entry in ENTRIES {
        let Entry { name, title, family, channels, messages, delay, .. } = entry;
        writeln!(
            text,
            "| [{name}]({name}.md) | {title} | {family} | {channels} | {messages} | {delay} |"
        )?;
    }
    text.push_str(
        "\nOn [evolving graphs](../GRAPHS.md) nodes that meet share labels instead of sending messages:\n\n\
         | name | by | kind | needs | a label holds |\n|---|---|---|---|---|\n",
    );
    for entry in relabelling::ENTRIES {
        let relabelling::Entry { name, title, family, needs, label, .. } = entry;
        writeln!(text, "| [{name}]({name}.md) | {title} | {family} | {needs} | {label} |")?;
    }
    text.push_str(
        "\nS0 to S4 are the papers that this project began with; what they claim of these algorithms, and what runs\n\
         say of that, is in [Claims](../CLAIMS.md).\n",
    );
    text.push_str(WRITTEN);
    Ok(text)
}

fn page(entry: &Entry, command: &str, figures: &str) -> Result<String> {
    let name = entry.name;
    let parameters = match entry.parameters {
        [] => "none".to_string(),
        some => some.iter().map(|name| format!("`--{name}`")).collect::<Vec<_>>().join(", "),
    };
    let mut text = format!("# {name}\n\n{}.\n", entry.title);
    write!(
        text,
        "\n| | |\n|---|---|\n| kind | {} |\n| channels | {} |\n| messages per entry | {} |\n| delay | {} |\n\
         | fence | {} |\n| parameters | {parameters} |\n| most nodes | {} |\n",
        entry.family, entry.channels, entry.messages, entry.delay, entry.fence, entry.max_nodes,
    )?;
    text.push_str(&header(entry.header()));
    write!(
        text,
        "\n## A run\n\n![Each node is a line, each message an arrow; a bar is somebody inside]({name}.svg)\n\n\
         ```\n$ {command}\n```\n"
    )?;
    write!(
        text,
        "\n## Measured\n\nAt low load one node asks at a time, at high load everybody asks again at once. A message takes T, a\n\
         stay inside too. 1000 entries with each of five seeds: means, ± half the width of Student's interval of 95 %;\n\
         theory is the formula above, evaluated where it covers the load. The delay is from a release to the next entry\n\
         where somebody waits.\n\n{figures}\n\nMore sizes and loads, beside other algorithms:\n\n\
         ```\n$ catraca compare --algorithms {name} --nodes 4,16 --entries 1000\n```\n"
    )?;
    write!(text, "\n{EXERCISES}")?;
    for mutant in registry::mutants(name) {
        let command = match mutant.caught {
            Caught::Checked { nodes, requests, .. } => {
                let setting = registry::setting(name, mutant.name);
                let group = format!("--nodes {nodes} --requests {requests}{setting}");
                format!("catraca check {name} {group} --mutant {}", mutant.name)
            }
            Caught::Simulated { .. } => {
                Scenario::catching(name, &mutant).unwrap_or_default().command()
            }
        };
        exercise(&mut text, mutant.name, mutant.breaks, &command, mutant.caught.property())?;
    }
    text.push_str(WRITTEN);
    Ok(text)
}

fn evolving_page(
    entry: &relabelling::Entry,
    commands: &[String; 2],
    figures: &str,
) -> Result<String> {
    let name = entry.name;
    let mut text = format!("# {name}\n\n{}.\n", entry.title);
    write!(
        text,
        "\n| | |\n|---|---|\n| kind | {}, on [evolving graphs](../GRAPHS.md) |\n| needs | {} |\n\
         | a label holds | {} |\n| fence | {} |\n",
        entry.family, entry.needs, entry.label, entry.fence,
    )?;
    text.push_str(&header(entry.header()));
    write!(
        text,
        "\n## A run\n\nFour nodes in a ring of which one link at a time is broken. Nodes 1 and 3 ask.\n\n\
         ![The graph at each instant, with what every node does]({name}.svg)\n\n```\n$ {}\n$ {}\n```\n",
        commands[0], commands[1],
    )?;
    let rounds = measured::ROUNDS;
    write!(
        text,
        "\n## Measured\n\nThere are no messages to count: nodes that meet join what they have gathered. So these are the \
         bytes of labels\nthat nodes had to tell each other, for each entry, and the instants from a request to the \
         entry. The graph is such\na ring of N nodes; node 1 asks alone, or everybody asks, and again as soon as \
         they have left, {rounds} times.\n\n{figures}\n\nFor 8 nodes:\n\n```\n\
         $ catraca graph generate ring --nodes 8 --output ring8.txt\n\
         $ catraca graph run ring8.txt --algorithm {name} --rounds {rounds}\n```\n"
    )?;
    text.push_str(
        "\n## Break it\n\nEach mutant is this algorithm with one deliberate mistake. Say which promise it breaks, and \
         on which graph, before\nyou let the program find it. It tries every graph of 3 nodes with 2 instants, and \
         shows the smallest one that\nbreaks something; `--strip why.svg` draws it. That proposition 1 is wrong is \
         none of the mutant's fault.\n",
    );
    for mutant in relabelling::mutants_of(name) {
        let command =
            format!("catraca graph propositions --instants 2 --mutant {name}:{}", mutant.name);
        exercise(&mut text, mutant.name, mutant.breaks, &command, mutant.property)?;
    }
    text.push_str(WRITTEN);
    Ok(text)
}

fn exercise(
    text: &mut String,
    name: &str,
    breaks: &str,
    command: &str,
    property: &str,
) -> Result<()> {
    write!(
        text,
        "\n### {name}\n\n{}.\n\n```\n$ {command}     # exit code 3\n```\n",
        sentence(breaks)
    )?;
    answer(text, property)
}

/// What a mutant breaks, which a reader opens.
fn answer(text: &mut String, property: &str) -> Result<()> {
    write!(text, "\n<details><summary>What it breaks</summary>\n\n'{property}'\n\n</details>\n")?;
    Ok(())
}

/// A part of a sentence as a sentence, without its full stop.
fn sentence(words: &str) -> String {
    let mut letters = words.trim_end_matches('.').chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// The five paragraphs of a header, each below a heading of its own.
fn header<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for line in lines {
        let part = line.strip_prefix("**").and_then(|rest| rest.split_once(".**"));
        match part {
            Some((name, rest)) => {
                text.push_str(&format!("\n## {}\n\n{}\n", heading(name), rest.trim_start()));
            }
            None if line.is_empty() => {}
            None => text.push_str(&format!("{line}\n")),
        }
    }
    text
}

/// The heading of a part of the header.
fn heading(part: &str) -> &str {
    match part {
        "Assumes" => "What it assumes",
        "Departs" => "Where it departs from the paper",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_every_algorithm_has_its_five_parts() {
        let headers = ENTRIES.iter().map(|entry| (entry.name, header(entry.header())));
        let evolving =
            relabelling::ENTRIES.iter().map(|entry| (entry.name, header(entry.header())));
        for (name, text) in headers.chain(evolving) {
            let parts: Vec<&str> =
                text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
            let expected =
                ["Idea", "Source", "What it assumes", "Cost", "Where it departs from the paper"];
            assert_eq!(parts, expected, "{name}");
        }
    }

    #[test]
    fn a_page_has_the_picture_the_figures_and_an_exercise_for_each_mutant() {
        let entry = registry::entry("raymond").unwrap();
        let text = page(entry, "catraca sim --algorithm raymond", "| the figures |").unwrap();
        for part in [
            "# raymond\n",
            "](raymond.svg)",
            "| the figures |",
            "$ catraca sim --algorithm raymond\n",
        ] {
            assert!(text.contains(part), "{part}");
        }
        for mutant in registry::mutants("raymond") {
            assert!(text.contains(&format!("\n### {}\n", mutant.name)), "{}", mutant.name);
        }
    }

    #[test]
    fn a_picture_shows_the_run_of_the_command_beside_it() {
        let (svg, command) = measured::picture("raymond").unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("request"), "{svg:.200}");
        let expected =
            "catraca sim --algorithm raymond --nodes 4 --delay uniform:0.5..1.5 --rounds 1";
        let words = |text: &str| -> Vec<String> { text.split(" --").map(str::to_string).collect() };
        assert!(words(expected).iter().all(|word| words(&command).contains(word)), "{command}");
    }
}
