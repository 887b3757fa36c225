//! Locks on Redis: as its libraries make them, by hand-over through a list, and over three servers.

use std::time::Duration;

use anyhow::{Result, bail};
use catraca_sim::Random;

use super::load::{Contender, Service};
use super::resp::{Connection, Reply};
use super::server::{Servers, parts};

/// What keeps a lock from being held for ever. No client holds one for nearly so long.
const EXPIRY: &str = "30000";
/// Deletes the key if it has the client's own value, as all libraries do it.
const RELEASE: &str =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
/// Makes a list with one element, once.
const ONCE: &str =
    "if redis.call('setnx',KEYS[1]..':made',1)==1 then redis.call('rpush',KEYS[1],'token') end";

/// Servers of Redis that keep everything in memory and write nothing.
pub(super) async fn servers(count: usize) -> Result<Servers> {
    let mut servers = Servers::new(count)?;
    for number in 0..count {
        let (host, port) = parts(&servers.addresses[number])?;
        let port = port.to_string();
        let folder = servers.folder.path().join(format!("redis-{number}"));
        std::fs::create_dir(&folder)?;
        let folder = folder.to_string_lossy();
        let settings = ["--bind", &host, "--port", &port, "--dir", &folder, "--save", ""];
        let settings: Vec<String> = settings.map(str::to_string).into();
        servers.add("redis-server", &settings)?;
    }
    servers.listening().await?;
    Ok(servers)
}

/// One server; whoever finds a lock taken asks again after a pause.
pub(super) struct Polling {
    pub(super) servers: Servers,
    pub(super) pause: Duration,
}

impl Service for Polling {
    type Client = PollingClient;
    async fn client(&self, number: usize, lock: &str) -> Result<PollingClient> {
        let key = Key::new(number, lock);
        let place = Place::open(&self.servers.addresses[0]).await?;
        Ok(PollingClient { place, key, pause: self.pause })
    }
}

/// The name of a lock, and the value that proves that it is the client's.
struct Key {
    lock: String,
    value: String,
}

impl Key {
    fn new(number: usize, lock: &str) -> Self {
        Key { lock: lock.to_string(), value: format!("client-{number}") }
    }
}

/// A connection to a server that knows the script.
struct Place {
    connection: Connection,
    script: String,
}

impl Place {
    async fn open(address: &str) -> Result<Self> {
        let mut connection = Connection::open(address).await?;
        let Reply::Text(script) = connection.call(&["SCRIPT", "LOAD", RELEASE]).await? else {
            bail!("the script has no name");
        };
        Ok(Place { connection, script: String::from_utf8(script)? })
    }

    async fn try_acquire(&mut self, key: &Key) -> Result<bool> {
        let set = ["SET", &key.lock, &key.value, "NX", "PX", EXPIRY];
        Ok(self.connection.call(&set).await? != Reply::Nil)
    }

    async fn release(&mut self, key: &Key) -> Result<bool> {
        let release = ["EVALSHA", &self.script, "1", &key.lock, &key.value];
        Ok(self.connection.call(&release).await? == Reply::Integer(1))
    }
}

pub(super) struct PollingClient {
    place: Place,
    key: Key,
    pause: Duration,
}

impl Contender for PollingClient {
    async fn acquire(&mut self) -> Result<()> {
        while !self.place.try_acquire(&self.key).await? {
            tokio::time::sleep(self.pause).await;
        }
        Ok(())
    }

    async fn release(&mut self) -> Result<()> {
        match self.place.release(&self.key).await? {
            true => Ok(()),
            false => bail!("the lock was lost"),
        }
    }
}

/// One server; a lock is a list with one element, and whoever takes it out is inside.
pub(super) struct HandOver {
    pub(super) servers: Servers,
}

impl Service for HandOver {
    type Client = HandOverClient;
    async fn client(&self, _number: usize, lock: &str) -> Result<HandOverClient> {
        let mut connection = Connection::open(&self.servers.addresses[0]).await?;
        connection.call(&["EVAL", ONCE, "1", lock]).await?;
        Ok(HandOverClient { connection, lock: lock.to_string() })
    }
}

pub(super) struct HandOverClient {
    connection: Connection,
    lock: String,
}

impl Contender for HandOverClient {
    async fn acquire(&mut self) -> Result<()> {
        self.connection.call(&["BLPOP", &self.lock, "0"]).await?;
        Ok(())
    }

    async fn release(&mut self) -> Result<()> {
        self.connection.call(&["RPUSH", &self.lock, "token"]).await?;
        Ok(())
    }
}

/// Three servers that know nothing of each other; whoever has two of them is inside.
pub(super) struct Redlock {
    pub(super) servers: Servers,
}

impl Service for Redlock {
    type Client = RedlockClient;
    async fn client(&self, number: usize, lock: &str) -> Result<RedlockClient> {
        let [one, two, three] = &self.servers.addresses[..] else { bail!("not three servers") };
        let places = [Place::open(one).await?, Place::open(two).await?, Place::open(three).await?];
        let random = Random::new(number as u64);
        Ok(RedlockClient { places, key: Key::new(number, lock), random })
    }
}

pub(super) struct RedlockClient {
    places: [Place; 3],
    key: Key,
    random: Random,
}

impl RedlockClient {
    /// Everywhere at the same time. Returns in how many places it was the client's.
    async fn release_all(&mut self) -> Result<usize> {
        let ([one, two, three], key) = (&mut self.places, &self.key);
        let done = tokio::try_join!(one.release(key), two.release(key), three.release(key))?;
        Ok([done.0, done.1, done.2].into_iter().filter(|done| *done).count())
    }
}

impl Contender for RedlockClient {
    async fn acquire(&mut self) -> Result<()> {
        loop {
            let ([one, two, three], key) = (&mut self.places, &self.key);
            let (one, two, three) = tokio::try_join!(
                one.try_acquire(key),
                two.try_acquire(key),
                three.try_acquire(key)
            )?;
            if [one, two, three].into_iter().filter(|done| *done).count() >= 2 {
                return Ok(());
            }
            self.release_all().await?;
            // What the library for Node.js does, unless told otherwise.
            let pause = 200 + self.random.below(100);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    async fn release(&mut self) -> Result<()> {
        match self.release_all().await? {
            2.. => Ok(()),
            _ => bail!("the lock was lost"),
        }
    }
}
