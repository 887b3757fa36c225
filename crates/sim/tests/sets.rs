//! Requests for sets of resources: what is asked for, what is watched, what is counted.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod watch;

use std::collections::{BTreeMap, BTreeSet};

use catraca_algorithms::registry::ENTRIES;
use catraca_core::{
    Algorithm, Bounds, Claim, Effects, Fence, Input, Message, NodeId, ResourceId, Start, property,
};
use catraca_sim::Scenario;
use serde::{Deserialize, Serialize};

use watch::{Watched, correct, scheduled, watch, watch_algorithm};

/// Node 0 keeps the books of all resources and lets in a node whose claim is free, in the order of
/// asking. For a test of the simulator; it has no fault but the one it is given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Books {
    me: NodeId,
    claim: Claim,
    waiting: Vec<(NodeId, Claim)>,
    taken: Vec<ResourceId>,
    fences: BTreeMap<ResourceId, u64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Lets everybody in at once.
    NoBooks,
    /// Counts all entries, but backwards.
    FencesFall,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum Word {
    Ask(Claim),
    Enter(Fence),
    Leave(Claim),
}

impl Message for Word {
    const KINDS: &'static [&'static str] = &["ask", "enter", "leave"];
    fn kind(&self) -> usize {
        match self {
            Word::Ask(_) => 0,
            Word::Enter(_) => 1,
            Word::Leave(_) => 2,
        }
    }
    fn is_possible(&self, bounds: Bounds) -> bool {
        match self {
            Word::Ask(claim) | Word::Leave(claim) => bounds.has_claim(claim),
            Word::Enter(fence) => bounds.has_fence(*fence),
        }
    }
}

impl Books {
    fn asked(&mut self, fault: Fault, node: NodeId, claim: Claim, out: &mut Effects<Word>) {
        self.waiting.push((node, claim));
        self.let_in(fault, out);
    }

    fn left(&mut self, fault: Fault, claim: &Claim, out: &mut Effects<Word>) {
        self.taken.retain(|resource| !claim.contains(*resource));
        self.let_in(fault, out);
    }

    fn let_in(&mut self, fault: Fault, out: &mut Effects<Word>) {
        for (node, claim) in std::mem::take(&mut self.waiting) {
            let meets = claim.resources().iter().any(|resource| self.taken.contains(resource));
            if meets && fault != Fault::NoBooks {
                self.waiting.push((node, claim));
                continue;
            }
            self.taken.extend(claim.resources());
            let fence = Fence(self.next_fence(fault, &claim));
            if node == self.me {
                out.granted(fence);
            } else {
                out.send(node, Word::Enter(fence));
            }
        }
    }

    /// One more than the largest of the claim's resources; others are not looked at.
    fn next_fence(&mut self, fault: Fault, claim: &Claim) -> u64 {
        let fence_of = |resource| self.fences.get(resource).copied();
        let fence = match fault {
            Fault::FencesFall => {
                claim.resources().iter().filter_map(fence_of).min().unwrap_or(1000) - 1
            }
            _ => claim.resources().iter().filter_map(fence_of).max().unwrap_or(0) + 1,
        };
        self.fences.extend(claim.resources().iter().map(|resource| (*resource, fence)));
        fence
    }
}

impl Algorithm for Books {
    type Message = Word;
    type Config = Fault;

    fn new(me: NodeId, _: &Fault, start: &Start) -> Self {
        let held = start.holders().flat_map(|(_, claim)| claim.resources().to_vec());
        let claim = start.claim_of(me).cloned().unwrap_or(Claim::of([]));
        Books { me, claim, waiting: Vec::new(), taken: held.collect(), fences: BTreeMap::new() }
    }

    fn on_request(&mut self, fault: &Fault, claim: Claim, out: &mut Effects<Word>) {
        self.claim = claim.clone();
        match self.me {
            NodeId(0) => self.asked(*fault, self.me, claim, out),
            _ => out.send(NodeId(0), Word::Ask(claim)),
        }
    }

    fn on_release(&mut self, fault: &Fault, out: &mut Effects<Word>) {
        let claim = std::mem::replace(&mut self.claim, Claim::of([]));
        match self.me {
            NodeId(0) => self.left(*fault, &claim, out),
            _ => out.send(NodeId(0), Word::Leave(claim)),
        }
    }

    fn on_message(&mut self, fault: &Fault, from: NodeId, word: Word, out: &mut Effects<Word>) {
        match word {
            Word::Ask(claim) => self.asked(*fault, from, claim, out),
            Word::Leave(claim) => self.left(*fault, &claim, out),
            Word::Enter(fence) => out.granted(fence),
        }
    }
}

fn sets(algorithm: &str, nodes: u32, resources: u32) -> Scenario {
    let scenario = Scenario::new().with("algorithm", algorithm).with("nodes", nodes);
    scenario.with("resources", resources)
}

/// What was asked for, in order.
fn claims(watched: &Watched) -> Vec<Claim> {
    let claim = |input: &Input<_>| match input {
        Input::Request(claim) => Some(claim.clone()),
        _ => None,
    };
    watched.steps().filter_map(|step| claim(&step.input)).collect()
}

#[test]
fn every_algorithm_serves_requests_for_sets() {
    for entry in ENTRIES {
        let scenario = sets(entry.name, 7, 5).with("workload.claim", "1..3");
        let scenario = scenario.with("workload.skew", 1).with("network.delay", "exp:1");
        let report = correct(&scenario.with("workload.rounds", 5));
        assert_eq!(report.entries, 35, "{}", entry.name);
        let (inside, possible) =
            (report.concurrency.unwrap(), report.concurrency_possible.unwrap());
        assert!(0.0 < inside && inside <= possible && possible <= 5.0, "{report:?}");
    }
}

#[test]
fn one_lock_for_all_resources_lets_one_in_at_a_time_and_sets_let_in_more() {
    let scenario = sets("coordinator", 8, 8).with("workload.claim", 1).with("run.entries", 400);
    let scenario = scenario.with("workload.hold", 10);
    let single = correct(&scenario);
    assert!(single.concurrency.unwrap() <= 1.0, "{single:?}");
    assert!(single.concurrency_possible.unwrap() > 4.0, "{single:?}");
    let many = watch_algorithm::<Books>(&scenario, Fault::None).report;
    assert_eq!(many.violation, None);
    assert!(many.concurrency.unwrap() > 3.0, "{many:?}");
    assert!(many.concurrency <= many.concurrency_possible);
}

#[test]
fn with_one_resource_nothing_is_said_of_sets() {
    let report = correct(&sets("coordinator", 3, 1).with("run.entries", 10));
    assert_eq!((report.concurrency, report.concurrency_possible), (None, None));
}

#[test]
fn two_holders_of_one_resource_are_a_violation_and_of_two_resources_are_not() {
    let apart = scheduled("coordinator", 3, &["1 at 1 for 0", "2 at 1 for 1,2"]);
    let apart = apart.with("resources", 3).with("workload.hold", 9);
    let watched = watch_algorithm::<Books>(&apart, Fault::NoBooks);
    assert_eq!((watched.report.violation, watched.report.entries), (None, 2));
    let meet = scheduled("coordinator", 3, &["1 at 1 for 0,2", "2 at 1 for 1,2"]);
    let meet = meet.with("resources", 3).with("workload.hold", 9);
    let violation = watch_algorithm::<Books>(&meet, Fault::NoBooks).report.violation.unwrap();
    assert_eq!(violation.invariant, property::MUTUAL_EXCLUSION);
    assert_eq!(violation.what, "node 2 enters with resource 2 while node 1 has it");
    assert_eq!(watch_algorithm::<Books>(&meet, Fault::None).report.violation, None);
}

#[test]
fn whoever_starts_inside_holds_what_the_start_says() {
    let meets = scheduled("coordinator", 3, &["2 at 0 for 0"]).with("resources", 2);
    let meets = meets.with("start", "inside:1").with("workload.hold", 9);
    let violation = watch_algorithm::<Books>(&meets, Fault::NoBooks).report.violation.unwrap();
    assert_eq!(violation.what, "node 2 enters with resource 0 while node 1 has it");
    let apart = scheduled("coordinator", 3, &["2 at 0 for 1"]).with("resources", 2);
    let apart = apart.with("start", "inside:1").with("workload.hold", 9);
    let report = watch_algorithm::<Books>(&apart, Fault::NoBooks).report;
    assert_eq!(report.violation, None);
    // Node 1 is inside from 0 to 9, node 2 from 2 to 11; node 2 could have been from 0 on. The
    // last message arrives at 12.
    assert_eq!((report.time, report.concurrency), (12.0, Some(18.0 / 12.0)));
    assert_eq!(report.concurrency_possible, Some(20.0 / 12.0));
}

#[test]
fn fences_grow_for_each_resource_and_need_not_grow_over_all() {
    let requests = ["1 at 0 for 0", "1 at 9 for 0", "2 at 20 for 1"];
    let scenario = scheduled("coordinator", 3, &requests).with("resources", 2);
    // Fences 1 and 2 for resource 0, then 1 for resource 1.
    assert_eq!(watch_algorithm::<Books>(&scenario, Fault::None).report.violation, None);
    let violation = watch_algorithm::<Books>(&scenario, Fault::FencesFall).report.violation;
    assert_eq!(violation.unwrap().invariant, property::FENCES_INCREASE);
}

#[test]
fn claims_have_the_size_that_was_asked_for_and_reach_every_resource() {
    let scenario = sets("coordinator", 4, 6).with("workload.claim", "2..4");
    let claims = claims(&watch(&scenario.with("run.entries", 300)));
    let sizes: BTreeSet<usize> = claims.iter().map(|claim| claim.resources().len()).collect();
    assert_eq!(sizes, BTreeSet::from([2, 3, 4]));
    let reached: BTreeSet<_> = claims.iter().flat_map(|claim| claim.resources().to_vec()).collect();
    assert_eq!(reached.len(), 6);
}

#[test]
fn a_schedule_says_what_is_asked_for_even_if_the_node_is_busy() {
    let requests = ["1 at 1 for 2,0", "1 at 2 for 3", "2 at 3"];
    let scenario = scheduled("coordinator", 3, &requests).with("resources", 4);
    let claims = claims(&watch(&scenario.with("workload.claim", 4)));
    let of = |list: &[u32]| Claim::of(list.iter().copied().map(ResourceId));
    assert_eq!(claims, [of(&[0, 2]), of(&[0, 1, 2, 3]), of(&[3])]);
}

#[test]
fn a_crash_frees_what_its_node_held() {
    let scenario = scheduled("coordinator", 4, &["1 at 0 for 0", "2 at 0 for 1"]);
    let scenario = scenario.with("resources", 2).with("workload.hold", 10);
    let scenario = scenario.with("faults.events", "crash 1 at 4");
    let report = watch_algorithm::<Books>(&scenario, Fault::None).report;
    // Node 1 is inside from 2 to 4, node 2 from 2 to 12; its last message arrives at 13.
    assert_eq!((report.time, report.concurrency), (13.0, Some(12.0 / 13.0)));
}

#[test]
fn the_same_seed_draws_the_same_claims_and_another_seed_others() {
    let scenario = sets("raymond", 5, 9).with("workload.claim", "1..4").with("workload.skew", 0.7);
    let drawn = |seed| claims(&watch(&scenario.clone().with("run.seed", seed)));
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}

#[test]
fn claims_that_cannot_be_are_refused_with_the_remedy() {
    let refused = |scenario: Scenario, text: &str| {
        let error = scenario.setup().unwrap_err().to_string();
        assert!(error.contains(text), "'{text}' is not in: {error}");
    };
    let three = || sets("coordinator", 3, 3);
    refused(three().with("workload.claim", 0), "workload.claim: '0' asks for nothing");
    refused(three().with("workload.claim", 4), "more than there are resources (3)");
    refused(three().with("workload.claim", "1..4"), "more than there are resources (3)");
    refused(three().with("workload.claim", "3..1"), "put the smaller number first");
    refused(three().with("workload.skew", "-0.1"), "workload.skew: '-0.1' is no number from 0");
    refused(three().with("workload.skew", "NaN"), "'NaN' is no number from 0 to 100");
    refused(sets("coordinator", 3, 0), "there are 1 to 1000000 resources, not 0");
    let one = || Scenario::new().with("algorithm", "coordinator");
    refused(one().with("workload.claim", 2), "with 'resources'");
    refused(one().with("workload.skew", 1), "one resource only");
    let request = |text: &str| scheduled("coordinator", 3, &[text]).with("resources", 3);
    refused(request("2 at 1 for 0,3"), "names resource 3, but the resources are 0 to 2");
    refused(request("2 at 1 for 0,1,0"), "names resource 0 twice; name it once");
    refused(request("2 at 1 for"), "'2 at 1 for' asks for nothing");
    refused(request("2 at 1 for 0,,1"), "names no resource with ''");
    refused(request("2 at 1 for x"), "names no resource with 'x'");
}

#[test]
fn the_parts_of_a_wait_add_up_and_one_lock_for_everything_costs_the_rest() {
    let files = |algorithm: &str| {
        let scenario = Scenario::new()
            .with("algorithm", algorithm)
            .with("nodes", 6)
            .with("resources", 30)
            .with("workload.claim", "1:7,5:3")
            .with("workload.think", "exp:100")
            .with("workload.hold", "exp:50")
            .with("network.delay", "0.01")
            .with("run.warmup", 50)
            .with("run.entries", 2000);
        correct(&scenario)
    };
    for algorithm in ["bouabdallah-laforest", "ordered:naimi-trehel", "naimi-trehel"] {
        let report = files(algorithm);
        let parts = [report.wait_in_use, report.wait_in_line, report.wait_rest];
        let sum: f64 = parts.into_iter().flatten().sum();
        let mean = report.response_mean.unwrap();
        assert!((sum - mean).abs() < 1e-6 * mean, "{algorithm}: {parts:?} of {mean}");
        let (single, several) = (report.single_response_mean, report.several_response_mean);
        // A node that wants one file only waits less, unless all wait for the same lock.
        let is_one_lock = algorithm == "naimi-trehel";
        assert!(is_one_lock || single < several, "{algorithm}: {single:?} {several:?}");
        assert!(single > Some(0.0), "{algorithm}");
        let one_taken = report.one_taken_share.unwrap();
        assert!((0.05..0.95).contains(&one_taken), "{algorithm}: {one_taken}");
    }
    let (made_for_sets, one_lock) = (files("bouabdallah-laforest"), files("naimi-trehel"));
    assert!(made_for_sets.wait_rest < Some(0.5), "{made_for_sets:?}");
    assert!(one_lock.wait_rest > Some(20.0), "{one_lock:?}");
    let single = Scenario::new().with("algorithm", "naimi-trehel");
    assert_eq!(correct(&single).wait_rest, None, "with one resource there is nothing to part");
}

#[test]
fn a_claim_with_weights_must_fit_into_the_resources() {
    let scenario = Scenario::new()
        .with("algorithm", "naimi-trehel")
        .with("resources", 4)
        .with("workload.claim", "1:7,5:3");
    let error = scenario.setup().unwrap_err().to_string();
    assert!(error.contains("'1:7,5:3' is more than there are resources (4)"), "{error}");
}
