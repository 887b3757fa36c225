//! The coordinator's terminal: a line in, an answer out. A pipe will do.

use std::io::{self, BufRead, Read, Write};
use std::os::fd::AsFd;

use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

use crate::{Connections, QueueSnapshot, Served};

/// No command is nearly so long; the rest of a longer line is another line.
const LONGEST: u64 = 1024;

/// So many processes are listed; the others are counted.
const LISTED: usize = 100;

const HELP: &str = "\
queue   (fila)          who is inside and who waits, in order
served  (atendimentos)  the entries served to each process
quit    (sair)          ends the coordinator; every connection is closed
help    (ajuda)         this text
";

/// Why nobody types any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputEnd {
    /// The command `quit` was typed.
    Quit,
    /// The input has ended. This is no reason for the coordinator to end.
    EndOfInput,
}

/// Answers commands until `quit` or the end of `input`. What can no longer be written is said to
/// nobody.
pub fn answer_terminal(
    mut input: impl BufRead,
    mut output: impl Write,
    connections: &Connections,
) -> InputEnd {
    loop {
        let mut line = Vec::new();
        match input.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return InputEnd::EndOfInput,
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&line);
        let said = line.trim();
        let answer = match said.to_lowercase().as_str() {
            "" => String::new(),
            "queue" | "fila" => queue(&connections.queue()),
            "served" | "atendimentos" => served(&connections.served()),
            "help" | "ajuda" => HELP.to_string(),
            "quit" | "sair" => return InputEnd::Quit,
            _ => format!("there is no command '{}': say help\n", said.escape_debug()),
        };
        say(&mut output, &answer).ok();
    }
}

/// Whether reading `input` is harmless. A program in the background that reads its terminal is
/// stopped by the system.
pub fn may_read(input: impl AsFd) -> bool {
    tcgetpgrp(input).map_or(true, |front| front == getpgrp())
}

fn say(output: &mut impl Write, text: &str) -> io::Result<()> {
    output.write_all(text.as_bytes())?;
    output.flush()
}

fn queue(queue: &QueueSnapshot) -> String {
    let mut text = match queue.inside {
        Some(id) => format!("inside: {id}\n"),
        None => "nobody is inside\n".to_string(),
    };
    match queue.waiting.len() {
        0 => text.push_str("nobody waits\n"),
        count => text.push_str(&format!("waiting: {count}\n")),
    }
    for (place, id) in queue.waiting.iter().take(LISTED).enumerate() {
        text.push_str(&format!("{:>5}. {id}\n", place + 1));
    }
    and_more(&mut text, queue.waiting.len());
    text
}

fn served(served: &Served) -> String {
    if served.each().len() == 0 {
        return "nobody has been served yet\n".to_string();
    }
    let mut text = "process  entries\n".to_string();
    for (id, entries) in served.each().take(LISTED) {
        text.push_str(&format!("{id:<7}  {entries:>7}\n"));
    }
    and_more(&mut text, served.each().len());
    let total = served.each().map(|(_, entries)| entries).sum::<u64>() + served.others();
    text.push_str(&format!("total    {total:>7}\n"));
    text
}

fn and_more(text: &mut String, count: usize) {
    if count > LISTED {
        text.push_str(&format!("       and {} more\n", count - LISTED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CoordinatorState, Kind, Message, ProcessId};

    fn id(text: &str) -> ProcessId {
        text.parse().unwrap()
    }

    #[test]
    fn the_queue_is_listed_in_order_up_to_a_limit() {
        let nobody = QueueSnapshot { inside: None, waiting: Vec::new() };
        assert_eq!(queue(&nobody), "nobody is inside\nnobody waits\n");
        let some = QueueSnapshot { inside: Some(id("76")), waiting: vec![id("54"), id("13")] };
        assert_eq!(queue(&some), "inside: 76\nwaiting: 2\n    1. 54\n    2. 13\n");
        let many = QueueSnapshot { inside: None, waiting: vec![id("7"); LISTED + 9] };
        let text = queue(&many);
        assert_eq!(text.lines().count(), 3 + LISTED);
        assert!(text.ends_with("  100. 7\n       and 9 more\n"), "{text}");
    }

    #[test]
    fn entries_are_listed_by_process() {
        let mut state = CoordinatorState::new(2);
        assert_eq!(served(state.served()), "nobody has been served yet\n");
        for name in ["76", "9", "76"] {
            let node = state.connect().unwrap();
            state.receive(node, &Message::new(Kind::Request, id(name), 0)).unwrap();
            state.disconnect(node);
        }
        let text = "process  entries\n9              1\n76             2\ntotal          3\n";
        assert_eq!(served(state.served()), text);
    }
}
