//! Nodes that are killed, stopped and started again, alone and in groups.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use support::service::{Process, Service, is_running, wait_until};

/// Short, so that crashes are noticed soon.
const SHORT: &[&str] = &["--lease", "2s"];

/// Somebody enters at these members: a lock and a semaphore that are known, and names that are new.
fn all_are_served(service: &Service, members: &[usize], fresh: &str) {
    let fresh = (0..4).map(|number| format!("{fresh}/{number}"));
    let known = ["known".to_string(), "--permits 2 pool".to_string()];
    let all: Vec<String> = known.into_iter().chain(fresh).collect();
    for (&member, flags) in members.iter().flat_map(|it| all.iter().map(move |all| (it, all))) {
        let ran = service.lock(member, flags, "true").ends();
        assert_eq!(ran.code, Some(0), "{flags}: {ran:?}");
    }
}

/// Somebody who holds 'x' for as long as it may, with the process that does the work and the fence.
struct Holder {
    process: Process,
    work: String,
    fence: u64,
}

fn hold(service: &Service, member: usize) -> Holder {
    let process = service.lock(member, "x", "echo $$ $CATRACA_FENCE .; exec sleep 1000");
    process.says(" .");
    let said = process.stdout();
    let words: Vec<&str> = said.split_whitespace().collect();
    Holder { work: words[0].to_string(), fence: words[1].parse().unwrap(), process }
}

impl Holder {
    /// Somebody else gets 'x' at `member`, and this one's work has ended before.
    fn gives_way_at(self, service: &Service, member: usize) -> u64 {
        let look = format!("kill -0 {} 2>&- && echo overlap; echo $CATRACA_FENCE", self.work);
        let next = service.lock(member, "x", &look).ends();
        assert_eq!(next.code, Some(0), "{next:?}");
        let fence = next.stdout.trim().parse::<u64>();
        let fence = fence.unwrap_or_else(|_| panic!("two are inside: {next:?}"));
        assert!(fence > self.fence, "fence {fence} after {}", self.fence);
        assert!(!is_running(&self.work));
        let ran = self.process.ends();
        assert_eq!(ran.code, Some(123), "its lock is lost: {ran:?}");
        fence
    }
}

/// Which member leads the registry.
fn leader(service: &Service) -> usize {
    let status = service.client(0, &["status", "--json"], &[]).ends().stdout;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    usize::from(status["registry"]["leader"].as_str().unwrap().as_bytes()[0] - b'a')
}

#[test]
fn a_group_goes_on_when_any_member_is_killed_and_the_member_comes_back_by_itself() {
    let mut service = Service::start(3, SHORT);
    all_are_served(&service, &[0, 1, 2], "before");
    for victim in 0..3 {
        service.nodes[victim].signal("KILL");
        let others: Vec<usize> = (0..3).filter(|&member| member != victim).collect();
        all_are_served(&service, &others, &format!("without/{victim}"));
        let again = service.node(victim, SHORT);
        service.nodes[victim] = again;
        service.is_whole();
        all_are_served(&service, &[0, 1, 2], &format!("with/{victim}"));
    }
}

#[test]
fn whoever_holds_at_another_member_goes_on_when_one_is_killed() {
    // Long enough for a busy machine: nobody else is to lose anything.
    let service = Service::start(3, &["--lease", "5s"]);
    let leader = leader(&service);
    let (victim, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let holder = hold(&service, other);
    service.nodes[victim].signal("KILL");
    service.nodes[leader].complains("did not renew the lease");
    all_are_served(&service, &[leader, other], "after");
    let taken = service.lock(leader, "-n x", "true").ends();
    assert_eq!(taken.code, Some(1), "{taken:?}");
    assert!(is_running(&holder.work));
    holder.process.signal("TERM");
    holder.process.ends();
}

#[test]
fn what_a_killed_member_held_goes_to_the_others_when_its_work_has_ended() {
    let service = Service::start(3, SHORT);
    let leader = leader(&service);
    let victim = (leader + 1) % 3;
    let holder = hold(&service, victim);
    service.nodes[victim].signal("KILL");
    holder.gives_way_at(&service, leader);
}

#[test]
fn a_member_that_was_stopped_beyond_its_lease_loses_its_locks_and_comes_back() {
    let service = Service::start(3, SHORT);
    let leader = leader(&service);
    let victim = (leader + 1) % 3;
    let holder = hold(&service, victim);
    service.nodes[victim].signal("STOP");
    holder.gives_way_at(&service, leader);
    service.nodes[victim].signal("CONT");
    service.nodes[victim].complains("the group goes on without this node; it joins again");
    service.is_whole();
    all_are_served(&service, &[0, 1, 2], "again");
}

#[test]
fn a_node_alone_lets_nobody_in_beside_a_holder_of_the_run_before_and_its_fences_grow() {
    let mut service = Service::start(1, &["--lease", "1s"]);
    let mut last = 0;
    for _ in 0..8 {
        let holder = hold(&service, 0);
        assert!(holder.fence > last);
        service.nodes[0].signal("KILL");
        wait_until("it is gone", || service.nodes[0].has_ended());
        service.nodes[0] = service.node(0, &["--lease", "1s"]);
        service.nodes[0].says("listens at");
        last = holder.gives_way_at(&service, 0);
    }
}

#[test]
fn fences_grow_when_all_members_are_killed_and_started_again() {
    let mut service = Service::start(3, SHORT);
    let holder = hold(&service, 1);
    for node in &service.nodes {
        node.signal("KILL");
    }
    for member in 0..3 {
        wait_until("it is gone", || service.nodes[member].has_ended());
        service.nodes[member] = service.node(member, SHORT);
    }
    service.is_whole();
    holder.gives_way_at(&service, 2);
}

#[test]
fn a_node_that_is_told_to_stop_gives_the_time_that_it_was_told_and_a_second_signal_hurries_it() {
    for signals in [1, 2] {
        let drain = if signals == 1 { "1s" } else { "1000s" };
        let mut service = Service::start(2, &["--lease", "2s", "--drain", drain]);
        let holder = hold(&service, 1);
        let node = service.nodes.pop().unwrap();
        node.signal("TERM");
        node.complains("stopping, signal SIGTERM");
        let late = service.lock(1, "y", "true").ends();
        assert_eq!(late.code, Some(122), "{late:?}");
        late.complained(&["this node is leaving its group"]);
        if signals == 2 {
            assert!(is_running(&holder.work));
            node.signal("TERM");
        }
        holder.gives_way_at(&service, 0);
        assert_eq!(node.ends().code, Some(0));
    }
}

#[test]
fn a_group_of_five_goes_on_when_two_are_killed_at_once_and_they_come_back_by_themselves() {
    // Long enough for five nodes on a busy machine.
    let flags = ["--lease", "5s"];
    let mut service = Service::start(5, &flags);
    let leader = leader(&service);
    let victims = [leader, (leader + 2) % 5];
    let others: Vec<usize> = (0..5).filter(|member| !victims.contains(member)).collect();
    let holder = hold(&service, others[0]);
    for victim in victims {
        service.nodes[victim].signal("KILL");
    }
    all_are_served(&service, &others, "without-two");
    assert!(is_running(&holder.work), "whoever holds at another member goes on");
    for victim in victims {
        wait_until("it is gone", || service.nodes[victim].has_ended());
        service.nodes[victim] = service.node(victim, &flags);
    }
    service.is_whole();
    all_are_served(&service, &[0, 1, 2, 3, 4], "again");
    assert!(is_running(&holder.work));
    holder.process.signal("TERM");
    holder.process.ends();
}

#[test]
fn a_member_without_the_majority_stops_to_grant_says_who_is_missing_and_recovers_by_itself() {
    let flags = ["--lease", "3s"];
    let mut service = Service::start(3, &flags);
    let holder = hold(&service, 0);
    for victim in [1, 2] {
        service.nodes[victim].signal("KILL");
        wait_until("it is gone", || service.nodes[victim].has_ended());
    }
    let status = |service: &Service, member| service.client(member, &["status"], &[]).ends();
    wait_until("its lease is over, and it says who is missing", || {
        let told = status(&service, 0);
        let missing = told.stdout.split("not reached: ").nth(1).and_then(|it| it.lines().next());
        told.code == Some(4) && missing.is_some_and(|it| it.contains('b') && it.contains('c'))
    });
    let (work, fence) = (holder.work.clone(), holder.fence);
    let ran = holder.process.ends();
    assert_eq!(ran.code, Some(123), "its lock is lost: {ran:?}");
    assert!(!is_running(&work));
    let refused = service.lock(0, "-n x", "true").ends();
    assert_eq!(refused.code, Some(122), "nobody may be let in: {refused:?}");
    service.nodes[1] = service.node(1, &flags);
    service.nodes[1].says("listens at");
    let next = service.lock(1, "x", "echo $CATRACA_FENCE").ends();
    assert_eq!(next.code, Some(0), "{next:?}");
    assert!(next.stdout.trim().parse::<u64>().unwrap() > fence, "{next:?}");
    all_are_served(&service, &[0, 1], "two");
    wait_until("only one is missing", || status(&service, 0).code == Some(3));
    service.nodes[2] = service.node(2, &flags);
    service.is_whole();
    all_are_served(&service, &[0, 1, 2], "three");
}

#[test]
fn durable_holds_survive_that_all_members_are_killed_at_once() {
    for members in [1, 3] {
        let mut service = Service::start(members, SHORT);
        let members = usize::from(members);
        let last = members - 1;
        let take = ["--durable", "--owner", "ana", "--request", "7", "kept", "kept-too"];
        let had = service.client(last, &["lock"], &take).ends().quietly(0).stdout;
        service.nodes.iter().for_each(|node| node.signal("KILL"));
        for member in 0..members {
            wait_until("it is gone", || service.nodes[member].has_ended());
            service.nodes[member] = service.node(member, SHORT);
        }
        service.is_whole();
        for member in 0..members {
            let taken = service.lock(member, "-n kept", "true").ends();
            assert_eq!(taken.code, Some(1), "{taken:?}");
            // Whoever asks again gets what it has: the same hold with the same fences.
            let again = service.client(member, &["lock"], &take).ends().quietly(0).stdout;
            assert_eq!(again, had);
        }
        let id = had.split_whitespace().next().unwrap();
        service.client(0, &["unlock", "--owner", "ana", id], &[]).ends().quietly(0);
        all_are_served(&service, &(0..members).collect::<Vec<_>>(), "after");
        let free = service.lock(last, "kept", "true").ends();
        assert_eq!(free.code, Some(0), "{free:?}");
    }
}
