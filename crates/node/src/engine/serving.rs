//! The service of one member: its inputs, what it asks for in return, sessions, lists and status.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use catraca_client::clock;
use catraca_group::{
    Health, LinkStatus, Output, Owner, Page, PeerMessage, Query, Service, Status, Time,
};
use tokio::sync::oneshot;

use super::Engine;
use super::parts::Parts;
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
        let mut service = hold(&self.service);
        let done = input(&mut service, &mut parts, &mut out);
        for output in out {
            self.carry_out(output, &mut parts.sent_to, &mut woken);
        }
        drop(service);
        self.send_departing();
        self.links.flush(parts.sent_to);
        woken.into_iter().chain(parts.woken).for_each(Waker::wake);
        for what in parts.anomalies {
            self.note(what);
        }
        done
    }

    /// Does what the service asks for. This is under its mutex, so that everybody is told in the
    /// order in which things happened.
    fn carry_out(&self, output: Output, sent_to: &mut u64, woken: &mut Vec<Waker>) {
        let epoch = self.view.epoch;
        match output {
            Output::Ask(member, number, question) => {
                self.send(member, PeerMessage::Ask { epoch, number, question }, sent_to);
            }
            Output::Answer(member, number, answer) => {
                self.send(member, PeerMessage::Answer { epoch, number, answer }, sent_to);
            }
            Output::Detect(member, body) => {
                self.send(member, PeerMessage::Detector { epoch, body: &body }, sent_to);
            }
            Output::Notice(owner, notice) => {
                if let Some(outbox) = hold(&self.outboxes).get(&owner) {
                    outbox.push(crate::native::message(notice));
                }
            }
            Output::Settled(id, result) => {
                let mut programs = hold(&self.programs);
                let program = programs.entry(id).or_default();
                program.result = Some(result);
                woken.extend(program.waker.take());
            }
            Output::Lost(id) => {
                hold(&self.programs).entry(id).or_default().is_lost = true;
                self.losses.notify_waiters();
            }
            Output::Page(asker, page) => {
                if let Some(waiting) = hold(&self.pages).remove(&asker) {
                    // Whoever asked may be gone.
                    let _ = waiting.send(page);
                }
            }
            Output::Ready => {
                tracing::info!("all members have been connected: locks are granted");
                self.is_ready.store(true, Ordering::Release);
                self.readiness.notify_waiters();
            }
            Output::Expelled(why) => {
                tracing::error!(why, "this node grants nothing");
                self.readiness.notify_waiters();
            }
            Output::Suspected(member) => {
                let member = &self.view.members[member].name;
                tracing::warn!(%member, "does not answer, and is taken for crashed");
            }
            Output::Excluded(by) => {
                let by = &self.view.members[by].name;
                tracing::error!(%by, "this node is taken for crashed; its locks in namespaces with robust-k are lost");
                self.is_excluded.store(true, Ordering::SeqCst);
                self.losses.notify_waiters();
            }
            Output::Anomaly(what) => self.note(what),
            // Of members whose group changes.
            Output::Transaction(..)
            | Output::Peers(_)
            | Output::View(..)
            | Output::Began(_)
            | Output::LostDirectly
            | Output::Durable(..)
            | Output::Unlocked(..)
            | Output::Out(_)
            | Output::Left => {}
        }
    }

    /// Puts a message behind those for a member.
    fn send(&self, member: usize, message: PeerMessage<'_>, sent_to: &mut u64) {
        let Some(link) = self.links.to(member) else { return };
        match link.push(message) {
            Ok(()) => *sent_to |= 1 << member,
            Err(error) => tracing::error!(%error, "a message is too long to be sent"),
        }
    }

    /// There is a new connection to another member.
    pub(crate) fn connected(&self, member: usize, incarnation: u64) {
        self.serve(|service, parts, out| service.link_up(member, incarnation, parts, out));
    }

    /// The connection to another member is gone.
    pub(crate) fn disconnected(&self, member: usize) {
        self.serve(|service, parts, out| service.link_down(member, parts, out));
    }

    /// Another member has said that this one does not belong to the group any more.
    pub(crate) fn expel(&self, why: &str) {
        self.serve(|service, parts, out| service.expel(why, parts, out));
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

    /// Asks for a page of who holds and who waits.
    pub(crate) fn list(&self, query: Query) -> oneshot::Receiver<Page> {
        let asker = self.last_page.fetch_add(1, Ordering::Relaxed);
        let (tell, page) = oneshot::channel();
        hold(&self.pages).insert(asker, tell);
        self.serve(|service, parts, out| service.list(asker, query, parts, out));
        page
    }

    /// How this member is doing.
    pub(crate) fn status(&self) -> Status {
        let now = clock::now();
        let mut links = |member: usize| {
            let health = self.links.to(member).map(Link::health);
            health.map_or(LinkStatus::Itself, |health| link_status(health, now))
        };
        let anomalies = self.anomalies.load(Ordering::Relaxed);
        let health = Health { group: &self.group, links: &mut links, anomalies };
        self.serve(|service, parts, _| service.status(health, parts))
    }
}

fn link_status(health: LinkHealth, now: Time) -> LinkStatus {
    match health {
        LinkHealth::Never => LinkStatus::Connecting,
        LinkHealth::Up(since) => LinkStatus::Up(now.millis_since(since)),
        LinkHealth::Down(since, why) => LinkStatus::Down(now.millis_since(since), why),
        LinkHealth::Refused(why) => LinkStatus::Refused(why),
    }
}
