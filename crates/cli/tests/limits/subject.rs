//! Every command and what it can be given, and a generator of arguments.

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
    "",
    "LONG",
    "-",
    "0,1,,2",
    "0..3",
    "0|1",
    "a b c",
    "exp 0",
    "/dev/zero",
    "/dev/full",
    "missing",
    "folder",
    "garbage",
    "deep.toml",
    "out.svg",
];

/// What is given for a file; the first is one that the command can read.
const FILES: &[&str] =
    &["garbage", "deep.toml", "empty", "folder", "missing", "/dev/zero", "/dev/urandom", "", "-"];

/// The codes that 'catraca --help' lists.
pub(crate) const CODES: &[i32] = &[0, 1, 2, 3, 4, 130];
/// Those of 'catraca lock --help' beside them.
const LOCK_CODES: &[i32] = &[0, 1, 2, 122, 123, 124, 125, 126, 127, 130, 143];
/// Those of 'catraca locks --help' and 'catraca status --help'.
const MONITOR_CODES: &[i32] = &[0, 1, 2, 3, 4, 122, 125, 130];

/// A command and what it can be given.
pub(crate) struct Subject {
    /// Its words and what is always given.
    words: &'static [&'static str],
    /// A file that it reads: a good one.
    file: Option<&'static str>,
    /// What comes after everything else.
    rest: &'static [&'static str],
    /// Flags with a value.
    flags: &'static [&'static str],
    /// Flags without one.
    switches: &'static [&'static str],
    /// The codes that it may end with.
    pub(crate) codes: &'static [i32],
}

impl Subject {
    const fn new(words: &'static [&'static str], flags: &'static [&'static str]) -> Self {
        Subject { words, file: None, rest: &[], flags, switches: &[], codes: CODES }
    }

    const fn reading(mut self, file: &'static str) -> Self {
        self.file = Some(file);
        self
    }

    const fn with(mut self, switches: &'static [&'static str]) -> Self {
        self.switches = switches;
        self
    }

    /// The arguments of one case: up to three flags, each with any value.
    pub(crate) fn arguments(&self, random: &mut Random) -> Vec<String> {
        let mut arguments: Vec<&str> = self.words.to_vec();
        if let Some(good) = self.file {
            // Mostly a good one: what is wrong with flags comes to light only then.
            let is_good = random.below(3) > 0;
            arguments.push(if is_good { good } else { random.one_of(FILES) });
        }
        for _ in 0..1 + random.below(3) {
            if !self.switches.is_empty() && random.below(4) == 0 {
                arguments.push(random.one_of(self.switches));
            } else if !self.flags.is_empty() {
                arguments.push(random.one_of(self.flags));
                arguments.push(random.one_of(VALUES));
            }
        }
        arguments.extend(self.rest);
        let spelled = |text: &str| match text {
            "LONG" => "long text ".repeat(6_000),
            text => text.to_string(),
        };
        arguments.into_iter().map(spelled).collect()
    }
}

const TRACE_FLAGS: &[&str] = &["--format", "--instant"];

pub(crate) const SUBJECTS: &[Subject] = &[
    Subject::new(
        &["graph", "generate", "edge-markovian"],
        &["--nodes", "--instants", "--seed", "--birth", "--death", "--output", "--to", "--until"],
    )
    .with(&["--repeat"]),
    Subject::new(
        &["graph", "generate", "waypoint"],
        &["--nodes", "--instants", "--side", "--range", "--speed", "--output", "--to", "--until"],
    )
    .with(&["--repeat"]),
    Subject::new(
        &["graph", "generate", "buses"],
        &["--stops", "--buses", "--route", "--seed", "--output", "--to", "--until"],
    ),
    Subject::new(
        &["graph", "generate", "static"],
        &["--nodes", "--shape", "--output", "--to", "--until"],
    ),
    Subject::new(&["graph", "generate", "ring"], &["--nodes", "--output", "--to", "--until"]),
    Subject::new(&["graph", "info"], TRACE_FLAGS).reading("ring.txt").with(&["--repeat"]),
    Subject::new(&["graph", "convert"], &["--format", "--instant", "--output", "--to", "--until"])
        .reading("ring.txt")
        .with(&["--repeat=3", "--repeat=18446744073709551615"]),
    Subject {
        rest: &["0", "2"],
        ..Subject::new(&["graph", "journey"], &["--from", "--draw", "--instant"])
            .reading("ring.txt")
    },
    Subject::new(
        &["graph", "check"],
        &["--requesters", "--token", "--from", "--conditions", "--instant"],
    )
    .reading("ring.txt")
    .with(&["--repeat"]),
    Subject::new(
        &["graph", "run"],
        &[
            "--algorithm",
            "--requesters",
            "--at",
            "--request",
            "--rounds",
            "--hold",
            "--pause",
            "--token",
            "--mutant",
            "--until",
            "--entries",
            "--strip",
            "--labels",
            "--json",
        ],
    )
    .reading("ring.txt")
    .with(&["--endless", "--repeat"]),
    Subject {
        rest: &["picture.svg"],
        ..Subject::new(&["graph", "draw"], &["--from", "--to", "--instant"])
            .reading("ring.txt")
            .with(&["--chart", "--repeat"])
    },
    Subject::new(
        &["graph", "propositions"],
        &["--nodes", "--instants", "--asks-until", "--random", "--seed", "--strip"],
    ),
    Subject::new(
        &["sim", "--algorithm", "raymond", "--nodes", "3", "--entries", "10"],
        &[
            "--nodes",
            "--resources",
            "--clusters",
            "--max-preempt",
            "--k",
            "--tree",
            "--quorum",
            "--mutant",
            "--start",
            "--arrivals",
            "--think",
            "--rounds",
            "--requesters",
            "--pause",
            "--rate",
            "--burst",
            "--every",
            "--request",
            "--hold",
            "--claim",
            "--skew",
            "--locality",
            "--delay",
            "--order",
            "--lan",
            "--wan",
            "--matrix",
            "--fault",
            "--detector",
            "--seed",
            "--entries",
            "--time",
            "--warmup",
            "--max-bypass",
            "--trace",
            "--diagram",
            "--tree-diagram",
            "--tree-at",
            "--from",
            "--to",
            "--json",
            "--algorithm",
            "--test-interval",
            "--test-timeout",
            "--news",
            "--ack-timeout",
            "--proxies",
        ],
    )
    .with(&["--self-check"]),
    Subject::new(&["sim"], &["--nodes", "--entries"]).reading("run.toml"),
    Subject::new(
        &["compare", "--algorithms", "raymond,lamport", "--nodes", "3", "--entries", "10"],
        &[
            "--algorithms",
            "--nodes",
            "--load",
            "--rate",
            "--hold",
            "--delay",
            "--resources",
            "--claim",
            "--skew",
            "--clusters",
            "--proxies",
            "--lan",
            "--wan",
            "--locality",
            "--max-preempt",
            "--tree",
            "--quorum",
            "--seed",
            "--entries",
            "--csv",
            "--json",
            "--plot",
        ],
    )
    .with(&["--kinds"]),
    Subject::new(
        &["check", "raymond", "--nodes", "2"],
        &[
            "--nodes",
            "--start",
            "--mutant",
            "--tree",
            "--quorum",
            "--clusters",
            "--proxies",
            "--max-preempt",
            "--k",
            "--resources",
            "--claims",
            "--requests",
            "--crashes",
            "--order",
            "--threads",
            "--memory",
            "--states",
            "--trace",
            "--diagram",
        ],
    ),
    Subject::new(
        &["demo", "--time", "100ms"],
        &["--algorithm", "--nodes", "--clients", "--hold", "--time"],
    ),
    Subject::new(&["replay"], &["--diagram", "--from", "--to", "--tree-diagram", "--tree-at"])
        .reading("run.trace")
        .with(&["--words"]),
    Subject::new(&["experiment"], &["--out"]).reading("list"),
    Subject::new(&["algorithms"], &[]).reading("raymond"),
    Subject::new(&["config", "check"], &["--name"]).reading("group.toml"),
    Subject::new(
        &["classroom", "--processes", "1", "--rounds", "1", "--hold", "1ms"],
        &["--processes", "--rounds", "--hold", "--out"],
    ),
    Subject::new(&["coordinator"], &["--listen", "--log"]).with(&["--until-input-ends"]),
    Subject::new(
        &["process", "--connect", "127.0.0.1:1"],
        &["--id", "--connect", "--rounds", "--hold", "--result"],
    ),
    Subject {
        rest: &["name", "--", "true"],
        codes: LOCK_CODES,
        ..Subject::new(
            &["lock", "--node", "127.0.0.1:1"],
            &["-w", "-E", "--ttl", "--permits", "--label"],
        )
        .with(&["-n", "-v"])
    },
    Subject {
        codes: MONITOR_CODES,
        ..Subject::new(&["locks"], &["--node"]).with(&["--json", "--watch"])
    },
    Subject { codes: MONITOR_CODES, ..Subject::new(&["status"], &["--node"]).with(&["--json"]) },
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

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }
}
