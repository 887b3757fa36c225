//! The memory limit. Alone in its process, whose memory it measures.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use catraca_algorithms::Spec;
use catraca_check::{Options, Verdict, check};

#[test]
fn the_memory_limit_ends_the_exploration() {
    const LIMIT: u64 = 100 << 20;
    // More states than fit into that.
    let spec = Spec::new("ricart-agrawala", 5);
    let memory_limit = Some(LIMIT);
    let options = Options { requests: 5, threads: 2, memory_limit, ..Options::of(&spec).unwrap() };
    let report = check(&spec, &options, &mut |_| {}).unwrap();
    let Verdict::OutOfMemory { used, limit } = report.verdict else { panic!("{report:?}") };
    assert!(limit == LIMIT && used > limit && used < 2 * limit, "{used} of {limit}");
    assert!(report.states > 1000 && report.depth > 3);
}
