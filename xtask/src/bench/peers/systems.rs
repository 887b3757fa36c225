//! The lock services that are compared.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::bare::Bare;
use super::etcd::Etcd;
use super::load::{Figures, LOADS, Service, measure};
use super::ours::{self, Embedded, Http, Native, Resp};
use super::redis::{self, HandOver, Polling, Redlock};
use super::zookeeper::ZooKeeper;

/// What redis-py does between two tries, unless told otherwise.
const USUAL_PAUSE: Duration = Duration::from_millis(100);
const SHORT_PAUSE: Duration = Duration::from_millis(1);
/// For how long a SET NX waits at a node.
const PARK: &str = "1s";

/// Which lock service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Bare,
    Etcd,
    ZooKeeper,
    RedisPolling,
    RedisFastPolling,
    RedisHandOver,
    Redlock,
    Embedded,
    Native,
    Resp,
    RespKeys,
    Http,
    Durable,
}

/// A lock service of so many servers.
pub(super) struct System {
    pub(super) key: &'static str,
    pub(super) kind: Kind,
    pub(super) members: usize,
    pub(super) title: &'static str,
}

const fn system(key: &'static str, kind: Kind, members: usize, title: &'static str) -> System {
    System { key, kind, members, title }
}

/// All of them, in the order of the table.
pub(super) const SYSTEMS: &[System] = &[
    system("bare", Kind::Bare, 1, "bare TCP lock server"),
    system("etcd-1", Kind::Etcd, 1, "etcd, 1 member"),
    system("etcd-3", Kind::Etcd, 3, "etcd, 3 members"),
    system("zookeeper-1", Kind::ZooKeeper, 1, "ZooKeeper, 1 server"),
    system("zookeeper-3", Kind::ZooKeeper, 3, "ZooKeeper, 3 servers"),
    system("redis", Kind::RedisPolling, 1, "Redis, SET NX PX, polled every 100 ms"),
    system("redis-fast", Kind::RedisFastPolling, 1, "Redis, SET NX PX, polled every 1 ms"),
    system("redis-blpop", Kind::RedisHandOver, 1, "Redis, BLPOP"),
    system("redlock", Kind::Redlock, 3, "Redlock, 3 Redis servers"),
    system("embedded-1", Kind::Embedded, 1, "Catraca within the program, 1 member"),
    system("embedded-3", Kind::Embedded, 3, "Catraca within the program, 3 members"),
    system("native-1", Kind::Native, 1, "Catraca, native protocol, 1 member"),
    system("native-3", Kind::Native, 3, "Catraca, native protocol, 3 members"),
    system("resp-1", Kind::Resp, 1, "Catraca, RESP, 1 member"),
    system("resp-3", Kind::Resp, 3, "Catraca, RESP, 3 members"),
    system("resp-keys", Kind::RespKeys, 1, "Catraca, RESP as a Redis library uses it, 1 member"),
    system("http-1", Kind::Http, 1, "Catraca, HTTP, 1 member"),
    system("http-3", Kind::Http, 3, "Catraca, HTTP, 3 members"),
    system("durable-1", Kind::Durable, 1, "Catraca, durable holds over HTTP, 1 member"),
    system("durable-3", Kind::Durable, 3, "Catraca, durable holds over HTTP, 3 members"),
];

/// The figures of each load, by its key.
pub(super) type Measured = BTreeMap<&'static str, Figures>;

impl System {
    /// Starts the servers, measures every load, and stops them.
    pub(super) async fn measure(&self, catraca: &Path, time: Duration) -> Result<Measured> {
        let count = self.members;
        match self.kind {
            Kind::Bare => all(&Bare::start().await?, time).await,
            Kind::Etcd => all(&Etcd::start(count).await?, time).await,
            Kind::ZooKeeper => all(&ZooKeeper::start(count).await?, time).await,
            Kind::RedisPolling => {
                let servers = redis::servers(count).await?;
                all(&Polling { servers, pause: USUAL_PAUSE }, time).await
            }
            Kind::RedisFastPolling => {
                let servers = redis::servers(count).await?;
                all(&Polling { servers, pause: SHORT_PAUSE }, time).await
            }
            Kind::RedisHandOver => {
                all(&HandOver { servers: redis::servers(count).await? }, time).await
            }
            Kind::Redlock => all(&Redlock { servers: redis::servers(count).await? }, time).await,
            Kind::Embedded => {
                let service = Embedded::start(count).await?;
                let measured = all(&service, time).await;
                service.stop().await;
                measured
            }
            Kind::Native => {
                all(&Native(ours::members(catraca, count, None, &[]).await?), time).await
            }
            Kind::Resp => {
                let servers = ours::members(catraca, count, Some("--resp"), &[]).await?;
                all(&Resp(servers), time).await
            }
            Kind::RespKeys => {
                let park = ["--park", PARK];
                let servers = ours::members(catraca, count, Some("--resp"), &park).await?;
                all(&Polling { servers, pause: USUAL_PAUSE }, time).await
            }
            Kind::Http => {
                let servers = ours::members(catraca, count, Some("--http"), &[]).await?;
                all(&Http { servers, durable: false }, time).await
            }
            Kind::Durable => {
                let servers = ours::members(catraca, count, Some("--http"), &[]).await?;
                all(&Http { servers, durable: true }, time).await
            }
        }
    }
}

async fn all<S: Service>(service: &S, time: Duration) -> Result<Measured> {
    let mut measured = Measured::new();
    for load in &LOADS {
        measured.insert(load.key, measure(service, load, time).await?);
    }
    Ok(measured)
}
