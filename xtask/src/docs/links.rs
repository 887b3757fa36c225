//! Links of Markdown files: where they stand, and whether what they point at is there.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

/// A link or a picture in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// Counted from 1.
    pub(super) line: usize,
    /// Where its target stands in the text.
    pub(super) place: Range<usize>,
    /// All of it, from its first bracket to its last; of a tag in HTML only the target.
    pub(super) whole: Range<usize>,
    pub(super) target: String,
}

/// All links of a text, in order. What stands in code and in comments is none.
pub(super) fn links(text: &str) -> Vec<Link> {
    let (mut found, mut brackets) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let begins_line = at == 0 || text.as_bytes()[at - 1] == b'\n';
        if begins_line && rest.trim_start_matches(' ').starts_with("```") {
            at += fence(rest);
        } else if rest.starts_with("<!--") {
            at += rest.find("-->").map_or(rest.len(), |end| end + 3);
        } else if rest.starts_with('`') {
            at += code(rest);
        } else if let Some(target) = rest.strip_prefix("](") {
            let length = target.find([')', '\n']).unwrap_or(target.len());
            let place = at + 2..at + 2 + length;
            let whole = brackets.pop().unwrap_or(at)..text.len().min(place.end + 1);
            found.push(link(text, place, whole));
            // What is between the parentheses is no text; a picture within a link ends before it.
            at += 2 + length;
        } else if let Some(word) =
            ["href=\"", "src=\""].iter().find(|word| rest.starts_with(**word))
        {
            let begin = at + word.len();
            let length = text[begin..].find('"').unwrap_or(0);
            found.push(link(text, begin..begin + length, begin..begin + length));
            at = begin + length;
        } else {
            match rest.as_bytes()[0] {
                b'[' => brackets.push(at),
                b']' => {
                    brackets.pop();
                }
                _ => {}
            }
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}

fn link(text: &str, place: Range<usize>, whole: Range<usize>) -> Link {
    let line = text[..place.start].matches('\n').count() + 1;
    Link { line, target: text[place.clone()].trim().to_string(), place, whole }
}

/// The length of a block of code, its fences included.
fn fence(text: &str) -> usize {
    let first = text.find('\n').map_or(text.len(), |end| end + 1);
    let mut length = first;
    for line in text[first..].split_inclusive('\n') {
        length += line.len();
        if line.trim() == "```" {
            break;
        }
    }
    length
}

/// The length of a piece of code within a line, or of its quotes alone if they have no end.
fn code(text: &str) -> usize {
    let quotes = text.len() - text.trim_start_matches('`').len();
    let paragraph = text.find("\n\n").unwrap_or(text.len());
    let end = text[quotes..paragraph.max(quotes)].find(&text[..quotes]);
    end.map_or(quotes, |end| quotes + end + quotes)
}

/// Whether a link leads out of the repository.
pub(super) fn is_elsewhere(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// The path that a link of `page` means, both seen from the root of the repository, and its anchor.
pub(super) fn meant(page: &Path, target: &str) -> (PathBuf, Option<String>) {
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.to_string())),
        None => (target, None),
    };
    if path.is_empty() {
        return (page.to_path_buf(), anchor);
    }
    let mut meant = page.parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir if meant.file_name().is_some() => {
                meant.pop();
            }
            Component::CurDir => {}
            // Out of the repository, or absolute: nothing is found there.
            part => meant.push(part),
        }
    }
    (meant, anchor)
}

/// The anchors of a page: one for each heading, as forges and the manual make them, and those of tags.
pub(super) fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        if in_code {
            continue;
        }
        let heading = line.trim_start_matches('#');
        if heading.len() < line.len() && heading.starts_with(' ') {
            let name = anchor(heading.trim());
            let again = (1..).map(|count| format!("{name}-{count}"));
            let free = [name.clone()].into_iter().chain(again).find(|one| !anchors.contains(one));
            anchors.extend(free);
        }
        let ids = line.split("id=\"").skip(1).filter_map(|rest| rest.split('"').next());
        anchors.extend(ids.map(str::to_string));
    }
    anchors
}

/// The anchor of a heading: small letters, digits, `-` and `_`; spaces become `-`, the rest is left out.
fn anchor(heading: &str) -> String {
    let mut words = heading.to_string();
    for link in links(heading).iter().rev() {
        words.replace_range(link.place.start - 2..link.whole.end, "");
    }
    let letters = words.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        letter if letter.is_alphanumeric() => Some(letter),
        _ => None,
    });
    letters.flat_map(char::to_lowercase).collect()
}

/// What is wrong with the links of these Markdown files, a line each.
pub(super) fn problems(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let mut known: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    let read = |file: &Path| {
        std::fs::read_to_string(root.join(file))
            .with_context(|| format!("cannot read {}", file.display()))
    };
    let mut problems = Vec::new();
    for file in files {
        let text = read(file)?;
        for link in links(&text).into_iter().filter(|link| !is_elsewhere(&link.target)) {
            let place = format!("{}, line {}: {}", file.display(), link.line, link.target);
            let (path, anchor) = meant(file, &link.target);
            if !root.join(&path).exists() || path.is_absolute() {
                problems.push(format!("{place}: there is no {}", path.display()));
            } else if let Some(anchor) = anchor
                && path.extension().is_some_and(|ending| ending == "md")
            {
                let known = match known.entry(path.clone()) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(anchors(&read(&path)?)),
                };
                if !known.contains(&anchor) {
                    problems.push(format!("{place}: {} has no heading for it", path.display()));
                }
            }
        }
    }
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Vec<String> {
        links(text).into_iter().map(|link| link.target).collect()
    }

    #[test]
    fn links_are_found_and_what_stands_in_code_is_none() {
        let text = "\
[one](a.md) and ![two](b.svg) `[no](x.md)` ``[no`](y.md)``
```
[no](z.md)
```
<!-- [no](c.md) -->[![picture](p.png)](page.md#here) <img src=\"q.png\"> [three
lines](https://e.org/)
`a quote without an end, [four](d.md)
";
        let expected =
            ["a.md", "b.svg", "p.png", "page.md#here", "q.png", "https://e.org/", "d.md"];
        assert_eq!(targets(text), expected);
        assert_eq!(links(text)[2].line, 5);
        let all: Vec<&str> = links(text).iter().map(|link| &text[link.whole.clone()]).collect();
        assert_eq!(all[0], "[one](a.md)");
        assert_eq!(all[3], "[![picture](p.png)](page.md#here)");
    }

    #[test]
    fn a_link_means_a_path_from_the_root_of_the_repository() {
        let meant = |target| {
            let (path, anchor) = super::meant(Path::new("docs/a/B.md"), target);
            (path.to_string_lossy().into_owned(), anchor.unwrap_or_default())
        };
        assert_eq!(meant("C.md"), ("docs/a/C.md".into(), String::new()));
        assert_eq!(meant("../../README.md#x"), ("README.md".into(), "x".into()));
        assert_eq!(meant("#y"), ("docs/a/B.md".into(), "y".into()));
        assert_eq!(meant("./.."), ("docs".into(), String::new()));
        assert_eq!(meant("../../../../etc").0, "../../etc");
    }

    #[test]
    fn headings_have_the_anchors_that_forges_give_them() {
        let text = "# What's `it`? [A](b.md) _c_\n## Again\n```\n# no\n```\n## Again\n<a id=\"own\">\n#no\n";
        let expected = ["again", "again-1", "own", "whats-it-a-_c_"];
        assert_eq!(anchors(text).into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_link_to_nothing_and_an_anchor_without_a_heading_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("a.md", "# A\n[b](b.md#b) [b](b.md#c)\n[c](c.md) [a](#a) [](/etc/passwd) [f](.)\n");
        write("b.md", "## B\n");
        let files = ["a.md", "b.md"].map(PathBuf::from);
        let expected = [
            "a.md, line 2: b.md#c: b.md has no heading for it",
            "a.md, line 3: c.md: there is no c.md",
            "a.md, line 3: /etc/passwd: there is no /etc/passwd",
        ];
        assert_eq!(problems(folder.path(), &files).unwrap(), expected);
    }
}
