//! Nodes that are killed or stopped, in a group whose semaphores survive it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use support::Folder;
use support::service::{Process, Service, addresses, wait_until};

/// Three nodes with a file that all of them share. Times are long enough for a busy machine.
fn robust_group() -> Service {
    let (folder, addresses) = (Folder::new(), addresses(3));
    let file = format!(
        "[members]\na = '{}'\nb = '{}'\nc = '{}'\n\
         [detector]\ninterval = 2\ntimeout = 2\n\
         [[namespace]]\nnames = 'pool/*'\nalgorithm = 'robust-k'\n",
        addresses[0], addresses[1], addresses[2]
    );
    folder.write("group.toml", &file);
    let node =
        |name| Process::start(folder.command(&["node", "--config", "group.toml", "--name", name]));
    let nodes = ["a", "b", "c"].map(node);
    for (node, others) in nodes.iter().zip([["b", "c"], ["a", "c"], ["a", "b"]]) {
        for other in others {
            node.complains(&format!("connected, member {other}"));
        }
    }
    Service { folder, addresses, nodes: nodes.into() }
}

/// Takes both permits at the last node.
fn take_both(service: &Service) -> [Process; 2] {
    let holders =
        [(); 2].map(|()| service.lock(2, "--ttl 2 --permits 2 pool/x", "exec sleep 1000"));
    wait_until("both are inside", || service.locks(0).contains("2 holders"));
    holders
}

#[test]
fn permits_come_back_when_their_node_is_killed() {
    let service = robust_group();
    service.client(0, &["status"], &[]).ends().quietly(0).says("Hi-ADSD tests every 2s");
    let long = service.lock(0, "--ttl 3 pool/x", "true").ends();
    long.refused(&["--ttl: ", "the time to live can be at most that, not 3s"]);
    let holders = take_both(&service);
    service.nodes[2].signal("KILL");
    for member in [0, 1] {
        // Its time to live is no longer than the detector's time-out, without being told.
        let ran = service.lock(member, "--permits 2 pool/x", "true").ends();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        service.nodes[member].complains("does not answer, and is taken for crashed, member c");
    }
    let status = service.client(1, &["status"], &[]).ends().quietly(3);
    status.says("taken for crashed").says("anomalies  0");
    for holder in holders {
        assert_eq!(holder.ends().code, Some(123), "its lock is lost");
    }
}

#[test]
fn a_node_that_was_stopped_too_long_tells_its_clients_that_their_locks_are_lost() {
    let service = robust_group();
    let holders = take_both(&service);
    service.nodes[2].signal("STOP");
    service.lock(0, "--ttl 2 --permits 2 pool/x", "true").ends().quietly(0);
    service.nodes[2].signal("CONT");
    for holder in holders {
        assert_eq!(holder.ends().code, Some(123), "its lock is lost");
    }
    service.nodes[2].complains("this node is taken for crashed");
    let late = service.lock(2, "--ttl 2 --permits 2 pool/x", "true").ends();
    assert_eq!(late.code, Some(122), "{late:?}");
    late.complained(&["takes this node for crashed", "restart the whole group"]);
    // Other locks do not depend on the detector.
    for member in [2, 0] {
        service.lock(member, "plain", "true").ends().quietly(0);
    }
}
