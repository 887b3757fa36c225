//! Formulas of the literature, by name: what figures are compared with.

use std::fmt;

use crate::error::{LabError, one_of};

/// A formula in the number of nodes.
#[derive(Clone, Copy)]
pub struct Formula {
    /// As people write it, and as files call it.
    pub name: &'static str,
    of: fn(f64) -> f64,
}

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Formula {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Formula {}

/// All of them.
#[rustfmt::skip]
pub const FORMULAS: &[Formula] = &[
    Formula { name: "N", of: |n| n },
    Formula { name: "N - 1", of: |n| n - 1.0 },
    Formula { name: "2(N - 1)", of: |n| 2.0 * (n - 1.0) },
    Formula { name: "3(N - 1)", of: |n| 3.0 * (n - 1.0) },
    Formula { name: "N/2", of: |n| n / 2.0 },
    Formula { name: "3 sqrt N", of: |n| 3.0 * n.sqrt() },
    Formula { name: "5 sqrt N", of: |n| 5.0 * n.sqrt() },
    Formula { name: "6(sqrt N - 1)", of: |n| 6.0 * (n.sqrt() - 1.0) },
    Formula { name: "12(sqrt N - 1)", of: |n| 12.0 * (n.sqrt() - 1.0) },
    Formula { name: "ln N", of: |n| n.ln() },
    Formula { name: "log2 N", of: |n| n.log2() },
    Formula { name: "4 log2 N", of: |n| 4.0 * n.log2() },
    Formula { name: "(log2 N)/2", of: |n| n.log2() / 2.0 },
    Formula { name: "H_N", of: harmonic },
    Formula { name: "H_N - 1/N", of: |n| harmonic(n) - 1.0 / n },
];

impl Formula {
    /// The formula that `text` names.
    pub(crate) fn parse(place: &str, text: &str) -> Result<Self, LabError> {
        let found = FORMULAS.iter().find(|formula| formula.name == text);
        found.copied().ok_or_else(|| {
            one_of(place, "formula", text, FORMULAS.iter().map(|formula| formula.name))
        })
    }

    /// Its value for a group of `nodes`.
    pub fn of(self, nodes: u32) -> f64 {
        (self.of)(nodes.into())
    }
}

/// 1 + 1/2 + ... + 1/n, the small terms first so that nothing is lost.
fn harmonic(n: f64) -> f64 {
    (1..=n as u64).rev().map(|i| 1.0 / i as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_have_the_values_that_their_names_say() {
        let value = |name: &str| Formula::parse("here", name).unwrap().of(4);
        assert_eq!([value("2(N - 1)"), value("3 sqrt N"), value("(log2 N)/2")], [6.0, 6.0, 1.0]);
        assert!((value("H_N - 1/N") - (1.0 + 0.5 + 1.0 / 3.0)).abs() < 1e-12);
    }

    #[test]
    fn an_unknown_formula_says_which_there_are() {
        let error = Formula::parse("experiment.formulas", "log N").unwrap_err().to_string();
        assert!(error.contains("there is no formula 'log N'"), "{error}");
        assert!(error.contains("ln N, log2 N"), "{error}");
    }
}
