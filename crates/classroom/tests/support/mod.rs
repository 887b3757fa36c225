//! A coordinator on a free port, with a log that can be waited for, and clients of raw bytes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]
#![allow(dead_code, reason = "every test file takes what it needs")]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use catraca_classroom::{Connections, Ended, Event, Limits, Line, Log, Server, listen};
use socket2::SockRef;

/// No event that is waited for takes nearly so long.
pub(crate) const GENEROUS: Duration = Duration::from_secs(60);

/// A running coordinator. It ends with this value.
pub(crate) struct Coordinator {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<Connections>,
    lines: Receiver<String>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Ended>>>,
}

impl Coordinator {
    pub(crate) fn start() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        let (sender, lines) = channel();
        let log = Log::new(Lines(Mutex::new(sender)));
        let listener = listen("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::new(listener, log, limits);
        let connections = server.connections();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = Some(std::thread::spawn(move || server.run(&flag)));
        Coordinator { address, connections, lines, stop, thread }
    }

    pub(crate) fn client(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(GENEROUS)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client(stream)
    }

    /// The next line of the log.
    #[track_caller]
    pub(crate) fn line(&self) -> Line {
        let line = self.lines.recv_timeout(GENEROUS).expect("no line of the log came in time");
        line.trim_end().parse().unwrap_or_else(|why| panic!("{line}: {why}"))
    }

    /// The next line of the log says this, without its time and the digits.
    #[track_caller]
    pub(crate) fn logs(&self, expected: &str) {
        let line = self.line();
        let told = match &line.event {
            Event::Received(message) => format!("{} from {}", message.kind, message.id),
            Event::Sent(message) => format!("{} to {}", message.kind, message.id),
            Event::Closed(Some(id), why) => format!("closed {id}: {}", after_peer(why)),
            Event::Closed(None, why) => format!("closed: {}", after_peer(why)),
        };
        assert_eq!(told, expected, "{line}");
    }

    /// Waits for the server's own end.
    pub(crate) fn ended(&mut self) -> io::Result<Ended> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(std::thread::panicking() || ended.is_ok());
        }
    }
}

/// The port of a client is another in every run.
fn after_peer(why: &str) -> &str {
    why.strip_prefix("127.0.0.1:").and_then(|rest| rest.split_once(": ")).unwrap().1
}

struct Lines(Mutex<Sender<String>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8(bytes.to_vec()).unwrap();
        // Nobody listens any more when the test is over.
        self.0.lock().unwrap().send(line).ok();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A client as one would write it with the paper in hand.
pub(crate) struct Client(TcpStream);

impl Client {
    #[track_caller]
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Its side of the connection holds little that it has not read.
    pub(crate) fn forgetful(self) -> Self {
        SockRef::from(&self.0).set_recv_buffer_size(1024).unwrap();
        self
    }

    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    /// Ten bytes from the coordinator.
    #[track_caller]
    pub(crate) fn receive(&mut self) -> String {
        let mut frame = [0; 10];
        self.0.read_exact(&mut frame).unwrap();
        String::from_utf8(frame.to_vec()).unwrap()
    }

    /// `2|ID|` comes, and then digits up to ten bytes.
    #[track_caller]
    pub(crate) fn is_granted(&mut self, id: &str) {
        let frame = self.receive();
        let digits = frame.strip_prefix(&format!("2|{id}|")).unwrap_or_else(|| panic!("{frame}"));
        assert!(digits.bytes().all(|byte| byte.is_ascii_digit()), "{frame}");
    }

    /// The coordinator closes the connection and says no more.
    #[track_caller]
    pub(crate) fn is_closed(&mut self) {
        match self.0.read(&mut [0; 10]) {
            Ok(0) => {}
            // What it sent last was not read before the connection was closed.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            other => panic!("not closed: {other:?}"),
        }
    }
}
