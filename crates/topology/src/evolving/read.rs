//! Reads graphs, line by line, in the formats that people have.
//!
//! Nothing is held but the contacts. A file that is no trace is refused at its first line that
//! makes no sense, however large it is.

mod events;
mod own;
mod rows;
mod time;

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::graph::join;
use super::{Contact, EvolvingGraph, GraphError, MAX_CONTACTS, MAX_GRAPH_NODES};

/// The longest name of a node, in bytes: a million of them fit into memory, and into messages.
const MAX_NAME: usize = 255;

use rows::Kind;
pub use time::{Clock, Moment, Origin, OriginError, Resolution, ResolutionError};

/// The formats of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Catraca's own: the only one that knows a cycle.
    Catraca,
    /// SocioPatterns: `t i j`, with more columns or without.
    SocioPatterns,
    /// Comma-separated, with the columns start, end, and two nodes.
    Csv,
    /// Events of the ONE simulator: `time CONN a b up` and `... down`.
    One,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 4] = [Format::Catraca, Format::SocioPatterns, Format::Csv, Format::One];

    /// The format of a file whose first line with something in it is this one.
    pub fn recognise(line: &str) -> Option<Format> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_number = |word: &&str| word.parse::<f64>().is_ok();
        match words[..] {
            ["catraca", "graph", ..] => return Some(Format::Catraca),
            [_, "CONN", ..] => return Some(Format::One),
            _ => {}
        }
        match (rows::separator(line), Kind::recognise(&rows::cells(line))) {
            (_, Some(Kind::OneTime)) => Some(Format::SocioPatterns),
            (_, Some(Kind::StartAndEnd)) => Some(Format::Csv),
            (Some(_), None) => Some(Format::Csv),
            // Further columns say more of the nodes.
            (None, None) if words.len() >= 3 && is_number(&words[0]) => Some(Format::SocioPatterns),
            (None, None) => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Format::Catraca => "catraca",
            Format::SocioPatterns => "sociopatterns",
            Format::Csv => "csv",
            Format::One => "one",
        })
    }
}

/// Why a text is no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no format '{0}': say catraca, sociopatterns, csv or one")]
pub struct FormatError(String);

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let is_it = |format: &Format| format.to_string() == text;
        Format::ALL.into_iter().find(is_it).ok_or_else(|| FormatError(text.into()))
    }
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// It is not what the format has.
    #[error("'{0}' is not {1}")]
    Unreadable(String, &'static str),
    /// No format is like this.
    #[error(
        "'{0}' is the beginning of no trace; say which format it is with --format catraca, \
         sociopatterns, csv or one"
    )]
    Unrecognised(String),
    /// A time below zero.
    #[error("the time {0} is negative; times begin at 0")]
    Negative(String),
    /// A time that does not fit.
    #[error("the time {0} is too large; count time in larger instants")]
    TooLarge(String),
    /// Two times in the wrong order.
    #[error("the contact ends at {to}, before it begins at {from}; put the smaller time first")]
    Backwards {
        /// When it begins.
        from: String,
        /// When it ends.
        to: String,
    },
    /// An event that is earlier than the one before.
    #[error("the event at {0} comes after one at {1}; events must be in the order of time")]
    OutOfOrder(String, String),
    /// A contact of a node with itself, in a format in which nobody writes one by mistake.
    #[error("node {0} is in contact with itself; leave the line out")]
    Itself(String),
    /// A node that no line has named.
    #[error("there is no node '{0}' among those that the file names at its beginning")]
    UnknownNode(String),
    /// A contact that begins twice.
    #[error("{0} and {1} are in contact already; an 'up' needs a 'down' before the next")]
    UpTwice(String, String),
    /// A contact that ends and has not begun.
    #[error("{0} and {1} are not in contact; a 'down' needs an 'up' before it")]
    DownFirst(String, String),
    /// Said twice.
    #[error("'{0}' is said twice; say it once")]
    Twice(&'static str),
    /// Too large to be held.
    #[error("the trace has more than {MAX_CONTACTS} contacts; take a part of it")]
    TooManyContacts,
    /// Too large to be held.
    #[error("the trace has more than {MAX_GRAPH_NODES} nodes; take a part of it")]
    TooManyNodes,
    /// A name that is none.
    #[error("the name '{0}' has more than {MAX_NAME} bytes; this is no trace")]
    LongName(String),
    /// An error of the whole file, not of one line.
    #[error("the trace {0}")]
    Graph(#[from] GraphError),
    /// Nothing in it.
    #[error("the file ends without a contact; a trace needs at least one")]
    Empty,
}

/// A fault and the line that it is in, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct LineError {
    /// The line.
    pub line: u64,
    /// What is wrong with it.
    pub fault: LineFault,
}

/// What was in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The graph.
    pub graph: EvolvingGraph,
    /// When its instants are. Catraca's own format has instants alone.
    pub clock: Option<Clock>,
    /// What was passed over.
    pub skipped: Skipped,
    /// Where every contact has one time: how far these are apart at least. Longer than an instant, it
    /// says that instants are too short to tell a contact that lasts.
    pub step: Option<Moment>,
}

/// How many lines of a file were passed over, and why. Remarks are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Contacts of a node with itself.
    pub itself: u64,
    /// Heads that name the columns.
    pub heads: u64,
    /// Contacts that are over before time begins.
    pub before: u64,
}

/// Reads one file. Lines that are empty or begin with `#` or `%` are passed over.
#[derive(Debug)]
pub struct Reader {
    format: Option<Format>,
    resolution: Resolution,
    origin: Origin,
    lines: u64,
    gathered: Gathered,
    own: own::Own,
    rows: rows::Rows,
    events: events::Events,
}

impl Reader {
    /// A reader of one format, or of whatever the first line is recognised as.
    pub fn new(format: Option<Format>, resolution: Resolution) -> Self {
        Reader {
            format,
            resolution,
            origin: Origin::At(Moment::default()),
            lines: 0,
            gathered: Gathered::default(),
            own: own::Own::default(),
            rows: rows::Rows::default(),
            events: events::Events::default(),
        }
    }

    /// The same with another beginning of time; that of the file, unless it is said.
    pub fn beginning(self, origin: Origin) -> Self {
        Reader { origin, ..self }
    }

    /// Takes the next line.
    pub fn line(&mut self, line: &str) -> Result<(), LineError> {
        self.lines += 1;
        // Spreadsheets mark a file as UTF-8 at its beginning.
        let line = if self.lines == 1 { line.trim_start_matches('\u{feff}') } else { line }.trim();
        if line.is_empty() || line.starts_with(['#', '%']) {
            return Ok(());
        }
        self.content(line).map_err(|fault| LineError { line: self.lines, fault })
    }

    fn content(&mut self, line: &str) -> Result<(), LineFault> {
        let format = match self.format {
            Some(format) => format,
            None => {
                let unrecognised = || LineFault::Unrecognised(shortened(line));
                *self.format.insert(Format::recognise(line).ok_or_else(unrecognised)?)
            }
        };
        let (gathered, resolution) = (&mut self.gathered, self.resolution);
        match format {
            Format::Catraca => self.own.line(line, gathered),
            Format::SocioPatterns => self.rows.line(line, Kind::OneTime, gathered),
            Format::Csv => self.rows.line(line, Kind::StartAndEnd, gathered),
            Format::One => self.events.line(line, resolution, gathered),
        }
    }

    /// How many lines were read.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// The format, once it is known.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// The graph, after the last line.
    pub fn finish(self) -> Result<EvolvingGraph, LineError> {
        self.import().map(|import| import.graph)
    }

    /// The graph and what is to be said of it, after the last line.
    pub fn import(mut self) -> Result<Import, LineError> {
        let line = self.lines;
        let import = match self.format {
            None => Err(LineFault::Empty),
            Some(Format::Catraca) => {
                let skipped = self.gathered.skipped;
                let graph = self.gathered.graph(self.own.frame);
                graph.map(|graph| Import { graph, clock: None, skipped, step: None })
            }
            Some(format) => {
                self.events.close(&mut self.gathered);
                self.in_instants(format)
            }
        };
        import.map_err(|fault| LineError { line, fault })
    }

    /// Counts times in instants.
    fn in_instants(self, format: Format) -> Result<Import, LineFault> {
        let Reader { mut gathered, resolution, origin, .. } = self;
        let origin = match origin {
            Origin::At(moment) => moment,
            Origin::First => {
                Moment(gathered.contacts.iter().map(|contact| contact.from).min().unwrap_or(0))
            }
        };
        let clock = Clock { origin, instant: resolution };
        let before = gathered.contacts.len();
        gathered.contacts.retain(|contact| contact.to >= origin.0);
        gathered.skipped.before = (before - gathered.contacts.len()) as u64;
        for contact in &mut gathered.contacts {
            contact.from = clock.instant_of(contact.from);
            contact.to = clock.instant_of(contact.to);
        }
        let is_sampled = format == Format::SocioPatterns;
        if is_sampled {
            // Seen at one instant and at the next, two nodes were in contact all the time.
            join(&mut gathered.contacts, 1);
        }
        let (skipped, step) = (gathered.skipped, gathered.step);
        let graph = gathered.graph(own::Frame::default())?;
        let step = Some(Moment(step)).filter(|step| is_sampled && step.0 > 0);
        Ok(Import { graph, clock: Some(clock), skipped, step })
    }
}

/// What the lines have said so far.
#[derive(Debug, Default)]
struct Gathered {
    /// The number of each name, in the order of appearance.
    numbers: BTreeMap<String, u32>,
    /// If the nodes were named beforehand, no others may appear.
    is_closed: bool,
    /// By number of the name. From and to are instants in Catraca's own format, elsewhere times.
    contacts: Vec<Contact>,
    skipped: Skipped,
    first_time: Option<Moment>,
    /// The greatest common divisor of the times since the first; 0 while there is only one.
    step: u64,
}

impl Gathered {
    fn number(&mut self, name: &str) -> Result<u32, LineFault> {
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number);
        }
        if self.is_closed {
            return Err(LineFault::UnknownNode(shortened(name)));
        }
        if name.len() > MAX_NAME {
            return Err(LineFault::LongName(shortened(name)));
        }
        let number = self.numbers.len() as u32;
        if number >= MAX_GRAPH_NODES {
            return Err(LineFault::TooManyNodes);
        }
        self.numbers.insert(name.into(), number);
        Ok(number)
    }

    fn pair(&mut self, a: &str, b: &str) -> Result<(u32, u32), LineFault> {
        if a == b {
            return Err(LineFault::Itself(shortened(a)));
        }
        Ok((self.number(a)?, self.number(b)?))
    }

    /// The same, or nothing for a contact of a node with itself, which is counted.
    fn pair_of_two(&mut self, a: &str, b: &str) -> Result<Option<(u32, u32)>, LineFault> {
        if a == b {
            self.skipped.itself += 1;
            return Ok(None);
        }
        self.pair(a, b).map(Some)
    }

    fn note_time(&mut self, time: Moment) {
        let first = *self.first_time.get_or_insert(time);
        let (mut a, mut b) = (self.step, time.0.abs_diff(first.0));
        while b > 0 {
            (a, b) = (b, a % b);
        }
        self.step = a;
    }

    fn contact(&mut self, from: u64, to: u64, (a, b): (u32, u32)) -> Result<(), LineFault> {
        if self.contacts.len() >= MAX_CONTACTS {
            return Err(LineFault::TooManyContacts);
        }
        self.contacts.push(Contact::between(from, to, a, b));
        Ok(())
    }

    fn graph(mut self, frame: own::Frame) -> Result<EvolvingGraph, LineFault> {
        if self.contacts.is_empty() && !self.is_closed {
            return Err(LineFault::Empty);
        }
        let mut names: Vec<(String, u32)> = self.numbers.into_iter().collect();
        if self.is_closed {
            names.sort_by_key(|&(_, number)| number);
        } else {
            // Numbers by value, then other names by their letters: whatever the order of the file,
            // a trace has one numbering.
            names.sort_by_cached_key(|(name, _)| {
                (name.parse::<u64>().unwrap_or(u64::MAX), name.clone())
            });
        }
        let mut places = alloc::vec![0; names.len()];
        for (place, (_, number)) in names.iter().enumerate() {
            places[*number as usize] = place as u32;
        }
        for contact in &mut self.contacts {
            let (a, b) = (places[contact.a.index()], places[contact.b.index()]);
            *contact = Contact::between(contact.from, contact.to, a, b);
        }
        let latest = self.contacts.iter().map(|contact| contact.to).max().unwrap_or(0);
        let names = names.into_iter().map(|(name, _)| name).collect();
        let last = frame.last.unwrap_or(latest);
        Ok(EvolvingGraph::new(names, self.contacts, last, frame.cycle)?)
    }
}

/// The beginning of what a file says, for an error.
fn shortened(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        None => text.into(),
        Some((end, _)) => alloc::format!("{}...", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn read(format: Option<Format>, text: &str) -> Result<EvolvingGraph, String> {
        let mut reader = Reader::new(format, Resolution::default());
        for line in text.lines() {
            reader.line(line).map_err(|error| error.to_string())?;
        }
        reader.finish().map_err(|error| error.to_string())
    }

    #[test]
    fn the_same_graph_in_every_format() {
        let expected = EvolvingGraph::new(
            vec!["2".into(), "10".into(), "bus".into()],
            vec![Contact::between(1, 3, 0, 1), Contact::at(2, 1, 2)],
            3,
            None,
        );
        let texts = [
            "catraca graph\n# a remark\n1..3 10 2\n2 10 bus\n",
            "1 10 2\n2 10 2\n3 2 10\n\n2 bus 10 class1 class2\n",
            "start,end,a,b\n2,2,bus,10\n1,3,2,10\n",
            "1,3,2,10\n2,2,bus,10\n",
            "a,b,start,end\n10,2,1,3\nbus,10,2,2\n",
            "1 CONN 10 2 up\n2.0 CONN bus 10 up\n3 CONN 10 bus down\n4 CONN 2 10 down\n",
        ];
        for text in texts {
            let graph = read(None, text).unwrap();
            assert_eq!(graph.names(), expected.as_ref().unwrap().names(), "{text}");
            let instants = |graph: &EvolvingGraph, at| {
                let there = graph.contacts().iter().filter(|contact| contact.is_at(at));
                there.map(|contact| (contact.a, contact.b)).collect::<Vec<_>>()
            };
            for at in 0..5 {
                let expected = instants(expected.as_ref().unwrap(), at);
                assert_eq!(instants(&graph, at), expected, "{text} at {at}");
            }
        }
    }

    #[test]
    fn a_byte_order_mark_at_the_beginning_of_a_file_is_passed_over() {
        for text in ["catraca graph\n1 a b\n", "start,end,a,b\n1,2,x,y\n", "1 a b\n", "\n1,2,x,y\n"]
        {
            let marked = alloc::format!("\u{feff}{text}");
            assert_eq!(read(None, &marked), read(None, text), "{text}");
            assert!(read(None, text).is_ok(), "{text}");
        }
        assert!(read(None, "1 a b\n\u{feff}2 a b\n").is_err(), "only there");
    }

    #[test]
    fn the_own_format_names_nodes_and_says_how_long_and_how_often() {
        let text =
            "catraca graph\nnames w u v # three\nlast 9\ncycle 4\n1 w v  # a remark\n5 w u\n";
        let graph = read(None, text).unwrap();
        assert_eq!(graph.names(), ["w", "u", "v"]);
        assert_eq!((graph.last(), graph.cycle()), (9, Some(4)));
        let graph = read(None, "catraca graph\nnodes 3\n").unwrap();
        assert_eq!((graph.names().len(), graph.contacts().len(), graph.last()), (3, 0, 0));
    }

    #[test]
    fn contacts_out_of_order_are_sorted_and_events_out_of_order_refused() {
        assert!(read(None, "9 a b\n3 b c\n").unwrap().contacts().is_sorted());
        let error = read(None, "9 CONN a b up\n3 CONN b c up\n").unwrap_err();
        assert!(error.starts_with("line 2: the event at 3 comes after one at 9"), "{error}");
    }

    #[test]
    fn what_is_no_line_of_a_trace_is_refused_with_its_number() {
        let long_name = alloc::format!("1 a {}\n", "n".repeat(300));
        let cases = [
            ("", "line 0: the file ends without a contact"),
            ("# nothing\n\n", "line 2: the file ends without a contact"),
            ("<html>\n", "line 1: '<html>' is the beginning of no trace; say which format"),
            ("1 a b\n2 c\n", "line 2: '2 c' is not a contact 't i j'"),
            ("1 a b\n-2 c d\n", "line 2: the time -2 is negative"),
            ("1 a b\nx c d\n", "line 2: 'x' is not a time"),
            ("catraca graph\n3 c c\n", "line 2: node c is in contact with itself"),
            ("1 a a\n", "line 1: the file ends without a contact"),
            (
                "1 a b\n99999999999999999999 a b\n",
                "line 2: the time 99999999999999999999 is too large",
            ),
            ("1,2\n", "line 1: '1,2' is not a row with start, end and two nodes"),
            ("1,2,a,b\n5,3,a,b\n", "line 2: the contact ends at 3, before it begins at 5"),
            (
                "from,end,a,b\n",
                "line 1: 'from,end,a,b' is not a head with the columns start and end",
            ),
            ("1 CONN a b up\n2 CONN a b up\n", "line 2: a and b are in contact already"),
            ("1 CONN a b down\n", "line 1: a and b are not in contact"),
            ("1 CONN a b sideways\n", "line 1: '1 CONN a b sideways' is not an event"),
            ("catraca graph\nnodes 2\n1 0 2\n", "line 3: there is no node '2' among those"),
            ("catraca graph\nnodes 2\nnodes 3\n", "line 3: 'nodes' is said twice"),
            ("catraca graph\n3..1 a b\n", "line 2: the contact ends at 1, before it begins at 3"),
            (
                "catraca graph\nlast 2\n3 a b\n",
                "line 3: the trace ends with instant 2, but has a contact at 3",
            ),
            (
                "catraca graph\ncycle 7\n3 a b\n",
                "line 3: the trace ends with instant 3, but is to repeat from 7",
            ),
            ("catraca graph\n-3 a b\n", "line 2: the time -3 is negative"),
            (
                &long_name,
                "line 1: the name 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn...' has more than",
            ),
            ("catraca graph\n3 a\n", "line 2: '3 a' is not a contact 'T A B'"),
        ];
        for (text, expected) in cases {
            let error = read(None, text).unwrap_err();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }

    fn import(origin: &str, instant: &str, text: &str) -> Import {
        let reader = Reader::new(None, instant.parse().unwrap());
        let mut reader = reader.beginning(origin.parse().unwrap());
        text.lines().for_each(|line| reader.line(line).unwrap());
        reader.import().unwrap()
    }

    fn stretches(import: &Import) -> Vec<(u64, u64)> {
        import.graph.contacts().iter().map(|contact| (contact.from, contact.to)).collect()
    }

    #[test]
    fn time_begins_with_the_first_contact_wherever_it_is_in_the_file() {
        let text = "1262454080 a b\n1262454020 b c\n1262454040 b c\n";
        let read = import("first", "20", text);
        assert_eq!(stretches(&read), [(0, 1), (3, 3)]);
        let clock = read.clock.unwrap();
        assert_eq!(clock.begins(3), Moment::units(1_262_454_080));
        assert_eq!(clock.lasts(3), Moment::units(60));
        assert_eq!(stretches(&import("1262454000", "20", text)), [(1, 2), (4, 4)]);
        assert_eq!(import("first", "1", "catraca graph\n3 a b\n").clock, None);
    }

    #[test]
    fn what_is_over_before_time_begins_is_counted_and_what_lasts_is_cut() {
        let read = import("10", "1", "start,end,a,b\n2,9,a,b\n8,11,a,c\n");
        assert_eq!((stretches(&read), read.skipped.before), (vec![(0, 1)], 1));
        assert_eq!(read.graph.nodes(), 3, "b is known, and meets nobody");
    }

    #[test]
    fn samples_that_follow_each_other_are_one_contact() {
        let text = "20 a b\n40 a b\n60 a b\n100 a b\n40 b c\n";
        let read = import("first", "20", text);
        assert_eq!(stretches(&read), [(0, 2), (1, 1), (4, 4)]);
        assert_eq!(read.step, Some(Moment::units(20)));
        // Instants that are shorter than what is between samples cannot tell.
        assert_eq!(stretches(&import("first", "1", text)).len(), 5);
        // Events and rows say themselves how long a contact lasts.
        let rows = import("first", "1", "1,2,a,b\n3,4,a,b\n");
        assert_eq!((stretches(&rows), rows.step), (vec![(0, 1), (2, 3)], None));
    }

    #[test]
    fn contacts_with_oneself_and_heads_are_passed_over_and_counted() {
        let text = "time i j\n1 a b\n1 b b\ntime i j\n2 c c\n% a remark\n2 b c\n";
        let read = import("0", "1", text);
        assert_eq!(read.skipped, Skipped { itself: 2, heads: 2, before: 0 });
        assert_eq!(stretches(&read), [(1, 1), (2, 2)]);
        let events = "1 CONN a a up\n1 CONN a b up\n2 CONN a a down\n3 CONN a b down\n";
        assert_eq!(import("0", "1", events).skipped.itself, 2);
    }

    #[test]
    fn cells_are_apart_by_whatever_the_line_has() {
        let expected = import("0", "1", "1 a b\n2 b c\n").graph;
        for text in [
            "1,a,b\n2,b,c\n",
            "1;a;b\n2; b ;c\n",
            "1\ta\tb\n2\tb\tc\n",
            "1|a|b\n2|b|c\n",
            "\"t\",\"i\",\"j\"\n1,\"a\",\"b\"\n2,\"b\",\"c\"\n",
            "i;j;timestamp\na;b;1\nb;c;2\n",
            "start;end;a;b\n1;1;a;b\n2;2;b;c\n",
        ] {
            assert_eq!(import("0", "1", text).graph, expected, "{text}");
        }
    }

    #[test]
    fn instants_may_be_longer_or_shorter_than_the_unit_of_the_file() {
        let read = |resolution: &str, text: &str| {
            let mut reader = Reader::new(None, resolution.parse().unwrap());
            text.lines().for_each(|line| reader.line(line).unwrap());
            let graph = reader.finish().unwrap();
            graph.contacts().iter().map(|contact| (contact.from, contact.to)).collect::<Vec<_>>()
        };
        assert_eq!(read("20", "40 a b\n60 b c\n79 a c\n"), [(2, 2), (3, 3), (3, 3)]);
        assert_eq!(read("0.5", "0.75 CONN a b up\n2 CONN a b down\n"), [(1, 3)]);
        assert!("0".parse::<Resolution>().is_err() && "fast".parse::<Resolution>().is_err());
    }
}
