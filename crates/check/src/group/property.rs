//! What has to hold in every world.

use catraca_core::Fence;
pub use catraca_core::property::{
    FENCES_INCREASE, FENCES_UNIQUE, MUTUAL_EXCLUSION, NO_ANOMALY, NOBODY_WAITS_FOR_EVER,
};
use catraca_group::{HeldLock, Hold, unpack_fence};
use stateright::Property;

use super::model::MemberModel;
use super::setting::member_name;
use super::words::{client_name, client_names};
use super::world::{Fault, Phase, World};

/// Whoever was told so is inside by the table of its member, and nobody else.
pub const MEMBER_AND_CLIENTS_AGREE: &str = "member and clients agree";
/// Nobody is let in who does not wait: not before asking, and not after giving up.
pub const ONLY_WAITERS_ENTER: &str = "only who waits enters";
/// Clients of one member that ask for the same are served in the order of asking.
pub const FIRST_COME_FIRST_SERVED: &str = "first come, first served";
/// A turn of a member serves no more than so many for each client that was there when it began.
pub const TURNS_FOLLOW_QUEUES: &str = "turns are as long as their queues";
/// In one turn of a member a lock is handed over at most so often.
pub const HANDOVERS_ARE_BOUNDED: &str = "hand-overs are bounded";
/// A fence is epoch, number and hand-overs, in this order, and not negative.
pub const FENCES_ARE_PACKED: &str = "fences are packed in order";
/// When nobody wants anything any more, no member holds, awaits or has set anything.
pub const NOTHING_IS_LEFT: &str = "nothing is left behind";
/// Nothing follows from messages of an earlier view.
pub const OLD_MESSAGES_ARE_IGNORED: &str = "old messages are ignored";

/// All properties, the most telling first.
pub(super) fn all() -> Vec<Property<MemberModel>> {
    macro_rules! always {
        ($($name:ident),*) => {
            vec![$(Property::always($name, |model, world| explain($name, model, world).is_ok())),*]
        };
    }
    always![
        MUTUAL_EXCLUSION,
        NOBODY_WAITS_FOR_EVER,
        FENCES_INCREASE,
        FENCES_UNIQUE,
        FENCES_ARE_PACKED,
        HANDOVERS_ARE_BOUNDED,
        FIRST_COME_FIRST_SERVED,
        TURNS_FOLLOW_QUEUES,
        ONLY_WAITERS_ENTER,
        MEMBER_AND_CLIENTS_AGREE,
        NOTHING_IS_LEFT,
        OLD_MESSAGES_ARE_IGNORED,
        NO_ANOMALY
    ]
}

/// Says how `world` breaks the property called `name`.
pub(super) fn explain(name: &str, model: &MemberModel, world: &World) -> Result<(), String> {
    match name {
        MUTUAL_EXCLUSION => mutual_exclusion(model, world),
        NOBODY_WAITS_FOR_EVER => nobody_waits_for_ever(model, world),
        MEMBER_AND_CLIENTS_AGREE => agreement(model, world),
        NOTHING_IS_LEFT => nothing_is_left(world),
        _ => match world.fault() {
            Some(fault) if property_of(fault) == name => Err(words(fault, model)),
            _ => Ok(()),
        },
    }
}

/// At most as many are inside each lock as may be: by what the clients were told, and by the tables
/// of the members.
fn mutual_exclusion(model: &MemberModel, world: &World) -> Result<(), String> {
    let permits = model.setting.permits as usize;
    for (place, name) in model.names.iter().enumerate() {
        let inside = || world.inside().filter(|&client| model.wanted[client].contains(&place));
        if inside().count() > permits {
            let who = client_names(model, inside());
            return Err(format!("{who} inside {name} at the same time"));
        }
    }
    let held: Vec<HeldLock> = world.members().flat_map(|(_, member)| member.held()).collect();
    for (count, lock) in held.iter().enumerate() {
        let shares =
            |other: &&HeldLock| other.name == lock.name && other.claim.overlaps(&lock.claim);
        if held[..count].iter().filter(shares).count() >= permits {
            return Err(format!(
                "{} has let in more than may be inside {}",
                lock.member, lock.name
            ));
        }
    }
    Ok(())
}

/// Somebody waits, nothing is on its way, and nobody who is inside is in anybody's way.
///
/// Where sets are asked for, anybody who is inside may be in the way: a set that was asked for on behalf
/// of somebody who has given up cannot be taken back, and others wait behind it.
fn nobody_waits_for_ever(model: &MemberModel, world: &World) -> Result<(), String> {
    if !world.is_quiet() || world.waiting().next().is_none() {
        return Ok(());
    }
    let permits = if model.has_sets { 1 } else { model.setting.permits as usize };
    if world.inside().count() >= permits {
        return Ok(());
    }
    let who = client_names(model, world.waiting());
    Err(format!("{who} waiting, nobody is in the way, and nothing is on its way"))
}

/// What members have in their tables of holds is what their clients were told.
fn agreement(model: &MemberModel, world: &World) -> Result<(), String> {
    for (place, member) in world.members() {
        let mut holds = 0;
        for Hold { owner, fences, .. } in member.service().holds() {
            holds += 1;
            let client = model.setting.client_of(place, owner);
            let was_told = client.is_some_and(|client| match &world.clients()[client].phase {
                Phase::Inside(told) => told.iter().map(|fence| fence.0).eq(fences),
                _ => false,
            });
            if !was_told {
                let who = client.map_or("nobody".into(), |client| client_name(model, client));
                return Err(format!(
                    "{who} is inside by the table of {}, and was not told so",
                    member_name(place)
                ));
            }
        }
        let told = world.inside().filter(|&client| model.setting.member_of(client) == place);
        let (told, held) = (told.count(), member.held().len());
        let most = if model.has_parts() { usize::MAX } else { told };
        if told != holds || held < told || held > most {
            return Err(format!(
                "{told} clients of {} were told that they are inside; {holds} have requests that are held, and {held} seats are taken",
                member_name(place)
            ));
        }
    }
    Ok(())
}

/// Nobody is inside or waits, nothing is on its way, and a member is not at rest.
fn nothing_is_left(world: &World) -> Result<(), String> {
    let is_over =
        world.is_quiet() && world.waiting().next().is_none() && world.inside().next().is_none();
    if !is_over {
        return Ok(());
    }
    if world.has_patience() {
        return Err("patience is set for a request that is over".to_string());
    }
    match world.members().find(|(_, member)| !member.is_at_rest()) {
        None => Ok(()),
        Some((place, _)) => Err(format!(
            "nobody wants anything any more, and {} is not at rest",
            member_name(place)
        )),
    }
}

fn property_of(fault: &Fault) -> &'static str {
    match fault {
        Fault::NotWaiting(_) => ONLY_WAITERS_ENTER,
        Fault::Overtaken { .. } => FIRST_COME_FIRST_SERVED,
        Fault::LongTurn { .. } => TURNS_FOLLOW_QUEUES,
        Fault::FenceOrder { .. } => FENCES_INCREASE,
        Fault::FenceTwice(..) => FENCES_UNIQUE,
        Fault::FenceParts(..) => FENCES_ARE_PACKED,
        Fault::TooManyHandovers(_) => HANDOVERS_ARE_BOUNDED,
        Fault::OldMessage(_) => OLD_MESSAGES_ARE_IGNORED,
        Fault::Refused(..) | Fault::Anomaly(..) => NO_ANOMALY,
    }
}

fn words(fault: &Fault, model: &MemberModel) -> String {
    let client = |client: usize| client_name(model, client);
    match fault {
        Fault::NotWaiting(who) => format!("{} is let in, and does not wait", client(*who)),
        Fault::Overtaken { first, granted } => {
            format!("{} came before {}, and is not served first", client(*first), client(*granted))
        }
        Fault::LongTurn { fence, handovers } => format!(
            "fence {}: the lock was handed over more than {handovers} times in a turn that began with so few",
            fence_words(*fence)
        ),
        Fault::FenceOrder { name, last, granted } => format!(
            "{}: fence {} comes after fence {}",
            model.names[*name],
            fence_words(*granted),
            fence_words(*last)
        ),
        Fault::FenceTwice(name, fence) => {
            format!(
                "{}: fence {} comes for the second time",
                model.names[*name],
                fence_words(*fence)
            )
        }
        Fault::FenceParts(fence, what) => format!("fence {} {what}", fence_words(*fence)),
        Fault::TooManyHandovers(fence) => format!(
            "fence {}: the lock was handed over more than {} times",
            fence_words(*fence),
            model.setting.turns.handovers
        ),
        Fault::OldMessage(member) => {
            format!("{} listens to a message of an earlier view", member_name(*member))
        }
        Fault::Refused(who, why) => format!("{} is refused: {why}", client(*who)),
        Fault::Anomaly(member, what) => format!("{}: {what}", member_name(*member)),
    }
}

/// A fence by its parts: epoch, number and hand-overs.
pub(crate) fn fence_words(fence: Fence) -> String {
    let (epoch, number, handovers) = unpack_fence(fence);
    format!("{epoch}.{number}.{handovers}")
}
