//! What `catraca new-algorithm` writes, compiled and tested as a part of the workspace.

#[path = "../template/src/algorithm.rs"]
mod algorithm;
#[path = "../template/src/mutants.rs"]
mod mutants;
#[path = "../template/src/tests.rs"]
mod tests;
