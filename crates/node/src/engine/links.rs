//! The links of one member to all others.

use crate::link::Link;

/// The links, by member; nothing at one's own place.
pub(crate) struct Links(pub(super) Vec<Option<Link>>);

impl Links {
    pub(crate) fn to(&self, member: usize) -> Option<&Link> {
        self.0.get(member)?.as_ref()
    }

    /// Sends off what was put behind for the members whose bits are set.
    pub(super) fn flush(&self, members: u64) {
        for link in self.of(members) {
            link.flush();
        }
    }

    /// The links to the members whose bits are set.
    pub(super) fn of(&self, mut members: u64) -> impl Iterator<Item = &Link> {
        let member = move || {
            let member = members.trailing_zeros() as usize;
            members &= members.wrapping_sub(1);
            (member < u64::BITS as usize).then_some(member)
        };
        std::iter::from_fn(member).filter_map(|member| self.to(member))
    }

    /// The members that take no messages any more, one bit each.
    #[inline]
    pub(super) fn full(&self) -> u64 {
        let links = self.0.iter().enumerate();
        let is_full = |link: &Option<Link>| link.as_ref().is_some_and(Link::is_full);
        links.fold(0, |full, (member, link)| full | u64::from(is_full(link)) << member)
    }
}
