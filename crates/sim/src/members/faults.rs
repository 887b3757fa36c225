//! What goes wrong between members: crashes, partitions, pauses, and wrong suspicions.

use std::fmt::Write;

use catraca_group::Input;

use super::engine::{Event, Simulation, node};
use crate::time::Time;

impl Simulation<'_> {
    pub(super) fn plan_faults(&mut self) {
        let faults = &self.setup.faults;
        for (at, member) in faults.crashes() {
            self.plan(at, Event::Crash(member.index()));
        }
        for (member, from, to) in faults.pauses() {
            self.plan(from, Event::Pause(member.index()));
            self.plan(to, Event::Resume(member.index()));
        }
        for at in faults.cuts() {
            self.plan(at, Event::Cut);
        }
    }

    /// A member takes no more steps, and its clients, which are on the same machine, are gone.
    pub(super) fn crash(&mut self, now: Time, member: usize) {
        self.note(now, format_args!("m{member} crashes"));
        self.sites[member].is_alive = false;
        self.sites[member].backlog.clear();
        self.tally.crashed = true;
        for client in 0..self.clients.len() {
            if self.clients[client].member == member {
                self.bury(client);
            }
        }
        for peer in (0..self.sites.len()).filter(|&peer| peer != member) {
            let departure = self.setup.faults.kept_departure(now, node(member), node(peer));
            let links = &mut self.links;
            let at = links.arrival(departure, node(member), node(peer), &mut self.random);
            self.plan(at, Event::Link { member: peer, peer: member, is_up: false });
        }
    }

    /// A pause is over: everything that came meanwhile is taken in, in order.
    pub(super) fn resume(&mut self, now: Time, member: usize) {
        let site = &mut self.sites[member];
        site.pauses -= 1;
        if site.pauses > 0 || !site.is_alive {
            return;
        }
        for event in std::mem::take(&mut site.backlog) {
            self.handle(now, event);
        }
    }

    /// A partition has begun or ended: both ends of each link notice.
    pub(super) fn cut(&mut self, now: Time) {
        for member in 0..self.sites.len() {
            for peer in (0..self.sites.len()).filter(|&peer| peer != member) {
                let is_up = !self.setup.faults.is_cut(now, node(peer), node(member));
                if self.sites[peer].is_alive {
                    self.plan(now, Event::Link { member, peer, is_up });
                }
            }
        }
    }

    /// The connection to another member comes or goes, if that is news.
    pub(super) fn link(&mut self, now: Time, member: usize, peer: usize, is_up: bool) {
        if self.connected[member][peer] == is_up {
            return;
        }
        self.connected[member][peer] = is_up;
        self.note(now, format_args!("m{member}: link to m{peer} up: {is_up}"));
        match is_up {
            true => self.step(now, member, Input::LinkUp(peer, peer as u64 + 1)),
            false => self.step(now, member, Input::LinkDown(peer)),
        }
    }

    /// A member takes another one for crashed; if that is wrong, what breaks afterwards may be the
    /// consequence.
    pub(super) fn suspected(&mut self, now: Time, by: usize, suspect: usize) {
        self.note(now, format_args!("m{by} takes m{suspect} for crashed"));
        if self.sites[suspect].is_alive {
            // Writing to a string cannot fail.
            let _ = write!(
                self.mistakes,
                "; member {suspect} was taken for crashed by member {by} at {now}, but was not"
            );
        }
    }
}
