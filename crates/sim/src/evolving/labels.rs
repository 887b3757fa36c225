//! How large labels are, as the run goes on.

/// The most points that are kept.
const MOST: usize = 512;

/// The largest label of each stretch of the run. When there are too many stretches, each two
/// become one.
#[derive(Debug)]
pub(super) struct Labels {
    stretch: u64,
    points: Vec<(u64, u64, u64)>,
    pub(super) largest: u64,
}

impl Labels {
    pub(super) fn new() -> Self {
        Labels { stretch: 1, points: Vec::new(), largest: 0 }
    }

    /// At `now` there is a label of `bytes`, which would be `uncollected` if it kept everything.
    pub(super) fn seen(&mut self, now: u64, bytes: u64, uncollected: u64) {
        self.largest = self.largest.max(bytes);
        match self.points.last_mut() {
            Some(last) if last.0 / self.stretch == now / self.stretch => {
                *last = (now, last.1.max(bytes), uncollected);
            }
            _ => self.points.push((now, bytes, uncollected)),
        }
        if self.points.len() > MOST {
            self.stretch *= 2;
            let stretch = self.stretch;
            self.points.dedup_by(|next, kept| {
                let is_same = next.0 / stretch == kept.0 / stretch;
                if is_same {
                    *kept = (next.0, kept.1.max(next.1), next.2);
                }
                is_same
            });
        }
    }

    pub(super) fn into_points(self) -> Vec<(u64, u64, u64)> {
        self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_leaves_few_points_and_none_of_the_peaks_is_lost() {
        let mut labels = Labels::new();
        for now in 0..100_000 {
            labels.seen(now, if now == 4_711 { 99 } else { now % 50 }, now);
        }
        let points = labels.into_points();
        assert!((64..=MOST).contains(&points.len()), "{}", points.len());
        assert_eq!(points.iter().map(|point| point.1).max(), Some(99));
        assert_eq!(points.last().map(|point| point.2), Some(99_999));
    }
}
