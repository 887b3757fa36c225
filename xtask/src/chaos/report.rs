//! What a run says: a line for each fault and every ten seconds, and a table at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use catraca_client::{Time, clock};
use catraca_core::Fence;
use catraca_group::unpack_fence;

use super::history::{Event, History, NEVER, Record};
use super::judge::{self, Violation};

/// So many violations are shown, the first of them whole.
const LISTED: usize = 12;
const SHOWN: usize = 3;
/// What others did with the same names is shown from so long before until so long after.
const AROUND: Duration = Duration::from_millis(1_500);
const MOST_LINES: usize = 24;
/// Faults so long before a violation are shown with it.
const FAULTS_BEFORE: Duration = Duration::from_secs(15);

/// The log of a run: on the terminal and in a file.
pub(crate) struct Log {
    began: Time,
    file: File,
    faults: Vec<(Time, String)>,
}

impl Log {
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        let file = File::create(folder.join("run.log")).context("cannot write the log")?;
        Ok(Log { began: clock::now(), file, faults: Vec::new() })
    }

    pub(crate) fn say(&mut self, text: &str) {
        let line = format!("{:>7.1}  {text}", self.seconds(clock::now()));
        self.plain(&line);
    }

    /// The same for a fault, which is remembered.
    pub(crate) fn fault(&mut self, text: &str) {
        self.faults.push((clock::now(), text.to_string()));
        self.say(text);
    }

    pub(crate) fn plain(&mut self, line: &str) {
        println!("{line}");
        // What cannot be written to the file was said all the same.
        let _ = writeln!(self.file, "{line}");
    }

    /// Seconds since the run began.
    fn seconds(&self, at: Time) -> f64 {
        let (after, before) = (at.since(self.began), self.began.since(at));
        after.as_secs_f64() - before.as_secs_f64()
    }

    /// How it goes, in a line.
    pub(crate) fn progress(&mut self, histories: &[History], memory: &[Option<u64>]) {
        let counts = judge::count(histories);
        let mib = |bytes: &Option<u64>| bytes.map_or("-".to_string(), |b| (b >> 20).to_string());
        let memory: Vec<String> = memory.iter().map(mib).collect();
        self.say(&format!(
            "... {} asked, {} granted, {} lost, {} views; MiB {}",
            counts.asked,
            counts.granted,
            counts.lost,
            views(histories),
            memory.join(" ")
        ));
    }

    /// Violations, the first few with the lines of the histories around them.
    pub(crate) fn violations(&mut self, violations: &[Violation], histories: &[History]) {
        for (number, violation) in violations.iter().take(LISTED).enumerate() {
            let at = self.seconds(violation.at);
            self.plain(&format!("\nVIOLATION at {at:.3}: {}: {}", violation.rule, violation.what));
            if number < SHOWN {
                for line in self.around(violation, histories) {
                    self.plain(&line);
                }
            }
        }
        if violations.len() > LISTED {
            self.plain(&format!("\nand {} more", violations.len() - LISTED));
        }
    }

    /// The faults before a violation, and what the histories say of its requests and, near it, of others
    /// for the same names.
    fn around(&self, violation: &Violation, histories: &[History]) -> Vec<String> {
        let is_before = |at: Time| at <= violation.at && violation.at.since(at) <= FAULTS_BEFORE;
        let faults = self.faults.iter().filter(|(at, _)| is_before(*at));
        let mut lines: Vec<String> = faults
            .map(|(at, fault)| format!("  {:>9.3}  fault: {fault}", self.seconds(*at)))
            .collect();
        let mut records = records_around(violation, histories);
        let left_out = records.len().saturating_sub(MOST_LINES);
        // Those that it is about, and the nearest of the others.
        records.sort_by_key(|(_, is_involved, record)| {
            (!is_involved, distance(record.at, violation.at))
        });
        records.truncate(MOST_LINES);
        records.sort_by_key(|(_, _, record)| record.at);
        for (client, is_involved, record) in records {
            let (mark, at) = (if is_involved { '>' } else { ' ' }, self.seconds(record.at));
            let (request, text) = (record.request, self.relative(&record.event));
            lines.push(format!("{mark} {at:>9.3}  {client:<6} {request:>5}  {text}"));
        }
        if left_out > 0 {
            lines.push(format!("  and {left_out} lines more in the histories"));
        }
        lines
    }

    /// An event with its times counted from the beginning of the run.
    fn relative(&self, event: &Event) -> String {
        let until = |time: &Time| {
            if *time == NEVER {
                "for ever".to_string()
            } else {
                format!("until {:.3}", self.seconds(*time))
            }
        };
        match event {
            Event::Asked { permits, names } => format!("asked {permits} of {}", names.join(" ")),
            Event::Granted { until: time, fences } => {
                let words = fences.iter().map(|&fence| {
                    let (epoch, number, handover) = unpack_fence(Fence(fence));
                    format!("{fence} (view {}, {}, {handover})", epoch.0, number.0)
                });
                format!("granted {} {}", until(time), words.collect::<Vec<_>>().join(" "))
            }
            Event::Renewed { until: time } => format!("renewed {}", until(time)),
            Event::Lost { until: time, why } => format!("lost, valid {}: {why}", until(time)),
            Event::Insisted => "insisted".to_string(),
            Event::Releasing => "releasing".to_string(),
            Event::Released => "released".to_string(),
            Event::Refused { why } => format!("refused: {why}"),
            Event::Done => "done".to_string(),
        }
    }

    /// The table at the end.
    pub(crate) fn table(&mut self, rows: &[(&str, String)]) {
        self.plain("");
        for (what, figure) in rows {
            self.plain(&format!("{what:<40} {figure:>12}"));
        }
    }
}

/// Whose record it is, and whether it belongs to a request that the violation is about.
fn records_around<'a>(
    violation: &Violation,
    histories: &'a [History],
) -> Vec<(&'a str, bool, &'a Record)> {
    let names = names_of(violation, histories);
    let mut records = Vec::new();
    for (number, history) in histories.iter().enumerate() {
        let asked = requests_for(history, &names);
        for record in &history.records {
            let is_involved = violation.requests.contains(&(number, record.request));
            let is_near = distance(record.at, violation.at) <= AROUND;
            if is_involved || is_near && asked.contains(&record.request) {
                records.push((history.client.as_str(), is_involved, record));
            }
        }
    }
    records
}

fn distance(one: Time, other: Time) -> Duration {
    one.since(other) + other.since(one)
}

fn names_of<'a>(violation: &Violation, histories: &'a [History]) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for &(number, request) in &violation.requests {
        for record in &histories[number].records {
            if let Event::Asked { names: asked, .. } = &record.event
                && record.request == request
            {
                names.extend(asked.iter().map(String::as_str));
            }
        }
    }
    names
}

fn requests_for(history: &History, names: &BTreeSet<&str>) -> BTreeSet<u64> {
    let is_for = |event: &Event| match event {
        Event::Asked { names: asked, .. } => asked.iter().any(|name| names.contains(name.as_str())),
        _ => false,
    };
    let asked = history.records.iter().filter(|record| is_for(&record.event));
    asked.map(|record| record.request).collect()
}

/// How often something was granted, by the part of the names before the slash.
pub(crate) fn grants_by_family(histories: &[History]) -> BTreeMap<String, usize> {
    let mut grants = BTreeMap::new();
    for history in histories {
        let mut asked = BTreeMap::<u64, &str>::new();
        for record in &history.records {
            match &record.event {
                Event::Asked { names, .. } => {
                    let family = names.first().and_then(|name| name.split('/').next());
                    asked.insert(record.request, family.unwrap_or_default());
                }
                Event::Granted { .. } => {
                    let family = asked.get(&record.request).copied().unwrap_or_default();
                    *grants.entry(family.to_string()).or_default() += 1;
                }
                _ => {}
            }
        }
    }
    grants
}

/// How many views there were, as far as fences tell.
pub(crate) fn views(histories: &[History]) -> usize {
    let mut epochs = BTreeSet::new();
    for record in histories.iter().flat_map(|history| &history.records) {
        if let Event::Granted { fences, .. } = &record.event {
            epochs.extend(fences.iter().map(|&fence| unpack_fence(Fence(fence)).0));
        }
    }
    match (epochs.first(), epochs.last()) {
        (Some(first), Some(last)) => (last.0 - first.0) as usize + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::judge::judge;

    fn history(client: &str, written: &str) -> History {
        let mut history = History::new(client);
        history.extend(written).unwrap();
        history
    }

    #[test]
    fn a_violation_is_told_with_the_faults_before_it_and_what_others_did_with_the_name() {
        let second = 1_000_000_000;
        let log = Log {
            began: Time(second),
            file: File::create("/dev/null").unwrap(),
            faults: vec![(Time(second * 2), "a is killed".to_string())],
        };
        let lines = |fence: u64| {
            format!("{} 1 asked 1 x\n{} 1 granted {} {fence}\n", 2 * second, 3 * second, 9 * second)
        };
        let bystander = format!("{} 4 asked 1 x\n{0} 5 asked 1 y\n", 3 * second);
        let histories =
            [history("c0", &lines(1)), history("c1", &lines(2)), history("c2", &bystander)];
        let violation = &judge(&histories, None)[0];
        let told = log.around(violation, &histories).join("\n");
        for part in
            ["fault: a is killed", "1.000  c0", ">     2.000  c1", "    2.000  c2         4"]
        {
            assert!(told.contains(part), "'{part}' is not in:\n{told}");
        }
        assert!(!told.contains("asked 1 of y"), "{told}");
    }

    #[test]
    fn grants_are_counted_by_family() {
        let written = "1 1 asked 1 a/1\n2 1 granted 9 1\n3 2 asked 1 b/1 b/2\n4 2 granted 9 1 1\n\
                       5 3 asked 1 a/2\n6 3 granted 9 1\n7 4 asked 1 a/1\n";
        let grants = grants_by_family(&[history("c", written)]);
        assert_eq!(grants, BTreeMap::from([("a".to_string(), 2), ("b".to_string(), 1)]));
    }

    #[test]
    fn views_are_counted_from_the_first_epoch_to_the_last() {
        assert_eq!(views(&[]), 0);
        let fence = |epoch: u64| {
            let first = (0..64).find(|bit| unpack_fence(Fence(1 << bit)).0.0 == 1).unwrap();
            epoch << first
        };
        let written =
            format!("1 1 asked 1 x\n2 1 granted 9 {}\n3 2 granted 9 {}\n", fence(4), fence(7));
        assert_eq!(views(&[history("c", &written)]), 4);
    }
}
