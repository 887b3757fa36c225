//! Locks on ZooKeeper, by the recipe of its documentation.
//!
//! A node that is ephemeral and sequential stands for the client's place in the queue. Whoever is not the
//! first watches the one before. The request for the list of nodes follows that for the own node without
//! waiting for its answer, which the recipe does not ask for: the server keeps their order.

mod wire;

use std::path::Path;

use anyhow::{Context, Result, bail};
use tokio::net::TcpStream;

use super::load::{Contender, Service};
use super::server::{Servers, address, parts};
use wire::{Input, Output, Session};

const MAIN: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
/// The package puts it there; it names what else it needs.
pub(super) const CLASSES: &str = "/usr/share/java/zookeeper.jar";

/// An ensemble with ZooKeeper's own settings, except that one address may have many connections.
pub(super) struct ZooKeeper {
    servers: Servers,
}

impl ZooKeeper {
    pub(super) async fn start(count: usize) -> Result<Self> {
        let mut servers = Servers::new(count)?;
        let mut ensemble = String::new();
        if count > 1 {
            for number in 0..count {
                let ((host, port), (_, election)) = (parts(&address())?, parts(&address())?);
                ensemble += &format!("server.{}={host}:{port}:{election}\n", number + 1);
            }
        }
        for number in 0..count {
            let folder = servers.folder.path().join(format!("zookeeper-{number}"));
            let settings = settings(&folder, number, &servers.addresses[number], &ensemble)?;
            let arguments = ["-Xmx512m", "-cp", CLASSES, MAIN, &settings];
            servers.add("java", &arguments.map(str::to_string))?;
        }
        for address in servers.addresses.clone() {
            // It listens before it has a leader.
            servers.retry(async || Session::open(&address).await).await?;
        }
        Ok(ZooKeeper { servers })
    }
}

/// Writes the file that a server is told by; returns where it is.
fn settings(folder: &Path, number: usize, address: &str, ensemble: &str) -> Result<String> {
    std::fs::create_dir(folder)?;
    let (host, port) = parts(address)?;
    let file = folder.join("zoo.cfg");
    std::fs::write(folder.join("myid"), format!("{}\n", number + 1))?;
    let text = format!(
        "tickTime=2000\ninitLimit=10\nsyncLimit=5\nmaxClientCnxns=0\nadmin.enableServer=false\n\
         dataDir={}\nclientPort={port}\nclientPortAddress={host}\n{ensemble}",
        folder.display()
    );
    std::fs::write(&file, text)?;
    Ok(file.to_string_lossy().into_owned())
}

impl Service for ZooKeeper {
    type Client = ZooKeeperClient;
    async fn client(&self, number: usize, lock: &str) -> Result<ZooKeeperClient> {
        let mut session = Session::open(self.servers.of_client(number)).await?;
        let parent = format!("/{lock}");
        session.create_parent(&parent).await?;
        Ok(ZooKeeperClient { session, parent, own: String::new() })
    }
}

pub(super) struct ZooKeeperClient {
    session: Session<TcpStream>,
    parent: String,
    /// The own node while it holds or waits.
    own: String,
}

impl Contender for ZooKeeperClient {
    async fn acquire(&mut self) -> Result<()> {
        let created = self.session.send(&Output::create_sequential(&self.parent)).await?;
        let mut listed = self.session.send(&Output::children(&self.parent)).await?;
        self.own = self.session.answer(created).await?.done()?.text()?;
        loop {
            let names = self.session.answer(listed).await?.done()?.texts()?;
            let Some(before) = predecessor(names, name(&self.own)?)? else { return Ok(()) };
            let before = format!("{}/{before}", self.parent);
            let watched = self.session.send(&Output::exists(&before)).await?;
            if self.session.answer(watched).await?.found()? {
                self.session.deleted(&before).await?;
            }
            listed = self.session.send(&Output::children(&self.parent)).await?;
        }
    }

    async fn release(&mut self) -> Result<()> {
        let deleted = self.session.send(&Output::delete(&self.own)).await?;
        self.session.answer(deleted).await?.done().map(|_: Input| ())
    }
}

fn name(path: &str) -> Result<&str> {
    Ok(path.rsplit_once('/').context("a path without a parent")?.1)
}

/// The last of those before the own one, if there are any. The number at the end of each name has so many
/// digits that the names are in order.
fn predecessor(names: Vec<String>, own: &str) -> Result<Option<String>> {
    if !names.iter().any(|name| name == own) {
        bail!("the lock was lost");
    }
    Ok(names.into_iter().filter(|name| name.as_str() < own).max())
}
