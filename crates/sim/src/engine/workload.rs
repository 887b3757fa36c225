//! Who asks next, and when: the workload while a run goes on.

use std::collections::VecDeque;

use catraca_core::{Algorithm, Input, NodeId, Phase};

use super::{Event, PendingRequest, Simulation};
use crate::distribution::Distribution;
use crate::time::Time;
use crate::workload::{Arrivals, Scheduled};

impl<'a, A: Algorithm> Simulation<'a, A> {
    pub(super) fn start_workload(&mut self) {
        let setup = self.setup;
        match &setup.workload.arrivals {
            // A node that starts inside is the first of the series: the next asks after it has left.
            Arrivals::Serial { .. } if setup.spec.start.holders().next().is_some() => {}
            Arrivals::Serial { .. } | Arrivals::Open { .. } => {
                let pause = self.until_next_arrival();
                self.queue.push(pause, Event::Workload);
            }
            Arrivals::Bursts { .. } => self.queue.push(Time::ZERO, Event::Workload),
            Arrivals::Closed { think: Distribution::Constant(at), .. } => {
                if let Some(first) = self.next_of_first_round(0) {
                    self.queue.push(*at, Event::FirstRound(first));
                }
            }
            Arrivals::Closed { think, .. } => {
                for node in NodeId::all(setup.spec.nodes) {
                    if self.is_in_first_round(node) {
                        let at = think.sample(&mut self.random);
                        self.queue.push(at, Event::Arrive(node));
                    }
                }
            }
            Arrivals::Schedule(requests) => {
                for (number, request) in (0..).zip(requests) {
                    self.queue.push(request.at, Event::Scheduled(number));
                }
            }
        }
    }

    /// `node` asks, and everybody after it at the same time.
    pub(super) fn first_round(&mut self, now: Time, node: NodeId) {
        if let Some(next) = self.next_of_first_round(node.0 + 1) {
            self.queue.push_first(Event::FirstRound(next));
        }
        self.arrive(now, node, None);
    }

    fn next_of_first_round(&self, from: u32) -> Option<NodeId> {
        (from..self.setup.spec.nodes).map(NodeId).find(|&node| self.is_in_first_round(node))
    }

    /// A node that starts inside asks again after leaving.
    fn is_in_first_round(&self, node: NodeId) -> bool {
        !self.setup.spec.start.is_inside(node) && self.has_rounds(node)
    }

    /// Whether a closed workload has `node` ask.
    fn is_requester(&self, node: NodeId) -> bool {
        match &self.setup.workload.arrivals {
            Arrivals::Closed { requesters: Some(requesters), .. } => requesters.contains(node),
            _ => true,
        }
    }

    /// A request comes to `node`; if the node is busy with an earlier one, it waits there.
    pub(super) fn arrive(&mut self, now: Time, node: NodeId, scheduled: Option<u32>) {
        if !self.sites[node.index()].alive {
            return;
        }
        let request = PendingRequest { since: now, scheduled };
        if self.sites[node.index()].phase == Phase::Idle {
            self.ask(now, node, request);
        } else {
            self.backlog.entry(node).or_default().push_back(request);
            self.queued += 1;
        }
    }

    pub(super) fn arrive_as_scheduled(&mut self, now: Time, number: u32) {
        if let Some(request) = self.scheduled(number) {
            self.arrive(now, request.node, Some(number));
        }
    }

    fn scheduled(&self, number: u32) -> Option<&'a Scheduled> {
        match &self.setup.workload.arrivals {
            Arrivals::Schedule(requests) => requests.get(number as usize),
            _ => None,
        }
    }

    fn ask(&mut self, now: Time, node: NodeId, request: PendingRequest) {
        let site = &mut self.sites[node.index()];
        site.phase = Phase::Waiting;
        site.asked_at = request.since;
        if let Some(rounds) = self.rounds.get_mut(node.index()) {
            *rounds -= 1;
        }
        self.bypass.ask(node);
        let listed = request.scheduled.and_then(|number| self.scheduled(number)?.claim.clone());
        let claim = self.choose_claim(node, listed);
        if let Some(sets) = &mut self.sets {
            sets.ask(now, node, &claim);
        }
        self.step(now, node, Input::Request(claim), None);
    }

    /// A node is no longer inside, by a release or by a crash.
    pub(super) fn leave(&mut self, now: Time, node: NodeId) {
        let claim = self.claim_of(node);
        self.capacity.leave(node, &claim);
        if let Some(sets) = &mut self.sets {
            sets.leave(now, &claim);
        }
        self.metrics.leave(now, self.bypass.waiting() > 0);
    }

    pub(super) fn release(&mut self, now: Time, node: NodeId) {
        let site = &mut self.sites[node.index()];
        if !site.alive {
            return;
        }
        site.phase = Phase::Idle;
        self.leave(now, node);
        self.step(now, node, Input::Release, None);
        if let Some(request) = self.backlog.get_mut(&node).and_then(VecDeque::pop_front) {
            self.queued -= 1;
            self.ask(now, node, request);
        }
        match self.setup.workload.arrivals {
            Arrivals::Closed { think, .. } if self.has_rounds(node) => {
                let at = now + think.sample(&mut self.random);
                self.queue.push(at, Event::Arrive(node));
            }
            Arrivals::Serial { .. } => self.plan_next_arrival(now),
            _ => {}
        }
    }

    fn has_rounds(&self, node: NodeId) -> bool {
        self.is_requester(node) && self.rounds.get(node.index()).is_none_or(|&rounds| rounds > 0)
    }

    pub(super) fn plan_next_arrival(&mut self, now: Time) {
        let at = now + self.until_next_arrival();
        self.queue.push(at, Event::Workload);
    }

    fn until_next_arrival(&mut self) -> Time {
        match &self.setup.workload.arrivals {
            Arrivals::Serial { pause } => pause.sample(&mut self.random),
            Arrivals::Open { interval } => Time(self.random.exponential(interval.0 as f64)),
            Arrivals::Bursts { every, .. } => *every,
            Arrivals::Closed { .. } | Arrivals::Schedule(_) => Time::ZERO,
        }
    }

    /// The workload draws who asks next.
    pub(super) fn next_arrival(&mut self, now: Time) {
        match self.setup.workload.arrivals {
            Arrivals::Serial { .. } => {
                let node = self.draw_alive();
                self.arrive(now, node, None);
            }
            Arrivals::Open { .. } => {
                let node = self.draw_alive();
                self.plan_next_arrival(now);
                self.arrive(now, node, None);
            }
            Arrivals::Bursts { size, .. } => {
                self.plan_next_arrival(now);
                for node in self.draw_distinct(size) {
                    self.arrive(now, node, None);
                }
            }
            Arrivals::Closed { .. } | Arrivals::Schedule(_) => {}
        }
    }

    /// A node that is alive. Setups in which everybody crashes are refused, so there is one.
    fn draw_alive(&mut self) -> NodeId {
        if let Some(locality) = &mut self.locality {
            return locality.draw(&mut self.random, |node| self.sites[node.index()].alive);
        }
        loop {
            let node = NodeId(self.random.below(u64::from(self.setup.spec.nodes)) as u32);
            if self.sites[node.index()].alive {
                return node;
            }
        }
    }

    /// So many different nodes, by Floyd's method.
    fn draw_distinct(&mut self, count: u32) -> Vec<NodeId> {
        let nodes = self.setup.spec.nodes;
        let mut drawn: Vec<NodeId> = Vec::new();
        for last in nodes - count.min(nodes)..nodes {
            let node = NodeId(self.random.below(u64::from(last) + 1) as u32);
            drawn.push(if drawn.contains(&node) { NodeId(last) } else { node });
        }
        drawn
    }
}
