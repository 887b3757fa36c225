//! Broken rules of views, and the groups in which the checker catches them.

use catraca_group::VIEW_MUTANTS;

use super::property;
use super::setting::{Failure, Kind, Setting};

/// A broken rule.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// Its name, one of [`VIEW_MUTANTS`].
    pub name: &'static str,
    /// What has to go wrong for it to be caught, and at which member.
    pub failure: (Kind, usize),
    /// The property that is found broken, one of [`property`].
    pub property: &'static str,
}

impl Mutant {
    const fn new(name: &'static str, failure: (Kind, usize), property: &'static str) -> Self {
        Mutant { name, failure, property }
    }

    /// What is broken, in one sentence.
    pub fn breaks(&self) -> &'static str {
        let mutant = VIEW_MUTANTS.iter().find(|mutant| mutant.name == self.name);
        mutant.map_or("", |mutant| mutant.breaks)
    }

    /// A group of `algorithm` in which it is caught: three members, at two of which somebody asks.
    pub fn setting(&self, algorithm: &str) -> Setting {
        let (kind, member) = self.failure;
        let setting = Setting::new(algorithm, Failure::of(kind, member));
        Setting { askers: 2, mutant: Some(self.name), ..setting }
    }
}

/// Those that the checker catches. The others need a second fault, a late message or durable holds, and are
/// for simulated groups.
pub const ALL: &[Mutant] = &[
    Mutant::new("valid-for-ever", (Kind::Pause, 1), property::EXCLUDED_LET_NOBODY_IN),
    // What comes to it before its alarm is granted.
    Mutant::new("valid-by-alarm", (Kind::Pause, 1), property::EXCLUDED_LET_NOBODY_IN),
    // Only an answer that comes late tells the two apart.
    Mutant::new("valid-from-answer", (Kind::Cut, 1), property::EXCLUDED_LET_NOBODY_IN),
    Mutant::new("excluded-early", (Kind::Crash, 1), property::MUTUAL_EXCLUSION),
    // The member beats on, is in no view, and nobody ever sees that it could join.
    Mutant::new("blind-beat", (Kind::Cut, 1), property::NOBODY_WAITS_FOR_EVER),
    // A proposal that was made before the member went on is carried out afterwards.
    Mutant::new("blind-exclusion", (Kind::Pause, 1), property::EXCLUDED_LET_NOBODY_IN),
    Mutant::new("start-before-reports", (Kind::Crash, 2), property::MUTUAL_EXCLUSION),
    // Whoever was inside at the earlier run trusts that for a while.
    Mutant::new("restart-at-once", (Kind::Restart, 0), property::MUTUAL_EXCLUSION),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_one_breaks_a_rule_of_views_each_another() {
        let names: BTreeSet<&str> = ALL.iter().map(|mutant| mutant.name).collect();
        assert_eq!(names.len(), ALL.len());
        assert!(ALL.iter().all(|mutant| !mutant.breaks().is_empty()));
    }
}
