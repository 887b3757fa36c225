//! What all members of a group agree on in one epoch: who they are, and which algorithm guards which
//! names.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use catraca_algorithms::{Spec, SpecError, hi_adsd, registry};
use catraca_core::{NodeId, ResourceId};
use catraca_topology::ClusterShape;
use serde::{Deserialize, Serialize};

use crate::name::LockName;
use crate::shard::Key;

/// The number of a view. Every message between members carries it, and so does every fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u32);

impl Epoch {
    /// That of a group that has just begun.
    pub const FIRST: Epoch = Epoch(1);

    /// The next one; nothing when there are no more that fit into a fence.
    pub fn next(self) -> Option<Epoch> {
        self.later(1)
    }

    /// So many after this one.
    pub(crate) fn later(self, views: u32) -> Option<Epoch> {
        let later = Epoch(self.0.saturating_add(views));
        (later <= crate::fence::LAST_EPOCH).then_some(later)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The most members of a group.
pub const MOST_MEMBERS: usize = 64;
/// The most permits of a semaphore.
pub const MOST_PERMITS: u32 = 64;
/// The algorithm of semaphores in namespaces whose own lets one in at a time.
const SEMAPHORES: &str = "raymond-k";
/// The most resources that names of sets are put into: the token that knows of all of them must fit
/// into a frame.
pub const MOST_RESOURCES: u32 = 65_536;
/// Into how many resources the names of sets are put, unless somebody says otherwise.
const DEFAULT_RESOURCES: u32 = 1024;
/// How many sets of one namespace, with nothing in common, the clients of one node hold or await at
/// once.
pub const MOST_SETS: u32 = 32;

/// A member, as the others know it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// Its name, unique in the group.
    pub name: String,
    /// Where it listens: `host:port`.
    pub address: String,
    /// The label of its cluster, if members carry labels.
    pub cluster: Option<String>,
}

/// Names that one algorithm guards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// The names: a text in which `*` stands for anything.
    pub pattern: String,
    /// The algorithm's name in the catalogue.
    pub algorithm: String,
    /// For algorithms that know sets: into how many resources the names are put.
    pub resources: u32,
    /// For `robust-k`: a request that is not acknowledged by all within this time is sent again.
    /// Otherwise it is sent again when somebody is found to have crashed.
    pub ack_timeout: Option<Duration>,
}

impl Namespace {
    /// The names that fit `pattern`, guarded by `algorithm` in its usual form.
    pub fn new(pattern: &str, algorithm: &str) -> Self {
        Namespace {
            pattern: pattern.to_string(),
            algorithm: algorithm.to_string(),
            resources: DEFAULT_RESOURCES,
            ack_timeout: None,
        }
    }

    /// Whether `text` is one of its names; or, if it is a pattern, whether all of its names are.
    pub fn covers(&self, text: &str) -> bool {
        fits(&self.pattern, text)
    }
}

/// A view: how names find their algorithm, and members their places in it, for one epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its number.
    pub epoch: Epoch,
    /// Every member, in the same order everywhere.
    pub members: Vec<Member>,
    /// The place of the member whose view this is.
    pub me: usize,
    /// The first whose pattern fits counts; the last fits everything.
    pub namespaces: Vec<Namespace>,
    /// How crashes are found, in groups that want to know and do not hear of them in another way.
    pub detector: Option<hi_adsd::Config>,
    /// Which namespaces are guarded by an algorithm that knows sets: looked at in every request.
    sets: Vec<bool>,
}

/// The seats of one lock over the whole group, seen from its home.
///
/// An instance of an algorithm numbers its nodes from its home member on, so that whatever is
/// special about node 0 (the token starts there, it coordinates, it is the root) is spread over the
/// members by the names of the locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seating {
    pub(crate) home: u16,
    pub(crate) members: u32,
    pub(crate) seats: u32,
}

impl Seating {
    /// The instance's node for a seat of a member.
    pub(crate) fn node(self, member: usize, seat: usize) -> NodeId {
        let turned = (member as u32 + self.members - u32::from(self.home)) % self.members;
        NodeId(turned * self.seats + seat as u32)
    }

    /// The member and seat of one of the instance's nodes.
    pub(crate) fn place(self, node: NodeId) -> Option<(usize, usize)> {
        let turned = node.0 / self.seats;
        let member = (turned + u32::from(self.home)) % self.members;
        (turned < self.members).then_some((member as usize, (node.0 % self.seats) as usize))
    }
}

impl View {
    /// The first view of a group. The last namespace fits every name.
    pub fn new(
        members: Vec<Member>,
        me: usize,
        namespaces: Vec<Namespace>,
        detector: Option<hi_adsd::Config>,
    ) -> Self {
        let knows_sets = |namespace: &Namespace| takes(&namespace.algorithm, "resources");
        let sets = namespaces.iter().map(knows_sets).collect();
        View { epoch: Epoch::FIRST, members, me, namespaces, detector, sets }
    }

    /// The same with another number.
    pub fn in_epoch(self, epoch: Epoch) -> Self {
        View { epoch, ..self }
    }

    /// The view after this one, with other members; the same namespaces and the same place for
    /// whoever is called as this member is. Nothing if it is not among them.
    pub fn next(&self, members: Vec<Member>) -> Option<Self> {
        let own = &self.own().name;
        let me = members.iter().position(|member| member.name == *own)?;
        Some(View { epoch: Epoch(self.epoch.0 + 1), members, me, ..self.clone() })
    }

    /// The member whose view this is.
    pub fn own(&self) -> &Member {
        &self.members[self.me]
    }

    /// The places of the other members.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let me = self.me;
        (0..self.members.len()).filter(move |&member| member != me)
    }

    /// The first namespace whose pattern fits `name`.
    pub fn namespace(&self, name: &str) -> usize {
        let covers = |namespace: &Namespace| namespace.covers(name);
        self.namespaces.iter().position(covers).unwrap_or(self.namespaces.len() - 1)
    }

    /// Whether names with so many permits are resources of one instance, so that sets are asked for
    /// whole.
    pub fn knows_sets(&self, namespace: usize, permits: u32) -> bool {
        // Those that know sets let one in at a time.
        permits == 1 && self.sets[namespace]
    }

    /// The resource that stands for `name`. Two names may share one; they exclude each other then.
    pub(crate) fn resource(&self, namespace: usize, name: &str) -> ResourceId {
        let resources = u64::from(self.namespaces[namespace].resources);
        ResourceId((stable_hash(name, 0) % resources) as u32)
    }

    /// The member where the lock `name` begins: the same at every member, whatever their order in
    /// time, and spread evenly (rendezvous hashing).
    pub fn home(&self, name: &str) -> usize {
        let weight = |member: &Member| stable_hash(name, stable_hash(&member.name, 0));
        let weights = self.members.iter().map(weight).enumerate();
        weights.max_by_key(|&(_, weight)| weight).map_or(0, |(member, _)| member)
    }

    /// How an instance of `namespace` is laid out over the members.
    pub(crate) fn seating(&self, namespace: usize, permits: u32, home: usize) -> Seating {
        let seats = if self.knows_sets(namespace, permits) { MOST_SETS } else { permits };
        Seating { home: home as u16, members: self.members.len() as u32, seats }
    }

    /// The algorithm of an instance with so many permits.
    pub fn algorithm(&self, namespace: usize, permits: u32) -> &str {
        let own = self.namespaces[namespace].algorithm.as_str();
        if permits > 1 && !takes(own, "k") { SEMAPHORES } else { own }
    }

    /// Whether an instance with so many permits wants to know which members have crashed.
    pub fn listens(&self, namespace: usize, permits: u32) -> bool {
        takes(self.algorithm(namespace, permits), "test-interval")
    }

    /// Whether an instance with so many permits is a tree, which grows from where its token begins.
    pub(crate) fn has_tree(&self, namespace: usize, permits: u32) -> bool {
        takes(self.algorithm(namespace, permits), "tree")
    }

    /// The detector, if one of the algorithms listens to it.
    pub(crate) fn detector_of_listeners(&self) -> Option<hi_adsd::Config> {
        let listens = |namespace| self.listens(namespace, 1);
        self.detector.filter(|_| (0..self.namespaces.len()).any(listens))
    }

    /// The group that an instance of `namespace` forms.
    pub(crate) fn spec(&self, namespace: usize, permits: u32, seating: Seating) -> Spec {
        let algorithm = self.algorithm(namespace, permits);
        let mut spec = Spec::new(algorithm, seating.members * seating.seats);
        spec.ack_timeout = self.namespaces[namespace].ack_timeout;
        if self.knows_sets(namespace, permits) {
            spec.resources = Some(self.namespaces[namespace].resources);
        }
        if takes(algorithm, "k") {
            spec.k = Some(permits);
        }
        if takes(algorithm, "clusters") {
            spec.clusters = self.clusters(seating);
        }
        spec
    }

    /// The members by the labels they carry, in the numbering of an instance.
    fn clusters(&self, seating: Seating) -> Option<ClusterShape> {
        let mut labels: Vec<&str> =
            self.members.iter().map(|member| member.cluster.as_deref().unwrap_or("")).collect();
        labels.sort_unstable();
        labels.dedup();
        let of_label = |label: &str| {
            let members = self.members.iter().enumerate();
            let own =
                members.filter(|(_, member)| member.cluster.as_deref().unwrap_or("") == label);
            let mut nodes: Vec<u32> = own.map(|(member, _)| seating.node(member, 0).0).collect();
            // The home member speaks for its own cluster.
            nodes.sort_unstable();
            nodes
        };
        (labels.len() > 1)
            .then(|| ClusterShape::Members(labels.into_iter().map(of_label).collect()))
    }

    /// Whether there can be such an instance: what other members say is not believed blindly.
    pub(crate) fn can_have(&self, key: Key<'_>) -> bool {
        let is_pattern = |namespace: &Namespace| namespace.pattern == key.name;
        let is_name = LockName::new(key.name).is_ok() || self.namespaces.iter().any(is_pattern);
        is_name && (1..=MOST_PERMITS).contains(&key.permits)
    }

    /// Checks that every namespace's algorithm can run in this group.
    pub fn check(&self) -> Result<(), (usize, SpecError)> {
        for namespace in 0..self.namespaces.len() {
            let spec = self.spec(namespace, 1, self.seating(namespace, 1, 0));
            spec.check().map_err(|error| (namespace, error))?;
        }
        Ok(())
    }

    /// A number in which two views that differ are sure to differ, practically. Addresses do not
    /// count: a member may be reached in different ways from different places.
    pub fn digest(&self) -> u64 {
        let member = |digest, Member { name, cluster, .. }: &Member| {
            let line = format!("member {name} {}", cluster.as_deref().unwrap_or(""));
            stable_hash(&line, digest)
        };
        self.members.iter().fold(self.configuration(), member)
    }

    /// The same of what does not change from view to view: the namespaces.
    pub fn configuration(&self) -> u64 {
        let namespaces = self.namespaces.iter().map(
            |Namespace { pattern, algorithm, resources, ack_timeout }| {
                format!("namespace {pattern} {algorithm} {resources} {ack_timeout:?}")
            },
        );
        let detector = self.detector_of_listeners().map(|config| format!("detector {config:?}"));
        namespaces.chain(detector).fold(0, |digest, line| stable_hash(&line, digest))
    }
}

/// Whether the algorithm called `name` takes `parameter`.
fn takes(name: &str, parameter: &str) -> bool {
    registry::entry(name).is_some_and(|entry| entry.parameters.contains(&parameter))
}

/// Whether `name` is of the form `pattern`, in which `*` stands for any text.
pub fn fits(pattern: &str, name: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The same number for the same text on every machine and in every version.
pub(crate) fn stable_hash(text: &str, seed: u64) -> u64 {
    // FNV-1a, and then splitmix's finish: the last bytes of a text must move every bit.
    let step = |bits: u64, byte: u8| (bits ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut bits = text.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed, step);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
pub(crate) mod tests {
    use alloc::vec;

    use super::*;
    use crate::detector;

    /// A group of `count` members called a, b, c and so on, with one algorithm for all names.
    pub(crate) fn view(count: usize, me: usize, algorithm: &str) -> View {
        let member = |index: usize| {
            let name = char::from(b'a' + index as u8).to_string();
            Member { name, address: format!("127.0.0.1:{}", 7800 + index), cluster: None }
        };
        let members = (0..count).map(member).collect();
        let namespaces = vec![Namespace::new("*", algorithm)];
        View::new(members, me, namespaces, Some(detector::USUAL))
    }

    #[test]
    fn a_pattern_fits_with_anything_for_its_stars() {
        for (pattern, name) in [
            ("*", ""),
            ("*", "x/y"),
            ("ci/*", "ci/deploy"),
            ("*.psd", "a/b.psd"),
            ("a*b*c", "a-b-b-c"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("ci/*", "ci"), ("a", "ab"), ("a*a", "a"), ("a*b*c", "a-c-b"), ("", "x")]
        {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn homes_are_spread_and_a_member_that_goes_moves_only_its_own() {
        let (four, three) = (view(4, 0, "naimi-trehel"), view(3, 0, "naimi-trehel"));
        let mut counts = [0; 4];
        for number in 0..4000 {
            let name = format!("lock/{number}");
            let home = four.home(&name);
            counts[home] += 1;
            assert!(home == 3 || three.home(&name) == home);
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
    }

    #[test]
    fn the_next_view_keeps_the_namespaces_and_finds_this_member_among_the_others() {
        let four = view(4, 2, "raymond");
        let without_a = four.next(four.members[1..].to_vec()).unwrap();
        assert_eq!((without_a.epoch, without_a.me), (Epoch(2), 1));
        assert_eq!(without_a.own(), four.own());
        assert_eq!(four.next(four.members[..2].to_vec()), None, "it is not in it");
    }

    #[test]
    fn every_seat_is_a_node_and_every_node_a_seat() {
        let seating = Seating { home: 2, members: 3, seats: 4 };
        assert_eq!(seating.node(2, 0), NodeId(0));
        for node in NodeId::all(12) {
            let (member, seat) = seating.place(node).unwrap();
            assert_eq!(seating.node(member, seat), node);
        }
        assert_eq!(seating.place(NodeId(12)), None);
    }

    #[test]
    fn members_with_labels_become_clusters_of_the_instance() {
        let mut view = view(4, 0, "bertier");
        for (member, label) in view.members.iter_mut().zip(["x", "y", "x", "y"]) {
            member.cluster = Some(label.to_string());
        }
        let clusters = view.spec(0, 1, view.seating(0, 1, 3)).clusters.unwrap();
        assert_eq!(clusters.to_string(), "1,3|0,2");
        assert_eq!(view.check(), Ok(()));
    }

    #[test]
    fn locks_that_cannot_be_are_not_believed_in() {
        let view = view(3, 0, "bouabdallah-laforest");
        for (name, permits, can_be) in [
            ("a", 1, true),
            ("*", 1, true),
            ("a", 0, false),
            ("a", u32::MAX, false),
            ("a b", 1, false),
            (&"a".repeat(4000), 1, false),
        ] {
            assert_eq!(view.can_have(Key { name, permits }), can_be, "{name} {permits}");
        }
    }

    #[test]
    fn views_that_differ_have_different_digests() {
        let base = view(3, 0, "naimi-trehel");
        let seen_from_another = View { me: 2, ..base.clone() };
        assert_eq!(base.digest(), seen_from_another.digest());
        assert_ne!(base.digest(), view(3, 0, "raymond").digest());
        assert_ne!(base.digest(), view(4, 0, "naimi-trehel").digest());
        let impatient = |view: View| {
            let timeout = Duration::from_secs(1);
            let detector = view.detector.map(|usual| hi_adsd::Config { timeout, ..usual });
            View { detector, ..view }
        };
        assert_eq!(base.digest(), impatient(base).digest(), "it runs no detector");
        let robust = view(3, 0, "robust-k");
        assert_ne!(robust.digest(), impatient(robust).digest());
    }
}
