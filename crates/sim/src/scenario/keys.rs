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
}

const fn one(
    path: &'static str,
    flag: &'static str,
    value: &'static str,
    help: &'static str,
) -> Key {
    Key { path, flag, value, help, list: false }
}

const fn many(
    path: &'static str,
    flag: &'static str,
    value: &'static str,
    help: &'static str,
) -> Key {
    Key { path, flag, value, help, list: true }
}

/// The table, in the order in which help texts show it.
pub const KEYS: &[Key] = &[
    one("algorithm", "algorithm", "NAME", "Which algorithm; 'catraca algorithms' lists them"),
    one("nodes", "nodes", "N", "How many nodes [default: 5]"),
    one("resources", "resources", "N", "How many resources are guarded [default: 1]"),
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
    one(
        "proxies",
        "proxies",
        "NODES",
        "For algorithms on clusters: the proxy of each, as in 1,5 [default: the first of each]",
    ),
    one(
        "k",
        "k",
        "K",
        "For raymond-k and robust-k: how many may be inside at once, 5 or N/2 [default: 1]",
    ),
    one(
        "test-interval",
        "test-interval",
        "TIME",
        "For robust-k: how often its detector, Hi-ADSD, tests [default: only faults.detector]",
    ),
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
        "For robust-k: news of a crash spreads in rounds of tests, or is immediate [default: rounds]",
    ),
    one(
        "ack-timeout",
        "ack-timeout",
        "TIME",
        "For robust-k: requests not acknowledged by then are sent again [default: on suspicion]",
    ),
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
    one(
        "workload.arrivals",
        "arrivals",
        "KIND",
        "closed, serial, open, bursts or schedule [default: closed]",
    ),
    one("workload.think", "think", "DIST", "closed: from leaving to asking again [default: 0]"),
    one("workload.rounds", "rounds", "N", "closed: how often each node enters [default: no limit]"),
    one(
        "workload.requesters",
        "requesters",
        "NODES",
        "closed: which nodes ask, 0..4 or 0,2,5 [default: all]",
    ),
    one(
        "workload.pause",
        "pause",
        "DIST",
        "serial: from leaving to the next node's request [default: 5]",
    ),
    one("workload.rate", "rate", "R", "open: requests per unit of time, over the whole group"),
    one("workload.burst", "burst", "N", "bursts: how many nodes ask at once"),
    one("workload.every", "every", "TIME", "bursts: from one to the next"),
    many(
        "workload.schedule",
        "request",
        "'NODE at TIME'",
        "schedule: one request, '2 at 1.5' or '2 at 1.5 for 0,3' with its resources",
    ),
    one("workload.hold", "hold", "DIST", "How long a node stays inside [default: 1]"),
    one(
        "workload.claim",
        "claim",
        "SIZE",
        "How many resources a request asks for: 2, 1..3, or weighted as in 1:7,5:3 [default: 1]",
    ),
    one(
        "workload.skew",
        "skew",
        "S",
        "How unequally popular the resources are: the exponent of Zipf's law [default: 0]",
    ),
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
        "How long a message takes: constant:1, uniform:0.5..1.5, exp:1 [default: constant:1]",
    ),
    one("network.order", "order", "ORDER", "fifo or any [default: what the algorithm needs]"),
    one("network.lan", "lan", "DIST", "How long a message takes within a cluster [default: 1]"),
    one("network.wan", "wan", "DIST", "How long a message takes between clusters [default: 1]"),
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
        "'crash 3 at 5', 'partition 0,1|2,3 from 5 to 10' or 'hold 0->1 from 4 to 6'",
    ),
    one(
        "faults.detector",
        "detector",
        "TIME",
        "How long after a crash the others suspect the node [default: never]",
    ),
    one("run.seed", "seed", "SEED", "The seed of the generator [default: 1]"),
    one(
        "run.entries",
        "entries",
        "N",
        "Ends after so many entries [default: 1000, if nothing else ends the run]",
    ),
    one("run.time", "time", "TIME", "Ends at this time"),
    one("run.warmup", "warmup", "N", "Entries that do not count [default: 0]"),
    one(
        "run.max-bypass",
        "max-bypass",
        "N",
        "How often a request may be overtaken; more is a violation",
    ),
    one("output.trace", "trace", "FILE", "Writes every step"),
    one("output.diagram", "diagram", "FILE", "Draws the space-time diagram, .svg or .png"),
    one(
        "output.tree-diagram",
        "tree-diagram",
        "FILE",
        "Draws who points to whom at the instants of --tree-at, .svg or .png",
    ),
    many(
        "output.tree-at",
        "tree-at",
        "TIME",
        "An instant that --tree-diagram draws; may be given several times",
    ),
    one("output.from", "from", "TIME", "Draws only from this time on"),
    one("output.to", "to", "TIME", "Draws only up to this time"),
    one("output.json", "json", "FILE", "Writes the figures as JSON"),
];

/// The key with this path.
pub(super) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}
