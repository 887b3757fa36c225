//! Figures over simulated time: how often something happens in each interval of a run.

use catraca_sim::Time;
use catraca_trace::{Event, Outcome};

/// The most intervals that are counted: more would not be seen in a picture.
const MOST_INTERVALS: usize = 100_000;

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Entries,
    Messages,
    /// Messages of one kind, or of several: `request+reply`.
    Kind(String),
}

impl Counted {
    /// The names that files know.
    pub(crate) const NAMES: [&str; 3] = ["entries", "messages", "messages.KIND"];

    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "entries" => Some(Counted::Entries),
            "messages" => Some(Counted::Messages),
            _ => text.strip_prefix("messages.").map(|kind| Counted::Kind(kind.to_string())),
        }
    }

    /// In the words of a legend.
    pub(crate) fn label(&self) -> &str {
        match self {
            Counted::Entries => "entries",
            Counted::Messages => "messages",
            Counted::Kind(kind) => kind,
        }
    }

    /// The kind of message, if it is one.
    pub(crate) fn kind(&self) -> Option<&str> {
        match self {
            Counted::Kind(kind) => Some(kind),
            Counted::Entries | Counted::Messages => None,
        }
    }

    fn is(&self, outcome: &Outcome) -> bool {
        match (self, outcome) {
            (Counted::Entries, Outcome::Granted(_)) | (Counted::Messages, Outcome::Send { .. }) => {
                true
            }
            (Counted::Kind(kind), Outcome::Send { message, .. }) => {
                kind.split('+').any(|kind| message.kind == kind)
            }
            _ => false,
        }
    }
}

/// How often something happened, interval by interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timeline {
    interval: Time,
    counted: Counted,
    counts: Vec<u64>,
}

impl Timeline {
    pub(crate) fn new(interval: Time, counted: Counted) -> Self {
        Timeline { interval, counted, counts: Vec::new() }
    }

    pub(crate) fn event(&mut self, event: &Event) {
        let Event::Step(step) = event else { return };
        let happened = step.outcomes.iter().filter(|outcome| self.counted.is(outcome)).count();
        if happened > 0 {
            self.until(Time(step.at));
            if let Some(count) = self.counts.get_mut((step.at / self.interval.0) as usize) {
                *count += happened as u64;
            }
        }
    }

    /// The run has come to this time: intervals in which nothing happened count too.
    pub(crate) fn until(&mut self, time: Time) {
        let intervals = (time.0 / self.interval.0) as usize + 1;
        if intervals > self.counts.len() {
            self.counts.resize(intervals.min(MOST_INTERVALS), 0);
        }
    }

    /// The middle of each interval and the count in it. An interval that the end of the run cuts
    /// short is left out, since less can happen in it.
    pub(crate) fn points(&self, end: Time) -> Vec<(f64, f64)> {
        let whole = (end.0 / self.interval.0) as usize;
        let length = self.interval.as_units();
        let counts = self.counts.iter().take(whole).enumerate();
        counts.map(|(at, &count)| ((at as f64 + 0.5) * length, count as f64)).collect()
    }
}

#[cfg(test)]
mod tests {
    use catraca_sim::{Hooks, Scenario, run};

    use super::*;

    #[test]
    fn every_interval_is_counted_and_a_short_last_one_is_left_out() {
        let scenario = Scenario::new()
            .with("algorithm", "ricart-agrawala")
            .with("nodes", 3)
            .with("workload.arrivals", "schedule")
            .with("workload.schedule", "1 at 2.5");
        let mut lines = [Counted::Entries, Counted::Messages, Counted::Kind("reply".to_string())]
            .map(|counted| Timeline::new(Time::units(1), counted));
        let mut observer = |event: &Event| lines.iter_mut().for_each(|line| line.event(event));
        let hooks = Hooks { observer: Some(&mut observer), stop: None };
        let report = run(&scenario.setup().unwrap(), hooks).unwrap();
        // Requests at 2.5, replies at 3.5, the entry at 4.5, the end at 5.5.
        assert_eq!(report.time, 5.5);
        let end = Time(5_500_000);
        lines.iter_mut().for_each(|line| line.until(end));
        let counts = lines.map(|line| line.points(end).iter().map(|p| p.1).collect::<Vec<_>>());
        assert_eq!(
            counts,
            [[0.0, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 2.0, 2.0, 0.0], [0.0, 0.0, 0.0, 2.0, 0.0]]
        );
    }
}
