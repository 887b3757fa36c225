//! Links to states: which group, and what it has done.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use catraca_algorithms::{Spec, SpecError, relabelling};
use catraca_check::{Choice, ChoiceError, Network, Options};
use catraca_core::Claim;
use catraca_player::PlayerError;
use catraca_sim::{Order, Scenario, ScenarioError};
use catraca_trace::{ClaimError, parse_claim};

/// The most nodes of a group in the lab.
pub const MOST_NODES: u32 = 12;
/// The most resources of one.
const MOST_RESOURCES: u32 = 12;
/// The most requests that each node may make.
const MOST_REQUESTS: u32 = 100;
/// The most steps of a link.
pub const MOST_STEPS: usize = 2_000;
/// The longest link, in bytes.
pub const LONGEST_LINK: usize = 48 << 10;

/// The nodes of a group about which nothing is said.
const DEFAULT_NODES: u32 = 3;
/// The requests of each of them.
const DEFAULT_REQUESTS: u32 = 2;

/// The keys that are those of a scenario, each with its path there.
const SCENARIO_KEYS: [(&str, &str); 12] = [
    ("algorithm", "algorithm"),
    ("nodes", "nodes"),
    ("mutant", "mutant"),
    ("start", "start"),
    ("k", "k"),
    ("tree", "tree"),
    ("quorum", "quorum"),
    ("clusters", "clusters"),
    ("proxies", "proxies"),
    ("max-preempt", "max-preempt"),
    ("resources", "resources"),
    ("order", "network.order"),
];

/// The others. What the page alone looks at is let through.
const OTHER_KEYS: [&str; 5] = ["requests", "crashes", "claims", "steps", "predict"];

/// Why a link leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Longer than any link.
    #[error("the link is longer than {LONGEST_LINK} bytes")]
    TooLong,
    /// A part without a `=`.
    #[error("'{0}' is no part of a link: say KEY=VALUE, with & between them")]
    Part(String),
    /// A character that is written as `%` and two digits, which are no digits or no text.
    #[error("'{0}' is no text: after % come two hexadecimal digits")]
    Escape(String),
    /// A key that no link has.
    #[error("a link has no key '{0}'; docs/LAB.md lists them")]
    Key(String),
    /// A key that comes twice.
    #[error("the link says '{0}' twice; say it once")]
    Twice(String),
    /// A number that is none, or too large.
    #[error("{key}: '{value}' is no number from {least} to {most}")]
    Number {
        /// The key.
        key: &'static str,
        /// What it says.
        value: String,
        /// The least that it can be.
        least: u32,
        /// The most that it can be.
        most: u32,
    },
    /// More nodes than a page shows well.
    #[error("the lab shows up to {MOST_NODES} nodes, not {0}")]
    Nodes(u32),
    /// More resources than a page shows well.
    #[error("the lab has up to {MOST_RESOURCES} resources, not {0}")]
    Resources(u32),
    /// Nobody would be left.
    #[error("crashes: {crashes} of {nodes} nodes would leave nobody; leave at least one alive")]
    Crashes {
        /// How many may crash.
        crashes: u32,
        /// Of how many.
        nodes: u32,
    },
    /// More steps than a link has.
    #[error("the link has more than {MOST_STEPS} steps")]
    Steps,
    /// A step that is none.
    #[error("step {0}: {1}")]
    Step(usize, ChoiceError),
    /// A claim that is none.
    #[error("claims: {0}")]
    Claim(#[from] ClaimError),
    /// A claim on a resource that does not exist.
    #[error("claims: there is no resource {resource}; the resources are 0 to {last}")]
    Unknown {
        /// The resource.
        resource: u32,
        /// The last one.
        last: u32,
    },
    /// A group that cannot be.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A group that cannot be.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// An algorithm that does not send messages.
    #[error(
        "{0} runs on an evolving graph, where nodes meet instead of sending messages, and there is nothing to \
         schedule here; 'catraca graph run GRAPH --algorithm {0} --html run.html' writes a page that plays it"
    )]
    Evolving(String),
    /// A run that no page shows.
    #[error("the run {0}")]
    Player(#[from] PlayerError),
}

/// A group, and the steps that it has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What is said, by key, without the steps.
    said: BTreeMap<String, String>,
    /// What has happened.
    pub steps: Vec<Choice>,
}

impl FromStr for Link {
    type Err = Refusal;

    /// Reads what comes after `#`.
    fn from_str(text: &str) -> Result<Self, Refusal> {
        if text.len() > LONGEST_LINK {
            return Err(Refusal::TooLong);
        }
        let mut said = BTreeMap::new();
        for part in text.trim_start_matches('#').split('&').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(|| Refusal::Part(short(part)))?;
            let (key, value) = (plain(key)?, plain(value)?);
            let is_known = SCENARIO_KEYS.iter().any(|(it, _)| *it == key);
            if !is_known && !OTHER_KEYS.contains(&key.as_str()) {
                return Err(Refusal::Key(short(&key)));
            }
            if said.insert(key.clone(), value).is_some() {
                return Err(Refusal::Twice(key));
            }
        }
        said.retain(|_, value| !value.is_empty());
        let steps = steps(&said.remove("steps").unwrap_or_default())?;
        Ok(Link { said, steps })
    }
}

impl fmt::Display for Link {
    /// The algorithm comes first and the steps last, so that links can be read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let first = self.said.get_key_value("algorithm");
        let rest = self.said.iter().filter(|(key, _)| *key != "algorithm");
        for (key, value) in first.into_iter().chain(rest) {
            write!(f, "{separator}{key}={}", escaped(value))?;
            separator = "&";
        }
        if !self.steps.is_empty() {
            let steps: Vec<String> = self.steps.iter().map(Choice::to_string).collect();
            write!(f, "{separator}steps={}", steps.join("."))?;
        }
        Ok(())
    }
}

impl Link {
    /// The state after the first steps.
    pub fn after(&self, count: usize) -> Self {
        let steps = self.steps.iter().take(count).copied().collect();
        Link { said: self.said.clone(), steps }
    }

    /// The group that it is about, and what is explored of it.
    pub fn group(&self) -> Result<(Spec, Options), Refusal> {
        let mut scenario = Scenario::new();
        for (key, path) in SCENARIO_KEYS {
            if let Some(value) = self.said.get(key) {
                scenario.set(path, vec![value.clone()])?;
            }
        }
        if !scenario.says("nodes") && !scenario.says("clusters") {
            scenario = scenario.with("nodes", DEFAULT_NODES);
        }
        if let Some(name) = self.said.get("algorithm").filter(|it| relabelling::entry(it).is_some())
        {
            return Err(Refusal::Evolving(name.clone()));
        }
        let spec = scenario.spec()?;
        // Before anything of that size is made.
        if spec.nodes > MOST_NODES {
            return Err(Refusal::Nodes(spec.nodes));
        }
        if spec.resource_count() > MOST_RESOURCES {
            return Err(Refusal::Resources(spec.resource_count()));
        }
        spec.check()?;
        let defaults = Options::of(&spec)?;
        let network = scenario.order()?.map(|order| match order {
            Order::Fifo => Network::Fifo,
            Order::Any => Network::Any,
        });
        let crashes = self.number("crashes", 0, 0, MOST_NODES)?;
        if crashes >= spec.nodes {
            return Err(Refusal::Crashes { crashes, nodes: spec.nodes });
        }
        let options = Options {
            requests: self.number("requests", DEFAULT_REQUESTS, 1, MOST_REQUESTS)?,
            crashes,
            claims: self.claims(&spec)?,
            network: network.unwrap_or(defaults.network),
            ..defaults
        };
        Ok((spec, options))
    }

    fn number(
        &self,
        key: &'static str,
        default: u32,
        least: u32,
        most: u32,
    ) -> Result<u32, Refusal> {
        let Some(value) = self.said.get(key) else { return Ok(default) };
        let number = value.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| Refusal::Number { key, value: short(value), least, most })
    }

    fn claims(&self, spec: &Spec) -> Result<Vec<Claim>, Refusal> {
        let Some(text) = self.said.get("claims") else { return Ok(Vec::new()) };
        let claims = text.split('|').map(parse_claim).collect::<Result<Vec<Claim>, _>>()?;
        let last = spec.resource_count() - 1;
        let unknown = claims.iter().flat_map(Claim::resources).find(|it| it.0 > last);
        match unknown {
            Some(resource) => Err(Refusal::Unknown { resource: resource.0, last }),
            None => Ok(claims),
        }
    }
}

fn steps(text: &str) -> Result<Vec<Choice>, Refusal> {
    let words: Vec<&str> = text.split('.').filter(|word| !word.is_empty()).collect();
    if words.len() > MOST_STEPS {
        return Err(Refusal::Steps);
    }
    let step = |(place, word): (usize, &&str)| {
        word.parse().map_err(|error| Refusal::Step(place + 1, error))
    };
    words.iter().enumerate().map(step).collect()
}

/// The beginning of a text that may be anything.
fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

/// A text in which some characters are `%` and two digits, and spaces may be `+`.
fn plain(text: &str) -> Result<String, Refusal> {
    let refused = || Refusal::Escape(short(text));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (high, low) = (digit().ok_or_else(refused)?, digit().ok_or_else(refused)?);
                (high << 4 | low) as u8
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| refused())
}

/// What means something in a link is written as `%` and two digits.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => escaped.push(char::from(byte)),
            b'-' | b'_' | b'.' | b',' | b':' | b'|' | b'/' | b'*' => escaped.push(char::from(byte)),
            byte => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let link = text.parse::<Link>();
        let refusal = link.and_then(|link| link.group().map(|_| ()));
        refusal.expect_err(text).to_string()
    }

    #[test]
    fn a_link_reads_back_as_it_is_written() {
        for text in [
            "algorithm=naimi-trehel",
            "algorithm=naimi-trehel&nodes=4&requests=1&steps=a1.m1-0.m0-1",
            "algorithm=bouabdallah-laforest&claims=0,1|2&resources=3&start=inside:0%3D0,1",
            "algorithm=raymond-k&crashes=1&k=2&steps=a0~2.s1-0.m0-1-2",
        ] {
            let link: Link = text.parse().unwrap();
            assert_eq!(link.to_string(), text);
            link.group().unwrap();
        }
    }

    #[test]
    fn the_order_of_keys_and_the_hash_make_no_difference() {
        let one: Link = "#steps=a0&nodes=2&algorithm=lamport&mutant=".parse().unwrap();
        let other: Link = "algorithm=lamport&nodes=2&steps=a0".parse().unwrap();
        assert_eq!(one, other);
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        let (spec, options) = "algorithm=lamport".parse::<Link>().unwrap().group().unwrap();
        assert_eq!((spec.nodes, options.requests, options.crashes), (3, 2, 0));
        assert_eq!(options.network, Network::Fifo);
        let (_, options) = "algorithm=lamport&order=any".parse::<Link>().unwrap().group().unwrap();
        assert_eq!(options.network, Network::Any);
    }

    #[test]
    fn a_link_that_leads_nowhere_says_why() {
        let group = |rest: &str| refused(&format!("algorithm=lamport&{rest}"));
        assert!(refused("").contains("algorithm"), "{}", refused(""));
        assert!(refused("algorithm=x").contains("no algorithm 'x'"));
        let evolving = refused("algorithm=evolving-helary");
        assert!(evolving.contains("'catraca graph run GRAPH --algorithm evolving-helary --html"));
        assert!(group("nodes=13").contains("up to 12 nodes, not 13"));
        assert!(group("nodes=4294967295").contains("up to 12 nodes"));
        assert!(group("nodes=-1").contains("nodes"));
        assert!(group("nodes=0").contains("not 0"));
        assert!(group("requests=0").contains("no number from 1 to 100"));
        assert!(group("crashes=3").contains("leave at least one alive"));
        assert!(group("mutant=x").contains("no mutant 'x'"));
        assert!(group("resources=99999999").contains("up to 12 resources"));
        assert!(group("nodes=2&nodes=3").contains("twice"));
        assert!(group("colour=red").contains("no key 'colour'"));
        assert!(group("nodes").contains("KEY=VALUE"));
        assert!(group("nodes=%zz").contains("two hexadecimal digits"));
        assert!(group("nodes=%ff").contains("is no text"));
        assert!(group("nodes=%").contains("two hexadecimal digits"));
        assert!(group("steps=a0.x1").contains("step 2: 'x1' is no step"));
        assert!(group("claims=0,7").contains("no resource 7"));
        assert!(group("start=inside:9").contains("the nodes are 0 to 2"));
        assert!(group("k=2").contains("takes no k"));
    }

    #[test]
    fn a_huge_link_is_refused_in_few_words() {
        let steps = "a0.".repeat(MOST_STEPS + 1);
        assert!(refused(&format!("algorithm=lamport&steps={steps}")).contains("2000 steps"));
        let long = format!("algorithm=lamport&steps={}", "a".repeat(LONGEST_LINK));
        assert!(refused(&long).contains("longer than"));
        let wide = format!("{}=1", "k".repeat(40_000));
        assert!(refused(&wide).len() < 200);
    }
}
