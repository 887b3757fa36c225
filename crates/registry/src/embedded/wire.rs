//! What voters say to each other, and what they write down.

use std::io::Cursor;

use openraft::error::SnapshotMismatch;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::{BasicNode, TokioRuntime};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Answer, Revision, Trouble, Txn, Word};

/// The longest request or reply, in bytes. The longest transaction has 4 MiB of values.
pub const LONGEST_MESSAGE: usize = 16 << 20;
/// The largest snapshot that is received, in bytes.
pub(super) const LARGEST_SNAPSHOT: u64 = 256 << 20;
/// What a request begins with. Whoever speaks otherwise is not understood, and told so.
const VERSION: u8 = 1;

/// A voter, whoever is behind its name. One that lost its disk comes back as another.
pub(super) type Id = u64;

/// Several transactions that are one entry of the log: one flush for all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Batch(pub(super) Vec<Txn>);

openraft::declare_raft_types!(
    /// What openraft is about here. A node's address is the name of its member.
    pub(super) Types:
        D = Batch,
        R = Vec<Answer>,
        NodeId = Id,
        Node = BasicNode,
        Entry = openraft::Entry<Types>,
        SnapshotData = Cursor<Vec<u8>>,
        AsyncRuntime = TokioRuntime,
);

/// What is asked. Raft's own questions name the voter that they are meant for: under its name
/// there may be another by now, which has not promised what the first has.
#[derive(Serialize, Deserialize)]
pub(super) enum Request {
    Append { to: Id, rpc: AppendEntriesRequest<Types> },
    Vote { to: Id, rpc: VoteRequest<Id> },
    Snapshot { to: Id, rpc: InstallSnapshotRequest<Types> },
    Txn { txn: Txn, within_ms: u32 },
    Changes { after: Revision },
    ChangeVoters { names: Vec<String> },
    Who,
}

/// What is answered.
#[derive(Serialize, Deserialize)]
pub(super) enum Reply {
    Append(AppendEntriesResponse<Id>),
    Vote(VoteResponse<Id>),
    Snapshot(InstallSnapshotResponse<Id>),
    /// The parts of a snapshot did not come in order: again from the first.
    Restart(SnapshotMismatch),
    /// To a candidate: the group has gone on without it.
    Gone,
    Answered(Result<Answer, Trouble>),
    /// Somebody else leads, and who, if that is known. Nothing was done.
    NotLeader(Option<String>),
    Changes(Vec<Word>),
    Changed(Result<(), Trouble>),
    Me {
        id: Id,
        is_formed: bool,
    },
    Failed(String),
}

/// Why something cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error("a message of {0} bytes is too long")]
    TooLong(usize),
    #[error("this is version {0} of the protocol, and version {VERSION} is spoken here")]
    Version(u8),
    #[error("this member is not in the group '{0}'")]
    Group(String),
    #[error("a message cannot be understood")]
    Garbled,
}

pub(super) fn encode<T: Serialize>(what: &T) -> Result<Vec<u8>, WireError> {
    postcard::to_stdvec(what).map_err(|_| WireError::Garbled)
}

/// Reads all of the bytes; none may be left.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    match postcard::take_from_bytes(bytes) {
        Ok((what, [])) => Ok(what),
        _ => Err(WireError::Garbled),
    }
}

fn within_limit(bytes: Vec<u8>) -> Result<Vec<u8>, WireError> {
    if bytes.len() > LONGEST_MESSAGE {
        return Err(WireError::TooLong(bytes.len()));
    }
    Ok(bytes)
}

pub(super) fn encode_request(group: &str, request: &Request) -> Result<Vec<u8>, WireError> {
    let mut bytes = vec![VERSION];
    bytes.extend(encode(&(group, request))?);
    within_limit(bytes)
}

pub(super) fn decode_request(group: &str, bytes: &[u8]) -> Result<Request, WireError> {
    if bytes.len() > LONGEST_MESSAGE {
        return Err(WireError::TooLong(bytes.len()));
    }
    let (version, rest) = bytes.split_first().ok_or(WireError::Garbled)?;
    if *version != VERSION {
        return Err(WireError::Version(*version));
    }
    // The group first: nothing of another group is looked at.
    let (theirs, rest) =
        postcard::take_from_bytes::<String>(rest).map_err(|_| WireError::Garbled)?;
    if theirs != group {
        return Err(WireError::Group(theirs));
    }
    decode(rest)
}

pub(super) fn encode_reply(reply: &Reply) -> Vec<u8> {
    let failed = |error: &WireError| Reply::Failed(error.to_string());
    let bytes = encode(reply).and_then(within_limit);
    bytes.or_else(|error| encode(&failed(&error))).unwrap_or_default()
}

pub(super) fn decode_reply(bytes: &[u8]) -> Result<Reply, WireError> {
    if bytes.len() > LONGEST_MESSAGE {
        return Err(WireError::TooLong(bytes.len()));
    }
    decode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_request_of_this_group_is_not_understood() {
        let good = encode_request("green", &Request::Who).unwrap();
        assert!(matches!(decode_request("green", &good), Ok(Request::Who)));
        assert!(matches!(decode_request("red", &good), Err(WireError::Group(_))));
        for cut in 0..good.len() {
            assert!(decode_request("green", &good[..cut]).is_err());
        }
        let longer = [good.as_slice(), &[0]].concat();
        assert!(matches!(decode_request("green", &longer), Err(WireError::Garbled)));
        let newer = [&[2], &good[1..]].concat();
        assert!(matches!(decode_request("green", &newer), Err(WireError::Version(2))));
        let huge = vec![VERSION; LONGEST_MESSAGE + 1];
        assert!(matches!(decode_request("green", &huge), Err(WireError::TooLong(_))));
    }

    #[test]
    fn any_bytes_at_all_are_an_error_and_not_a_panic() {
        let mut seed = 7_u64;
        for length in 0..2_000 {
            let mut bytes = encode_request("g", &Request::Who).unwrap();
            bytes.truncate(3);
            for _ in 0..length % 64 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                bytes.push((seed >> 56) as u8 % 16);
            }
            drop(decode_request("g", &bytes));
            drop(decode_reply(&bytes));
        }
    }

    #[test]
    fn a_reply_that_is_too_long_becomes_a_word_about_it() {
        let long = Reply::Failed("x".repeat(LONGEST_MESSAGE));
        let reply = decode_reply(&encode_reply(&long)).unwrap();
        assert!(matches!(reply, Reply::Failed(why) if why.contains("too long")));
    }
}
