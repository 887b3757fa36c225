//! The process over TCP, against the coordinator and against coordinators that it should not meet.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catraca_classroom::{Expected, Process, ProcessError, verify};

use support::Coordinator;

static GOING: AtomicBool = AtomicBool::new(false);

fn process(id: &str, rounds: u32, hold: Duration) -> Process {
    Process { id: id.parse().unwrap(), rounds, hold }
}

/// A file that all processes write to, whole lines at a time.
struct Shared<'a>(&'a Mutex<Vec<u8>>);

impl Write for Shared<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// 'Multiplos processos que solicitam acesso concorrente.' Reference: S3, section 1.
#[test]
fn paper_processes_that_contend_leave_files_that_agree() {
    let coordinator = Coordinator::start();
    let address = coordinator.address.to_string();
    let result = Mutex::new(Vec::new());
    let (rounds, hold) = (3, Duration::from_millis(2));
    let ids = ["76", "13", "54", "23", "16"];
    std::thread::scope(|scope| {
        for id in ids {
            scope.spawn(|| {
                process(id, rounds, hold).run(&address, &mut Shared(&result), &GOING).unwrap();
            });
        }
    });
    let lines = (0..3 * ids.len() * 3).map(|_| format!("{}\n", coordinator.line()));
    let log: String = lines.collect();
    let result = String::from_utf8(result.into_inner().unwrap()).unwrap();
    let processes = ids.map(|id| id.parse().unwrap()).to_vec();
    let account = verify(&log, &result, &Expected { processes, rounds, hold }).unwrap();
    assert!(account.total >= hold * 15, "{account:?}");
}

/// Answers a process's REQUEST with `answer`, then closes.
fn answered(answer: &[u8]) -> ProcessError {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 10]).unwrap();
            stream.write_all(answer).unwrap();
        });
        let hold = Duration::from_secs(3600);
        process("5", 1, hold).run(&address, &mut Vec::new(), &GOING).unwrap_err()
    })
}

#[test]
fn a_coordinator_that_says_something_else_is_told_apart_from_one_that_is_gone() {
    for (answer, text) in [
        (
            &b""[..],
            "closed the connection to this process while it waited: if it still runs, its log",
        ),
        (b"2|5|12", "closed the connection to this process while it waited"),
        (b"2|5|000000", "closed the connection to this process while it was inside"),
        (b"HTTP/1.1 400", "is no message: it does not begin with 1, 2 or 3"),
        (b"2|6|000000", "sent '2|6|000000', which nobody waited for"),
        (b"1|5|000000", "sent '1|5|000000', which nobody waited for"),
        (b"2|5|0000002|5|000000", "sent '2|5|000000', which nobody waited for"),
    ] {
        let error = answered(answer).to_string();
        assert!(error.contains(text), "{}: {error}", answer.escape_ascii());
    }
}

#[test]
fn a_coordinator_that_is_not_there_is_told_with_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let run = |address: &str| {
        process("5", 1, Duration::ZERO).run(address, &mut Vec::new(), &GOING).unwrap_err()
    };
    let error = run(&address).to_string();
    assert!(error.contains("start one with 'catraca coordinator'"), "{error}");
    assert!(matches!(run("nowhere"), ProcessError::NoAddress(_)));
}

#[test]
fn an_interrupted_process_leaves_the_queue() {
    let coordinator = Coordinator::start();
    let mut inside = coordinator.client();
    inside.send(b"1|1|000000");
    inside.is_granted("1");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let address = coordinator.address.to_string();
        let stop = &stop;
        let waiting = scope.spawn(move || {
            process("2", 1, Duration::ZERO).run(&address, &mut Vec::new(), stop).unwrap_err()
        });
        for expected in ["REQUEST from 1", "GRANT to 1", "REQUEST from 2"] {
            coordinator.logs(expected);
        }
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(waiting.join().unwrap(), ProcessError::Interrupted));
    });
    coordinator.logs("closed 2: hung up; it leaves the queue");
}

#[test]
fn a_process_whose_id_is_taken_is_closed() {
    let coordinator = Coordinator::start();
    let mut first: TcpStream = TcpStream::connect(coordinator.address).unwrap();
    first.write_all(b"1|5|000000").unwrap();
    first.read_exact(&mut [0; 10]).unwrap();
    let address = coordinator.address.to_string();
    let error = process("5", 1, Duration::ZERO).run(&address, &mut Vec::new(), &GOING).unwrap_err();
    assert!(matches!(error, ProcessError::Closed(_)), "{error}");
}
