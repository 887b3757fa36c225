//! ZooKeeper's protocol: frames with a length, numbers with the first byte first.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::server::connect;

const CREATE: i32 = 1;
const DELETE: i32 = 2;
const EXISTS: i32 = 3;
const CHILDREN: i32 = 8;
const PERSISTENT: i32 = 0;
const EPHEMERAL_SEQUENTIAL: i32 = 3;
/// The number of a frame that answers nothing, but tells of what is watched.
const NOTIFICATION: i32 = -1;
const NO_NODE: i32 = -101;
const NODE_EXISTS: i32 = -110;
/// As long as servers allow; no client is silent for nearly so long.
const SESSION_MILLIS: i32 = 40_000;
/// A server that has not begun yet may take a connection and never answer on it.
const OPENING: Duration = Duration::from_secs(5);
const ALL_RIGHTS: i32 = 31;
/// No answer of a benchmark is nearly so long.
const LONGEST: usize = 1 << 20;

/// What a client says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Output(Vec<u8>);

impl Output {
    fn int(mut self, value: i32) -> Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    fn long(mut self, value: i64) -> Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    fn bytes(mut self, value: &[u8]) -> Self {
        // What is sent here is a few bytes long.
        self = self.int(value.len() as i32);
        self.0.extend_from_slice(value);
        self
    }

    fn flag(mut self, value: bool) -> Self {
        self.0.push(u8::from(value));
        self
    }

    fn create(path: &str, kind: i32) -> Self {
        let node = Output::default().int(CREATE).bytes(path.as_bytes()).bytes(b"");
        node.int(1).int(ALL_RIGHTS).bytes(b"world").bytes(b"anyone").int(kind)
    }

    pub(super) fn create_sequential(parent: &str) -> Self {
        Self::create(&format!("{parent}/lock-"), EPHEMERAL_SEQUENTIAL)
    }

    pub(super) fn children(parent: &str) -> Self {
        Output::default().int(CHILDREN).bytes(parent.as_bytes()).flag(false)
    }

    /// Whether it exists; from then on it is watched.
    pub(super) fn exists(path: &str) -> Self {
        Output::default().int(EXISTS).bytes(path.as_bytes()).flag(true)
    }

    /// Whatever its version.
    pub(super) fn delete(path: &str) -> Self {
        Output::default().int(DELETE).bytes(path.as_bytes()).int(-1)
    }
}

/// What a server says.
#[derive(Debug)]
pub(super) struct Input {
    bytes: Vec<u8>,
    at: usize,
    /// What went wrong; 0 if nothing did.
    error: i32,
}

impl Input {
    fn take(&mut self, count: usize) -> Result<&[u8]> {
        let end = self.at.checked_add(count).context("a length without measure")?;
        let taken = self.bytes.get(self.at..end).context("an answer of ZooKeeper is too short")?;
        self.at = end;
        Ok(taken)
    }

    fn int(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.take(4)?.try_into()?))
    }

    fn long(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.take(8)?.try_into()?))
    }

    pub(super) fn text(&mut self) -> Result<String> {
        let length = usize::try_from(self.int()?)?;
        Ok(String::from_utf8(self.take(length)?.to_vec())?)
    }

    pub(super) fn texts(&mut self) -> Result<Vec<String>> {
        (0..self.int()?).map(|_| self.text()).collect()
    }

    /// Fails if the server did.
    pub(super) fn done(self) -> Result<Self> {
        match self.error {
            0 => Ok(self),
            error => bail!("ZooKeeper refuses it: error {error}"),
        }
    }

    /// Whether the node that was asked for exists.
    pub(super) fn found(self) -> Result<bool> {
        if self.error == NO_NODE { Ok(false) } else { self.done().map(|_| true) }
    }
}

/// A session, which lives on one connection.
pub(super) struct Session<S> {
    stream: S,
    sent: i32,
    received: Vec<u8>,
    /// What was told of what is watched, and not looked at yet.
    notified: VecDeque<String>,
}

impl Session<TcpStream> {
    pub(super) async fn open(address: &str) -> Result<Self> {
        let beginning = Self::begin(connect(address).await?);
        tokio::time::timeout(OPENING, beginning)
            .await
            .context("ZooKeeper opens no session in time")?
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    async fn begin(stream: S) -> Result<Self> {
        let (received, notified) = (Vec::new(), VecDeque::new());
        let mut session = Session { stream, sent: 0, received, notified };
        let version = Output::default().int(0).long(0);
        session.write(&version.int(SESSION_MILLIS).long(0).bytes(&[0; 16]).flag(false).0).await?;
        let mut answer = Input { bytes: session.frame().await?, at: 0, error: 0 };
        let (_version, _timeout, id) = (answer.int()?, answer.int()?, answer.long()?);
        if id == 0 { bail!("ZooKeeper opens no session") } else { Ok(session) }
    }

    /// Sends a request; returns its number.
    pub(super) async fn send(&mut self, request: &Output) -> Result<i32> {
        self.sent += 1;
        let number = self.sent.to_be_bytes();
        let message = [number.as_slice(), &request.0].concat();
        self.write(&message).await?;
        Ok(self.sent)
    }

    /// Waits for the answer to a request. Answers come in the order of the requests.
    pub(super) async fn answer(&mut self, request: i32) -> Result<Input> {
        loop {
            let (number, input) = self.next().await?;
            match number {
                NOTIFICATION => self.notify(input)?,
                number if number == request => return Ok(input),
                other => bail!("an answer to request {other} came for {request}"),
            }
        }
    }

    /// Waits until a node that is watched has been deleted.
    pub(super) async fn deleted(&mut self, path: &str) -> Result<()> {
        loop {
            while let Some(notified) = self.notified.pop_front() {
                if notified == path {
                    return Ok(());
                }
            }
            match self.next().await? {
                (NOTIFICATION, input) => self.notify(input)?,
                (other, _) => bail!("nobody has asked for answer {other}"),
            }
        }
    }

    /// Makes a node that stays, unless it is there.
    pub(super) async fn create_parent(&mut self, path: &str) -> Result<()> {
        let request = self.send(&Output::create(path, PERSISTENT)).await?;
        let answer = self.answer(request).await?;
        if answer.error == NODE_EXISTS { Ok(()) } else { answer.done().map(|_| ()) }
    }

    fn notify(&mut self, mut input: Input) -> Result<()> {
        let (_kind, _state) = (input.int()?, input.int()?);
        self.notified.push_back(input.text()?);
        Ok(())
    }

    /// The next frame, and which request it answers.
    async fn next(&mut self) -> Result<(i32, Input)> {
        let mut input = Input { bytes: self.frame().await?, at: 0, error: 0 };
        let (number, _change) = (input.int()?, input.long()?);
        input.error = input.int()?;
        Ok((number, input))
    }

    async fn write(&mut self, message: &[u8]) -> Result<()> {
        let length = (message.len() as u32).to_be_bytes();
        Ok(self.stream.write_all(&[length.as_slice(), message].concat()).await?)
    }

    async fn frame(&mut self) -> Result<Vec<u8>> {
        loop {
            if let Some((length, rest)) = self.received.split_first_chunk::<4>() {
                let length = u32::from_be_bytes(*length) as usize;
                if length > LONGEST {
                    bail!("a frame of {length} bytes: not the protocol of ZooKeeper");
                }
                if let Some(frame) = rest.get(..length) {
                    let frame = frame.to_vec();
                    self.received.drain(..4 + length);
                    return Ok(frame);
                }
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                bail!("the server has closed the connection");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(output: Output) -> Vec<u8> {
        [(output.0.len() as u32).to_be_bytes().as_slice(), &output.0].concat()
    }

    fn answer(number: i32, error: i32) -> Output {
        Output::default().int(number).long(7).int(error)
    }

    #[tokio::test]
    async fn a_notification_between_answers_is_kept_until_it_is_waited_for() {
        let (near, mut far) = tokio::io::duplex(1 << 16);
        let mut said = frame(Output::default().int(0).int(40_000).long(5).bytes(&[0; 16]));
        said.extend(frame(answer(NOTIFICATION, 0).int(2).int(3).bytes(b"/a/lock-1")));
        said.extend(frame(answer(1, 0).int(2).bytes(b"x").bytes(b"y")));
        said.extend(frame(answer(2, NO_NODE)));
        far.write_all(&said).await.unwrap();
        let mut session = Session::begin(near).await.unwrap();
        let request = session.send(&Output::children("/a")).await.unwrap();
        let names = session.answer(request).await.unwrap().done().unwrap().texts().unwrap();
        assert_eq!(names, ["x", "y"]);
        session.deleted("/a/lock-1").await.unwrap();
        let request = session.send(&Output::exists("/a/lock-1")).await.unwrap();
        assert!(!session.answer(request).await.unwrap().found().unwrap());
    }

    #[tokio::test]
    async fn a_frame_that_is_too_long_or_cut_short_is_refused() {
        for said in [b"HTTP/1.1 400".as_slice(), &[0, 0, 0, 9, 1]] {
            let (near, mut far) = tokio::io::duplex(1 << 16);
            far.write_all(said).await.unwrap();
            far.shutdown().await.unwrap();
            assert!(Session::begin(near).await.is_err());
        }
    }
}
