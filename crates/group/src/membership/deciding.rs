//! What a member does next, given what it knows of the registry, the others and the time.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::reach::largest_connected;
use super::record::{beats, decode, encode};
use super::{
    Beat, Cause, Directive, Entry, Heard, Leaving, Membership, Presence, Purpose, ROSTER, Roster,
    VIEW, ViewRecord, beat_key,
};
use crate::registry::{Answer, Guard, Revision, Txn};
use crate::time::Time;
use crate::view::{Epoch, MOST_MEMBERS};

impl Membership {
    /// Takes in what an answer of the registry shows.
    pub(super) fn take_in(
        &mut self,
        purpose: &Purpose,
        sent: Time,
        answer: &Answer,
        now: Time,
        out: &mut Vec<Directive>,
    ) {
        self.obstacle = None;
        // Beats were missed here, not elsewhere. Nobody is taken for lost because of that.
        let was_away = self.is_away(now);
        self.answered_at = Some(self.answered_at.map_or(now, |last| last.max(now)));
        if *purpose == Purpose::Beat && !answer.applied {
            return self.be_out("it did not renew its lease in time", out);
        }
        if answer.revision >= self.revision {
            self.revision = answer.revision;
            self.hear_beats(answer, was_away, self.rules.heard_at(sent, now));
            self.see_roster(answer);
            self.see_view(answer, now, out);
        }
        match purpose {
            // These two write the own beat.
            Purpose::Beat | Purpose::Join if answer.applied => self.prolong(sent, now, out),
            Purpose::Join | Purpose::Propose if !answer.applied => {
                // Somebody else was faster. What the answer shows leads to another proposal.
                self.retry_at = now + self.pause() / 10;
            }
            Purpose::Holds(epoch) => self.see_holds(*epoch, answer, out),
            _ => {}
        }
    }

    /// Whether the registry has not answered for long.
    fn is_away(&self, now: Time) -> bool {
        let long = self.settings.lease.ttl / 2;
        self.answered_at.is_none_or(|last| now >= last + long)
    }

    /// Every beat that is new restarts the stopwatch of its member.
    fn hear_beats(&mut self, answer: &Answer, was_away: bool, now: Time) {
        let before = core::mem::take(&mut self.beats);
        for (name, _, at, beat) in beats(&answer.state) {
            let earlier = before.get(name);
            // It may have been told of a newer one than the answer has.
            let known = earlier.filter(|heard| heard.at >= at);
            let at = known.map_or(at, |heard| heard.at);
            let since = known.filter(|_| !was_away).map_or(now, |heard| heard.since);
            let moved = match known {
                // Nobody can say when that was.
                _ if was_away => earlier.map_or(Time(0), |heard| heard.moved),
                Some(known) => known.moved,
                None => now,
            };
            let unreached = beat.map_or_else(Vec::new, |beat: Beat| beat.unreached);
            self.beats.insert(name.into(), Heard { at, since, moved, unreached });
        }
    }

    /// The registry tells of a beat before it is read: the stopwatch runs from now on, and not only from
    /// when this member beats itself.
    pub(super) fn hear_beat(&mut self, name: &str, at: Revision, now: Time) {
        let is_away = self.is_away(now);
        if let Some(heard) = self.beats.get_mut(name).filter(|heard| heard.at < at) {
            (heard.at, heard.since) = (at, now);
            if !is_away {
                heard.moved = now;
            }
        }
    }

    fn see_roster(&mut self, answer: &Answer) {
        let item = answer.state.get(ROSTER);
        let known = self.roster.as_ref().map(|(at, _)| *at);
        if item.map(|item| item.at) != known {
            self.roster = Roster::of(answer);
        }
    }

    /// Finds out whether this member is in the view, and whether there is a new one.
    fn see_view(&mut self, answer: &Answer, now: Time, out: &mut Vec<Directive>) {
        let Some(item) = answer.state.get(VIEW) else {
            self.view = None;
            return;
        };
        let record = decode::<ViewRecord>(&item.value);
        self.is_unreadable = record.is_none();
        let Some(record) = record else {
            self.obstacle = Some("the registry was written by another release".into());
            return;
        };
        let me = self.run();
        let own = beats(&answer.state).find(|(name, ..)| *name == me.name);
        let born = own.and_then(|(_, born, _, beat)| {
            beat.filter(|beat| beat.incarnation == me.incarnation).map(|_| born)
        });
        let is_new = self.view.as_ref().is_none_or(|(at, _)| *at != item.at);
        if is_new {
            self.view = Some((item.at, record.into()));
            self.tell_peers(out);
            self.note_awaited(now);
        }
        let is_in = self.record().is_some_and(|record| record.has(&me));
        match (&self.presence, born) {
            (Presence::Outside, Some(born)) if is_in => {
                self.presence = Presence::Inside(born);
                self.was_registered = true;
                self.beat_at = now;
            }
            (Presence::Inside(_), None) => {
                return self.be_out("the group went on without it", out);
            }
            _ => {}
        }
        if matches!(self.presence, Presence::Inside(_)) {
            self.begin_change(now, out);
            self.see_mark(out);
        }
    }

    /// The driver keeps links to the other members of the view.
    fn tell_peers(&self, out: &mut Vec<Directive>) {
        let own = &self.settings.member.name;
        let others = self.record().map_or(&[][..], |record| &record.members);
        let others = others.iter().filter(|entry| entry.member.name != *own);
        out.push(Directive::Peers(others.cloned().collect()));
    }

    /// Keeps in mind which members of the view are not connected, and since when.
    pub(super) fn note_awaited(&mut self, now: Time) {
        let before = core::mem::take(&mut self.awaited);
        let Some((_, record)) = &self.view else { return };
        let own = &self.settings.member.name;
        for entry in record.members.iter().filter(|entry| entry.member.name != *own) {
            let run = entry.run();
            if !self.reaches(&run) {
                let since = before.get(&run).copied().unwrap_or(now);
                self.awaited.insert(run, since);
            }
        }
    }

    /// Whether the others ask this member to leave, or it was taken off the roster.
    fn see_mark(&mut self, out: &mut Vec<Directive>) {
        let name = &self.settings.member.name;
        let entry = self.record().and_then(|record| record.entry(name));
        let is_marked = entry.is_some_and(|entry| entry.is_leaving);
        let is_removed = self.roster.as_ref().is_some_and(|(_, roster)| !roster.has(name));
        if (is_marked || is_removed) && !core::mem::replace(&mut self.was_asked_to_leave, true) {
            out.push(Directive::MustLeave);
        }
    }

    /// A beat was answered: the lease lasts longer.
    fn prolong(&mut self, sent: Time, now: Time, out: &mut Vec<Directive>) {
        self.lapse_if_late(now, out);
        let until = self.rules.valid_until(self.settings.lease, sent, now);
        if until > self.valid_until {
            self.valid_until = until;
            out.push(Directive::Valid(until));
        }
    }

    /// If the lease is over, what is held here is lost, and the present view is of no use here: its
    /// algorithms have stopped. If the member is not excluded, another view makes it useful again.
    fn lapse_if_late(&mut self, now: Time, out: &mut Vec<Directive>) {
        if self.valid_until > Time(0) && now >= self.valid_until {
            self.stop(out);
        }
    }

    /// Everything stops here, if it has not yet.
    pub(super) fn stop(&mut self, out: &mut Vec<Directive>) {
        if !core::mem::replace(&mut self.has_lapsed, true) {
            // First of all nothing moves any more: what is given up goes to nobody in this view.
            if let Some(epoch) = self.active.take() {
                out.push(Directive::Freeze(epoch));
            }
            out.push(Directive::Lapsed);
        }
    }

    /// The group goes on without this member. It comes back as another one, unless it has left for
    /// good.
    fn be_out(&mut self, why: &str, out: &mut Vec<Directive>) {
        self.leave_view();
        self.incarnation += 1;
        if self.leaving.is_some_and(Leaving::is_final) {
            self.presence = Presence::Gone;
            return out.push(Directive::Left);
        }
        let why = match self.leaving.take() {
            Some(_) => "it does not reach all of the others",
            None => why,
        };
        out.push(Directive::Out(why.into()));
        // Links belong to incarnations, so all of them are made anew.
        self.tell_peers(out);
    }

    /// Nothing of the view counts here any more.
    fn leave_view(&mut self) {
        self.presence = Presence::Outside;
        self.valid_until = Time(0);
        self.beat_at = Time(u64::MAX);
        self.has_lapsed = false;
        self.active = None;
        self.change = None;
        self.wish = None;
        self.was_asked_to_leave = false;
        self.proposal = None;
        self.asks.clear();
        self.links.clear();
        self.read_at = Time(0);
    }

    /// Does whatever is due.
    pub(super) fn decide(&mut self, now: Time, out: &mut Vec<Directive>) {
        match self.presence {
            Presence::Gone => return,
            Presence::Outside => {}
            Presence::Inside(born) => {
                self.lapse_if_late(now, out);
                self.activate_if_ready(now, out);
                if now >= self.beat_at {
                    self.beat(born, now, out);
                }
            }
        }
        if now >= self.retry_at && self.answered_at.is_some() && !self.is_unreadable {
            self.read_holds_if_due(now, out);
            if self.proposal.is_none() {
                self.propose(now, out);
            }
        }
        self.read_if_due(now, out);
        self.set_alarm(now, out);
    }

    fn beat(&mut self, born: Revision, now: Time, out: &mut Vec<Directive>) {
        self.beat_at = now + self.settings.lease.beat_interval();
        let key = beat_key(&self.settings.member.name);
        let value = encode(&self.own_beat(now));
        let mut txn = Txn::default().put(key.clone(), value);
        if self.rules.guards_beats() {
            txn = txn.given(Guard::Born(key, born));
        }
        self.ask(Purpose::Beat, txn, now, out);
    }

    fn own_beat(&mut self, now: Time) -> Beat {
        self.last_beat += 1;
        let ttl = self.settings.lease.ttl;
        let unreached = self.awaited.iter().filter(|(_, since)| now >= **since + ttl);
        Beat {
            incarnation: self.incarnation,
            number: self.last_beat,
            unreached: unreached.map(|(run, _)| run.clone()).collect(),
        }
    }

    /// Proposes a change of the view, if one is due.
    fn propose(&mut self, now: Time, out: &mut Vec<Directive>) {
        let proposed = |txn| (Purpose::Propose, txn);
        let proposal = match self.presence {
            Presence::Gone => None,
            Presence::Outside => {
                let join = |txn| (Purpose::Join, txn);
                self.exclusion(now).map(proposed).or_else(|| self.joining(now).map(join))
            }
            Presence::Inside(born) => self
                .parting(born)
                .or_else(|| self.exclusion(now))
                .or_else(|| self.marking(now))
                .or_else(|| self.renewal(born, now))
                .map(proposed),
        };
        if let Some((purpose, txn)) = proposal {
            self.proposal = Some(self.ask(purpose, txn, now, out));
        }
    }

    /// The guard and the operation that replace the view.
    fn replacing(&self, record: &ViewRecord) -> Txn {
        let guard = match &self.view {
            Some((at, _)) => Guard::At(VIEW.into(), *at),
            None => Guard::Absent(VIEW.into()),
        };
        Txn::default().given(guard).put(VIEW, encode(record))
    }

    /// Takes out whoever has not been heard of for the length of a lease.
    fn exclusion(&self, now: Time) -> Option<Txn> {
        let (_, record) = self.view.as_ref()?;
        // Whoever has not heard the registry itself has missed beats that are there.
        if self.is_away(now) {
            return None;
        }
        let me = self.run();
        let is_lost = |entry: &&Entry| {
            let heard = self.beats.get(&entry.member.name);
            let is_late =
                |heard: &Heard| self.rules.may_exclude(self.settings.lease, heard.since, now);
            entry.run() != me && heard.is_none_or(is_late)
        };
        let lost: Vec<&Entry> = record.members.iter().filter(is_lost).collect();
        if lost.is_empty() {
            return None;
        }
        let names = lost.iter().map(|entry| entry.member.name.clone()).collect();
        let rest = record.members.iter().filter(|entry| !lost.contains(entry)).cloned().collect();
        let mut txn = self.replacing(&record.next(rest, Cause::Lost(names))?);
        for entry in lost {
            let key = beat_key(&entry.member.name);
            match self.beats.get(&entry.member.name) {
                Some(heard) => {
                    if self.rules.guards_exclusion() {
                        txn = txn.given(Guard::At(key.clone(), heard.at));
                    }
                    txn = txn.delete(key);
                }
                None => txn = txn.given(Guard::Absent(key)),
            }
        }
        Some(txn)
    }

    /// Becomes a member of the next view, if that can be.
    fn joining(&mut self, now: Time) -> Option<Txn> {
        if self.leaving.is_some_and(Leaving::is_final) {
            return None;
        }
        let own = self.settings.member.clone();
        let entry = Entry { member: own, incarnation: self.incarnation, is_leaving: false };
        let name = entry.member.name.clone();
        let record = match &self.view {
            None => ViewRecord {
                epoch: Epoch::FIRST,
                members: vec![entry],
                cause: Cause::Founded(name.clone()),
                configuration: self.settings.configuration(),
            },
            Some((_, record)) => match self.obstacle_to_joining(record) {
                Some(obstacle) => {
                    self.obstacle = Some(obstacle);
                    return None;
                }
                None => {
                    let mut members = record.members.clone();
                    members.retain(|other| other.member.name != name);
                    members.push(entry);
                    let empty = record.members.is_empty();
                    let cause = if empty { Cause::Founded } else { Cause::Joined };
                    record.next(members, cause(name.clone()))?
                }
            },
        };
        let key = beat_key(&name);
        let txn = self.registering(self.replacing(&record));
        let txn = txn.put(key.clone(), encode(&self.own_beat(now)));
        let waits = self.rules.waits_for_predecessor();
        Some(if waits { txn.given(Guard::Absent(key)) } else { txn })
    }

    /// The same transaction, with this member on the roster as it is now.
    fn registering(&self, txn: Txn) -> Txn {
        let own = &self.settings.member;
        let (guard, roster) = match &self.roster {
            Some((at, roster)) => (Guard::At(ROSTER.into(), *at), roster.clone()),
            None => {
                let members = self.settings.roster.clone();
                (Guard::Absent(ROSTER.into()), Roster { members })
            }
        };
        let with = roster.with(own);
        match self.roster.is_some() && with == roster {
            true => txn,
            false => txn.given(guard).put(ROSTER, encode(&with)),
        }
    }

    fn obstacle_to_joining(&self, record: &ViewRecord) -> Option<String> {
        let name = &self.settings.member.name;
        if let Some((_, roster)) = &self.roster
            && !roster.has(name)
            && (!self.settings.may_register || self.was_registered)
        {
            return Some(format!(
                "'{name}' does not belong to the group; add it to the members, or let it join"
            ));
        }
        if record.configuration != self.settings.configuration() {
            let members: Vec<&str> =
                record.members.iter().map(|entry| entry.member.name.as_str()).collect();
            return Some(format!(
                "the namespaces, the detector or the lease here differ from those of {}; make the configurations equal",
                members.join(", ")
            ));
        }
        if record.entry(name).is_some() && self.rules.waits_for_predecessor() {
            return Some(format!(
                "'{name}' is in the group already; this one waits until the lease of that one is over"
            ));
        }
        if record.members.len() >= MOST_MEMBERS {
            return Some(format!("the group has {MOST_MEMBERS} members, and cannot have more"));
        }
        let unreached: Vec<&str> = record
            .members
            .iter()
            .filter(|entry| entry.member.name != *name && !self.reaches(&entry.run()))
            .map(|entry| entry.member.name.as_str())
            .collect();
        (!unreached.is_empty()).then(|| format!("not connected to {} yet", unreached.join(", ")))
    }

    /// Leaves in order.
    fn parting(&self, born: Revision) -> Option<Txn> {
        let how = self.leaving?;
        let (_, record) = self.view.as_ref()?;
        let name = &self.settings.member.name;
        let rest = record.members.iter().filter(|entry| entry.member.name != *name);
        let next = record.next(rest.cloned().collect(), Cause::Left(name.clone()))?;
        let key = beat_key(name);
        let txn = self.replacing(&next).given(Guard::Born(key.clone(), born)).delete(key);
        Some(match &self.roster {
            Some((at, roster)) if how == Leaving::ForEver && roster.has(name) => {
                let rest = encode(&roster.without(name));
                txn.given(Guard::At(ROSTER.into(), *at)).put(ROSTER, rest)
            }
            _ => txn,
        })
    }

    /// Asks those to leave who do not reach all of the others. Only members count that have been heard
    /// lately: one that is lost is excluded, and nobody has to go because of it.
    fn marking(&self, now: Time) -> Option<Txn> {
        let (_, record) = self.view.as_ref()?;
        let staying: Vec<&Entry> =
            record.members.iter().filter(|entry| !entry.is_leaving).collect();
        // Whoever has not reached an earlier run of a member says nothing about the present one.
        let complains = |one: &Entry, of: &Entry| {
            let lately = |heard: &&Heard| now < heard.moved + self.settings.lease.ttl / 2;
            let heard = |entry: &Entry| self.beats.get(&entry.member.name).filter(lately);
            heard(of).and(heard(one)).is_some_and(|heard| heard.unreached.contains(&of.run()))
        };
        let kept =
            largest_connected(staying.len(), |one, other| complains(staying[one], staying[other]));
        if kept.len() == staying.len() || !self.rules.asks_cut_off_to_leave() {
            return None;
        }
        let kept: Vec<&Entry> = kept.into_iter().map(|place| staying[place]).collect();
        let goes = |entry: &Entry| !kept.iter().any(|kept| kept.member.name == entry.member.name);
        let mut txn = if self.rules.lets_cut_off_leave() {
            let mut marked = (**record).clone();
            for entry in &mut marked.members {
                entry.is_leaving |= goes(entry);
            }
            self.replacing(&marked)
        } else {
            let gone: Vec<String> = record
                .members
                .iter()
                .filter(|entry| goes(entry))
                .map(|entry| entry.member.name.clone())
                .collect();
            let rest = kept.iter().map(|&entry| entry.clone()).collect();
            let txn = self.replacing(&record.next(rest, Cause::Lost(gone.clone()))?);
            gone.iter().fold(txn, |txn, name| txn.delete(beat_key(name)))
        };
        for entry in staying {
            if let Some(heard) = self.beats.get(&entry.member.name)
                && !heard.unreached.is_empty()
            {
                txn = txn.given(Guard::At(beat_key(&entry.member.name), heard.at));
            }
        }
        Some(txn)
    }

    /// Asks for another view with the same members: somebody wants one, or the present one is of no use
    /// here any more.
    fn renewal(&mut self, born: Revision, now: Time) -> Option<Txn> {
        let is_under_way = self.change.is_some() && !self.has_lost(self.begun);
        if now >= self.valid_until || is_under_way {
            return None;
        }
        let recovered = || Cause::Recovered(self.settings.member.name.clone());
        let is_of_no_use = self.active.is_none();
        let cause = self.wish.clone().or_else(|| is_of_no_use.then(recovered))?;
        let (_, record) = self.view.as_ref()?;
        let next = record.next(record.members.clone(), cause)?;
        let key = beat_key(&self.settings.member.name);
        Some(self.replacing(&next).given(Guard::Born(key, born)))
    }

    fn is_reading(&self) -> bool {
        self.asks.values().any(|(purpose, _)| *purpose == Purpose::Read)
    }

    /// Reads the registry if it is time.
    fn read_if_due(&mut self, now: Time, out: &mut Vec<Directive>) {
        if now < self.read_at || now < self.retry_at || self.is_reading() {
            return;
        }
        // Members that are inside hear by their beats.
        self.read_at = match self.presence {
            Presence::Inside(_) => Time(u64::MAX),
            _ => now + self.settings.lease.beat_interval(),
        };
        self.ask(Purpose::Read, Txn::read(), now, out);
    }

    /// The next time at which something may be due.
    fn set_alarm(&mut self, now: Time, out: &mut Vec<Directive>) {
        let lease = self.settings.lease;
        // Whoever reads looks again when the answer comes.
        let mut at = match self.is_reading() {
            true => Time(u64::MAX),
            false => self.read_at.max(self.retry_at),
        };
        if let Presence::Inside(_) = self.presence {
            at = at.min(self.beat_at);
            if !self.has_lapsed && self.valid_until > now {
                at = at.min(self.valid_until);
            }
        }
        // Each of these is looked at again when the registry answers.
        for heard in self.beats.values() {
            let end = heard.since + lease.ttl;
            if end > now {
                at = at.min(end);
            }
        }
        if self.proposal.is_none() && self.retry_at > now {
            at = at.min(self.retry_at);
        }
        let at = at.max(Time(now.0 + 1));
        if self.wake_at != Some(at) && at != Time(u64::MAX) {
            self.wake_at = Some(at);
            out.push(Directive::Wake);
        }
    }
}
