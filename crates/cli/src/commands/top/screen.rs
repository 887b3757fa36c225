//! Draws what `catraca top` shows. Nothing here needs colours or more than 80 columns and 24 rows.

#[cfg(test)]
mod tests;

use std::time::Duration;

use catraca_client::{LinkStatus, MemberStatus, PastView, Readiness, Status};
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line as Text;
use ratatui::widgets::{Paragraph, Row as Cells, Table};

use super::asking::{Listing, Meant, Sample};
use super::rows::Row;
use super::view::{Input, Page, Rates, View};
use crate::commands::locks::{age_of, printable, who};
use crate::commands::status::{link_words, readiness_words};
use crate::table::{counted, cut, grouped, lasting};

/// Without an answer for so long, the screen says so.
const LATE: Duration = Duration::from_secs(3);
/// The lines above and below what a page is about.
const HEAD: u16 = 4;
const FOOT: u16 = 1;
/// Where a line has less room, the fence is not shown: inspecting a lock tells it.
const WIDE: u16 = 100;
/// Where it has even less, nor is at which node a lock is held, and for how long: names come first.
const NARROW: u16 = 60;

/// How things are set off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    trouble: Style,
    quiet: Style,
}

impl Theme {
    /// With colours, or without any.
    pub(super) fn new(has_colours: bool) -> Self {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        match has_colours {
            true => Theme { trouble: bold.fg(Color::Red), quiet: Style::new().fg(Color::DarkGray) },
            false => Theme { trouble: bold, quiet: Style::new() },
        }
    }
}

const HEADING: Style = Style::new().add_modifier(Modifier::BOLD);
const CURSOR: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Draws the whole screen.
pub(super) fn draw(view: &View, theme: Theme, frame: &mut Frame<'_>) {
    let area = frame.area();
    let body = Rect {
        y: area.y + HEAD.min(area.height),
        height: area.height.saturating_sub(HEAD + FOOT),
        ..area
    };
    let mut screen = Screen { frame, theme };
    if let Some(sample) = &view.sample {
        screen.head(view, sample);
        match &view.page {
            Page::Overview => screen.overview(view, sample, body),
            Page::Members => screen.members(&sample.status, view.cursor, false, body),
            Page::Views => screen.views(&sample.status.views, view.cursor, body),
            Page::Lock(name) => screen.lock(name, sample.inspected.as_ref(), view.cursor, body),
            Page::Help => screen.help(body),
        }
    }
    screen.foot(view);
}

struct Screen<'a, 'b> {
    frame: &'a mut Frame<'b>,
    theme: Theme,
}

impl Screen<'_, '_> {
    fn line(&mut self, row: u16, text: String, style: Style) {
        let area = self.frame.area();
        if row < area.height {
            let place = Rect { y: area.y + row, height: 1, ..area };
            self.frame.render_widget(Paragraph::new(Text::styled(text, style)), place);
        }
    }

    fn head(&mut self, view: &View, sample: &Sample) {
        let Sample { address, status, .. } = sample;
        let (node, group, up) = (&status.node, &status.group, lasting(status.millis));
        self.line(0, format!("{node} at {address}, group '{group}', up {up}"), HEADING);
        let (words, style) = condition(view, status, self.theme);
        self.line(1, words, style);
        let counts = [
            format!("{} held", grouped(status.held)),
            format!("{} waiting", grouped(status.waiting)),
            counted(status.sessions, "session", "sessions"),
        ];
        self.line(2, format!("at this node {}", counts.join(", ")), Style::new());
        let rate = |value: fn(&Rates) -> f64| {
            view.rates.as_ref().map_or("-".to_string(), |it| per_second(value(it)))
        };
        let (grants, messages) = (rate(|it| it.grants), rate(|it| it.messages));
        let handovers = rate(|it| it.handovers);
        let rates = format!("grants {grants}, hand-overs {handovers}, messages {messages}");
        self.line(3, rates, Style::new());
    }

    fn foot(&mut self, view: &View) {
        let row = self.frame.area().height.saturating_sub(1);
        let (words, style) = match (&view.input, view.news()) {
            (Some(Input::Filter(text)), _) => {
                (format!("names that begin with (* first: contain): {text}_"), HEADING)
            }
            (Some(Input::Force(Meant { name, whose, .. })), _) => {
                let name = cut(&printable(name), 30);
                (format!("y releases '{name}' of {whose} by force; any other key: no"), HEADING)
            }
            (None, Some(news)) => (news.to_string(), HEADING),
            (None, None) => (keys(view), self.theme.quiet),
        };
        self.line(row, words, style);
    }

    fn overview(&mut self, view: &View, sample: &Sample, area: Rect) {
        // A third for the members, at most, and one line between.
        let members = sample.status.members.len() as u16;
        let most = (area.height / 3).max(2);
        let height = (members + 1).min(most).min(area.height);
        self.members(&sample.status, 0, true, Rect { height, ..area });
        let taken = (height + 1).min(area.height);
        let rest = Rect { y: area.y + taken, height: area.height - taken, ..area };
        self.locks(view, &sample.locks, rest);
    }

    /// The members from `first` on. In an overview, where there is not room for all of them, those in trouble
    /// come first, and the others are counted.
    fn members(&mut self, status: &Status, first: usize, is_overview: bool, area: Rect) {
        let room = usize::from(area.height.saturating_sub(1));
        let mut members: Vec<&MemberStatus> = status.members.iter().collect();
        members.sort_by(|one, other| one.name.cmp(&other.name));
        let left_out = is_overview && members.len() > room;
        if left_out {
            members.sort_by_key(|member| is_well(member));
        }
        let mut shown: Vec<Cells<'_>> =
            members.iter().skip(first).take(room).map(|it| self.member(it)).collect();
        if left_out {
            shown.truncate(room.saturating_sub(1));
            let more = members.len() - shown.len();
            shown.push(Cells::new([format!("and {more} more"), "m shows all".to_string()]));
        }
        let widths = [
            Constraint::Length(widest(members.iter().map(|it| it.name.as_str()), 10, 16)),
            Constraint::Length(widest(members.iter().map(|it| it.address.as_str()), 7, 24)),
            Constraint::Length(4),
            Constraint::Length(7),
            Constraint::Fill(1),
        ];
        self.table(["member", "address", "view", "lease", "link"], shown, &widths, area);
    }

    fn member<'a>(&self, member: &'a MemberStatus) -> Cells<'a> {
        let (word, millis, why) = link_words(&member.link);
        let since = millis.map_or(String::new(), |millis| format!(" for {}", lasting(millis)));
        let why = why.map_or(String::new(), |why| format!(": {}", printable(why)));
        let crashed = if member.suspected.is_some() { "; taken for crashed" } else { "" };
        let view = if member.is_in_view { "in" } else { "out" };
        let lease = member.renewed.map_or("-".to_string(), lasting);
        let cells = [
            cut(&member.name, 16),
            cut(&member.address, 24),
            view.to_string(),
            lease,
            format!("{word}{since}{crashed}{why}"),
        ];
        let style = if is_well(member) { Style::new() } else { self.theme.trouble };
        Cells::new(cells).style(style)
    }

    fn views(&mut self, views: &[PastView], first: usize, area: Rect) {
        let row = |view: &PastView| {
            let PastView { epoch, members, cause, age, took } = view;
            let (age, took) = (format!("{} ago", lasting(*age)), format!("{took} ms"));
            Cells::new([epoch.to_string(), members.to_string(), age, took, printable(cause)])
        };
        let shown = views.iter().rev().skip(first).map(row).collect();
        let widths = [6, 7, 12, 9].map(Constraint::Length);
        let widths = [&widths[..], &[Constraint::Fill(1)]].concat();
        self.table(["epoch", "members", "began", "took", "because"], shown, &widths, area);
    }

    fn locks(&mut self, view: &View, listing: &Listing, area: Rect) {
        if view.rows.is_empty() {
            let words = match view.filter.is_empty() {
                true => "Nobody holds a lock, nobody waits.".to_string(),
                false => format!("No lock fits '{}'; Esc shows all.", view.filter),
            };
            return self.frame.render_widget(Paragraph::new(words), area);
        }
        let room = usize::from(area.height.saturating_sub(1)).max(1);
        // Whole pages: nothing moves while the cursor does.
        let first = view.cursor / room * room;
        let shown = || view.rows.iter().enumerate().skip(first).take(room);
        let node = widest(shown().map(|(_, row)| row.node.as_str()), 4, 12);
        let columns = Columns::of(area.width, node);
        let cells = |(index, row): (usize, &Row)| {
            let style = if index == view.cursor { CURSOR } else { Style::new() };
            columns.cells(row).style(style)
        };
        let heads = columns.pick(
            [&heading(view, listing), "holder", "node", "for", "queue", "fence"].map(String::from),
        );
        self.table(heads, shown().map(cells).collect(), &columns.widths(), area);
    }

    fn lock(&mut self, name: &str, listing: Option<&Listing>, first: usize, area: Rect) {
        let title = Rect { height: 1.min(area.height), ..area };
        let rest = Rect { y: area.y + title.height, height: area.height - title.height, ..area };
        let Some(listing) = listing else {
            let words = format!("{}: asking", printable(name));
            return self.frame.render_widget(Paragraph::new(words), title);
        };
        let holders = listing.lines.iter().filter(|line| line.key.place == 0).count();
        let waiters = listing.lines.len() - holders;
        let more = if listing.more { " and more" } else { "" };
        let silent = match listing.silent.is_empty() {
            true => String::new(),
            false => format!("; no answer from {}", listing.silent.join(", ")),
        };
        let words =
            format!("{}: {holders} holding, {waiters} waiting{more}{silent}", printable(name));
        self.frame.render_widget(Paragraph::new(Text::styled(words, HEADING)), title);
        let fences = listing.lines.iter().filter_map(|line| line.fence);
        let digits = fences.map(|fence| fence.to_string().len()).max().unwrap_or(0);
        let row = |line: &catraca_client::Line| {
            let place = match line.key.place {
                0 => "holds".to_string(),
                place => format!("waits {place}"),
            };
            let fence = line.fence.map_or("-".to_string(), |fence| fence.to_string());
            let process = match &line.durable {
                Some(durable) => durable.id.to_string(),
                // Over HTTP and RESP nobody says which process it is.
                None if line.pid == 0 => printable(&line.host),
                None => format!("{} at {}", line.pid, printable(&line.host)),
            };
            let (node, age) = (line.key.node.clone(), lasting(age_of(line)));
            Cells::new([place, who(line), process, node, age, fence])
        };
        let shown = listing.lines.iter().skip(first).map(row).collect();
        let widths = [
            Constraint::Length(9),
            Constraint::Fill(1),
            Constraint::Fill(1),
            Constraint::Length(widest(listing.lines.iter().map(|it| it.key.node.as_str()), 4, 12)),
            Constraint::Length(7),
            Constraint::Length(digits.max(5) as u16),
        ];
        self.table(["place", "who", "process", "node", "for", "fence"], shown, &widths, rest);
    }

    fn help(&mut self, area: Rect) {
        let lines: Vec<Text<'_>> = HELP.lines().map(Text::raw).collect();
        self.frame.render_widget(Paragraph::new(lines), area);
    }

    fn table<S: Into<String>>(
        &mut self,
        heads: impl IntoIterator<Item = S>,
        rows: Vec<Cells<'_>>,
        widths: &[Constraint],
        area: Rect,
    ) {
        let heads: Vec<String> = heads.into_iter().map(Into::into).collect();
        let table = Table::new(rows, widths).header(Cells::new(heads).style(HEADING));
        self.frame.render_widget(table.column_spacing(2), area);
    }
}

const HELP: &str = "\
Up, Down, j, k     move; PageUp, PageDown, Home, End too
Enter              inspect the lock at the cursor: who holds it, who waits
Esc                go back; in the overview: show all locks again
/                  show only locks whose names begin with a text; after a *:
                   those of this part in whose name or holder it occurs
s                  sort by name, queue, age or node
> <                the next part of a long list, and the one before
F                  release the lock by force, after a question
n                  ask the next member
m v                all members; the last views
p, Space           pause
q, Ctrl-C          quit

Rates and counts of the head are those of the node that is asked; locks and
members are those of the whole group. Lease: how long ago it was renewed.";

/// How often something happens: with a decimal where that tells something.
fn per_second(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.1}/s") } else { format!("{}/s", grouped(rate as u64)) }
}

/// Whether the node and its group are well, in a line.
fn condition(view: &View, status: &Status, theme: Theme) -> (String, Style) {
    if let Some(trouble) = &view.trouble {
        let silence = lasting(view.silence.as_millis() as u64);
        return (format!("NO ANSWER for {silence}: {}", printable(trouble)), theme.trouble);
    }
    if view.is_paused {
        return ("PAUSED: p goes on".to_string(), HEADING);
    }
    if view.silence >= LATE {
        let silence = lasting(view.silence.as_millis() as u64);
        return (format!("NO ANSWER for {silence}"), theme.trouble);
    }
    if let Some(missing) = view.missing() {
        return (format!("{missing} does not answer; this is '{}'", status.node), theme.trouble);
    }
    let registry = status.registry.as_ref();
    let trouble = registry.and_then(|registry| registry.trouble.as_ref());
    let (style, mut words) = match (&status.readiness, trouble) {
        (Readiness::Ready, None) if status.valid != Some(0) => (Style::new(), "ready".to_string()),
        (Readiness::Ready, Some(why)) => {
            (theme.trouble, format!("ready; registry in trouble: {}", printable(why)))
        }
        (Readiness::Ready, None) => {
            (theme.trouble, "its lease is over: grants nothing".to_string())
        }
        (readiness, _) => (theme.trouble, printable(&readiness_words(readiness).1)),
    };
    let here = status.members.iter().filter(|member| member.is_in_view).count();
    words += &format!(", epoch {}, {here} of {} members", status.epoch, status.members.len());
    if let Some(last) = status.views.last() {
        words += &format!(" since {}", lasting(last.age));
    }
    if let Some(valid) = status.valid {
        words += &format!(", lease {} left", lasting(valid));
    }
    (words, style)
}

/// The heading of the names: what is shown of them, and in which order.
fn heading(view: &View, listing: &Listing) -> String {
    let mut words = "lock".to_string();
    if !view.filter.is_empty() {
        words += &format!(" {}", view.filter);
    }
    if view.part() > 1 || listing.more {
        words += &format!(", part {}", view.part());
        words += if listing.more { " (> next)" } else { " (last)" };
    }
    if !listing.silent.is_empty() {
        words += &format!(", no answer from {}", listing.silent.join(", "));
    }
    words
}

/// What is shown of a lock in a line of some width.
struct Columns {
    /// How wide each is; nothing for those that are left out.
    widths: [Option<Constraint>; 6],
    holder: usize,
}

impl Columns {
    fn of(width: u16, node: u16) -> Self {
        let holder = match width {
            WIDE.. => 30,
            NARROW.. => 20,
            _ => width / 3,
        };
        let long = |wide| (width >= NARROW).then_some(Constraint::Length(wide));
        let fence = (width >= WIDE).then_some(Constraint::Length(20));
        let queue = Some(Constraint::Length(6));
        let (name, who) = (Some(Constraint::Fill(1)), Some(Constraint::Length(holder)));
        Columns { widths: [name, who, long(node), long(7), queue, fence], holder: holder.into() }
    }

    /// Those of a line that are shown.
    fn pick(&self, all: [String; 6]) -> Vec<String> {
        let shown = all.into_iter().zip(&self.widths).filter(|(_, width)| width.is_some());
        shown.map(|(text, _)| text).collect()
    }

    fn widths(&self) -> Vec<Constraint> {
        self.widths.iter().flatten().copied().collect()
    }

    fn cells(&self, row: &Row) -> Cells<'static> {
        let name = match row.permits {
            1 => printable(&row.name),
            permits => format!("{} (of {permits})", printable(&row.name)),
        };
        // How many more there are has to be seen, whatever the first one is called.
        let holder = match row.others {
            0 => row.holder.clone(),
            others => {
                let others = format!(" +{others}");
                let room = self.holder.saturating_sub(others.len());
                cut(&row.holder, room) + &others
            }
        };
        let more = if row.is_cut { "+" } else { "" };
        let queue = format!("{}{more}", row.waiters);
        let fence = row.fence.map_or("-".to_string(), |fence| fence.to_string());
        Cells::new(self.pick([name, holder, cut(&row.node, 12), lasting(row.millis), queue, fence]))
    }
}

fn keys(view: &View) -> String {
    match view.page {
        Page::Overview => {
            let sort = view.sort.word();
            format!("? help  q quit  Enter inspect  / filter  s sort: {sort}  n node  p pause")
        }
        Page::Help => "Esc back  q quit".to_string(),
        Page::Lock(_) => "Esc back  F release by force  ? help  q quit  n node".to_string(),
        _ => "Esc back  ? help  q quit  n node  p pause".to_string(),
    }
}

fn is_well(member: &MemberStatus) -> bool {
    let is_linked = matches!(member.link, LinkStatus::Itself | LinkStatus::Up(_));
    member.is_in_view && is_linked && member.suspected.is_none()
}

/// The width that texts need, between bounds.
fn widest<'a>(texts: impl Iterator<Item = &'a str>, least: u16, most: u16) -> u16 {
    let widest = texts.map(|text| text.chars().count()).max().unwrap_or(0);
    (widest.min(usize::from(most)) as u16).max(least)
}
