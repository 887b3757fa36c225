//! One HTTP connection to a server for locks. Proxies are not used, and redirections are not followed.

use std::io;
use std::time::Duration;

use catraca_client::stream::Stream;
use catraca_client::tls::{Tls, complaint};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, LOCATION, USER_AGENT};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::address::Address;

const TYPE: &str = "application/vnd.git-lfs+json";
/// No answer is longer.
const LONGEST: usize = 256 << 20;
/// A server that can be reached is reached within this time.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection, made when it is needed.
pub(super) struct Http {
    address: Address,
    tls: Option<Tls>,
    /// Sent with every request.
    headers: Vec<(String, String)>,
    /// How long the server may say nothing.
    patience: Duration,
    sender: Option<SendRequest<Full<Bytes>>>,
}

/// A request. It can be sent again.
pub(super) struct Call {
    pub(super) method: Method,
    /// What follows the address: '/locks?...'.
    pub(super) path: String,
    pub(super) body: Option<Bytes>,
    pub(super) headers: Vec<(&'static str, String)>,
    /// Whether it does no harm if it is done twice.
    pub(super) is_repeatable: bool,
}

pub(super) struct Answer {
    pub(super) status: u16,
    /// Null if it is not JSON.
    pub(super) body: Value,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum HttpError {
    /// Nothing was done there.
    Unreachable(String),
    /// It is not known what was done there.
    Lost(String),
    /// What answers is no server for locks.
    Strange(String),
}

impl Http {
    pub(super) fn new(
        address: Address,
        tls: Option<Tls>,
        headers: Vec<(String, String)>,
        patience: Duration,
    ) -> Self {
        Http { address, tls, headers, patience, sender: None }
    }

    pub(super) async fn call(
        &mut self,
        call: &Call,
        authorization: Option<&str>,
    ) -> Result<Answer, HttpError> {
        // A connection that was kept may be closed when it is used again: that is no fault.
        let was_kept = self.sender.is_some();
        match self.try_call(call, authorization).await {
            Err(HttpError::Lost(_)) if was_kept && call.is_repeatable => {
                self.try_call(call, authorization).await
            }
            Err(HttpError::Unreachable(_)) if was_kept => self.try_call(call, authorization).await,
            result => result,
        }
    }

    async fn try_call(
        &mut self,
        call: &Call,
        authorization: Option<&str>,
    ) -> Result<Answer, HttpError> {
        let request = self.request(call, authorization)?;
        let mut kept = self.sender.take();
        if let Some(sender) = &mut kept
            && sender.ready().await.is_err()
        {
            kept = None;
        }
        let mut sender = match kept {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        let silent = || HttpError::Lost(format!("{} says nothing", self.address));
        let response = timeout(self.patience, sender.send_request(request)).await;
        let response =
            response.map_err(|_| silent())?.map_err(|error| match error.is_canceled() {
                true => HttpError::Unreachable(format!("{} hangs up", self.address)),
                false => HttpError::Lost(format!("{} hangs up: {error}", self.address)),
            })?;
        let answer = self.read(response).await?;
        self.sender = Some(sender);
        Ok(answer)
    }

    fn request(
        &self,
        call: &Call,
        authorization: Option<&str>,
    ) -> Result<Request<Full<Bytes>>, HttpError> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(format!("{}{}", self.address.path, call.path))
            .header(HOST, self.address.authority())
            .header(ACCEPT, TYPE)
            .header(USER_AGENT, concat!("catraca/", env!("CARGO_PKG_VERSION")));
        if call.body.is_some() {
            request = request.header(CONTENT_TYPE, TYPE);
        }
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value));
        let more = call.headers.iter().map(|(name, value)| (*name, value));
        for (name, value) in own.chain(more) {
            request = request.header(name, value);
        }
        let body = call.body.clone().unwrap_or_default();
        request.body(Full::new(body)).map_err(|_| {
            HttpError::Strange("a name, a token or an extra header cannot be sent".to_string())
        })
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, HttpError> {
        let cannot = |error: io::Error| {
            let why = complaint(&error).unwrap_or_else(|| plain(&error));
            HttpError::Unreachable(format!("cannot reach {}: {why}", self.address))
        };
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it does not answer");
        let connect = async {
            let stream =
                TcpStream::connect((self.address.host.as_str(), self.address.port)).await?;
            stream.set_nodelay(true)?;
            match &self.tls {
                Some(tls) => tls.connect(stream, &self.address.host).await,
                None => Ok(Stream::Tcp(stream)),
            }
        };
        let stream = timeout(CONNECT, connect).await.map_err(late).map_err(cannot)?;
        let stream = TokioIo::new(stream.map_err(cannot)?);
        let (sender, connection) = handshake(stream).await.map_err(|error| {
            HttpError::Unreachable(format!("{} hangs up: {error}", self.address))
        })?;
        // Its errors are those of the requests.
        tokio::spawn(async move { connection.await.ok() });
        Ok(sender)
    }

    async fn read(&self, response: Response<Incoming>) -> Result<Answer, HttpError> {
        let status = response.status().as_u16();
        if response.status().is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
            let to = to.unwrap_or("elsewhere");
            return Err(HttpError::Strange(format!(
                "{} sends requests on to {to}; set the URL to where the locks are",
                self.address
            )));
        }
        let mut bytes = Vec::new();
        let mut body = response.into_body();
        loop {
            let frame = timeout(self.patience, body.frame()).await;
            let frame =
                frame.map_err(|_| HttpError::Lost(format!("{} says nothing", self.address)))?;
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|error| {
                HttpError::Lost(format!("the answer of {} is cut off: {error}", self.address))
            })?;
            if let Some(data) = frame.data_ref() {
                bytes.extend_from_slice(data);
            }
            if bytes.len() > LONGEST {
                return Err(HttpError::Strange(format!(
                    "the answer of {} is too long",
                    self.address
                )));
            }
        }
        Ok(Answer { status, body: serde_json::from_slice(&bytes).unwrap_or(Value::Null) })
    }
}

/// What the system says, without its numbers.
fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "nobody listens there".to_string(),
        io::ErrorKind::TimedOut => "it does not answer".to_string(),
        kind => match error.get_ref().map(ToString::to_string) {
            Some(text) if text.contains("lookup") => "there is no such host".to_string(),
            Some(text) => text,
            None => kind.to_string(),
        },
    }
}
