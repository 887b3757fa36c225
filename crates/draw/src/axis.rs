//! The axes of charts.

use crate::ticks;

/// Up to this many different values on a logarithmic axis get a number each.
const MAX_VALUES: usize = 14;

/// An axis of a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Axis {
    /// What it measures.
    pub label: String,
    /// How numbers become lengths.
    pub scale: Scale,
}

/// How numbers become lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// The same difference has the same length.
    #[default]
    Linear,
    /// The same factor has the same length. Numbers of zero or less have no place.
    Logarithmic,
}

impl Axis {
    /// An axis on which the same difference has the same length.
    pub fn linear(label: impl Into<String>) -> Self {
        Axis { label: label.into(), scale: Scale::Linear }
    }

    /// An axis on which the same factor has the same length.
    pub fn logarithmic(label: impl Into<String>) -> Self {
        Axis { label: label.into(), scale: Scale::Logarithmic }
    }

    /// From the smallest to the largest value, with a little room at both ends. On a logarithmic
    /// axis the values themselves get numbers if they are few, such as 4, 16, 64.
    pub(crate) fn fit_exactly(&self, values: impl Iterator<Item = f64>) -> Extent {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        let (low, high) = self.scale.apart(&values);
        let (from, to) = (self.scale.length(low), self.scale.length(high));
        let room = (to - from) * 0.03;
        let few = self.scale == Scale::Logarithmic && values.len() <= MAX_VALUES;
        let values = if few { values } else { Vec::new() };
        Extent { scale: self.scale, from: from - room, to: to + room, values }
    }

    /// From a round number to a round number, and from zero where a linear axis can.
    pub(crate) fn fit_round(&self, values: impl Iterator<Item = f64>) -> Extent {
        let values: Vec<f64> = values.collect();
        let (low, high) = self.scale.apart(&values);
        let (from, to) = match self.scale {
            Scale::Linear => {
                let low = low.min(0.0);
                let step = ticks::round_step((high - low) / 6.0);
                ((low / step).floor() * step, (high / step).ceil() * step)
            }
            Scale::Logarithmic => {
                let round = ticks::logarithmic(low / 10.0, high * 10.0);
                let below = round.iter().rfind(|&&tick| tick <= low * 1.000_001);
                let above = round.iter().find(|&&tick| tick >= high * 0.999_999);
                (below.map_or(low, |&tick| tick).log10(), above.map_or(high, |&tick| tick).log10())
            }
        };
        Extent { scale: self.scale, from, to, values: Vec::new() }
    }
}

impl Scale {
    /// Whether the number has a place on such an axis.
    pub(crate) fn has(self, value: f64) -> bool {
        // Beyond 1e300 lies arithmetic that overflows, and nothing that is measured.
        value.abs() < 1e300 && (self == Scale::Linear || value > 1e-300)
    }

    fn length(self, value: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Logarithmic => value.log10(),
        }
    }

    /// The smallest and the largest of the values, pulled apart if they are the same.
    fn apart(self, values: &[f64]) -> (f64, f64) {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match self {
            _ if low > high => (1.0, 10.0),
            _ if low < high => (low, high),
            Scale::Linear => {
                let room = (high.abs() * 0.1).max(1.0);
                (if low >= 0.0 { (low - room).max(0.0) } else { low - room }, high + room)
            }
            Scale::Logarithmic => (low / 2.0, high * 2.0),
        }
    }
}

/// The part of an axis that is drawn.
#[derive(Debug)]
pub(crate) struct Extent {
    scale: Scale,
    /// As a length: logarithms on a logarithmic axis.
    from: f64,
    to: f64,
    /// Values that deserve a number.
    values: Vec<f64>,
}

impl Extent {
    /// Where the value is: 0 at the beginning, 1 at the end.
    pub(crate) fn share(&self, value: f64) -> f64 {
        (self.scale.length(value) - self.from) / (self.to - self.from)
    }

    /// A number that is on it.
    pub(crate) fn begin(&self) -> f64 {
        match self.scale {
            Scale::Linear => self.from,
            Scale::Logarithmic => 10f64.powf(self.from),
        }
    }

    /// Where the axis has numbers, as many as have room on `length` pixels. `room` says how much of
    /// it a number takes.
    pub(crate) fn ticks(&self, length: f64, room: impl Fn(&str) -> f64) -> Vec<(f64, String)> {
        let candidates = match self.scale {
            Scale::Linear => ticks::linear(self.from, self.to, (length / 50.0).min(8.0)),
            Scale::Logarithmic if !self.values.is_empty() => self.values.clone(),
            Scale::Logarithmic => self.logarithmic_ticks(length),
        };
        let mut end = f64::NEG_INFINITY;
        let mut shown = Vec::new();
        for value in candidates {
            let text = ticks::number(value);
            let (middle, half) = (self.share(value) * length, room(&text) / 2.0);
            if middle - half >= end {
                end = middle + half;
                shown.push((value, text));
            }
        }
        shown
    }

    /// Steps of 1, 2, 5, or only powers of ten, or only some of them, as there is room.
    fn logarithmic_ticks(&self, length: f64) -> Vec<f64> {
        let all = ticks::logarithmic(10f64.powf(self.from), 10f64.powf(self.to));
        let decade = length / (self.to - self.from);
        if decade >= 110.0 {
            return all;
        }
        let every = (35.0 / decade).ceil().max(1.0);
        all.into_iter()
            .filter(|value| {
                let power = value.log10();
                (power - power.round()).abs() < 1e-6 && power.round() % every == 0.0
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(extent: &Extent, length: f64) -> Vec<String> {
        extent
            .ticks(length, |text| text.len() as f64 * 9.0)
            .into_iter()
            .map(|tick| tick.1)
            .collect()
    }

    #[test]
    fn few_values_on_a_logarithmic_axis_get_a_number_each() {
        let extent = Axis::logarithmic("N").fit_exactly([64.0, 4.0, 16.0, 4.0, 1024.0].into_iter());
        assert_eq!(shown(&extent, 600.0), ["4", "16", "64", "1024"]);
        assert!(extent.share(4.0) > 0.0 && extent.share(1024.0) < 1.0);
        assert_eq!(shown(&extent, 60.0), ["4", "16", "1024"], "what has no room is left out");
    }

    #[test]
    fn logarithmic_numbers_thin_out_with_the_room() {
        let extent = |high| Axis::logarithmic("m").fit_round([1.0, high].into_iter());
        assert_eq!(shown(&extent(40.0), 300.0), ["1", "2", "5", "10", "20", "50"]);
        assert_eq!(shown(&extent(1e4), 300.0), ["1", "10", "100", "1000", "10000"]);
        assert_eq!(
            shown(&extent(1e12), 400.0),
            ["1", "100", "10000", "1000000", "1e8", "1e10", "1e12"]
        );
    }

    #[test]
    fn linear_axes_begin_at_zero_and_end_at_a_round_number() {
        let extent = Axis::linear("m").fit_round([3.0, 19.0].into_iter());
        assert_eq!(shown(&extent, 400.0), ["0", "5", "10", "15", "20"]);
        assert_eq!((extent.share(0.0), extent.share(20.0)), (0.0, 1.0));
    }

    #[test]
    fn a_single_value_and_no_value_still_make_an_axis() {
        for axis in [Axis::linear("m"), Axis::logarithmic("m")] {
            for values in [vec![], vec![7.0]] {
                for extent in [
                    axis.fit_exactly(values.iter().copied()),
                    axis.fit_round(values.iter().copied()),
                ] {
                    assert!(extent.from < extent.to, "{extent:?}");
                    assert!(!shown(&extent, 300.0).is_empty() || values.is_empty(), "{extent:?}");
                }
            }
        }
    }
}
