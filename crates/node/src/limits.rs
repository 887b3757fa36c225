//! Every limit of a node, driven to its end: what is too much is refused, and the rest goes on.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use catraca_core::NodeId;
use rustix::process::{Resource, getrlimit, setrlimit};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::task::yield_now;

use crate::desk::{Desk, MOST_UNREAD};
use crate::frame::{self, Frame};
use crate::handshake::{self, Answer, Caller, Hello, MAGIC, VERSION};
use crate::link::{Link, MOST_PENDING};
use crate::lock::Owner;
use crate::protocol::{Ask, Denial, Tell, Wait, Who};
use crate::session::{MOST_REQUESTS, MOST_SESSIONS, MOST_WORDS, Session};
use crate::shard::{Key, Letter};
use crate::transport::PATIENCE;
use crate::{Client, ClientError, Config, Event, LockError, Member, Node};

/// Nothing takes so long, however busy the machine is.
const LIMIT: Duration = Duration::from_secs(60);

async fn alone() -> Node {
    let mut config = Config::alone();
    config.listen = Some("127.0.0.1:0".to_string());
    Node::start(config).await.unwrap()
}

async fn connect(node: &Node) -> Client {
    Client::connect(&node.address().to_string()).await.unwrap()
}

/// Asks for a lock and releases it again, as any client would.
async fn visit(node: &Node, name: &str) {
    let mut client = connect(node).await;
    client.open(Who::default(), None).await.unwrap();
    client.lock(1, &[name.to_string()], 1, Wait::Endless).await.unwrap();
    let event = tokio::time::timeout(LIMIT, client.event()).await.unwrap().unwrap();
    assert!(matches!(event, Event::Granted { .. }), "{event:?}");
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

fn lock(request: u32, name: &str) -> Ask {
    Ask::Lock { request, names: vec![name.to_string()], permits: 1, wait: Wait::Endless }
}

async fn say(to: &mut (impl AsyncWrite + Unpin), ask: &Ask) {
    let mut bytes = Vec::new();
    frame::write(ask, &mut bytes).unwrap();
    to.write_all(&bytes).await.unwrap();
}

async fn hear(from: &mut (impl AsyncRead + Unpin)) -> Tell {
    let hearing = async {
        let mut body = vec![0; from.read_u32_le().await.unwrap() as usize];
        from.read_exact(&mut body).await.unwrap();
        frame::read(&body).unwrap()
    };
    tokio::time::timeout(LIMIT, hearing).await.expect("something is said")
}

#[tokio::test]
async fn one_session_too_many_is_refused_until_another_ends() {
    let node = alone().await;
    let sessions = &node.running.sessions;
    let begin = || sessions.begin(&node.running, Who::default(), None);
    let all: Vec<Arc<Session>> = (0..MOST_SESSIONS).map(|_| begin().unwrap()).collect();
    for _ in 0..3 {
        let refused = connect(&node).await.open(Who::default(), None).await;
        match refused {
            Err(ClientError::Refused(why)) => {
                assert_eq!(why, "this node has too many sessions; see 'catraca status'");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(node.status().sessions, MOST_SESSIONS as u64);
    }
    sessions.end(&all[7]);
    visit(&node, "x").await;
}

#[tokio::test]
async fn one_request_too_many_is_refused_until_another_ends() {
    let node = alone().await;
    let held = node.lock("x").await.unwrap();
    let session = node.running.sessions.begin(&node.running, Who::default(), None).unwrap();
    let (voice, mut words) = mpsc::channel(MOST_WORDS);
    session.attach(voice);
    let ask = |request| session.lock(request, vec!["x".to_string()], 1, Wait::Endless);
    let one_more = MOST_REQUESTS as u32;
    (0..one_more).for_each(ask);
    for _ in 0..3 {
        ask(one_more);
        let why = "this session has too many requests at a time; release some".to_string();
        let denied = Tell::Denied { request: one_more, why: Denial::Input(why) };
        assert_eq!(words.try_recv(), Ok(denied));
    }
    until("all wait", || node.status().waiting == u64::from(one_more)).await;

    session.release(7);
    assert_eq!(words.try_recv(), Ok(Tell::Released { request: 7 }));
    ask(one_more);
    until("the released one has left", || node.status().waiting == u64::from(one_more)).await;
    assert!(words.try_recv().is_err(), "it waits, and was not refused");
    node.running.sessions.end(&session);
    until("nobody waits", || node.status().waiting == 0).await;
    drop(held);
    assert!(node.lock("x").or_refuse().await.is_ok());
}

/// A client at the other end of a pipe that holds next to nothing.
fn pipe(node: &Node) -> DuplexStream {
    let (near, far) = tokio::io::duplex(64);
    let (reader, writer) = tokio::io::split(far);
    let desk = Desk::new(Arc::clone(&node.running));
    tokio::spawn(async move { desk.serve(reader, writer).await });
    near
}

/// Says all of `asks`, and counts how many were heard.
async fn say_all(
    mut to: impl AsyncWrite + Unpin,
    asks: impl Iterator<Item = Ask>,
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
    say(&mut writer, &Ask::Open { who: Who::default(), ttl_millis: None }).await;
    say(&mut writer, &lock(1, "x")).await;
    let heard = Arc::new(AtomicUsize::new(0));
    let signs = std::iter::repeat_n(Ask::Alive, SIGNS);
    tokio::spawn(say_all(writer, signs, Arc::clone(&heard)));
    // What is unread, and what the pipe holds in both directions.
    let most = MOST_UNREAD + 64;
    let count = until_all_wait(&heard).await;
    assert!((MOST_UNREAD..most).contains(&count), "{count} were heard");

    // It is inside all the same, and is told so when it reads.
    drop(held);
    assert_eq!(node.lock("x").or_refuse().await.unwrap_err(), LockError::Taken);
    assert!((MOST_UNREAD..most).contains(&until_all_wait(&heard).await));
    let (mut alive, mut granted) = (0, 0);
    let session = hear(&mut reader).await;
    assert!(matches!(session, Tell::Open { .. }), "{session:?}");
    for _ in 0..=SIGNS {
        match hear(&mut reader).await {
            Tell::Alive => alive += 1,
            Tell::Granted { request: 1, .. } => granted += 1,
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
    let asks = std::iter::repeat_n(Ask::Locks { whole_group: false }, 1000);
    tokio::spawn(say_all(writer, asks, Arc::clone(&heard)));
    // What the pipe holds, and no more.
    let count = until_all_wait(&heard).await;
    assert!(count < 64, "{count} were heard");
    for _ in 0..1000 {
        let list = hear(&mut reader).await;
        assert!(matches!(list, Tell::Locks { is_last: true, .. }), "{list:?}");
    }
}

/// A connection whose client has said hello, and reads no more than it must.
async fn greet(node: &Node) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(node.address()).await.unwrap();
    let hello = Hello { version: VERSION, caller: Caller::Client };
    handshake::say(&mut stream, true, &hello).await.unwrap();
    let welcome: Answer = handshake::hear(&mut stream).await.unwrap();
    assert!(matches!(welcome, Answer::Welcome { .. }));
    stream
}

#[tokio::test]
async fn who_does_not_read_disturbs_nobody_and_leaves_nothing_behind() {
    let node = alone().await;
    let mut client = greet(&node).await;
    say(&mut client, &Ask::Open { who: Who::default(), ttl_millis: None }).await;
    let Tell::Open { session } = hear(&mut client).await else { panic!("it is not open") };
    let session = node.running.sessions.find(Owner(session)).unwrap();
    say(&mut client, &lock(1, "x")).await;
    // These are denied with a long text, so that the connection fills up soon.
    let no_names = (2..).map(|request| lock(request, &"a b".repeat(80)));
    let saying = tokio::spawn(say_all(client, no_names, Arc::default()));
    until("it is no longer heard", || session.unread() > MOST_UNREAD).await;

    // A turn of the reader can bring a few more requests whose answers are on their way.
    let most = 2 * MOST_UNREAD;
    for round in 0..100 {
        visit(&node, "y").await;
        assert!(session.unread() < most, "{} in round {round}", session.unread());
    }
    assert_eq!(node.lock("x").or_refuse().await.unwrap_err(), LockError::Taken);
    saying.abort();
    let freed = node.lock("x").within(LIMIT).await;
    assert!(freed.is_ok(), "it is gone, and so is what it held");
    assert_eq!(node.status().sessions, 0);
}

/// The configurations of members 'a' and 'b', and where they listen.
pub(crate) async fn pair() -> ([Config; 2], [TcpListener; 2]) {
    let listen = || async { TcpListener::bind("127.0.0.1:0").await.unwrap() };
    let listeners = [listen().await, listen().await];
    let member = |(name, at): (&str, &TcpListener)| Member {
        name: name.to_string(),
        address: at.local_addr().unwrap().to_string(),
        cluster: None,
    };
    let members: Vec<Member> = ["a", "b"].into_iter().zip(&listeners).map(member).collect();
    (["a", "b"].map(|name| Config::new(name, members.clone())), listeners)
}

/// Member 'a', and a connection to what it takes for member 'b'.
async fn with_a_mute_member() -> (Node, TcpStream) {
    let ([config, _], [own, other]) = pair().await;
    let node = Node::start_at(config, own).await.unwrap();
    let (mut stream, _) = other.accept().await.unwrap();
    handshake::hear_magic(&mut stream).await.unwrap();
    let _: Hello = handshake::hear(&mut stream).await.unwrap();
    let welcome = Answer::Welcome { incarnation: 1, received: 0 };
    handshake::say(&mut stream, false, &welcome).await.unwrap();
    (node, stream)
}

/// Posts so much for a member that it is behind. Returns how many messages that took.
fn fill(link: &Link) -> u64 {
    let body = vec![0; frame::LONGEST_FRAME - 100];
    let key = Key { name: "x", permits: 1 };
    let mut posted = 0;
    while !link.is_full() {
        assert!(posted * body.len() <= MOST_PENDING, "there is no limit");
        link.push(Letter { key, from: NodeId(0), to: NodeId(1), body: &body }).unwrap();
        link.flush();
        posted += 1;
    }
    posted as u64
}

#[tokio::test]
async fn a_member_that_takes_nothing_gets_nothing_new() {
    let (node, mut member) = with_a_mute_member().await;
    let link = node.running.host.links.to(1).unwrap();
    fill(link);
    for request in [node.lock("x"), node.lock_all(&["x", "y"]), node.semaphore("x", 2)] {
        let behind = request.await.unwrap_err();
        assert_eq!(behind, LockError::Behind("b".to_string()));
    }
    assert_eq!(node.status().waiting, 0);
    // A client of another process hears which member it is.
    let mut client = connect(&node).await;
    client.open(Who::default(), None).await.unwrap();
    client.lock(1, &["x".to_string()], 1, Wait::Endless).await.unwrap();
    let why = "member 'b' is too far behind to begin anything new; see 'catraca status'";
    let denied = Event::Denied { request: 1, why: Denial::Node(why.to_string()) };
    assert_eq!(client.event().await.unwrap(), denied);

    // It has taken the first of them, as it says.
    let mut bytes = Vec::new();
    frame::write(&Frame::Received { number: 1, received: 2 }, &mut bytes).unwrap();
    member.write_all(&bytes).await.unwrap();
    until("there is room again", || !link.is_full()).await;
    assert_ne!(node.lock("x").or_refuse().await.err(), Some(LockError::Behind("b".to_string())));
}

#[tokio::test]
async fn a_member_that_takes_everything_late_gets_everything() {
    let (node, mut member) = with_a_mute_member().await;
    let link = node.running.host.links.to(1).unwrap();
    fill(link);
    let mut bytes = vec![0; frame::LONGEST_FRAME];
    while link.unwritten() > 0 {
        let read = tokio::time::timeout(LIMIT, member.read(&mut bytes)).await;
        assert!(read.expect("there is more").unwrap() > 0);
    }
}

#[tokio::test]
async fn a_member_is_told_what_has_come_after_a_while_and_after_many_messages() {
    let (_node, mut member) = with_a_mute_member().await;
    for numbers in [1..=1, 2..=65] {
        let mut bytes = Vec::new();
        let last = *numbers.end();
        for number in numbers {
            frame::write(&Frame::Signal { number, body: &[] }, &mut bytes).unwrap();
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
    let link = Link::new();
    let posted = fill(&link);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (_reader, writer) = stream.into_split();
    link.connect(Arc::new(writer), 1, posted).unwrap();
    assert!(!link.is_full());
}

#[tokio::test]
async fn whoever_calls_and_is_called_is_asked_whether_it_is_still_there() {
    let (configs, listeners) = pair().await;
    let mut nodes = Vec::new();
    for (config, listener) in configs.into_iter().zip(listeners) {
        nodes.push(Node::start_at(config, listener).await.unwrap());
    }
    for (node, other) in nodes.iter().zip([1, 0]) {
        let link = node.running.host.links.to(other).unwrap();
        until("they are connected", || link.stream().is_some()).await;
        let stream = link.stream().unwrap();
        let socket = SockRef::from((*stream).as_ref());
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
        if tokio::time::timeout(PATIENCE / 4, stream.read(&mut [0])).await.is_ok() {
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
        assert_eq!(heard.as_secs(), PATIENCE.as_secs(), "{} bytes", words.len());
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
