//! All locks of files of the group, by repository and path: a plain value.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use catraca_group::{DurableHold, HoldId};

use super::lock::Lock;
use super::repository::Repository;
use super::sets;

/// Where a lock is in its repository.
type Place = (String, HoldId);

/// The locks of one repository, by folded path.
type Locks = BTreeMap<Place, Arc<Lock>>;

/// All locks of files of the group.
#[derive(Default)]
pub(crate) struct Index {
    repositories: BTreeMap<Repository, Locks>,
    holds: BTreeMap<HoldId, Vec<(Repository, Place)>>,
    /// What is kept of sets of locks that are being taken.
    sets: BTreeMap<HoldId, DurableHold>,
}

/// Which locks of a repository are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Those in this directory, folded, or in one below it.
    pub(crate) under: Option<String>,
    pub(crate) owner: Option<String>,
    /// Those that were taken before, in milliseconds since 1970.
    pub(crate) before: Option<u64>,
    /// Those that were stolen from this owner.
    pub(crate) stolen_from: Option<String>,
    /// Those after this folded path and id.
    pub(crate) after: Option<Place>,
}

impl Selection {
    /// Whether a lock is one of those that are asked for, wherever the list begins.
    pub(crate) fn fits(&self, lock: &Lock) -> bool {
        let is_under = |folder: &String| {
            lock.folded.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        self.under.as_ref().is_none_or(is_under)
            && self.owner.as_ref().is_none_or(|owner| lock.owner == *owner)
            && self.before.is_none_or(|before| lock.unix_millis < before)
            && self.stolen_from.as_ref().is_none_or(|it| lock.stolen_from.contains(it))
    }
}

impl Index {
    /// A hold is as it is said here.
    pub(crate) fn put(&mut self, hold: DurableHold, locks: Vec<Lock>) {
        self.remove(hold.id);
        if sets::is_of_set(&hold) {
            self.sets.insert(hold.id, hold);
            return;
        }
        let places = self.holds.entry(hold.id).or_default();
        for lock in locks {
            let place = (lock.folded.clone(), lock.id);
            places.push((lock.repository.clone(), place.clone()));
            let locks = self.repositories.entry(lock.repository.clone()).or_default();
            locks.insert(place, Arc::new(lock));
        }
        if places.is_empty() {
            self.holds.remove(&hold.id);
        }
    }

    /// There is no such hold.
    pub(crate) fn remove(&mut self, id: HoldId) {
        self.sets.remove(&id);
        for (repository, place) in self.holds.remove(&id).into_iter().flatten() {
            let Some(locks) = self.repositories.get_mut(&repository) else { continue };
            locks.remove(&place);
            if locks.is_empty() {
                self.repositories.remove(&repository);
            }
        }
    }

    /// The lock of this folded path.
    pub(crate) fn by_path(&self, repository: &Repository, folded: &str) -> Option<Arc<Lock>> {
        let locks = self.repositories.get(repository)?;
        let (_, lock) = locks.range((folded.to_string(), HoldId(0))..).next()?;
        (lock.folded == folded).then(|| Arc::clone(lock))
    }

    /// At most so many locks, in the order of their folded paths, and whether there are more.
    pub(crate) fn page(
        &self,
        repository: &Repository,
        selection: &Selection,
        most: usize,
    ) -> (Vec<Arc<Lock>>, bool) {
        let Some(locks) = self.repositories.get(repository) else { return (Vec::new(), false) };
        let under = selection.under.as_deref().map(|folder| format!("{folder}/"));
        let first = under.clone().map(|under| (under, HoldId(0)));
        let begin = match (&selection.after, first) {
            (Some(after), Some(first)) if *after < first => Bound::Included(first),
            (Some(after), _) => Bound::Excluded(after.clone()),
            (None, Some(first)) => Bound::Included(first),
            (None, None) => Bound::Unbounded,
        };
        let is_under = |lock: &Lock| {
            under.as_ref().is_none_or(|under| lock.folded.starts_with(under.as_str()))
        };
        let range = locks.range((begin, Bound::Unbounded)).map(|(_, lock)| lock);
        let mut wanted =
            range.take_while(|lock| is_under(lock)).filter(|lock| selection.fits(lock));
        let page: Vec<Arc<Lock>> = wanted.by_ref().take(most).cloned().collect();
        (page, wanted.next().is_some())
    }

    /// At most so many repositories after this one that have locks of which `sees` says that they may be seen,
    /// with how many these are and when the oldest of them was taken; and whether there are more. `sees_all` says
    /// so of whole repositories, which takes less time.
    pub(crate) fn repositories(
        &self,
        after: Option<&Repository>,
        most: usize,
        sees_all: impl Fn(&Repository) -> bool,
        sees: impl Fn(&Lock) -> bool,
    ) -> (Vec<(Repository, usize, u64)>, bool) {
        let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = self.repositories.range((begin, Bound::Unbounded));
        let seen = range.filter_map(|(repository, locks)| {
            let sees_all = sees_all(repository);
            let seen = locks.values().filter(|lock| sees_all || sees(lock));
            let times = seen.map(|lock| lock.unix_millis);
            let (count, oldest) =
                times.fold((0, u64::MAX), |(count, oldest), at| (count + 1, oldest.min(at)));
            (count > 0).then(|| (repository.clone(), count, oldest))
        });
        let mut found: Vec<_> = seen.take(most.saturating_add(1)).collect();
        let more = found.len() > most;
        found.truncate(most);
        (found, more)
    }

    /// What is kept of sets of locks that are being taken.
    pub(crate) fn sets(&self) -> Vec<DurableHold> {
        self.sets.values().cloned().collect()
    }

    /// The locks that were taken with this set.
    pub(crate) fn of_set(&self, set: &str) -> Vec<Arc<Lock>> {
        let all = self.repositories.values().flat_map(BTreeMap::values);
        all.filter(|lock| lock.set.as_deref() == Some(set)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::lock::Said;
    use super::super::lock::tests::hold;
    use super::*;
    use crate::config::GitConfig;

    fn put(index: &mut Index, number: u128, path: &str, owner: &str) {
        let said = Said { path: path.to_string(), ..Said::default() };
        let name = format!("git/art/game/{path}");
        let hold = hold(number, &[&name], owner, &said.text().unwrap());
        let locks = Lock::of(&hold, &GitConfig::default(), |_| None);
        index.put(hold, locks);
    }

    fn game() -> Repository {
        Repository::new("art", "game").unwrap()
    }

    fn paths(page: &(Vec<Arc<Lock>>, bool)) -> Vec<&str> {
        page.0.iter().map(|lock| lock.path.as_str()).collect()
    }

    #[test]
    fn locks_come_in_the_order_of_their_paths_and_in_pages() {
        let mut index = Index::default();
        for (number, path) in ["c", "a/2", "b", "a/1", "a0", "a"].into_iter().enumerate() {
            put(&mut index, number as u128, path, "ann");
        }
        let all = index.page(&game(), &Selection::default(), 100);
        assert_eq!((paths(&all), all.1), (vec!["a", "a/1", "a/2", "a0", "b", "c"], false));
        let mut selection = Selection::default();
        let mut seen = Vec::new();
        loop {
            let page = index.page(&game(), &selection, 4);
            seen.extend(paths(&page).into_iter().map(str::to_string));
            selection.after = page.0.last().map(|lock| (lock.folded.clone(), lock.id));
            if !page.1 {
                break;
            }
        }
        assert_eq!(seen, paths(&all));
        let under = Selection { under: Some("a".to_string()), ..Selection::default() };
        assert_eq!(paths(&index.page(&game(), &under, 9)), ["a/1", "a/2"]);
        let under = Selection { after: Some(("a/1".to_string(), HoldId(3))), ..under };
        assert_eq!(paths(&index.page(&game(), &under, 9)), ["a/2"]);
        let other = Repository::new("art", "gam").unwrap();
        assert!(index.page(&other, &Selection::default(), 9).0.is_empty());
    }

    #[test]
    fn a_lock_fits_if_all_that_is_asked_for_does() {
        let said = Said { stolen_from: vec!["bob".into()], path: "a/x".into(), ..Said::default() };
        let hold = hold(1, &["git/art/game/a/x"], "ann", &said.text().unwrap());
        let lock = Lock::of(&hold, &GitConfig::default(), |_| None).remove(0);
        let text = |text: &str| Some(text.to_string());
        let all = Selection {
            under: text("a"),
            owner: text("ann"),
            before: Some(lock.unix_millis + 1),
            stolen_from: text("bob"),
            after: None,
        };
        assert!(all.fits(&lock) && Selection::default().fits(&lock));
        for other in [
            Selection { under: text("a/x"), ..all.clone() },
            Selection { under: text("b"), ..all.clone() },
            Selection { owner: text("bob"), ..all.clone() },
            Selection { before: Some(lock.unix_millis), ..all.clone() },
            Selection { stolen_from: text("ann"), ..all },
        ] {
            assert!(!other.fits(&lock), "{other:?}");
        }
    }

    #[test]
    fn repositories_are_those_of_which_something_may_be_seen() {
        let mut index = Index::default();
        for (number, name) in
            ["git/art/game/a", "git/art/game/b", "git/code/lib/a", "git/web/site/a"]
                .into_iter()
                .enumerate()
        {
            let hold = hold(number as u128, &[name], "ann", "");
            let locks = Lock::of(&hold, &GitConfig::default(), |_| None);
            index.put(hold, locks);
        }
        let names = |after: Option<&Repository>, most, sees: &dyn Fn(&Lock) -> bool| {
            let (found, more) =
                index.repositories(after, most, |repository| repository.team() == "art", sees);
            let named = found.into_iter().map(|(name, count, _)| (name.to_string(), count));
            (named.collect::<Vec<_>>(), more)
        };
        let all = names(None, 9, &|_| true);
        let of = |name: &str, count| (name.to_string(), count);
        assert_eq!(all, (vec![of("art/game", 2), of("code/lib", 1), of("web/site", 1)], false));
        assert_eq!(names(None, 9, &|_| false).0, [of("art/game", 2)]);
        assert_eq!(names(None, 1, &|_| true), (vec![of("art/game", 2)], true));
        let rest = names(Some(&game()), 9, &|lock| lock.name.starts_with("git/web/"));
        assert_eq!(rest, (vec![of("web/site", 1)], false));
    }

    #[test]
    fn a_hold_that_is_put_again_replaces_what_was_there_and_one_that_is_gone_leaves_nothing() {
        let mut index = Index::default();
        put(&mut index, 1, "a", "ann");
        put(&mut index, 1, "a", "bob");
        assert_eq!(index.by_path(&game(), "a").unwrap().owner, "bob");
        let own = Selection { owner: Some("ann".to_string()), ..Selection::default() };
        assert!(index.page(&game(), &own, 9).0.is_empty());
        index.remove(HoldId(1));
        index.remove(HoldId(1));
        assert!(index.by_path(&game(), "a").is_none());
        assert!(index.repositories.is_empty() && index.holds.is_empty());
    }

    #[test]
    fn of_two_holds_of_one_folded_path_none_hides_the_other() {
        let mut index = Index::default();
        put(&mut index, 2, "a", "ann");
        put(&mut index, 1, "a", "bob");
        assert_eq!(index.page(&game(), &Selection::default(), 9).0.len(), 2);
        index.remove(HoldId(1));
        assert_eq!(index.by_path(&game(), "a").unwrap().owner, "ann");
    }
}
