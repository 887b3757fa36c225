//! Clients that are hostile, or only broken, against a real node: it stays small, it answers everybody
//! else meanwhile, and it gives the memory back when they are gone.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use catraca_client::frame::{self, LONGEST_CLIENT_FRAME, LONGEST_FRAME};
use catraca_client::handshake::{Caller, Hello, MAGIC, Proof, VERSION};
use catraca_client::protocol::{ClientMessage, ServerMessage};
use catraca_group::{Query, Selection, Wait, Who};
use rustix::process::{Resource, getrlimit, setrlimit};
use support::service::{Service, wait_until};

const MIB: u64 = 1 << 20;
/// What a node may take at any moment.
const MOST_MEMORY: u64 = 256 * MIB;
/// What may be left of it when whoever caused it is gone. The allocator keeps pieces of pages that it may
/// need again.
const MOST_LEFT: u64 = 64 * MIB;
/// Nobody waits longer for an answer, however busy the machine is.
const LONGEST_ANSWER: Duration = Duration::from_secs(10);

/// A number of `/proc/PID/status`, in bytes.
fn memory(service: &Service, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.nodes[0].id()));
    let status = status.unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// A client that says and hears whatever it wants.
struct Peer(TcpStream);

impl Peer {
    /// Connects and says hello. The node may hang up at once.
    fn greet(service: &Service) -> std::io::Result<Self> {
        let mut stream = TcpStream::connect(&service.addresses[0])?;
        stream.set_read_timeout(Some(LONGEST_ANSWER))?;
        let mut bytes = MAGIC.to_vec();
        frame::write(&Hello { version: VERSION, caller: Caller::Client }, &mut bytes).unwrap();
        frame::write(&Proof::default(), &mut bytes).unwrap();
        stream.write_all(&bytes)?;
        Ok(Peer(stream))
    }

    /// The same, and is welcome.
    fn connect(service: &Service) -> std::io::Result<Self> {
        let mut peer = Peer::greet(service)?;
        peer.body()?;
        Ok(peer)
    }

    fn say(&mut self, message: &ClientMessage) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        frame::write(message, &mut bytes).unwrap();
        self.0.write_all(&bytes)
    }

    fn body(&mut self) -> std::io::Result<Vec<u8>> {
        let mut length = [0; frame::PREFIX];
        self.0.read_exact(&mut length)?;
        let mut body = vec![0; u32::from_le_bytes(length) as usize];
        self.0.read_exact(&mut body)?;
        Ok(body)
    }

    fn hear(&mut self) -> ServerMessage {
        frame::read(&self.body().unwrap()).unwrap()
    }

    fn open(&mut self) {
        self.say(&ClientMessage::Open { who: Who::default(), ttl: None }).unwrap();
        assert!(matches!(self.hear(), ServerMessage::Opened { .. }));
    }
}

/// Does something to a node, while somebody who has a session is answered all the time, and checks
/// that the node stays small. What `abuse` returns lives until then; afterwards memory comes back.
fn while_others_are_served<T>(service: &Service, abuse: impl FnOnce() -> T) {
    let mut client = Peer::connect(service).unwrap();
    client.open();
    let before = memory(service, "VmRSS");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let (mut answers, mut longest) = (0, Duration::ZERO);
            while !is_over.load(Ordering::Relaxed) {
                let begin = Instant::now();
                client.say(&ClientMessage::Status).unwrap();
                assert!(matches!(client.hear(), ServerMessage::Status(_)));
                longest = longest.max(begin.elapsed());
                answers += 1;
                std::thread::sleep(Duration::from_millis(5));
            }
            (answers, longest)
        });
        let kept = abuse();
        // Whoever comes now is served, too.
        let ran = service.lock(0, "-w 60 newcomer", "true").ends();
        is_over.store(true, Ordering::Relaxed);
        let (answers, longest) = asking.join().unwrap();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(answers > 0 && longest < LONGEST_ANSWER, "{answers} answers, {longest:?}");
        let most = memory(service, "VmHWM");
        assert!(most < MOST_MEMORY, "the node took {} MiB", most / MIB);
        drop(kept);
    });
    wait_until("memory comes back", || memory(service, "VmRSS") < before + MOST_LEFT);
}

#[test]
fn a_thousand_messages_that_never_come_to_their_end() {
    allow_many_files();
    let service = Service::start(1, &[]);
    while_others_are_served(&service, || {
        let longest = (LONGEST_FRAME, vec![0u8; LONGEST_FRAME - 1]);
        let allowed = (LONGEST_CLIENT_FRAME, vec![0u8; LONGEST_CLIENT_FRAME - 1]);
        let mut peers = Vec::new();
        for (length, bytes) in [longest, allowed] {
            for _ in 0..1000 {
                let Ok(mut peer) = Peer::greet(&service) else { continue };
                // The node may hang up, and does not read what it does not want.
                peer.0.set_write_timeout(Some(Duration::from_millis(20))).unwrap();
                if peer.0.write_all(&(length as u32).to_le_bytes()).is_ok() {
                    peer.0.write_all(&bytes).ok();
                }
                peers.push(peer);
            }
        }
        peers
    });
}

#[test]
fn a_hundred_clients_that_do_not_read_twenty_lists_of_a_hundred_thousand_locks() {
    const LOCKS: usize = 100_000;
    allow_many_files();
    let service = Service::start(1, &[]);
    let mut holder = Peer::connect(&service).unwrap();
    holder.open();
    let names: Vec<String> = (0..LOCKS).map(|number| format!("held/{number}")).collect();
    for (request, names) in names.chunks(250).enumerate() {
        let (request, names) = (request as u32, names.to_vec());
        holder
            .say(&ClientMessage::Acquire { request, names, permits: 1, wait: Wait::Forever })
            .unwrap();
        assert!(matches!(holder.hear(), ServerMessage::Granted { .. }));
    }
    while_others_are_served(&service, || {
        let query =
            Query { whole_group: true, names: Selection::All, after: None, limit: LOCKS as u32 };
        let ask = || {
            let mut peer = Peer::connect(&service).unwrap();
            for _ in 0..20 {
                peer.say(&ClientMessage::List(query.clone())).unwrap();
            }
            peer
        };
        let peers: Vec<Peer> = (0..100).map(|_| ask()).collect();
        // Until the node has written to each of them what they have room for.
        std::thread::sleep(Duration::from_secs(2));
        peers
    });
}

#[test]
fn twenty_thousand_connections_that_only_sit_there() {
    let most = allow_many_files();
    let service = Service::start(1, &[]);
    let count = (most.saturating_sub(500) as usize).min(20_000);
    while_others_are_served(&service, || {
        let mut peers: Vec<Peer> = Vec::with_capacity(count);
        while peers.len() < count {
            let Ok(mut peer) = Peer::greet(&service) else { continue };
            // One that is refused stays here, too. Without waiting for the answer the system would put
            // connections off that the node cannot accept as fast.
            peer.body().ok();
            peers.push(peer);
        }
        println!("{count} connections");
        peers
    });
}

/// As many open files as the system allows, for this process and the node. Returns how many.
fn allow_many_files() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    limit.maximum.unwrap_or(1 << 20)
}
