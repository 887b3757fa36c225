//! HTTP and RESP of real nodes that are killed, stopped and told wrong addresses. docs/INTERFACES.md names
//! what is promised.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use serde_json::{Value, json};
use support::service::{Service, addresses, wait_until};
use support::{Folder, GENEROUS};

/// Three members that serve every interface, and where.
struct Interfaces {
    service: Service,
    http: Vec<String>,
    resp: Vec<String>,
}

impl Interfaces {
    fn start(lease: &str) -> Self {
        let (http, resp) = (addresses(3), addresses(3));
        let service = Service { folder: Folder::new(), addresses: addresses(3), nodes: Vec::new() };
        let mut all = Interfaces { service, http, resp };
        for member in 0..3 {
            let flags =
                ["--lease", lease, "--http", &all.http[member], "--resp", &all.resp[member]];
            let node = all.service.node(member, &flags);
            all.service.nodes.push(node);
        }
        all.service.is_whole();
        all
    }

    /// A member that does not lead the registry, and two others.
    fn victim(&self) -> (usize, [usize; 2]) {
        let status = self.service.client(0, &["status", "--json"], &[]).ends().stdout;
        let status: Value = serde_json::from_str(&status).unwrap();
        let leader = status["registry"]["leader"].as_str().unwrap().as_bytes()[0] - b'a';
        let leader = usize::from(leader);
        ((leader + 1) % 3, [leader, (leader + 2) % 3])
    }

    fn http(&self, member: usize) -> Http {
        Http::open(&self.http[member])
    }

    fn resp(&self, member: usize) -> Resp {
        Resp::open(&self.resp[member])
    }

    fn signal(&self, member: usize, which: &str) {
        self.service.nodes[member].signal(which);
    }

    /// Waits until `member` finds this hold. Until then it says that it cannot know, and never that the hold
    /// is over.
    fn finds(&self, member: usize, place: &str) -> Value {
        let mut found = None;
        wait_until("the hold is found at another member", || {
            let (status, body) = self.http(member).ask("GET", place, None);
            assert!([200, 503].contains(&status), "{status} {body}");
            found = (status == 200).then_some(body);
            found.is_some()
        });
        found.unwrap()
    }
}

/// A connection over HTTP.
struct Http(BufReader<TcpStream>);

impl Http {
    fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(GENEROUS)).unwrap();
        Http(BufReader::new(stream))
    }

    fn send(&mut self, method: &str, path: &str, body: Option<Value>) {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
        let kind = "Content-Type: application/json";
        let text = format!("{head}{kind}\r\nContent-Length: {length}\r\n\r\n{body}");
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// The status and the body of the next answer; nothing if the node hangs up.
    fn hear(&mut self) -> Option<(u16, Value)> {
        let mut line = String::new();
        if self.0.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            match line.trim_end().to_ascii_lowercase().split_once(": ") {
                Some(("content-length", text)) => length = text.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        Some((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }

    fn ask(&mut self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        self.send(method, path, body);
        self.hear().expect("an answer")
    }

    /// A hold: where it is found, and its fence.
    fn acquire(&mut self, names: &[&str], wait_ms: u64) -> (String, u64) {
        let wanted = json!({"names": names, "ttl_ms": 600_000, "wait_ms": wait_ms});
        let (status, hold) = self.ask("POST", "/v1/acquire", Some(wanted));
        assert_eq!(status, 201, "{hold}");
        (format!("/v1/holds/{}", hold["id"].as_str().unwrap()), fence(&hold))
    }
}

fn fence(hold: &Value) -> u64 {
    hold["fences"][0].as_str().unwrap().parse().unwrap()
}

/// A connection over RESP, with what comes back as plain text.
struct Resp(BufReader<TcpStream>);

impl Resp {
    fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(GENEROUS)).unwrap();
        Resp(BufReader::new(stream))
    }

    fn send(&mut self, words: &[&str]) {
        let mut text = format!("*{}\r\n", words.len());
        for word in words {
            text.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// The next answer, its items with spaces between; nothing if the node hangs up.
    fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        let line = line.trim_end();
        let (kind, rest) = line.split_at(1);
        Some(match (kind, rest) {
            ("$" | "*", "-1") | ("_", _) => "nil".to_string(),
            ("$", length) => {
                let mut bytes = vec![0; length.parse::<usize>().unwrap() + 2];
                self.0.read_exact(&mut bytes).unwrap();
                String::from_utf8_lossy(&bytes).trim_end().to_string()
            }
            ("*", count) => {
                let items = (0..count.parse().unwrap()).map(|_: usize| self.hear().unwrap());
                items.collect::<Vec<_>>().join(" ")
            }
            ("-", why) => format!("error {why}"),
            _ => rest.to_string(),
        })
    }

    fn call(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        self.send(&words);
        self.hear().expect("an answer")
    }

    /// Deletes a key if it has this value, as lock libraries do.
    fn delete_if(&mut self, key: &str, value: &str) -> String {
        let script = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
        self.send(&["EVAL", script, "1", key, value]);
        self.hear().expect("an answer")
    }
}

#[test]
fn a_hold_over_http_is_found_at_another_member_when_its_node_is_killed() {
    let all = Interfaces::start("2s");
    let (victim, [one, other]) = all.victim();
    let (place, fence_before) = all.http(victim).acquire(&["x"], 0);
    let mut waiting = all.http(victim);
    let patient = json!({"names": ["x"], "wait_ms": 600_000});
    waiting.send("POST", "/v1/acquire", Some(patient));
    wait_until("it waits", || all.service.locks(victim).contains("1 waiter"));
    all.signal(victim, "KILL");
    assert_eq!(waiting.hear(), None, "whoever waited there is told by the end of its connection");
    let found = all.finds(one, &place);
    assert_eq!(fence(&found), fence_before);
    assert_ne!(found["member"], char::from(b'a' + victim as u8).to_string());
    // Nobody else is inside, and its client does with it what it likes.
    let wanted = json!({"names": ["x"]});
    let (status, refused) = all.http(other).ask("POST", "/v1/acquire", Some(wanted));
    assert_eq!((status, &refused["code"]), (409, &json!("taken")), "{refused}");
    assert_eq!(all.http(other).ask("POST", &format!("{place}/renew"), None).0, 200);
    assert_eq!(all.http(one).ask("DELETE", &place, None).0, 204);
    let (_, next) = all.http(other).acquire(&["x"], 60_000);
    assert!(next > fence_before);
    assert_eq!(all.http(one).ask("GET", &place, None).0, 410);
}

#[test]
fn a_hold_over_http_goes_on_elsewhere_when_its_node_is_stopped_beyond_its_lease() {
    let all = Interfaces::start("2s");
    let (victim, [one, other]) = all.victim();
    let mut client = all.http(victim);
    let (place, fence_before) = client.acquire(&["x"], 0);
    all.signal(victim, "STOP");
    // What it is asked meanwhile it answers later, when it knows no more.
    client.send("POST", &format!("{place}/renew"), None);
    assert_eq!(fence(&all.finds(one, &place)), fence_before);
    assert_eq!(all.http(other).ask("DELETE", &place, None).0, 204);
    let (held, next) = all.http(one).acquire(&["x"], 60_000);
    assert!(next > fence_before);
    all.signal(victim, "CONT");
    let (status, body) = client.hear().expect("an answer");
    assert!([410, 503].contains(&status), "what was released is not renewed: {status} {body}");
    all.service.is_whole();
    let (status, body) = all.http(victim).ask("GET", &place, None);
    assert_eq!(status, 410, "{body}");
    let (status, body) = all.http(victim).ask("GET", &held, None);
    assert_eq!((status, fence(&body)), (200, next), "{body}");
    let (status, body) = all.http(victim).ask("POST", "/v1/acquire", Some(json!({"names": ["x"]})));
    assert_eq!(status, 409, "{body}");
}

#[test]
fn a_key_of_redis_goes_on_elsewhere_when_its_node_is_stopped_beyond_its_lease() {
    let all = Interfaces::start("2s");
    let (victim, [one, other]) = all.victim();
    let mut holder = all.resp(victim);
    assert_eq!(holder.call("SET x mine NX PX 600000"), "OK");
    all.signal(victim, "STOP");
    wait_until("the key is found at another member", || {
        let value = all.resp(one).call("GET x");
        assert!(value == "mine" || value.starts_with("error UNAVAILABLE"), "{value}");
        value == "mine"
    });
    assert_eq!(all.resp(other).call("SET x yours NX PX 600000"), "nil");
    assert_eq!(all.resp(other).delete_if("x", "yours"), "0");
    assert_eq!(all.resp(other).delete_if("x", "mine"), "1");
    let mut next = all.resp(one);
    wait_until("it is free", || next.call("SET x yours NX PX 600000") == "OK");
    all.signal(victim, "CONT");
    all.service.is_whole();
    // The one that was away neither takes it from the other nor believes to have it.
    assert_eq!(all.resp(victim).call("GET x"), "yours");
    assert_eq!(all.resp(victim).delete_if("x", "mine"), "0");
    assert_eq!(all.resp(victim).call("SET x mine NX PX 600000"), "nil");
}

#[test]
fn a_lock_of_a_connection_is_lost_when_its_node_is_stopped_beyond_its_lease() {
    let all = Interfaces::start("2s");
    let (victim, [one, _]) = all.victim();
    let mut holder = all.resp(victim);
    let granted = holder.call("CATRACA.LOCK x");
    let fence = |granted: &str| granted.split(' ').nth(1).unwrap().parse::<u64>().unwrap();
    all.signal(victim, "STOP");
    let next = all.resp(one).call("CATRACA.LOCK x WAIT 100000 TTL 600000");
    assert!(fence(&next) > fence(&granted), "{granted}, then {next}");
    all.signal(victim, "CONT");
    // The connection ends, which is how its client learns.
    let mut said = Vec::new();
    while let Some(word) = holder.hear() {
        said.push(word);
    }
    assert!(said.iter().all(|word| word.starts_with("error UNAVAILABLE")), "{said:?}");
    all.service.is_whole();
    assert_eq!(all.resp(victim).call(&format!("CATRACA.CHECK x {}", fence(&next))), "1");
    assert_eq!(all.resp(victim).call(&format!("CATRACA.CHECK x {}", fence(&granted))), "0");
}

#[test]
fn a_durable_hold_stays_whatever_happens_to_nodes() {
    let mut all = Interfaces::start("2s");
    let (victim, [one, other]) = all.victim();
    let wanted = json!({"names": ["x"], "durable": true, "owner": "ann", "request_id": "1"});
    let (status, hold) = all.http(victim).ask("POST", "/v1/acquire", Some(wanted));
    assert_eq!(status, 201, "{hold}");
    let place = format!("/v1/holds/{}", hold["id"].as_str().unwrap());
    let is_there = |all: &Interfaces, member: usize| {
        assert_eq!(fence(&all.finds(member, &place)), fence(&hold));
        let wanted = json!({"names": ["x"]});
        let (status, refused) = all.http(member).ask("POST", "/v1/acquire", Some(wanted));
        // Until the next view begins it may not be known.
        assert!([409, 503].contains(&status), "{refused}");
    };
    all.signal(victim, "KILL");
    is_there(&all, one);
    let again = ["--lease", "2s", "--http", &all.http[victim], "--resp", &all.resp[victim]];
    all.service.nodes[victim] = all.service.node(victim, &again);
    all.service.is_whole();
    is_there(&all, victim);
    all.signal(victim, "TERM");
    is_there(&all, other);
    wait_until("it has stopped", || all.service.nodes[victim].has_ended());
    assert_eq!(all.http(other).ask("DELETE", &format!("{place}?owner=bob"), None).0, 403);
    assert_eq!(all.http(other).ask("DELETE", &format!("{place}?owner=ann"), None).0, 204);
    let (_, next) = all.http(one).acquire(&["x"], 60_000);
    assert!(next > fence(&hold));
}

#[test]
fn whoever_watches_sees_the_stream_end_with_its_node() {
    for signal in ["KILL", "TERM"] {
        let (http, resp) = (addresses(1).remove(0), addresses(1).remove(0));
        let flags = ["--http", &http, "--resp", &resp, "--drain", "0s"];
        let service = Service::start(1, &flags);
        let mut events = TcpStream::connect(&http).unwrap();
        events.set_read_timeout(Some(GENEROUS)).unwrap();
        events.write_all(b"GET /v1/changes HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut events = BufReader::new(events);
        let mut said = String::new();
        while !said.contains("retry: 1000") {
            assert_ne!(events.read_line(&mut said).unwrap(), 0, "{said}");
        }
        let mut watching = Resp::open(&resp);
        watching.call("CATRACA.WATCH");
        assert_eq!(service.lock(0, "x", "true").ends().code, Some(0));
        while !said.contains("event: released") {
            assert_ne!(events.read_line(&mut said).unwrap(), 0, "{said}");
        }
        service.nodes[0].signal(signal);
        // Both end: no client waits for ever.
        let mut rest = Vec::new();
        let _ = events.read_to_end(&mut rest);
        while watching.hear().is_some() {}
    }
}

#[test]
fn an_address_that_cannot_be_served_is_refused_before_anything_begins() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let own = addresses(1).remove(0);
    for flag in ["--http", "--resp"] {
        let cases: [(&str, i32, &str); 6] = [
            (&taken, 1, "in use"),
            ("localhost", 2, "HOST:PORT"),
            ("localhost:http", 2, "HOST:PORT"),
            ("127.0.0.1:65536", 2, "HOST:PORT"),
            ("", 2, "HOST:PORT"),
            // Nobody has this address.
            ("198.51.100.7:7880", 1, "198.51.100.7:7880"),
        ];
        for (address, code, complaint) in cases {
            let folder = Folder::new();
            let node = ["node", "--listen", &own, "--data", "data", flag, address];
            let ran = folder.run(&node);
            assert_eq!(ran.code, Some(code), "{flag} '{address}': {ran:?}");
            assert_eq!(ran.stdout, "", "{flag} '{address}': {ran:?}");
            let last = ran.stderr.lines().last().unwrap_or_default();
            assert!(last.starts_with("catraca: "), "{flag} '{address}': {ran:?}");
            assert!(last.contains(complaint), "{flag} '{address}': {ran:?}");
        }
    }
}

#[test]
fn an_address_that_others_reach_needs_somebody_who_asks_who_calls() {
    for flag in ["--http", "--resp"] {
        let folder = Folder::new();
        let own = addresses(1).remove(0);
        let node = ["node", "--listen", &own, "--data", "data", flag, "0.0.0.0:0"];
        let ran = folder.run(&node);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.contains("--insecure"), "{ran:?}");
        let told = support::service::Process::start(
            folder.command(&[&node[..], &["--insecure"]].concat()),
        );
        told.says("listens at");
        told.signal("TERM");
        assert_eq!(told.ends().code, Some(0));
    }
}

#[test]
fn both_interfaces_are_served_at_the_addresses_of_the_flags_and_said() {
    let (http, resp) = (addresses(1).remove(0), addresses(1).remove(0));
    let service = Service::start(1, &["--http", &http, "--resp", &resp]);
    service.nodes[0].says(&format!("curl http://{http}/v1/locks"));
    let (host, port) = resp.split_once(':').unwrap();
    service.nodes[0].says(&format!("redis-cli -h {host} -p {port} CATRACA.HELP"));
    assert_eq!(Http::open(&http).ask("GET", "/healthz", None).0, 200);
    assert_eq!(Resp::open(&resp).call("PING"), "PONG");
}

/// Every source of tests below a folder, one after the other.
fn sources(folder: &Path, all: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        match (path.is_dir(), ending) {
            (true, _) => sources(&path, all),
            (false, Some("rs" | "py")) => all.push_str(&std::fs::read_to_string(&path).unwrap()),
            (false, _) => {}
        }
    }
}

/// The text of a document. Every test that it names is there.
fn with_its_tests(document: &str, least: usize) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(document)).unwrap();
    let mut all = String::new();
    for folder in ["crates", "clients/python"] {
        sources(&root.join(folder), &mut all);
    }
    // Every other part is between backticks.
    let named = text.split('`').skip(1).step_by(2);
    let is_test = |word: &&str| {
        let is_name = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        is_name && word.matches('_').count() > 3
    };
    let named: Vec<&str> = named.filter(is_test).collect();
    assert!(named.len() >= least, "{named:?}");
    for name in named {
        let is_there =
            all.contains(&format!("fn {name}(")) || all.contains(&format!("def {name}("));
        assert!(is_there, "{document}: there is no test '{name}'");
    }
    text
}

#[test]
fn every_test_that_is_named_where_something_is_guaranteed_is_there() {
    with_its_tests("docs/GUARANTEES.md", 30);
}

#[test]
fn every_test_that_is_named_where_interfaces_promise_something_is_there() {
    let text = with_its_tests("docs/INTERFACES.md", 31);
    // Nobody is left without a line.
    for row in text.lines().filter(|line| line.starts_with('|')) {
        assert!(row.split('|').skip(1).all(|cell| cell != " "), "an empty cell: {row}");
    }
}
