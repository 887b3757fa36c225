//! The group of members as a [`stateright::Model`].

use catraca_group::Timer;
use stateright::{Model, Property};

use super::property;
use super::setting::Setting;
use super::world::{Action, Phase, World};
use crate::search::Lasting;

/// Members, their clients, and the network between them.
pub struct MemberModel {
    pub(super) setting: Setting,
    /// Every name that is asked for.
    pub(super) names: Vec<String>,
    /// The places of the names that each client asks for, in the order of asking.
    pub(super) wanted: Vec<Vec<usize>>,
    /// Whether somebody asks for several names, or two clients for different ones.
    pub(super) has_sets: bool,
    /// Whether sets are asked for whole.
    pub(super) knows_sets: bool,
}

impl MemberModel {
    /// The group that `setting` describes.
    pub fn new(setting: Setting) -> Self {
        let mut names: Vec<String> = setting.names.iter().flatten().cloned().collect();
        names.sort_unstable();
        names.dedup();
        let place = |name: &String| names.binary_search(name).ok();
        let wanted = (0..setting.members * setting.clients)
            .map(|client| setting.names_of(client).iter().filter_map(place).collect())
            .collect();
        let (has_sets, knows_sets) = (names.len() > 1, setting.knows_sets());
        MemberModel { setting, names, wanted, has_sets, knows_sets }
    }

    /// Whether a client that waits may hold a part of what it asks for.
    pub(super) fn has_parts(&self) -> bool {
        self.has_sets && !self.knows_sets
    }
}

impl Model for MemberModel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.setting, self.names.len())]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        world.actions(actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.take(self, action, &mut |_| {});
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        property::all()
    }
}

/// What has to happen some time if it stays possible: the first message of a channel arrives, a timer
/// runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deed {
    /// From one member to another.
    Channel(usize, usize),
    /// Of a member.
    Timer(usize, Timer),
}

impl Lasting for MemberModel {
    type Deed = Deed;

    /// Requests, cancellations and new views are limited, so they happen in no cycle. Whoever is inside
    /// leaves some time; until then a run is not yet as it will be for ever.
    fn can_last(&self, world: &World) -> bool {
        let phases = || world.clients().iter().map(|client| &client.phase);
        phases().any(|phase| matches!(phase, Phase::Waiting))
            && !phases().any(|phase| matches!(phase, Phase::Inside(_)))
    }

    fn deed(&self, _: &World, action: &Action) -> Option<Deed> {
        match *action {
            Action::Deliver(from, to) => Some(Deed::Channel(from, to)),
            Action::Fire(member, timer) => Some(Deed::Timer(member, timer)),
            Action::Ask(_) | Action::Cancel(_) | Action::Leave(_) | Action::ChangeView => None,
        }
    }
}
