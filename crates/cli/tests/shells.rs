//! `catraca completions` and `catraca man`, as the shells and the manual use them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::process::{Command, Stdio};

use support::left_out::{judged, left_out};
use support::{Folder, Ran};

/// Whether a program is on this machine; what needs it is left out otherwise.
fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        left_out("what it reads", program);
    }
    found
}

/// The script that makes `shell` complete, in a file.
fn script(folder: &Folder, shell: &str) -> String {
    let script = folder.run(&["completions", shell]).quietly(0).stdout;
    assert!(!script.contains("guardian"), "what is hidden from users is completed");
    folder.write("script", script);
    folder.path("script").display().to_string()
}

#[test]
fn bash_completes_commands_and_flags() {
    let folder = Folder::new();
    let script = script(&folder, "bash");
    let completed = |words: &str| {
        let count = words.split(' ').count();
        // What bash does when Tab is pressed.
        let lines = format!(
            "source {script}; function_name=$(complete -p catraca | sed 's/.*-F \\([^ ]*\\).*/\\1/')
             COMP_WORDS=({words}); COMP_CWORD={}; COMP_LINE='{words}'; COMP_POINT=${{#COMP_LINE}}
             cur=${{COMP_WORDS[COMP_CWORD]}}; prev=${{COMP_WORDS[COMP_CWORD-1]}}
             $function_name catraca \"$cur\" \"$prev\"; echo \"${{COMPREPLY[@]}}\"",
            count - 1
        );
        let ran: Ran = Command::new("bash").args(["-c", &lines]).output().unwrap().into();
        ran.quietly(0).stdout.trim().to_string()
    };
    assert_eq!(completed("catraca lo"), "lock locks");
    assert_eq!(completed("catraca lock --nonb"), "--nonblock");
    assert!(completed("catraca graph ").contains("journey"));
}

#[test]
fn zsh_and_fish_read_their_scripts() {
    let folder = Folder::new();
    for shell in ["zsh", "fish"] {
        let script = script(&folder, shell);
        if is_there(shell) {
            let ran: Ran = Command::new(shell).args(["-n", &script]).output().unwrap().into();
            ran.quietly(0);
        }
    }
    let script = script(&folder, "fish");
    if is_there("fish") {
        let line = format!("source {script}; complete -C 'catraca lo'");
        let ran: Ran = Command::new("fish").args(["-c", &line]).output().unwrap().into();
        let names: Vec<&str> = ran.stdout.lines().filter_map(|it| it.split('\t').next()).collect();
        assert_eq!(names, ["lock", "locks"]);
    }
}

#[test]
fn every_command_has_a_page_that_the_manual_shows_without_a_warning() {
    let folder = Folder::new();
    folder.run(&["man", "--out", "pages/man1"]).quietly(0);
    let pages = std::fs::read_dir(folder.path("pages/man1")).unwrap();
    let mut pages: Vec<String> =
        pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    pages.sort();
    for expected in ["catraca.1", "catraca-lock.1", "catraca-graph-run.1", "catraca-top.1"] {
        assert!(pages.contains(&expected.to_string()), "{expected} is not in {pages:?}");
    }
    assert!(!pages.iter().any(|page| page.contains("guardian") || page.contains("help")));
    if !is_there("groff") {
        return;
    }
    for page in &pages {
        let place = folder.path("pages/man1").join(page);
        let mut groff = Command::new("groff");
        groff.args(["-man", "-Tutf8", "-ww", "-rLL=78n", "-P-cbou"]).arg(&place);
        let ran: Ran = groff.output().unwrap().into();
        let text = ran.quietly(0).stdout;
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT CODES"] {
            let has_it = text.lines().any(|line| line.starts_with(section));
            assert!(has_it, "{page} has no section {section}:\n{text}");
        }
        assert!(text.contains("catraca 0."), "{page} does not say its version");
    }
}

#[test]
fn the_page_of_lock_tells_exit_codes_and_environment() {
    let folder = Folder::new();
    let page = folder.run(&["man", "lock"]).quietly(0).stdout;
    for text in ["EXIT CODES", "123  the locks were lost", "CATRACA_FENCE", "CATRACA_NODE"] {
        assert!(page.contains(text), "'{text}' is not in:\n{page}");
    }
    assert_eq!(folder.run(&["man", "lock"]).stdout, page, "the same every time");
    folder.run(&["man"]).quietly(0).says("catraca\\-lock(1)");
    folder.run(&["man", "graph", "run"]).quietly(0).says("CATRACA-GRAPH-RUN");
}

#[test]
fn wrong_names_are_refused_with_what_there_is() {
    let folder = Folder::new();
    folder.run(&["man", "lokc"]).refused(&["there is no command 'lokc'", "'lock'"]);
    folder.run(&["man", "lock", "x"]).refused(&["'catraca-lock' has no commands of its own"]);
    folder.write("file", "");
    folder.run(&["man", "--out", "file/x"]).refused(&["cannot make the folder 'file/x'"]);
    let ran = folder.run(&["completions", "tcsh"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("bash"), "{ran:?}");
}

#[test]
fn what_is_installed_for_tests_may_not_be_left_out_where_it_is_required() {
    assert!(judged("pages", "groff", false).unwrap().starts_with("left out: pages: "));
    assert!(judged("pages", "groff", true).unwrap_err().contains("there is no groff here"));
    assert!(judged("a script", "zsh", true).is_ok(), "nobody installs it");
}
