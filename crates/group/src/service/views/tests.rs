//! Messages that come before their view.

use alloc::vec::Vec;
use core::time::Duration;

use catraca_core::NodeId;

use super::MOST_KEPT;
use crate::driver::StepMessage;
use crate::member::Input;
use crate::question::PeerMessage;
use crate::service::durable::tests::Group;
use crate::shard::Key;
use crate::view::Epoch;

static MEBIBYTE: [u8; 1 << 20] = [0xff; 1 << 20];

fn epoch(group: &Group, site: usize) -> u32 {
    group.sites[site].member.as_ref().unwrap().service().view().epoch.0
}

/// A step of the next view, which no lock understands.
fn nonsense(epoch: u32) -> PeerMessage<'static> {
    let key = Key { name: "x", permits: 1 };
    let (from, to, body) = (NodeId(0), NodeId(1), &MEBIBYTE[..]);
    PeerMessage::Step(StepMessage { epoch: Epoch(epoch), key, from, to, body })
}

/// What comes before and after a lost message must not be taken for all that was said: links lose nothing, and
/// algorithms rely on that.
#[test]
fn a_view_of_which_something_was_lost_is_begun_anew_and_nothing_of_it_is_heard() {
    let mut group = Group::of(2, "naimi-trehel");
    let next = epoch(&group, 1) + 1;
    let run = group.sites[0].member.as_ref().unwrap().service().membership().unwrap().run();
    for _ in 0..=MOST_KEPT >> 20 {
        group.input(1, Input::Hear(run.clone(), nonsense(next)));
    }
    group.add();
    group.pass(Duration::from_secs(1));
    assert_eq!(group.anomalies, Vec::<&str>::new(), "what was kept of it was heard");
    assert_eq!([0, 1, 2].map(|site| epoch(&group, site)), [next + 1; 3]);
    for site in 0..3 {
        assert!(group.is_free(site, "x"), "{site}");
    }
    // One view is enough.
    group.pass(Duration::from_secs(60));
    assert_eq!(epoch(&group, 1), next + 1);
}

#[test]
fn what_comes_before_its_view_is_heard_when_that_begins() {
    let mut group = Group::of(2, "naimi-trehel");
    let next = epoch(&group, 1) + 1;
    let run = group.sites[0].member.as_ref().unwrap().service().membership().unwrap().run();
    group.input(1, Input::Hear(run, nonsense(next)));
    assert_eq!(group.anomalies, Vec::<&str>::new());
    group.add();
    assert_eq!(group.anomalies.len(), 1, "it was nonsense");
    group.pass(Duration::from_secs(1));
    assert_eq!(epoch(&group, 1), next);
}
