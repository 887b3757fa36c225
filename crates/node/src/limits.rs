//! Every limit of a node, driven to its end: what is too much is refused, and the rest goes on.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use catraca_client::frame::{self, LONGEST_CLIENT_FRAME};
use catraca_client::handshake::{self, Caller, Greeting, MAGIC, Proof};
use catraca_client::protocol::{ClientMessage, Over, ServerMessage};
use catraca_client::stream::Stream;
use catraca_client::{ClientError, Connection};
use catraca_group::{
    AcquireDurable, Epoch, MOST_REQUESTS, MOST_SESSIONS, Owner, PeerMessage, Query, Refusal, Run,
    SessionId, Wait, Who,
};
use rustix::process::{Resource, getrlimit, setrlimit};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::yield_now;

use crate::access::Identity;
use crate::frame::Frame;
use crate::link::{Link, MOST_PENDING};
use crate::native::{IDLE_TIME, MOST_LISTS, MOST_UNDER_WAY, MOST_UNREAD, Server};
use crate::transport::{HANDSHAKE_TIME, Introduction, MemberAnswer};
use crate::{Config, Memory, Node, wire};

mod table;
#[path = "../tests/support/valve.rs"]
pub(crate) mod valve;

use valve::Valve;

/// Nothing takes so long, however busy the machine is.
const LIMIT: Duration = Duration::from_secs(60);
/// Nobody loses it, however busy the machine is.
const LONG_LEASE: Duration = Duration::from_secs(15);

pub(crate) async fn alone() -> Node {
    let mut config = Config::alone();
    config.listen = Some("127.0.0.1:0".to_string());
    Node::start(config).await.unwrap()
}

async fn connect(node: &Node) -> Connection {
    Connection::open(&node.address().to_string()).await.unwrap()
}

/// Asks for a lock and releases it again, as any client would.
async fn visit(node: &Node, name: &str) {
    let mut client = connect(node).await;
    client.open_session(Who::default(), None).await.unwrap();
    client.acquire(1, &[name.to_string()], 1, Wait::Forever).await.unwrap();
    let answer = tokio::time::timeout(LIMIT, client.receive()).await.unwrap().unwrap();
    assert!(matches!(answer, ServerMessage::Granted { .. }), "{answer:?}");
    client.close().await.unwrap();
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            // Looking may cost more than what is waited for.
            for _ in 0..100 {
                yield_now().await;
            }
        }
    };
    tokio::time::timeout(LIMIT, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

fn lock(request: u32, name: &str) -> ClientMessage {
    let names = vec![name.to_string()];
    ClientMessage::Acquire { request, names, permits: 1, wait: Wait::Forever }
}

async fn say(to: &mut (impl AsyncWrite + Unpin), ask: &ClientMessage) {
    let mut bytes = Vec::new();
    frame::write(ask, &mut bytes).unwrap();
    to.write_all(&bytes).await.unwrap();
}

async fn hear(from: &mut (impl AsyncRead + Unpin)) -> ServerMessage {
    let hearing = async {
        let mut body = vec![0; from.read_u32_le().await.unwrap() as usize];
        from.read_exact(&mut body).await.unwrap();
        frame::read(&body).unwrap()
    };
    tokio::time::timeout(LIMIT, hearing).await.expect("something is said")
}

/// A session that nobody is connected to.
fn open(node: &Node) -> Result<SessionId, Refusal> {
    node.engine.serve(|service, parts, _| service.open(Who::default(), None, [1; 16], parts))
}

fn close(node: &Node, session: SessionId) {
    let owner = Owner(session.number);
    node.engine.serve(|service, parts, out| service.close(owner, parts, out));
}

#[tokio::test]
async fn one_session_too_many_is_refused_until_another_ends() {
    let node = alone().await;
    let all: Vec<SessionId> = (0..MOST_SESSIONS).map(|_| open(&node).unwrap()).collect();
    for _ in 0..3 {
        let refused = connect(&node).await.open_session(Who::default(), None).await;
        match refused {
            Err(ClientError::Refused(why)) => assert_eq!(why, Refusal::TooManySessions),
            other => panic!("{other:?}"),
        }
        assert_eq!(node.status().sessions, MOST_SESSIONS as u64);
    }
    close(&node, all[7]);
    visit(&node, "x").await;
}

#[tokio::test]
async fn one_request_too_many_is_refused_until_another_ends() {
    let node = alone().await;
    let held = node.lock("x").await.unwrap();
    let mut client = connect(&node).await;
    client.open_session(Who::default(), None).await.unwrap();
    let one_more = MOST_REQUESTS as u32;
    for request in 0..one_more {
        client.send(&lock(request, "x")).await.unwrap();
    }
    for _ in 0..3 {
        client.send(&lock(one_more, "x")).await.unwrap();
        let refused = ServerMessage::Refused { request: one_more, why: Refusal::TooManyRequests };
        assert_eq!(client.receive().await.unwrap(), refused);
    }
    assert_eq!(node.status().waiting, u64::from(one_more));
    client.release(7).await.unwrap();
    assert_eq!(client.receive().await.unwrap(), ServerMessage::Released { request: 7 });
    client.send(&lock(one_more, "x")).await.unwrap();
    client.renew().await.unwrap();
    let renewed = client.receive().await.unwrap();
    assert!(matches!(renewed, ServerMessage::Renewed { .. }), "it was refused: {renewed:?}");
    assert_eq!(node.status().waiting, u64::from(one_more));
    client.close().await.unwrap();
    assert_eq!(node.status().waiting, 0);
    drop(held);
    assert!(node.lock("x").or_refuse().await.is_ok());
}

/// A client at the other end of a pipe that holds next to nothing.
fn pipe(node: &Node) -> DuplexStream {
    let (near, far) = tokio::io::duplex(64);
    let (reader, writer) = tokio::io::split(far);
    let access = Arc::clone(&node.protection.acceptor.access);
    let server = Server::new(Arc::clone(&node.engine), node.gateway().clone(), access);
    tokio::spawn(async move { server.serve(Identity::anyone(), reader, writer, None).await });
    near
}

/// Says all of `asks`, and counts how many were heard.
async fn say_all(
    mut to: impl AsyncWrite + Unpin,
    asks: impl Iterator<Item = ClientMessage>,
    heard: Arc<AtomicUsize>,
) {
    for ask in asks {
        say(&mut to, &ask).await;
        heard.fetch_add(1, Ordering::Relaxed);
    }
}

/// Lets everybody go on for as long as anybody can. Only for pipes: nothing comes from outside.
async fn until_all_wait(heard: &AtomicUsize) -> usize {
    for _ in 0..100_000 {
        yield_now().await;
    }
    heard.load(Ordering::Relaxed)
}

#[tokio::test]
async fn who_does_not_read_is_not_heard_and_misses_nothing() {
    const SIGNS: usize = 5 * MOST_UNREAD;
    let node = alone().await;
    let held = node.lock("x").await.unwrap();
    let (mut reader, mut writer) = tokio::io::split(pipe(&node));
    say(&mut writer, &ClientMessage::Open { who: Who::default(), ttl: None }).await;
    say(&mut writer, &lock(1, "x")).await;
    let heard = Arc::new(AtomicUsize::new(0));
    let signs = std::iter::repeat_n(ClientMessage::Renew, SIGNS);
    tokio::spawn(say_all(writer, signs, Arc::clone(&heard)));
    // What is unread, and what the pipe holds in both directions.
    let most = MOST_UNREAD + 64;
    let count = until_all_wait(&heard).await;
    assert!(count < most, "{count} were heard");

    // It is inside all the same, and is told so when it reads.
    drop(held);
    assert_eq!(node.lock("x").or_refuse().await.unwrap_err(), Refusal::Taken);
    assert!(until_all_wait(&heard).await < most);
    let (mut alive, mut granted) = (0, 0);
    let session = hear(&mut reader).await;
    assert!(matches!(session, ServerMessage::Opened { .. }), "{session:?}");
    for _ in 0..=SIGNS {
        match hear(&mut reader).await {
            ServerMessage::Renewed { .. } => alive += 1,
            ServerMessage::Granted { request: 1, .. } => granted += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((alive, granted), (SIGNS, 1));
}

#[tokio::test]
async fn no_list_is_made_for_who_has_not_read_the_last() {
    let node = alone().await;
    let (mut reader, writer) = tokio::io::split(pipe(&node));
    let heard = Arc::new(AtomicUsize::new(0));
    let list = ClientMessage::List(Query { limit: 10, ..Query::default() });
    let asks = std::iter::repeat_n(list, 1000);
    tokio::spawn(say_all(writer, asks, Arc::clone(&heard)));
    // What the pipe and the buffer hold, and no more.
    let count = until_all_wait(&heard).await;
    assert!(count < 300, "{count} were heard");
    for _ in 0..1000 {
        let list = hear(&mut reader).await;
        assert!(matches!(list, ServerMessage::Page(_)), "{list:?}");
    }
}

#[tokio::test]
async fn whoever_waits_for_lists_can_renew_its_session_meanwhile() {
    let node = alone().await;
    node.ready().await.unwrap();
    let (mut reader, mut writer) = tokio::io::split(pipe(&node));
    let nobody_lists = node.gateway().hold_pages();
    say(&mut writer, &ClientMessage::Open { who: Who::default(), ttl: None }).await;
    let list = ClientMessage::List(Query { limit: 10, ..Query::default() });
    for _ in 0..MOST_LISTS {
        say(&mut writer, &list).await;
    }
    // A long message does not wait for the lists either.
    say(&mut writer, &lock(1, &"x".repeat(250))).await;
    say(&mut writer, &ClientMessage::Renew).await;
    assert!(matches!(hear(&mut reader).await, ServerMessage::Opened { .. }));
    assert!(matches!(hear(&mut reader).await, ServerMessage::Granted { request: 1, .. }));
    assert!(matches!(hear(&mut reader).await, ServerMessage::Renewed { .. }));
    drop(nobody_lists);
    for _ in 0..MOST_LISTS {
        assert!(matches!(hear(&mut reader).await, ServerMessage::Page(_)));
    }
}

fn durably(request: u32, name: &str) -> ClientMessage {
    let asked = AcquireDurable {
        names: vec![name.to_string()],
        permits: 1,
        wait: Wait::Forever,
        owner: "me".to_string(),
        note: String::new(),
        request: format!("request-{request}"),
    };
    ClientMessage::AcquireDurable { request, asked }
}

#[tokio::test]
async fn one_question_too_many_about_durable_holds_is_refused_until_another_is_answered() {
    let node = alone().await;
    node.ready().await.unwrap();
    let held = node.lock("x").await.unwrap();
    let (mut reader, mut writer) = tokio::io::split(pipe(&node));
    let one_more = MOST_UNDER_WAY as u32;
    for request in 0..one_more {
        say(&mut writer, &durably(request, "x")).await;
    }
    for _ in 0..3 {
        say(&mut writer, &durably(one_more, "y")).await;
        let result = Err(Refusal::TooManyRequests);
        let refused = ServerMessage::Durable { request: one_more, result };
        assert_eq!(hear(&mut reader).await, refused);
    }
    drop(held);
    let first = hear(&mut reader).await;
    assert!(matches!(first, ServerMessage::Durable { result: Ok(_), .. }), "{first:?}");
    say(&mut writer, &durably(one_more, "y")).await;
    let next = hear(&mut reader).await;
    let is_next = |next: &ServerMessage| matches!(next, ServerMessage::Durable { request, result: Ok(_) } if *request == one_more);
    assert!(is_next(&next), "{next:?}");
}

#[tokio::test(start_paused = true)]
async fn who_has_no_session_and_waits_for_nothing_any_more_is_not_kept() {
    let node = alone().await;
    node.ready().await.unwrap();
    let (mut reader, mut writer) = tokio::io::split(pipe(&node));
    say(&mut writer, &durably(1, "x")).await;
    let answer = hear(&mut reader).await;
    assert!(matches!(answer, ServerMessage::Durable { request: 1, .. }), "{answer:?}");
    let began = tokio::time::Instant::now();
    assert_eq!(reader.read(&mut [0]).await.unwrap(), 0, "it is cut off");
    assert_eq!(began.elapsed().as_secs(), IDLE_TIME.as_secs());
}

/// A connection whose client has said hello, and reads no more than it must.
async fn greet(node: &Node) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(node.address()).await.unwrap();
    handshake::greet(&mut stream, Caller::Client, &Proof::default()).await.unwrap();
    let welcome: Greeting = handshake::hear(&mut stream).await.unwrap();
    assert!(matches!(welcome, Greeting::Welcome { .. }));
    stream
}

#[tokio::test]
async fn who_does_not_read_disturbs_nobody_and_leaves_nothing_behind() {
    let node = alone().await;
    let mut client = greet(&node).await;
    say(&mut client, &ClientMessage::Open { who: Who::default(), ttl: None }).await;
    assert!(matches!(hear(&mut client).await, ServerMessage::Opened { .. }));
    say(&mut client, &lock(1, "x")).await;
    // These are refused with a long text, so that the connection fills up soon.
    let no_names = (2..).map(|request| lock(request, &"a b".repeat(80)));
    let heard = Arc::new(AtomicUsize::new(0));
    let saying = tokio::spawn(say_all(client, no_names, Arc::clone(&heard)));
    until("it is no longer heard", {
        let (mut last, mut same) = (0, 0);
        move || {
            let now = heard.load(Ordering::Relaxed);
            same = if now == last { same + 1 } else { 0 };
            last = now;
            same > 1000
        }
    })
    .await;
    for _ in 0..100 {
        visit(&node, "y").await;
    }
    assert_eq!(node.lock("x").or_refuse().await.unwrap_err(), Refusal::Taken);
    saying.abort();
    let freed = node.lock("x").within(LIMIT).await;
    assert!(freed.is_ok(), "it is gone, and so is what it held");
    assert_eq!(node.status().sessions, 0);
}

#[tokio::test]
async fn a_message_that_is_too_long_or_never_ends_ends_its_connection_alone() {
    let node = alone().await;
    let mut client = greet(&node).await;
    let announced = (LONGEST_CLIENT_FRAME as u32 + 1).to_le_bytes();
    client.write_all(&announced).await.unwrap();
    assert_eq!(client.read(&mut [0]).await.unwrap_or(0), 0, "it is refused from its length");
    visit(&node, "x").await;
}

#[tokio::test]
async fn many_messages_that_never_end_cost_little() {
    let node = alone().await;
    let mut clients = Vec::new();
    // Far more than all of them may have together.
    let announced = LONGEST_CLIENT_FRAME as u32;
    let part = vec![0; LONGEST_CLIENT_FRAME - 1];
    for _ in 0..500 {
        let mut client = greet(&node).await;
        client.write_all(&announced.to_le_bytes()).await.unwrap();
        // It may have been cut off already.
        let _ = client.write_all(&part).await;
        clients.push(client);
    }
    let mut cut_off = 0;
    for client in &mut clients {
        let ended = tokio::time::timeout(Duration::from_millis(1), client.read(&mut [0])).await;
        cut_off += usize::from(ended.is_ok());
    }
    assert!(cut_off > 0, "nobody was cut off");
    visit(&node, "x").await;
}

#[tokio::test]
async fn who_says_something_out_of_turn_is_told_so() {
    let node = alone().await;
    for message in [ClientMessage::Renew, ClientMessage::Close, lock(1, "x")] {
        let mut client = connect(&node).await;
        client.send(&message).await.unwrap();
        let over = client.receive().await.unwrap();
        assert_eq!(over, ServerMessage::Over(Over::Protocol));
    }
}

/// Members 'a' and 'b', in one view. Whoever calls 'a' gets there over `way`, if there is one.
async fn pair_over(way: impl AsyncFnOnce(String) -> String) -> [Node; 2] {
    let listen = || async { TcpListener::bind("127.0.0.1:0").await.unwrap() };
    let listeners = [listen().await, listen().await];
    let [first, second] = listeners.each_ref().map(|at| at.local_addr().unwrap().to_string());
    let members = format!("a={},b={second}", way(first).await);
    let members = Config::members_from(&members).unwrap();
    let registry = Memory::default();
    let mut nodes = Vec::new();
    for (name, listener) in ["a", "b"].into_iter().zip(listeners) {
        let mut config = Config::new(name, members.clone());
        config.lease = LONG_LEASE;
        let registry = Arc::new(registry.clone());
        let node = Node::start_with(config, listener, registry).await.unwrap();
        node.ready().await.unwrap();
        nodes.push(node);
    }
    let epochs = || nodes.iter().map(|node| (node.engine.is_ready(), node.status().epoch));
    until("they are in one view", || epochs().all(|it| it == (true, nodes[1].status().epoch)))
        .await;
    nodes.try_into().unwrap_or_else(|_| panic!("two"))
}

/// Members 'a' and 'b', in one view.
pub(crate) async fn pair() -> [Node; 2] {
    pair_over(async |address| address).await
}

/// The same, and what is between them.
async fn pair_with_a_valve() -> ([Node; 2], Valve) {
    let mut between = None;
    let pair = pair_over(async |address| {
        let valve = Valve::to(address).await;
        between.insert(valve).address.clone()
    })
    .await;
    (pair, between.unwrap())
}

/// The link of a node to another member.
pub(crate) fn link_to(node: &Node, name: &str) -> Arc<Link> {
    node.engine.links.all().into_iter().find(|link| link.run.name == name).unwrap()
}

/// A connection to a node of somebody who says it is member 'b', and nothing more.
async fn mute_member(node: &Node) -> TcpStream {
    let introduction = Introduction {
        group: node.engine.group.clone(),
        from: Run { name: "b".to_string(), incarnation: 1 },
        to: node.engine.peers.borrow().own.clone(),
        link: 1,
        is_resumed: false,
        received: 0,
    };
    let mut stream = TcpStream::connect(node.address()).await.unwrap();
    let introduction = frame::encode(&introduction).unwrap();
    handshake::greet(&mut stream, Caller::Member(introduction), &Proof::default()).await.unwrap();
    let answer: MemberAnswer = handshake::hear(&mut stream).await.unwrap();
    assert_eq!(answer, MemberAnswer::Welcome { received: 0 });
    stream
}

/// Posts so much for a member that it is behind. Returns how many messages that took.
fn fill(link: &Link) -> u64 {
    let body = vec![0; frame::LONGEST_FRAME - 100];
    let mut posted = 0;
    while !link.is_full() {
        assert!(posted * body.len() <= MOST_PENDING, "there is no limit");
        link.push(PeerMessage::Detector { epoch: Epoch::FIRST, body: &body }).unwrap();
        link.flush();
        posted += 1;
    }
    posted as u64
}

#[tokio::test]
async fn a_member_that_takes_nothing_stops_only_what_needs_it() {
    let ([node, _other], valve) = pair_with_a_valve().await;
    let config = Config::new("a", Config::members_from("a=h:1,b=h:2").unwrap());
    let at_home_of = |member: &str| {
        let mut names = (0..).map(|number| format!("lock/{number}"));
        names.find(|name| config.home_of(name).as_deref() == Ok(member)).unwrap()
    };
    let (own, theirs) = (at_home_of("a"), at_home_of("b"));
    let link = link_to(&node, "b");
    valve.close();
    fill(&link);
    // The token of one lock is here; that of the other is at the member.
    drop(node.lock(&own).await.unwrap());
    let behind = Refusal::Behind("b".to_string());
    for request in [node.lock(&theirs), node.lock_all(&[&own, &theirs]), node.semaphore(&theirs, 2)]
    {
        assert_eq!(request.await.unwrap_err(), behind);
    }
    assert_eq!((node.status().waiting, node.status().held), (0, 0));
    // A client of another process hears which member it is.
    let mut client = connect(&node).await;
    client.open_session(Who::default(), None).await.unwrap();
    client.send(&lock(1, &theirs)).await.unwrap();
    let refused = ServerMessage::Refused { request: 1, why: behind.clone() };
    assert_eq!(client.receive().await.unwrap(), refused);

    valve.open();
    until("there is room again", || !link.is_full()).await;
    assert!(node.lock(&theirs).within(LIMIT).await.is_ok());
}

#[tokio::test]
async fn a_member_that_takes_everything_late_gets_everything() {
    let node = alone().await;
    let mut member = mute_member(&node).await;
    let link = link_to(&node, "b");
    until("it is connected", || link.stream().is_some()).await;
    fill(&link);
    let mut bytes = vec![0; frame::LONGEST_FRAME];
    while link.unwritten() > 0 {
        let read = tokio::time::timeout(LIMIT, member.read(&mut bytes)).await;
        assert!(read.expect("there is more").unwrap() > 0);
    }
}

#[tokio::test]
async fn a_member_is_told_what_has_come_after_a_while_and_after_many_messages() {
    let node = alone().await;
    let mut member = mute_member(&node).await;
    for numbers in [1..=1, 2..=65] {
        let mut bytes = Vec::new();
        let last = *numbers.end();
        for number in numbers {
            let message = PeerMessage::Detector { epoch: Epoch::FIRST, body: &[] };
            frame::write(&Frame::Message { number, message }, &mut bytes).unwrap();
        }
        member.write_all(&bytes).await.unwrap();
        let receipt = async {
            loop {
                let mut body = vec![0; member.read_u32_le().await.unwrap() as usize];
                member.read_exact(&mut body).await.unwrap();
                match frame::read(&body).unwrap() {
                    Frame::Received { received, .. } if received == last => break,
                    Frame::Received { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
        };
        tokio::time::timeout(LIMIT, receipt).await.expect("a receipt");
    }
}

#[tokio::test]
async fn a_member_that_comes_back_with_everything_is_not_behind() {
    let run = Run { name: "b".to_string(), incarnation: 1 };
    let link = Link::new(run, Arc::default());
    let posted = fill(&link);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (_reader, writer) = wire::split(Stream::Tcp(stream)).unwrap();
    link.connect(Arc::new(writer), posted).unwrap();
    assert!(!link.is_full());
}

#[tokio::test]
async fn whoever_calls_and_is_called_is_asked_whether_it_is_still_there() {
    let nodes = pair().await;
    for (node, other) in nodes.iter().zip(["b", "a"]) {
        let link = link_to(node, other);
        until("they are connected", || link.stream().is_some()).await;
        let stream = link.stream().unwrap();
        let socket = SockRef::from(stream.socket());
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(10));
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(5));
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), 3);
        #[cfg(target_os = "linux")]
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_secs(25)));
    }
}

/// How long somebody is listened to that says a byte of `words` now and then.
async fn heard_for(node: &Node, words: &[u8]) -> Duration {
    let began = tokio::time::Instant::now();
    let mut stream = TcpStream::connect(node.address()).await.unwrap();
    for byte in words {
        // It may be too late already.
        let _ = stream.write_all(&[*byte]).await;
        if tokio::time::timeout(HANDSHAKE_TIME / 4, stream.read(&mut [0])).await.is_ok() {
            return began.elapsed();
        }
    }
    let end = stream.read(&mut [0]).await;
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_or_too_little_is_cut_off() {
    let node = alone().await;
    for words in [&[][..], &MAGIC[..1], &MAGIC] {
        let heard = heard_for(&node, words).await;
        assert_eq!(heard.as_secs(), HANDSHAKE_TIME.as_secs(), "{} bytes", words.len());
    }
}

#[tokio::test]
async fn many_that_say_nothing_disturb_nobody() {
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    setrlimit(Resource::Nofile, files).unwrap();
    let node = alone().await;
    let serving = async {
        let mut silent = Vec::new();
        for _ in 0..2000 {
            silent.push(TcpStream::connect(node.address()).await.unwrap());
        }
        visit(&node, "x").await;
    };
    tokio::time::timeout(LIMIT, serving).await.expect("somebody is served");
}
