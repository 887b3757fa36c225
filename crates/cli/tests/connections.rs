//! `catraca lock` over connections that break, and with nobody at the other end.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use support::Folder;
use support::service::{Process, Service, wait_until};

#[test]
fn a_session_outlives_its_connection() {
    let service = Service::start(1, &[]);
    let proxy = Proxy::start(&service.addresses[0]);
    let line = "echo begun; until test -e go; do sleep 0.05; done; echo $CATRACA_FENCE";
    let start = |line: &str| {
        let words = ["lock", "--node", &proxy.address, "x", "--", "sh", "-c", line];
        Process::start(service.folder.command(&words))
    };
    let holder = start(line);
    holder.says("begun");
    let before = service.locks(0);
    let waiter = start("true");
    wait_until("it waits", || service.locks(0).contains("1 waiter"));
    for round in 1..=3 {
        assert_eq!(proxy.cut(), 2, "both are connected");
        wait_until("both come back", || proxy.connections() == 2 * (round + 1));
    }
    let fence =
        |table: &str| table.lines().nth(2).unwrap().split(' ').next_back().unwrap().to_string();
    assert_eq!(fence(&service.locks(0)), fence(&before));
    service.folder.write("go", "");
    let ran = holder.ends().quietly(0);
    assert!(ran.stdout.contains(&fence(&before)), "{ran:?}");
    waiter.ends().quietly(0);
}

#[test]
fn a_connection_that_breaks_before_the_session_is_open_is_made_anew() {
    let service = Service::start(1, &[]);
    // Cut before the greeting, within it, before the answer that opens the session, within it, and
    // after it.
    let early: Vec<usize> = (0..36).step_by(3).collect();
    for (flags, cuts) in [("-w100", &early[..]), ("-v", &[0, 3]), ("-n", &[0, 18])] {
        let address = breaking(&service.addresses[0], cuts);
        let ran = service.folder.run(&["lock", "--node", &address, flags, "x", "--", "true"]);
        assert_eq!(ran.code, Some(0), "{flags}: {ran:?}");
    }
    assert!(service.locks(0).contains("Nobody"));
}

#[test]
fn what_is_wrong_with_whoever_answers_is_told() {
    let folder = Folder::new();
    let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
    let address = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
    // As a node that is stopped: the system takes connections on its behalf.
    let silent = listen();
    let stranger = listen();
    let cases = [
        (address(&silent), "accepts calls but does not answer", "see its log"),
        (address(&stranger), "is no node", "does not speak catraca's protocol"),
        (breaking("127.0.0.1:1", &[0; 1000]), "the connection to the node broke", ""),
    ];
    std::thread::spawn(move || {
        for client in stranger.incoming().map_while(Result::ok) {
            // Whoever called may be gone.
            (&client).write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").ok();
            (&client).read_to_end(&mut Vec::new()).ok();
        }
    });
    let status = folder.command(&["status", "--node", &cases[0].0]);
    let status = Process::start(status);
    for (address, what, why) in cases {
        let wait = if why.is_empty() { "0.5" } else { "100" };
        let lock = ["lock", "--node", &address, "-w", wait, "x", "--", "touch", "done"];
        let ran = folder.run(&lock);
        assert_eq!(ran.code, Some(125), "{ran:?}");
        assert_eq!(ran.stderr.contains("is no node"), what == "is no node", "{ran:?}");
        ran.complained(&[what, why]);
    }
    let status = status.ends();
    assert_eq!(status.code, Some(125), "{status:?}");
    status.complained(&["accepts calls but does not answer"]);
    assert!(folder.names().is_empty());
}

#[test]
fn without_a_node_it_says_what_to_do() {
    let folder = Folder::new();
    let nowhere = support::service::addresses(1).remove(0);
    let ran = folder.run(&["lock", "--node", &nowhere, "x", "--", "touch", "done"]);
    assert_eq!(ran.code, Some(125), "{ran:?}");
    ran.complained(&[
        "no node answers at",
        "connection refused",
        "start a node with 'catraca node'",
    ]);
    assert!(folder.names().is_empty());
    for command in ["locks", "status"] {
        let ran = folder.run(&[command, "--node", &nowhere]);
        assert_eq!(ran.code, Some(125));
        ran.complained(&["no node answers at"]);
        let two = format!("{nowhere},{nowhere}");
        let ran = folder.run(&[command, "--node", &two]);
        assert_eq!(ran.code, Some(125));
        ran.complained(&["none of the addresses can be used: no node answers at"]);
    }
}

/// Passes bytes on between clients and a node, and cuts connections when told to.
struct Proxy {
    address: String,
    open: Arc<Mutex<Vec<TcpStream>>>,
    count: Arc<Mutex<usize>>,
}

impl Proxy {
    fn start(node: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (open, count) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let proxy = Proxy { address, open: Arc::clone(&open), count: Arc::clone(&count) };
        let node = node.to_string();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(&node) else { return };
                let (client_too, server_too) = (client.try_clone(), server.try_clone());
                open.lock().unwrap().push(client.try_clone().unwrap());
                open.lock().unwrap().push(server.try_clone().unwrap());
                *count.lock().unwrap() += 1;
                std::thread::spawn(move || pass_on(client, server));
                std::thread::spawn(move || pass_on(server_too.unwrap(), client_too.unwrap()));
            }
        });
        proxy
    }

    /// How many connections there have been.
    fn connections(&self) -> usize {
        *self.count.lock().unwrap()
    }

    /// Cuts all connections; returns how many there were.
    fn cut(&self) -> usize {
        let cut: Vec<TcpStream> = self.open.lock().unwrap().drain(..).collect();
        for stream in &cut {
            stream.shutdown(Shutdown::Both).ok();
        }
        cut.len() / 2
    }
}

/// Passes bytes on between clients and a node. The first connections are cut when so many bytes have
/// come from the node. Returns its address.
fn breaking(node: &str, cuts: &[usize]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (node, cuts) = (node.to_string(), cuts.to_vec());
    std::thread::spawn(move || {
        let cuts = cuts.into_iter().chain(std::iter::repeat(usize::MAX));
        for (client, cut) in listener.incoming().map_while(Result::ok).zip(cuts) {
            if cut == 0 {
                continue;
            }
            let server = TcpStream::connect(&node).unwrap();
            let (client_too, mut server_too) =
                (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || pass_on(client_too, server));
            std::thread::spawn(move || {
                let mut client = client;
                // How it ends does not matter.
                std::io::copy(&mut Read::by_ref(&mut server_too).take(cut as u64), &mut client)
                    .ok();
                client.shutdown(Shutdown::Both).ok();
                server_too.shutdown(Shutdown::Both).ok();
            });
        }
    });
    address
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 4096];
    while let Ok(read) = from.read(&mut bytes)
        && read > 0
        && to.write_all(&bytes[..read]).is_ok()
    {}
    to.shutdown(Shutdown::Both).ok();
}
