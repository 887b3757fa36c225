//! `catraca lock` at a terminal: who has it, and what Ctrl-C ends.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use support::service::{Process, Service, at_terminal, wait_until};

/// Runs until it is ended by a signal, and says when it has begun.
const LONG: &str = "echo begun; while :; do sleep 0.05; done";

#[test]
fn an_interactive_command_has_the_terminal() {
    let service = Service::start(1, &[]);
    let shell = "trap 'echo interrupted; exit 9' INT; read line; echo got $line; echo ready; \
                 while :; do sleep 0.05; done";
    let catraca = env!("CARGO_BIN_EXE_catraca");
    // At once, and where standard output is not the terminal, on demand.
    for rest in ["", " | cat"] {
        let line = format!(
            "{catraca} lock --node {} x -- sh -c \"{}\"{rest}",
            service.addresses[0],
            shell.replace('$', "\\$")
        );
        let mut terminal = at_terminal(&service.folder, &line);
        terminal.types("hello\n");
        terminal.says("got hello");
        terminal.says("ready");
        terminal.types("\x03");
        terminal.says("interrupted");
        let code = terminal.ends().code;
        assert!(code == Some(9) || !rest.is_empty(), "{code:?}");
        assert!(service.locks(0).contains("Nobody"));
    }
}

/// A bash script at a terminal; `$lock` in it is `catraca lock` at this node.
fn script(service: &Service, lines: &str) -> Process {
    let lock = format!("{} lock --node {}", env!("CARGO_BIN_EXE_catraca"), service.addresses[0]);
    service.folder.write("script.sh", lines.replace("$lock", &lock));
    // No other shell around it: that would get the signals too.
    at_terminal(&service.folder, "exec bash script.sh")
}

#[test]
fn ctrl_c_at_a_terminal_ends_the_calling_script_too() {
    let service = Service::start(1, &[]);
    // What reads from the terminal has it.
    let reads = "read line; echo begun; while :; do sleep 0.05; done";
    // Bash never dies of SIGQUIT, but can be told to.
    for (key, code, trap) in [("\x03", 130, ""), ("\x1c", 7, "trap 'exit 7' QUIT;")] {
        let lines = format!(
            "{trap} ulimit -c 0; for i in 1 2; do $lock x -- sh -c '{reads}'; done; echo TWO"
        );
        let mut terminal = script(&service, &lines);
        terminal.types("\n");
        terminal.says("begun");
        terminal.types(key);
        let ran = terminal.ends();
        assert!(!ran.stdout.contains("TWO"), "{ran:?}");
        assert_eq!((ran.code, ran.stdout.matches("begun").count()), (Some(code), 1), "{ran:?}");
        assert!(service.locks(0).contains("Nobody"));
    }
    let ends = |mut terminal: Process| {
        terminal.types("\x03");
        let ran = terminal.ends();
        assert!(ran.code == Some(130) && !ran.stdout.contains("TWO"), "{ran:?}");
    };
    // One that did not get the terminal, because its output goes elsewhere.
    let terminal = script(&service, &format!("$lock x -- sh -c '{LONG}' > out; echo TWO"));
    wait_until("it begins", || {
        service.folder.names().contains(&"out".to_string())
            && service.folder.read("out").contains("begun")
    });
    ends(terminal);
    // And one that waits.
    let holder = service.lock(0, "x", LONG);
    holder.says("begun");
    let waiter = script(&service, "$lock x -- true; echo TWO");
    wait_until("it waits", || service.locks(0).contains("1 waiter"));
    ends(waiter);
    holder.signal("TERM");
    holder.ends();
}

#[test]
fn a_command_that_takes_ctrl_c_for_its_own_does_not_end_the_script() {
    let service = Service::start(1, &[]);
    let line = "trap \"exit 130\" INT; read line; echo begun; while :; do sleep 0.05; done";
    let mut terminal = script(&service, &format!("$lock x -- sh -c '{line}'; echo then $?"));
    terminal.types("\n");
    terminal.says("begun");
    terminal.types("\x03");
    terminal.says("then 130");
    assert_eq!(terminal.ends().code, Some(0));
}
