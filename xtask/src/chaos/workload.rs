//! What clients ask for, and which algorithm guards it.

use std::fmt::Write;

use anyhow::{Result, bail};
use catraca_sim::Random;

/// How many names a family has: few, so that clients meet.
const NAMES: u64 = 3;
/// Every so many requests are for a name that nobody has used before.
const FRESH: u64 = 8;
/// The classes that names of sets are put into.
const RESOURCES: u32 = 64;

/// How names of a family are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// One at a time.
    Locks,
    /// Places of semaphores that let so many in.
    Semaphores(u32),
    /// Two at a time.
    Sets,
}

/// The names that one algorithm guards.
#[derive(Clone, Copy, Debug)]
struct Family {
    algorithm: &'static str,
    asked: Asked,
}

const FAMILIES: &[Family] = &[
    Family { algorithm: "ricart-agrawala", asked: Asked::Locks },
    Family { algorithm: "naimi-trehel", asked: Asked::Locks },
    Family { algorithm: "suzuki-kasami", asked: Asked::Locks },
    Family { algorithm: "maekawa", asked: Asked::Locks },
    Family { algorithm: "raymond", asked: Asked::Locks },
    Family { algorithm: "raymond-k", asked: Asked::Semaphores(2) },
    Family { algorithm: "bouabdallah-laforest", asked: Asked::Sets },
    Family { algorithm: "robust-k", asked: Asked::Semaphores(2) },
];

/// What stands for all families.
pub(crate) const ALL: &str = "families";

/// A request that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) permits: u32,
    pub(crate) names: Vec<String>,
}

/// The families of a run.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    families: Vec<Family>,
}

impl Workload {
    /// Those of one algorithm, or all.
    pub(crate) fn of(algorithm: &str) -> Result<Self> {
        let is_asked = |family: &&Family| algorithm == ALL || family.algorithm == algorithm;
        let families: Vec<Family> = FAMILIES.iter().filter(is_asked).copied().collect();
        if families.is_empty() {
            let known: Vec<&str> = FAMILIES.iter().map(|family| family.algorithm).collect();
            bail!("no family is called '{algorithm}': {ALL}, {}", known.join(", "));
        }
        Ok(Workload { families })
    }

    /// The part of the members' configuration that says which algorithm guards what.
    pub(crate) fn namespaces(&self) -> String {
        let mut text = String::new();
        for Family { algorithm, asked } in &self.families {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "[[namespace]]\nnames = \"{algorithm}/*\"\nalgorithm = \"{algorithm}\""
            );
            if *asked == Asked::Sets {
                let _ = writeln!(text, "resources = {RESOURCES}");
            }
        }
        text
    }

    /// A request, now and then for a name that `fresh` makes new.
    pub(crate) fn draw(&self, random: &mut Random, fresh: &str) -> Request {
        let family = self.families[random.below(self.families.len() as u64) as usize];
        let Family { algorithm, asked } = family;
        if asked == Asked::Locks && random.below(FRESH) == 0 {
            let name = format!("{algorithm}/fresh-{fresh}");
            return Request { permits: 1, names: vec![name] };
        }
        let first = random.below(NAMES);
        family.request(first, first + 1 + random.below(NAMES - 1))
    }

    /// Requests for everything that clients share, one after the other.
    pub(crate) fn all(&self) -> Vec<Request> {
        let of_family =
            |family: &Family| (0..NAMES).map(|first| family.request(first, first + 1)).collect();
        self.families.iter().flat_map(|family| -> Vec<Request> { of_family(family) }).collect()
    }
}

impl Family {
    fn request(&self, first: u64, second: u64) -> Request {
        let name = |number: u64| format!("{}/{}", self.algorithm, number % NAMES);
        match self.asked {
            Asked::Locks => Request { permits: 1, names: vec![name(first)] },
            Asked::Semaphores(permits) => Request { permits, names: vec![name(first)] },
            Asked::Sets => Request { permits: 1, names: vec![name(first), name(second)] },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use catraca_algorithms::registry::ENTRIES;

    use super::*;

    #[test]
    fn every_family_is_an_algorithm_that_exists() {
        for family in FAMILIES {
            assert!(ENTRIES.iter().any(|entry| entry.name == family.algorithm), "{family:?}");
        }
        assert!(Workload::of("lamprot").is_err());
    }

    #[test]
    fn everything_that_is_shared_is_drawn_and_asked_for_at_the_end() {
        let workload = Workload::of(ALL).unwrap();
        let mut random = Random::new(1);
        let draws = (0..10_000).flat_map(|_| workload.draw(&mut random, "1").names);
        let drawn: BTreeSet<String> = draws.filter(|name| !name.contains("fresh")).collect();
        let asked: BTreeSet<String> =
            workload.all().into_iter().flat_map(|request| request.names).collect();
        assert_eq!(drawn, asked);
        assert_eq!(asked.len(), FAMILIES.len() * NAMES as usize);
    }

    #[test]
    fn a_set_never_has_the_same_name_twice() {
        let workload = Workload::of("bouabdallah-laforest").unwrap();
        let mut random = Random::new(1);
        for _ in 0..1_000 {
            let names = workload.draw(&mut random, "1").names;
            assert_ne!(names[0], names[1]);
        }
    }
}
