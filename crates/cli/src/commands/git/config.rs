//! Git's configuration, read once.

use std::path::Path;

use super::address::Address;
use super::repository::{git, run};
use crate::failure::Failure;

/// What git's configuration says, and beside it what the file `.lfsconfig` of the repository says, which
/// comes from whoever wrote the repository.
#[derive(Clone, Debug, Default)]
pub(super) struct Config {
    own: Vec<(String, String)>,
    shared: Vec<(String, String)>,
}

/// Where a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Flag,
    /// Git's configuration: of this repository, of the user, of the system.
    Own,
    /// A file that came with the repository.
    Shared,
}

/// The file that came with the repository.
pub(super) const LFS_CONFIG: &str = ".lfsconfig";

impl Config {
    /// What git says here. `top` is the folder that may have a `.lfsconfig`.
    pub(super) fn read(top: Option<&Path>) -> Result<Self, Failure> {
        let own = entries(&run(git().args(["config", "--null", "--list"]))?);
        let file = top.map(|top| top.join(LFS_CONFIG)).filter(|file| file.is_file());
        let shared = match file {
            Some(file) => {
                entries(&run(git().args(["config", "--null", "--list", "--file"]).arg(file))?)
            }
            None => Vec::new(),
        };
        Ok(Config { own, shared })
    }

    /// What a list of git, ended by zeros, says.
    #[cfg(test)]
    pub(super) fn of(list: &str) -> Self {
        Config { own: entries(list.as_bytes()), shared: Vec::new() }
    }

    /// The last value in git's own configuration. Sections and variables are in lower case.
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        self.own.iter().rev().find(|(its, _)| its == key).map(|(_, value)| value.as_str())
    }

    /// All values in git's own configuration, in their order.
    pub(super) fn values<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.own.iter().filter(move |(its, _)| its == key).map(|(_, value)| value.as_str())
    }

    /// The value for a key of which the file of the repository may speak too: that of git comes first.
    pub(super) fn value_or_shared(&self, key: &str) -> Option<(&str, Origin)> {
        let own = self.value(key).map(|value| (value, Origin::Own));
        own.or_else(|| self.shared_value(key).map(|value| (value, Origin::Shared)))
    }

    pub(super) fn shared_value(&self, key: &str) -> Option<&str> {
        self.shared.iter().rev().find(|(its, _)| its == key).map(|(_, value)| value.as_str())
    }

    /// The subsections of git's own configuration that have this variable, with its value: of
    /// `SECTION.SUBSECTION.VARIABLE`.
    pub(super) fn subsections<'a>(
        &'a self,
        section: &'a str,
        variable: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.own.iter().filter_map(move |(key, value)| {
            let rest = key.strip_prefix(section)?.strip_prefix('.')?;
            let (subsection, its) = rest.rsplit_once('.')?;
            (its == variable).then_some((subsection, value.as_str()))
        })
    }

    /// The values of `http.VARIABLE` and `http.URL.VARIABLE` that are meant for `address`, in their order:
    /// those that fit less well than one before are left out, an empty one takes all before it back.
    pub(super) fn http(&self, variable: &str, address: &Address) -> Vec<&str> {
        let mut best = (0, false);
        let mut values = Vec::new();
        for (key, value) in &self.own {
            let Some(rest) = key.strip_prefix("http.") else { continue };
            let fits = match rest.rsplit_once('.') {
                Some((url, its)) if its == variable => address.fits(url),
                None if rest == variable => Some((0, false)),
                _ => None,
            };
            let Some(fits) = fits.filter(|&fits| fits >= best) else { continue };
            best = fits;
            match value.is_empty() {
                true => values.clear(),
                false => values.push(value.as_str()),
            }
        }
        values
    }
}

/// Whether a value means yes, as git reads it.
pub(super) fn is_true(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    matches!(value.as_str(), "true" | "yes" | "on")
        || value.parse::<i64>().is_ok_and(|number| number != 0)
}

/// `KEY`, a line break and the value, ended by a zero; a key alone means yes.
fn entries(list: &[u8]) -> Vec<(String, String)> {
    let list = String::from_utf8_lossy(list);
    let entries = list.split_terminator('\0').map(|entry| match entry.split_once('\n') {
        Some((key, value)) => (key.to_string(), value.to_string()),
        None => (entry.to_string(), "true".to_string()),
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(own: &str) -> Config {
        Config { own: entries(own.as_bytes()), shared: entries(b"lfs.url\nhttps://shared/x\0") }
    }

    #[test]
    fn the_last_value_counts_and_that_of_git_before_that_of_the_repository() {
        let both = config("lfs.url\nhttps://own/x\0lfs.url\nhttps://later/x\0lfs.locksverify\0");
        assert_eq!(both.value_or_shared("lfs.url"), Some(("https://later/x", Origin::Own)));
        assert_eq!(both.value("lfs.locksverify").map(is_true), Some(true));
        assert_eq!(
            config("").value_or_shared("lfs.url"),
            Some(("https://shared/x", Origin::Shared))
        );
        let owners = config("catraca.Ana B.owner\nana\0catraca.bo.owner\nbob\0catraca.owner\nx\0");
        let owners: Vec<_> = owners.subsections("catraca", "owner").collect();
        assert_eq!(owners, [("Ana B", "ana"), ("bo", "bob")]);
        assert!(is_true("Yes") && is_true("1") && !is_true("0") && !is_true("") && !is_true("off"));
    }

    #[test]
    fn headers_are_those_for_the_address_as_git_adds_them_up() {
        let address = Address::parse("https://h/git/a/b").unwrap();
        let headers = |own: &str| {
            config(own)
                .http("extraheader", &address)
                .into_iter()
                .map(String::from)
                .collect::<Vec<_>>()
        };
        let all = "http.extraheader\nA: 1\0http.https://h/.extraheader\nB: 2\0";
        assert_eq!(headers(all), ["A: 1", "B: 2"]);
        let other = "http.https://h/git.extraheader\nB: 2\0http.extraheader\nA: 1\0";
        assert_eq!(headers(other), ["B: 2"]);
        assert_eq!(headers("http.extraheader\nA: 1\0http.extraheader\n\0"), [""; 0]);
        assert_eq!(headers("http.https://elsewhere/.extraheader\nA: 1\0"), [""; 0]);
    }
}
