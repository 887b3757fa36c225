//! A lock of a file: a durable hold, as Git LFS sees it.

use catraca_group::{DurableHold, HoldId, LONGEST_NOTE};
use serde::{Deserialize, Serialize};

use super::path::{self, LockPath};
use super::repository::Repository;
use crate::calendar::rfc3339;
use crate::config::{Fold, GitConfig};

/// What the note of a hold says that is a lock of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Said {
    /// The path as it was given.
    pub(crate) path: String,
    /// What the owner has to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) note: String,
    /// With which others it was taken, if that is not over yet or has not been forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) set: Option<String>,
    /// Who has had it before and did not release it, the last one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) stolen_from: Vec<String>,
}

/// So many of those from whom a lock was stolen are told of.
const MOST_ROBBED: usize = 8;

impl Said {
    /// What is said of a lock that `to` steals, with what it has to say; nothing if that does not fit.
    pub(crate) fn of_stolen(was: &Lock, to: &str, note: String) -> Option<String> {
        let before = std::iter::once(&was.owner).chain(&was.stolen_from);
        let before = before.filter(|owner| *owner != to).take(MOST_ROBBED);
        let stolen_from = before.cloned().collect();
        let mut said = Said { path: was.path.clone(), note, set: None, stolen_from };
        // Whoever lost it longest ago is left out first. The last one is told, unless the path leaves no room.
        while said.stolen_from.len() > 1 && said.text().is_none() {
            said.stolen_from.pop();
        }
        if (Said { note: String::new(), ..said.clone() }).text().is_none() {
            said.stolen_from.clear();
        }
        said.text()
    }

    /// As the note of a hold; nothing if it does not fit.
    pub(crate) fn text(&self) -> Option<String> {
        let text = serde_json::to_string(self).ok()?;
        (text.len() <= LONGEST_NOTE).then_some(text)
    }
}

/// A lock of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) id: HoldId,
    pub(crate) repository: Repository,
    /// The name of the hold.
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) folded: String,
    pub(crate) owner: String,
    pub(crate) unix_millis: u64,
    pub(crate) set: Option<String>,
    /// Who has had it before and did not release it, the last one first.
    pub(crate) stolen_from: Vec<String>,
    /// As answers show it.
    pub(crate) json: String,
}

#[derive(Serialize)]
struct Body<'a> {
    id: String,
    path: &'a str,
    owner: Owner<'a>,
    locked_at: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    note: &'a str,
    fence: String,
    member: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    team: Option<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stolen_from: &'a [String],
}

#[derive(Serialize)]
struct Owner<'a> {
    name: &'a str,
}

impl Lock {
    /// The locks of files that a hold is: one, unless it was taken by other means.
    pub(crate) fn of(
        hold: &DurableHold,
        config: &GitConfig,
        cluster: impl Fn(&str) -> Option<String>,
    ) -> Vec<Lock> {
        let lock = |(name, fence): (&String, &u64)| {
            let (repository, rest) = Repository::of_lock(name)?;
            let fold = config.settings(&repository.to_string()).fold;
            let said = said(hold, &repository, name, rest, fold);
            let folded = path::folded(&said.path, fold).unwrap_or_else(|_| said.path.clone());
            let member = &hold.granted_at.name;
            let body = Body {
                id: hold.id.to_string(),
                path: &said.path,
                owner: Owner { name: &hold.owner },
                locked_at: rfc3339(hold.unix_millis),
                note: &said.note,
                fence: fence.to_string(),
                member,
                team: cluster(member),
                stolen_from: &said.stolen_from,
            };
            // Texts can always be written.
            let json = serde_json::to_string(&body).unwrap_or_default();
            Some(Lock {
                id: hold.id,
                repository,
                name: name.clone(),
                folded,
                owner: hold.owner.clone(),
                unix_millis: hold.unix_millis,
                json,
                path: said.path,
                set: said.set,
                stolen_from: said.stolen_from,
            })
        };
        hold.names.iter().zip(&hold.fences).filter_map(lock).collect()
    }

    /// What is said of it to somebody else who asks: who has it, since when. Whoever had it before finds out by this
    /// who has stolen it, also if its client tells of nothing else.
    pub(crate) fn holder(&self, asks: &str) -> String {
        let Lock { owner, path, .. } = self;
        let since = rfc3339(self.unix_millis);
        let robbed = match self.stolen_from.iter().position(|robbed| robbed == asks) {
            None => String::new(),
            Some(0) => format!(": '{owner}' has stolen it from you then"),
            Some(place) => {
                format!(": '{}' had stolen it from you before", self.stolen_from[place - 1])
            }
        };
        format!("'{owner}' has locked '{path}' since {since}{robbed}")
    }
}

/// What the note of a hold says of one of its locks. Whoever takes such a hold by other means may have
/// written anything there: then the name says what the path is.
fn said(hold: &DurableHold, repository: &Repository, name: &str, rest: &str, fold: Fold) -> Said {
    let said = serde_json::from_str::<Said>(&hold.note).ok();
    let is_it = |said: &Said| {
        // What is folded may have changed since.
        let folds = [fold, Fold::default(), Fold { case: true, backslash: true, unicode: true }];
        let named =
            |fold| LockPath::new(repository, &said.path, fold).is_ok_and(|it| it.name == name);
        folds.into_iter().any(named)
    };
    match said.filter(|said| hold.names.len() == 1 && is_it(said)) {
        Some(said) => said,
        None => Said { path: path::of_name(rest), note: hold.note.clone(), ..Said::default() },
    }
}

/// The hold with this id, if it is one that can be.
pub(crate) fn id_of(text: &str) -> Option<HoldId> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let has_form = text.len() == 32 && text.bytes().all(is_digit);
    has_form.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(HoldId)
}

#[cfg(test)]
pub(crate) mod tests {
    use catraca_group::Run;
    use serde_json::{Value, json};

    use super::*;

    /// A hold of these names.
    pub(crate) fn hold(number: u128, names: &[&str], owner: &str, note: &str) -> DurableHold {
        DurableHold {
            id: HoldId(number),
            names: names.iter().map(|name| name.to_string()).collect(),
            permits: 1,
            owner: owner.to_string(),
            note: note.to_string(),
            request: number.to_string(),
            fences: vec![7; names.len()],
            unix_millis: 1_709_251_199_000,
            granted_at: Run { name: "a".to_string(), incarnation: 1 },
            parts: Vec::new(),
        }
    }

    fn shown(hold: &DurableHold) -> Vec<Value> {
        let cluster = |member: &str| (member == "a").then(|| "paris".to_string());
        let locks = Lock::of(hold, &GitConfig::default(), cluster);
        locks.iter().map(|lock| serde_json::from_str(&lock.json).unwrap()).collect()
    }

    #[test]
    fn a_lock_is_shown_as_git_lfs_expects_it() {
        let said = Said { path: "A b.psd".into(), note: "mine".into(), ..Said::default() };
        let hold = hold(0xabc, &["git/art/game/A%20b.psd"], "ann", &said.text().unwrap());
        let lock = json!({
            "id": format!("{:032x}", 0xabc), "path": "A b.psd", "owner": {"name": "ann"},
            "locked_at": "2024-02-29T23:59:59.000Z", "note": "mine", "fence": "7",
            "member": "a", "team": "paris",
        });
        assert_eq!(shown(&hold), [lock]);
    }

    #[test]
    fn a_hold_that_was_taken_by_other_means_is_a_lock_too() {
        let names = ["git/art/game/a", "other", "git/art/game/b%20c"];
        let locks = shown(&hold(1, &names, "ann", "by hand"));
        let paths: Vec<&str> = locks.iter().map(|lock| lock["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["a", "b c"]);
        // What a note says of another path is not believed.
        let said = Said { path: "x".into(), ..Said::default() };
        let locks = shown(&hold(2, &["git/art/game/y"], "eve", &said.text().unwrap()));
        assert_eq!(locks[0]["path"], "y");
    }

    #[test]
    fn a_note_that_is_too_long_is_none() {
        let said = Said { path: "x".into(), note: "n".repeat(1100), ..Said::default() };
        assert_eq!(said.text(), None);
    }

    #[test]
    fn a_lock_that_is_stolen_says_from_whom_as_long_as_there_is_room() {
        let stolen = |said: &str| -> Value {
            let hold = hold(1, &["git/art/game/x"], "bob", said);
            shown(&hold)[0]["stolen_from"].clone()
        };
        let lock = |owner: &str, note: &str| {
            let hold = hold(1, &["git/art/game/x"], owner, note);
            Lock::of(&hold, &GitConfig::default(), |_| None).remove(0)
        };
        let plain = Said { path: "x".into(), ..Said::default() }.text().unwrap();
        assert_eq!(stolen(&plain), Value::Null);
        let once = Said::of_stolen(&lock("ann", &plain), "bob", String::new()).unwrap();
        assert_eq!(stolen(&once), json!(["ann"]));
        let twice = Said::of_stolen(&lock("bob", &once), "cy", String::new()).unwrap();
        assert_eq!(stolen(&twice), json!(["bob", "ann"]));
        // Those who had it before are told, and nobody else.
        let since = "'cy' has locked 'x' since 2024-02-29T23:59:59.000Z";
        let now = lock("cy", &twice);
        assert_eq!(now.holder("eve"), since);
        assert_eq!(now.holder("bob"), format!("{since}: 'cy' has stolen it from you then"));
        let told = "'bob' had stolen it from you before";
        assert_eq!(now.holder("ann"), format!("{since}: {told}"));
        // Whoever steals it back was not robbed.
        let back = Said::of_stolen(&lock("cy", &twice), "ann", String::new()).unwrap();
        assert_eq!(stolen(&back), json!(["cy", "bob"]));
        // A long note leaves room for the last one alone, or is refused.
        let long =
            "n".repeat(LONGEST_NOTE - plain.len() - r#","note":"","stolen_from":["cy"]"#.len());
        let full = Said::of_stolen(&lock("cy", &twice), "dan", long.clone()).unwrap();
        assert_eq!(stolen(&full), json!(["cy"]));
        assert_eq!(Said::of_stolen(&lock("cy", &twice), "dan", long + "n"), None);
        let path = "p".repeat(path::LONGEST_PATH);
        let said = Said { path: path.clone(), ..Said::default() }.text().unwrap();
        let hold = hold(1, &[&format!("git/art/game/{path}")], &"o".repeat(255), &said);
        let was = Lock { path, ..Lock::of(&hold, &GitConfig::default(), |_| None).remove(0) };
        assert_eq!(Said::of_stolen(&was, "bob", String::new()), Some(said));
    }

    #[test]
    fn a_lock_that_is_stolen_very_often_tells_of_the_last_owners_only() {
        let mut said = Said { path: "x".into(), ..Said::default() }.text().unwrap();
        for number in 0..MOST_ROBBED + 3 {
            let hold = hold(1, &["git/art/game/x"], &format!("o{number}"), &said);
            let was = Lock::of(&hold, &GitConfig::default(), |_| None).remove(0);
            said = Said::of_stolen(&was, &format!("o{}", number + 1), String::new()).unwrap();
        }
        let last: Said = serde_json::from_str(&said).unwrap();
        let robbed: Vec<String> = (3..MOST_ROBBED + 3).rev().map(|it| format!("o{it}")).collect();
        assert_eq!(last.stolen_from, robbed);
    }

    #[test]
    fn only_what_a_node_has_written_is_an_id() {
        assert_eq!(id_of(&HoldId(0x0f3c).to_string()), Some(HoldId(0x0f3c)));
        for bad in ["", "0f3c", "+0000000000000000000000000000001", &"F".repeat(32)] {
            assert_eq!(id_of(bad), None, "{bad}");
        }
    }
}
