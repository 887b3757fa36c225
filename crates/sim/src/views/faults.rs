//! What goes wrong, drawn from the seed, and how everything heals.

use std::time::Duration;

use catraca_group::{Input, Leaving};

use super::engine::{Event, Simulation};
use crate::time::Time;

/// A strike comes when a member was lost, until there is a view without it for sure.
const STRUCK_FROM: Time = Time(4_000_000);
const STRUCK_UNTIL: Time = Time(7_500_000);

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Crash(usize),
    Start(usize),
    Leave(usize),
    Pause(usize),
    Resume(usize),
    /// Nothing passes from one member to another, or everything does again.
    Cut(usize, usize, bool),
    /// A member does not reach the registry, or does again.
    Deaf(usize, bool),
    /// The registry carries nothing out for so long.
    Stall(Time),
    /// A client and its member do not reach each other, or do again.
    CutClient(usize, bool),
}

impl Simulation<'_> {
    /// Draws everything that goes wrong.
    pub(super) fn plan_faults(&mut self) {
        let end = self.setup.faulty;
        if self.setup.strike.is_some() {
            self.plan(STRUCK_FROM, Event::Fault(Fault::Crash(self.sites.len() - 1)));
            return self.plan(end, Event::Heal);
        }
        if self.setup.one_by_one {
            self.plan_one_by_one();
            return self.plan(end, Event::Heal);
        }
        if self.setup.splits {
            self.plan_splits();
            return self.plan(end, Event::Heal);
        }
        let members = self.sites.len() as u64;
        let count = 3 + self.random.below(4 * members);
        for _ in 0..count {
            let at = Time(self.random.below(end.0));
            let site = self.random.below(members) as usize;
            let other = self.random.below(members) as usize;
            // Shorter and longer than a lease.
            let lease = self.setup.lease.ttl.as_micros() as u64;
            let span = [lease / 4, lease, 4 * lease][self.random.below(3) as usize];
            let until = at + Time(self.random.below(span) + 1000);
            match self.random.below(9) {
                0 => {
                    self.plan(at, Event::Fault(Fault::Crash(site)));
                    self.plan(until, Event::Fault(Fault::Start(site)));
                }
                1 => {
                    self.plan(at, Event::Fault(Fault::Leave(site)));
                    self.plan(until, Event::Fault(Fault::Start(site)));
                }
                2 | 3 => {
                    self.plan(at, Event::Fault(Fault::Pause(site)));
                    self.plan(until, Event::Fault(Fault::Resume(site)));
                }
                4 => self.plan_cut(at, until, site, other, true),
                5 => self.plan_cut(at, until, site, other, false),
                6 => {
                    self.plan(at, Event::Fault(Fault::Deaf(site, true)));
                    self.plan(until, Event::Fault(Fault::Deaf(site, false)));
                }
                7 => self.plan(at, Event::Fault(Fault::Stall(until))),
                _ => {
                    let client = self.random.below(self.clients.len() as u64) as usize;
                    self.plan(at, Event::Fault(Fault::CutClient(client, true)));
                    self.plan(until, Event::Fault(Fault::CutClient(client, false)));
                }
            }
        }
        self.plan(end, Event::Heal);
    }

    /// Draws what goes wrong, to one member after the other: each is back, and the group has got over it,
    /// before the next one is struck.
    fn plan_one_by_one(&mut self) {
        let lease = self.setup.lease.ttl.as_micros() as u64;
        let members = self.sites.len() as u64;
        let mut at = Time(2 * lease + self.random.below(lease));
        while at < self.setup.faulty {
            let site = self.random.below(members) as usize;
            let span = [lease / 4, lease, 3 * lease][self.random.below(3) as usize];
            let until = at + Time(self.random.below(span) + 1000);
            let (begins, ends) = match self.random.below(6) {
                0 | 1 => (Fault::Crash(site), Fault::Start(site)),
                2 => (Fault::Leave(site), Fault::Start(site)),
                3 => (Fault::Pause(site), Fault::Resume(site)),
                4 => (Fault::Deaf(site, true), Fault::Deaf(site, false)),
                _ => {
                    self.plan_cut(at, until, site, site, false);
                    at = until + Time(3 * lease);
                    continue;
                }
            };
            self.plan(at, Event::Fault(begins));
            self.plan(until, Event::Fault(ends));
            at = until + Time(3 * lease);
        }
    }

    /// The group falls into two parts, again and again. One of them reaches the registry, or none.
    fn plan_splits(&mut self) {
        let lease = self.setup.lease.ttl.as_micros() as u64;
        let members = self.sites.len();
        let mut at = Time(lease + self.random.below(2 * lease));
        while at < self.setup.faulty {
            let parts: Vec<u64> = (0..members).map(|_| self.random.below(2)).collect();
            let (reaches, longest) = (self.random.below(3), [lease, 3 * lease]);
            let longest = longest[self.random.below(2) as usize];
            let until = at + Time(lease / 2 + self.random.below(longest));
            for (time, is_cut) in [(at, true), (until, false)] {
                for site in 0..members {
                    for other in (0..members).filter(|&other| parts[other] != parts[site]) {
                        self.plan(time, Event::Fault(Fault::Cut(site, other, is_cut)));
                    }
                    if parts[site] != reaches {
                        self.plan(time, Event::Fault(Fault::Deaf(site, is_cut)));
                    }
                }
            }
            at = until + Time(lease / 2 + self.random.below(2 * lease));
        }
    }

    /// If this was the step of the one that makes tables, something happens to it.
    pub(super) fn strike(&mut self, now: Time, site: usize) {
        let Some(strike) = self.setup.strike else { return };
        let member = self.sites[site].member.as_ref();
        let membership = member.and_then(|member| member.service().membership());
        let record = membership.and_then(|membership| membership.record());
        let first = record.and_then(|record| record.members.first());
        let makes_table = first.is_some_and(|first| first.member.name == format!("m{site}"));
        if !makes_table || !(STRUCK_FROM..STRUCK_UNTIL).contains(&now) {
            return;
        }
        self.steps += 1;
        if self.steps == strike.step {
            let (lease, soon) = (self.setup.lease.ttl.as_micros() as u64, now + Time(1));
            let (begins, ends) = match strike.is_pause {
                true => (Fault::Pause(site), Fault::Resume(site)),
                false => (Fault::Crash(site), Fault::Start(site)),
            };
            // The next event comes to a member that is gone.
            self.fail(now, begins);
            self.plan(soon + Time(2 * lease), Event::Fault(ends));
        }
    }

    /// A cut between two members, or of one from all others and the registry.
    fn plan_cut(&mut self, at: Time, until: Time, site: usize, other: usize, is_one_way: bool) {
        for (time, is_cut) in [(at, true), (until, false)] {
            if site != other {
                self.plan(time, Event::Fault(Fault::Cut(site, other, is_cut)));
                if !is_one_way {
                    self.plan(time, Event::Fault(Fault::Cut(other, site, is_cut)));
                }
                continue;
            }
            for peer in (0..self.sites.len()).filter(|&peer| peer != site) {
                self.plan(time, Event::Fault(Fault::Cut(site, peer, is_cut)));
                self.plan(time, Event::Fault(Fault::Cut(peer, site, is_cut)));
            }
            self.plan(time, Event::Fault(Fault::Deaf(site, is_cut)));
        }
    }

    pub(super) fn fail(&mut self, now: Time, fault: Fault) {
        if self.healed_at.is_some() {
            return;
        }
        self.note(now, format_args!("{fault:?}"));
        match fault {
            Fault::Crash(site) => self.crash(now, site),
            Fault::Start(site) => self.start(now, site),
            Fault::Leave(site) => {
                if !self.sites[site].is_paused {
                    let drain = Duration::from_millis(200);
                    self.step(now, site, Input::Leave(Leaving::ForGood, drain));
                }
            }
            Fault::Pause(site) => self.sites[site].is_paused = self.sites[site].member.is_some(),
            Fault::Resume(site) => self.resume(now, site),
            Fault::Cut(from, to, is_cut) => {
                self.links.cut[from][to] = is_cut;
                self.release_held(now);
            }
            Fault::Deaf(site, is_deaf) => self.sites[site].is_deaf = is_deaf,
            Fault::Stall(until) => {
                self.registry.stalled_until = self.registry.stalled_until.max(until);
            }
            Fault::CutClient(client, is_cut) => self.clients[client].is_cut = is_cut,
        }
    }

    /// A member goes on, with everything that has come meanwhile.
    fn resume(&mut self, now: Time, site: usize) {
        if !std::mem::take(&mut self.sites[site].is_paused) {
            return;
        }
        while let Some(event) = self.sites[site].backlog.pop_front() {
            self.handle(now, event);
        }
    }

    /// Nothing goes wrong any more, and everybody is there.
    pub(super) fn heal(&mut self, now: Time) {
        self.note(now, format_args!("everything heals"));
        self.healed_at = Some(now);
        for row in &mut self.links.cut {
            row.fill(false);
        }
        if self.setup.lasting_cut && self.sites.len() > 1 {
            (self.links.cut[0][1], self.links.cut[1][0]) = (true, true);
        }
        self.registry.stalled_until = now;
        for client in &mut self.clients {
            client.is_cut = false;
            client.served = 0;
        }
        self.release_held(now);
        for site in 0..self.sites.len() {
            self.sites[site].is_deaf = false;
            self.resume(now, site);
            self.start(now, site);
        }
    }
}
