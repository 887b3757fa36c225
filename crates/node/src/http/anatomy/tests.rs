//! What members have told, as it is shown.

use catraca_core::{NodeId, Stamp, Value, Variable};
use catraca_group::{
    Anatomy as Told, Instance as ToldInstance, Line, LineKey, Member, Namespace, Page, ShownNode,
    Stand, View,
};

use super::*;

fn view(algorithm: &str) -> View {
    let member = |name: &str| Member {
        name: name.to_string(),
        address: "127.0.0.1:1".to_string(),
        cluster: None,
    };
    let members = ["a", "b", "c"].map(member).to_vec();
    View::new(members, 0, vec![Namespace::new("*", algorithm)], None)
}

fn node(node: NodeId, variables: &[(&'static str, Value)]) -> ShownNode {
    let variable = |(name, value): &(&'static str, Value)| Variable {
        name: (*name).into(),
        value: value.clone(),
    };
    ShownNode {
        node,
        stand: Stand::Idle,
        token: None,
        points_to: None,
        variables: variables.iter().map(variable).collect(),
        is_cut: false,
    }
}

fn told(permits: u32, nodes: Vec<ShownNode>) -> Told {
    let instance = ToldInstance {
        name: "x".to_string(),
        permits,
        held: 0,
        waiting: 0,
        nodes,
        more_nodes: 0,
        grants: Vec::new(),
    };
    Told { instances: vec![instance], page: Page::default() }
}

/// What two of three members have told, `nodes` by their places; the third is silent.
fn picture(algorithm: &str, permits: u32, nodes: impl Fn(&Layout, usize) -> ShownNode) -> Picture {
    let view = view(algorithm);
    let layout = Layout::of(&view, "x", permits);
    let told = (0..2).map(|member| (member, told(permits, vec![nodes(&layout, member)])));
    Picture {
        name: "x".to_string(),
        epoch: view.epoch,
        members: view.members.iter().map(|member| member.name.clone()).collect(),
        told: told.collect(),
        silent: vec![2],
        layouts: vec![layout],
    }
}

fn words(anatomy: &Anatomy) -> Vec<String> {
    let arrows = serde_json::to_value(&anatomy.instances[0].arrows).unwrap();
    let words = arrows.as_array().unwrap().iter().map(|it| it["words"].as_str().unwrap());
    words.map(str::to_string).collect()
}

#[test]
fn pointers_and_the_token_are_told_by_the_names_of_members() {
    let seen = anatomy(
        &picture("naimi-trehel", 1, |layout, member| {
            let (own, other) = (layout.node(member, 0), layout.node(1, 0));
            let next = (member == 1).then(|| layout.node(2, 0));
            let mut node = node(own, &[("next", Value::Node(next))]);
            (node.token, node.points_to) = (Some(member == 1), Some(other));
            node
        }),
        1_000_000,
    );
    let instance = &seen.instances[0];
    assert_eq!(instance.token.as_deref(), Some(&["b".to_string()][..]));
    let expected = ["b passes the token on to c when it leaves", "a would ask b for the token"];
    assert_eq!(words(&seen), expected, "b points to itself, which is no arrow");
    assert_eq!((seen.silent, seen.known, seen.remarks.len()), (vec!["c".to_string()], true, 0));
    let answered: Vec<bool> = instance.members.iter().map(|part| part.answered).collect();
    assert_eq!(answered, [true, true, false]);
}

#[test]
fn a_token_that_nobody_tells_of_may_be_where_nobody_answers() {
    let nobody = |layout: &Layout, member: usize| {
        let mut node = node(layout.node(member, 0), &[]);
        node.token = Some(false);
        node
    };
    let seen = anatomy(&picture("raymond", 1, nobody), 1_000_000);
    assert!(seen.remarks[0].contains("did not answer"), "{:?}", seen.remarks);
    let everybody = Picture { silent: Vec::new(), ..picture("raymond", 1, nobody) };
    assert!(anatomy(&everybody, 1_000_000).remarks[0].ends_with("on its way"));
}

#[test]
fn arbiters_say_whom_they_have_granted_to_and_who_waits_there() {
    let seen = anatomy(
        &picture("maekawa", 1, |layout, member| {
            let stamp = |at: usize| Stamp { time: 4, node: layout.node(at, 0) };
            let (locked, waiting) = (vec![stamp(1)], vec![stamp(2)]);
            let variables =
                [("locked", Value::Stamps(locked)), ("waiting", Value::Stamps(waiting))];
            node(layout.node(member, 0), &variables)
        }),
        1_000_000,
    );
    let mut said = words(&seen);
    said.sort();
    let expected = [
        "a has granted to b",
        "b has granted to b",
        "c waits until a is free",
        "c waits until b is free",
    ];
    assert_eq!(said, expected);
    let quorums = seen.instances[0].quorums.as_ref().unwrap();
    assert!(quorums.iter().all(|quorum| quorum.members.contains(&quorum.node)));
    assert_eq!(seen.instances[0].token, None);
}

#[test]
fn the_nodes_of_a_semaphore_are_told_apart() {
    let seen = anatomy(
        &picture("naimi-trehel", 2, |layout, member| {
            let mut counts = vec![0; 6];
            counts[layout.node(2, 1).index()] = 1;
            node(layout.node(member, 0), &[("defer_count", Value::PerNode(counts))])
        }),
        1_000_000,
    );
    assert_eq!(seen.instances[0].algorithm, "raymond-k");
    let mut said = words(&seen);
    said.sort();
    assert_eq!(said, ["a/1 answers c/2 when it leaves", "b/1 answers c/2 when it leaves"]);
}

#[test]
fn grants_of_all_members_are_in_the_order_of_their_fences_and_the_holder_is_among_them() {
    let mut picture =
        picture("naimi-trehel", 1, |layout, member| node(layout.node(member, 0), &[]));
    let grant = |fence, age_millis, ending| PastGrant {
        fence,
        age_millis,
        waited_millis: None,
        held_millis: None,
        ending,
    };
    picture.told[0].1.instances[0].grants =
        vec![grant(3, 90_000, Some(Ending::Lost)), grant(5, 1_000, None)];
    picture.told[1].1.instances[0].grants = vec![grant(4, 60_000, None)];
    let key = LineKey { name: "x".into(), permits: 1, place: 0, node: "a".into(), ticket: 1 };
    let (label, host) = (String::new(), String::new());
    let line = Line { key, fence: Some(5), label, pid: 0, host, millis: 1, durable: None };
    picture.told[0].1.page.lines = vec![line];
    let seen = anatomy(&picture, 100_000);
    let grants = &seen.instances[0].grants;
    let told: Vec<(&str, &str, Option<&str>)> =
        grants.iter().map(|it| (it.fence.as_str(), it.member.as_str(), it.state)).collect();
    assert_eq!(told, [("3", "a", Some("lost")), ("4", "b", None), ("5", "a", Some("held"))]);
    assert_eq!(grants[0].at, "1970-01-01T00:00:10.000Z");
}

#[test]
fn of_a_name_that_nobody_has_used_it_is_said_what_would_guard_it() {
    let mut picture = picture("maekawa", 1, |layout, member| node(layout.node(member, 0), &[]));
    for (_, told) in &mut picture.told {
        *told = Told::default();
    }
    let seen = anatomy(&picture, 1_000_000);
    assert!(!seen.known && seen.remarks[0].contains("nobody has asked for it"));
    assert_eq!((seen.instances[0].algorithm.as_str(), seen.instances[0].held), ("maekawa", 0));
    assert!(seen.instances[0].members.iter().all(|part| !part.known));
}

#[test]
fn a_node_that_another_member_makes_up_is_no_place() {
    let seen = anatomy(
        &picture("naimi-trehel", 1, |layout, member| {
            let mut node = node(layout.node(member, 0), &[]);
            node.points_to = Some(NodeId(u32::MAX));
            node
        }),
        1_000_000,
    );
    assert!(words(&seen)[0].contains("ask ?"), "{:?}", words(&seen));
}
