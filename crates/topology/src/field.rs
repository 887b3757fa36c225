//! Arithmetic in the finite field of q elements, q a power of a prime.

use alloc::vec::Vec;

/// GF(q). Its elements are the numbers 0 to q-1: the digits of a number to the base p are the
/// coefficients of a polynomial over GF(p), and sums and products are taken modulo an irreducible one.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// The prime of which q is a power.
    p: u32,
    q: u32,
    /// The powers of a generator, from 1 on: all elements but 0.
    powers: Vec<u32>,
    /// The exponents of the elements, by element. That of 0 means nothing.
    exponents: Vec<u32>,
}

impl Field {
    /// The field of `q` elements, if there is one: `q` is a power of a prime.
    pub(crate) fn new(q: u32) -> Option<Self> {
        let (p, degree) = prime_power(q)?;
        // x to the power of the degree is minus the lower part of a polynomial of which x is a root.
        // Where that is primitive, x runs through all elements but 0. One of them is.
        let candidate = |lower: u32| {
            let powers = powers_of_x(p, degree, lower, q)?;
            let mut exponents = alloc::vec![0; q as usize];
            for (exponent, &element) in powers.iter().enumerate() {
                exponents[element as usize] = exponent as u32;
            }
            Some(Field { p, q, powers, exponents })
        };
        (1..q).find_map(candidate)
    }

    /// The sum, digit by digit.
    pub(crate) fn add(&self, mut a: u32, mut b: u32) -> u32 {
        let (mut sum, mut weight) = (0, 1);
        while a > 0 || b > 0 {
            sum += (a % self.p + b % self.p) % self.p * weight;
            (a, b, weight) = (a / self.p, b / self.p, weight * self.p);
        }
        sum
    }

    /// The product.
    pub(crate) fn multiply(&self, a: u32, b: u32) -> u32 {
        if a == 0 || b == 0 {
            return 0;
        }
        let exponent = self.exponents[a as usize] + self.exponents[b as usize];
        self.powers[(exponent % (self.q - 1)) as usize]
    }
}

/// The prime p and the m for which `q` is p to the power of m, if there are.
pub(crate) fn prime_power(q: u32) -> Option<(u32, u32)> {
    let divides = |d: &u32| q.is_multiple_of(*d);
    let p = (2..=q).take_while(|d| d * d <= q).find(divides).unwrap_or(q);
    let (mut rest, mut degree) = (q, 0);
    while p > 1 && rest.is_multiple_of(p) {
        (rest, degree) = (rest / p, degree + 1);
    }
    (rest == 1 && p > 1).then_some((p, degree))
}

/// The powers of x from 1 on, if they are all elements but 0; x to the power of `degree` is `lower`.
fn powers_of_x(p: u32, degree: u32, lower: u32, q: u32) -> Option<Vec<u32>> {
    let top = p.pow(degree - 1);
    let times_x = |element: u32| {
        // Moved up by one digit; the digit that falls out comes back as so many times `lower`.
        let (mut result, mut weight) = (0, 1);
        let (mut shifted, mut lower) = (element % top * p, lower);
        for _ in 0..degree {
            result += (shifted % p + element / top * (lower % p)) % p * weight;
            (shifted, lower, weight) = (shifted / p, lower / p, weight * p);
        }
        result
    };
    let mut powers = alloc::vec![1];
    let mut at = times_x(1);
    while at != 1 {
        if at == 0 || powers.len() as u32 == q {
            return None;
        }
        powers.push(at);
        at = times_x(at);
    }
    (powers.len() as u32 == q - 1).then_some(powers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_primes_have_a_field_and_other_numbers_do_not() {
        let orders: Vec<u32> = (0..=32).filter(|&q| Field::new(q).is_some()).collect();
        assert_eq!(orders, [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32]);
    }

    #[test]
    fn the_laws_of_a_field_hold() {
        for q in [2, 3, 4, 5, 8, 9, 16, 25] {
            let field = Field::new(q).unwrap();
            let (add, times) = (|a, b| field.add(a, b), |a, b| field.multiply(a, b));
            for a in 0..q {
                assert_eq!((add(a, 0), times(a, 1), times(a, 0)), (a, a, 0));
                assert_eq!((0..q).filter(|&b| add(a, b) == 0).count(), 1);
                assert_eq!((0..q).filter(|&b| times(a, b) == 1).count(), usize::from(a != 0));
                for b in 0..q {
                    assert_eq!((add(a, b), times(a, b)), (add(b, a), times(b, a)));
                    for c in 0..q {
                        assert_eq!(add(add(a, b), c), add(a, add(b, c)));
                        assert_eq!(times(times(a, b), c), times(a, times(b, c)));
                        assert_eq!(times(a, add(b, c)), add(times(a, b), times(a, c)));
                    }
                }
            }
        }
    }
}
