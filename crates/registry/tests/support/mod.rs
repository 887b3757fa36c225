//! Members of a group in one process, with links that can be cut.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]
#![allow(unreachable_pub, missing_docs, dead_code, reason = "a module of several tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use catraca_registry::embedded::Options;
use catraca_registry::embedded::{CallError, Calling, Transport};
use catraca_registry::{Embedded, Registry, Trouble, Txn};

pub const LIMIT: Duration = Duration::from_secs(30);
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The links between members.
#[derive(Default)]
pub struct Net {
    nodes: Mutex<BTreeMap<String, Embedded>>,
    cut: Mutex<BTreeSet<(String, String)>>,
}

struct Link {
    from: String,
    net: Arc<Net>,
}

impl Net {
    fn is_cut(&self, from: &str, to: &str) -> bool {
        self.cut.lock().unwrap().contains(&(from.to_string(), to.to_string()))
    }
}

impl Transport for Link {
    fn call<'a>(&'a self, to: &'a str, request: Vec<u8>) -> Calling<'a> {
        Box::pin(async move {
            let node = self.net.nodes.lock().unwrap().get(to).cloned();
            let Some(node) = node else {
                return Err(CallError::NotSent(format!("'{to}' is not there")));
            };
            if self.net.is_cut(&self.from, to) {
                std::future::pending::<()>().await;
            }
            // Whoever gives up does not take back what it has sent.
            let reply = tokio::spawn(async move { node.serve(request).await }).await;
            if self.net.is_cut(to, &self.from) {
                std::future::pending::<()>().await;
            }
            reply.map_err(|error| CallError::NoReply(error.to_string()))
        })
    }
}

/// A group in one process.
pub struct Group {
    pub members: Vec<String>,
    pub net: Arc<Net>,
    pub elections: std::ops::Range<Duration>,
    pub patience: Duration,
    pub entries_per_snapshot: u64,
    place: tempfile::TempDir,
}

impl Group {
    pub fn new(members: &[&str]) -> Self {
        Group {
            members: members.iter().map(ToString::to_string).collect(),
            net: Arc::default(),
            elections: Duration::from_millis(200)..Duration::from_millis(400),
            patience: PATIENCE,
            entries_per_snapshot: 1000,
            // What is tested is not the disk: if there is one in memory, it need not wait.
            place: tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap(),
        }
    }

    pub async fn started(members: &[&str]) -> Self {
        let group = Group::new(members);
        for name in members {
            group.start(name).await;
        }
        group
    }

    pub fn directory(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub async fn start(&self, name: &str) -> Embedded {
        let members: Vec<&str> = self.members.iter().map(String::as_str).collect();
        self.start_as(name, &members).await
    }

    /// Starts a member that knows these members.
    pub async fn start_as(&self, name: &str, members: &[&str]) -> Embedded {
        let options = Options {
            members: members.iter().map(ToString::to_string).collect(),
            elections: self.elections.clone(),
            patience: self.patience,
            entries_per_snapshot: self.entries_per_snapshot,
            transport: Arc::new(Link { from: name.to_string(), net: self.net.clone() }),
            ..Options::alone(self.directory(name), "group", name)
        };
        let node = Embedded::open(options).await.unwrap();
        self.net.nodes.lock().unwrap().insert(name.to_string(), node.clone());
        node
    }

    pub fn node(&self, name: &str) -> Embedded {
        self.net.nodes.lock().unwrap()[name].clone()
    }

    pub async fn stop(&self, name: &str) {
        let node = self.net.nodes.lock().unwrap().remove(name).unwrap();
        node.close().await;
    }

    pub async fn lose_disk(&self, name: &str) {
        self.stop(name).await;
        std::fs::remove_dir_all(self.directory(name)).unwrap();
    }

    /// Stops a member, which loses its disk unless it is `spared`.
    pub async fn lose_disk_but(&self, name: &str, spared: &str) {
        self.stop(name).await;
        if name != spared {
            std::fs::remove_dir_all(self.directory(name)).unwrap();
        }
    }

    /// Cuts a member off from all others, in both directions.
    pub fn cut_off(&self, name: &str) {
        let mut cut = self.net.cut.lock().unwrap();
        for other in self.members.iter().filter(|other| *other != name) {
            cut.insert((name.to_string(), other.clone()));
            cut.insert((other.clone(), name.to_string()));
        }
    }

    pub fn heal(&self) {
        self.net.cut.lock().unwrap().clear();
    }

    /// Whoever leads, when a majority of these says so.
    pub async fn leader(&self, among: &[&str]) -> String {
        eventually("there is a leader", || async {
            let told: Vec<_> =
                among.iter().filter_map(|name| self.node(name).health().leader).collect();
            let most = |leader: &&String| told.iter().filter(|told| told == leader).count();
            let agreed = told.iter().find(|leader| most(leader) * 2 > self.members.len());
            agreed.filter(|leader| among.contains(&leader.as_str())).cloned()
        })
        .await
    }
}

/// Waits for something, for a generous time.
pub async fn eventually<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < LIMIT, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub fn put(key: &str, value: &str) -> Txn {
    Txn::default().put(key, value.into())
}

/// Says it again until it is certain that it was done. Only for what may be done twice.
pub async fn insist(registry: &Embedded, txn: Txn) {
    eventually("a write succeeds", || async {
        match registry.txn(txn.clone()).await {
            Ok(answer) => {
                assert!(answer.applied);
                Some(())
            }
            Err(Trouble::Unknown(_) | Trouble::Unreachable(_)) => None,
            Err(trouble) => panic!("{trouble}"),
        }
    })
    .await;
}

pub async fn value(registry: &Embedded, key: &str) -> Option<String> {
    let answer = eventually("a read succeeds", || async { registry.txn(Txn::read()).await.ok() });
    let item = answer.await.state.get(key).cloned()?;
    Some(String::from_utf8(item.value).unwrap())
}
