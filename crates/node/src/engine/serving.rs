//! The service of one member: its inputs, what it asks for in return, sessions, lists and status.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use std::time::Duration;

use catraca_client::protocol::Description;
use catraca_client::{clock, frame};
use catraca_group::registry::{Answer, Revision, Trouble, Word};
use catraca_group::{
    Cause, Entry, Health, Leaving, LinkStatus, Membership, Namespace, NodeState, Notice, Output,
    Owner, PeerMessage, Refusal, RegistryStatus, Run, Service, Status, Time,
};

use super::parts::Parts;
use super::{Engine, Peers, Serving};
use crate::audit::Record;
use crate::config::GIT_TURNS;
use crate::link::{Health as LinkHealth, Link};
use crate::mutex::hold;
use crate::native::Outbox;

impl Engine {
    /// Gives the service an input, and does what follows.
    pub(crate) fn serve<T>(
        &self,
        input: impl FnOnce(&mut Service, &mut Parts<'_>, &mut Vec<Output>) -> T,
    ) -> T {
        let mut parts = Parts::new(self);
        let mut out = Vec::new();
        let mut woken = Vec::new();
        let mut serving = hold(&self.serving);
        let done = input(&mut serving.service, &mut parts, &mut out);
        let mut has_begun = self.carry_out_all(&mut serving, &mut parts, &mut out, &mut woken);
        if std::mem::take(&mut parts.withheld) {
            serving.service.withheld(&mut parts, &mut out);
            has_begun |= self.carry_out_all(&mut serving, &mut parts, &mut out, &mut woken);
        }
        if let Some(name) = parts.used_up.take() {
            serving.service.used_up(&name, &mut parts, &mut out);
            has_begun |= self.carry_out_all(&mut serving, &mut parts, &mut out, &mut woken);
        }
        if has_begun {
            self.deliver_kept(&mut serving, &mut parts, &mut out, &mut woken);
            self.links.open_view(serving.view.epoch);
        }
        let is_granting = serving.service.is_granting();
        if self.is_ready.load(Ordering::Relaxed) != is_granting {
            self.is_ready.store(is_granting, Ordering::Release);
            // Whoever was told before, and has looked before this, would wait for ever.
            self.readiness.notify_waiters();
        }
        drop(serving);
        self.send_departing();
        self.links.flush(parts.sent_to);
        woken.into_iter().chain(parts.woken).for_each(Waker::wake);
        for what in parts.anomalies {
            self.note(what);
        }
        done
    }

    /// Does everything that the service asks for. Returns whether a view has begun.
    fn carry_out_all(
        &self,
        serving: &mut Serving,
        parts: &mut Parts<'_>,
        out: &mut Vec<Output>,
        woken: &mut Vec<Waker>,
    ) -> bool {
        let mut has_begun = false;
        for output in out.drain(..) {
            has_begun |= matches!(output, Output::Began(_));
            self.carry_out(output, serving, &mut parts.sent_to, woken);
        }
        has_begun
    }

    /// Delivers what came for a view before it began. Whatever comes later waits meanwhile, so the order
    /// stays.
    fn deliver_kept(
        &self,
        serving: &mut Serving,
        parts: &mut Parts<'_>,
        out: &mut Vec<Output>,
        woken: &mut Vec<Waker>,
    ) {
        for (run, bytes) in serving.service.take_kept() {
            let Ok(message) = frame::read::<PeerMessage<'_>>(&bytes) else { continue };
            let place = serving.service.hear_from(&run, &message, parts, out);
            if let (Some(place), PeerMessage::Step(step)) = (place, message) {
                parts.deliver(place, step);
                serving.service.absorb(parts, out);
            }
            self.carry_out_all(serving, parts, out, woken);
        }
    }

    /// Does what the service asks for. This is under its mutex, so that everybody is told in the
    /// order in which things happened.
    fn carry_out(
        &self,
        output: Output,
        serving: &mut Serving,
        sent_to: &mut u64,
        woken: &mut Vec<Waker>,
    ) {
        let epoch = serving.view.epoch;
        match output {
            Output::Ask(member, number, question) => {
                send(serving, member, PeerMessage::Ask { epoch, number, question }, sent_to);
            }
            Output::Answer(member, number, answer) => {
                send(serving, member, PeerMessage::Answer { epoch, number, answer }, sent_to);
            }
            Output::Detect(member, body) => {
                send(serving, member, PeerMessage::Detector { epoch, body: &body }, sent_to);
            }
            Output::View(run, message) => {
                let link = self.links.to(&run);
                match link.push(PeerMessage::View(message)) {
                    Ok(()) => link.flush(),
                    Err(error) => tracing::error!(%error, "a message is too long to be sent"),
                }
            }
            Output::Transaction(number, txn) => {
                // Without a registry there is nobody who waits for an answer.
                self.asks.send((number, txn)).ok();
            }
            Output::Peers(entries) => self.keep_peers(&serving.service, entries),
            Output::Began(view) => {
                let members: Vec<&str> = view.members.iter().map(|it| it.name.as_str()).collect();
                let (epoch, members) = (view.epoch.0, members.join(", "));
                let past = serving.service.membership().and_then(|it| it.history().last());
                let cause = past.map_or("", |past| past.cause.as_str());
                tracing::info!(epoch, %members, "a view begins: {cause}");
                serving.seats = self.links.present();
                self.record_view(&serving.view, &view);
                self.metrics.begin_view();
                serving.view = view;
                *sent_to = u64::MAX;
                self.is_excluded.store(false, Ordering::SeqCst);
                self.readiness.notify_waiters();
            }
            Output::Out(why) => {
                tracing::warn!(%why, "the group goes on without this node; it joins again");
                self.links.retain(|_| false);
                self.readiness.notify_waiters();
                self.losses.notify_waiters();
            }
            Output::LostDirectly => self.losses.notify_waiters(),
            Output::Left => {
                self.has_left.store(true, Ordering::SeqCst);
                self.readiness.notify_waiters();
            }
            Output::Notice(owner, notice) => {
                if let Notice::Over(_) = &notice {
                    hold(&self.opened).remove(owner);
                }
                if let Notice::Refused { why, .. } = &notice {
                    self.metrics.reject(why.code());
                }
                if let Some(outbox) = hold(&self.outboxes).get(&owner) {
                    outbox.push(crate::native::message(notice));
                }
            }
            Output::Settled(id, result) => {
                self.count_refusal(&result);
                let mut programs = hold(&self.programs);
                let program = programs.entry(id).or_default();
                program.result = Some(result);
                woken.extend(program.waker.take());
            }
            Output::Lost(id) => {
                hold(&self.programs).entry(id).or_default().is_lost = true;
                self.losses.notify_waiters();
            }
            Output::LostAt(place) => self.lose_at(place),
            Output::Obeyed(asker, result) => self.askers.tell_obeyed(asker, result),
            Output::Kicked(by) => {
                tracing::warn!(%by, "this node was told to leave the view at once");
                let (epoch, identity) = (epoch.0, Some(by));
                self.record(Record { epoch, what: "kicked", identity, ..Record::default() });
            }
            Output::Page(asker, page) => self.askers.tell_page(asker, page),
            Output::Picture(asker, result) => self.askers.tell_picture(asker, result),
            Output::Links(asker, result) => self.askers.tell_links(asker, result),
            Output::Ready => {
                tracing::info!("locks are granted");
                self.readiness.notify_waiters();
            }
            Output::Expelled(why) => {
                tracing::error!(why, "this node grants nothing");
                self.readiness.notify_waiters();
            }
            Output::Suspected(member) => {
                let member = &serving.view.members[member].name;
                tracing::warn!(%member, "does not answer, and is taken for crashed");
            }
            Output::Excluded(by) => {
                let by = &serving.view.members[by].name;
                tracing::error!(%by, "this node is taken for crashed; its locks in namespaces with robust-k are lost");
                self.is_excluded.store(true, Ordering::SeqCst);
                self.losses.notify_waiters();
            }
            Output::Anomaly(what) => self.note(what),
            Output::Durable(asker, result) => {
                self.count_refusal(&result);
                self.others.settle(asker, &result);
                self.askers.tell_durable(asker, result);
            }
            Output::Unlocked(asker, result) => {
                self.count_refusal(&result);
                self.others.settle(asker, &result);
                self.askers.tell_durable(asker, result);
            }
            Output::Fence(asker, result) => self.askers.tell_fence(asker, result),
            Output::Timed(asker, result) => {
                self.count_refusal(&result);
                self.askers.tell_timed(asker, result);
            }
        }
    }

    pub(super) fn count_refusal<T>(&self, result: &Result<T, Refusal>) {
        if let Err(why) = result {
            self.metrics.reject(why.code());
        }
    }

    /// Links are to be kept to these members, and to no others.
    fn keep_peers(&self, service: &Service, entries: Vec<Entry>) {
        let Some(membership) = service.membership() else { return };
        let own = membership.run();
        let record = membership.record();
        // Whoever joined later calls; whoever is outside calls everybody.
        let place = record.and_then(|it| it.members.iter().position(|entry| entry.run() == own));
        let called = place.unwrap_or(entries.len());
        self.peers.send_replace(Peers { own, entries, called });
    }

    /// The member begins to join its group.
    pub(crate) fn begin(&self) {
        self.serve(|service, parts, out| service.wake(parts, out));
    }

    /// The registry has answered, or not.
    pub(crate) fn answered(&self, number: u64, result: Result<Answer, Trouble>) {
        self.serve(|service, parts, out| service.answered(number, result, parts, out));
    }

    /// The registry tells of a change.
    pub(crate) fn hear_word(&self, word: &Word) {
        self.serve(|service, parts, out| service.hear_word(word, parts, out));
    }

    /// The registry tells that a durable hold was written or released.
    pub(crate) fn hold_changed(&self, key: &str, at: Revision) {
        let keys = [(key.to_string(), at)];
        self.serve(|service, parts, out| service.holds_changed(&keys, parts, out));
    }

    /// A link may have come or gone. How it is counts, and not who says so first.
    pub(crate) fn look_at(&self, link: &Link) {
        self.serve(|service, parts, out| service.link(&link.run, link.is_up(), parts, out));
    }

    /// What was said over a link to a run of another member is lost: if it is in the view, the view is of
    /// no use any more.
    pub(crate) fn forgotten(&self, run: &Run) {
        self.serve(|service, parts, out| {
            service.link(run, false, parts, out);
            let is_in_view =
                service.membership().and_then(|it| it.record()).is_some_and(|it| it.has(run));
            if is_in_view {
                let cause = Cause::Recovered(self.shape.own().name.clone());
                service.renew_view(cause, parts, out);
            }
        });
    }

    /// The member leaves its group; whoever is inside may finish within this time.
    pub(crate) fn depart(&self, how: Leaving, drain: Duration) {
        self.serve(|service, parts, out| service.depart(how, drain, parts, out));
    }

    /// Whether nobody is inside any more who could be, of a member that leaves.
    pub(crate) fn is_drained(&self) -> bool {
        hold(&self.serving).service.is_drained()
    }

    /// Waits until the member has left its group.
    pub(crate) async fn left(&self) {
        loop {
            let changed = self.readiness.notified();
            if self.has_left.load(Ordering::SeqCst) {
                return;
            }
            changed.await;
        }
    }

    /// Looks at how the member belongs to its group.
    pub(crate) fn with_membership<T>(&self, look: impl FnOnce(&Membership) -> T) -> Option<T> {
        hold(&self.serving).service.membership().map(look)
    }

    /// What a node that wants to join the group has to know of it.
    pub(crate) fn describe(&self) -> Description {
        let members = self.with_membership(|membership| membership.roster().to_vec());
        // Every node has this one without being told.
        let told = |namespace: &&Namespace| namespace.pattern != GIT_TURNS;
        Description {
            group: self.group.clone(),
            members: members.unwrap_or_default(),
            namespaces: self.shape.namespaces.iter().filter(told).cloned().collect(),
            lease: self.lease,
            registry: self.registry_kind,
        }
    }

    /// The notices of a session go there from now on. Returns where they went before.
    pub(crate) fn attach(&self, owner: Owner, outbox: Arc<Outbox>) -> Option<Arc<Outbox>> {
        hold(&self.outboxes).insert(owner, outbox)
    }

    /// A connection is gone, and with it where the notices of a session went, unless the client has
    /// come back over another connection.
    pub(crate) fn detach(&self, owner: Owner, outbox: &Arc<Outbox>) {
        let mut outboxes = hold(&self.outboxes);
        if !outboxes.get(&owner).is_some_and(|present| Arc::ptr_eq(present, outbox)) {
            return;
        }
        outboxes.remove(&owner);
        drop(outboxes);
        self.serve(|service, parts, out| service.disconnect(owner, parts, out));
    }

    /// How this member is doing. Its locks are looked at shard by shard, and before the service is asked: where
    /// there are very many, nobody waits for longer than one shard takes.
    pub(crate) fn status(&self) -> Status {
        let tally = self.tally();
        self.with_health(|health| hold(&self.serving).service.status(health, tally, clock::now()))
    }

    /// How this member stands in its group: as much of it as can be told without a look at every lock.
    pub(crate) fn node_state(&self) -> NodeState {
        self.with_health(|health| hold(&self.serving).service.node_state(health, clock::now()))
    }

    /// Tells what is known of the member beside its service.
    fn with_health<T>(&self, tell: impl FnOnce(Health<'_>) -> T) -> T {
        let now = clock::now();
        let all = self.links.all();
        let mut links = |name: &str| {
            // Of several runs the newest counts.
            let link = all.iter().rev().find(|link| link.run.name == name);
            link.map_or(LinkStatus::Connecting, |link| link_status(link.health(), now))
        };
        let anomalies = self.anomalies.load(Ordering::Relaxed);
        let registry = hold(&self.registry).clone();
        let registry = registry.map(|registry| registry_status(registry.health()));
        let health = Health { group: &self.group, links: &mut links, anomalies, registry };
        tell(health)
    }
}

/// Puts a message behind those for a member.
fn send(serving: &Serving, member: usize, message: PeerMessage<'_>, sent_to: &mut u64) {
    let Some(Some(link)) = serving.seats.get(member) else { return };
    match link.push(message) {
        Ok(()) => *sent_to |= 1 << member,
        Err(error) => tracing::error!(%error, "a message is too long to be sent"),
    }
}

fn registry_status(health: catraca_registry::Health) -> RegistryStatus {
    let catraca_registry::Health { place, leader, voters, missing, trouble } = health;
    RegistryStatus { place, leader, voters, missing, trouble }
}

fn link_status(health: LinkHealth, now: Time) -> LinkStatus {
    match health {
        LinkHealth::Never => LinkStatus::Connecting,
        LinkHealth::Up(since) => LinkStatus::Up(now.millis_since(since)),
        LinkHealth::Down(since, why) => LinkStatus::Down(now.millis_since(since), why),
        LinkHealth::Refused(why) => LinkStatus::Refused(why),
    }
}
