//! How long something takes.

use std::fmt;
use std::str::FromStr;

use crate::random::Random;
use crate::time::{Time, TimeError};

/// A distribution of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Always the same.
    Constant(Time),
    /// Each from the first to the second equally likely.
    Uniform(Time, Time),
    /// Exponential with this mean.
    Exponential(Time),
}

impl Distribution {
    /// Nothing at all.
    pub const ZERO: Distribution = Distribution::Constant(Time::ZERO);

    /// Draws a time. A constant draws nothing from the generator.
    #[inline]
    pub fn sample(self, random: &mut Random) -> Time {
        match self {
            Distribution::Constant(time) => time,
            Distribution::Uniform(from, to) => Time(from.0 + random.below(to.0 - from.0 + 1)),
            Distribution::Exponential(mean) => Time(random.exponential(mean.0 as f64)),
        }
    }

    /// The longest time that can be drawn; none if there is no such bound.
    pub(crate) fn longest(self) -> Option<Time> {
        match self {
            Distribution::Constant(time) | Distribution::Uniform(_, time) => Some(time),
            Distribution::Exponential(_) => None,
        }
    }

    /// The mean, in units.
    pub fn mean(self) -> f64 {
        match self {
            Distribution::Constant(time) | Distribution::Exponential(time) => time.as_units(),
            Distribution::Uniform(from, to) => (from.as_units() + to.as_units()) / 2.0,
        }
    }
}

/// Why a text is no distribution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DistributionError {
    /// Not one of the forms.
    #[error("'{0}' is no distribution: say constant:1, uniform:0.5..1.5, exp:1, or just a time")]
    Form(String),
    /// A time in it is wrong.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// A uniform distribution that ends before it begins.
    #[error("'{0}' ends before it begins: put the smaller time first")]
    Backwards(String),
}

impl FromStr for Distribution {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<Self, DistributionError> {
        let form = || DistributionError::Form(text.to_string());
        let Some((kind, parameters)) = text.split_once(':') else {
            return text.parse().map(Distribution::Constant).map_err(|_| form());
        };
        match kind {
            "constant" => Ok(Distribution::Constant(parameters.parse()?)),
            "exp" => Ok(Distribution::Exponential(parameters.parse()?)),
            "uniform" => {
                let (from, to) = parameters.split_once("..").ok_or_else(form)?;
                let (from, to): (Time, Time) = (from.parse()?, to.parse()?);
                if to < from {
                    return Err(DistributionError::Backwards(text.to_string()));
                }
                Ok(Distribution::Uniform(from, to))
            }
            _ => Err(form()),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Constant(time) => write!(f, "constant:{time}"),
            Distribution::Uniform(from, to) => write!(f, "uniform:{from}..{to}"),
            Distribution::Exponential(mean) => write!(f, "exp:{mean}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_read_back_as_they_are_written() {
        for text in ["constant:1", "uniform:0.5..1.5", "exp:2"] {
            assert_eq!(text.parse::<Distribution>().unwrap().to_string(), text);
        }
        assert_eq!("3".parse(), Ok(Distribution::Constant(Time::units(3))));
    }

    #[test]
    fn what_is_no_distribution_is_refused_with_the_forms() {
        for text in ["gauss:1", "fast", "uniform:1", "exp:-1", "uniform:2..1", "exp:"] {
            assert!(text.parse::<Distribution>().is_err(), "{text}");
        }
        let error = "gauss:1".parse::<Distribution>().unwrap_err().to_string();
        assert!(error.contains("uniform:0.5..1.5"), "{error}");
    }

    #[test]
    fn samples_have_the_mean_that_is_claimed() {
        let mut random = Random::new(3);
        for text in ["constant:1", "uniform:0.5..1.5", "exp:2"] {
            let distribution: Distribution = text.parse().unwrap();
            let draws = 50_000;
            let total: f64 = (0..draws).map(|_| distribution.sample(&mut random).as_units()).sum();
            assert!((total / f64::from(draws) - distribution.mean()).abs() < 0.05, "{text}");
        }
    }
}
