//! The coordinator over TCP, against clients of raw bytes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::io::{self, BufReader, Write};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use catraca_classroom::{Ended, InputEnd, Limits, Log, Server, answer_terminal, listen};

use support::Coordinator;

/// 'Cada processo conecta-se ao coordenador e, em loop, solicita acesso (REQUEST), aguarda permissão
/// (GRANT), executa a região crítica e libera (RELEASE).' Reference: S3, section 2.
#[test]
fn paper_a_client_written_from_the_paper_enters_and_leaves() {
    let coordinator = Coordinator::start();
    let (mut p76, mut p13) = (coordinator.client(), coordinator.client());
    p76.send(b"1|76|89820");
    p76.is_granted("76");
    p13.send(b"1|13|90201");
    for expected in ["REQUEST from 76", "GRANT to 76", "REQUEST from 13"] {
        coordinator.logs(expected);
    }
    p76.send(b"3|76|47286");
    p13.is_granted("13");
    p76.send(b"1|76|04941");
    for expected in ["RELEASE from 76", "GRANT to 13", "REQUEST from 76"] {
        coordinator.logs(expected);
    }
    p13.send(b"3|13|00000");
    p76.is_granted("76");
}

#[test]
fn a_message_may_be_cut_anywhere() {
    let coordinator = Coordinator::start();
    for cut in 1..10 {
        let mut client = coordinator.client();
        let id = cut.to_string();
        let messages = [format!("1|{id}|123456"), format!("3|{id}|654321")];
        for message in &messages {
            let (head, tail) = message.as_bytes().split_at(cut);
            client.send(head);
            // The coordinator has answered another client since: it has seen the head alone.
            let mut other = coordinator.client();
            other.send(b"3|x|000000");
            other.is_closed();
            coordinator.logs("RELEASE from x");
            coordinator.logs(
                "closed x: a RELEASE while it is not inside; send REQUEST and wait for GRANT first",
            );
            client.send(tail);
            if message.starts_with('1') {
                client.is_granted(&id);
                coordinator.logs(&format!("REQUEST from {id}"));
                coordinator.logs(&format!("GRANT to {id}"));
            } else {
                coordinator.logs(&format!("RELEASE from {id}"));
            }
        }
    }
}

#[test]
fn several_messages_may_come_at_once() {
    let coordinator = Coordinator::start();
    let mut client = coordinator.client();
    client.send(b"1|7|1234563|7|1234561|7|123456");
    client.is_granted("7");
    client.is_granted("7");
    for expected in
        ["REQUEST from 7", "GRANT to 7", "RELEASE from 7", "REQUEST from 7", "GRANT to 7"]
    {
        coordinator.logs(expected);
    }
}

#[test]
fn who_hangs_up_while_waiting_leaves_the_queue() {
    let coordinator = Coordinator::start();
    let (mut p1, mut p2, mut p3) =
        (coordinator.client(), coordinator.client(), coordinator.client());
    p1.send(b"1|1|000000");
    p1.is_granted("1");
    p2.send(b"1|2|000000");
    for expected in ["REQUEST from 1", "GRANT to 1", "REQUEST from 2"] {
        coordinator.logs(expected);
    }
    p3.send(b"1|3|000000");
    coordinator.logs("REQUEST from 3");
    drop(p2);
    coordinator.logs("closed 2: hung up; it leaves the queue");
    p1.send(b"3|1|000000");
    p3.is_granted("3");
}

#[test]
fn who_hangs_up_inside_releases() {
    let coordinator = Coordinator::start();
    let (mut p1, mut p2) = (coordinator.client(), coordinator.client());
    p1.send(b"1|1|000000");
    p1.is_granted("1");
    p2.send(b"1|2|000000");
    for expected in ["REQUEST from 1", "GRANT to 1", "REQUEST from 2"] {
        coordinator.logs(expected);
    }
    drop(p1);
    p2.is_granted("2");
    coordinator.logs("closed 1: hung up; this releases");
    coordinator.logs("GRANT to 2");
}

#[test]
fn who_hangs_up_while_idle_is_not_worth_a_line() {
    let coordinator = Coordinator::start();
    let mut p1 = coordinator.client();
    p1.send(b"1|1|0000003|1|000000");
    p1.is_granted("1");
    for expected in ["REQUEST from 1", "GRANT to 1", "RELEASE from 1"] {
        coordinator.logs(expected);
    }
    drop(p1);
    drop(coordinator.client());
    let mut p2 = coordinator.client();
    p2.send(b"1|2|000000");
    coordinator.logs("REQUEST from 2");
}

/// What is wrong is answered by closing; the log says why, and the others go on.
#[test]
fn wrong_messages_are_answered_by_closing_with_a_logged_reason() {
    let coordinator = Coordinator::start();
    for (bytes, reason) in [
        (&b"GET / HTTP"[..], "no message 'GET / HTTP': it does not begin with 1, 2 or 3"),
        (
            b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03",
            r"no message '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03': it does not begin with 1, 2 or 3",
        ),
        (b"1|12345678", "no message '1|12345678': it lacks a '|' between kind, id and digits"),
        (b"1|5|12345\n", r"no message '1|5|12345\n': it does not end in digits"),
    ] {
        let mut client = coordinator.client();
        client.send(bytes);
        client.is_closed();
        coordinator.logs(&format!("closed: {reason}"));
    }
    let mut client = coordinator.client();
    client.send(b"2|5|123456");
    client.is_closed();
    coordinator.logs("GRANT from 5");
    coordinator.logs("closed 5: a GRANT, which only the coordinator sends");

    let (mut inside, mut waiting) = (coordinator.client(), coordinator.client());
    inside.send(b"1|1|000000");
    inside.is_granted("1");
    waiting.send(b"1|2|000000");
    for expected in ["REQUEST from 1", "GRANT to 1", "REQUEST from 2"] {
        coordinator.logs(expected);
    }
    waiting.send(b"1|2|000000");
    waiting.is_closed();
    coordinator.logs("REQUEST from 2");
    coordinator.logs("closed 2: a second REQUEST while it waits; it leaves the queue");
    inside.send(b"1|1|000000");
    inside.is_closed();
    coordinator.logs("REQUEST from 1");
    coordinator.logs("closed 1: a REQUEST while it is inside; send RELEASE first; this releases");
}

#[test]
fn of_two_clients_with_one_id_the_second_is_refused_until_the_first_is_gone() {
    let coordinator = Coordinator::start();
    let mut first = coordinator.client();
    first.send(b"1|5|000000");
    first.is_granted("5");
    let mut second = coordinator.client();
    second.send(b"1|5|000000");
    second.is_closed();
    for expected in [
        "REQUEST from 5",
        "GRANT to 5",
        "REQUEST from 5",
        "closed 5: another process with the id 5 is connected; ids are unique",
    ] {
        coordinator.logs(expected);
    }
    drop(first);
    let mut third = coordinator.client();
    third.send(b"1|5|000000");
    third.is_granted("5");
    coordinator.logs("closed 5: hung up; this releases");
}

#[test]
fn half_a_message_and_then_the_end_is_told() {
    let coordinator = Coordinator::start();
    let mut client = coordinator.client();
    client.send(b"1|5|0");
    drop(client);
    coordinator.logs("closed: hung up after 5 of 10 bytes of a message");
}

#[test]
fn half_a_message_and_then_silence_is_not_waited_for_for_ever() {
    let message_timeout = Duration::from_millis(20);
    let coordinator = Coordinator::with(Limits { message_timeout, ..Limits::default() });
    let mut idle = coordinator.client();
    let (mut p1, mut p2) = (coordinator.client(), coordinator.client());
    p1.send(b"1|1|000000");
    p1.is_granted("1");
    p2.send(b"1|2|000000");
    for expected in ["REQUEST from 1", "GRANT to 1", "REQUEST from 2"] {
        coordinator.logs(expected);
    }
    p1.send(b"3|1|0");
    p1.is_closed();
    coordinator
        .logs("closed 1: sent 5 of 10 bytes of a message and then nothing for 20ms; this releases");
    p2.is_granted("2");
    // Who says nothing at all may take its time.
    idle.send(b"1|3|000000");
    p2.send(b"3|2|000000");
    idle.is_granted("3");
}

#[test]
fn who_never_reads_its_grants_is_closed_before_they_pile_up() {
    let coordinator = Coordinator::start();
    let mut deaf = coordinator.client().forgetful();
    let rounds = b"1|7|0000003|7|000000".repeat(1000);
    let told = std::thread::scope(|scope| {
        // Writes until the coordinator has closed the connection.
        scope.spawn(|| while deaf.try_send(&rounds).is_ok() {});
        loop {
            let line = coordinator.line().to_string();
            if line.contains("CLOSED") {
                break line;
            }
        }
    });
    let why = "could not be sent its GRANT; it does not read or is gone; this releases";
    assert!(told.contains("| - | 7 | CLOSED: ") && told.ends_with(why), "{told}");
    let mut other = coordinator.client();
    other.send(b"1|8|000000");
    other.is_granted("8");
}

#[test]
fn more_clients_than_are_allowed_are_turned_away() {
    let coordinator = Coordinator::with(Limits { clients: 2, ..Limits::default() });
    let (mut p1, mut p2) = (coordinator.client(), coordinator.client());
    p1.send(b"1|1|000000");
    p1.is_granted("1");
    p2.send(b"1|2|000000");
    for expected in ["REQUEST from 1", "GRANT to 1", "REQUEST from 2"] {
        coordinator.logs(expected);
    }
    coordinator.client().is_closed();
    coordinator.logs("closed: 2 clients are connected already");
    drop(p1);
    p2.is_granted("2");
    coordinator.logs("closed 1: hung up; this releases");
    coordinator.logs("GRANT to 2");
    let mut p3 = coordinator.client();
    p3.send(b"1|3|000000");
    coordinator.logs("REQUEST from 3");
}

/// Half of them hang up while they wait, all at once.
#[test]
fn hundreds_of_clients_are_served_in_order() {
    // Both ends of so many connections are open files of this process; 1,024 are usual.
    const CLIENTS: usize = 400;
    let coordinator = Coordinator::start();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| coordinator.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(format!("1|{number:04}|000").as_bytes());
        coordinator.logs(&format!("REQUEST from {number:04}"));
        if number == 0 {
            coordinator.logs("GRANT to 0000");
        }
    }
    assert_eq!(coordinator.connections.queue().waiting.len(), CLIENTS - 1);
    let mut stay = Vec::new();
    for (number, client) in clients.into_iter().enumerate() {
        if number % 2 == 0 {
            stay.push((number, client));
        }
    }
    let left = (0..CLIENTS / 2).map(|_| coordinator.line().to_string());
    assert_eq!(
        left.filter(|line| line.ends_with("hung up; it leaves the queue")).count(),
        CLIENTS / 2
    );
    for (number, client) in &mut stay {
        client.is_granted(&format!("{number:04}"));
        client.send(format!("3|{number:04}|000").as_bytes());
    }
    coordinator.logs("RELEASE from 0000");
    for (number, _) in &stay[1..] {
        coordinator.logs(&format!("GRANT to {number:04}"));
        coordinator.logs(&format!("RELEASE from {number:04}"));
    }
    assert_eq!(coordinator.connections.served().each().len(), CLIENTS / 2);
}

#[test]
fn the_terminal_answers_and_quits() {
    let mut coordinator = Coordinator::start();
    let (mut p1, mut p2) = (coordinator.client(), coordinator.client());
    p1.send(b"1|1|0000003|1|0000001|1|000000");
    p1.is_granted("1");
    p1.is_granted("1");
    p2.send(b"1|2|000000");
    for _ in 0..6 {
        coordinator.line();
    }
    let ask = |commands: &str| {
        let mut said = Vec::new();
        let silence = answer_terminal(
            BufReader::new(commands.as_bytes()),
            &mut said,
            &coordinator.connections,
        );
        (String::from_utf8(said).unwrap(), silence)
    };
    let queue = "inside: 1\nwaiting: 1\n    1. 2\n";
    assert_eq!(ask("queue"), (queue.to_string(), InputEnd::EndOfInput));
    assert_eq!(ask("\n fila \r\n"), (queue.to_string(), InputEnd::EndOfInput));
    let served = "process  entries\n1              1\ntotal          1\n".to_string();
    assert_eq!(ask("served\nquit\nserved"), (served, InputEnd::Quit));
    assert_eq!(ask("sair"), (String::new(), InputEnd::Quit));
    let unknown = "there is no command 'wh\\u{1b}': say help\n".to_string();
    assert_eq!(ask("wh\u{1b}"), (unknown, InputEnd::EndOfInput));
    for command in ["queue", "served", "quit", "help"] {
        assert!(ask("ajuda").0.contains(command));
    }
    let endless = "x".repeat(1 << 20);
    assert_eq!(ask(&endless).1, InputEnd::EndOfInput);

    coordinator.connections.quit();
    assert_eq!(coordinator.ended().unwrap(), Ended::Quit);
    p1.is_closed();
    p2.is_closed();
}

#[test]
fn a_log_that_cannot_be_written_ends_the_coordinator() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let listener = listen("127.0.0.1:0").unwrap();
    let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let server = Server::new(listener, Log::new(Full), Limits::default());
    client.write_all(b"1|5|000000").unwrap();
    let error = server.run(&AtomicBool::new(false)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn an_address_that_cannot_be_bound_is_told_with_what_to_do() {
    let coordinator = Coordinator::start();
    let taken = listen(&coordinator.address.to_string()).unwrap_err();
    assert!(taken.to_string().contains("already: end that program or take another port"));
    assert!(!taken.is_wrong_input());
    for (address, text, is_wrong_input) in [
        ("", "'' is no address: give one such as 127.0.0.1:7880", true),
        ("7880", "is no address", true),
        ("127.0.0.1:99999", "is no address", true),
        ("192.0.2.1:7880", "is not an address of this machine", false),
    ] {
        let error = listen(address).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!(error.is_wrong_input(), is_wrong_input, "{error}");
    }
}
