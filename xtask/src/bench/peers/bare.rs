//! The smallest lock service over TCP that there can be: what nobody can be faster than.
//!
//! It knows nothing of clients that die, of names, of fences. A request is five bytes: what is wanted, and
//! the number of the lock. The answer is one byte. One thread serves all connections.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};

use super::load::{Contender, Service};
use super::server::{Servers, connect};

const ACQUIRE: u8 = b'A';
const RELEASE: u8 = b'R';
const DONE: &[u8] = b"!";

/// Serves until it is killed.
pub(crate) fn serve(address: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        let locks = Arc::new(Mutex::new(BTreeMap::new()));
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let locks = Arc::clone(&locks);
            // A connection ends with its client.
            tokio::spawn(async move { talk(stream, &locks).await.ok() });
        }
    })
}

/// Those who wait, behind the one who is inside.
type Locks = Mutex<BTreeMap<[u8; 4], VecDeque<Arc<OwnedWriteHalf>>>>;

async fn talk(stream: TcpStream, locks: &Locks) -> Result<()> {
    let (mut input, output) = stream.into_split();
    let output = Arc::new(output);
    loop {
        let mut request = [0; 5];
        input.read_exact(&mut request).await?;
        let [what, lock @ ..] = request;
        let mut locks = locks.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = locks.entry(lock).or_default();
        if what == ACQUIRE {
            queue.push_back(Arc::clone(&output));
            if queue.len() > 1 {
                continue;
            }
        } else {
            queue.pop_front();
            if let Some(next) = queue.front() {
                say(next)?;
            }
        }
        say(&output)?;
    }
}

/// One byte always fits: there is never more than one answer that was not read.
fn say(output: &OwnedWriteHalf) -> Result<()> {
    match output.try_write(DONE)? {
        1 => Ok(()),
        _ => bail!("a client does not read its answers"),
    }
}

/// The service, in a process of its own.
pub(super) struct Bare {
    servers: Servers,
}

impl Bare {
    pub(super) async fn start() -> Result<Self> {
        let program = std::env::current_exe().context("this program does not know where it is")?;
        let mut servers = Servers::new(1)?;
        let arguments = ["bare-server".to_string(), servers.addresses[0].clone()];
        servers.add(&program.to_string_lossy(), &arguments)?;
        servers.listening().await?;
        Ok(Bare { servers })
    }
}

impl Service for Bare {
    type Client = BareClient;
    async fn client(&self, _number: usize, lock: &str) -> Result<BareClient> {
        // Loads come one after the other, so the number in a name tells the locks of one apart.
        let number = lock.rsplit('-').next().context("a lock without a number")?;
        let lock = number.parse::<u32>()?.to_be_bytes();
        Ok(BareClient { stream: connect(&self.servers.addresses[0]).await?, lock })
    }
}

pub(super) struct BareClient {
    stream: TcpStream,
    lock: [u8; 4],
}

impl BareClient {
    async fn call(&mut self, what: u8) -> Result<()> {
        let [a, b, c, d] = self.lock;
        self.stream.write_all(&[what, a, b, c, d]).await?;
        self.stream.read_exact(&mut [0]).await?;
        Ok(())
    }
}

impl Contender for BareClient {
    async fn acquire(&mut self) -> Result<()> {
        self.call(ACQUIRE).await
    }

    async fn release(&mut self) -> Result<()> {
        self.call(RELEASE).await
    }
}
