//! A client that sends any bytes, and reads answers one by one.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Nothing takes so long, however busy the machine is.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// What a node says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(its, _)| its == name);
        found.map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// It is a problem with this status and this code.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let body = self.json();
        assert_eq!((&body["status"], &body["code"]), (&status.into(), &code.into()), "{body}");
        assert!(body["type"].as_str().unwrap().starts_with("/problems/"), "{body}");
        assert!(!body["title"].as_str().unwrap().is_empty(), "{body}");
        assert!(!body["detail"].as_str().unwrap().is_empty(), "{body}");
        body
    }

    /// It has this status.
    #[track_caller]
    pub(crate) fn with(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

/// A connection to a node.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    read: Vec<u8>,
}

impl Client {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, read: Vec::new() }
    }

    /// Sends bytes as they are.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // The node may have hung up already, which the answer shows.
        self.stream.write_all(bytes.as_ref()).await.ok();
    }

    /// Sends a request, and reads its answer.
    pub(crate) async fn ask(&mut self, method: &str, path: &str, body: Option<&str>) -> Answer {
        self.send(request(method, path, body)).await;
        self.answer().await.expect("an answer")
    }

    /// The next answer; nothing if the node hangs up before it has begun.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        timeout(LIMIT, self.read_answer()).await.expect("the node answers or hangs up")
    }

    async fn read_answer(&mut self) -> Option<Answer> {
        let end = loop {
            if let Some(end) = find(&self.read, b"\r\n\r\n") {
                break end;
            }
            if !self.read_more().await {
                assert!(self.read.is_empty(), "{:?}", String::from_utf8_lossy(&self.read));
                return None;
            }
        };
        let head = String::from_utf8(self.read.drain(..end + 4).collect()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_string())
        };
        let headers: Vec<(String, String)> = lines.map(header).collect();
        let mut answer = Answer { status, headers, body: String::new() };
        let length = answer.header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
        while self.read.len() < length {
            assert!(self.read_more().await, "the node hangs up within an answer");
        }
        answer.body = String::from_utf8(self.read.drain(..length).collect()).unwrap();
        Some(answer)
    }

    async fn read_more(&mut self) -> bool {
        matches!(self.stream.read_buf(&mut self.read).await, Ok(1..))
    }

    /// The head of an answer whose body has no length.
    pub(crate) async fn head(&mut self) -> String {
        self.until("\r\n\r\n").await
    }

    /// Everything up to the end of `mark`.
    pub(crate) async fn until(&mut self, mark: &str) -> String {
        let reading = async {
            loop {
                if let Some(place) = find(&self.read, mark.as_bytes()) {
                    let all = self.read.drain(..place + mark.len()).collect();
                    return String::from_utf8(all).unwrap();
                }
                let is_open = self.read_more().await;
                assert!(is_open, "no {mark:?} in {:?}", String::from_utf8_lossy(&self.read));
            }
        };
        timeout(LIMIT, reading).await.expect("it comes")
    }

    /// Waits until the node hangs up, and returns what it said before.
    pub(crate) async fn end(&mut self) -> String {
        let reading = async { while self.read_more().await {} };
        timeout(LIMIT, reading).await.expect("the node hangs up");
        String::from_utf8(std::mem::take(&mut self.read)).unwrap()
    }
}

/// The bytes of a request.
pub(crate) fn request(method: &str, path: &str, body: Option<&str>) -> String {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
    match body {
        None => format!("{head}\r\n"),
        Some(body) => {
            let length = body.len();
            format!(
                "{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            )
        }
    }
}

/// Sends one request over a connection of its own.
pub(crate) async fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    body: impl Into<Option<Value>>,
) -> Answer {
    let body = body.into().map(|body| body.to_string());
    Client::open(address).await.ask(method, path, body.as_deref()).await
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|part| part == mark)
}
