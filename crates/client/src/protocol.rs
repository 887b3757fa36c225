//! What a client and a node say to each other.
//!
//! A connection begins with the handshake of [`crate::handshake`]; then frames go both ways, each one
//! message of these types.

use std::time::Duration;

pub use catraca_group::Over;
use catraca_group::{
    AcquireDurable, DurableHold, Member, Namespace, Page, Query, Refusal, SessionId, Status,
    Unlock, Wait, Who,
};
use serde::{Deserialize, Serialize};

/// From a client to its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientMessage {
    /// Opens a session. Without a time to live it ends with the connection; with one it ends that
    /// long after the last renewal.
    Open {
        /// Who the client is.
        who: Who,
        /// The time to live.
        ttl: Option<Duration>,
    },
    /// Goes on with a session after its connection broke.
    Resume {
        /// The session.
        session: SessionId,
    },
    /// Renews the session's time to live.
    Renew,
    /// Asks for locks. The client numbers its requests; asking again under the same number, after a
    /// connection broke, asks for nothing new.
    Acquire {
        /// The client's number for the request.
        request: u32,
        /// The locks.
        names: Vec<String>,
        /// How many may hold each at a time.
        permits: u32,
        /// How long to wait.
        wait: Wait,
    },
    /// Takes a request back, or releases what it was granted.
    Release {
        /// The request.
        request: u32,
    },
    /// Ends the session: everything that it held is free when [`ServerMessage::Over`] comes.
    Close,
    /// Asks for a page of who holds and who waits.
    List(Query),
    /// Asks how the node and its links are doing.
    Status,
    /// Asks for a durable hold. If the connection ends before it is granted, it is not wanted any more.
    AcquireDurable {
        /// The client's number for the request.
        request: u32,
        /// What is asked for.
        asked: AcquireDurable,
    },
    /// Releases a durable hold.
    Unlock {
        /// The client's number for the request.
        request: u32,
        /// Which one, and who says so.
        unlock: Unlock,
    },
    /// Asks what the group is, for a node that wants to join it.
    Describe,
    /// Changes who belongs to the group.
    ChangeRoster(RosterChange),
    /// The node is to leave its group for ever, and to stop.
    Leave,
    /// Ends whatever holds a lock, at whichever member.
    ForceRelease {
        /// The lock.
        name: String,
        /// The holds that are meant, by their fences; whoever holds it now, if there are none.
        fences: Vec<u64>,
        /// Who says so, as far as the node does not know better.
        by: String,
    },
    /// A member is to leave the view at once, and to stop.
    Kick {
        /// The member.
        member: String,
        /// Who says so, as far as the node does not know better.
        by: String,
    },
}

/// A change of who belongs to a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RosterChange {
    /// One more member, or another address of one.
    Add(Member),
    /// One less. If it is in the group, it is out when its lease is over.
    Remove(String),
}

/// A hold that was ended by force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForcedHold {
    /// The lock.
    pub name: String,
    /// Its fence.
    pub fence: u64,
    /// The member where it was.
    pub member: String,
    /// What its client called itself; the owner of a durable hold.
    pub label: String,
    /// Whether it was durable.
    pub is_durable: bool,
}

/// What a node that wants to join a group has to know of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The group's name.
    pub group: String,
    /// Who belongs to it.
    pub members: Vec<Member>,
    /// Which algorithm guards which names.
    pub namespaces: Vec<Namespace>,
    /// How long leases last.
    pub lease: Duration,
    /// Where it keeps its registry: whoever joins has to reach the same one.
    pub registry: RegistryKind,
}

/// Where a group keeps its registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RegistryKind {
    /// In the memory of the program that it is part of.
    Memory,
    /// Replicated among its members.
    Members,
    /// In an etcd cluster.
    Etcd,
}

/// From a node to its client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerMessage {
    /// The session is open.
    Opened {
        /// What to resume it with.
        session: SessionId,
        /// For how long, from asking, what the node grants is certain, whatever happens to the node.
        certain: Duration,
    },
    /// The session is over, and why: what it held is no longer held. Nothing follows.
    Over(Over),
    /// The session was renewed.
    Renewed {
        /// For how long, from asking, what the session holds is certain, whatever happens to the node.
        certain: Duration,
    },
    /// The client holds the locks. There is one fence for each name, in the order of asking.
    Granted {
        /// The request.
        request: u32,
        /// The fences.
        fences: Vec<u64>,
    },
    /// The client does not hold the locks, and will not by this request.
    Refused {
        /// The request; 0 where a session was asked for.
        request: u32,
        /// Why.
        why: Refusal,
    },
    /// The client is to give up what the request was granted, and to release it. Nobody else is let in
    /// before that, or before what the client was told last of its certainty is over; renewals do not
    /// prolong it any more.
    Lost {
        /// The request.
        request: u32,
        /// Why.
        why: Refusal,
    },
    /// What the request held is free.
    Released {
        /// The request.
        request: u32,
    },
    /// The answer to [`ClientMessage::List`].
    Page(Page),
    /// The answer to [`ClientMessage::Status`].
    Status(Box<Status>),
    /// What has come of a request for a durable hold, or of releasing one: the hold.
    Durable {
        /// The request.
        request: u32,
        /// The hold as it is, or was until it was released.
        result: Result<Box<DurableHold>, Refusal>,
    },
    /// The answer to [`ClientMessage::Describe`].
    Description(Box<Description>),
    /// The answer to [`ClientMessage::ForceRelease`]: what was ended, or why not all of it.
    Forced(Result<Vec<ForcedHold>, Refusal>),
    /// The answer to [`ClientMessage::ChangeRoster`], [`ClientMessage::Leave`] and [`ClientMessage::Kick`]: it
    /// is done, or why not.
    Done(Result<(), String>),
}
