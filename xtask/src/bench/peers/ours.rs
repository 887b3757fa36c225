//! Locks of a Catraca group, over each of its interfaces.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use catraca_client::Client;
use catraca_node::{Config, Guard, Node, RegistryPlace};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::load::{Contender, Service};
use super::resp::{Connection, Reply};
use super::server::{Servers, address, connect, folder};

/// All processes share the machine, and nobody is to be taken for crashed because of that.
const LEASE: Duration = Duration::from_secs(60);
/// No client waits or holds for nearly so long.
const LONG: &str = "30000";

/// A group of nodes; clients find them at the port of an interface, or at the native one. `more` are more
/// flags.
pub(super) async fn members(
    catraca: &Path,
    count: usize,
    interface: Option<&str>,
    more: &[&str],
) -> Result<Servers> {
    let mut servers = Servers::new(count)?;
    let native = match interface {
        None => servers.addresses.clone(),
        Some(_) => (0..count).map(|_| address()).collect(),
    };
    let list = list(&native);
    for number in 0..count {
        let data = servers.folder.path().join(format!("node-{number}"));
        let (name, lease) = (format!("m{number}"), format!("{}s", LEASE.as_secs()));
        let data = data.to_string_lossy();
        let mut arguments: Vec<String> =
            ["node", "--name", &name, "--members", &list, "--lease", &lease, "--data", &data]
                .map(str::to_string)
                .into();
        if let Some(flag) = interface {
            arguments.extend([flag.to_string(), servers.addresses[number].clone()]);
        }
        arguments.extend(more.iter().map(ToString::to_string));
        servers.add(&catraca.to_string_lossy(), &arguments)?;
    }
    // The group serves when each member does.
    for address in native {
        servers.retry(async || ready(&address).await).await?;
    }
    servers.listening().await?;
    Ok(servers)
}

fn list(addresses: &[String]) -> String {
    let named = |(number, address): (usize, &String)| format!("m{number}={address}");
    addresses.iter().enumerate().map(named).collect::<Vec<_>>().join(",")
}

async fn ready(address: &str) -> Result<()> {
    let client = Client::builder().addresses([address]).connect().await?;
    client.lock("ready").within(Duration::from_secs(5)).await?.release().await?;
    Ok(client.close().await?)
}

/// The native protocol, by the library for Rust.
pub(super) struct Native(pub(super) Servers);

impl Service for Native {
    type Client = NativeClient;
    async fn client(&self, number: usize, lock: &str) -> Result<NativeClient> {
        let client = Client::builder().addresses([self.0.of_client(number)]).connect().await?;
        Ok(NativeClient { client, lock: lock.to_string(), held: None })
    }
}

pub(super) struct NativeClient {
    client: Client,
    lock: String,
    held: Option<catraca_client::Guard>,
}

impl Contender for NativeClient {
    async fn acquire(&mut self) -> Result<()> {
        self.held = Some(self.client.lock(self.lock.as_str()).await?);
        Ok(())
    }

    async fn release(&mut self) -> Result<()> {
        let held = self.held.take().context("nothing is held")?;
        Ok(held.release().await?)
    }
}

/// Nodes within this process, linked over TCP as others are.
pub(super) struct Embedded {
    nodes: Vec<Arc<Node>>,
    _data: TempDir,
}

impl Embedded {
    pub(super) async fn start(count: usize) -> Result<Self> {
        let data = folder()?;
        let addresses: Vec<String> = (0..count).map(|_| address()).collect();
        let mut starting = tokio::task::JoinSet::new();
        for number in 0..count {
            let name = format!("m{number}");
            let mut config = Config::new(&name, Config::members_from(&list(&addresses))?);
            config.registry = RegistryPlace::Directory(data.path().join(&name));
            config.lease = LEASE;
            // A node may wait for the others before it has started.
            starting.spawn(Node::start(config));
        }
        let mut nodes = Vec::new();
        while let Some(started) = starting.join_next().await {
            nodes.push(Arc::new(started??));
        }
        for node in &nodes {
            node.ready().await?;
        }
        Ok(Embedded { nodes, _data: data })
    }

    pub(super) async fn stop(self) {
        for node in self.nodes {
            if let Ok(node) = Arc::try_unwrap(node) {
                node.fast_stop().stop();
                node.stop().await;
            }
        }
    }
}

impl Service for Embedded {
    type Client = EmbeddedClient;
    async fn client(&self, number: usize, lock: &str) -> Result<EmbeddedClient> {
        let node = Arc::clone(&self.nodes[number % self.nodes.len()]);
        Ok(EmbeddedClient { held: None, lock: lock.to_string(), node })
    }
}

pub(super) struct EmbeddedClient {
    held: Option<Guard>,
    lock: String,
    node: Arc<Node>,
}

impl Contender for EmbeddedClient {
    async fn acquire(&mut self) -> Result<()> {
        self.held = Some(self.node.lock(&self.lock).await?);
        Ok(())
    }

    async fn release(&mut self) -> Result<()> {
        self.held = None;
        Ok(())
    }
}

/// The own commands of the RESP port.
pub(super) struct Resp(pub(super) Servers);

impl Service for Resp {
    type Client = RespClient;
    async fn client(&self, number: usize, lock: &str) -> Result<RespClient> {
        let connection = Connection::open(self.0.of_client(number)).await?;
        Ok(RespClient { connection, lock: lock.to_string() })
    }
}

pub(super) struct RespClient {
    connection: Connection,
    lock: String,
}

impl Contender for RespClient {
    async fn acquire(&mut self) -> Result<()> {
        match self.connection.call(&["CATRACA.LOCK", &self.lock]).await? {
            Reply::Nil => bail!("the lock was refused"),
            _ => Ok(()),
        }
    }

    async fn release(&mut self) -> Result<()> {
        match self.connection.call(&["CATRACA.UNLOCK", &self.lock]).await? {
            Reply::Integer(1) => Ok(()),
            other => bail!("the lock was lost: {other:?}"),
        }
    }
}

/// HTTP and JSON.
pub(super) struct Http {
    pub(super) servers: Servers,
    /// Whether holds are written to the registry before they are confirmed.
    pub(super) durable: bool,
}

impl Service for Http {
    type Client = HttpClient;
    async fn client(&self, number: usize, lock: &str) -> Result<HttpClient> {
        let address = self.servers.of_client(number).to_string();
        let stream = connect(&address).await?;
        let (id, received) = (String::new(), Vec::new());
        let owner = self.durable.then(|| format!("client-{number}"));
        Ok(HttpClient { stream, address, lock: lock.to_string(), owner, id, received })
    }
}

pub(super) struct HttpClient {
    stream: TcpStream,
    address: String,
    lock: String,
    /// Of durable holds.
    owner: Option<String>,
    /// Of what is held.
    id: String,
    received: Vec<u8>,
}

impl HttpClient {
    /// Sends a request; returns the body of the answer if it has one of these statuses.
    async fn call(&mut self, line: &str, body: &str, statuses: &[u16]) -> Result<Vec<u8>> {
        let (address, length) = (&self.address, body.len());
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).await?;
        loop {
            if let Some((status, body, end)) = answer(&self.received)? {
                let body = body.to_vec();
                self.received.drain(..end);
                if !statuses.contains(&status) {
                    bail!("{line}: {status} {}", String::from_utf8_lossy(&body));
                }
                return Ok(body);
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                bail!("the server has closed the connection");
            }
        }
    }
}

/// Status, body and end of an answer; None if it is not complete.
fn answer(bytes: &[u8]) -> Result<Option<(u16, &[u8], usize)>> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..end])?;
    let status = head.split(' ').nth(1).context("not HTTP")?.parse()?;
    let mut length = 0;
    for line in head.lines().skip(1) {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
    }
    let body = end + 4;
    Ok(bytes.get(body..body + length).map(|text| (status, text, body + length)))
}

impl Contender for HttpClient {
    async fn acquire(&mut self) -> Result<()> {
        let names = &self.lock;
        let how = match &self.owner {
            None => format!(r#""ttl_ms":{LONG}"#),
            Some(owner) => format!(r#""durable":true,"owner":"{owner}""#),
        };
        let asked = format!(r#"{{"names":["{names}"],"wait_ms":{LONG},{how}}}"#);
        let body = self.call("POST /v1/acquire", &asked, &[201]).await?;
        let hold: serde_json::Value = serde_json::from_slice(&body)?;
        self.id = hold["id"].as_str().context("a hold without an id")?.to_string();
        Ok(())
    }

    async fn release(&mut self) -> Result<()> {
        let owner = self.owner.iter().map(|owner| format!("?owner={owner}"));
        let line = format!("DELETE /v1/holds/{}{}", self.id, owner.collect::<String>());
        self.call(&line, "", &[200, 204]).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_over_http_is_read_only_when_it_is_complete() {
        let bytes = b"HTTP/1.1 201 Created\r\ncontent-length: 4\r\n\r\nbodyHTTP/1.1 204";
        let whole = bytes.len() - b"HTTP/1.1 204".len();
        for end in 0..whole {
            assert!(answer(&bytes[..end]).unwrap().is_none(), "{end}");
        }
        assert_eq!(answer(bytes).unwrap(), Some((201, b"body".as_slice(), whole)));
        let bare = b"HTTP/1.1 204 No Content\r\n\r\n";
        assert_eq!(answer(bare).unwrap(), Some((204, b"".as_slice(), bare.len())));
    }
}
