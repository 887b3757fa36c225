//! The code blocks of a document, and what the comments before them say.
//!
//! A comment directly before a block tells how the block is tested where that does not follow from the
//! block itself. Nobody sees it in the rendered page, everybody sees it in the source:
//!
//! | comment | |
//! |---|---|
//! | `<!-- not run: REASON -->` | the block is not tested, and counted as such |
//! | `<!-- needs: PROGRAM -->` | not tested where there is no such program; an error where everything is tested |
//! | `<!-- file: NAME -->` | the block is the content of this file |
//! | `<!-- then: COMMAND -->` | what is done with that file |
//! | `<!-- part of: PATH -->` | the block stands in this file of the repository, which is tested itself |
//! | `<!-- goes on -->` | its commands do not end by themselves: they go on when they have said what is shown |
//!
//! Nothing is done that the page does not show: whoever follows it by hand has no more than the test has.

/// A block between fences.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Where its first line is in the document, counted from 1.
    pub(crate) line: usize,
    /// What stands behind the opening fence.
    pub(crate) language: String,
    pub(crate) marks: Vec<Mark>,
    pub(crate) lines: Vec<String>,
}

/// What a comment before a block says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    NotRun(String),
    Needs(String),
    File(String),
    Then(String),
    PartOf(String),
    GoesOn,
}

/// One command of a session, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Typed {
    /// Where it is in the document.
    pub(crate) line: usize,
    pub(crate) command: String,
    /// What stands below it; nothing if the document does not show what the command says.
    pub(crate) shown: Vec<String>,
}

/// All blocks of a document, in order, or what is wrong with its fences or comments.
pub(crate) fn blocks(text: &str) -> Result<Vec<Block>, String> {
    let (mut blocks, mut marks) = (Vec::new(), Vec::new());
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    while let Some((at, line)) = lines.next() {
        let trimmed = line.trim_start();
        if let Some(language) = trimmed.strip_prefix("```") {
            let indent = line.len() - trimmed.len();
            let mut inside = Vec::new();
            loop {
                match lines.next() {
                    None => return Err(format!("line {at}: this block has no end")),
                    Some((_, line)) if line.trim() == "```" => break,
                    Some((_, line)) => inside.push(line.get(indent..).unwrap_or("").to_string()),
                }
            }
            let language = language.trim().to_string();
            let marks = marks.drain(..).map(|(at, text)| mark(at, text)).collect::<Result<_, _>>();
            blocks.push(Block { line: at + 1, language, marks: marks?, lines: inside });
        } else if let Some(begin) = trimmed.strip_prefix("<!--") {
            let mut comment = begin.to_string();
            while !comment.contains("-->") {
                let next = lines.next().ok_or(format!("line {at}: this comment has no end"))?;
                comment.push('\n');
                comment.push_str(next.1);
            }
            marks.push((at, comment.split("-->").next().unwrap_or("").trim().to_string()));
        } else if !trimmed.is_empty() {
            // Only a comment directly before a block speaks of the block.
            marks.clear();
        }
    }
    Ok(blocks)
}

fn mark(at: usize, comment: String) -> Result<Mark, String> {
    if comment == "goes on" {
        return Ok(Mark::GoesOn);
    }
    let (word, rest) = comment.split_once(':').unwrap_or((&comment, ""));
    let rest = rest.trim().to_string();
    match word.trim() {
        _ if rest.is_empty() => Err(format!("line {at}: what is meant by '{comment}'?")),
        "not run" => Ok(Mark::NotRun(rest)),
        "needs" => Ok(Mark::Needs(rest)),
        "file" => Ok(Mark::File(rest)),
        "then" => Ok(Mark::Then(rest)),
        "part of" => Ok(Mark::PartOf(rest)),
        _ => Err(format!("line {at}: what is meant by '{comment}'?")),
    }
}

/// What stands behind a prompt: `$ `, or `NAME$ ` where a document has several terminals.
fn typed(line: &str) -> Option<&str> {
    let (terminal, command) = line.split_once("$ ")?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    terminal.chars().all(is_name).then_some(command)
}

impl Block {
    /// Whether somebody types commands in it.
    pub(crate) fn is_session(&self) -> bool {
        self.lines.first().is_some_and(|line| typed(line).is_some())
    }

    pub(crate) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// The commands of a session and what is shown below them.
    pub(crate) fn session(&self) -> Vec<Typed> {
        let mut all: Vec<Typed> = Vec::new();
        let mut lines = self.lines.iter().enumerate().peekable();
        while let Some((at, line)) = lines.next() {
            let Some(begin) = typed(line) else {
                if let Some(last) = all.last_mut() {
                    last.shown.push(line.clone());
                }
                continue;
            };
            let mut command = begin.to_string();
            while goes_on(&command)
                && let Some((_, line)) = lines.next()
            {
                command.push('\n');
                command.push_str(line);
            }
            all.push(Typed { line: self.line + at, command, shown: Vec::new() });
        }
        for typed in &mut all {
            while typed.shown.last().is_some_and(|line| line.trim().is_empty()) {
                typed.shown.pop();
            }
        }
        all
    }
}

/// Whether a shell would wait for another line: after a backslash, within single quotes, or in a
/// here-document.
fn goes_on(command: &str) -> bool {
    let here = command.split_once("<<").map(|(_, rest)| rest.trim_start_matches(['-', '\'']));
    let here = here.filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
    if let Some(rest) = here {
        let word: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
        return !command.lines().skip(1).any(|line| line.trim() == word);
    }
    let code: String = command.lines().map(without_comment).collect();
    command.ends_with('\\') || code.matches('\'').count() % 2 == 1
}

/// A line up to its comment, in which an apostrophe is no quote.
pub(crate) fn without_comment(line: &str) -> &str {
    line.split_once(" # ").map_or(line, |(code, _)| code.trim_end())
}

#[test]
fn the_blocks_of_a_document_are_found_with_their_comments() {
    let text = "\
one
<!-- file: a.toml -->
<!-- then: catraca config check a.toml -->

```toml
x = 1
```

<!-- a remark -->
text
```
$ echo 'a
b'     # it's fine
a
b
$ cat <<EOF
$ no command
EOF
...
```
";
    let all = blocks(text).unwrap();
    assert_eq!(all.len(), 2);
    assert_eq!((all[0].line, all[0].language.as_str()), (6, "toml"));
    let then = Mark::Then("catraca config check a.toml".to_string());
    assert_eq!(all[0].marks, [Mark::File("a.toml".to_string()), then]);
    assert!(!all[0].is_session() && all[1].is_session() && all[1].marks.is_empty());
    let session = all[1].session();
    assert_eq!(session.len(), 2);
    assert_eq!(session[0].command, "echo 'a\nb'     # it's fine");
    assert_eq!((session[0].line, &session[0].shown), (12, &vec!["a".to_string(), "b".to_string()]));
    assert_eq!(session[1].command, "cat <<EOF\n$ no command\nEOF");
    assert_eq!(session[1].shown, ["..."]);
}

#[test]
fn a_comment_before_a_block_that_says_nothing_known_is_an_error() {
    for comment in ["<!-- not run -->", "<!-- not run: -->", "<!-- prepare: x -->"] {
        let error = blocks(&format!("{comment}\n```\n$ true\n```\n")).unwrap_err();
        assert!(error.starts_with("line 1: what is meant by "), "{error}");
    }
    assert!(blocks("```\nx\n").is_err());
    assert!(blocks("<!-- x\n").is_err());
}
