//! Groups that change.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]
use catraca_check::views::{Failure, Kind, Setting, check};
use catraca_check::{Limits, Verdict};
#[test]
fn probe() {
    let limit: u64 = std::env::var("LIMIT").map_or(200_000, |l| l.parse().unwrap());
    let algs = std::env::var("ALGS").unwrap_or("naimi-trehel,suzuki-kasami,maekawa,ricart-agrawala,raymond-k,bouabdallah-laforest".into());
    let askers: usize = std::env::var("ASKERS").map_or(usize::MAX, |l| l.parse().unwrap());
    let members: usize = std::env::var("MEMBERS").map_or(3, |l| l.parse().unwrap());
    let kinds = std::env::var("KINDS").unwrap_or("crash,restart,pause,cut".into());
    for alg in algs.split(',') {
        for kind in kinds.split(',') {
            for member in 0..members {
                let _ = Kind::Crash;
                let mut s = Setting::new(alg, format!("{kind}:{member}").parse::<Failure>().unwrap());
                s.askers = askers;
                s.members = members;
                s.begins_inside = std::env::var("INSIDE").is_ok();
                if alg == "raymond-k" { s.permits = 2; }
                if let Ok(m) = std::env::var("MUTANT") { s = s.mutated(&m).unwrap(); }
                let r = check(&s, &Limits { threads: 2, state_limit: Some(limit), ..Limits::default() }, &mut |_| {}).unwrap();
                print!("{alg} {kind}:{member} {} {} {:.2}s ", r.states, r.depth, r.elapsed.as_secs_f64());
                match r.verdict {
                    Verdict::Violated(v) => {
                        println!("{}: {}", v.property, v.what);
                        if std::env::var("TRACE").is_ok() {
                        for step in &v.steps { println!("   {}: {}", step.action, step.effects.join("; ")); } }
                    }
                    v => println!("{v:?}"),
                }
            }
        }
    }
}
