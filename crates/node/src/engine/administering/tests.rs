//! Holds of real clients that are ended by force, and members that are sent away.

use catraca_client::protocol::ServerMessage;
use catraca_client::{Client, Connection, Loss};
use catraca_group::{AcquireDurable, Wait, Who};

use super::*;
use crate::Node;
use crate::testing::{LIMIT, group, in_view};

const LEASE: Duration = Duration::from_secs(3);

async fn force(node: &Node, name: &str) -> Result<Vec<ForcedHold>, Refusal> {
    let forced = node.engine.force_release(name, &[], "ana", "");
    tokio::time::timeout(LIMIT, forced).await.expect("it ends")
}

#[tokio::test]
async fn a_client_is_told_that_its_lock_is_released_by_force_and_its_session_goes_on() {
    let (nodes, _ways) = group(2, LEASE).await;
    let address = nodes[1].address().to_string();
    let client = Client::builder().addresses([address]).connect().await.unwrap();
    let guard = client.lock("x").await.unwrap();
    let other = client.lock("y").await.unwrap();
    let fence = guard.fence();
    let forcing = force(&nodes[0], "x");
    let giving_up = async {
        let why = guard.lost().await;
        assert_eq!(why, Loss::Forced(Refusal::Forced("ana".to_string())));
        assert!(!why.is_taken() && guard.valid_until() > clock::now(), "there is time to stop");
        assert!(!guard.is_valid());
        drop(guard);
    };
    let (forced, ()) = tokio::join!(forcing, giving_up);
    let forced = forced.unwrap();
    assert_eq!((forced.len(), forced[0].fence, &*forced[0].member), (1, fence, "b"));
    assert!(other.is_valid(), "the session goes on");
    assert!(client.lock("x").await.unwrap().fence() > fence);
}

#[tokio::test]
async fn nobody_is_let_in_while_a_client_that_does_not_answer_may_be_certain() {
    let (nodes, _ways) = group(1, LEASE).await;
    let mut client = Connection::open(&nodes[0].address().to_string()).await.unwrap();
    client.open_session(Who::default(), Some(LIMIT)).await.unwrap();
    client.acquire(1, &["x".to_string()], 1, Wait::Forever).await.unwrap();
    let granted = client.receive().await.unwrap();
    assert!(matches!(granted, ServerMessage::Granted { .. }), "{granted:?}");
    let waiting = nodes[0].lock("x").into_future();
    let valid_until = nodes[0].engine.valid_until();
    let (forced, next) = tokio::join!(force(&nodes[0], "x"), waiting);
    assert_eq!(forced.unwrap().len(), 1);
    let next = next.unwrap();
    assert!(clock::now() >= valid_until, "it could be certain until then");
    assert!(!next.is_lost());
    let lost = client.receive().await.unwrap();
    assert!(matches!(lost, ServerMessage::Lost { request: 1, .. }), "{lost:?}");
}

#[tokio::test]
async fn a_guard_within_the_program_is_lost_and_its_lock_free_when_it_is_dropped() {
    let (nodes, _ways) = group(2, LEASE).await;
    for names in [&["x"][..], &["x", "y"][..]] {
        let guard = match names {
            [one] => nodes[0].lock(one).await.unwrap(),
            all => nodes[0].lock_all(all).await.unwrap(),
        };
        let giving_up = async {
            tokio::time::timeout(LIMIT, guard.lost()).await.expect("it is told");
            assert_eq!(guard.valid_until(), Time(0));
            drop(guard);
        };
        let (forced, ()) = tokio::join!(force(&nodes[1], "x"), giving_up);
        assert_eq!(forced.unwrap().len(), 1);
        assert!(!nodes[0].lock("x").await.unwrap().is_lost(), "the next guard is another one");
    }
}

#[tokio::test]
async fn a_durable_hold_is_released_by_force_at_any_member() {
    let (nodes, _ways) = group(2, LEASE).await;
    let asked = AcquireDurable {
        names: vec!["x".to_string()],
        permits: 1,
        wait: Wait::Forever,
        owner: "ben".to_string(),
        note: String::new(),
        request: "1".to_string(),
    };
    nodes[0].engine.acquire_durably(asked, "", false).await.unwrap();
    let forced = force(&nodes[1], "x").await.unwrap();
    assert_eq!((forced[0].is_durable, &*forced[0].label), (true, "ben"));
    drop(nodes[1].lock("x").within(LIMIT).await.unwrap());
}

#[tokio::test]
async fn what_nobody_holds_cannot_be_released_by_force_and_too_many_at_a_time_are_refused() {
    let (nodes, _ways) = group(1, LEASE).await;
    let nobody = Refusal::NoSuchHold("x".to_string());
    assert_eq!(force(&nodes[0], "x").await.unwrap_err(), nobody);
    let guard = nodes[0].lock("x").await.unwrap();
    let other = nodes[0].engine.force_release("x", &[guard.fence() + 1], "ana", "").await;
    assert_eq!(other.unwrap_err(), nobody, "another hold was meant");
    let turns = nodes[0].engine.administering.try_acquire_many(MOST_AT_A_TIME as u32).unwrap();
    assert_eq!(force(&nodes[0], "x").await.unwrap_err(), Refusal::Busy);
    drop(turns);
    assert!(!guard.is_lost());
}

#[tokio::test]
async fn a_member_is_sent_away_in_order() {
    let (nodes, _ways) = group(3, LEASE).await;
    let guard = nodes[2].lock("x").await.unwrap();
    let kicked = tokio::time::timeout(LIMIT, nodes[0].engine.kick("c", "ana")).await.unwrap();
    assert_eq!(kicked, Ok(()));
    assert_eq!(in_view(&nodes[0]), 2);
    tokio::time::timeout(LIMIT, guard.lost()).await.expect("its clients are told");
    tokio::time::timeout(LIMIT, nodes[2].left()).await.expect("it has left");
    drop(nodes[0].lock("x").within(LIMIT).await.unwrap());
    let unknown = nodes[0].engine.kick("z", "ana").await.unwrap_err();
    assert!(unknown.contains("there is no member 'z' in the view, only: a, b"), "{unknown}");
}

#[tokio::test]
async fn a_member_that_does_not_answer_is_out_when_its_lease_is_over_and_not_before() {
    let (mut nodes, _ways) = group(2, LEASE).await;
    let valid_until = nodes[1].engine.valid_until();
    drop(nodes.pop());
    let kicked = tokio::time::timeout(LIMIT, nodes[0].engine.kick("b", "ana")).await.unwrap();
    assert_eq!(kicked, Ok(()));
    assert!(clock::now() >= valid_until, "it could be certain until then");
    assert_eq!(in_view(&nodes[0]), 1);
}
