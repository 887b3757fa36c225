//! How the first world comes about: the members join one after the other, with nothing in their way.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use catraca_group::Time;
use catraca_group::registry::{Revision, Store};

use super::{Action, Client, Phase, Sites, World};
use crate::views::model::ViewModel;

/// When it begins: not at the beginning of time, which members take for 'never'.
const BEGINNING: Time = Time(1_000_000_000_000);

impl World {
    /// The group that the setting describes, in which every member has joined and has heard the last
    /// beat of every other just now.
    pub(in crate::views) fn new(model: &ViewModel) -> Self {
        let setting = &model.setting;
        let client = |place| Client {
            phase: Phase::Idle,
            remaining: if setting.asks(place) { setting.requests } else { 0 },
            owner: None,
        };
        let mut world = World {
            sites: Sites::empty(setting.members),
            store: Arc::new(Store::default()),
            view_at: Revision(0),
            now: BEGINNING,
            steps: 0,
            idle_steps: 0,
            channels: BTreeMap::new(),
            clients: (0..setting.members * setting.clients).map(client).collect(),
            fences: vec![Vec::new(); model.names.len()],
            failure: None,
            failed: None,
            // Time stands still until something fails.
            is_resolved: true,
            fault: None,
            due: VecDeque::new(),
            is_connecting: false,
        };
        for place in 0..setting.members {
            world.start(model, place, 1, &mut |_| {});
            world.calm(model);
        }
        world.pass_once(model, &mut |_| {});
        for place in 0..setting.members {
            let news = world.news();
            world.step(model, place, news, &mut |_| {});
            world.calm(model);
        }
        if setting.begins_inside {
            world.take(model, Action::Ask(0), &mut |_| {});
            world.calm(model);
        }
        (world.steps, world.idle_steps) = (0, 0);
        (world.failure, world.is_resolved) = (Some(setting.failure), false);
        world.sites.hash_touched();
        world
    }

    /// Lets everything happen that is on its way, in a fixed order.
    fn calm(&mut self, model: &ViewModel) {
        self.settle(model, &mut |_| {});
        let mut actions = Vec::new();
        loop {
            actions.clear();
            self.actions(model, &mut actions);
            let is_client = |action: &Action| matches!(action, Action::Ask(_) | Action::Leave(_));
            let Some(&action) = actions.iter().find(|action| !is_client(action)) else { return };
            self.take(model, action, &mut |_| {});
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::setting::{Failure, Kind, Setting};

    #[test]
    fn everybody_is_in_the_first_view_and_has_heard_everybody() {
        let setting = Setting::new("naimi-trehel", Failure::of_any(Kind::Crash));
        let world = World::new(&ViewModel::new(setting));
        let mut epochs = Vec::new();
        for (place, member) in world.members() {
            let membership = member.service().membership().unwrap();
            epochs.push(membership.active().unwrap());
            assert!(membership.valid_until() > world.now);
            for name in ["A", "B", "C"] {
                let age = membership.beat_age(name, world.now).unwrap();
                assert!(age.is_zero(), "{place} has heard {name} {age:?} ago");
            }
            assert_eq!(member.service().view().members.len(), 3);
        }
        assert_eq!(epochs.len(), 3);
        assert!(epochs.windows(2).all(|pair| pair[0] == pair[1]));
        assert!(world.is_still() && world.fault().is_none());
    }
}
