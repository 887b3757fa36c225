//! Everything that can be said about a run.

/// One thing that can be said: a key of the file and a flag of the command line.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The path in a TOML file, such as `workload.hold`.
    pub path: &'static str,
    /// The long flag, without its dashes.
    pub flag: &'static str,
    /// What a value looks like, for help texts.
    pub value: &'static str,
    /// What it means, for help texts.
    pub help: &'static str,
    /// Whether it can be said more than once.
    pub list: bool,
    /// What holds if nothing is said, for help texts.
    pub default: Option<&'static str>,
}

impl Key {
    const fn or(self, default: &'static str) -> Self {
        Key { default: Some(default), ..self }
    }
}

const fn one(
    path: &'static str,
    flag: &'static str,
    value: &'static str,
    help: &'static str,
) -> Key {
    Key { path, flag, value, help, list: false, default: None }
}

const fn many(
    path: &'static str,
    flag: &'static str,
    value: &'static str,
    help: &'static str,
) -> Key {
    Key { path, flag, value, help, list: true, default: None }
}

/// The table, in the order in which help texts show it.
pub const KEYS: &[Key] = &[
    one("algorithm", "algorithm", "NAME", "Which algorithm; 'catraca algorithms' lists them"),
    one("nodes", "nodes", "N", "How many nodes").or("5"),
    one(
        "members",
        "members",
        "N",
        "Runs so many members of a lock group with their clients, instead of nodes",
    ),
    one("clients", "clients", "N", "members: how many clients, over all members")
        .or("one for each member"),
    one(
        "handovers",
        "handovers",
        "N",
        "members: how often in a row a lock goes from one client of a member to the next",
    )
    .or("23"),
    one(
        "turn-rounds",
        "turn-rounds",
        "N",
        "members: how many are served in a turn for each client that was there when it began",
    )
    .or("8"),
    one("ttl", "ttl", "TIME", "members: how long a session lasts unless it is renewed, or 'none'")
        .or("10"),
    one("resources", "resources", "N", "How many resources are guarded; members: how many locks")
        .or("1"),
    one(
        "clusters",
        "clusters",
        "SHAPE",
        "The clusters of the nodes: 4x8, sizes as in 3,3,2, or members as in 0,1,2|5,3,4",
    ),
    one(
        "max-preempt",
        "max-preempt",
        "N",
        "For algorithms on clusters: how often in a row the own cluster goes first",
    ),
    one("proxies", "proxies", "NODES", "For algorithms on clusters: the proxy of each, as in 1,5")
        .or("the first of each"),
    one("k", "k", "K", "For raymond-k and robust-k: how many may be inside at once, 5 or N/2")
        .or("1"),
    one(
        "test-interval",
        "test-interval",
        "TIME",
        "For robust-k: how often its detector, Hi-ADSD, tests",
    )
    .or("only faults.detector"),
    one(
        "test-timeout",
        "test-timeout",
        "TIME",
        "For robust-k: how long Hi-ADSD waits for the answer to a test",
    ),
    one(
        "news",
        "news",
        "SPREAD",
        "For robust-k: news of a crash spreads in rounds of tests, or is immediate",
    )
    .or("rounds"),
    one(
        "ack-timeout",
        "ack-timeout",
        "TIME",
        "For robust-k: requests not acknowledged by then are sent again",
    )
    .or("on suspicion"),
    one("tree", "tree", "SHAPE", "For raymond: binary, star, chain, or parents as in -,0,0,1"),
    one("quorum", "quorum", "KIND", "For maekawa: grid or plane"),
    one(
        "mutant",
        "mutant",
        "NAME",
        "A deliberately broken variant; 'catraca algorithms NAME' lists them",
    ),
    one(
        "start",
        "start",
        "START",
        "Where the run begins: idle, token:NODE, inside:NODE, or with claims inside:0=0,1|2=2",
    ),
    one("workload.arrivals", "arrivals", "KIND", "closed, serial, open, bursts or schedule")
        .or("closed"),
    one("workload.think", "think", "DIST", "closed: from leaving to asking again").or("0"),
    one("workload.rounds", "rounds", "N", "closed: how often each node enters").or("no limit"),
    one("workload.requesters", "requesters", "NODES", "closed: which nodes ask, 0..4 or 0,2,5")
        .or("all"),
    one("workload.pause", "pause", "DIST", "serial: from leaving to the next node's request")
        .or("5"),
    one("workload.rate", "rate", "R", "open: requests per unit of time, over the whole group"),
    one("workload.burst", "burst", "N", "bursts: how many nodes ask at once"),
    one("workload.every", "every", "TIME", "bursts: from one to the next"),
    many(
        "workload.schedule",
        "request",
        "'NODE at TIME'",
        "schedule: one request, '2 at 1.5' or '2 at 1.5 for 0,3' with its resources",
    ),
    one("workload.hold", "hold", "DIST", "How long a node stays inside").or("1"),
    one("workload.at-once", "at-once", "N", "members: how many requests a client makes at a time")
        .or("1"),
    one("workload.tries", "tries", "P", "members: the share of requests that do not wait").or("0"),
    one("workload.limited", "limited", "P", "members: the share that waits for a limited time")
        .or("0"),
    one("workload.limit", "limit", "DIST", "members: how long these two wait").or("exp:5"),
    one("workload.cancels", "cancels", "P", "members: the share that is taken back after a while")
        .or("0"),
    one("workload.patience", "patience", "DIST", "members: after how long").or("exp:5"),
    one(
        "workload.vanishes",
        "vanishes",
        "P",
        "members: the share of clients that go without releasing, and come back",
    )
    .or("0"),
    one(
        "workload.claim",
        "claim",
        "SIZE",
        "How many resources a request asks for: 2, 1..3, or weighted as in 1:7,5:3",
    )
    .or("1"),
    one(
        "workload.skew",
        "skew",
        "S",
        "How unequally popular the resources are: the exponent of Zipf's law",
    )
    .or("0"),
    one(
        "workload.locality",
        "locality",
        "P",
        "serial, open: the share of requests from the cluster of the request before, 0 to 1",
    ),
    one(
        "network.delay",
        "delay",
        "DIST",
        "How long a message takes: constant:1, uniform:0.5..1.5, exp:1",
    )
    .or("constant:1"),
    one("network.order", "order", "ORDER", "fifo or any").or("what the algorithm needs"),
    one("network.lan", "lan", "DIST", "How long a message takes within a cluster").or("1"),
    one("network.wan", "wan", "DIST", "How long a message takes between clusters").or("1"),
    many(
        "network.matrix",
        "matrix",
        "'DIST...'",
        "One row per cluster: how long messages take to each cluster",
    ),
    many(
        "faults.events",
        "fault",
        "FAULT",
        "'crash 3 at 5', 'partition 0,1|2,3 from 5 to 10', 'hold 0->1 from 4 to 6', or of members \
         'pause 1 from 4 to 6'",
    ),
    one(
        "faults.detector",
        "detector",
        "TIME",
        "How long after a crash the others suspect the node",
    )
    .or("never"),
    one("run.seed", "seed", "SEED", "The seed of the generator").or("1"),
    one("run.entries", "entries", "N", "Ends after so many entries")
        .or("1000, if nothing else ends the run"),
    one("run.time", "time", "TIME", "Ends at this time"),
    one("run.warmup", "warmup", "N", "Entries that do not count").or("0"),
    one("run.events", "events", "N", "Gives up after so many events").or("1000000000"),
    one(
        "run.max-bypass",
        "max-bypass",
        "N",
        "How often a request may be overtaken; more is a violation",
    ),
    one("output.trace", "trace", "FILE", "Writes every step"),
    one("output.log", "log", "FILE", "members: writes a line for everything that happens"),
    one("output.diagram", "diagram", "FILE", "Draws the space-time diagram, .svg, .png or .pdf"),
    one(
        "output.tree-diagram",
        "tree-diagram",
        "FILE",
        "Draws who points to whom at the instants of --tree-at, .svg, .png or .pdf",
    ),
    many(
        "output.tree-at",
        "tree-at",
        "TIME",
        "An instant that --tree-diagram draws; may be given several times",
    ),
    one("output.from", "from", "TIME", "Draws only from this time on"),
    one("output.to", "to", "TIME", "Draws only up to this time"),
    one("output.html", "html", "FILE", "Writes a page that plays the run step by step"),
    one("output.html-from", "html-from", "TIME", "The page shows only from this time on"),
    one("output.html-to", "html-to", "TIME", "The page shows only up to this time"),
    one("output.json", "json", "FILE", "Writes the figures as JSON"),
];

/// The key with this path.
pub(super) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}
