//! What `catraca new-algorithm` writes, compiled and tested as a part of the workspace.

#[path = "../template/src/algorithm.rs"]
mod algorithm;
#[path = "../template/src/mutants.rs"]
mod mutants;
#[path = "../template/src/tests.rs"]
mod tests;

/// What the program prints.
fn said(words: &str) -> Result<String, catraca_own::Failure> {
    let words: Vec<String> = words.split(' ').map(str::to_string).collect();
    let mut out = Vec::new();
    catraca_own::run::<algorithm::Node>(&words, &mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[test]
fn a_comparison_takes_every_load_and_several_seeds() {
    let small = "compare --algorithms raymond --nodes 3 --entries 40 --delay exp:1";
    let several = said(&format!("{small} --load medium --seeds 3")).unwrap();
    assert!(several.contains("seeds 1 to 3") && several.contains("±"), "{several}");
    assert_eq!(several.lines().filter(|line| line.starts_with("medium")).count(), 2, "{several}");
    let one = said(small).unwrap();
    assert!(one.contains("One seed, so no interval") && !one.contains("0±"), "{one}");
    for load in ["low", "medium", "high"] {
        assert!(one.lines().any(|line| line.starts_with(load)), "{load}: {one}");
    }
    for wrong in ["--seeds 0", "--seeds 1001", "--load some"] {
        assert!(said(&format!("{small} {wrong}")).is_err(), "{wrong}");
    }
}
