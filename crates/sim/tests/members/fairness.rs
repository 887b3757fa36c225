//! Clients get the same share, however they are spread over the members.

use catraca_group::Turns;
use catraca_sim::members::Setup;
use catraca_sim::{Latency, Limits};

use crate::correct;

/// Clients that want one lock all the time.
fn contended(algorithm: &str, clients: u32, seed: u64) -> Setup {
    Setup {
        clients,
        seed,
        hold: "exp:0.5".parse().unwrap(),
        latency: Latency::Uniform("uniform:0.1..1".parse().unwrap()),
        limits: Limits { entries: Some(u64::from(clients) * 100), time: None },
        ..Setup::new(algorithm, 3)
    }
}

#[test]
fn clients_spread_unevenly_over_three_members_get_the_same_share() {
    for algorithm in ["naimi-trehel", "suzuki-kasami", "ricart-agrawala", "coordinator"] {
        // Three members have 3, 3 and 2 of the eight clients, and 22, 21 and 21 of the others.
        for clients in [8, 64] {
            for seed in 1..=5 {
                let setup = contended(algorithm, clients, seed);
                let report = correct(&setup);
                let fairness = (report.client_fairness.unwrap(), report.member_fairness.unwrap());
                assert!(fairness.0 >= 0.98 && fairness.1 >= 0.98, "{fairness:?} {setup:?}");
                assert!(report.handovers > 0, "members hand over");
            }
        }
    }
}

/// As over sockets: whoever leaves comes back about when the next one leaves.
#[test]
fn clients_that_take_a_while_to_come_back_get_the_same_share() {
    for algorithm in ["naimi-trehel", "suzuki-kasami", "bertier"] {
        for clients in [7, 8, 64] {
            for think in ["exp:0.3", "exp:0.5", "uniform:0.2..0.8", "exp:1"] {
                for seed in 1..=3 {
                    let think = think.parse().unwrap();
                    let setup = Setup { think, ..contended(algorithm, clients, seed) };
                    let report = correct(&setup);
                    let fairness = report.client_fairness.unwrap();
                    assert!(fairness >= 0.9, "{fairness} {setup:?}");
                    assert!(report.handovers > 0, "members hand over");
                }
            }
        }
    }
}

#[test]
fn without_handovers_members_take_turns_and_clients_of_larger_ones_get_less() {
    let turns = Turns { handovers: 0, ..Turns::USUAL };
    let setup = Setup { turns, ..contended("naimi-trehel", 8, 1) };
    let report = correct(&setup);
    assert!(report.client_fairness.unwrap() < 0.98, "{:?}", report.client_fairness);
    assert_eq!(report.handovers, 0);
}

/// With so many rounds that the bound decides, turns are as long for two clients as for three: this is
/// what the length of a turn by its queue is for.
#[test]
fn turns_of_one_length_give_clients_of_larger_members_less() {
    let turns = Turns { rounds: Turns::MOST_ROUNDS, ..Turns::USUAL };
    let setup = Setup { turns, ..contended("naimi-trehel", 8, 1) };
    let (equal, usual) = (correct(&setup), correct(&contended("naimi-trehel", 8, 1)));
    assert!(equal.client_fairness.unwrap() < 0.98, "{:?}", equal.client_fairness);
    assert!(usual.client_fairness.unwrap() >= 0.98, "{:?}", usual.client_fairness);
}
