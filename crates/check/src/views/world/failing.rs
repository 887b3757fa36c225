//! Time that passes, members that fail, and members that are there again.

use std::collections::BTreeMap;
use std::sync::Arc;

use catraca_group::{Input, Time};

use super::{Cut, Effect, FREE_STEPS, Pending, Phase, World};
use crate::views::model::ViewModel;
use crate::views::setting::{Kind, STEP, Setting};
use crate::views::world::stepping::Tell;

/// Runs that are started again are numbered from here on, so that no other run has the number.
const LATER_RUNS: u64 = 1000;

impl World {
    /// Time passes until something follows that is more than another beat.
    ///
    /// While a member that crashed is in the view, nothing else does: then time passes until its lease
    /// has run out. Of a member that is paused or cut off it matters when it is there again.
    pub(super) fn pass(&mut self, model: &ViewModel, tell: Tell<'_>) {
        let is_free = self.steps < FREE_STEPS && !self.is_resolved;
        let leaps = matches!(model.setting.failure.kind, Kind::Crash | Kind::Restart);
        let mut happens = false;
        loop {
            match is_free {
                true => self.steps += 1,
                false => self.idle_steps += 1,
            }
            self.pass_once(model, &mut |effect| {
                happens = true;
                tell(effect);
            });
            if !is_free || !leaps || happens || self.steps >= FREE_STEPS {
                return;
            }
        }
    }

    /// A step of time: whoever trusted for long enough doubts, and members do what is due.
    pub(super) fn pass_once(&mut self, model: &ViewModel, tell: Tell<'_>) {
        self.now = self.now + STEP;
        for place in 0..self.clients.len() {
            let client = &mut self.clients[place];
            if let Phase::Inside(_, until) = client.phase
                && until <= self.now
            {
                tell(Effect::Doubts(place));
                (client.phase, client.owner) = (Phase::Idle, None);
                self.forget_gone(&model.setting, place);
            }
        }
        for place in 0..self.sites.len() {
            if self.sites[place].runs() {
                self.wake(model, place, tell);
            }
        }
    }

    /// Clients of a member that does not come back ask no more.
    fn forget_gone(&mut self, setting: &Setting, client: usize) {
        let is_there = self.sites[setting.member_of(client)].member.is_some();
        if !is_there && !matches!(setting.failure.kind, Kind::Restart) {
            self.clients[client].phase = Phase::Gone;
        }
    }

    /// A member fails.
    pub(super) fn fail(&mut self, place: usize) {
        let Some(failure) = self.failure.take() else { return };
        if failure.kind != Kind::Crash {
            self.failed = Some((failure.kind, place));
        }
        match failure.kind {
            Kind::Crash | Kind::Restart => self.end(place),
            Kind::Pause => self.sites[place].is_paused = true,
            Kind::Cut => self.sites[place].cut = Cut::AfterOneBeat,
        }
    }

    /// The process of a member ends. What it has sent is still on its way.
    fn end(&mut self, place: usize) {
        let may_return = self.failed.is_some();
        let site = &mut self.sites[place];
        (site.member, site.view, site.timers) = (None, None, BTreeMap::new());
        site.valid_until = Time(0);
        site.wanted.clear();
        site.up.clear();
        site.has_news = false;
        site.pending.retain(|pending| matches!(pending, Pending::Sent(..)));
        for pending in &mut site.pending {
            if let Pending::Sent(number, _) = pending {
                *number = None;
            }
        }
        self.channels.retain(|&(_, to), _| to != place);
        self.is_connecting = true;
        let per_member = self.clients.len() / self.sites.len();
        for client in &mut self.clients[place * per_member..(place + 1) * per_member] {
            client.owner = None;
            match client.phase {
                // Whoever is inside trusts what it was told for a while.
                Phase::Inside(..) => {}
                Phase::Idle if may_return => {}
                _ => client.phase = Phase::Gone,
            }
        }
    }

    /// A member is there again.
    pub(super) fn recover(&mut self, model: &ViewModel, place: usize, tell: Tell<'_>) {
        let Some((kind, _)) = self.failed.take() else { return };
        // Whoever waits there has not waited for long.
        self.idle_steps = 0;
        match kind {
            Kind::Crash => {}
            Kind::Restart => self.start(model, place, LATER_RUNS, tell),
            Kind::Pause => {
                self.sites[place].is_paused = false;
                self.is_connecting = true;
            }
            Kind::Cut => self.sites[place].cut = Cut::No,
        }
    }

    /// A member is started.
    pub(super) fn start(
        &mut self,
        model: &ViewModel,
        place: usize,
        incarnation: u64,
        tell: Tell<'_>,
    ) {
        let member = model.setting.member(place, incarnation, self.now);
        let site = &mut self.sites[place];
        site.view = Some(Arc::clone(member.service().view()));
        (site.member, site.incarnation) = (Some(Arc::new(member)), incarnation);
        self.step(model, place, Input::Begin, tell);
    }
}
