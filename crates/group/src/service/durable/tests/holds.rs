//! Durable holds: written, found again, taken over and released.

use super::*;

#[test]
fn a_durable_hold_is_confirmed_when_it_is_written_and_not_before() {
    let mut group = Group::of(3, "naimi-trehel");
    group.fate = Outcome::Held;
    group.ask(0, 1, &["x"], "r");
    assert!(group.durable.is_empty() && group.records() == 0);
    group.go_on();
    let hold = group.hold(1);
    assert_eq!((hold.owner.as_str(), hold.note.as_str(), hold.unix_millis), ("ann", "why", 7));
    assert_eq!((hold.fences.len(), group.records()), (1, 1));
    assert!(!group.is_free(1, "x") && !group.is_free(0, "x"));
    assert!(group.anomalies.is_empty());
}

#[test]
fn asking_again_gives_the_same_hold_at_every_member_and_after_a_restart_of_everything() {
    let mut group = Group::of(3, "naimi-trehel");
    group.ask(0, 1, &["x", "y"], "r");
    let hold = group.hold(1);
    for site in 0..3 {
        group.ask(site, 10 + site as u64, &["x", "y"], "r");
        assert_eq!(group.hold(10 + site as u64), hold);
    }
    group.ask(1, 20, &["z"], "r");
    assert_eq!(group.refusal(20), "other-request");
    (0..3).for_each(|site| group.crash(site));
    (0..3).for_each(|site| group.start(site));
    group.pass(Duration::from_secs(20));
    for site in 0..3 {
        group.ask(site, 30 + site as u64, &["x", "y"], "r");
        assert_eq!(group.hold(30 + site as u64), hold);
    }
    assert!(!group.is_free(0, "x") && !group.is_free(2, "y") && group.is_free(1, "z"));
    group.unlock(2, 1, Target::Id(hold.id), Some("ann"));
    assert_eq!(group.unlocked[&1].as_ref().map(|hold| hold.id), Ok(hold.id));
    group.pass(Duration::from_secs(3));
    assert!(group.is_free(0, "x") && group.is_free(2, "y"));
    assert!(group.anomalies.is_empty());
}

#[test]
fn a_registry_that_cannot_be_reached_refuses_and_the_lock_is_free() {
    let mut group = Group::of(2, "naimi-trehel");
    group.fate = Outcome::Unreachable;
    group.ask(0, 1, &["x"], "r");
    assert_eq!(group.refusal(1), "registry-unavailable");
    assert!(group.is_free(1, "x"));
}

#[test]
fn whoever_asks_again_where_nobody_can_look_is_not_told_that_somebody_else_has_it() {
    let mut group = Group::of(3, "naimi-trehel");
    group.ask(0, 1, &["x"], "r");
    let hold = group.hold(1);
    group.fate = Outcome::Unseen;
    group.ask(1, 2, &["x"], "r");
    group.pass(Duration::from_secs(6));
    assert_eq!(group.refusal(2), "registry-unavailable");
    group.fate = Outcome::Answered;
    group.ask(1, 3, &["x"], "r");
    assert_eq!(group.hold(3), hold);
    // Somebody else has waited in vain, and that is what it is told.
    group.ask(2, 4, &["x"], "another");
    group.pass(Duration::from_secs(6));
    assert_eq!(group.refusal(4), "timed-out");
}

#[test]
fn a_write_whose_answer_is_lost_is_found_out() {
    let mut group = Group::of(2, "naimi-trehel");
    group.fate = Outcome::AnswerLost;
    group.ask(0, 1, &["x"], "r");
    group.fate = Outcome::Answered;
    group.pass(Duration::from_secs(2));
    let hold = group.hold(1);
    group.ask(1, 2, &["x"], "r");
    assert_eq!(group.hold(2), hold);
    assert!(!group.is_free(1, "x"));
}

#[test]
fn a_write_that_comes_after_the_lock_was_given_back_is_not_carried_out() {
    let mut group = Group::of(2, "naimi-trehel");
    group.fate = Outcome::Late;
    group.ask(0, 1, &["x"], "r");
    group.fate = Outcome::Answered;
    group.pass(Duration::from_secs(2));
    assert_eq!(group.refusal(1), "registry-unavailable");
    assert!(group.is_free(1, "x"));
    for txn in core::mem::take(&mut group.late) {
        assert!(!group.apply(&txn).applied);
    }
    assert_eq!(group.records(), 0);
}

#[test]
fn a_hold_that_was_released_before_its_member_knew_that_it_was_written_is_not_written_again() {
    let mut group = Group::of(2, "naimi-trehel");
    group.fate = Outcome::AnswerLost;
    group.ask(0, 1, &["x"], "r");
    group.fate = Outcome::Answered;
    group.ask(1, 2, &["x"], "r");
    group.unlock(1, 3, Target::Name("x".into()), Some("ann"));
    group.pass(Duration::from_secs(3));
    assert!(group.unlocked[&3].is_ok());
    assert_eq!(group.records(), 0);
    assert!(group.is_free(1, "x"));
}

#[test]
fn only_the_owner_releases_a_hold_or_somebody_by_force() {
    let mut group = Group::of(3, "naimi-trehel");
    group.ask(0, 1, &["x"], "r");
    let id = group.hold(1).id;
    let code = |group: &Group, asker| group.unlocked[&asker].as_ref().unwrap_err().code();
    group.unlock(1, 1, Target::Id(id), Some("bob"));
    assert_eq!(code(&group, 1), "not-owner");
    group.unlock(1, 2, Target::Name("x".into()), Some("bob"));
    assert_eq!(code(&group, 2), "not-owner");
    group.unlock(1, 3, Target::Name("y".into()), None);
    assert_eq!(code(&group, 3), "no-such-hold");
    group.unlock(1, 4, Target::Id(HoldId(1)), None);
    assert_eq!(code(&group, 4), "no-such-hold");
    assert!(!group.is_free(2, "x"));
    group.unlock(1, 5, Target::Name("x".into()), None);
    assert!(group.unlocked[&5].is_ok());
    group.pass(Duration::from_secs(2));
    assert!(group.is_free(2, "x"));
}

fn transfer(group: &mut Group, site: usize, asker: u64, id: HoldId, from: &str, to: &str) {
    let (from, to, note) = (from.to_string(), to.to_string(), "urgent".to_string());
    group.input(site, Input::Transfer(asker, Transfer { id, from, to, note }, 9));
}

#[test]
fn a_hold_that_is_given_away_is_never_free_and_has_one_owner() {
    let mut group = Group::of(3, "naimi-trehel");
    group.ask(0, 1, &["x"], "r");
    let before = group.hold(1);
    group.input(2, Input::AcquireDurable(2, None, acquire(&["x"], 1, "s"), 7));
    transfer(&mut group, 1, 1, before.id, "ann", "bob");
    let given = group.unlocked[&1].clone().unwrap();
    let said = (given.owner.as_str(), given.note.as_str(), given.unix_millis);
    assert_eq!(said, ("bob", "urgent", 9));
    assert_eq!((&given.fences, given.id), (&before.fences, before.id));
    group.pass(Duration::from_secs(2));
    assert!(!group.durable.contains_key(&2), "whoever waits goes on waiting");
    // Only one of two who want it from the same owner gets it.
    transfer(&mut group, 2, 2, before.id, "ann", "cay");
    assert_eq!(group.unlocked[&2].as_ref().unwrap_err().code(), "not-owner");
    group.unlock(0, 3, Target::Id(before.id), Some("ann"));
    assert_eq!(group.unlocked[&3].as_ref().unwrap_err().code(), "not-owner");
    group.ask(0, 4, &["x"], "r");
    assert_eq!(group.refusal(4), "other-request");
    group.unlock(2, 5, Target::Id(before.id), Some("bob"));
    group.pass(Duration::from_secs(2));
    assert!(group.hold(2).fences > before.fences);
}

#[test]
fn the_member_of_a_hold_that_is_given_away_knows_its_owner_and_so_does_whoever_adopts_it() {
    let mut group = Group::of(2, "naimi-trehel");
    group.ask(0, 1, &["x"], "r");
    let id = group.hold(1).id;
    transfer(&mut group, 1, 1, id, "ann", "bob");
    let at = group.store.revision();
    group.input(0, Input::HoldsChanged(vec![(id.key(), at)]));
    let listed = |group: &mut Group, site: usize| {
        let member = group.sites[site].member.as_mut().unwrap();
        let (mut driver, mut out) = (Site::default(), Vec::new());
        let query = Query { limit: 10, ..Query::default() };
        member.serve(&mut driver, &mut out, |service, host, out| service.list(1, query, host, out));
        let [Output::Page(_, page)] = &out[..] else { panic!("{out:?}") };
        page.lines[0].durable.as_ref().unwrap().owner.clone()
    };
    assert_eq!(listed(&mut group, 0), "bob");
    group.crash(0);
    group.pass(Duration::from_secs(10));
    assert_eq!(listed(&mut group, 1), "bob");
    assert!(!group.is_free(1, "x"));
}

#[test]
fn a_gift_whose_answer_is_lost_says_that_it_is_done() {
    let mut group = Group::of(2, "naimi-trehel");
    group.ask(0, 1, &["x"], "r");
    let id = group.hold(1).id;
    group.fate = Outcome::AnswerLost;
    transfer(&mut group, 1, 1, id, "ann", "bob");
    assert_eq!(group.unlocked[&1].as_ref().unwrap().owner, "bob");
}

#[test]
fn a_hold_that_is_given_away_before_its_member_knew_that_it_was_written_stays_held() {
    let mut group = Group::of(2, "naimi-trehel");
    group.fate = Outcome::AnswerLost;
    group.ask(0, 1, &["x"], "r");
    group.fate = Outcome::Answered;
    let id = HoldId::of("ann", "r");
    transfer(&mut group, 1, 1, id, "ann", "bob");
    assert_eq!(group.unlocked[&1].as_ref().unwrap().owner, "bob");
    group.pass(Duration::from_secs(3));
    assert_eq!(group.refusal(1), "not-owner");
    assert!(!group.is_free(1, "x"));
    assert_eq!(group.records(), 1);
}

#[test]
fn where_a_driver_tells_which_hold_was_released_the_others_are_not_looked_at() {
    let mut group = Group::of(2, "naimi-trehel");
    for number in 0..200 {
        group.ask(0, number, &[&format!("x{number}")], &number.to_string());
    }
    let (first, second) = (group.hold(0).id, group.hold(1).id);
    group.unlock(1, 1, Target::Id(first), None);
    let at = group.store.revision();
    group.input(0, Input::HoldsChanged(vec![(first.key(), at)]));
    group.pass(Duration::from_secs(1));
    let before = group.transactions;
    group.unlock(1, 2, Target::Id(second), None);
    let at = group.store.revision();
    group.input(0, Input::HoldsChanged(vec![(second.key(), at)]));
    assert!(group.transactions - before < 8, "one look each");
    assert!(group.is_free(1, "x0") && group.is_free(1, "x1"));
    // One of which it does not tell is found all the same.
    let third = group.hold(2).id;
    group.unlock(1, 3, Target::Id(third), None);
    group.pass(Duration::from_secs(3));
    assert!(group.is_free(1, "x2"));
}

#[test]
fn an_unlock_whose_answer_is_lost_says_that_it_is_done() {
    let mut group = Group::of(2, "naimi-trehel");
    group.ask(0, 1, &["x"], "r");
    group.fate = Outcome::AnswerLost;
    group.unlock(1, 1, Target::Name("x".into()), Some("ann"));
    assert!(group.unlocked[&1].is_ok());
    assert_eq!(group.records(), 0);
}

#[test]
fn a_waiting_member_learns_at_once_of_a_release_that_its_driver_watches() {
    let mut group = Group::of(2, "naimi-trehel");
    group.ask(0, 1, &["x"], "r");
    let key = group.hold(1).id.key();
    group.input(1, Input::AcquireDurable(2, None, acquire(&["x"], 1, "s"), 7));
    assert!(!group.durable.contains_key(&2));
    group.unlock(1, 1, Target::Name("x".into()), Some("ann"));
    let at = group.store.revision();
    group.input(0, Input::HoldsChanged(vec![(key, at)]));
    assert_eq!(group.hold(2).request, "s");
    assert!(group.hold(2).fences > group.hold(1).fences);
}

#[test]
fn holds_of_every_form_are_taken_over_when_their_member_is_gone() {
    for (algorithm, names, permits) in [
        ("naimi-trehel", &["x"][..], 1),
        ("maekawa", &["x", "y", "z"], 1),
        ("bouabdallah-laforest", &["x", "y"], 1),
        ("raymond-k", &["x"], 3),
        ("naimi-trehel", &["x"], 2),
    ] {
        let mut group = Group::of(3, algorithm);
        for request in 0..permits {
            let asked = acquire(names, permits, &request.to_string());
            group.input(2, Input::AcquireDurable(request.into(), None, asked, 7));
        }
        let holds: Vec<DurableHold> = (0..permits).map(|it| group.hold(it.into())).collect();
        group.crash(2);
        group.pass(Duration::from_secs(10));
        let one_more = acquire(&names[..1], permits, "more");
        group.input(0, Input::AcquireDurable(100, None, one_more, 7));
        group.pass(Duration::from_secs(2));
        assert!(!group.durable.contains_key(&100), "{algorithm}");
        for (number, hold) in holds.iter().enumerate() {
            let asked = acquire(names, permits, &hold.request);
            group.input(number % 2, Input::AcquireDurable(200 + number as u64, None, asked, 7));
            assert_eq!(group.hold(200 + number as u64), *hold, "{algorithm}");
        }
        group.unlock(1, 1, Target::Id(holds[0].id), Some("ann"));
        group.pass(Duration::from_secs(2));
        assert!(group.durable[&100].is_ok(), "{algorithm}");
        assert!(group.anomalies.is_empty(), "{algorithm}: {:?}", group.anomalies);
    }
}

#[test]
fn a_hold_moves_when_its_member_leaves_and_nobody_is_told_that_it_is_lost() {
    let mut group = Group::of(3, "naimi-trehel");
    group.ask(1, 1, &["x"], "r");
    let began = group.now;
    group.input(1, Input::Leave(Leaving::ForGood, Duration::from_secs(30)));
    assert!(group.sites[1].member.is_none() && group.now == began);
    assert!(group.lost == 0 && group.notices.is_empty());
    group.pass(Duration::from_secs(1));
    assert!(!group.is_free(0, "x") && !group.is_free(2, "x"));
    group.unlock(2, 1, Target::Name("x".into()), Some("ann"));
    group.pass(Duration::from_secs(2));
    assert!(group.is_free(0, "x"));
}

#[test]
fn a_member_that_comes_back_does_not_hold_it_twice() {
    let mut group = Group::of(3, "naimi-trehel");
    group.ask(1, 1, &["x"], "r");
    // It sleeps until the others go on without it.
    let asleep = core::mem::take(&mut group.sites[1].timers);
    group.pass(Duration::from_secs(8));
    group.sites[1].timers = asleep;
    group.pass(Duration::from_secs(8));
    let held = |group: &Group| -> usize {
        let members = group.sites.iter().filter_map(|site| site.member.as_ref());
        members.map(|member| member.held().len()).sum()
    };
    assert_eq!(held(&group), 1);
    assert!(
        group
            .sites
            .iter()
            .all(|site| site.member.as_ref().unwrap().service().view().members.len() == 3)
    );
    group.unlock(1, 1, Target::Name("x".into()), Some("ann"));
    group.pass(Duration::from_secs(2));
    assert_eq!(held(&group), 0);
}

#[test]
fn many_requests_are_written_side_by_side() {
    let mut group = Group::of(1, "naimi-trehel");
    group.fate = Outcome::Held;
    let before = group.transactions;
    for number in 0..100 {
        group.ask(0, number, &[&format!("x{number}")], &number.to_string());
    }
    assert_eq!((group.held.len(), group.transactions - before), (100, 100));
    group.go_on();
    assert_eq!(group.durable.len(), 100);
    assert!(group.durable.values().all(Result::is_ok));
}

#[test]
fn whoever_waits_in_a_session_that_ends_waits_no_more_and_what_is_granted_stays() {
    let mut group = Group::of(1, "naimi-trehel");
    group.input(0, Input::Open(Who::default(), Some(Duration::from_secs(60))));
    let owner = Owner(1);
    group.input(0, Input::AcquireDurable(1, Some(owner), acquire(&["x"], 1, "r"), 7));
    let waiting = AcquireDurable { wait: Wait::Forever, ..acquire(&["x"], 1, "s") };
    group.input(0, Input::AcquireDurable(2, Some(owner), waiting, 7));
    group.input(0, Input::Close(owner));
    assert!(group.hold(1).request == "r" && group.records() == 1);
    group.unlock(0, 1, Target::Name("x".into()), Some("ann"));
    assert!(group.is_free(0, "x") && !group.durable.contains_key(&2));
}

#[test]
fn lists_show_who_a_durable_hold_belongs_to() {
    let mut group = Group::of(2, "bouabdallah-laforest");
    group.ask(1, 1, &["x", "y"], "r");
    let hold = group.hold(1);
    group.crash(1);
    group.pass(Duration::from_secs(10));
    let member = group.sites[0].member.as_mut().unwrap();
    let mut out = Vec::new();
    let mut driver = Site::default();
    let query = Query { limit: 10, ..Query::default() };
    member.serve(&mut driver, &mut out, |service, host, out| service.list(1, query, host, out));
    let [Output::Page(_, page)] = &out[..] else { panic!("{out:?}") };
    let lines: Vec<_> =
        page.lines.iter().map(|line| (line.key.name.as_str(), line.fence)).collect();
    assert_eq!(lines, [("x", Some(hold.fences[0])), ("y", Some(hold.fences[1]))]);
    for line in &page.lines {
        let durable = line.durable.as_ref().unwrap();
        assert_eq!((durable.id, durable.owner.as_str()), (hold.id, "ann"));
        assert_eq!((durable.note.as_str(), durable.unix_millis), ("why", 7));
    }
}

#[test]
fn what_cannot_be_asked_for_is_refused_and_a_group_without_a_registry_has_none() {
    let mut group = Group::of(1, "naimi-trehel");
    let no_owner = AcquireDurable { owner: String::new(), ..acquire(&["x"], 1, "r") };
    let long_note = AcquireDurable { note: "n".repeat(2000), ..acquire(&["x"], 1, "r") };
    let names: Vec<String> = (0..256).map(|number| format!("{number:0200}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (asker, asked) in [
        no_owner,
        long_note,
        acquire(&["x"], 1, ""),
        acquire(&["a b"], 1, "r"),
        acquire(&names, 1, "r"),
    ]
    .into_iter()
    .enumerate()
    {
        group.input(0, Input::AcquireDurable(asker as u64, None, asked, 7));
    }
    let codes: Vec<&str> = (0..5).map(|asker| group.refusal(asker)).collect();
    let text = "bad-durable-text";
    assert_eq!(codes, [text, text, text, "bad-name", "durable-too-large"]);
    let view = crate::view::tests::view(1, 0, "naimi-trehel");
    let mut fixed = WholeMember::new(view, 1, Turns::USUAL, Time(0));
    let mut out = Vec::new();
    let asked = Input::AcquireDurable(1, None, acquire(&["x"], 1, "r"), 7);
    fixed.step(asked, &mut Site::default(), &mut out);
    assert_eq!(out, [Output::Durable(1, Err(Refusal::NoRegistry))]);
}

#[test]
fn names_that_are_used_once_are_forgotten_and_fences_go_on_growing() {
    let mut group = Group::of(2, "naimi-trehel");
    group.ask(0, 1, &["kept"], "r");
    group.input(0, Input::Open(Who::default(), Some(Duration::from_secs(600))));
    let (owner, mut fences) = (Owner(1), Vec::new());
    for number in 0..20_000 {
        let name = if number % 500 == 0 { "x".into() } else { format!("once/{number}") };
        let asked = Acquire { names: vec![name.clone()], permits: 1, wait: Wait::Forever };
        group.input(0, Input::Request(owner, number, asked));
        group.input(0, Input::Release(owner, number));
        for (_, _, notice) in group.notices.drain(..) {
            if let (Notice::Granted { fences: more, .. }, "x") = (notice, name.as_str()) {
                fences.extend(more);
            }
        }
        if number % 100 == 0 {
            group.pass(Duration::from_secs(1));
        }
        let service = group.sites[0].member.as_ref().unwrap();
        // Until the lease allows for another view, some more come together.
        assert!(service.shard().kept() <= MOST_IDLE + 1000, "after {number}");
    }
    assert!(fences.len() == 40 && fences.is_sorted_by(|one, two| one < two), "{fences:?}");
    let membership = group.sites[0].member.as_ref().unwrap().service().membership().unwrap();
    // Not more often than once in the length of a lease.
    let forgotten = membership.history().filter(|past| past.cause.contains("forgotten"));
    let times: Vec<Time> = forgotten.map(|past| past.at).collect();
    assert!(times.len() > 10);
    assert!(times.windows(2).all(|pair| pair[1].since(pair[0]) >= Lease::USUAL.ttl));
    assert!(!group.is_free(1, "kept") && group.anomalies.is_empty());
}

/// Opens a session at a member.
fn open(group: &mut Group, site: usize) -> Owner {
    group.input(site, Input::Open(Who::default(), None));
    Owner(group.sites[site].member.as_ref().unwrap().last_session().unwrap().number)
}

/// A session asks for a lock.
fn request(group: &mut Group, site: usize, owner: Owner, number: u32, lock: &str) {
    let names = vec![lock.to_string()];
    let asked = Acquire { names, permits: 1, wait: Wait::Forever };
    group.input(site, Input::Request(owner, number, asked));
}

fn grants(group: &Group) -> usize {
    let is_grant = |notice: &Notice| matches!(notice, Notice::Granted { .. });
    group.notices.iter().filter(|(_, _, notice)| is_grant(notice)).count()
}

#[test]
fn a_member_that_comes_late_to_its_alarm_lets_nobody_in_before_it() {
    for (mutant, is_let_in) in [(None, false), (Some("valid-by-alarm"), true)] {
        let mut group = Group::with(1, "naimi-trehel", mutant);
        let [first, second] = [open(&mut group, 0), open(&mut group, 0)];
        request(&mut group, 0, first, 1, "x");
        request(&mut group, 0, second, 1, "x");
        assert_eq!(grants(&group), 1);
        // It sleeps for longer than its lease. What has come meanwhile comes before the alarm does.
        group.now = group.now + 2 * Lease::USUAL.ttl;
        group.input(0, Input::Release(first, 1));
        let fences = group.notices.iter().filter_map(|(_, _, notice)| match notice {
            Notice::Granted { fences, .. } => {
                Some(crate::unpack_fence(catraca_core::Fence(fences[0])))
            }
            _ => None,
        });
        let epochs: Vec<u32> = fences.map(|(epoch, ..)| epoch.0).collect();
        // Sooner or later it is let in, but only when there is another view.
        assert_eq!(epochs.len() == 2 && epochs[0] == epochs[1], is_let_in, "{mutant:?} {epochs:?}");
    }
}

#[test]
fn lock_traffic_sends_nothing_to_the_registry() {
    let mut group = Group::of(3, "naimi-trehel");
    let owners: Vec<Owner> = (0..3).map(|site| open(&mut group, site)).collect();
    let mut transactions_in = |rounds: u32, is_used: bool| {
        let (before, granted) = (group.transactions, grants(&group));
        for round in 0..rounds {
            for (site, &owner) in owners.iter().enumerate().filter(|_| is_used) {
                // One that goes from member to member, and one that is new.
                request(&mut group, site, owner, 2 * round, "x");
                request(&mut group, site, owner, 2 * round + 1, &format!("new/{site}/{round}"));
            }
            group.pass(STEP);
            for (site, &owner) in owners.iter().enumerate().filter(|_| is_used) {
                group.input(site, Input::Release(owner, 2 * round));
                group.input(site, Input::Release(owner, 2 * round + 1));
            }
            group.pass(STEP);
        }
        (group.transactions - before, grants(&group) - granted)
    };
    // Less than so many new names, so that no view is made to forget them.
    let rounds = MOST_IDLE as u32 / 4;
    let (beats, _) = transactions_in(rounds, false);
    let (with_traffic, granted) = transactions_in(rounds, true);
    assert!(granted as u32 >= 4 * rounds, "{granted} grants");
    assert!(beats >= 6 && with_traffic <= beats + 3, "{with_traffic} transactions, {beats} idle");
}
