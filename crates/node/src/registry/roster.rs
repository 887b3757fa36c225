//! Who belongs to the group, as an operator changes it.

use catraca_client::protocol::RosterChange;
use catraca_group::registry::{Guard, Txn};
use catraca_group::{MOST_MEMBERS, Roster};

use crate::config::check_member;
use crate::engine::Engine;
use crate::mutex::hold;

/// Others may change it at the same time; after so many tries it is given up.
const MOST_TRIES: usize = 10;

/// Changes who belongs to the group. An error says why not.
pub(crate) async fn change_roster(engine: &Engine, change: RosterChange) -> Result<(), String> {
    let Some(registry) = hold(&engine.registry).clone() else {
        return Err("the registry is not open yet; try again".to_string());
    };
    if let RosterChange::Add(member) = &change {
        check_member(member).map_err(|error| error.to_string())?;
    }
    for _ in 0..MOST_TRIES {
        let answer = registry.txn(Txn::read()).await.map_err(|trouble| trouble.to_string())?;
        let Some((at, roster)) = Roster::of(&answer) else {
            return Err("the group has not begun yet; try again when it has".to_string());
        };
        let Some(changed) = apply(&roster, &change)? else { return Ok(()) };
        let key = Roster::KEY.to_string();
        let txn = Txn::default().given(Guard::At(key.clone(), at)).put(key, changed.encoded());
        // An unknown outcome is looked at by reading again.
        if registry.txn(txn).await.is_ok_and(|answer| answer.applied) {
            return Ok(());
        }
    }
    Err("others change the members at the same time, or the registry does not answer; try again"
        .into())
}

/// The roster after a change; nothing if that is how it is already.
fn apply(roster: &Roster, change: &RosterChange) -> Result<Option<Roster>, String> {
    let changed = match change {
        RosterChange::Add(member) => {
            if let Some(other) = roster
                .members
                .iter()
                .find(|it| it.address == member.address && it.name != member.name)
            {
                return Err(format!("member '{}' has this address already", other.name));
            }
            roster.with(member)
        }
        RosterChange::Remove(name) if !roster.has(name) => {
            return Err(format!("there is no member '{name}'"));
        }
        RosterChange::Remove(name) => roster.without(name),
    };
    if changed.members.is_empty() {
        return Err("a group needs at least one member".to_string());
    }
    if changed.members.len() > MOST_MEMBERS {
        return Err(format!("a group has at most {MOST_MEMBERS} members"));
    }
    Ok((changed != *roster).then_some(changed))
}

#[cfg(test)]
mod tests {
    use catraca_group::Member;

    use super::*;

    fn member(name: &str, port: u16) -> Member {
        Member { name: name.to_string(), address: format!("h:{port}"), cluster: None }
    }

    #[test]
    fn members_are_added_moved_and_removed_and_the_last_one_stays() {
        let roster = Roster { members: vec![member("a", 1)] };
        let add = |name, port| RosterChange::Add(member(name, port));
        assert_eq!(apply(&roster, &add("a", 1)), Ok(None), "nothing changes");
        let both = apply(&roster, &add("b", 2)).unwrap().unwrap();
        assert_eq!(both.members, [member("a", 1), member("b", 2)]);
        let moved = apply(&both, &add("b", 3)).unwrap().unwrap();
        assert_eq!(moved.members[1].address, "h:3");
        assert!(apply(&both, &add("c", 2)).unwrap_err().contains("'b' has this address"));
        let remove = |name: &str| RosterChange::Remove(name.to_string());
        assert_eq!(apply(&both, &remove("b")), Ok(Some(roster.clone())));
        assert!(apply(&roster, &remove("b")).unwrap_err().contains("no member 'b'"));
        assert!(apply(&roster, &remove("a")).unwrap_err().contains("at least one"));
    }
}
