//! Two instances sell the seats of one show, and one of them is killed meanwhile.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const GENEROUS: Duration = Duration::from_secs(120);

/// An instance that does not outlive the test.
struct Instance {
    child: Child,
    address: String,
}

impl Instance {
    fn start(name: &str, members: &str, folder: &Path) -> Instance {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rust-service"));
        command.args([name, members, folder.to_str().unwrap(), "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("sells at ").unwrap().to_string();
        Instance { child, address }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Asks for a seat at an instance, over a connection of its own.
fn book(address: &str, show: &str, who: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(GENEROUS)).unwrap();
    writeln!(stream, "book {show} {who}").ok()?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).ok()?;
    let answer = answer.trim().to_string();
    (!answer.is_empty()).then_some(answer)
}

/// Addresses that no other test has: the loopback network is large.
fn addresses<const N: usize>(first: u16) -> [String; N] {
    let [_, one, two, three] = std::process::id().to_be_bytes();
    std::array::from_fn(|at| format!("127.{}.{two}.{three}:{}", 100 + one, first + at as u16))
}

#[test]
fn no_seat_is_sold_twice_though_an_instance_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, c] = addresses(7100);
    let members = format!("a={a},b={b},c={c}");
    let mut all = ["a", "b", "c"].map(|name| Instance::start(name, &members, folder.path()));
    let customers = |addresses: Vec<String>, first: usize| -> Vec<String> {
        let customers: Vec<_> = (first..first + 30)
            .map(|number| {
                let address = addresses[number % addresses.len()].clone();
                let who = format!("customer-{number}");
                std::thread::spawn(move || book(&address, "hamlet", &who))
            })
            .collect();
        customers.into_iter().filter_map(|customer| customer.join().unwrap()).collect()
    };
    let addresses = || all.iter().map(|one| one.address.clone()).collect::<Vec<_>>();
    let mut answers = customers(addresses(), 0);
    assert_eq!(
        answers.iter().filter(|answer| answer.starts_with("seat ")).count(),
        30,
        "{answers:?}"
    );
    // The other two go on without it.
    let others = addresses()[1..].to_vec();
    all[0].child.kill().unwrap();
    answers.extend(customers(others, 30));

    let sold: Vec<&str> =
        answers.iter().filter_map(|answer| answer.strip_prefix("seat ")).collect();
    assert_eq!(sold.len(), 60, "{answers:?}");
    let seats: BTreeSet<&str> = sold.iter().map(|sold| sold.split(' ').next().unwrap()).collect();
    assert_eq!(seats.len(), 60, "a seat was sold twice: {answers:?}");
    let file = std::fs::read_to_string(folder.path().join("hamlet")).unwrap();
    let fences: Vec<u64> =
        file.lines().map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    assert!(fences.is_sorted() && fences.len() == 60, "{file}");
}

#[test]
fn what_is_no_request_is_answered_and_sells_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let [own] = addresses(7200);
    let instance = Instance::start("a", &format!("a={own}"), folder.path());
    assert_eq!(book(&instance.address, "../etc", "ana").unwrap(), "say: book SHOW NAME");
    assert_eq!(book(&instance.address, "", "").unwrap(), "say: book SHOW NAME");
    let usage = Command::new(env!("CARGO_BIN_EXE_rust-service")).output().unwrap();
    assert_eq!(usage.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&usage.stderr).contains("usage: rust-service"));
}
