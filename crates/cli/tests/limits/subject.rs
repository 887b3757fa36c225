//! Every command and what it is tried with, and a generator of arguments. Flags are those of its own help.

use super::help::Flags;

/// What is given for any flag.
const VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "4294967295",
    "18446744073709551615",
    "99999999999999999999",
    "1e308",
    "0.000001",
    "NaN",
    "inf",
    "5s",
    "",
    "LONG",
    "-",
    "0,1,,2",
    "0..3",
    "0|1",
    "a b c",
    "a=127.0.0.1:1",
    "exp 0",
    "/dev/zero",
    "/dev/full",
    "missing",
    "folder",
    "garbage",
    "deep.toml",
    "out.svg",
];

/// What is given for a file, or for a name; the first is one that the command can use.
const FILES: &[&str] = &[
    "garbage",
    "deep.toml",
    "empty",
    "folder",
    "missing",
    "/dev/zero",
    "/dev/urandom",
    "",
    "-",
    "LONG",
];

/// The codes that 'catraca --help' lists.
const CODES: &[i32] = &[0, 1, 2, 3, 4, 130];
/// Those of 'catraca lock --help' beside them.
const LOCK_CODES: &[i32] = &[0, 1, 2, 122, 123, 124, 125, 126, 127, 130, 143];
/// Those of 'catraca locks --help' and 'catraca status --help', and of all that ask a node.
const NODE_CODES: &[i32] = &[0, 1, 2, 3, 4, 122, 125, 130];
/// Those of 'catraca git --help'.
const GIT_CODES: &[i32] = &[0, 1, 2, 3, 122, 124, 125, 130];

/// A command and what it can be given.
pub(crate) struct Subject {
    /// Its words and what is always given.
    pub(crate) words: &'static [&'static str],
    /// A file that it reads, or a name that it is given: a good one.
    given: Option<&'static str>,
    /// What comes after everything else.
    rest: &'static [&'static str],
    /// The codes that it may end with.
    pub(crate) codes: &'static [i32],
    /// Whether it may die of SIGTERM: it has begun nothing that would be in disorder, or is not ready to be told.
    pub(crate) dies: bool,
}

const fn command(words: &'static [&'static str]) -> Subject {
    Subject { words, given: None, rest: &[], codes: CODES, dies: false }
}

const fn of_node(words: &'static [&'static str]) -> Subject {
    Subject { codes: NODE_CODES, ..command(words) }
}

const fn of_git(words: &'static [&'static str]) -> Subject {
    Subject { codes: GIT_CODES, ..command(words) }
}

impl Subject {
    const fn given(mut self, good: &'static str) -> Self {
        self.given = Some(good);
        self
    }

    const fn then(mut self, rest: &'static [&'static str]) -> Self {
        self.rest = rest;
        self
    }

    const fn dying(mut self) -> Self {
        self.dies = true;
        self
    }

    /// The arguments of one case: up to three flags, each with any value.
    pub(crate) fn arguments(&self, flags: &Flags, random: &mut Random) -> Vec<String> {
        let mut arguments: Vec<String> = self.words.iter().map(ToString::to_string).collect();
        if let Some(good) = self.given {
            // Mostly a good one: what is wrong with flags comes to light only then.
            let is_good = random.below(3) > 0;
            arguments.push(if is_good { good } else { random.one_of(FILES) }.to_string());
        }
        for _ in 0..1 + random.below(3) {
            if !flags.switches.is_empty() && random.below(4) == 0 {
                arguments.push(flags.switches[random.place(&flags.switches)].clone());
            } else if !flags.optional.is_empty() && random.below(4) == 0 {
                let flag = &flags.optional[random.place(&flags.optional)];
                arguments.push(format!("{flag}={}", random.one_of(VALUES)));
            } else if !flags.valued.is_empty() {
                arguments.push(flags.valued[random.place(&flags.valued)].clone());
                arguments.push(random.one_of(VALUES).to_string());
            }
        }
        arguments.extend(self.rest.iter().map(ToString::to_string));
        arguments
            .into_iter()
            .map(|text| text.replace("LONG", &"long text ".repeat(6_000)))
            .collect()
    }
}

pub(crate) const SUBJECTS: &[Subject] = &[
    command(&["node", "--listen", "127.0.0.1:0"]).dying(),
    command(&["node", "--join", "127.0.0.1:1", "--name", "d", "--listen", "127.0.0.1:0"]).dying(),
    Subject { codes: LOCK_CODES, ..command(&["lock"]) }.then(&["name", "--", "true"]).dying(),
    of_node(&["unlock"]).given("name"),
    of_node(&["locks"]),
    of_node(&["status"]),
    of_node(&["top"]),
    of_node(&["members", "list"]),
    of_node(&["members", "add"]).given("b=127.0.0.1:2"),
    of_node(&["members", "remove"]).given("b"),
    of_node(&["leave"]).given("b"),
    of_node(&["force-release"]).given("name"),
    of_node(&["kick"]).given("b"),
    command(&["recover"]),
    command(&["recover", "--i-know-the-others-are-gone"]),
    command(&["config", "check"]).given("group.toml"),
    command(&["token", "add"]).given("ci"),
    command(&["token", "list"]),
    command(&["token", "revoke"]).given("ci"),
    command(&["cert", "ca"]),
    command(&["cert", "issue"]).given("a"),
    of_git(&["git", "init"]).given("*.psd"),
    of_git(&["git", "doctor"]),
    of_git(&["git", "lock"]).given("file"),
    of_git(&["git", "unlock"]).given("file"),
    of_git(&["git", "steal"]).given("file"),
    of_git(&["git", "locks"]),
    of_git(&["git", "whohas"]).given("file"),
    of_git(&["git", "pre-receive"]),
    of_git(&["git", "post-receive"]),
    of_git(&["git", "pre-push"]).given("origin"),
    of_git(&["git", "report"]).given("empty"),
    command(&["demo", "--time", "100ms"]),
    command(&["demo"]),
    command(&["bench", "--seconds", "0.1"]),
    command(&["bench"]),
    command(&["compare", "--algorithms", "raymond,lamport"]),
    command(&["compare", "--nodes", "3", "--entries", "10"]),
    command(&["sim", "--algorithm", "raymond", "--nodes", "3", "--entries", "10"]),
    command(&["sim", "--algorithm", "raymond", "--members", "2", "--entries", "10"]),
    command(&["sim", "--algorithm", "raymond", "--time", "10"]),
    command(&["sim"]).given("run.toml"),
    command(&["swarm"]),
    command(&["check", "raymond", "--nodes", "2"]),
    command(&["check", "raymond", "--members", "2"]),
    command(&["check"]).given("raymond"),
    command(&["replay"]).given("run.trace"),
    command(&["experiment"]).given("list"),
    command(&["experiment"]).given("run.toml"),
    command(&["graph", "generate", "edge-markovian"]),
    command(&["graph", "generate", "waypoint"]),
    command(&["graph", "generate", "buses"]),
    command(&["graph", "generate", "static"]),
    command(&["graph", "generate", "ring"]),
    command(&["graph", "info"]).given("ring.txt"),
    command(&["graph", "convert"]).given("ring.txt"),
    command(&["graph", "journey"]).given("ring.txt").then(&["0", "2"]),
    command(&["graph", "check"]).given("ring.txt"),
    command(&["graph", "run"]).given("ring.txt"),
    command(&["graph", "draw"]).given("ring.txt").then(&["picture.svg"]),
    command(&["graph", "propositions"]),
    command(&["lab", "serve"]).dying(),
    command(&["algorithms"]).given("raymond"),
    command(&["new-algorithm"]).given("mine"),
    command(&["classroom", "--processes", "1", "--rounds", "1", "--hold", "1ms"]),
    command(&["classroom"]),
    command(&["coordinator"]),
    command(&["process", "--id", "1", "--connect", "127.0.0.1:1"]),
    command(&["process"]),
    command(&["completions"]).given("bash"),
    command(&["man"]).given("lock"),
];

/// A generator that needs no crate: SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn place<T>(&mut self, values: &[T]) -> usize {
        self.below(values.len() as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.place(values)]
    }
}
