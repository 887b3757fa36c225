//! Which resources a request asks for: how many, and how popular each is.

use std::fmt;
use std::str::FromStr;

use catraca_core::{Claim, ResourceId};

use crate::marks::Marks;
use crate::random::Random;

/// The largest exponent of popularity. Beyond it nothing but the first resources is ever drawn.
pub const MAX_SKEW: f64 = 100.0;

/// How often a popular resource may come up again before the draw is made among the rest only.
const TRIES: u32 = 16;

/// The most sizes that can have weights.
const MOST_SIZES: usize = 4;

/// How many resources a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimSize(Sizes);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sizes {
    /// Each number of the range is equally likely.
    Range(u32, u32),
    /// Each of the first so many sizes is as likely as its weight says.
    Weighted([(u32, u32); MOST_SIZES], usize),
}

/// Why a text is no size of a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimSizeError {
    /// Not one of the forms.
    #[error(
        "'{0}' is no number of resources: say 1, a range as in 1..3, or sizes with weights as in \
         1:7,5:3"
    )]
    Form(String),
    /// A claim for nothing.
    #[error("'{0}' asks for nothing: ask for at least 1 resource, as in 1 or 1..3")]
    Nothing(String),
    /// More sizes with weights than can be kept.
    #[error("'{0}' has too many sizes: give at most {MOST_SIZES}")]
    TooMany(String),
    /// A range that ends before it begins.
    #[error("'{0}' ends before it begins: put the smaller number first")]
    Backwards(String),
}

impl ClaimSize {
    /// One resource.
    pub const ONE: ClaimSize = ClaimSize(Sizes::Range(1, 1));

    /// The most that a request may ask for.
    pub fn most(self) -> u32 {
        match &self.0 {
            Sizes::Range(_, to) => *to,
            Sizes::Weighted(sizes, count) => {
                sizes[..*count].iter().map(|(size, _)| *size).max().unwrap_or(1)
            }
        }
    }

    fn draw(self, random: &mut Random) -> u32 {
        match self.0 {
            Sizes::Range(from, to) if from == to => from,
            Sizes::Range(from, to) => from + random.below(u64::from(to - from) + 1) as u32,
            Sizes::Weighted(sizes, count) => {
                let sizes = &sizes[..count];
                let total: u64 = sizes.iter().map(|(_, weight)| u64::from(*weight)).sum();
                let mut drawn = random.below(total);
                let chosen = sizes.iter().find(|(_, weight)| {
                    let is_here = drawn < u64::from(*weight);
                    drawn = drawn.saturating_sub(u64::from(*weight));
                    is_here
                });
                chosen.map_or(1, |(size, _)| *size)
            }
        }
    }

    /// Reads sizes with weights, as in `1:7,5:3`.
    fn weighted(text: &str) -> Result<Self, ClaimSizeError> {
        let form = || ClaimSizeError::Form(text.to_string());
        let mut sizes = [(0, 0); MOST_SIZES];
        let mut count = 0;
        for part in text.split(',') {
            let (size, weight) = part.split_once(':').ok_or_else(form)?;
            let number = |part: &str| part.trim().parse::<u32>().map_err(|_| form());
            let (size, weight) = (number(size)?, number(weight)?);
            if size == 0 || weight == 0 {
                return Err(ClaimSizeError::Nothing(text.to_string()));
            }
            *sizes.get_mut(count).ok_or_else(|| ClaimSizeError::TooMany(text.to_string()))? =
                (size, weight);
            count += 1;
        }
        Ok(ClaimSize(Sizes::Weighted(sizes, count)))
    }
}

impl FromStr for ClaimSize {
    type Err = ClaimSizeError;

    fn from_str(text: &str) -> Result<Self, ClaimSizeError> {
        if text.contains(':') {
            return ClaimSize::weighted(text);
        }
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let number =
            |part: &str| part.trim().parse().map_err(|_| ClaimSizeError::Form(text.to_string()));
        let (from, to): (u32, u32) = (number(from)?, number(to)?);
        match (from, to) {
            (from, to) if to < from => Err(ClaimSizeError::Backwards(text.to_string())),
            (0, _) => Err(ClaimSizeError::Nothing(text.to_string())),
            (from, to) => Ok(ClaimSize(Sizes::Range(from, to))),
        }
    }
}

impl fmt::Display for ClaimSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Sizes::Range(from, to) if from == to => write!(f, "{from}"),
            Sizes::Range(from, to) => write!(f, "{from}..{to}"),
            Sizes::Weighted(sizes, count) => {
                let parts = sizes[..*count].iter().map(|(size, weight)| format!("{size}:{weight}"));
                f.write_str(&parts.collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// What requests ask for, where there is more than one resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claims {
    /// How many resources.
    pub size: ClaimSize,
    /// Resource r is asked for in proportion to 1/(r+1) to this power; 0 makes all alike.
    pub skew: f64,
}

impl Default for Claims {
    fn default() -> Self {
        Claims { size: ClaimSize::ONE, skew: 0.0 }
    }
}

/// Draws claims.
#[derive(Debug)]
pub(crate) struct ClaimSource {
    size: ClaimSize,
    resources: u32,
    /// For each resource the popularity of all up to it. Empty if all are alike.
    cumulative: Vec<f64>,
    /// The resources of the claim that is being drawn.
    drawn: Marks,
}

impl ClaimSource {
    pub(crate) fn new(claims: Claims, resources: u32) -> Self {
        let mut total = 0.0;
        let mut up_to = |rank: u32| {
            total += libm::pow(f64::from(rank), -claims.skew);
            total
        };
        let cumulative =
            if claims.skew > 0.0 { (1..=resources).map(&mut up_to).collect() } else { Vec::new() };
        ClaimSource {
            size: claims.size,
            resources,
            cumulative,
            drawn: Marks::new(resources as usize),
        }
    }

    /// A set of different resources.
    pub(crate) fn draw(&mut self, random: &mut Random) -> Claim {
        let size = self.size.draw(random);
        self.drawn.wipe();
        let places = self.resources - size..self.resources;
        Claim::of(places.map(|last| ResourceId(self.draw_one(last, random))))
    }

    /// One more resource. `last` is the end of the range in Floyd's method.
    fn draw_one(&mut self, last: u32, random: &mut Random) -> u32 {
        let resource = if self.cumulative.is_empty() {
            let resource = random.below(u64::from(last) + 1) as u32;
            if self.drawn.contains(resource as usize) { last } else { resource }
        } else {
            self.draw_popular(random)
        };
        self.drawn.insert(resource as usize);
        resource
    }

    /// Redrawing what was drawn already is the same as drawing among the rest, only faster as
    /// long as the rest is not too unpopular.
    fn draw_popular(&mut self, random: &mut Random) -> u32 {
        let total = self.cumulative.last().copied().unwrap_or(0.0);
        for _ in 0..TRIES {
            let sought = random.fraction() * total;
            let resource = self.cumulative.partition_point(|&up_to| up_to < sought);
            if resource < self.cumulative.len() && !self.drawn.contains(resource) {
                return resource as u32;
            }
        }
        let popularity = |resource: usize| match resource {
            0 => self.cumulative[0],
            _ => self.cumulative[resource] - self.cumulative[resource - 1],
        };
        let rest = || (0..self.cumulative.len()).filter(|&resource| !self.drawn.contains(resource));
        let mut sought = random.fraction() * rest().map(popularity).sum::<f64>();
        let found = rest().find(|&resource| {
            sought -= popularity(resource);
            sought <= 0.0
        });
        // A claim is never larger than the number of resources, so something is left.
        found.or_else(|| rest().next_back()).unwrap_or(0) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(size: &str, skew: f64, resources: u32) -> Vec<u32> {
        let claims = Claims { size: size.parse().unwrap(), skew };
        let mut source = ClaimSource::new(claims, resources);
        let mut random = Random::new(1);
        let mut counts = vec![0; resources as usize];
        for _ in 0..10_000 {
            for resource in source.draw(&mut random).resources() {
                counts[resource.0 as usize] += 1;
            }
        }
        counts
    }

    #[test]
    fn sizes_read_back_as_they_are_written() {
        for text in ["1", "1..3", "1:7,5:3"] {
            assert_eq!(text.parse::<ClaimSize>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_the_remedy() {
        let error = |text: &str| text.parse::<ClaimSize>().unwrap_err().to_string();
        assert!(error("0").contains("at least 1 resource"));
        assert!(error("0..2").contains("at least 1 resource"));
        assert!(error("3..1").contains("put the smaller number first"));
        for text in ["", "x", "1..", "-1", "1.5", "1..x", "1:x"] {
            assert!(error(text).contains("say 1, a range as in 1..3"), "{text}");
        }
        assert!(error("1:7,5").contains("weights as in 1:7,5:3"));
        assert!(error("1:7,0:3").contains("at least 1 resource"));
        assert!(error("1:0").contains("at least 1 resource"));
        assert!(error("1:1,2:1,3:1,4:1,5:1").contains("at most 4"));
    }

    #[test]
    fn sizes_are_spread_evenly_over_their_range() {
        let claims = Claims { size: "1..3".parse().unwrap(), skew: 0.0 };
        let mut source = ClaimSource::new(claims, 5);
        let (mut random, mut sizes) = (Random::new(1), [0; 4]);
        (0..9000).for_each(|_| sizes[source.draw(&mut random).resources().len()] += 1);
        assert_eq!(sizes[0], 0);
        assert!(sizes[1..].iter().all(|size| (2800..3200).contains(size)), "{sizes:?}");
    }

    #[test]
    fn sizes_with_weights_are_as_likely_as_those_say() {
        let size: ClaimSize = "1:7,5:3".parse().unwrap();
        assert_eq!(size.most(), 5);
        let mut source = ClaimSource::new(Claims { size, skew: 1.0 }, 8);
        let (mut random, mut sizes) = (Random::new(1), [0; 6]);
        (0..10_000).for_each(|_| sizes[source.draw(&mut random).resources().len()] += 1);
        assert_eq!(sizes[1] + sizes[5], 10_000);
        assert!((6800..7200).contains(&sizes[1]), "{sizes:?}");
    }

    #[test]
    fn without_skew_all_resources_are_asked_for_alike() {
        assert!(counts("2", 0.0, 4).iter().all(|count| (4800..5200).contains(count)));
        assert_eq!(counts("4", 0.0, 4), [10_000; 4]);
    }

    #[test]
    fn popularity_falls_with_the_power_that_is_given() {
        // 1 + 1/2 + 1/3 + 1/4 is 25/12.
        let expected = [4800.0, 2400.0, 1600.0, 1200.0];
        for (count, expected) in counts("1", 1.0, 4).into_iter().zip(expected) {
            assert!((f64::from(count) - expected).abs() < 200.0, "{count}, not {expected}");
        }
    }

    #[test]
    fn claims_are_whole_even_if_hardly_anybody_wants_the_rest() {
        for skew in [3.0, MAX_SKEW] {
            assert_eq!(counts("50", skew, 50), [10_000; 50]);
        }
    }
}
