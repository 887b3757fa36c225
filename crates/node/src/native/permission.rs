//! What a client has to be allowed for each thing that it asks for.

use catraca_client::protocol::ClientMessage;
use catraca_group::{AcquireDurable, Target, Unlock};

use crate::access::{Denied, Identity, Role};

/// Whether `identity` may ask for this.
pub(super) fn check(identity: &Identity, message: &ClientMessage) -> Result<(), Denied> {
    match message {
        ClientMessage::List(_) | ClientMessage::Status | ClientMessage::Describe => {
            identity.may(Role::Observe, [])
        }
        ClientMessage::Open { .. } | ClientMessage::Resume { .. } | ClientMessage::Renew => {
            identity.may(Role::Lock, [])
        }
        ClientMessage::Acquire { names, .. } => {
            identity.may(Role::Lock, names.iter().map(String::as_str))
        }
        // Whoever gives something back need not be asked.
        ClientMessage::Release { .. } | ClientMessage::Close => Ok(()),
        ClientMessage::AcquireDurable { asked, .. } => {
            identity.may(Role::Lock, asked.names.iter().map(String::as_str))?;
            identity.may_own(&asked.owner)
        }
        ClientMessage::Unlock { unlock, .. } => may_unlock(identity, unlock),
        ClientMessage::ForceRelease { name, .. } => identity.may(Role::Administer, [name.as_str()]),
        // A member serves every name.
        ClientMessage::Kick { .. } | ClientMessage::ChangeRoster(_) | ClientMessage::Leave => {
            identity.may_change_group()
        }
    }
}

fn may_unlock(identity: &Identity, unlock: &Unlock) -> Result<(), Denied> {
    let role = if unlock.owner.is_some() { Role::Lock } else { Role::Administer };
    match (&unlock.target, &unlock.owner) {
        (Target::Name(name), _) => identity.may(role, [name.as_str()])?,
        (Target::Id(_), Some(_)) => identity.may(role, [])?,
        // Whose names it has is not known yet.
        (Target::Id(_), None) => identity.may_everywhere(role)?,
    }
    unlock.owner.as_ref().map_or(Ok(()), |owner| identity.may_own(owner))
}

/// An owner that is not given is whoever asks; and whoever administers is who it has proven to be.
pub(super) fn fill_in_owner(identity: &Identity, message: &mut ClientMessage) {
    let owner = match message {
        ClientMessage::ForceRelease { by, .. } | ClientMessage::Kick { by, .. } => {
            if let Some(name) = identity.proven_name() {
                *by = name.to_string();
            }
            return;
        }
        ClientMessage::AcquireDurable { asked: AcquireDurable { owner, .. }, .. } => owner,
        ClientMessage::Unlock { unlock: Unlock { owner: Some(owner), .. }, .. } => owner,
        _ => return,
    };
    if owner.is_empty()
        && let Some(name) = identity.proven_name()
    {
        owner.push_str(name);
    }
}
