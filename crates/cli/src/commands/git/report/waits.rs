//! How long people waited, and for what.

use std::collections::{BTreeMap, BTreeSet};

use super::log::{Log, Record, What};

/// Whoever asks again so soon, in milliseconds, has not stopped to want it.
const AT_ONCE: u64 = 500;

/// What of the logs is looked at.
pub(super) struct Selected<'a> {
    /// With which the names of the locks begin.
    pub(super) prefix: String,
    /// Locks that were granted before this moment only say who had a file.
    pub(super) from: u64,
    /// The teams of members, where their records do not say them.
    pub(super) teams: &'a BTreeMap<String, String>,
}

/// Sums over locks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) locks: u64,
    waited: u64,
    /// Of it, while somebody had the file.
    for_people: u64,
    /// Locks of which the one before was of a team that is known.
    after_known: u64,
    after_own_team: u64,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.locks += other.locks;
        self.waited += other.waited;
        self.for_people += other.for_people;
        self.after_known += other.after_known;
        self.after_own_team += other.after_own_team;
    }

    fn mean(&self, sum: u64) -> Option<f64> {
        (self.locks > 0).then(|| sum as f64 / self.locks as f64)
    }

    pub(super) fn mean_wait(&self) -> Option<f64> {
        self.mean(self.waited)
    }

    pub(super) fn mean_people(&self) -> Option<f64> {
        self.mean(self.for_people)
    }

    pub(super) fn mean_network(&self) -> Option<f64> {
        self.mean(self.waited - self.for_people)
    }

    pub(super) fn within_share(&self) -> Option<f64> {
        (self.after_known > 0).then(|| self.after_own_team as f64 / self.after_known as f64)
    }
}

/// What the logs show.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) all: Sums,
    pub(super) locks: u64,
    pub(super) teams: BTreeMap<String, Sums>,
    pub(super) people: BTreeSet<String>,
    pub(super) files: BTreeSet<String>,
    pub(super) given_up: u64,
    pub(super) stolen: u64,
    at_once: u64,
    waits: Vec<u64>,
    holds: Vec<u64>,
}

impl Figures {
    pub(super) fn of(log: &Log, selected: &Selected<'_>) -> Self {
        let is_meant = |record: &&Record| record.name.starts_with(&selected.prefix);
        let is_confirmed = log.records.iter().any(|record| record.what == What::Confirmed);
        let (figures, from) = (Figures::default(), selected.from);
        let mut reading = Reading { figures, from, is_confirmed };
        let mut files: BTreeMap<&str, History> = BTreeMap::new();
        for record in log.records.iter().filter(is_meant) {
            let history = files.entry(&record.name).or_default();
            let team = record.team.as_ref().or_else(|| selected.teams.get(&record.member));
            history.step(record, team, &mut reading);
        }
        for history in files.values_mut() {
            history.settle(&mut reading);
        }
        let mut figures = reading.figures;
        figures.locks = figures.all.locks;
        figures.waits.sort_unstable();
        figures
    }

    pub(super) fn mean_wait(&self) -> Option<f64> {
        self.all.mean_wait()
    }

    pub(super) fn mean_people(&self) -> Option<f64> {
        self.all.mean_people()
    }

    pub(super) fn mean_network(&self) -> Option<f64> {
        self.all.mean_network()
    }

    pub(super) fn within_share(&self) -> Option<f64> {
        self.all.within_share()
    }

    /// Of all waiting, that for people.
    pub(super) fn people_share(&self) -> Option<f64> {
        (self.all.waited > 0).then(|| self.all.for_people as f64 / self.all.waited as f64)
    }

    /// Of all locks, those on files that nobody had while they were asked for. The network takes its time for
    /// these too.
    pub(super) fn at_once_share(&self) -> Option<f64> {
        (self.locks > 0).then(|| self.at_once as f64 / self.locks as f64)
    }

    pub(super) fn percentile_wait(&self) -> Option<f64> {
        let last = self.waits.len().checked_sub(1)?;
        Some(self.waits[last * 99 / 100] as f64)
    }

    pub(super) fn mean_hold(&self) -> Option<f64> {
        let sum: u64 = self.holds.iter().sum();
        (!self.holds.is_empty()).then(|| sum as f64 / self.holds.len() as f64)
    }
}

/// One file, as far as the logs were read.
#[derive(Default)]
struct History {
    held_since: Option<u64>,
    /// For how long somebody had the file in all, until it was released last.
    held_before: u64,
    last_team: Option<String>,
    /// Who has asked at which member: since when, and for how long somebody had had the file by then.
    asked: BTreeMap<Asker, Vec<(u64, u64)>>,
    /// Who got no answer in its time, and when. A node asks again by itself, and longer.
    refused: BTreeMap<Asker, (u64, (u64, u64))>,
    /// The same as `asked` of those who wait, whatever they ask for meanwhile.
    waiting: BTreeMap<Asker, Vec<(u64, u64)>>,
    /// A lock that was granted and of which it is not known yet whether it is kept.
    unconfirmed: Option<Unconfirmed>,
}

/// The member that somebody asks, and who that is.
type Asker = (String, String);

/// A lock that the group has granted, and that the registry has to keep.
struct Unconfirmed {
    record: Record,
    team: Option<String>,
    sums: Sums,
    /// Whether somebody waits for it who is told only when it is kept.
    is_waited_for: bool,
}

impl History {
    /// For how long somebody had the file until `at`.
    fn held_until(&self, at: u64) -> u64 {
        self.held_before + self.held_since.map_or(0, |since| at.saturating_sub(since))
    }

    fn step(&mut self, record: &Record, team: Option<&String>, reading: &mut Reading) {
        let asker = (record.member.clone(), record.who.clone());
        let held = self.held_until(record.at);
        let is_meant = record.at >= reading.from;
        match record.what {
            What::Asks => {
                let before = self.refused.remove(&asker);
                let before = before.filter(|(until, _)| record.at - until <= AT_ONCE);
                let since = before.map_or((record.at, held), |(_, since)| since);
                self.asked.entry(asker).or_default().push(since);
            }
            What::Waits => self.waiting.entry(asker).or_default().push((record.at, held)),
            What::Refused => {
                if let Some(since) = first(&mut self.asked, &asker) {
                    self.refused.insert(asker, (record.at, since));
                }
            }
            What::GivesUp => {
                first(&mut self.waiting, &asker);
                reading.figures.given_up += u64::from(is_meant);
            }
            What::Granted => self.grant(record, team, asker, reading),
            What::Confirmed => {
                let is_it = |it: &mut Unconfirmed| it.record.who == record.who;
                let Some(mut kept) = self.unconfirmed.take_if(is_it) else { return };
                // Nobody had the file meanwhile, as nobody knew of the grant: that is the network too.
                kept.sums.waited += record.at.saturating_sub(kept.record.at);
                first(&mut self.waiting, &asker);
                self.count(kept, reading);
            }
            What::Ended => self.end(record.at, reading),
            What::Stolen => reading.figures.stolen += u64::from(is_meant),
        }
    }

    fn grant(
        &mut self,
        record: &Record,
        team: Option<&String>,
        asker: Asker,
        reading: &mut Reading,
    ) {
        let held = self.held_until(record.at);
        self.end(record.at, reading);
        let part = first(&mut self.asked, &asker);
        let waits = self.waiting.get(&asker).and_then(|waits| waits.first()).copied();
        let (since, held_then) = waits.or(part).unwrap_or((record.at, held));
        let sums = Sums {
            locks: 1,
            waited: record.at - since,
            for_people: (held - held_then).min(record.at - since),
            after_known: u64::from(self.last_team.is_some() && team.is_some()),
            after_own_team: u64::from(team.is_some() && self.last_team.as_ref() == team),
        };
        self.held_since = Some(record.at);
        let is_waited_for = waits.is_some();
        let (record, team) = (record.clone(), team.cloned());
        let granted = Unconfirmed { record, team, sums, is_waited_for };
        match reading.is_confirmed {
            true => self.unconfirmed = Some(granted),
            // A log that was written before confirmations were.
            false => {
                first(&mut self.waiting, &asker);
                self.count(granted, reading);
            }
        }
    }

    fn count(&mut self, granted: Unconfirmed, reading: &mut Reading) {
        self.last_team.clone_from(&granted.team);
        reading.count(&granted);
    }

    /// A lock that was not kept was granted by other means, or to an attempt to have several files that came to
    /// nothing: whoever waits for these goes on waiting.
    fn end(&mut self, at: u64, reading: &mut Reading) {
        self.settle(reading);
        self.held_before = self.held_until(at);
        if let Some(since) = self.held_since.take() {
            reading.figures.holds.push(at.saturating_sub(since));
        }
    }

    fn settle(&mut self, reading: &mut Reading) {
        if let Some(granted) = self.unconfirmed.take().filter(|it| !it.is_waited_for) {
            self.count(granted, reading);
        }
    }
}

/// What is counted while logs are read.
struct Reading {
    figures: Figures,
    from: u64,
    /// Whether the logs say when a lock was kept.
    is_confirmed: bool,
}

impl Reading {
    fn count(&mut self, granted: &Unconfirmed) {
        if granted.record.at >= self.from {
            self.figures.add(&granted.record, granted.team.as_ref(), &granted.sums);
        }
    }
}

/// Since when somebody has waited; who asked first is served first.
fn first(waiting: &mut BTreeMap<Asker, Vec<(u64, u64)>>, asker: &Asker) -> Option<(u64, u64)> {
    let waits = waiting.get_mut(asker)?;
    let first = (!waits.is_empty()).then(|| waits.remove(0));
    if waits.is_empty() {
        waiting.remove(asker);
    }
    first
}

impl Figures {
    fn add(&mut self, record: &Record, team: Option<&String>, sums: &Sums) {
        self.all.add(sums);
        self.waits.push(sums.waited);
        self.at_once += u64::from(sums.for_people == 0);
        self.people.insert(record.who.clone());
        self.files.insert(record.name.clone());
        if let Some(team) = team {
            self.teams.entry(team.clone()).or_default().add(sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at: u64, what: What, who: &str, member: &str) -> Record {
        let name = "git/art/game/a.psd".to_string();
        Record { at, what, name, who: who.into(), member: member.into(), team: None }
    }

    #[test]
    fn waiting_is_for_people_while_somebody_has_the_file() {
        let teams = [("a", "rio"), ("b", "rio"), ("c", "paris")];
        let teams =
            teams.iter().map(|(member, team)| (member.to_string(), team.to_string())).collect();
        let records = vec![
            record(0, What::Granted, "ana", "a"),
            record(1_000, What::Asks, "bo", "b"),
            record(2_000, What::Asks, "cy", "c"),
            record(2_500, What::Waits, "di", "c"),
            // Whoever only asks whether it is free does not give up waiting.
            record(2_500, What::Asks, "ed", "c"),
            record(2_550, What::Refused, "ed", "c"),
            record(2_600, What::GivesUp, "di", "c"),
            record(5_000, What::Ended, "ana", "a"),
            record(5_010, What::Granted, "bo", "b"),
            record(7_010, What::Ended, "bo", "b"),
            record(7_260, What::Granted, "cy", "c"),
            record(8_000, What::Ended, "cy", "c"),
        ];
        let mut log = Log { records, ..Log::default() };
        log.sort();
        let all = Selected { prefix: "git/art/game/".into(), from: 0, teams: &teams };
        let figures = Figures::of(&log, &all);
        assert_eq!((figures.locks, figures.given_up), (3, 1));
        // bo: 4 s for ana, 10 ms for the network; cy: 3 s and 2 s for people, 260 ms for the network.
        assert_eq!(figures.all.waited, 4_010 + 5_260);
        assert_eq!(figures.all.for_people, 4_000 + 5_000);
        assert_eq!(figures.within_share(), Some(0.5));
        assert_eq!(figures.teams["rio"].within_share(), Some(1.0));
        assert_eq!(figures.teams["paris"].mean_network(), Some(260.0));
        assert_eq!(figures.at_once_share(), Some(1.0 / 3.0));
        assert_eq!(figures.mean_hold(), Some((5_000.0 + 2_000.0 + 740.0) / 3.0));
        let late = Selected { prefix: "git/".into(), from: 6_000, teams: &teams };
        assert_eq!(Figures::of(&log, &late).locks, 1);
        let other = Selected { prefix: "git/art/other/".into(), from: 0, teams: &teams };
        assert_eq!(Figures::of(&log, &other).mean_wait(), None);
    }

    #[test]
    fn whoever_waits_for_several_files_has_waited_from_the_beginning() {
        let records = vec![
            record(0, What::Granted, "ana", "a"),
            record(1_000, What::Waits, "bo", "b"),
            record(1_500, What::Waits, "cy", "c"),
            record(4_000, What::GivesUp, "cy", "c"),
            // An attempt that comes to nothing is a part of the same wait.
            record(4_100, What::Asks, "bo", "b"),
            record(4_200, What::Refused, "bo", "b"),
            record(5_000, What::Ended, "ana", "a"),
            record(5_002, What::Asks, "bo", "b"),
            record(5_010, What::Granted, "bo", "b"),
        ];
        let log = Log { records: records.clone(), ..Log::default() };
        let all = Selected { prefix: "git/".into(), from: 0, teams: &BTreeMap::new() };
        let figures = Figures::of(&log, &all);
        assert_eq!((figures.locks, figures.given_up), (2, 1));
        assert_eq!((figures.all.waited, figures.all.for_people), (4_010, 4_000));
        // It has this one but not the others, and then all of them.
        let more = [
            record(1, What::Confirmed, "ana", "a"),
            record(5_020, What::Ended, "bo", "b"),
            record(6_000, What::Asks, "bo", "b"),
            record(6_005, What::Granted, "bo", "b"),
            record(6_009, What::Confirmed, "bo", "b"),
        ];
        let mut log = Log { records: [&records[..], &more].concat(), ..Log::default() };
        log.sort();
        let figures = Figures::of(&log, &all);
        assert_eq!(figures.locks, 2);
        assert_eq!((figures.all.waited, figures.all.for_people), (1 + 5_009, 4_010));
    }

    #[test]
    fn a_wait_goes_on_until_the_registry_keeps_the_lock() {
        let teams = [("a".to_string(), "rio".to_string()), ("b".to_string(), "paris".to_string())];
        let records = vec![
            record(0, What::Asks, "ana", "a"),
            record(250, What::Refused, "ana", "a"),
            // The node asks again by itself.
            record(255, What::Asks, "ana", "a"),
            record(300, What::Granted, "ana", "a"),
            record(340, What::Confirmed, "ana", "a"),
            record(1_000, What::Ended, "ana", "a"),
            // By other means, of which nobody tells when they are kept.
            record(1_000, What::Granted, "job", "a"),
            record(2_000, What::Ended, "job", "a"),
            record(2_000, What::Granted, "bo", "b"),
            record(2_030, What::Confirmed, "bo", "b"),
        ];
        let log = Log { records, ..Log::default() };
        let all = Selected { prefix: "git/".into(), from: 0, teams: &teams.into() };
        let figures = Figures::of(&log, &all);
        assert_eq!((figures.locks, figures.given_up), (3, 0));
        assert_eq!((figures.all.waited, figures.all.for_people), (340 + 30, 0));
        assert_eq!(figures.within_share(), Some(0.5));
        assert_eq!(figures.at_once_share(), Some(1.0), "nobody has waited for people");
    }
}
