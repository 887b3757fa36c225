//! The coordinator's desk: a plain value that knows who is inside and who waits.
//!
//! It steps node 0 of the `coordinator` algorithm, the same code that the simulator runs and the
//! checker explores. Every connection has a seat, and a seat is a node of that algorithm's group.
//! What seats, ids and broken connections mean is decided here; who is next is not.
//!
//! The algorithm knows no node that gives up. When a client that waits is gone, the desk starts the
//! algorithm anew with the same client inside and asks again, in the same order, for those that
//! still wait. So nothing of the departed stays, however long the one inside takes; the others
//! notice nothing. This costs a step for each who waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use catraca_algorithms::Coordinator;
use catraca_core::{Algorithm, Effect, Effects, Input, NodeId, Phase, Start};
use catraca_topology::Members;

use crate::{Kind, Message, ProcessId};

type Said = <Coordinator as Algorithm>::Message;

/// The algorithm's own node.
const DESK: NodeId = NodeId(0);

/// So many processes are counted one by one; those that come later are counted together.
pub const COUNTED: usize = 100_000;

/// The state of the whole system.
#[derive(Debug)]
pub struct Desk {
    coordinator: Coordinator,
    effects: Effects<Said>,
    /// The desk and all seats.
    group: Members,
    free: BTreeSet<NodeId>,
    seated: BTreeMap<NodeId, Client>,
    /// The seat of every process that has said its name.
    names: BTreeMap<ProcessId, NodeId>,
    inside: Option<NodeId>,
    /// In the order of arrival.
    waiting: VecDeque<NodeId>,
    served: Served,
}

/// Who has a seat.
#[derive(Clone, Copy, Debug)]
struct Client {
    /// Said with the first message.
    id: Option<ProcessId>,
    phase: Phase,
}

/// Somebody may enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Where it sits.
    pub seat: NodeId,
    /// Who it is.
    pub id: ProcessId,
}

/// Who has left its seat, and whom this lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Its name, if it has said it.
    pub id: Option<ProcessId>,
    /// What it was doing.
    pub phase: Phase,
    /// Who is next, if it was inside and somebody waits.
    pub next: Option<Grant>,
}

impl Desk {
    /// A desk with so many seats, all free.
    pub fn new(seats: u32) -> Self {
        let group = Members { nodes: seats.saturating_add(1) };
        Desk {
            coordinator: Coordinator::new(DESK, &group, &Start::idle()),
            effects: Effects::new(),
            group,
            free: NodeId::all(group.nodes).skip(1).collect(),
            seated: BTreeMap::new(),
            names: BTreeMap::new(),
            inside: None,
            waiting: VecDeque::new(),
            served: Served::default(),
        }
    }

    /// Gives a newcomer a seat, unless all are taken.
    pub fn seat(&mut self) -> Option<NodeId> {
        let seat = self.free.pop_first()?;
        self.seated.insert(seat, Client { id: None, phase: Phase::Idle });
        Some(seat)
    }

    /// Whoever sits there says this. What is refused changes nothing; its connection should be
    /// closed and [`leave`](Self::leave) called.
    pub fn receive(&mut self, seat: NodeId, message: &Message) -> Result<Option<Grant>, Refusal> {
        let client = *self.seated.get(&seat).ok_or(Refusal::NoSeat)?;
        self.check_name(seat, &client, message.id)?;
        match (message.kind, client.phase) {
            (Kind::Request, Phase::Idle) => Ok(self.request(seat, message.id)),
            (Kind::Release, Phase::Inside) => Ok(self.release(seat, message.id)),
            (Kind::Request, Phase::Waiting) => Err(Refusal::AlreadyWaiting),
            (Kind::Request, Phase::Inside) => Err(Refusal::AlreadyInside),
            (Kind::Release, _) => Err(Refusal::NotInside),
            (Kind::Grant, _) => Err(Refusal::NotTheCoordinator),
        }
    }

    /// Whoever sits there is gone: it no longer waits, and it is no longer inside.
    pub fn leave(&mut self, seat: NodeId) -> Departure {
        let Some(Client { id, phase }) = self.seated.get(&seat).copied() else {
            return Departure { id: None, phase: Phase::Idle, next: None };
        };
        let next = match (id, phase) {
            (Some(id), Phase::Inside) => self.release(seat, id),
            (_, Phase::Waiting) => {
                self.forget(seat);
                None
            }
            _ => None,
        };
        self.seated.remove(&seat);
        self.free.insert(seat);
        if let Some(id) = id {
            self.names.remove(&id);
        }
        Departure { id, phase, next }
    }

    /// Who is inside.
    pub fn inside(&self) -> Option<ProcessId> {
        self.name(self.inside?)
    }

    /// Who waits, in the order of arrival.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = Option<ProcessId>> {
        self.waiting.iter().map(|&seat| self.name(seat))
    }

    /// How often each process has been inside, and has left.
    pub fn served(&self) -> &Served {
        &self.served
    }

    fn name(&self, seat: NodeId) -> Option<ProcessId> {
        self.seated.get(&seat)?.id
    }

    /// A connection speaks for one process, and a process through one connection: in S3 the id 'é
    /// único para cada instância', and with two of one name no log could tell who was inside.
    fn check_name(&self, seat: NodeId, client: &Client, id: ProcessId) -> Result<(), Refusal> {
        if let Some(before) = client.id
            && before != id
        {
            return Err(Refusal::OtherName(before));
        }
        match self.names.get(&id) {
            Some(&other) if other != seat => Err(Refusal::NameTaken(id)),
            _ => Ok(()),
        }
    }

    fn request(&mut self, seat: NodeId, id: ProcessId) -> Option<Grant> {
        self.names.insert(id, seat);
        self.seated.insert(seat, Client { id: Some(id), phase: Phase::Waiting });
        self.waiting.push_back(seat);
        self.step(seat, Said::Request)
    }

    fn release(&mut self, seat: NodeId, id: ProcessId) -> Option<Grant> {
        self.seated.insert(seat, Client { id: Some(id), phase: Phase::Idle });
        self.inside = None;
        self.served.count(id);
        self.step(seat, Said::Release)
    }

    fn forget(&mut self, gone: NodeId) {
        self.waiting.retain(|&seat| seat != gone);
        let start = self.inside.map_or_else(Start::idle, Start::inside);
        self.coordinator = Coordinator::new(DESK, &self.group, &start);
        for place in 0..self.waiting.len() {
            let granted = self.step(self.waiting[place], Said::Request);
            debug_assert_eq!(granted, None, "somebody waits only while somebody is inside");
        }
    }

    /// One step of the algorithm. It lets at most one in.
    fn step(&mut self, from: NodeId, message: Said) -> Option<Grant> {
        let input = Input::Message { from, message };
        self.coordinator.step(&self.group, input, &mut self.effects);
        let mut granted = None;
        for effect in self.effects.drain() {
            match effect {
                Effect::Send { to, message: Said::Grant(_) } => granted = Some(to),
                other => debug_assert!(false, "the coordinator does not do {other:?}"),
            }
        }
        self.admit(granted?)
    }

    fn admit(&mut self, seat: NodeId) -> Option<Grant> {
        debug_assert_eq!((self.inside, self.waiting.front()), (None, Some(&seat)));
        self.waiting.pop_front();
        self.inside = Some(seat);
        let client = self.seated.get_mut(&seat)?;
        client.phase = Phase::Inside;
        client.id.map(|id| Grant { seat, id })
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
    /// This connection has spoken for somebody else.
    #[error("another id than before, {0}; a connection speaks for one process")]
    OtherName(ProcessId),
    /// Another connection speaks for this process.
    #[error("another process with the id {0} is connected; ids are unique")]
    NameTaken(ProcessId),
    /// Nobody sits there.
    #[error("a message from a connection that has no seat")]
    NoSeat,
}

#[cfg(test)]
mod tests;
