//! Where an axis has its numbers.

/// Round numbers, about `count` of them, within `from..=to`.
pub(crate) fn linear(from: f64, to: f64, count: f64) -> Vec<f64> {
    let step = round_step((to - from) / count.max(1.0));
    let first = (from / step).ceil() as i64;
    let last = (to / step + 1e-9).floor() as i64;
    (first..=last).map(|index| index as f64 * step).collect()
}

/// The smallest of 1, 2 and 5 times a power of ten that is at least `least`.
pub(crate) fn round_step(least: f64) -> f64 {
    let power = power_of_ten(least.log10().floor() as i32);
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least * 0.999_999);
    factor.unwrap_or(10.0) * power
}

/// The numbers 1, 2 and 5 times a power of ten within `from..=to`.
pub(crate) fn logarithmic(from: f64, to: f64) -> Vec<f64> {
    let powers = from.log10().floor() as i32..=to.log10().ceil() as i32;
    powers
        .flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * power_of_ten(power)))
        .filter(|value| (from * 0.999_999..=to * 1.000_001).contains(value))
        .collect()
}

/// A number as people write it, without noise in the last digits.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1e7 || (size > 0.0 && size < 1e-3) {
        return format!("{value:e}");
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Exact where it can be: `10.0_f64.powi(-1)` differs between machines in the last digit.
fn power_of_ten(power: i32) -> f64 {
    format!("1e{power}").parse().unwrap_or(1.0) // Any such text is a number.
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(values: &[f64]) -> Vec<String> {
        values.iter().map(|&value| number(value)).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(linear(0.0, 10.0, 5.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(linear(3.0, 4.0, 3.0), [3.0, 3.5, 4.0]);
        assert_eq!(written(&linear(0.0, 0.3, 3.0)), ["0", "0.1", "0.2", "0.3"]);
    }

    #[test]
    fn logarithmic_ticks_are_one_two_and_five() {
        assert_eq!(logarithmic(3.0, 100.0), [5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(written(&logarithmic(0.1, 1.0)), ["0.1", "0.2", "0.5", "1"]);
    }

    #[test]
    fn numbers_are_written_as_people_do() {
        let values = [0.0, 1.5, 1024.0, 0.1 + 0.2, 2e7, 5e-5];
        assert_eq!(written(&values), ["0", "1.5", "1024", "0.3", "2e7", "5e-5"]);
    }
}
