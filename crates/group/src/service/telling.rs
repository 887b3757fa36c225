//! What a member tells about itself and its locks.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Asking, Host, Output, Service};
use crate::driver::{Client, Timer};
use crate::listing::{DurableLine, Line, LineKey, Page, PageBuilder, Query, Selection};
use crate::lock::{Lock, Owner, Set};
use crate::membership::Past;
use crate::question::{ANSWER_TIME, Question};
use crate::request::RequestId;
use crate::session::Who;
use crate::shard::Counts;
use crate::status::{
    DetectorStatus, LinkStatus, MemberStatus, NamespaceStatus, NodeState, PastView, RegistryStatus,
    Status, Tally,
};
use crate::time::Time;
use crate::view::{Member, Namespace};

/// A list of the whole group, of which some parts have yet to come.
#[derive(Clone, Debug)]
pub(super) struct Gathering {
    /// Who asked for it.
    asker: u64,
    page: PageBuilder,
    /// The members that have not answered.
    waiting: BTreeSet<usize>,
}

impl Gathering {
    /// A member has answered. Returns whether all have.
    pub(super) fn answer(&mut self, member: usize, page: Page) -> bool {
        if self.waiting.remove(&member) {
            self.page.merge(page);
        }
        self.waiting.is_empty()
    }

    /// A member called `name` will not answer. Returns whether nobody will.
    fn no_answer_from(&mut self, member: usize, name: &str) -> bool {
        let was_asked = self.waiting.remove(&member);
        if was_asked {
            self.page.silent(name.to_string());
        }
        was_asked && self.waiting.is_empty()
    }
}

/// What a driver knows of a member beside the service.
pub struct Health<'a> {
    /// The group's name.
    pub group: &'a str,
    /// The link to the member of this name.
    pub links: &'a mut dyn FnMut(&str) -> LinkStatus,
    /// The registry, if there is one.
    pub registry: Option<RegistryStatus>,
    /// What came that cannot come in a correct run.
    pub anomalies: u64,
}

impl Service {
    /// Asks for a page of who holds and who waits. `asker` gets it by [`Output::Page`], which may be
    /// among the outputs already.
    pub fn list(&mut self, asker: u64, query: Query, host: &mut dyn Host, out: &mut Vec<Output>) {
        let mut page = PageBuilder::new(&query);
        page.merge(self.page_here(&query, host));
        let mut waiting = BTreeSet::new();
        if query.whole_group {
            for member in self.view.others() {
                if self.peers[member].is_up {
                    waiting.insert(member);
                } else {
                    page.silent(self.view.members[member].name.clone());
                }
            }
        }
        if waiting.is_empty() {
            return out.push(Output::Page(asker, page.finish()));
        }
        self.last_question += 1;
        let number = self.last_question;
        let theirs = Query { whole_group: false, ..query };
        for &member in &waiting {
            out.push(Output::Ask(member, number, Question::List(theirs.clone())));
        }
        self.questions.insert(number, Asking::List(Gathering { asker, page, waiting }));
        host.set_timer(Timer::Question(number), Some(ANSWER_TIME));
    }

    /// Nobody waits for the answers to a question any more.
    pub(super) fn close_question(
        &mut self,
        number: u64,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        host.set_timer(Timer::Question(number), None);
        let gathering = match self.questions.remove(&number) {
            Some(Asking::List(gathering)) => gathering,
            Some(Asking::Timed(pending)) => return self.end_operation(pending, out),
            Some(asking @ Asking::Order(..)) => {
                self.questions.insert(number, asking);
                return self.close_order(number, None, host, out);
            }
            Some(Asking::Fence(comparison)) => return self.end_comparison(comparison, out),
            Some(Asking::Anatomy(sitting)) => return self.end_sitting(sitting, out),
            Some(Asking::Links(round)) => return self.end_round(round, out),
            Some(Asking::IsHeld(_)) | None => return,
        };
        let Gathering { asker, mut page, waiting } = gathering;
        for member in waiting {
            page.silent(self.view.members[member].name.clone());
        }
        out.push(Output::Page(asker, page.finish()));
    }

    /// A member will not answer what it was asked.
    pub(super) fn no_answer_from(
        &mut self,
        member: usize,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let name = &self.view.members[member].name;
        let mut done = Vec::new();
        for (&number, asking) in &mut self.questions {
            let is_done = match asking {
                Asking::List(gathering) => gathering.no_answer_from(member, name),
                Asking::Timed(pending) => pending.answers.no_answer_from(member, name),
                Asking::Order(_, its) => *its == member,
                Asking::Fence(comparison) => comparison.answers.no_answer_from(member, name),
                Asking::Anatomy(sitting) => sitting.no_answer_from(member),
                Asking::Links(round) => round.no_answer_from(member),
                Asking::IsHeld(_) => false,
            };
            done.extend(is_done.then_some(number));
        }
        for number in done {
            self.close_question(number, host, out);
        }
    }

    /// Who holds and who waits at this member.
    pub(super) fn page_here(&self, query: &Query, host: &mut dyn Host) -> Page {
        let now = host.now();
        let node = &self.view.own().name;
        let mut page = PageBuilder::new(query);
        self.look_at_locks(&query.names, host, &mut |lock| {
            if lock.is_used_here() {
                self.offer(lock, query, node, now, &mut page);
            }
        });
        page.finish()
    }

    /// Shows every lock of this member that may be meant. One that is named is looked up: among very many
    /// others it would take long to be found.
    fn look_at_locks(&self, names: &Selection, host: &mut dyn Host, at: &mut dyn FnMut(&Lock)) {
        let Selection::Name(name) = names else {
            return host.look(&mut |shard| shard.locks().for_each(&mut *at));
        };
        // The names of a namespace that knows sets are guarded together, under its pattern.
        let pattern = &self.view.namespaces[self.view.namespace(name)].pattern;
        let keys = [Some(name), Some(pattern).filter(|pattern| *pattern != name)];
        for key in keys.into_iter().flatten() {
            host.look_at(key, &mut |shard, hash| {
                shard.named(key, hash).for_each(|(_, lock)| at(lock));
            });
        }
    }

    /// Offers every holder and waiter of a lock to a page.
    fn offer(&self, lock: &Lock, query: &Query, node: &str, now: Time, page: &mut PageBuilder) {
        let holds = lock.holds().map(|hold| {
            let (ticket, fence) = (hold.ticket, Some(hold.fence.0));
            (0, ticket, fence, hold.since, &hold.asker)
        });
        let waiters = (1..)
            .zip(lock.waiters())
            .map(|(place, (ticket, waiter))| (place, ticket, None, waiter.since, &waiter.asker));
        for (place, ticket, fence, since, asker) in holds.chain(waiters) {
            let mut offer = |name: &str| {
                if !query.names.includes(name) || !page.wants(name) {
                    return;
                }
                let (name, node) = (name.to_string(), node.to_string());
                let key = LineKey { name, permits: lock.permits, place, node, ticket };
                let Who { label, pid, host, .. } = self.who(asker.owner);
                let millis = now.millis_since(since);
                let record = asker.request.and_then(|request| self.durable_record(request));
                let durable = record.map(|record| DurableLine {
                    id: record.id,
                    owner: record.owner.clone(),
                    note: record.note.clone(),
                    unix_millis: record.unix_millis,
                });
                page.offer(Line { key, fence, label, pid, host, millis, durable });
            };
            match &asker.set {
                Some(set) => {
                    let Set { names, .. } = &**set;
                    names.iter().for_each(|name| offer(name));
                }
                None => offer(&lock.name),
            }
        }
    }

    /// Who holds and who waits for one lock at this member.
    pub fn inspect(&self, name: &str, host: &mut dyn Host) -> Page {
        let names = Selection::Name(name.to_string());
        self.page_here(&Query { names, limit: u32::MAX, ..Query::default() }, host)
    }

    /// Who has made a request.
    pub fn client(&self, request: RequestId) -> Option<Client<'_>> {
        let origin = self.requests.get(&request)?.origin;
        Some(match self.durable_client(request) {
            Some(client) => client,
            None => {
                let session = self.sessions.get(&origin.owner());
                let who = session.map_or(&self.program, |session| &session.who);
                Client { label: &who.label, identity: &who.identity }
            }
        })
    }

    /// Who a client is.
    fn who(&self, owner: Owner) -> Who {
        self.sessions.get(&owner).map_or_else(|| self.program.clone(), |it| it.who.clone())
    }

    /// How this member stands in its group.
    pub fn node_state(&self, health: Health<'_>, now: Time) -> NodeState {
        NodeState {
            group: health.group.to_string(),
            node: self.view.own().name.clone(),
            millis: now.millis_since(self.started),
            epoch: self.view.epoch.0,
            readiness: self.readiness(),
            valid: self.membership().map(|it| it.valid_until().millis_since(now)),
            members: self.member_statuses(now, health.links),
            registry: health.registry,
            views: self.past_views(now),
            sessions: self.sessions.len() as u64,
            anomalies: health.anomalies,
        }
    }

    /// How this member is doing. The `tally` is that of its shards: a look at every lock takes long where there
    /// are very many, so the driver takes it before, and nobody waits for the service meanwhile.
    pub fn status(&self, health: Health<'_>, tally: Tally, now: Time) -> Status {
        let view = &self.view;
        let node_state = self.node_state(health, now);
        // Every namespace with its own algorithm, and with that of its semaphores if it has any.
        let own = |(index, namespace): (usize, &Namespace)| (index, namespace.algorithm.clone());
        let mut by_kind: BTreeMap<(usize, String), BTreeMap<&'static str, u64>> =
            view.namespaces.iter().enumerate().map(|it| (own(it), BTreeMap::new())).collect();
        by_kind.extend(tally.messages);
        let namespaces = by_kind.into_iter().map(|((namespace, algorithm), counts)| {
            let Namespace { pattern, algorithm: own, .. } = &view.namespaces[namespace];
            NamespaceStatus {
                pattern: pattern.clone(),
                semaphores: algorithm != *own,
                algorithm,
                messages: counts.into_iter().map(|(kind, sum)| (kind.to_string(), sum)).collect(),
            }
        });
        let [locks, held, waiting] = tally.sizes;
        let Counts { grants, handovers, messages, arrived } = tally.counts;
        Status {
            group: node_state.group,
            node: node_state.node,
            millis: node_state.millis,
            epoch: node_state.epoch,
            readiness: node_state.readiness,
            valid: node_state.valid,
            members: node_state.members,
            registry: node_state.registry,
            views: node_state.views,
            detector: self.detector.as_ref().map(|detector| DetectorStatus {
                interval: detector.config.interval.as_millis() as u64,
                timeout: detector.config.timeout.as_millis() as u64,
                messages: detector.messages,
                excluded_by: self.excluded_by.map(|by| view.members[by].name.clone()),
            }),
            namespaces: namespaces.collect(),
            locks,
            held,
            waiting,
            sessions: node_state.sessions,
            grants,
            handovers,
            messages,
            arrived,
            anomalies: node_state.anomalies,
        }
    }

    /// Those of the view, and then those that belong to the group and are not in it.
    fn member_statuses(
        &self,
        now: Time,
        links: &mut dyn FnMut(&str) -> LinkStatus,
    ) -> Vec<MemberStatus> {
        let view = &self.view;
        let membership = self.membership();
        let record = membership.and_then(|it| it.record());
        let roster = membership.map_or(&[][..], |it| it.roster());
        let is_outside = |member: &&Member| view.members.iter().all(|it| it.name != member.name);
        let suspects = self.detector.as_ref().map(|detector| &detector.suspects);
        let status = |(index, member): (usize, &Member)| MemberStatus {
            name: member.name.clone(),
            address: member.address.clone(),
            cluster: member.cluster.clone(),
            is_in_view: membership.is_none()
                || record.is_some_and(|record| record.entry(&member.name).is_some()),
            renewed: membership
                .and_then(|it| it.beat_age(&member.name, now))
                .map(|age| age.as_millis() as u64),
            link: if index == view.me { LinkStatus::Itself } else { links(&member.name) },
            suspected: suspects
                .and_then(|suspects| suspects.get(&index))
                .map(|&since| now.millis_since(since)),
        };
        view.members
            .iter()
            .chain(roster.iter().filter(is_outside))
            .enumerate()
            .map(status)
            .collect()
    }

    fn past_views(&self, now: Time) -> Vec<PastView> {
        let past = |past: &Past| PastView {
            epoch: past.epoch.0,
            members: past.members,
            cause: past.cause.clone(),
            age: now.millis_since(past.at),
            took: past.took.as_millis() as u64,
        };
        self.membership().into_iter().flat_map(|it| it.history()).map(past).collect()
    }
}

#[cfg(test)]
mod tests;
