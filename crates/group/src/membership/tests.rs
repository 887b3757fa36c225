use alloc::format;
use alloc::vec;

use super::*;
use crate::registry::Store;

const MILLISECOND: Duration = Duration::from_millis(1);

/// A member, and what its driver would know.
struct Site {
    membership: Membership,
    /// What is held here, and what the shards would report.
    held: Vec<HeldLock>,
    wake_at: Option<Time>,
    active: Option<(View, Arc<Held>)>,
    valid_until: Time,
    peers: Vec<Entry>,
    is_running: bool,
    /// Everything that a test may want to know.
    told: Vec<Directive>,
}

/// A group, its registry and its links. Everything arrives at once.
struct Group {
    store: Store,
    sites: Vec<Site>,
    now: Time,
    /// Pairs of members that are cut off from each other.
    cuts: Vec<(usize, usize)>,
    /// Members that do not reach the registry.
    deaf: Vec<usize>,
    /// Transactions that are carried out, although nobody hears of it.
    unknown: bool,
    /// What is under way, and whether somebody carries it out.
    far: VecDeque<(usize, Directive)>,
    is_busy: bool,
}

fn settings(name: &str) -> Settings {
    Settings {
        member: Member { name: name.into(), address: "h:1".into(), cluster: None },
        lease: Lease::USUAL,
        namespaces: vec![Namespace::new("*", "naimi-trehel")],
        detector: None,
        roster: Vec::new(),
        may_register: true,
    }
}

impl Group {
    fn new() -> Self {
        let (sites, cuts, deaf) = (Vec::new(), Vec::new(), Vec::new());
        let store = Store::default();
        let (far, now) = (VecDeque::new(), Time(1_000_000_000));
        Group { store, sites, now, cuts, deaf, unknown: false, far, is_busy: false }
    }

    /// A group of so many members, called a, b, c and so on, all of them in the view.
    fn of(members: usize) -> Self {
        let mut group = Group::new();
        for member in 0..members {
            group.start(&char::from(b'a' + member as u8).to_string());
        }
        group.pass(Duration::from_secs(1));
        assert!((0..members).all(|member| group.is_active(member)));
        group
    }

    /// The same, in which every member breaks a rule.
    fn broken(members: usize, mutant: &str) -> Self {
        let mut group = Group::of(members);
        for site in &mut group.sites {
            site.membership.mutate(mutant);
        }
        group
    }

    fn start(&mut self, name: &str) -> usize {
        let incarnation = 1000 * (self.sites.len() as u64 + 1);
        self.sites.push(Site {
            membership: Membership::new(settings(name), incarnation),
            held: Vec::new(),
            wake_at: None,
            active: None,
            valid_until: Time(0),
            peers: Vec::new(),
            is_running: true,
            told: Vec::new(),
        });
        let site = self.sites.len() - 1;
        self.input(site, |membership, now, out| membership.wake(now, out));
        site
    }

    /// Gives a member an input, and carries out all that follows, here and elsewhere.
    fn input(&mut self, at: usize, input: impl FnOnce(&mut Membership, Time, &mut Vec<Directive>)) {
        if !self.sites[at].is_running {
            return;
        }
        let mut out = Vec::new();
        input(&mut self.sites[at].membership, self.now, &mut out);
        // Whatever takes its way over a network comes after all that was decided with it.
        let is_far = |directive: &Directive| {
            matches!(directive, Directive::Ask(..) | Directive::Send(..) | Directive::Peers(_))
        };
        for directive in out {
            match is_far(&directive) {
                true => self.far.push_back((at, directive)),
                false => self.carry_out(at, directive),
            }
        }
        if !core::mem::replace(&mut self.is_busy, true) {
            while let Some((at, directive)) = self.far.pop_front() {
                self.carry_out(at, directive);
            }
            self.is_busy = false;
        }
    }

    fn carry_out(&mut self, at: usize, directive: Directive) {
        self.sites[at].told.push(directive.clone());
        match directive {
            Directive::Ask(number, txn) => {
                let result = match self.deaf.contains(&at) {
                    true => Err(Trouble::Unreachable("cut".into())),
                    false => {
                        let before = self.store.revision();
                        let answer = self.store.apply(&txn);
                        if self.store.revision() > before {
                            self.tell_of_change(at, &txn);
                        }
                        match core::mem::take(&mut self.unknown) {
                            true => Err(Trouble::Unknown("lost".into())),
                            false => Ok(answer),
                        }
                    }
                };
                self.input(at, |membership, now, out| {
                    membership.answered(number, result, now, out);
                });
            }
            Directive::Wake => self.sites[at].wake_at = self.sites[at].membership.alarm(),
            Directive::Peers(peers) => {
                self.sites[at].peers = peers;
                self.connect();
            }
            Directive::Send(run, message) => {
                let from = self.sites[at].membership.run();
                if let Some(to) = self.sites.iter().position(|site| site.membership.run() == run)
                    && !self.is_cut(at, to)
                {
                    self.input(to, |membership, now, out| {
                        membership.hear(&from, message, now, out);
                    });
                }
            }
            Directive::Freeze(_) => {
                let held = self.sites[at].held.clone();
                self.input(at, |membership, now, out| {
                    membership.report(held, Vec::new(), now, out);
                });
            }
            Directive::Activate(view, held) => self.sites[at].active = Some((*view, held)),
            Directive::Valid(until) => self.sites[at].valid_until = until,
            Directive::Lapsed | Directive::Out(_) => {
                self.sites[at].held.clear();
                if let Directive::Out(_) = directive {
                    self.sites[at].valid_until = Time(0);
                    self.sites[at].active = None;
                    self.connect();
                    self.input(at, |membership, now, out| membership.wake(now, out));
                }
            }
            Directive::MustLeave => {
                self.sites[at].held.clear();
                self.input(at, |membership, now, out| {
                    membership.leave(Leaving::ForNow, now, out);
                });
            }
            Directive::Left => self.sites[at].is_running = false,
            Directive::Anomaly(what) => panic!("{what}"),
        }
    }

    /// Everybody who hears the registry learns what has changed, the writer excepted.
    fn tell_of_change(&mut self, writer: usize, txn: &Txn) {
        let at = self.store.revision();
        for site in (0..self.sites.len()).filter(|&site| site != writer) {
            let hears = !self.deaf.contains(&site);
            for op in txn.ops.iter().filter(|_| hears) {
                let word = Word::Changed { key: op.key().into(), at };
                self.input(site, |membership, now, out| membership.hear_word(&word, now, out));
            }
        }
    }

    fn is_cut(&self, one: usize, other: usize) -> bool {
        self.cuts.contains(&(one, other)) || self.cuts.contains(&(other, one))
    }

    /// Every member is connected to everybody that it is to be connected to.
    fn connect(&mut self) {
        for one in 0..self.sites.len() {
            for other in 0..self.sites.len() {
                let run = self.sites[other].membership.run();
                let wanted = self.sites[one].peers.iter().any(|peer| peer.run() == run);
                if wanted && self.sites[other].is_running && one != other {
                    let is_up = !self.is_cut(one, other);
                    self.input(one, |membership, now, out| membership.link(&run, is_up, now, out));
                }
            }
        }
    }

    /// Lets time pass, with every alarm on the way.
    fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        loop {
            let running = self.sites.iter().enumerate().filter(|(_, site)| site.is_running);
            let next = running.filter_map(|(at, site)| Some((site.wake_at?, at))).min();
            match next {
                Some((time, at)) if time <= end => {
                    self.now = self.now.max(time);
                    self.sites[at].wake_at = None;
                    self.input(at, |membership, now, out| membership.wake(now, out));
                }
                _ => break,
            }
        }
        self.now = end;
    }

    fn is_active(&self, at: usize) -> bool {
        let site = &self.sites[at];
        let epoch = site.active.as_ref().map(|(view, _)| view.epoch);
        site.is_running && epoch.is_some() && site.membership.active() == epoch
    }

    fn is_valid(&self, at: usize) -> bool {
        self.is_active(at) && self.now < self.sites[at].valid_until
    }

    fn members(&self, at: usize) -> Vec<&str> {
        let (view, _) = self.sites[at].active.as_ref().unwrap();
        view.members.iter().map(|member| member.name.as_str()).collect()
    }

    fn epoch(&self, at: usize) -> u32 {
        self.sites[at].active.as_ref().unwrap().0.epoch.0
    }

    fn hold(&mut self, at: usize, name: &str) {
        let member = self.sites[at].membership.run().name;
        let claim = catraca_core::Claim::single();
        let (name, durable) = (name.to_string(), None);
        let held = HeldLock { name, permits: 1, member, seat: 0, claim, durable, timed: None };
        self.sites[at].held.push(held);
    }

    fn table(&self, at: usize) -> Held {
        (*self.sites[at].active.as_ref().unwrap().1).clone()
    }
}

#[test]
fn members_join_one_after_the_other_and_all_begin_the_same_view() {
    let group = Group::of(3);
    for member in 0..3 {
        assert_eq!(group.members(member), ["a", "b", "c"]);
        assert_eq!(group.epoch(member), 3);
        assert!(group.is_valid(member));
    }
    let causes: Vec<String> =
        group.sites[0].membership.history().map(|past| past.cause.clone()).collect();
    assert_eq!(causes, ["'a' founded the group", "'b' joined", "'c' joined"]);
}

#[test]
fn nothing_but_beats_touches_the_registry_when_nothing_happens() {
    let mut group = Group::of(3);
    let before = group.store.revision();
    group.pass(Duration::from_secs(60));
    let beats = group.store.revision().0 - before.0;
    assert!((3 * 35..=3 * 37).contains(&beats), "{beats}");
    assert_eq!(group.epoch(0), 3);
    assert!((0..3).all(|member| group.is_valid(member)));
}

#[test]
fn what_is_held_is_in_the_table_of_the_next_view() {
    let mut group = Group::of(2);
    group.hold(0, "x");
    group.hold(1, "y");
    group.start("c");
    group.pass(MILLISECOND);
    let everything: Held = group.sites.iter().flat_map(|site| site.held.iter().cloned()).collect();
    for member in 0..3 {
        assert_eq!(group.table(member), everything);
    }
}

#[test]
fn a_member_that_is_silent_is_excluded_after_its_own_lease_and_not_before() {
    let mut group = Group::of(3);
    group.hold(2, "x");
    group.sites[2].is_running = false;
    let last = group.sites[2].valid_until;
    while group.epoch(0) == 3 {
        assert!(group.now < last + Duration::from_secs(10));
        group.pass(MILLISECOND);
    }
    let over = last + Lease::USUAL.margin;
    assert!(group.now >= over, "the margin is between the two");
    assert!(group.now <= over + 2 * MILLISECOND, "its last beat was heard when it came");
    assert_eq!(group.members(0), ["a", "b"]);
    assert_eq!(group.table(1), Held::default());
}

#[test]
fn a_beat_that_was_heard_of_is_not_forgotten_for_an_older_answer() {
    let mut group = Group::of(2);
    let key = beat_key("a");
    let age = |group: &Group| group.sites[1].membership.beat_age("a", group.now);
    let before = group.store.revision();
    group.pass(Duration::from_millis(400));
    let at = Revision(before.0 + 7);
    let word = Word::Changed { key, at };
    group.input(1, |membership, now, out| membership.hear_word(&word, now, out));
    assert_eq!(age(&group), Some(Duration::ZERO));
    group.pass(Duration::from_millis(10));
    // The store has not got so far: what it says of the beat is older.
    let gap = Word::Gap { from: before };
    group.input(1, |membership, now, out| membership.hear_word(&gap, now, out));
    assert_eq!(age(&group), Some(Duration::from_millis(10)));
    // Nor is it heard twice.
    group.input(1, |membership, now, out| membership.hear_word(&word, now, out));
    assert_eq!(age(&group), Some(Duration::from_millis(10)));
}

#[test]
fn a_member_that_is_cut_off_from_the_registry_stops_and_comes_back_as_another_one() {
    let mut group = Group::of(3);
    group.hold(1, "x");
    group.deaf.push(1);
    group.pass(Duration::from_secs(5));
    assert!(!group.is_valid(1));
    assert!(group.sites[1].held.is_empty(), "its clients were told");
    group.pass(Duration::from_secs(2));
    assert_eq!(group.members(0), ["a", "c"]);
    let before = group.sites[1].membership.run();
    group.deaf.clear();
    group.pass(Duration::from_secs(2));
    assert_eq!(group.members(0), ["a", "c", "b"]);
    assert!(group.is_valid(1) && group.sites[1].membership.run() != before);
}

#[test]
fn a_member_whose_lease_was_over_for_a_moment_makes_the_view_useful_again() {
    let mut group = Group::of(2);
    group.hold(1, "x");
    // Its beats do not come back, and nobody excludes it, because nobody else runs.
    group.sites[0].is_running = false;
    group.deaf.push(1);
    group.pass(Duration::from_millis(4500));
    assert!(group.sites[1].held.is_empty() && !group.is_active(1));
    group.deaf.clear();
    group.sites[0].is_running = true;
    group.sites[0].wake_at = Some(group.now);
    group.pass(Duration::from_secs(7));
    assert!(group.is_valid(1));
    let causes: Vec<&Past> = group.sites[1].membership.history().collect();
    assert!(causes.iter().any(|past| past.cause.contains("got its lease back")), "{causes:?}");
}

#[test]
fn a_member_that_leaves_in_order_is_out_at_once() {
    let mut group = Group::of(3);
    group.input(0, |membership, now, out| membership.leave(Leaving::ForGood, now, out));
    group.pass(MILLISECOND);
    assert!(!group.sites[0].is_running);
    assert_eq!((group.members(1), group.epoch(1)), (vec!["b", "c"], 4));
    assert!(group.is_valid(1) && group.is_valid(2));
}

#[test]
fn the_last_one_leaves_an_empty_view_and_the_epochs_go_on() {
    let mut group = Group::of(1);
    group.input(0, |membership, now, out| membership.leave(Leaving::ForGood, now, out));
    assert!(!group.sites[0].is_running);
    let other = group.start("a");
    group.pass(MILLISECOND);
    assert_eq!(group.epoch(other), 3);
}

#[test]
fn a_member_that_is_started_again_waits_for_the_lease_of_the_run_before() {
    let mut group = Group::of(1);
    group.sites[0].is_running = false;
    let last = group.sites[0].valid_until;
    let again = group.start("a");
    while !group.is_valid(again) {
        assert!(group.now < last + Duration::from_secs(10));
        group.pass(MILLISECOND);
    }
    assert!(group.now >= last + Lease::USUAL.margin);
    assert!(group.epoch(again) > 1);
}

#[test]
fn a_member_that_was_let_in_without_hearing_of_it_finds_out() {
    let mut group = Group::of(1);
    let b = group.start("b");
    group.unknown = true;
    group.pass(Duration::from_secs(3));
    assert!(group.is_valid(b));
    assert_eq!(group.members(0), ["a", "b"]);
}

#[test]
fn of_two_members_that_do_not_reach_each_other_one_leaves_and_comes_back_later() {
    let mut group = Group::of(3);
    group.cuts.push((0, 1));
    group.connect();
    group.pass(Duration::from_secs(4));
    assert_eq!(group.epoch(2), 3, "not for a short cut");
    group.pass(Duration::from_secs(8));
    assert_eq!(group.members(0), ["a", "c"]);
    assert_eq!(group.members(2), ["a", "c"]);
    assert!(!group.is_active(1));
    group.cuts.clear();
    group.connect();
    group.pass(Duration::from_secs(4));
    assert_eq!(group.members(2), ["a", "c", "b"]);
}

#[test]
fn a_member_with_other_namespaces_is_not_let_in_and_knows_why() {
    let mut group = Group::of(1);
    let b = group.start("b");
    let mut other = settings("c");
    other.namespaces = vec![Namespace::new("*", "raymond")];
    group.sites[b].is_running = false;
    let c = group.start("c");
    group.sites[c].membership = Membership::new(other, 7);
    group.input(c, |membership, now, out| membership.wake(now, out));
    group.pass(Duration::from_secs(1));
    assert!(!group.is_active(c));
    let why = group.sites[c].membership.obstacle().unwrap();
    assert!(why.contains("the lease here differ"), "{why}");
}

#[test]
fn a_registry_of_another_release_is_left_alone() {
    let mut group = Group::new();
    group.store.apply(&Txn::default().put(VIEW, vec![9, 9]));
    let a = group.start("a");
    group.pass(Duration::from_secs(20));
    assert_eq!(group.store.revision(), Revision(1));
    let why = group.sites[a].membership.obstacle().unwrap();
    assert!(why.contains("another release"), "{why}");
}

#[test]
fn whoever_wants_another_view_gets_one_with_the_same_members() {
    let mut group = Group::of(2);
    group.input(1, |membership, now, out| membership.renew(Cause::Forgetting, now, out));
    group.pass(MILLISECOND);
    assert_eq!((group.epoch(0), group.epoch(1)), (3, 3));
    assert_eq!(group.members(0), ["a", "b"]);
}

#[test]
fn long_reports_and_tables_go_in_parts() {
    let mut group = Group::of(2);
    for number in 0..5000 {
        group.hold(1, &format!("lock/{number}"));
    }
    group.start("c");
    group.pass(MILLISECOND);
    let everything: Held = group.sites[1].held.iter().cloned().collect();
    assert_eq!(group.table(2), everything);
    let reports = |directive: &&Directive| {
        matches!(directive, Directive::Send(_, ViewMessage::Report { .. }))
    };
    assert!(group.sites[1].told.iter().filter(reports).count() >= 3);
}

#[test]
fn a_registry_that_was_away_for_long_costs_nobody_its_place() {
    let mut group = Group::of(3);
    group.deaf = vec![0, 1, 2];
    group.pass(Duration::from_secs(60));
    assert!((0..3).all(|member| !group.is_valid(member)));
    group.deaf.clear();
    group.pass(Duration::from_secs(8));
    assert!((0..3).all(|member| group.is_valid(member)));
    let lost = |past: &Past| past.cause.contains("did not renew");
    assert!(!group.sites[0].membership.history().any(lost));
}

#[test]
fn whoever_has_not_reached_an_earlier_run_says_nothing_about_the_present_one() {
    let mut group = Group::of(2);
    let (a, b) = (group.sites[0].membership.run(), group.sites[1].membership.run());
    for (incarnation, must_leave) in [(b.incarnation - 1, false), (b.incarnation, true)] {
        let unreached = vec![Run { incarnation, ..b.clone() }];
        let beat = Beat { incarnation: a.incarnation, number: 99, unreached };
        group.store.apply(&Txn::default().put(beat_key(&a.name), record::encode(&beat)));
        let gap = Word::Gap { from: group.store.revision() };
        group.input(1, |membership, now, out| membership.hear_word(&gap, now, out));
        assert_eq!(group.sites[1].told.contains(&Directive::MustLeave), must_leave);
    }
}

#[test]
fn a_member_that_is_lost_while_the_registry_is_away_makes_nobody_else_leave() {
    let mut group = Group::of(3);
    let runs = [group.sites[1].membership.run(), group.sites[2].membership.run()];
    group.sites[0].is_running = false;
    // Both of the others notice, and complain of it in their beats before it is excluded: the registry
    // does not answer for a while, so everybody counts from the top.
    let lost = group.sites[0].membership.run();
    for other in [1, 2] {
        group.input(other, |membership, now, out| membership.link(&lost, false, now, out));
    }
    group.deaf.extend([1, 2]);
    group.pass(Duration::from_millis(3500));
    group.deaf.clear();
    group.pass(Duration::from_secs(8));
    assert_eq!(group.members(1), ["b", "c"]);
    assert_eq!([group.sites[1].membership.run(), group.sites[2].membership.run()], runs);
    assert!(group.is_active(1) && group.is_active(2));
}

#[test]
fn a_table_of_an_earlier_view_is_for_nobody() {
    let begins = |mut group: Group| {
        // Nothing passes between a and b, who have not noticed yet: the third view never begins at b.
        group.cuts.push((0, 1));
        group.input(0, |membership, now, out| membership.renew(Cause::Forgetting, now, out));
        group.start("c");
        group.pass(MILLISECOND);
        assert_eq!(group.sites[1].membership.record().unwrap().epoch, Epoch(4));
        assert!(!group.is_active(1));
        let (from, epoch) = (group.sites[0].membership.run(), Epoch(3));
        let late = ViewMessage::Table { epoch, part: Vec::new(), is_last: true };
        group.input(1, |membership, now, out| membership.hear(&from, late, now, out));
        group.is_active(1)
    };
    assert!(!begins(Group::of(2)));
    assert!(begins(Group::broken(2, "old-table")), "somebody may be inside by now");
}

#[test]
fn a_beat_counts_from_when_it_was_received_and_not_from_when_it_was_asked_for() {
    let excluded_after = |mut group: Group| {
        // What a asks is answered late, with a beat of b that was written meanwhile.
        let asked = group.now;
        let mut out = Vec::new();
        let gap = Word::Gap { from: group.store.revision() };
        group.sites[0].membership.hear_word(&gap, asked, &mut out);
        let number = out.iter().find_map(|directive| match directive {
            Directive::Ask(number, _) => Some(*number),
            _ => None,
        });
        group.now = asked + Duration::from_millis(1500);
        let (b, number) = (group.sites[1].membership.run(), number.unwrap());
        let beat = Beat { incarnation: b.incarnation, number: 99, unreached: Vec::new() };
        group.store.apply(&Txn::default().put(beat_key("b"), record::encode(&beat)));
        let answer = group.store.apply(&Txn::read());
        let received = group.now;
        group.sites[1].is_running = false;
        group.input(0, |membership, now, out| {
            membership.answered(number, Ok(answer), now, out);
        });
        while group.epoch(0) == 2 {
            assert!(group.now < received + Duration::from_secs(20));
            group.pass(MILLISECOND);
        }
        group.now.since(received)
    };
    let ttl = Lease::USUAL.ttl;
    assert!((ttl..ttl + 2 * MILLISECOND).contains(&excluded_after(Group::of(2))));
    // The beat may have been sent directly before the answer: its member is valid until the margin.
    let early = excluded_after(Group::broken(2, "heard-when-asked"));
    assert!(early < Lease::USUAL.validity(), "{early:?}");
}

/// What a member reports of a view before the one who makes its table knows of that view is kept, up to a bound.
/// A table that lacks what was beyond it would let others in beside those who are inside.
#[test]
fn a_view_of_which_something_was_said_too_early_and_lost_is_begun_anew() {
    let mut group = Group::of(2);
    group.hold(1, "x");
    let (first, other) = (group.sites[0].membership.run(), group.sites[1].membership.run());
    // The first does not hear of the view that begins.
    group.deaf.push(0);
    for _ in 0..change::MOST_EARLY {
        let message = ViewMessage::Begin { epoch: Epoch(3) };
        group.input(0, |membership, now, out| membership.hear(&other, message, now, out));
    }
    group.start("c");
    group.pass(MILLISECOND);
    assert_eq!(group.sites[1].membership.record().unwrap().members.len(), 3);
    assert!(!group.is_active(1), "its report was lost");
    group.deaf.clear();
    group.pass(Duration::from_secs(2));
    let held: Held = group.sites[1].held.iter().cloned().collect();
    for member in 0..3 {
        assert!(group.is_active(member), "{member}");
        assert_eq!((group.epoch(member), group.table(member)), (4, held.clone()));
    }
    assert_eq!(group.sites[0].membership.run(), first, "nobody had to leave for that");
}

/// The last part alone is not what was said.
#[test]
fn a_report_whose_beginning_was_lost_is_none() {
    let mut group = Group::of(2);
    group.hold(1, "x");
    let other = group.sites[1].membership.run();
    group.deaf.push(0);
    for _ in 0..change::MOST_EARLY {
        let message = ViewMessage::Begin { epoch: Epoch(3) };
        group.input(0, |membership, now, out| membership.hear(&other, message, now, out));
    }
    group.start("c");
    group.deaf.clear();
    let last = ViewMessage::Report { epoch: Epoch(3), part: Vec::new(), is_last: true };
    for _ in 0..100 {
        let message = last.clone();
        group.input(0, |membership, now, out| membership.hear(&other, message, now, out));
        group.pass(20 * MILLISECOND);
    }
    let held: Held = group.sites[1].held.iter().cloned().collect();
    for member in 0..3 {
        assert_eq!((group.epoch(member), group.table(member)), (4, held.clone()));
    }
}
