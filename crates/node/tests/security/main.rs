//! Who gets in and who does not: tokens, roles, names, certificates, sockets.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod faces;
#[path = "../support/pki.rs"]
mod pki;
#[path = "../support/mod.rs"]
mod support;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use catraca_client::handshake::{self, Caller, Proof};
use catraca_client::protocol::{ClientMessage, RosterChange, ServerMessage};
use catraca_client::stream::Stream;
use catraca_client::{
    Client, ClientError, Connection, Credentials, Nodes, Query, Refusal, Target, Unlock, Wait, Who,
};
use catraca_node::{
    Config, LinkStatus, Memory, Node, Readiness, RegistryPlace, Role, SecurityConfig, StartError,
    TokenFile,
};
use pki::{Authority, Kind, credentials};
use rustix::process::{Resource, getrlimit, setrlimit};
use support::{configs, group_of, linked, listener, listeners, start, together, until};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Nothing takes so long, however busy the machine is.
const GENEROUS: Duration = Duration::from_secs(60);

/// A file of tokens.
struct Tokens(TempDir);

impl Tokens {
    fn new() -> Self {
        let tokens = Tokens(tempfile::tempdir().unwrap());
        TokenFile::change(&tokens.path(), |_| Ok(())).unwrap();
        tokens
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("tokens")
    }

    fn add(&self, name: &str, role: Role, names: &[&str]) -> Credentials {
        Credentials::default().with_token(self.text(name, role, names))
    }

    fn text(&self, name: &str, role: Role, names: &[&str]) -> String {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        TokenFile::change(&self.path(), |file| file.add(name, role, &names, "")).unwrap()
    }

    fn security(&self) -> SecurityConfig {
        SecurityConfig { tokens: Some(self.path()), ..SecurityConfig::default() }
    }
}

async fn alone(security: SecurityConfig) -> Node {
    let mut config = Config::alone();
    config.listen = Some("127.0.0.1:0".to_string());
    config.security = security;
    Node::start(config).await.unwrap()
}

async fn open(node: &Node, credentials: &Credentials) -> Result<Connection, ClientError> {
    Connection::open_with(&node.address().to_string(), credentials).await
}

#[track_caller]
fn denied<T: std::fmt::Debug>(result: Result<T, ClientError>, part: &str) {
    match result {
        Err(ClientError::Refused(Refusal::Denied(why))) => assert!(why.contains(part), "{why}"),
        other => panic!("{other:?}"),
    }
}

/// Asks for a lock in a session of its own.
async fn lock(connection: &mut Connection, request: u32, name: &str) -> ServerMessage {
    connection.acquire(request, &[name.to_string()], 1, Wait::Forever).await.unwrap();
    tokio::time::timeout(GENEROUS, connection.receive()).await.unwrap().unwrap()
}

#[tokio::test]
async fn without_a_token_nobody_gets_in_and_with_one_by_its_role_and_names() {
    let tokens = Tokens::new();
    let observe = tokens.add("eye", Role::Observe, &[]);
    let ci = tokens.add("ci", Role::Lock, &["ci/*"]);
    let admin = tokens.add("ana", Role::Administer, &[]);
    let node = alone(tokens.security()).await;
    denied(open(&node, &Credentials::default()).await.map(|_| ()), "give a token");
    let unknown = Credentials::default().with_token("cat_nobody");
    denied(open(&node, &unknown).await.map(|_| ()), "not known here");

    let mut eye = open(&node, &observe).await.unwrap();
    assert_eq!(eye.status().await.unwrap().node, "alone");
    eye.page(Query::default()).await.unwrap();
    denied(eye.open_session(Who::default(), None).await, "takes the role 'lock'");
    denied(eye.leave().await, "takes the role 'administer'");
    denied(eye.change_roster(RosterChange::Remove("x".into())).await, "'administer'");
    assert_eq!(eye.status().await.unwrap().sessions, 0, "it goes on being served");

    let mut client = open(&node, &ci).await.unwrap();
    client.open_session(Who::default(), None).await.unwrap();
    assert!(matches!(lock(&mut client, 1, "ci/build").await, ServerMessage::Granted { .. }));
    match lock(&mut client, 2, "prod/deploy").await {
        ServerMessage::Refused { request: 2, why: Refusal::Denied(why) } => {
            assert!(why.contains("'prod/deploy', only 'ci/*'"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    denied(client.leave().await, "'administer'");
    // By the id of a session of others one gets no further.
    let by_force = Unlock { target: Target::Name("ci/build".into()), owner: None };
    client.send(&ClientMessage::Unlock { request: 3, unlock: by_force }).await.unwrap();
    let answer = client.receive().await.unwrap();
    assert!(
        matches!(answer, ServerMessage::Durable { result: Err(Refusal::Denied(_)), .. }),
        "{answer:?}"
    );

    // Whoever may see some names sees no others.
    let mut other = open(&node, &admin).await.unwrap();
    other.open_session(Who::default(), None).await.unwrap();
    assert!(matches!(lock(&mut other, 1, "prod/deploy").await, ServerMessage::Granted { .. }));
    let query = Query { limit: 10, ..Query::default() };
    let names = |page: catraca_client::Page| -> Vec<String> {
        page.lines.into_iter().map(|line| line.key.name).collect()
    };
    assert_eq!(names(client.page(query.clone()).await.unwrap()), ["ci/build"]);
    assert_eq!(names(other.page(query).await.unwrap()), ["ci/build", "prod/deploy"]);
}

#[tokio::test]
async fn whoever_administers_some_names_does_not_change_the_group() {
    let tokens = Tokens::new();
    let some = tokens.add("some", Role::Administer, &["ci/*"]);
    let all = tokens.add("all", Role::Administer, &[]);
    let node = alone(tokens.security()).await;
    let mut some = open(&node, &some).await.unwrap();
    denied(some.kick("alone", "me").await, "administers only 'ci/*'");
    denied(some.leave().await, "administers only 'ci/*'");
    denied(some.change_roster(RosterChange::Remove("x".into())).await, "administers only 'ci/*'");
    assert_eq!(node.status().readiness, Readiness::Ready, "it goes on");
    // What is its own it may do.
    let nobody = some.force_release("ci/x", &[], "me").await.unwrap_err();
    assert!(matches!(nobody, ClientError::Refused(Refusal::NoSuchHold(_))), "{nobody}");
    let mut all = open(&node, &all).await.unwrap();
    let last = all.leave().await.unwrap().unwrap_err();
    assert!(
        last.contains("this is the last one of the group"),
        "it may, and nobody else is there: {last}"
    );
}

#[tokio::test]
async fn a_token_that_is_revoked_ends_its_sessions_and_no_others() {
    let tokens = Tokens::new();
    let (kept, gone) = (tokens.add("kept", Role::Lock, &[]), tokens.add("gone", Role::Lock, &[]));
    let node = alone(tokens.security()).await;
    let client = |credentials: &Credentials| {
        let builder = Client::builder().addresses([node.address().to_string()]);
        builder.credentials(credentials.clone()).ttl(Duration::from_secs(2)).connect()
    };
    let (stays, goes) = (client(&kept).await.unwrap(), client(&gone).await.unwrap());
    let (safe, lost) = (stays.lock("a").await.unwrap(), goes.lock("b").await.unwrap());
    TokenFile::change(&tokens.path(), |file| file.revoke("gone")).unwrap();
    let new = tokens.add("new", Role::Lock, &[]);
    node.reload().unwrap();
    tokio::time::timeout(GENEROUS, lost.lost()).await.expect("it is lost");
    assert!(safe.is_valid());
    denied(client(&gone).await.map(|_| ()), "not known here");
    // What it held is free for whoever may have it.
    let other = client(&new).await.unwrap();
    other.lock("b").within(GENEROUS).await.unwrap();
    safe.release().await.unwrap();
}

#[tokio::test]
async fn a_file_of_tokens_that_others_can_write_or_that_is_not_there_starts_no_node() {
    use std::os::unix::fs::PermissionsExt;
    let tokens = Tokens::new();
    std::fs::set_permissions(tokens.path(), PermissionsExt::from_mode(0o660)).unwrap();
    let start = || async {
        let mut config = Config::alone();
        config.listen = Some("127.0.0.1:0".to_string());
        config.security = tokens.security();
        Node::start(config).await.map(|_| ()).unwrap_err()
    };
    let error = start().await;
    assert!(matches!(error, StartError::Tokens(_)), "{error}");
    assert!(error.to_string().contains("chmod 600"), "{error}");
    std::fs::remove_file(tokens.path()).unwrap();
    assert!(start().await.to_string().contains("cannot read"));
}

#[tokio::test]
async fn where_other_machines_reach_a_node_it_asks_who_calls_or_was_told_not_to() {
    let tokens = Tokens::new();
    let start = |security: SecurityConfig| async {
        let mut config = Config::alone();
        config.listen = Some("0.0.0.0:0".to_string());
        config.security = security;
        Node::start(config).await
    };
    let error = start(SecurityConfig::default()).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, StartError::Insecure(_)), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let mut one_sided = authority.member("alone");
    one_sided.tls.as_mut().unwrap().authority = None;
    assert!(matches!(start(one_sided).await.map(|_| ()), Err(StartError::Insecure(_))));
    let insecure = SecurityConfig { is_insecure: true, ..SecurityConfig::default() };
    for security in [insecure, tokens.security(), authority.member("alone")] {
        drop(start(security).await.unwrap());
    }
}

/// Members a, b and so on, that know each other by certificates.
async fn certified(authority: &Authority, count: usize) -> Vec<Node> {
    let (listeners, addresses) = listeners(count).await;
    let mut configs = configs(&addresses, "naimi-trehel");
    for config in &mut configs {
        config.security = authority.member(&config.name);
    }
    group_of(configs, listeners).await
}

#[tokio::test]
async fn members_with_certificates_pass_locks_to_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let nodes = certified(&authority, 3).await;
    linked(&nodes).await;
    for round in 0..30 {
        let guard = nodes[round % 3].lock("x").within(GENEROUS).await.unwrap();
        drop(guard);
    }
    // A client proves itself by a certificate too, and may do what that is good for.
    let credentials = authority.client("ana", Kind::Client);
    let mut client = open(&nodes[1], &credentials).await.unwrap();
    client.open_session(Who::default(), None).await.unwrap();
    assert!(matches!(lock(&mut client, 1, "x").await, ServerMessage::Granted { .. }));
    denied(client.leave().await, "'ana' may only lock");
}

#[tokio::test]
async fn a_registry_among_members_is_asked_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let (listeners, addresses) = listeners(3).await;
    let mut starting = tokio::task::JoinSet::new();
    for (mut config, listener) in configs(&addresses, "naimi-trehel").into_iter().zip(listeners) {
        config.security = authority.member(&config.name);
        config.registry = RegistryPlace::Directory(folder.path().join(&config.name));
        starting.spawn(Node::start_at(config, listener));
    }
    let nodes: Vec<Node> = starting.join_all().await.into_iter().map(Result::unwrap).collect();
    together(&nodes).await;
    drop(nodes[2].lock("x").within(GENEROUS).await.unwrap());
    for node in nodes {
        node.stop().await;
    }
}

/// In a group of two that are told this, the second one's link to the first says `expected`.
async fn they_stay_apart(first: SecurityConfig, second: SecurityConfig, expected: &str) {
    let (mut listeners, addresses) = listeners(2).await;
    let registry = Memory::default();
    let mut configs = configs(&addresses, "naimi-trehel");
    (configs[0].security, configs[1].security) = (first, second);
    let mut nodes = Vec::new();
    for config in configs {
        nodes.push(start(config, listeners.remove(0), &registry).await);
        if nodes.len() == 1 {
            nodes[0].ready().await.unwrap();
        }
    }
    let mut said = String::new();
    let waiting = until(expected, || {
        let status = nodes[1].status();
        let link = status.members.into_iter().find(|member| member.name == "a").map(|it| it.link);
        if let Some(LinkStatus::Refused(why) | LinkStatus::Down(_, why)) = link {
            said = why;
        }
        said.contains(expected)
    });
    waiting.await;
}

#[tokio::test]
async fn a_member_without_a_good_certificate_of_its_own_is_no_member() {
    let folder = tempfile::tempdir().unwrap();
    let (authority, other) =
        (Authority::new(folder.path(), "ca"), Authority::new(folder.path(), "other"));
    let with = |files| SecurityConfig { tls: Some(files), ..SecurityConfig::default() };
    let as_member = |file: &str, name: &str, kind| with(authority.issue(file, name, kind));
    // The second member's certificate is that of another, has expired, or is not one of a member.
    let cases = [
        (as_member("c1", "c", Kind::Member), "its certificate is that of 'c', not of member 'b"),
        (as_member("c2", "b", Kind::Expired), "CertificateExpired"),
        (as_member("c3", "b", Kind::Client), "members of this group prove themselves by certif"),
        (SecurityConfig::default(), "speaks TLS only"),
    ];
    for (second, expected) in cases {
        they_stay_apart(authority.member("a"), second, expected).await;
    }
    // It is from an authority that the first member does not trust, while the second trusts the first.
    let mut stranger = other.issue("c4", "b", Kind::Member);
    stranger.authority = Some(authority.file.clone());
    they_stay_apart(authority.member("a"), with(stranger), "it refuses our certificate").await;
    // The first one's is not its own, or not trusted: the second one does not believe it.
    let other_name = as_member("c5", "z", Kind::Member);
    they_stay_apart(other_name, authority.member("b"), "its certificate is for other names").await;
    let untrusted = "from an authority that is not trusted here";
    they_stay_apart(other.member("a"), authority.member("b"), untrusted).await;
}

/// What a node answers to somebody who says it is a member.
async fn heard(mut stream: Stream, caller: Caller, proof: Proof) -> Vec<u8> {
    handshake::greet(&mut stream, caller, &proof).await.unwrap();
    let mut bytes = Vec::new();
    // It may also end with an error, which is as good.
    let _ = tokio::time::timeout(GENEROUS, stream.read_to_end(&mut bytes)).await.unwrap();
    bytes
}

#[tokio::test]
async fn a_stranger_at_the_port_of_members_is_refused_before_it_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let tokens = Tokens::new();
    let token = |role: Role| tokens.text(&role.to_string(), role, &[]);
    let (lock, administer) = (token(Role::Lock), token(Role::Administer));
    let with_tokens = alone(tokens.security()).await;
    let with_certificates = alone(authority.member("alone")).await;
    // What it says of itself cannot be read: whoever tries to has admitted it.
    let callers = || [Caller::Member(vec![0xff; 100]), Caller::Registry];
    for caller in callers() {
        for token in [None, Some("cat_nobody".to_string()), Some(lock.clone())] {
            let stream = TcpStream::connect(with_tokens.address()).await.unwrap();
            let proof = Proof { token };
            let bytes = heard(Stream::Tcp(stream), caller.clone(), proof).await;
            let is_told = String::from_utf8_lossy(&bytes).contains("token");
            assert_eq!(is_told, caller != Caller::Registry, "{bytes:?}");
        }
        let stream = TcpStream::connect(with_tokens.address()).await.unwrap();
        let proof = Proof { token: Some(administer.clone()) };
        let bytes = heard(Stream::Tcp(stream), caller, proof).await;
        assert!(bytes.is_empty(), "it is admitted, and says nothing that makes sense: {bytes:?}");
    }
    let nothing_shown = credentials(&authority.file, None);
    let a_client = authority.client("alone", Kind::Client);
    for caller in callers() {
        for shown in [&nothing_shown, &a_client] {
            let stream = TcpStream::connect(with_certificates.address()).await.unwrap();
            let tls = shown.tls().unwrap();
            let stream = tls.connect(stream, "127.0.0.1").await.unwrap();
            let bytes = heard(stream, caller.clone(), Proof::default()).await;
            let is_told = String::from_utf8_lossy(&bytes).contains("prove themselves");
            assert_eq!(is_told, caller != Caller::Registry, "{bytes:?}");
        }
    }
}

#[tokio::test]
async fn members_without_certificates_know_each_other_by_a_token() {
    let tokens = Tokens::new();
    let own = tokens.0.path().join("own");
    std::fs::write(&own, tokens.text("members", Role::Administer, &[])).unwrap();
    let security = SecurityConfig { own_token: Some(own.clone()), ..tokens.security() };
    let (listeners, addresses) = listeners(2).await;
    let mut configs = configs(&addresses, "naimi-trehel");
    for config in &mut configs {
        config.security = security.clone();
    }
    let nodes = group_of(configs, listeners).await;
    linked(&nodes).await;
    for node in &nodes {
        drop(node.lock("x").within(GENEROUS).await.unwrap());
    }
    let without = SecurityConfig { own_token: None, ..security.clone() };
    they_stay_apart(security, without, "give a token").await;
}

#[tokio::test]
async fn clients_are_told_what_is_wrong_with_certificates_and_with_speaking_plainly() {
    let folder = tempfile::tempdir().unwrap();
    let (authority, other) =
        (Authority::new(folder.path(), "ca"), Authority::new(folder.path(), "other"));
    let safe = alone(authority.member("alone")).await;
    let said = |result: Result<Connection, ClientError>| match result {
        Ok(_) => panic!("it is let in"),
        Err(error) => error.to_string(),
    };
    let has = |said: String, part: &str| assert!(said.contains(part), "{said}");
    // No TLS where there has to be.
    has(said(open(&safe, &Credentials::default()).await), "this node speaks TLS only");
    // TLS where there is none.
    let plain = alone(SecurityConfig::default()).await;
    let ana = authority.client("ana", Kind::Client);
    has(said(open(&plain, &ana).await), "it may not speak TLS");
    // Nothing is shown.
    has(said(open(&safe, &credentials(&authority.file, None)).await), "give a token");
    // The node's authority is not the one that is trusted here, or the other way round.
    has(said(open(&safe, &other.client("ana", Kind::Client)).await), "an authority that is not");
    let files = other.issue("bo", "bo", Kind::Client);
    let bo = credentials(&authority.file, Some((&files.certificate, &files.key)));
    has(said(open(&safe, &bo).await), "it refuses our certificate");
    has(said(open(&safe, &authority.client("ana", Kind::Expired)).await), "CertificateExpired");
    // The node's own has expired.
    let mut security = authority.member("alone");
    security.tls = Some(authority.issue("old", "alone", Kind::Expired));
    let old = alone(security).await;
    has(said(open(&old, &ana).await), "its certificate has expired");
    open(&safe, &ana).await.unwrap();
}

#[tokio::test]
async fn new_certificates_are_used_without_dropping_connections() {
    let folder = tempfile::tempdir().unwrap();
    let (authority, other) =
        (Authority::new(folder.path(), "ca"), Authority::new(folder.path(), "other"));
    let mut security = authority.member("alone");
    let own = folder.path().join("trusted.pem");
    std::fs::copy(&authority.file, &own).unwrap();
    security.tls.as_mut().unwrap().authority = Some(own.clone());
    let node = alone(security).await;
    let old = authority.client("ana", Kind::Client);
    let mut client = open(&node, &old).await.unwrap();
    client.open_session(Who::default(), None).await.unwrap();
    assert!(matches!(lock(&mut client, 1, "x").await, ServerMessage::Granted { .. }));
    // Another authority, and a certificate of it.
    std::fs::copy(&other.file, &own).unwrap();
    other.issue("alone", "alone", Kind::Member);
    node.reload().unwrap();
    assert!(matches!(open(&node, &old).await, Err(ClientError::Untrusted { .. })));
    let new = other.client("bo", Kind::Client);
    assert_eq!(open(&node, &new).await.unwrap().status().await.unwrap().held, 1);
    client.release(1).await.unwrap();
    assert_eq!(client.receive().await.unwrap(), ServerMessage::Released { request: 1 });
    // Files that make no sense change nothing.
    std::fs::write(&own, "nonsense").unwrap();
    assert!(node.reload().unwrap_err().to_string().contains("there is no certificate in"));
    open(&node, &new).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_handshakes_that_never_end_keep_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    setrlimit(Resource::Nofile, files).unwrap();
    let node = alone(authority.member("alone")).await;
    let mut endless = Vec::new();
    for number in 0..1000 {
        let mut stream = TcpStream::connect(node.address()).await.unwrap();
        if number % 2 == 0 {
            // The beginning of a record that announces more.
            stream.write_all(&[0x16, 3, 1, 2, 0, 1]).await.unwrap();
        }
        endless.push(stream);
    }
    let ana = authority.client("ana", Kind::Client);
    let served = async {
        for _ in 0..20 {
            open(&node, &ana).await.unwrap().status().await.unwrap();
        }
    };
    tokio::time::timeout(GENEROUS, served).await.expect("somebody is served");
    // Those that came first have made way, and the others are cut off when their time is over.
    for mut stream in endless {
        let end = tokio::time::timeout(GENEROUS, stream.read(&mut [0; 64])).await;
        assert!(matches!(end.expect("it is cut off"), Ok(_) | Err(_)));
    }
}

#[tokio::test]
async fn users_of_the_machine_come_by_the_socket() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = Tokens::new();
    let socket = folder.path().join("run/x.sock");
    let security = SecurityConfig { socket: Some(socket.clone()), ..tokens.security() };
    let node = alone(security.clone()).await;
    assert_eq!(node.socket(), Some(socket.as_path()));
    let address = socket.to_str().unwrap();
    for address in [address.to_string(), format!("unix:{address}")] {
        let client = Client::builder().addresses([address]).connect().await.unwrap();
        client.lock("x").await.unwrap().release().await.unwrap();
    }
    // Nobody is a member by this way.
    let stream = tokio::net::UnixStream::connect(&socket).await.unwrap();
    let said = heard(Stream::Unix(stream), Caller::Member(vec![0]), Proof::default()).await;
    assert!(String::from_utf8_lossy(&said).contains("prove themselves"));
    // Another node does not take it, but goes on without it if it may.
    let mut config = Config::alone();
    config.listen = Some("127.0.0.1:0".to_string());
    config.security = security;
    let taken = Node::start(config.clone()).await.map(|_| ());
    assert!(matches!(taken, Err(StartError::Socket(_))));
    config.security.may_lack_socket = true;
    assert_eq!(Node::start(config).await.unwrap().socket(), None);
    node.stop().await;
    until("it is gone", || !socket.exists()).await;
}

#[tokio::test]
async fn a_key_that_everybody_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let security = authority.member("alone");
    let key: &Path = &security.tls.as_ref().unwrap().key.clone();
    let (listener, _) = listener().await;
    std::fs::set_permissions(key, PermissionsExt::from_mode(0o644)).unwrap();
    let mut config = Config::alone();
    config.security = security;
    let error = Node::start_at(config, listener).await.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("chmod 600"), "{error}");
}

#[tokio::test]
async fn several_nodes_are_tried_with_the_same_credentials() {
    let tokens = Tokens::new();
    let ci = tokens.add("ci", Role::Lock, &[]);
    let node = alone(tokens.security()).await;
    let nobody: SocketAddr = listener().await.1.parse().unwrap();
    let nodes = Nodes::at([nobody.to_string(), node.address().to_string()]).showing(ci);
    assert_eq!(Connection::open_any(nodes).await.unwrap().status().await.unwrap().node, "alone");
}
