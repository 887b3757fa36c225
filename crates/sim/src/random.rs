//! The one generator of a run.
//!
//! xoshiro256++ seeded by splitmix64, as its authors recommend. What is drawn from it is computed
//! here, in integers or with a logarithm that is compiled in, so a seed gives the same run on every
//! machine: neither the sampling of a library nor the system's mathematics can change under it.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A source of random numbers that a seed determines.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The generator of the run with this seed.
    pub fn new(seed: u64) -> Self {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A number from 0 to `limit` - 1, each equally likely. `limit` must not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        // Lemire's method: the high half of a product, redrawn in the few cases that would make
        // some results likelier than others.
        let unfair = limit.wrapping_neg() % limit;
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(limit);
            if product as u64 >= unfair {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number from 0 (excluded) to 1 (included).
    pub fn fraction(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// An exponentially distributed number with the given mean, rounded.
    pub fn exponential(&mut self, mean: f64) -> u64 {
        libm::round(-libm::log(self.fraction()) * mean) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_for_ever() {
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..4).map(|_| random.below(1000)).collect();
        assert_eq!(drawn, PINNED_BELOW);
        assert_eq!(random.exponential(1e6), PINNED_EXPONENTIAL);
    }

    const PINNED_BELOW: [u64; 4] = [811, 747, 100, 746];
    const PINNED_EXPONENTIAL: u64 = 1_689_138;

    #[test]
    fn means_are_what_they_should_be() {
        let mut random = Random::new(7);
        let draws = 100_000;
        let uniform: u64 = (0..draws).map(|_| random.below(101)).sum();
        assert!((uniform as f64 / f64::from(draws) - 50.0).abs() < 0.5);
        let exponential: u64 = (0..draws).map(|_| random.exponential(1000.0)).sum();
        assert!((exponential as f64 / f64::from(draws) - 1000.0).abs() < 20.0);
    }
}
