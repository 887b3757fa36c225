//! How fast states are explored: Ricart-Agrawala on three nodes with two requests each, with the
//! search of this crate and, for comparison, with stateright's own.
#![allow(clippy::unwrap_used, reason = "a benchmark may fail loudly")]

use catraca_algorithms::{RicartAgrawala, Spec};
use catraca_check::{Claims, GroupModel, Network, Options, check};
use catraca_core::Start;
use catraca_topology::Members;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use stateright::{Checker, Model};

/// Different states of the model, so that criterion prints states a second.
const STATES: u64 = 58_849;

fn ricart_agrawala(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ricart-agrawala 3 nodes 2 requests");
    group.throughput(Throughput::Elements(STATES)).sample_size(20);
    let spec = Spec::new("ricart-agrawala", 3);
    for threads in [1, 2] {
        let options = Options { threads, network: Network::Any, ..Options::of(&spec).unwrap() };
        group.bench_function(format!("{threads} threads"), |bench| {
            bench.iter(|| {
                let report = check(&spec, &options, &mut |_| {}).unwrap();
                assert_eq!(report.states, STATES);
            });
        });
    }
    group.bench_function("stateright, 2 threads", |bench| {
        bench.iter(|| {
            let model = GroupModel::<RicartAgrawala> {
                config: Members { nodes: 3 },
                nodes: 3,
                start: Start::idle(),
                requests: 2,
                crashes: 0,
                claims: Claims::new(&[], &spec, 2),
                network: Network::Any,
                begin: None,
            };
            let checker = model.checker().threads(2).spawn_bfs().join();
            assert_eq!(checker.unique_state_count() as u64, STATES);
        });
    });
    group.finish();
}

criterion_group!(benches, ricart_agrawala);
criterion_main!(benches);
