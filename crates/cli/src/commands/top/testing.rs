//! A group that looks like a real one.

use catraca_client::{Line, LineKey, LinkStatus, MemberStatus, PastView, RegistryStatus, Status};

use super::asking::{Answer, Listing, Sample};
use super::view::View;
use crate::testing::idle_status;

/// A member in the view, or one that is lost.
pub(super) fn member(name: &str, is_well: bool) -> MemberStatus {
    let link = match (name, is_well) {
        ("a", _) => LinkStatus::Itself,
        (_, true) => LinkStatus::Up(130_000),
        (_, false) => LinkStatus::Down(5_000, "connection refused".to_string()),
    };
    MemberStatus {
        name: name.to_string(),
        address: format!("10.0.0.{}:7800", name.as_bytes()[0] - b'a' + 1),
        cluster: None,
        is_in_view: is_well,
        renewed: is_well.then_some(300),
        link,
        suspected: None,
    }
}

pub(super) fn status() -> Status {
    let view = PastView {
        epoch: 3,
        members: 2,
        cause: "'c' was silent".to_string(),
        age: 5_000,
        took: 12,
    };
    Status {
        millis: 190_000,
        valid: Some(4_200),
        members: vec![member("a", true), member("b", true), member("c", false)],
        registry: Some(RegistryStatus::default()),
        views: vec![view],
        held: 2,
        waiting: 3,
        sessions: 4,
        ..idle_status()
    }
}

/// Somebody at a place of a lock's queue; 0 is the holder.
pub(super) fn line(name: &str, place: u32, who: &str) -> Line {
    let key = LineKey { name: name.to_string(), permits: 1, place, node: "a".into(), ticket: 7 };
    let fence = (place == 0).then_some(12_884_901_888);
    let (label, host) = (who.to_string(), "build-1".to_string());
    let millis = 12_000 + u64::from(place);
    Line { key, fence, label, pid: 4711, host, millis, durable: None }
}

pub(super) fn listing(lines: Vec<Line>) -> Listing {
    Listing { lines, ..Listing::default() }
}

pub(super) fn sample(lines: Vec<Line>) -> Sample {
    let address = "10.0.0.1:7800".to_string();
    Sample { address, status: status(), locks: listing(lines), inspected: None }
}

/// A view that has been answered.
pub(super) fn view(sample: Sample) -> View {
    let mut view = View::new(vec!["10.0.0.1:7800".to_string()]);
    answer(&mut view, sample);
    view
}

pub(super) fn answer(view: &mut View, sample: Sample) {
    view.on_answer(Answer { wish: view.wish(), result: Ok(sample) });
}
