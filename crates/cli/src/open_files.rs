//! How many files a program may have open; every connection is one.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Many systems allow a program 1,024 open files unless it asks for more: asks for `wanted`. Returns how
/// many are allowed then, nothing if there is no limit. If they are too few, accepting fails, and the
/// log says so.
pub(crate) fn allow(wanted: u64) -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(limit.maximum.map_or(wanted, |most| most.min(wanted)));
        setrlimit(Resource::Nofile, limit).ok();
    }
    getrlimit(Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_are_wanted_are_allowed_and_never_fewer_than_before() {
        let before = getrlimit(Resource::Nofile);
        let mut few = before;
        few.current = Some(512);
        setrlimit(Resource::Nofile, few).unwrap();
        assert_eq!(allow(600), Some(600));
        assert_eq!(allow(10), Some(600));
        assert_eq!(allow(u64::MAX), before.maximum.or(Some(u64::MAX)));
        setrlimit(Resource::Nofile, before).unwrap();
    }
}
