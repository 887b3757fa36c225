//! Several runs that differ in nothing but their seeds: the mean of a figure, and how certain it is.

use std::fmt;

/// The mean of a figure over seeds, with its confidence interval of 95 % after Student.
///
/// The runs are independent, and a figure of a run is itself a mean or a count of many things, so that
/// Student's assumption of normal figures is a mild one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The interval reaches from so much below the mean to so much above it: 0 for one run.
    pub half_width: f64,
}

impl Estimate {
    /// The estimate from one value a seed; nothing from none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        match values {
            [] => None,
            // The mean of equal numbers is not always equal to them.
            [first, rest @ ..] if rest.iter().all(|value| value == first) => {
                Some(Estimate { mean: *first, half_width: 0.0 })
            }
            _ => {
                let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
                let error = (squares / (count - 1.0) / count).sqrt();
                Some(Estimate { mean, half_width: quantile(values.len() - 1) * error })
            }
        }
    }

    /// The least and the most of the interval.
    pub fn interval(&self) -> (f64, f64) {
        (self.mean - self.half_width, self.mean + self.half_width)
    }

    /// The interval of a figure that cannot be less than 0, as pictures show it.
    pub fn drawn(&self) -> (f64, f64) {
        let (least, most) = self.interval();
        (if self.mean >= 0.0 { least.max(0.0) } else { least }, most)
    }

    /// Whether it is above zero, if the interval decides that.
    pub fn is_positive(&self) -> Option<bool> {
        match self.interval() {
            (least, _) if least >= 0.0 => Some(true),
            (_, most) if most < 0.0 => Some(false),
            _ => None,
        }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&short(self.mean))?;
        match self.half_width > 0.0 {
            true => write!(f, " ± {}", short(self.half_width)),
            false => Ok(()),
        }
    }
}

/// Student's t for a two-sided interval of 95 %, by degrees of freedom.
fn quantile(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    match freedom {
        0 => f64::INFINITY,
        1..=30 => TABLE[freedom - 1],
        // Cornish and Fisher's first terms: right to three decimals from here on.
        _ => 1.960 + 2.372 / freedom as f64 + 2.822 / (freedom as f64).powi(2),
    }
}

/// A number with as many digits as are worth reading.
pub fn short(value: f64) -> String {
    // Minus nothing is nothing.
    let value = value + 0.0;
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 0.1 || size == 0.0 => format!("{value:.2}"),
        size if size >= 1e-6 => {
            let decimals = (-size.log10()).ceil() as usize + 1;
            format!("{value:.decimals$}")
        }
        _ => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_long_as_they_are_worth_reading() {
        assert_eq!(short(-0.0), "0.00");
        let numbers = [0.0, 3.0, 0.994, 12.345, 126.04, 3069.4, 0.0123, 0.000_45];
        let words = numbers.map(short);
        assert_eq!(words, ["0.00", "3.00", "0.99", "12.35", "126.0", "3069", "0.012", "0.00045"]);
    }

    #[test]
    fn an_interval_is_students() {
        let estimate = Estimate::of(&[4.0, 5.0, 6.0]).unwrap();
        assert_eq!(estimate.mean, 5.0);
        // One is the deviation; t is 4.303 for two degrees of freedom.
        assert!((estimate.half_width - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9, "{estimate:?}");
        assert_eq!(estimate.to_string(), "5.00 ± 2.48");
    }

    #[test]
    fn one_run_and_equal_runs_have_no_width() {
        assert_eq!(Estimate::of(&[]), None);
        let exact = Estimate { mean: 0.1, half_width: 0.0 };
        assert_eq!(Estimate::of(&[0.1]), Some(exact));
        assert_eq!(Estimate::of(&[0.1; 7]), Some(exact));
        assert_eq!(exact.to_string(), "0.10");
    }

    #[test]
    fn the_table_goes_on_without_a_step() {
        assert!(quantile(30) > quantile(31) && quantile(30) - quantile(31) < 0.005);
        assert!((quantile(60) - 2.000).abs() < 0.001 && (quantile(120) - 1.980).abs() < 0.001);
    }

    #[test]
    fn no_picture_shows_less_than_nothing() {
        assert_eq!(Estimate { mean: 1.0, half_width: 3.0 }.drawn(), (0.0, 4.0));
        assert_eq!(Estimate { mean: -1.0, half_width: 3.0 }.drawn(), (-4.0, 2.0));
    }

    #[test]
    fn a_sign_is_decided_only_by_a_whole_interval() {
        let estimate = |mean, half_width| Estimate { mean, half_width };
        assert_eq!(estimate(1.0, 0.5).is_positive(), Some(true));
        assert_eq!(estimate(-1.0, 0.5).is_positive(), Some(false));
        assert_eq!(estimate(0.2, 0.5).is_positive(), None);
        assert_eq!(estimate(0.0, 0.0).is_positive(), Some(true));
    }
}
