//! What `catraca top` shows, as a value: keys and answers go in, the screen is drawn from it.

#[cfg(test)]
mod tests;

use std::time::Duration;

use catraca_client::{LineKey, Selection, Status};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::asking::{Answer, LookRequest, Meant, Sample};
use super::rows::{Row, Sort, rows};
use crate::commands::locks::{printable, who};

/// How long the footer tells what has happened last.
const NEWS_TIME: Duration = Duration::from_secs(5);
/// No filter is longer than a name.
const LONGEST_FILTER: usize = 255;

/// Everything that is shown, and how.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The nodes that the user has named.
    nodes: Vec<String>,
    /// The one that the user has switched to, instead of the first of them.
    chosen: Option<String>,
    pub(super) sample: Option<Sample>,
    pub(super) rates: Option<Rates>,
    /// For how long there has been no answer.
    pub(super) silence: Duration,
    /// Why there is none.
    pub(super) trouble: Option<String>,
    /// What has happened last, and how long ago.
    news: Option<(String, Duration)>,
    pub(super) rows: Vec<Row>,
    /// Which of the rows, or which line of a page, the cursor is at.
    pub(super) cursor: usize,
    pub(super) sort: Sort,
    pub(super) filter: String,
    /// Where the parts of the list begin that come before this one.
    parts: Vec<LineKey>,
    pub(super) page: Page,
    pub(super) input: Option<Input>,
    pub(super) is_paused: bool,
    /// Whether holds are being ended: one lock after the other.
    is_forcing: bool,
    /// How far the cursor goes with one key for a whole page.
    height: usize,
}

/// What the screen is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Page {
    /// Members and locks.
    #[default]
    Overview,
    /// All members.
    Members,
    /// The last views.
    Views,
    /// One lock.
    Lock(String),
    /// The keys.
    Help,
}

/// What the user is being asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// Which locks to show.
    Filter(String),
    /// Whether these holds are to end.
    Force(Meant),
}

/// What is to be done that this value cannot do itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Quit,
    /// Stop until the shell lets it go on.
    Suspend,
    /// End these holds; then [`View::on_forced`] is to be called.
    Force(Meant),
}

/// How often something has happened in a second, at the node that is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rates {
    pub(super) grants: f64,
    pub(super) handovers: f64,
    pub(super) messages: f64,
}

impl Rates {
    /// Between two answers of one run of a node.
    fn between(earlier: &Status, later: &Status) -> Option<Self> {
        let millis = later.millis.checked_sub(earlier.millis).filter(|&millis| millis > 0)?;
        let rate = |before: u64, after: u64| {
            after.checked_sub(before).map(|count| count as f64 * 1000.0 / millis as f64)
        };
        (earlier.node == later.node).then_some(())?;
        Some(Rates {
            grants: rate(earlier.grants, later.grants)?,
            handovers: rate(earlier.handovers, later.handovers)?,
            messages: rate(earlier.messages, later.messages)?,
        })
    }
}

impl View {
    pub(super) fn new(nodes: Vec<String>) -> Self {
        View { nodes, height: 10, ..View::default() }
    }

    /// The screen has so many rows.
    pub(super) fn on_resize(&mut self, rows: u16) {
        self.height = usize::from(rows / 2).max(1);
    }

    /// What has to be asked for it.
    pub(super) fn wish(&self) -> LookRequest {
        let others = self.nodes.iter().filter(|node| Some(*node) != self.chosen.as_ref());
        let nodes = self.chosen.iter().chain(others).cloned().collect();
        let is_prefix = !self.filter.is_empty() && !self.filter.starts_with('*');
        let names = match is_prefix {
            true => Selection::Prefix(self.filter.clone()),
            false => Selection::All,
        };
        let inspected = match &self.page {
            Page::Lock(name) => Some(name.clone()),
            _ => None,
        };
        let after = self.parts.last().cloned();
        LookRequest { nodes, names, after, inspected, is_paused: self.is_paused }
    }

    /// What the rows have to contain; a filter without a star is the node's business.
    fn text(&self) -> Option<&str> {
        self.filter.strip_prefix('*').filter(|text| !text.is_empty())
    }

    /// What came of asking.
    pub(super) fn on_answer(&mut self, answer: Answer) {
        if answer.wish != self.wish() {
            return;
        }
        match answer.result {
            Ok(sample) => {
                if self.trouble.take().is_some() {
                    self.tell(format!("{} answers again", sample.address));
                }
                let earlier = self.sample.as_ref().map(|earlier| &earlier.status);
                self.rates = earlier.and_then(|earlier| Rates::between(earlier, &sample.status));
                self.silence = Duration::ZERO;
                self.sample = Some(sample);
                self.refresh();
            }
            Err(error) => self.trouble = Some(error.to_string()),
        }
    }

    /// So much time has passed.
    pub(super) fn on_time(&mut self, passed: Duration) {
        if !self.is_paused {
            self.silence += passed;
        }
        if let Some((_, age)) = &mut self.news {
            *age += passed;
        }
    }

    /// What came of ending holds.
    pub(super) fn on_forced(&mut self, words: String) {
        self.is_forcing = false;
        self.tell(words);
    }

    /// Tells the user something for a while.
    pub(super) fn tell(&mut self, what: String) {
        self.news = Some((what, Duration::ZERO));
    }

    pub(super) fn news(&self) -> Option<&str> {
        self.news.as_ref().filter(|(_, age)| *age < NEWS_TIME).map(|(what, _)| what.as_str())
    }

    /// Which part of the list is shown, from 1.
    pub(super) fn part(&self) -> usize {
        self.parts.len() + 1
    }

    /// The member that the user wants to be asked, if another one answers.
    pub(super) fn missing(&self) -> Option<&str> {
        let (chosen, sample) = (self.chosen.as_ref()?, self.sample.as_ref()?);
        (*chosen != sample.address).then_some(chosen.as_str())
    }

    /// Makes the rows anew, with the cursor at the same lock if that is still there.
    fn refresh(&mut self) {
        let Some(sample) = &self.sample else { return };
        let at = self.rows.get(self.cursor).map(|row| (row.name.clone(), row.permits));
        let rows = rows(&sample.locks, self.sort, self.text());
        self.rows = rows;
        if self.page == Page::Overview {
            let is_it =
                |row: &Row| at.as_ref().is_some_and(|it| (&it.0, it.1) == (&row.name, row.permits));
            let place = self.rows.iter().position(is_it).unwrap_or(self.cursor);
            self.cursor = place.min(self.rows.len().saturating_sub(1));
        }
    }

    /// A key was pressed.
    ///
    /// A terminal that is slow, or far away, sends Esc and the key after it in one piece, which reads as that
    /// key with Alt. Nothing here is meant by Alt, so it is the two keys.
    pub(super) fn on_key(&mut self, mut key: KeyEvent) -> Option<Effect> {
        if key.modifiers.contains(KeyModifiers::ALT) {
            key.modifiers.remove(KeyModifiers::ALT);
            let effect = self.on_key(KeyCode::Esc.into());
            return effect.or_else(|| self.on_key(key));
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return Some(Effect::Quit),
                KeyCode::Char('z') => return Some(Effect::Suspend),
                _ => {}
            }
        }
        match self.input.take() {
            Some(Input::Filter(text)) => {
                self.on_filter_key(text, key);
                None
            }
            Some(Input::Force(meant)) if key.code == KeyCode::Char('y') => {
                self.is_forcing = true;
                self.tell(format!("releases '{}'", printable(&meant.name)));
                Some(Effect::Force(meant))
            }
            // Whatever else is typed means no.
            Some(Input::Force(_)) => None,
            None => self.on_plain_key(key),
        }
    }

    fn on_filter_key(&mut self, mut text: String, key: KeyEvent) {
        match key.code {
            KeyCode::Enter => {
                self.filter = text;
                self.begin_list();
                return;
            }
            KeyCode::Esc => return,
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => text.clear(),
            KeyCode::Char(typed) if text.len() + typed.len_utf8() <= LONGEST_FILTER => {
                text.push(typed);
            }
            _ => {}
        }
        self.input = Some(Input::Filter(text));
    }

    fn on_plain_key(&mut self, key: KeyEvent) -> Option<Effect> {
        match key.code {
            KeyCode::Char('q') => return Some(Effect::Quit),
            KeyCode::Esc | KeyCode::Backspace => self.go_back(),
            KeyCode::Char('?') | KeyCode::F(1) => self.open(Page::Help),
            KeyCode::Char('m') => self.open(Page::Members),
            KeyCode::Char('v') => self.open(Page::Views),
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('n') => self.switch(),
            KeyCode::Char('F') => self.ask_for_force(),
            KeyCode::Up | KeyCode::Char('k') => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.move_to(self.cursor + 1),
            KeyCode::PageUp => self.cursor = self.cursor.saturating_sub(self.height),
            KeyCode::PageDown => self.move_to(self.cursor + self.height),
            KeyCode::Home | KeyCode::Char('g') => self.cursor = 0,
            KeyCode::End | KeyCode::Char('G') => self.move_to(usize::MAX),
            _ if self.page == Page::Overview => self.on_list_key(key.code),
            _ => {}
        }
        None
    }

    /// Keys that are about the list of locks.
    fn on_list_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('s') => {
                self.sort = self.sort.next();
                self.refresh();
            }
            KeyCode::Char('/') => self.input = Some(Input::Filter(self.filter.clone())),
            KeyCode::Enter => {
                if let Some(row) = self.rows.get(self.cursor) {
                    let name = row.name.clone();
                    self.open(Page::Lock(name));
                }
            }
            KeyCode::Char('>') => {
                let locks = self.sample.as_ref().map(|sample| &sample.locks);
                let last = locks.filter(|locks| locks.more).and_then(|locks| locks.lines.last());
                if let Some(last) = last {
                    self.parts.push(last.key.clone());
                    self.cursor = 0;
                }
            }
            KeyCode::Char('<') if self.parts.pop().is_some() => self.cursor = 0,
            _ => {}
        }
    }

    fn open(&mut self, page: Page) {
        if let Some(sample) = self.sample.as_mut().filter(|_| page != self.page) {
            sample.inspected = None;
        }
        self.page = page;
        self.cursor = 0;
    }

    /// To the overview; from there, to the list without a filter.
    fn go_back(&mut self) {
        if let Page::Lock(name) = &self.page {
            self.cursor = self.rows.iter().position(|row| row.name == *name).unwrap_or(0);
            self.page = Page::Overview;
        } else if self.page != Page::Overview {
            self.open(Page::Overview);
        } else if !self.filter.is_empty() {
            self.filter.clear();
            self.begin_list();
        }
    }

    /// Another list is shown from its beginning.
    fn begin_list(&mut self) {
        self.parts.clear();
        self.cursor = 0;
        self.refresh();
    }

    /// Asks the next member.
    fn switch(&mut self) {
        let Some(Sample { status, address, .. }) = &self.sample else { return };
        let members = &status.members;
        let own = members.iter().position(|member| member.name == status.node);
        // Where the one that was chosen last does not answer, the one after that.
        let chosen =
            self.missing().and_then(|missing| members.iter().position(|it| it.address == missing));
        let Some(at) = chosen.or(own) else { return };
        let next = members[(at + 1) % members.len()].address.clone();
        if next != *address || self.chosen.is_some() {
            self.tell(format!("asks {next}"));
            self.chosen = Some(next);
        }
    }

    fn move_to(&mut self, line: usize) {
        let count = match &self.page {
            Page::Overview => self.rows.len(),
            Page::Help => 1,
            page => self.sample.as_ref().map_or(0, |sample| lines_of(page, sample)),
        };
        self.cursor = line.min(count.saturating_sub(1));
    }

    /// Asks whether holds are to end. One lock after the other: it may take as long as a lease.
    fn ask_for_force(&mut self) {
        let Some(name) = self.current().map(printable) else { return };
        match self.holders() {
            _ if self.is_forcing => self.tell("the last one has not ended yet".to_string()),
            None => self.tell(format!("nobody holds '{name}'")),
            Some(meant) => self.input = Some(Input::Force(meant)),
        }
    }

    /// Who holds the lock that the cursor is at, or that is inspected; nothing if nobody does.
    fn holders(&self) -> Option<Meant> {
        let (name, sample) = (self.current()?, self.sample.as_ref()?);
        let listing = sample.inspected.as_ref().unwrap_or(&sample.locks);
        let lines = listing.lines.iter().filter(|line| line.key.name == name);
        let (fences, whose): (Vec<u64>, Vec<String>) =
            lines.filter_map(|line| Some((line.fence?, who(line)))).unzip();
        let (name, whose) = (name.to_string(), whose.join(", "));
        (!fences.is_empty()).then_some(Meant { name, fences, whose })
    }

    /// The lock that the cursor is at, or that is inspected.
    pub(super) fn current(&self) -> Option<&str> {
        match &self.page {
            Page::Lock(name) => Some(name),
            Page::Overview => self.rows.get(self.cursor).map(|row| row.name.as_str()),
            _ => None,
        }
    }
}

/// How many lines a page has.
fn lines_of(page: &Page, sample: &Sample) -> usize {
    match page {
        Page::Members => sample.status.members.len(),
        Page::Views => sample.status.views.len(),
        Page::Lock(_) => sample.inspected.as_ref().map_or(0, |listing| listing.lines.len()),
        Page::Overview | Page::Help => 0,
    }
}
