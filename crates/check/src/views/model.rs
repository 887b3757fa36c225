//! The group that changes as a [`stateright::Model`].

use stateright::{Model, Property};

use super::property;
use super::setting::Setting;
use super::world::{Action, World};
use crate::search::Lasting;

/// Members, their registry, their clients, and the network between them.
pub struct ViewModel {
    pub(super) setting: Setting,
    /// Every name that is asked for.
    pub(super) names: Vec<String>,
    /// The places of the names that each client asks for, in the order of asking.
    pub(super) wanted: Vec<Vec<usize>>,
    /// Whether somebody asks for several names, or two clients for different ones.
    pub(super) has_sets: bool,
}

impl ViewModel {
    /// The group that `setting` describes.
    pub fn new(setting: Setting) -> Self {
        let mut names: Vec<String> = setting.names.iter().flatten().cloned().collect();
        names.sort_unstable();
        names.dedup();
        let place = |name: &String| names.binary_search(name).ok();
        let wanted = (0..setting.members * setting.clients)
            .map(|client| setting.names_of(client).iter().filter_map(place).collect())
            .collect();
        let has_sets = names.len() > 1 || setting.knows_sets();
        ViewModel { setting, names, wanted, has_sets }
    }
}

impl Model for ViewModel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        world.actions(self, actions);
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

impl Lasting for ViewModel {
    type Deed = Action;

    /// Whoever is inside leaves some time, or doubts; until then a run is not yet as it will be for
    /// ever.
    fn can_last(&self, world: &World) -> bool {
        world.waiting().next().is_some() && world.inside().next().is_none()
    }

    /// Nobody has to ask, to fail or to be there again. Everything else happens some time if it stays
    /// possible.
    fn deed(&self, _: &World, action: &Action) -> Option<Action> {
        match action {
            Action::Deliver(..)
            | Action::Commit(_)
            | Action::Answer(_)
            | Action::Hear(_)
            | Action::Wake(_)
            | Action::Pass => Some(*action),
            Action::Ask(_) | Action::Leave(_) | Action::Fail(_) | Action::Recover(_) => None,
        }
    }
}
