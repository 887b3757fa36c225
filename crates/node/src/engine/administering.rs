//! What whoever administers a group asks of a node: ending holds by force, sending members away.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catraca_client::clock;
use catraca_client::protocol::{ForcedHold, RosterChange};
use catraca_group::{
    Force, Line, MOST_LINES, Order, Page, Place, Query, Refusal, Run, Selection, Target, Time,
    Unlock,
};

use super::Engine;
use super::askers::Asker;
use crate::audit::{Record, epoch_of};
use crate::mutex::hold;

/// So many may administer at a time: each of them may have to wait for a lease.
pub(crate) const MOST_AT_A_TIME: usize = 64;
/// What could not be done is tried again after this time.
const AGAIN: Duration = Duration::from_millis(100);
/// Beside two leases, everything that is asked of other members takes no longer.
const SLACK: Duration = Duration::from_secs(10);

/// What callers hold that have waited for their tickets themselves, and is being ended by force.
#[derive(Default)]
pub(super) struct Forced {
    /// Looked at whenever one of them looks whether it is lost.
    is_any: AtomicBool,
    places: Mutex<HashSet<Place>>,
}

impl Engine {
    /// What is held at `place` is being ended by force.
    pub(super) fn lose_at(&self, place: Place) {
        hold(&self.forced.places).insert(place);
        self.forced.is_any.store(true, Ordering::SeqCst);
        self.losses.notify_waiters();
    }

    /// Whether what is held at `place` is being ended by force.
    #[inline]
    pub(crate) fn is_forced(&self, place: Place) -> bool {
        self.forced.is_any.load(Ordering::SeqCst) && hold(&self.forced.places).contains(&place)
    }

    /// Nothing is held at `place` any more.
    #[inline]
    pub(crate) fn forget_forced(&self, place: Place) {
        if self.forced.is_any.load(Ordering::Relaxed) {
            let mut places = hold(&self.forced.places);
            places.remove(&place);
            self.forced.is_any.store(!places.is_empty(), Ordering::SeqCst);
        }
    }

    /// Has a member carry out an order, and says whether there was something to do.
    fn order(&self, member: &str, order: Order) -> impl Future<Output = Result<bool, Refusal>> {
        let mut waiting = self.wait(Asker::Order);
        let asker = waiting.number;
        self.serve(|service, parts, out| service.order(asker, member, order, parts, out));
        async move { waiting.answer().await? }
    }

    /// Ends whatever holds `name`, at whichever member; of several holds only those with these fences, if
    /// some are given. Returns what has ended when all of it has. Nobody is meant who gets the lock
    /// meanwhile. The audit log keeps the note, which may be empty.
    pub(crate) async fn force_release(
        &self,
        name: &str,
        fences: &[u64],
        by: &str,
        note: &str,
    ) -> Result<Vec<ForcedHold>, Refusal> {
        let _turn = self.administering.try_acquire().map_err(|_| Refusal::Busy)?;
        let limit = clock::now() + self.lease * 2 + SLACK;
        let meant = self.holders(name, fences).await?;
        if meant.is_empty() {
            return Err(Refusal::NoSuchHold(name.to_string()));
        }
        let mut left: Vec<&Line> = meant.iter().collect();
        loop {
            let failed = self.end_all(&left, by).await;
            let Some(why) = failed else { break };
            if clock::now() > limit {
                return Err(why);
            }
            // A view may have begun meanwhile, and holds may be elsewhere.
            tokio::time::sleep(AGAIN).await;
            if let Ok(now) = self.holders(name, fences).await {
                left.retain(|line| now.iter().any(|it| it.fence == line.fence));
            }
        }
        let forced: Vec<ForcedHold> = meant.iter().map(forced_hold).collect();
        for hold in &forced {
            let ForcedHold { name, fence, member, label, .. } = hold;
            tracing::warn!(%name, fence, %member, %label, %by, note, "released by force");
            let reason = if note.is_empty() { String::new() } else { format!(": {note}") };
            self.record(Record {
                epoch: epoch_of(*fence),
                what: "force-release",
                name: Some(name.clone()),
                fence: Some(*fence),
                who: Some(label.clone()),
                identity: Some(by.to_string()),
                detail: Some(format!("at member {member}{reason}")),
                ..Record::default()
            });
        }
        Ok(forced)
    }

    /// Who holds `name` now, of those with these fences, if some are given.
    async fn holders(&self, name: &str, fences: &[u64]) -> Result<Vec<Line>, Refusal> {
        let names = Selection::Name(name.to_string());
        let limit = MOST_LINES as u32;
        let query = Query { whole_group: true, names, limit, ..Query::default() };
        let Page { lines, silent, .. } = self.list(query).await?;
        let is_meant = |line: &Line| {
            line.fence.is_some_and(|fence| fences.is_empty() || fences.contains(&fence))
        };
        let holders: Vec<Line> = lines.into_iter().filter(is_meant).collect();
        match silent.into_iter().next() {
            // It may be there.
            Some(member) if holders.is_empty() => Err(Refusal::Silent(member)),
            _ => Ok(holders),
        }
    }

    /// Ends these holds. Returns why one of them may not have ended.
    async fn end_all(&self, lines: &[&Line], by: &str) -> Option<Refusal> {
        let mut failed = None;
        let mut orders = Vec::new();
        for line in lines {
            let (name, fence) = (line.key.name.clone(), line.fence.unwrap_or_default());
            match &line.durable {
                Some(durable) => {
                    let unlock = Unlock { target: Target::Id(durable.id), owner: None };
                    match self.release_durable(unlock, by).await {
                        Ok(_) | Err(Refusal::NoSuchHold(_)) => {}
                        Err(why) => failed = Some(why),
                    }
                }
                None => {
                    let force = Force { name, fence, by: by.to_string() };
                    orders.push(self.order(&line.key.node, Order::Force(force)));
                }
            }
        }
        for order in orders {
            if let Err(why) = order.await {
                failed = Some(why);
            }
        }
        failed
    }

    /// Has a member leave the view at once, and returns when it is out of it: one that does not answer is
    /// when its lease is over.
    pub(crate) async fn kick(&self, member: &str, by: &str) -> Result<(), String> {
        let busy = |_| Refusal::Busy.to_string();
        let _turn = self.administering.try_acquire().map_err(busy)?;
        let Some(run) = self.run_in_view(member) else {
            let names = self.with_membership(|it| it.record().map(|it| it.members.clone()));
            let names = names.flatten().unwrap_or_default();
            let names: Vec<&str> = names.iter().map(|entry| entry.member.name.as_str()).collect();
            let names = names.join(", ");
            return Err(format!("there is no member '{member}' in the view, only: {names}"));
        };
        tracing::warn!(%member, %by, "a member is told to leave the view at once");
        self.record(Record {
            epoch: self.epoch(),
            what: "kick",
            name: Some(member.to_string()),
            identity: Some(by.to_string()),
            ..Record::default()
        });
        let told = self.order(member, Order::Leave(by.to_string())).await;
        if run.name == self.shape.own().name {
            return told.map(drop).map_err(|why| why.to_string());
        }
        let limit: Time = clock::now() + self.lease * 2 + SLACK;
        while self.run_in_view(member).as_ref() == Some(&run) {
            if clock::now() > limit {
                return Err(format!(
                    "member '{member}' renews its lease, but is not heard here; ask another node"
                ));
            }
            tokio::time::sleep(AGAIN).await;
        }
        Ok(())
    }

    /// Changes who belongs to the group, on behalf of `by`. An error says why not.
    pub(crate) async fn change_roster(
        &self,
        change: RosterChange,
        by: String,
    ) -> Result<(), String> {
        let busy = |_| Refusal::Busy.to_string();
        let _turn = self.administering.try_acquire().map_err(busy)?;
        let (what, name) = match &change {
            RosterChange::Add(member) => ("added", member.name.clone()),
            RosterChange::Remove(name) => ("removed", name.clone()),
        };
        crate::registry::change_roster(self, change).await?;
        self.record(Record {
            epoch: self.epoch(),
            what: "roster changed",
            name: Some(name),
            identity: Some(by),
            detail: Some(what.to_string()),
            ..Record::default()
        });
        Ok(())
    }

    /// Which run of a member is in the view, as far as this node knows.
    fn run_in_view(&self, member: &str) -> Option<Run> {
        let run = |record: &catraca_group::ViewRecord| Some(record.entry(member)?.run());
        self.with_membership(|it| it.record().and_then(run)).flatten()
    }
}

fn forced_hold(line: &Line) -> ForcedHold {
    let owner = line.durable.as_ref().map(|durable| durable.owner.clone());
    ForcedHold {
        name: line.key.name.clone(),
        fence: line.fence.unwrap_or_default(),
        member: line.key.node.clone(),
        is_durable: owner.is_some(),
        label: owner.unwrap_or_else(|| line.label.clone()),
    }
}

#[cfg(test)]
mod tests;
