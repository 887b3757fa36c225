//! What tests of an algorithm ask: small groups explored, runs simulated.
//!
//! Both panic on a description that makes no sense, since that is a fault of the test.

use std::num::NonZero;
use std::thread;

use catraca_check::{Options, Report, check_group};
use catraca_core::{Algorithm, Start};
use catraca_sim::{Hooks, Report as Figures, Scenario, Setup, run_algorithm};

use crate::{Driver, OwnAlgorithm, drive, own};

/// Explores a group of `nodes` that ask so many times each, on the channels that `A` needs; with
/// `mutant` a broken one.
///
/// # Panics
///
/// If there is no such group or no such mutant.
#[track_caller]
pub fn check<A: OwnAlgorithm>(
    nodes: u32,
    requests: u32,
    start: Start,
    mutant: Option<&str>,
) -> Report {
    let scenario = Scenario::new().with("nodes", nodes).with("start", start);
    let setup = described::<A>(match mutant {
        Some(name) => scenario.with("mutant", name),
        None => scenario,
    });
    let options = Options {
        requests,
        crashes: 0,
        claims: Vec::new(),
        network: A::CHANNELS.into(),
        threads: thread::available_parallelism().map_or(1, NonZero::get),
        memory_limit: None,
        state_limit: None,
        stop: None,
    };
    driven::<A, _>(&setup, Explore(&setup, &options))
}

/// Runs what these keys and values say, those of a scenario file: `("workload.rounds", "2")`.
///
/// # Panics
///
/// If they describe no run.
#[track_caller]
pub fn simulate<A: OwnAlgorithm>(said: &[(&'static str, &str)]) -> Figures {
    let say = |scenario: Scenario, &(key, value): &(&'static str, &str)| scenario.with(key, value);
    let setup = described::<A>(said.iter().fold(Scenario::new(), say));
    driven::<A, _>(&setup, Simulate(&setup))
}

#[track_caller]
#[allow(clippy::panic, reason = "a test may fail loudly")]
fn described<A: OwnAlgorithm>(scenario: Scenario) -> Setup {
    scenario.setup_own(own::<A>()).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
#[allow(clippy::panic, reason = "a test may fail loudly")]
fn driven<A: OwnAlgorithm, D: Driver>(setup: &Setup, driver: D) -> D::Output {
    let mutant = setup.spec.mutant.as_deref();
    drive::<A, D>(mutant, setup.spec.nodes, driver).unwrap_or_else(|failure| panic!("{failure:?}"))
}

struct Explore<'a>(&'a Setup, &'a Options);

impl Driver for Explore<'_> {
    type Output = Report;

    fn drive<B: Algorithm>(self, config: B::Config) -> Report {
        check_group::<B>(config, &self.0.spec, self.1, &mut |_| {})
    }
}

struct Simulate<'a>(&'a Setup);

impl Driver for Simulate<'_> {
    type Output = Figures;

    fn drive<B: Algorithm>(self, config: B::Config) -> Figures {
        run_algorithm::<B>(self.0, config, Hooks::default())
    }
}
