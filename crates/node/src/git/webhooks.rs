//! Tells other services what happens to locks: each event is a signed POST.
//!
//! Messages wait in a bounded queue of each webhook and are sent one after the other, in order. One that is not
//! taken is sent again after a while that grows, some times, and then given up. Nothing of it is kept when the
//! node stops, and a lock is never held up by it.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};
use axum::http::uri::{PathAndQuery, Scheme};
use axum::http::{Request, StatusCode, Uri};
use catraca_client::stream::Stream;
use catraca_client::tls::Tls;
use catraca_group::fits;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ring::hmac;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::path::hex;
use super::taking::random_name;
use crate::config::WebhookConfig;
use crate::mutex::hold;
use crate::node::StartError;

/// So many messages wait for one webhook. When there is no room, the oldest goes.
pub(crate) const MOST_WAITING: usize = 1000;
/// So often a message is sent, at the most.
const TRIES: u32 = 8;
/// Before it is sent for the second time, this time passes; before the third twice as much, and so on.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// It has to be taken within this time.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// The shortest secret, in bytes.
const SHORTEST_SECRET: usize = 16;
/// Where systems keep the authorities that they trust.
const AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// All who are told.
pub(crate) struct Webhooks(Vec<Arc<Webhook>>);

struct Webhook {
    repository: String,
    uri: Uri,
    host: String,
    port: u16,
    tls: Option<Tls>,
    key: hmac::Key,
    queue: Mutex<Queue>,
    filled: Notify,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<Message>,
    /// How many there was no room for.
    dropped: u64,
}

#[derive(Clone)]
struct Message {
    id: String,
    body: Bytes,
}

/// Why a message was not taken.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Connect(io::Error),
    #[error("{0}")]
    Http(hyper::Error),
    #[error("it did not answer in {ANSWER_TIME:?}")]
    Slow,
    #[error("it answered {0}")]
    Status(StatusCode),
}

impl Failure {
    /// Whether it may be taken when it is sent again.
    fn may_pass(&self) -> bool {
        match self {
            Failure::Status(status) => {
                status.is_server_error()
                    || matches!(
                        *status,
                        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
                    )
            }
            _ => true,
        }
    }
}

impl Webhooks {
    pub(crate) fn open(configs: &[WebhookConfig]) -> Result<Self, StartError> {
        let open = |config: &WebhookConfig| {
            let failed = |why| StartError::Webhook { url: config.url.clone(), why };
            Webhook::open(config).map(Arc::new).map_err(failed)
        };
        Ok(Webhooks(configs.iter().map(open).collect::<Result<_, _>>()?))
    }

    /// Begins to send what comes.
    pub(crate) fn start(&self) -> Vec<JoinHandle<()>> {
        self.0.iter().map(|hook| tokio::spawn(Arc::clone(hook).run())).collect()
    }

    /// Tells everybody who wants to know what happens in this repository.
    pub(crate) fn tell(&self, repository: &str, event: &Value) {
        for hook in self.0.iter().filter(|hook| fits(&hook.repository, repository)) {
            let id = random_name();
            let mut event = event.clone();
            event["delivery"] = id.clone().into();
            hook.push(Message { id, body: event.to_string().into() });
        }
    }
}

impl Webhook {
    fn open(config: &WebhookConfig) -> Result<Self, String> {
        let uri: Uri = config.url.parse().map_err(|error| format!("it is no address: {error}"))?;
        let is_safe = uri.scheme() == Some(&Scheme::HTTPS);
        let host = uri.host().ok_or("it names no host")?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
        let port = uri.port_u16().unwrap_or(if is_safe { 443 } else { 80 });
        let tls = match is_safe {
            true => Some(trusted(config.ca_file.as_deref())?),
            false => None,
        };
        let secret = secret(&config.secret_file)?;
        Ok(Webhook {
            repository: config.repository.clone(),
            uri,
            host,
            port,
            tls,
            key: hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()),
            queue: Mutex::default(),
            filled: Notify::new(),
        })
    }

    fn push(&self, message: Message) {
        let mut queue = hold(&self.queue);
        if queue.messages.len() >= MOST_WAITING {
            queue.messages.pop_front();
            queue.dropped += 1;
        }
        queue.messages.push_back(message);
        drop(queue);
        self.filled.notify_one();
    }

    /// Sends what comes, for as long as the node runs.
    async fn run(self: Arc<Self>) {
        loop {
            let (message, dropped) = self.next().await;
            if dropped > 0 {
                tracing::warn!(url = %self.uri, dropped, "a webhook is too slow: messages were left out");
            }
            self.deliver(&message).await;
        }
    }

    async fn next(&self) -> (Message, u64) {
        loop {
            {
                let mut queue = hold(&self.queue);
                if let Some(message) = queue.messages.pop_front() {
                    return (message, std::mem::take(&mut queue.dropped));
                }
            }
            self.filled.notified().await;
        }
    }

    /// Sends a message until it is taken, or given up.
    async fn deliver(&self, message: &Message) {
        let mut pauses = pauses();
        loop {
            let sent = timeout(ANSWER_TIME, self.send(message)).await;
            let failure = match sent.unwrap_or(Err(Failure::Slow)) {
                Ok(()) => return,
                Err(failure) => failure,
            };
            let Some(pause) = pauses.next().filter(|_| failure.may_pass()) else {
                return tracing::warn!(url = %self.uri, %failure, "a webhook was given up");
            };
            tracing::debug!(url = %self.uri, %failure, "a webhook is tried again");
            sleep(pause).await;
        }
    }

    async fn send(&self, message: &Message) -> Result<(), Failure> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = stream.map_err(Failure::Connect)?;
        let stream = match &self.tls {
            Some(tls) => tls.connect(stream, &self.host).await.map_err(Failure::Connect)?,
            None => Stream::Tcp(stream),
        };
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(Failure::Http)?;
        let connection = tokio::spawn(connection);
        let response = sender.send_request(self.request(message)).await;
        connection.abort();
        let status = response.map_err(Failure::Http)?.status();
        if status.is_success() { Ok(()) } else { Err(Failure::Status(status)) }
    }

    fn request(&self, message: &Message) -> Request<Full<Bytes>> {
        let signature = hmac::sign(&self.key, &message.body);
        let path = self.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let authority = self.uri.authority().map(|it| it.as_str()).unwrap_or_default();
        let request = Request::post(path)
            .header(HOST, authority)
            .header(USER_AGENT, concat!("catraca/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/json")
            .header(CONTENT_LENGTH, message.body.len())
            .header("Catraca-Event", "git-lock")
            .header("Catraca-Delivery", &message.id)
            // The name that most receivers know.
            .header("X-Hub-Signature-256", format!("sha256={}", hex(signature.as_ref())));
        // All of these are plain texts, and the address was read before.
        request.body(Full::new(message.body.clone())).unwrap_or_default()
    }
}

/// What passes between one time that a message is sent and the next.
fn pauses() -> impl Iterator<Item = Duration> {
    let pause = |tried| (FIRST_PAUSE * 2_u32.pow(tried)).min(LONGEST_PAUSE);
    (0..TRIES - 1).map(pause)
}

fn trusted(file: Option<&Path>) -> Result<Tls, String> {
    let usual = || AUTHORITIES.iter().map(PathBuf::from).find(|path| path.exists());
    let file = file.map(Path::to_path_buf).or_else(usual);
    let file = file.ok_or("this system has no list of authorities; say ca-file")?;
    Tls::new(&file, None).map_err(|error| error.to_string())
}

fn secret(file: &Path) -> Result<String, String> {
    let unread = |error| {
        let why = catraca_client::system::plain(&error);
        format!("cannot read its secret from '{}': {why}", file.display())
    };
    let secret = fs::read_to_string(file).map_err(unread)?;
    let secret = secret.trim();
    match secret.len() {
        SHORTEST_SECRET.. => Ok(secret.to_string()),
        _ => Err(format!(
            "the secret in '{}' is too short: write at least {SHORTEST_SECRET} characters that nobody can guess",
            file.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(folder: &Path, url: &str) -> Result<Webhook, String> {
        let secret_file = folder.join("secret");
        fs::write(&secret_file, "a secret of some length\n").unwrap();
        let (repository, url) = ("*".to_string(), url.to_string());
        Webhook::open(&WebhookConfig { repository, url, secret_file, ca_file: None })
    }

    #[test]
    fn a_message_is_signed_with_the_secret() {
        let folder = tempfile::tempdir().unwrap();
        let hook = hook(folder.path(), "http://localhost:9/a/b?c=d").unwrap();
        let message = Message { id: "1".to_string(), body: "{}".into() };
        let request = hook.request(&message);
        assert_eq!(request.uri(), "/a/b?c=d");
        assert_eq!(request.headers()[HOST], "localhost:9");
        // printf '{}' | openssl dgst -sha256 -hmac 'a secret of some length'
        let signature = "sha256=1a5af9722519df5f1d71c653980c502c87e52bf18aecce877a02ae6cd576199d";
        assert_eq!(request.headers()["X-Hub-Signature-256"], signature);
    }

    #[test]
    fn what_may_pass_is_sent_eight_times_and_a_refusal_is_final() {
        let seconds: Vec<f64> = pauses().map(|it| it.as_secs_f64()).collect();
        assert_eq!(seconds, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
        let may_pass =
            |status: u16| Failure::Status(StatusCode::from_u16(status).unwrap()).may_pass();
        assert!([408, 429, 500, 503].into_iter().all(may_pass));
        assert!(![301, 400, 401, 404, 410].into_iter().any(may_pass));
        assert!(Failure::Slow.may_pass());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_never_answers_is_given_up_after_eight_times_of_ten_seconds() {
        let folder = tempfile::tempdir().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let hook = hook(folder.path(), &url).unwrap();
        let begun = tokio::time::Instant::now();
        hook.deliver(&Message { id: "1".to_string(), body: "{}".into() }).await;
        // Nothing else takes time here.
        let pauses: Duration = pauses().sum();
        assert_eq!(begun.elapsed().as_secs(), (TRIES * ANSWER_TIME + pauses).as_secs());
    }

    #[test]
    fn what_cannot_be_used_is_refused_before_the_node_runs() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("short"), "abc").unwrap();
        let why = |file: &str| secret(&folder.path().join(file)).unwrap_err();
        assert!(why("none").contains("cannot read its secret"), "{}", why("none"));
        assert!(why("short").contains("too short"));
    }

    #[test]
    fn where_there_is_no_room_the_oldest_message_goes() {
        let folder = tempfile::tempdir().unwrap();
        let hook = hook(folder.path(), "http://localhost:9/").unwrap();
        for number in 0..MOST_WAITING + 3 {
            hook.push(Message { id: number.to_string(), body: Bytes::new() });
        }
        let queue = hold(&hook.queue);
        assert_eq!((queue.messages.len(), queue.dropped), (MOST_WAITING, 3));
        assert_eq!(queue.messages[0].id, "3");
    }
}
