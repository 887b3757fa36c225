//! The coordinator's state: a plain value that knows who is inside and who waits.
//!
//! It steps node 0 of the `coordinator` algorithm, the same code that the simulator runs and the
//! checker explores. Every connected client is a node of that algorithm's group. What ids and
//! broken connections mean is decided here; who is next is not.
//!
//! The algorithm knows no node that gives up. When a client that waits has disconnected, the
//! algorithm is started again with the same client inside and asked again, in the same order, for those that
//! still wait. So nothing is left of that client, however long the one inside takes; the
//! others notice nothing. This costs a step for each client that waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use catraca_algorithms::Coordinator;
use catraca_core::{Algorithm, Effect, Effects, Input, NodeId, Phase, Start};
use catraca_topology::Members;

use crate::{Kind, Message, ProcessId};

type AlgorithmMessage = <Coordinator as Algorithm>::Message;

/// The algorithm's own node.
const COORDINATOR: NodeId = NodeId(0);

/// So many processes are counted one by one; those that come later are counted together.
pub const COUNTED: usize = 100_000;

/// The state of the whole system.
#[derive(Debug)]
pub struct CoordinatorState {
    coordinator: Coordinator,
    effects: Effects<AlgorithmMessage>,
    /// The coordinator and all clients that there may be.
    group: Members,
    free: BTreeSet<NodeId>,
    clients: BTreeMap<NodeId, Client>,
    /// The node of every process that has said its name.
    names: BTreeMap<ProcessId, NodeId>,
    inside: Option<NodeId>,
    /// In the order of arrival.
    waiting: VecDeque<NodeId>,
    served: Served,
}

/// A connected client.
#[derive(Clone, Copy, Debug)]
struct Client {
    /// AlgorithmMessage with the first message.
    id: Option<ProcessId>,
    phase: Phase,
}

/// A client may enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its node.
    pub node: NodeId,
    /// Who it is.
    pub id: ProcessId,
}

/// A client that has disconnected, and the client that enters next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disconnection {
    /// Its name, if it has said it.
    pub id: Option<ProcessId>,
    /// What it was doing.
    pub phase: Phase,
    /// Who is next, if it was inside and another waits.
    pub next: Option<Grant>,
}

impl CoordinatorState {
    /// A coordinator for so many clients at once, none of them connected.
    pub fn new(clients: u32) -> Self {
        let group = Members { nodes: clients.saturating_add(1) };
        CoordinatorState {
            coordinator: Coordinator::new(COORDINATOR, &group, &Start::idle()),
            effects: Effects::new(),
            group,
            free: NodeId::all(group.nodes).skip(1).collect(),
            clients: BTreeMap::new(),
            names: BTreeMap::new(),
            inside: None,
            waiting: VecDeque::new(),
            served: Served::default(),
        }
    }

    /// Gives a new client a node, unless all are taken.
    pub fn connect(&mut self) -> Option<NodeId> {
        let node = self.free.pop_first()?;
        self.clients.insert(node, Client { id: None, phase: Phase::Idle });
        Some(node)
    }

    /// The client at `node` says this. What is refused changes nothing; its connection should be
    /// closed and [`disconnect`](Self::disconnect) called.
    pub fn receive(&mut self, node: NodeId, message: &Message) -> Result<Option<Grant>, Refusal> {
        let client = *self.clients.get(&node).ok_or(Refusal::NotConnected)?;
        self.check_name(node, &client, message.id)?;
        match (message.kind, client.phase) {
            (Kind::Request, Phase::Idle) => Ok(self.request(node, message.id)),
            (Kind::Release, Phase::Inside) => Ok(self.release(node, message.id)),
            (Kind::Request, Phase::Waiting) => Err(Refusal::AlreadyWaiting),
            (Kind::Request, Phase::Inside) => Err(Refusal::AlreadyInside),
            (Kind::Release, _) => Err(Refusal::NotInside),
            (Kind::Grant, _) => Err(Refusal::NotTheCoordinator),
        }
    }

    /// The client at `node` is gone: it no longer waits, and it is no longer inside.
    pub fn disconnect(&mut self, node: NodeId) -> Disconnection {
        let Some(Client { id, phase }) = self.clients.get(&node).copied() else {
            return Disconnection { id: None, phase: Phase::Idle, next: None };
        };
        let next = match (id, phase) {
            (Some(id), Phase::Inside) => self.release(node, id),
            (_, Phase::Waiting) => {
                self.forget(node);
                None
            }
            _ => None,
        };
        self.clients.remove(&node);
        self.free.insert(node);
        if let Some(id) = id {
            self.names.remove(&id);
        }
        Disconnection { id, phase, next }
    }

    /// Who is inside.
    pub fn inside(&self) -> Option<ProcessId> {
        self.name(self.inside?)
    }

    /// Who waits, in the order of arrival.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = Option<ProcessId>> {
        self.waiting.iter().map(|&node| self.name(node))
    }

    /// How often each process has been inside, and has left.
    pub fn served(&self) -> &Served {
        &self.served
    }

    fn name(&self, node: NodeId) -> Option<ProcessId> {
        self.clients.get(&node)?.id
    }

    /// A connection is for one process, and a process has one connection: in S3 the id 'é
    /// único para cada instância', and with two of one name no log could show who was inside.
    fn check_name(&self, node: NodeId, client: &Client, id: ProcessId) -> Result<(), Refusal> {
        if let Some(before) = client.id
            && before != id
        {
            return Err(Refusal::OtherName(before));
        }
        match self.names.get(&id) {
            Some(&other) if other != node => Err(Refusal::NameTaken(id)),
            _ => Ok(()),
        }
    }

    fn request(&mut self, node: NodeId, id: ProcessId) -> Option<Grant> {
        self.names.insert(id, node);
        self.clients.insert(node, Client { id: Some(id), phase: Phase::Waiting });
        self.waiting.push_back(node);
        self.step(node, AlgorithmMessage::Request)
    }

    fn release(&mut self, node: NodeId, id: ProcessId) -> Option<Grant> {
        self.clients.insert(node, Client { id: Some(id), phase: Phase::Idle });
        self.inside = None;
        self.served.count(id);
        self.step(node, AlgorithmMessage::Release)
    }

    fn forget(&mut self, gone: NodeId) {
        self.waiting.retain(|&node| node != gone);
        let start = self.inside.map_or_else(Start::idle, Start::inside);
        self.coordinator = Coordinator::new(COORDINATOR, &self.group, &start);
        for place in 0..self.waiting.len() {
            let granted = self.step(self.waiting[place], AlgorithmMessage::Request);
            debug_assert_eq!(granted, None, "somebody waits only while somebody is inside");
        }
    }

    /// One step of the algorithm. It lets at most one in.
    fn step(&mut self, from: NodeId, message: AlgorithmMessage) -> Option<Grant> {
        let input = Input::Message { from, message };
        self.coordinator.step(&self.group, input, &mut self.effects);
        let mut granted = None;
        for effect in self.effects.drain() {
            match effect {
                Effect::Send { to, message: AlgorithmMessage::Grant(_) } => granted = Some(to),
                other => debug_assert!(false, "the coordinator does not do {other:?}"),
            }
        }
        self.admit(granted?)
    }

    fn admit(&mut self, node: NodeId) -> Option<Grant> {
        debug_assert_eq!((self.inside, self.waiting.front()), (None, Some(&node)));
        self.waiting.pop_front();
        self.inside = Some(node);
        let client = self.clients.get_mut(&node)?;
        client.phase = Phase::Inside;
        client.id.map(|id| Grant { node, id })
    }
}

/// How often each process has been served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    each: BTreeMap<ProcessId, u64>,
    others: u64,
}

impl Served {
    fn count(&mut self, id: ProcessId) {
        if let Some(entries) = self.each.get_mut(&id) {
            *entries += 1;
        } else if self.each.len() < COUNTED {
            self.each.insert(id, 1);
        } else {
            self.others += 1;
        }
    }

    /// Every process that has been inside, in order, with its entries.
    pub fn each(&self) -> impl ExactSizeIterator<Item = (ProcessId, u64)> {
        self.each.iter().map(|(&id, &entries)| (id, entries))
    }

    /// The entries of those that came after the first [`COUNTED`] processes.
    pub fn others(&self) -> u64 {
        self.others
    }
}

/// Why a message is answered by closing the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It waits already.
    #[error("a second REQUEST while it waits")]
    AlreadyWaiting,
    /// It is inside already.
    #[error("a REQUEST while it is inside; send RELEASE first")]
    AlreadyInside,
    /// It is not inside.
    #[error("a RELEASE while it is not inside; send REQUEST and wait for GRANT first")]
    NotInside,
    /// Only the coordinator grants.
    #[error("a GRANT, which only the coordinator sends")]
    NotTheCoordinator,
    /// This connection was for another process before.
    #[error("another id than before, {0}; a connection is for one process")]
    OtherName(ProcessId),
    /// Another connection is for this process.
    #[error("another process with the id {0} is connected; ids are unique")]
    NameTaken(ProcessId),
    /// There is no such client.
    #[error("a message from a connection that is not open")]
    NotConnected,
}

#[cfg(test)]
mod tests;
