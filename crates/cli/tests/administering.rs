//! `catraca kick` and `catraca force-release` at real nodes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use support::service::Service;

#[test]
fn a_member_that_is_kicked_is_out_with_its_locks_and_comes_back_when_it_is_started_again() {
    let mut service = Service::start(3, &[]);
    let holder = service.lock(1, "deploy", "echo begun; sleep 1000");
    holder.says("begun");
    let unknown = service.client(0, &["kick"], &["z"]).ends();
    assert_eq!(unknown.code, Some(122), "{unknown:?}");
    unknown.complained(&["there is no member 'z' in the view, only: "]);
    let kicked = service.client(0, &["kick"], &["b"]).ends().quietly(0);
    assert_eq!(kicked.stdout, "'b' is out of the view\n");
    // Its node stops, and whoever held something there is told.
    let ended = service.nodes.remove(1).ends();
    assert!(ended.code.is_some(), "it was not killed: {ended:?}");
    let lost = holder.ends();
    assert_ne!(lost.code, Some(0), "{lost:?}");
    service.client(2, &["lock"], &["deploy", "--", "true"]).ends().quietly(0);
    let node = service.node(1, &[]);
    service.nodes.insert(1, node);
    service.is_whole();
}

#[test]
fn a_lock_is_released_by_force_and_the_command_that_had_it_is_stopped() {
    let service = Service::start(2, &[]);
    let holder = service.lock(1, "deploy", "echo begun; sleep 1000");
    holder.says("begun");
    let nobody = service.client(0, &["force-release"], &["other", "--yes"]).ends();
    assert_eq!(nobody.code, Some(1), "{nobody:?}");
    nobody.complained(&["nobody holds 'other'"]);
    service.client(0, &["force-release"], &["deploy"]).ends().refused(&["say --yes"]);
    assert!(service.locks(0).contains("deploy"), "nobody has said yes");
    let forced = service.client(0, &["force-release"], &["deploy", "--yes"]).ends().quietly(0);
    forced.says("released deploy, held by ");
    let lost = holder.ends();
    assert_ne!(lost.code, Some(0), "{lost:?}");
    service.client(0, &["lock"], &["deploy", "--", "true"]).ends().quietly(0);
}
