//! Which faults happen when: drawn from a seed before anything runs.

use std::collections::BTreeSet;
use std::time::Duration;

use catraca_sim::Random;

use super::fault::{Action, Host, Kind, Layout, Target};
use super::options::DRAIN;

/// After so many faults the group is left alone for a while.
const FAULTS_IN_A_ROW: usize = 6;
/// One fault in so many begins before the one before it is over.
const OVERLAPPING: usize = 3;

/// What the draws depend on, besides the seed.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) layout: Layout,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) lease: Duration,
    pub(crate) length: Duration,
}

/// What is done when, in order. Every fault is healed at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) actions: Vec<(Duration, Action)>,
    pub(crate) faults: usize,
}

impl Plan {
    pub(crate) fn draw(terms: &Terms, seed: u64) -> Plan {
        let mut draw = Draw { terms, random: Random::new(seed), busy: BTreeSet::new() };
        let (mut actions, mut faults) = (Vec::new(), 0);
        let (mut now, mut busy_until) = (Duration::ZERO, Duration::ZERO);
        // Every kind once before any is drawn again: a short run has most of them.
        let mut left = Vec::new();
        while now < terms.length {
            now += draw.millis(300, 2_000);
            if now >= busy_until {
                draw.busy.clear();
            }
            if left.is_empty() {
                left.clone_from(&terms.kinds);
            }
            let kind = left.swap_remove(draw.below(left.len()));
            let Some(fault) = draw.fault(kind) else { continue };
            let length = fault.iter().map(|(at, _)| *at).max().unwrap_or_default();
            if now + length > terms.length {
                continue;
            }
            actions.extend(fault.into_iter().map(|(at, action)| (now + at, action)));
            faults += 1;
            busy_until = busy_until.max(now + length);
            if faults % FAULTS_IN_A_ROW == 0 {
                now = busy_until + 2 * terms.lease;
            } else if draw.below(OVERLAPPING) > 0 {
                now = busy_until;
            }
        }
        // Stable: what happens at one moment stays in its order.
        actions.sort_by_key(|(at, _)| *at);
        Plan { actions, faults }
    }
}

type Fault = Vec<(Duration, Action)>;

struct Draw<'a> {
    terms: &'a Terms,
    random: Random,
    /// Something is being done to these already.
    busy: BTreeSet<Target>,
}

impl Draw<'_> {
    fn below(&mut self, limit: usize) -> usize {
        self.random.below(limit as u64) as usize
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.random.below(to - from))
    }

    /// So many hundredths of a lease.
    fn leases(&mut self, from: u64, to: u64) -> Duration {
        let hundredths = from + self.random.below(to - from);
        self.terms.lease * hundredths as u32 / 100
    }

    fn member(&mut self) -> usize {
        self.below(self.terms.layout.members)
    }

    /// Two different members, if there are two.
    fn two_members(&mut self) -> Option<(usize, usize)> {
        let members = self.terms.layout.members;
        let first = self.member();
        let second = (first + 1 + self.below(members.max(2) - 1)) % members;
        (first != second).then_some((first, second))
    }

    /// All members: they end, and come back, in another order each time.
    fn members_in_any_order(&mut self) -> Vec<Target> {
        let mut left: Vec<usize> = (0..self.terms.layout.members).collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            let next = self.below(left.len());
            order.push(Target::Member(left.remove(next)));
        }
        order
    }

    /// Takes a process for this fault. Nothing if something is being done to it.
    fn take(&mut self, target: Target) -> Option<Target> {
        self.busy.insert(target).then_some(target)
    }

    /// The steps of a fault, by the time from its beginning; nothing if it does not fit now.
    fn fault(&mut self, kind: Kind) -> Option<Fault> {
        let member = Host::Member;
        match kind {
            Kind::Kill => self.kill_a_member(),
            Kind::Blackout => self.kill_all(),
            Kind::Pause => self.stop_a_member(20, 80),
            Kind::Freeze => self.stop_a_member(130, 400),
            Kind::Restart => {
                let target = Target::Member(self.member());
                self.restart(&[target])
            }
            Kind::Rolling => {
                let all = self.members_in_any_order();
                self.restart(&all)
            }
            Kind::Cut => {
                let host = member(self.member());
                let (length, with_clients) = (self.leases(30, 400), self.below(2) == 0);
                Some(self.cut(host, with_clients, length))
            }
            Kind::OneWay => Some(self.one_way()),
            Kind::Partial => self.partial(),
            Kind::Flap => Some(self.flap()),
            Kind::Slow => {
                let (host, length) = (member(self.member()), self.leases(100, 300));
                let say = format!("the link of {host} is slow for {}", seconds(length));
                let (slow, fast) = (Action::Slow(host), Action::Fast(host));
                Some(vec![now(Action::Say(say)), now(slow), (length, fast)])
            }
            Kind::Disk => {
                let (number, length) = (self.member(), self.leases(50, 300));
                let say = format!("the disk of {} is full for {}", member(number), seconds(length));
                let (fill, free) = (Action::Fill(number), Action::Free(number));
                Some(vec![now(Action::Say(say)), now(fill), (length, free)])
            }
            Kind::EtcdKill => {
                let target = Target::Etcd(self.below(self.terms.layout.etcd));
                let (target, length) = (self.take(target)?, self.millis(0, 6_000));
                Some(kill(&[(target, length)]))
            }
            Kind::EtcdPause => {
                let target = Target::Etcd(self.below(self.terms.layout.etcd));
                let length = self.millis(200, 6_000);
                self.stop(target, length)
            }
            Kind::EtcdCut => {
                let host = Host::Etcd(self.below(self.terms.layout.etcd));
                let length = self.millis(200, 6_000);
                Some(self.cut(host, true, length))
            }
            Kind::ClientKill => {
                let target = Target::Client(self.below(self.terms.layout.clients));
                let (target, length) = (self.take(target)?, self.millis(0, 2_000));
                Some(kill(&[(target, length)]))
            }
            Kind::ClientPause => {
                let target = Target::Client(self.below(self.terms.layout.clients));
                let length = self.leases(20, 300);
                self.stop(target, length)
            }
        }
    }

    fn kill_a_member(&mut self) -> Option<Fault> {
        let target = Target::Member(self.member());
        let target = self.take(target)?;
        // Half of them come back while their lease of before goes on.
        let length = if self.below(2) == 0 { self.millis(0, 300) } else { self.leases(50, 400) };
        Some(kill(&[(target, length)]))
    }

    /// All at once; they are started again in any order, in half of the cases one a while after the other.
    fn kill_all(&mut self) -> Option<Fault> {
        let all = self.members_in_any_order();
        for &target in &all {
            self.take(target)?;
        }
        let mut after = self.millis(0, 3_000);
        let is_staggered = self.below(2) == 0;
        let mut starts = Vec::new();
        for target in all {
            starts.push((target, after));
            if is_staggered {
                after += self.millis(100, 1_500);
            }
        }
        Some(kill(&starts))
    }

    fn stop_a_member(&mut self, from: u64, to: u64) -> Option<Fault> {
        let target = Target::Member(self.member());
        let length = self.leases(from, to);
        self.stop(target, length)
    }

    fn stop(&mut self, target: Target, length: Duration) -> Option<Fault> {
        self.take(target)?;
        let say = format!("{target} is stopped for {}", seconds(length));
        let (stop, resume) = (Action::Stop(target), Action::Continue(target));
        Some(vec![now(Action::Say(say)), now(stop), (length, resume)])
    }

    /// One after the other; each is told to end when the one before it has had time to come back.
    fn restart(&mut self, targets: &[Target]) -> Option<Fault> {
        let (mut fault, mut at) = (Vec::new(), Duration::ZERO);
        for &target in targets {
            self.take(target)?;
            let pause = self.millis(0, 500);
            let say =
                format!("{target} is told to end, and started again after {}", seconds(pause));
            fault.push((at, Action::Say(say)));
            fault.push((at, Action::Terminate(target)));
            fault.push((at + pause, Action::Start(target)));
            at += pause + DRAIN + 2 * self.terms.lease;
        }
        Some(fault)
    }

    fn cut(&mut self, host: Host, with_clients: bool, length: Duration) -> Fault {
        let others = self.others(host, with_clients);
        let spared = if with_clients { "" } else { " but the clients" };
        let say = format!("{host} is cut off from everybody{spared} for {}", seconds(length));
        let mut fault = vec![now(Action::Say(say))];
        for other in others {
            fault.extend(between(host, other, Duration::ZERO, length));
            fault.extend(between(other, host, Duration::ZERO, length));
        }
        fault
    }

    fn others(&self, host: Host, with_clients: bool) -> Vec<Host> {
        let counts = |other: &Host| *other != host && (with_clients || *other != Host::Clients);
        self.terms.layout.hosts().into_iter().filter(counts).collect()
    }

    fn one_way(&mut self) -> Fault {
        let (host, length) = (Host::Member(self.member()), self.leases(50, 400));
        let (is_heard, with_clients) = (self.below(2) == 0, self.below(2) == 0);
        let does = if is_heard { "hears nobody" } else { "is heard by nobody" };
        let spared = if with_clients { "" } else { " but the clients" };
        let say = format!("{host} {does}{spared} for {}", seconds(length));
        let mut fault = vec![now(Action::Say(say))];
        for other in self.others(host, with_clients) {
            let (from, to) = if is_heard { (other, host) } else { (host, other) };
            fault.extend(between(from, to, Duration::ZERO, length));
        }
        fault
    }

    fn partial(&mut self) -> Option<Fault> {
        let (one, other) = self.two_members()?;
        let (one, other) = (Host::Member(one), Host::Member(other));
        let length = self.leases(50, 500);
        let say = format!("{one} and {other} do not hear each other for {}", seconds(length));
        let mut fault = vec![now(Action::Say(say))];
        fault.extend(between(one, other, Duration::ZERO, length));
        fault.extend(between(other, one, Duration::ZERO, length));
        Some(fault)
    }

    fn flap(&mut self) -> Fault {
        let host = Host::Member(self.member());
        let times = 4 + self.below(8);
        let say = format!("{host} is cut off and connected again {times} times");
        let (mut fault, mut at) = (vec![now(Action::Say(say))], Duration::ZERO);
        for _ in 0..times {
            let (off, on) = (self.leases(5, 60), self.leases(5, 60));
            for other in self.others(host, true) {
                fault.extend(between(host, other, at, at + off));
                fault.extend(between(other, host, at, at + off));
            }
            at += off + on;
        }
        fault
    }
}

fn now(action: Action) -> (Duration, Action) {
    (Duration::ZERO, action)
}

/// All of them at once; each is started again after a time of its own.
fn kill(targets: &[(Target, Duration)]) -> Fault {
    let (mut names, mut times) = (Vec::new(), Vec::new());
    for (target, after) in targets {
        names.push(target.to_string());
        times.push(seconds(*after));
    }
    times.dedup();
    let killed = if names.len() == 1 { "is" } else { "are" };
    let (names, times) = (names.join(", "), times.join(", "));
    let say = format!("{names} {killed} killed, and started again after {times}");
    let mut fault = vec![now(Action::Say(say))];
    fault.extend(targets.iter().map(|&(target, _)| now(Action::Kill(target))));
    fault.extend(targets.iter().map(|&(target, after)| (after, Action::Start(target))));
    fault
}

fn between(from: Host, to: Host, begin: Duration, end: Duration) -> [(Duration, Action); 2] {
    [(begin, Action::Drop { from, to }), (end, Action::Pass { from, to })]
}

fn seconds(length: Duration) -> String {
    format!("{:.1} s", length.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::ValueEnum;

    use super::*;

    fn terms(kinds: &[Kind]) -> Terms {
        let layout = Layout { members: 3, etcd: 3, clients: 4 };
        let (lease, length) = (Duration::from_secs(2), Duration::from_secs(300));
        Terms { layout, kinds: kinds.to_vec(), lease, length }
    }

    #[test]
    fn a_seed_gives_the_same_faults_and_another_seed_others() {
        let terms = terms(Kind::value_variants());
        assert_eq!(Plan::draw(&terms, 7), Plan::draw(&terms, 7));
        assert_ne!(Plan::draw(&terms, 7), Plan::draw(&terms, 8));
    }

    #[test]
    fn every_kind_of_fault_happens() {
        for &kind in Kind::value_variants() {
            let plan = Plan::draw(&terms(&[kind]), 1);
            assert!(plan.faults > 5, "{kind}: {plan:?}");
        }
    }

    /// When members are started again by faults of this kind, over many seeds.
    fn starts(kind: Kind) -> Vec<Vec<(Duration, Target)>> {
        let start = |(at, action): &(Duration, Action)| match action {
            Action::Start(target) => Some((*at, *target)),
            _ => None,
        };
        let plans = (0..40).map(|seed| Plan::draw(&terms(&[kind]), seed));
        plans.map(|plan| plan.actions.iter().filter_map(start).collect()).collect()
    }

    #[test]
    fn members_are_restarted_in_any_order() {
        for kind in [Kind::Rolling, Kind::Blackout] {
            let mut orders = BTreeSet::new();
            for plan in starts(kind) {
                orders.extend(
                    plan.chunks(3)
                        .map(|three| three.iter().map(|(_, target)| *target).collect::<Vec<_>>()),
                );
            }
            assert_eq!(orders.len(), 6, "{kind}: {orders:?}");
        }
    }

    #[test]
    fn after_a_blackout_members_come_back_together_or_one_after_the_other() {
        let (mut together, mut apart) = (0, 0);
        for plan in starts(Kind::Blackout) {
            for three in plan.chunks(3) {
                match three[0].0 == three[2].0 {
                    true => together += 1,
                    false => apart += 1,
                }
            }
        }
        assert!(together > 10 && apart > 10, "{together} together, {apart} apart");
    }

    #[test]
    fn every_fault_is_healed_before_the_end() {
        for seed in 0..200 {
            let terms = terms(Kind::value_variants());
            let plan = Plan::draw(&terms, seed);
            let mut open = BTreeMap::<Action, i32>::new();
            let mut change = |action: Action, by| *open.entry(action).or_default() += by;
            for (at, action) in plan.actions {
                assert!(at <= terms.length);
                match action {
                    Action::Say(_) => {}
                    Action::Kill(target) | Action::Terminate(target) => {
                        change(Action::Start(target), 1);
                    }
                    Action::Start(target) => change(Action::Start(target), -1),
                    Action::Stop(target) => change(Action::Stop(target), 1),
                    Action::Continue(target) => change(Action::Stop(target), -1),
                    Action::Drop { from, to } => change(Action::Drop { from, to }, 1),
                    Action::Pass { from, to } => change(Action::Drop { from, to }, -1),
                    Action::Slow(host) => change(Action::Slow(host), 1),
                    Action::Fast(host) => change(Action::Slow(host), -1),
                    Action::Fill(member) => change(Action::Fill(member), 1),
                    Action::Free(member) => change(Action::Fill(member), -1),
                }
            }
            assert!(open.values().all(|&count| count == 0), "seed {seed}: {open:?}");
        }
    }

    #[test]
    fn nothing_else_is_done_to_a_process_that_is_stopped_or_killed() {
        for seed in 0..200 {
            let plan = Plan::draw(&terms(Kind::value_variants()), seed);
            let mut busy = BTreeSet::new();
            for (_, action) in plan.actions {
                match action {
                    Action::Kill(target) | Action::Terminate(target) | Action::Stop(target) => {
                        assert!(busy.insert(target), "seed {seed}: {target}");
                    }
                    Action::Start(target) | Action::Continue(target) => {
                        assert!(busy.remove(&target), "seed {seed}: {target}");
                    }
                    _ => {}
                }
            }
        }
    }
}
