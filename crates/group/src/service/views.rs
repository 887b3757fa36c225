//! The service of a member whose group changes: what follows from its lease and from its views.

use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::durable::Durables;
use super::forgetting::Forgetting;
use super::{Asking, Host, Output, Peer, Phase, Service};
use crate::detector::Detector;
use crate::driver::{Ending, Timer};
use crate::lock::Owner;
use crate::membership::{
    Cause, Directive, Entry, Leaving, Membership, Rules, Run, Settings, Sound,
};
use crate::question::{Answer as PeerAnswer, PeerMessage};
use crate::refusal::Refusal;
use crate::registry::{Answer, Trouble, Word};
use crate::request::{Origin, RequestId, State};
use crate::session::{Over, Who};
use crate::shard::{Held, HeldLock};
use crate::time::Time;
use crate::view::{Epoch, View};

/// Messages of views that have not begun here are kept up to so many bytes. If one was too much, its view is of no
/// use here, and another one is asked for.
const MOST_KEPT: usize = 16 << 20;
/// A member that leaves looks so often whether somebody is still inside.
const LOOK: Duration = Duration::from_millis(20);

/// What belongs to a member whose group changes.
#[derive(Clone, Debug, Hash)]
pub(super) struct Views {
    pub(super) membership: Membership,
    /// Messages of views that have not begun here, as bytes.
    kept: Vec<(Run, Epoch, Vec<u8>)>,
    kept_bytes: usize,
    /// The last view of which one was too much.
    overflowed: Option<Epoch>,
    departure: Option<Departure>,
    pub(super) durable: Durables,
    pub(super) forgetting: Forgetting,
}

/// A member that is about to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Departure {
    how: Leaving,
    /// Until then whoever is inside may finish.
    drained_at: Time,
    /// Whether those who were still inside then have been told that they are not any more.
    is_told: bool,
    /// Since then nobody can believe to be inside.
    over_at: Time,
    is_over: bool,
}

impl Service {
    /// A member that is about to join its group.
    pub fn joining(settings: Settings, incarnation: u64, program: Who, now: Time) -> Self {
        let alone = Arc::new(Self::before_any_view(&settings));
        let mut service = Service::new(alone, incarnation, program, now);
        service.phase = Phase::Gathering;
        service.views = Some(Views {
            membership: Membership::new(settings, incarnation),
            kept: Vec::new(),
            kept_bytes: 0,
            overflowed: None,
            departure: None,
            durable: Durables::default(),
            forgetting: Forgetting::default(),
        });
        service
    }

    /// The view of a member that is in none: it knows itself, and how names find their algorithms.
    pub fn before_any_view(settings: &Settings) -> View {
        let Settings { member, namespaces, detector, .. } = settings.clone();
        View::new(Vec::from([member]), 0, namespaces, detector).in_epoch(Epoch(0))
    }

    /// How the member belongs to its group, if that changes.
    pub fn membership(&self) -> Option<&Membership> {
        self.views.as_ref().map(|views| &views.membership)
    }

    /// For how long a client may trust what it is told now: no longer than this member may act, less
    /// what the client's clock may be slower.
    pub fn certain(&self, now: Time) -> Duration {
        match self.membership() {
            Some(membership) if !self.prolongs_nothing() => {
                let left = membership.valid_until().since(now);
                membership.rules().certain_for(membership.lease(), left)
            }
            Some(_) => Duration::ZERO,
            None => Duration::MAX,
        }
    }

    /// The same with a broken rule. Returns the rules that its shards have to follow.
    pub(crate) fn with_rules(&mut self, mutant: &str) -> &'static dyn Rules {
        let Some(views) = &mut self.views else { return &Sound };
        views.membership.mutate(mutant);
        views.membership.rules()
    }

    /// Breaks a rule, by the name of the mutant.
    #[doc(hidden)]
    pub fn break_rule(&mut self, mutant: &str, host: &mut dyn Host) {
        let rules = self.with_rules(mutant);
        host.step_all(&mut |shard, _| shard.follow(rules));
    }

    /// Gives the membership an input, and does what follows.
    pub(super) fn with_membership(
        &mut self,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
        input: impl FnOnce(&mut Membership, Time, &mut Vec<Directive>),
    ) {
        let Some(views) = &mut self.views else { return };
        let mut more = Vec::new();
        input(&mut views.membership, host.now(), &mut more);
        let mut directives = VecDeque::from(more);
        while let Some(directive) = directives.pop_front() {
            let mut more = Vec::new();
            self.follow(directive, &mut more, host, out);
            // What follows from one comes before the next.
            for directive in more.into_iter().rev() {
                directives.push_front(directive);
            }
        }
        self.absorb(host, out);
    }

    /// The member begins, or the time has come.
    pub fn wake(&mut self, host: &mut dyn Host, out: &mut Vec<Output>) {
        self.with_membership(host, out, Membership::wake);
        self.forget_if_due(host, out);
    }

    /// The registry has answered.
    pub fn answered(
        &mut self,
        number: u64,
        result: Result<Answer, Trouble>,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        if let Some(result) = self.answered_durably(number, result, host, out) {
            self.with_membership(host, out, |membership, now, more| {
                membership.answered(number, result, now, more);
            });
        }
    }

    /// A lock has found the lease over when it was about to be granted, and its shard has stopped.
    pub fn withheld(&mut self, host: &mut dyn Host, out: &mut Vec<Output>) {
        self.with_membership(host, out, Membership::lapse);
    }

    /// The registry tells of a change.
    pub fn hear_word(&mut self, word: &Word, host: &mut dyn Host, out: &mut Vec<Output>) {
        self.with_membership(host, out, |membership, now, more| {
            membership.hear_word(word, now, more);
        });
    }

    /// A link to a run of another member has come or gone.
    pub fn link(&mut self, run: &Run, is_up: bool, host: &mut dyn Host, out: &mut Vec<Output>) {
        self.with_membership(host, out, |membership, now, more| {
            membership.link(run, is_up, now, more);
        });
        if let Some(place) = self.place_of(run) {
            self.peers[place] = Peer { incarnation: Some(run.incarnation), is_up };
            if !is_up {
                self.no_answer_from(place, host, out);
            }
        }
    }

    /// Where a run of a member is in the present view.
    fn place_of(&self, run: &Run) -> Option<usize> {
        let record = self.membership()?.record()?;
        let is_here = record.has(run);
        let place = self.view.members.iter().position(|member| member.name == run.name)?;
        (is_here && place != self.view.me).then_some(place)
    }

    /// Another member says something. Returns its place if it speaks to a lock of the present view: that
    /// is for the shard.
    pub fn hear_from(
        &mut self,
        run: &Run,
        message: &PeerMessage<'_>,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) -> Option<usize> {
        let epoch = match message {
            PeerMessage::View(message) => {
                let message = message.clone();
                self.with_membership(host, out, |membership, now, more| {
                    membership.hear(run, message, now, more);
                });
                return None;
            }
            PeerMessage::Step(step) => step.epoch,
            PeerMessage::Aside(_) => return None,
            PeerMessage::Detector { epoch, .. }
            | PeerMessage::Ask { epoch, .. }
            | PeerMessage::Answer { epoch, .. } => *epoch,
        };
        let is_active = self.membership().is_some_and(|it| it.active() == Some(self.view.epoch));
        let tells_apart = self.membership().is_none_or(|it| it.rules().tells_epochs_apart());
        let epoch = if tells_apart { epoch } else { self.view.epoch };
        if epoch > self.view.epoch {
            self.keep(run, epoch, message);
            return None;
        }
        // What was done with a timed hold is as true between two views.
        let is_news = matches!(message, PeerMessage::Answer { answer: PeerAnswer::Timed(_), .. });
        if epoch < self.view.epoch || !(is_active || is_news) {
            return None;
        }
        if self.has_lost(epoch) {
            // Something of its sender may be lost, and links lose nothing: no algorithm may see that. It takes
            // the others for slow until the next view.
            return None;
        }
        let place = self.place_of(run)?;
        match message {
            PeerMessage::Step(_) => Some(place),
            message => {
                self.hear(place, message.clone(), host, out);
                None
            }
        }
    }

    /// Keeps a message until its view begins.
    fn keep(&mut self, run: &Run, epoch: Epoch, message: &PeerMessage<'_>) {
        let Some(views) = &mut self.views else { return };
        let Ok(bytes) = postcard::to_allocvec(message) else { return };
        if views.overflowed >= Some(epoch) || views.kept_bytes + bytes.len() > MOST_KEPT {
            views.overflowed = views.overflowed.max(Some(epoch));
            return;
        }
        views.kept_bytes += bytes.len();
        views.kept.push((run.clone(), epoch, bytes));
    }

    /// Whether a message of this view may have come too early, and was one too much.
    fn has_lost(&self, epoch: Epoch) -> bool {
        self.views.as_ref().is_some_and(|views| views.overflowed >= Some(epoch))
    }

    /// The messages of the view that has just begun, in the order in which they came. The driver
    /// delivers them as if they came now.
    pub fn take_kept(&mut self) -> Vec<(Run, Vec<u8>)> {
        let epoch = self.view.epoch;
        let has_lost = self.has_lost(epoch);
        let Some(views) = &mut self.views else { return Vec::new() };
        let (mut due, mut later) = (Vec::new(), Vec::new());
        for (run, of, bytes) in core::mem::take(&mut views.kept) {
            match of {
                of if of == epoch && has_lost => {}
                of if of == epoch => due.push((run, bytes)),
                of if of > epoch => later.push((run, of, bytes)),
                _ => {}
            }
        }
        views.kept_bytes = later.iter().map(|(_, _, bytes)| bytes.len()).sum();
        views.kept = later;
        due
    }

    fn follow(
        &mut self,
        directive: Directive,
        more: &mut Vec<Directive>,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        match directive {
            Directive::Ask(number, txn) => out.push(Output::Transaction(number, txn)),
            Directive::Wake => {
                let alarm = self.membership().and_then(Membership::alarm);
                let now = host.now();
                host.set_timer(Timer::Membership, alarm.map(|at| at.since(now)));
            }
            Directive::Peers(entries) => out.push(Output::Peers(entries)),
            Directive::Send(run, message) => out.push(Output::View(run, message)),
            Directive::Freeze(_) => {
                let mut held: Vec<HeldLock> = Vec::new();
                let rules = self.membership().map_or(&Sound as &dyn Rules, Membership::rules);
                host.step_all(&mut |shard, _| {
                    if rules.stops_before_reporting() {
                        shard.freeze();
                    }
                    held.extend(shard.held_as(&|request| self.durable_id(request)));
                });
                if !rules.remembers_held_names() {
                    held.clear();
                }
                let now = host.now();
                let orphans = self.orphans(now);
                if let Some(views) = &mut self.views {
                    views.membership.report(held, orphans, now, more);
                }
            }
            Directive::Activate(view, held) => self.begin_view(Arc::from(view), held, host, out),
            Directive::Valid(until) => host.set_validity(until),
            Directive::Lapsed => self.lose_holds(&Refusal::Lapsed, host, out),
            Directive::MustLeave => self.depart(Leaving::ForNow, Duration::ZERO, host, out),
            Directive::Out(why) => self.be_out(&why, host, out),
            Directive::Left => {
                self.phase = Phase::Stopped;
                self.leave_unanswered(out);
                self.leave_timed_unanswered(out);
                out.push(Output::Left);
            }
            Directive::Anomaly(what) => out.push(Output::Anomaly(what)),
        }
    }

    /// A view begins.
    fn begin_view(
        &mut self,
        view: Arc<View>,
        held: Arc<Held>,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let unanswered = self.close_questions(host, out);
        self.view = Arc::clone(&view);
        self.peers = self.known_peers();
        (self.detector, self.excluded_by) = (Detector::of(&view), None);
        let is_first = self.phase == Phase::Gathering;
        if is_first {
            self.phase = Phase::Granting;
            out.push(Output::Ready);
        }
        host.begin_view(&view, &self.runs());
        out.push(Output::Began(Arc::clone(&view)));
        self.adopt_holds(&held, host, out);
        self.take_over(&held, host);
        host.step_all(&mut |shard, outputs| {
            shard.change_view(Arc::clone(&view), Arc::clone(&held), outputs);
        });
        self.protect_all(host, out);
        if let Some(detector) = &mut self.detector {
            let findings = detector.begin(host);
            self.act_on(findings, host, out);
        }
        self.absorb(host, out);
        self.begin_queued(host, out);
        self.ask_again(out);
        for asking in unanswered {
            match asking {
                Asking::Timed(pending) => self.run_again(pending, host, out),
                Asking::Fence(comparison) => self.compare_again(comparison, host, out),
                Asking::List(_)
                | Asking::IsHeld(_)
                | Asking::Order(..)
                | Asking::Anatomy(_)
                | Asking::Links(_) => {}
            }
        }
        self.absorb(host, out);
        if self.has_lost(view.epoch) {
            // What was said in this view is not all here.
            let cause = Cause::Recovered(view.own().name.clone());
            self.renew_view(cause, host, out);
        }
    }

    /// Another view with the same members is wanted.
    pub fn renew_view(&mut self, cause: Cause, host: &mut dyn Host, out: &mut Vec<Output>) {
        self.with_membership(host, out, |membership, now, more| membership.renew(cause, now, more));
    }

    /// Which run of each member of the present view is in it.
    pub(super) fn runs(&self) -> Vec<Run> {
        let record = self.membership().and_then(Membership::record);
        record.map_or_else(Vec::new, |record| record.members.iter().map(Entry::run).collect())
    }

    /// A lock has nearly used up the numbers of its fences in this view. In the next one they begin anew.
    pub fn used_up(&mut self, name: &str, host: &mut dyn Host, out: &mut Vec<Output>) {
        self.renew_view(Cause::UsedUp(name.into()), host, out);
    }

    fn known_peers(&self) -> Vec<Peer> {
        let peer = |member: &crate::Member| {
            let membership = self.membership()?;
            let run = membership.record()?.entry(&member.name)?.run();
            let is_up = membership.reaches(&run);
            Some(Peer { incarnation: Some(run.incarnation), is_up })
        };
        self.view.members.iter().map(|member| peer(member).unwrap_or_default()).collect()
    }

    /// Whoever waits for other members to answer has to ask anew. Returns what is asked again in the next
    /// view.
    fn close_questions(&mut self, host: &mut dyn Host, out: &mut Vec<Output>) -> Vec<Asking> {
        self.close_orders(host, out);
        let is_list = |asking: &Asking| {
            matches!(asking, Asking::List(_) | Asking::Anatomy(_) | Asking::Links(_))
        };
        let lists = self.questions.iter().filter(|(_, asking)| is_list(asking));
        let lists: Vec<u64> = lists.map(|(&number, _)| number).collect();
        for number in lists {
            self.close_question(number, host, out);
        }
        let questions = core::mem::take(&mut self.questions);
        for request in self.requests.values_mut() {
            request.question = None;
        }
        let mut unanswered = Vec::new();
        for (number, mut asking) in questions {
            host.set_timer(Timer::Question(number), None);
            if let Asking::Timed(pending) = &mut asking {
                pending.answers.end(&self.view);
            }
            unanswered.push(asking);
        }
        unanswered
    }

    /// Requests that do not want to wait ask the others anew.
    fn ask_again(&mut self, out: &mut Vec<Output>) {
        let asks = |(_, request): &(&RequestId, &crate::request::Request)| {
            request.refuses
                && request.permits == 1
                && request.question.is_none()
                && matches!(request.state, State::Waiting(_))
        };
        let asking: Vec<RequestId> = self.requests.iter().filter(asks).map(|(&id, _)| id).collect();
        for id in asking {
            self.ask_whether_held(id, out);
        }
    }

    /// Nothing is certain that clients of this member hold: they are told. Durable and timed holds are as
    /// certain as before.
    fn lose_holds(&mut self, why: &Refusal, host: &mut dyn Host, out: &mut Vec<Output>) {
        host.step_all(&mut |shard, outputs| shard.lose_direct_holds(outputs));
        let is_held = |request: &crate::request::Request| matches!(request.state, State::Held(_));
        let held = self.requests.iter().filter(|(_, request)| is_held(request));
        let held: Vec<(RequestId, Origin)> =
            held.map(|(&id, request)| (id, request.origin)).collect();
        for (id, origin) in held {
            match origin {
                Origin::Durable(_) | Origin::Timed(_) => {}
                Origin::Program => {
                    out.push(Output::Lost(id));
                    self.take_out(id, Ending::Lost, host);
                }
                Origin::Session(owner, _) => {
                    self.end(owner, Over::Excluded(why.clone()), host, out);
                }
            }
        }
        out.push(Output::LostDirectly);
    }

    /// The group goes on without this member. Whoever waits here asks anew when it is back.
    fn be_out(&mut self, why: &str, host: &mut dyn Host, out: &mut Vec<Output>) {
        // What is not here any more is somebody else's, or will be: this member passes nothing on.
        host.step_all(&mut |shard, _| shard.freeze());
        self.lose_holds(&Refusal::Lapsed, host, out);
        self.give_up_durable(host, out);
        if let Some(views) = &mut self.views {
            views.kept.clear();
            views.kept_bytes = 0;
            if views.departure.is_some_and(|departure| !departure.how.is_final()) {
                views.departure = None;
            }
        }
        self.give_up_timed(host, out);
        for asking in self.close_questions(host, out) {
            match asking {
                Asking::Timed(pending) => self.end_operation(pending, out),
                Asking::Fence(comparison) => self.end_comparison(comparison, out),
                Asking::List(_)
                | Asking::IsHeld(_)
                | Asking::Order(..)
                | Asking::Anatomy(_)
                | Asking::Links(_) => {}
            }
        }
        for request in self.requests.values_mut() {
            for place in request.places() {
                host.release(place);
            }
            for part in &mut request.parts {
                part.held = None;
            }
            request.state = State::Queued;
        }
        host.step_all(&mut |shard, _| shard.reset());
        self.phase = Phase::Gathering;
        out.push(Output::Out(why.to_string()));
        match self.views.as_ref().and_then(|views| views.departure) {
            // It was about to leave, and does not come back.
            Some(Departure { how, .. }) => {
                self.with_membership(host, out, |membership, now, more| {
                    membership.leave(how, now, more);
                });
            }
            None => self.with_membership(host, out, Membership::wake),
        }
    }

    // Leaving in order.

    /// The member leaves its group. Whoever is inside may finish until `drain` is over; whoever waits is
    /// sent away at once.
    pub fn depart(
        &mut self,
        how: Leaving,
        drain: Duration,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let drained_at = host.now() + drain;
        let Some(views) = &mut self.views else { return };
        let over_at = Time(u64::MAX);
        let departure = Departure { how, drained_at, is_told: false, over_at, is_over: false };
        match &mut views.departure {
            // It may be in more of a hurry now.
            Some(known) if known.how >= how => {
                known.drained_at = known.drained_at.min(drained_at);
                return self.go_on_departing(host, out);
            }
            // What was said about leaving in another way is said anew.
            Some(known) => (known.how, known.is_over) = (how, false),
            None => views.departure = Some(departure),
        }
        let waits = |request: &crate::request::Request| !matches!(request.state, State::Held(_));
        let waiting = self.requests.iter().filter(|(_, request)| waits(request));
        let waiting: Vec<RequestId> = waiting.map(|(&id, _)| id).collect();
        for id in waiting {
            self.refuse(id, Refusal::Leaving, host, out);
        }
        host.step_all(&mut |shard, outputs| shard.refuse_waiters(&Refusal::Leaving, outputs));
        self.go_on_departing(host, out);
    }

    /// Whether the member leaves, and nobody is inside any more.
    pub fn is_drained(&self) -> bool {
        let departure = self.views.as_ref().and_then(|views| views.departure);
        departure.is_some_and(|departure| departure.is_over)
    }

    /// Whether the member is about to leave.
    pub(super) fn is_departing(&self) -> bool {
        self.views.as_ref().is_some_and(|views| views.departure.is_some())
    }

    /// Whether clients are told that they are not inside any more, so that nothing is prolonged.
    pub(super) fn prolongs_nothing(&self) -> bool {
        let departure = self.views.as_ref().and_then(|views| views.departure);
        departure.is_some_and(|departure| departure.is_told)
    }

    /// Takes the next step of leaving, if it is time.
    pub(super) fn go_on_departing(&mut self, host: &mut dyn Host, out: &mut Vec<Output>) {
        let now = host.now();
        let mut inside = false;
        let stays = |id| self.is_kept(id) || self.is_protected(id);
        host.look(&mut |shard| inside |= shard.is_held_by_somebody(&stays));
        let Some(views) = &mut self.views else { return };
        let valid_until = views.membership.valid_until();
        let Some(departure) = &mut views.departure else { return };
        if departure.is_over {
            return;
        }
        if inside && !departure.is_told && now >= departure.drained_at {
            // From now on nothing is prolonged: what clients were told is over then.
            (departure.is_told, departure.over_at) = (true, valid_until);
            out.push(Output::LostDirectly);
            let sessions = self.sessions.iter().filter(|(_, session)| session.timed.is_none());
            let owners: Vec<Owner> = sessions.map(|(&owner, _)| owner).collect();
            for owner in owners {
                out.push(Output::Notice(owner, super::Notice::Over(Over::Stopping)));
            }
            let mut programs = Vec::new();
            for (&id, request) in &self.requests {
                if request.origin == Origin::Program {
                    programs.push(id);
                }
            }
            host.step_all(&mut |shard, outputs| shard.lose_direct_holds(outputs));
            for id in programs {
                out.push(Output::Lost(id));
                self.take_out(id, Ending::Lost, host);
            }
            return self.go_on_departing(host, out);
        }
        let waits = views.membership.rules().waits_until_drained();
        if inside && waits && now < departure.over_at {
            let next = if departure.is_told { departure.over_at } else { departure.drained_at };
            // Callers that wait for their tickets themselves leave without a word to the service.
            let after = next.since(now).min(LOOK);
            return host.set_timer(Timer::Departure, Some(after));
        }
        departure.is_over = true;
        let how = departure.how;
        host.set_timer(Timer::Departure, None);
        self.lose_holds(&Refusal::Leaving, host, out);
        self.end_unprotected(host, out);
        self.with_membership(host, out, |membership, now, more| membership.leave(how, now, more));
    }
}

#[cfg(test)]
mod tests;
