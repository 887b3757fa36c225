//! What a run says: a line for each fault and every ten seconds, and a table at its end.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use catraca_client::{Time, clock};
use catraca_core::Fence;
use catraca_group::unpack_fence;

use super::history::{Event, History};
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
                self.around(violation, histories);
            }
        }
        if violations.len() > LISTED {
            self.plain(&format!("\nand {} more", violations.len() - LISTED));
        }
    }

    fn around(&mut self, violation: &Violation, histories: &[History]) {
        let faults: Vec<(Time, String)> = self.faults.clone();
        for (at, fault) in faults {
            if at <= violation.at && violation.at.since(at) <= FAULTS_BEFORE {
                self.plain(&format!("  {:>9.3}  fault: {fault}", self.seconds(at)));
            }
        }
        let names = names_of(violation, histories);
        let mut lines = Vec::new();
        for (number, history) in histories.iter().enumerate() {
            let asked = requests_for(history, &names);
            for record in &history.records {
                let key = (number, record.request);
                let is_involved = violation.requests.contains(&key);
                let distance = record.at.since(violation.at) + violation.at.since(record.at);
                let is_near = asked.contains(&record.request) && distance <= AROUND;
                if is_involved || is_near {
                    let mark = if is_involved { '>' } else { ' ' };
                    lines.push((record.at, mark, &history.client, record));
                }
            }
        }
        lines.sort_by_key(|line| line.0);
        let left_out = lines.len().saturating_sub(MOST_LINES);
        // Those that it is about, and the nearest of the others.
        lines.sort_by_key(|line| (line.1 == ' ', distance(line.0, violation.at)));
        lines.truncate(MOST_LINES);
        lines.sort_by_key(|line| line.0);
        for (at, mark, client, record) in lines {
            let text = self.relative(&record.event);
            let at = self.seconds(at);
            self.plain(&format!("{mark} {at:>9.3}  {client:<6} {:>5}  {text}", record.request));
        }
        if left_out > 0 {
            self.plain(&format!("  and {left_out} lines more in the histories"));
        }
    }

    /// An event with its times counted from the beginning of the run.
    fn relative(&self, event: &Event) -> String {
        let until = |time: &Time| {
            if *time == super::history::NEVER {
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
