//! Who pushes, in the eyes of a hook.

use super::config::Config;
use crate::failure::Failure;

/// The variables by which servers tell their hooks who pushes, the first that says something counts: of
/// whoever set up the repository, GitLab, Gitea and Forgejo, Gitolite, and a web server.
pub(super) const VARIABLES: [&str; 5] =
    ["CATRACA_PUSHER", "GL_USERNAME", "GITEA_PUSHER_NAME", "GL_USER", "REMOTE_USER"];

/// The value of 'catraca.pusherVariable' by which no variable is believed.
const NO_VARIABLE: &str = "none";

/// Whoever pushes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pusher {
    /// As the server for the repository calls it.
    pub(super) name: String,
    /// Where that was found.
    pub(super) source: String,
    /// As the server for locks calls it: several names, if it has a name for each of its clones.
    pub(super) owners: Vec<String>,
}

impl Pusher {
    /// Of this process.
    pub(super) fn of_environment(config: &Config) -> Result<Self, Failure> {
        let user = || {
            let user = nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten();
            user.map(|user| user.name)
        };
        Self::find(config, |name| std::env::var(name).ok(), user)
    }

    fn find(
        config: &Config,
        variable: impl Fn(&str) -> Option<String>,
        user: impl FnOnce() -> Option<String>,
    ) -> Result<Self, Failure> {
        let said = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let configured: Vec<&str> = config.values("catraca.pushervariable").collect();
        let variables = match configured.last() {
            None => &VARIABLES[..],
            Some(&NO_VARIABLE) => &[],
            Some(_) => &configured,
        };
        let found =
            variables.iter().find_map(|name| Some((said(name)?, format!("the variable {name}"))));
        let found = match found {
            // Who is meant to be told by a variable is not guessed.
            None if !configured.is_empty() && !variables.is_empty() => None,
            None => user().map(|user| (user, "the user of the system".to_string())),
            found => found,
        };
        let (name, source) = found.ok_or_else(|| {
            let names = variables.join(", ");
            Failure::input(format!("cannot tell who pushes: none of {names} is set"))
        })?;
        let mapped = config.subsections("catraca", "owner").filter(|(pusher, _)| *pusher == name);
        let mut owners: Vec<String> = Vec::new();
        for (_, owner) in mapped {
            match owner {
                // As git has it: what was said before, for the whole machine, does not count here.
                "" => owners.clear(),
                owner => owners.push(owner.to_string()),
            }
        }
        if owners.is_empty() {
            owners.push(name.clone());
        }
        Ok(Pusher { name, source, owners })
    }

    /// For whom the hook speaks to a server that wants no token.
    pub(super) fn first_owner(&self) -> &str {
        self.owners.first().map_or(&self.name, |owner| owner)
    }

    /// Whose locks are those of the pusher, with quotes.
    pub(super) fn owners_in_words(&self) -> String {
        format!("'{}'", self.owners.join("' and '"))
    }

    pub(super) fn in_words(&self) -> String {
        let owners = if self.owners == [self.name.clone()] {
            String::new()
        } else {
            format!(", whose locks are those of {}", self.owners_in_words())
        };
        format!("you push as '{}'{owners}, by {}", self.name, self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(config: &str, variables: &[(&str, &str)]) -> Option<(String, String)> {
        let config = Config::of(config);
        let variable = |name: &str| {
            variables.iter().find(|(its, _)| *its == name).map(|(_, value)| value.to_string())
        };
        let pusher = Pusher::find(&config, variable, || Some("git".to_string())).ok()?;
        Some((pusher.name, pusher.owners.join("+")))
    }

    #[test]
    fn the_first_variable_counts_and_names_are_mapped() {
        let own = |name: &str| Some((name.to_string(), name.to_string()));
        assert_eq!(found("", &[]), own("git"));
        assert_eq!(found("", &[("REMOTE_USER", "w"), ("GL_USERNAME", "g")]), own("g"));
        assert_eq!(found("", &[("REMOTE_USER", "w"), ("GL_USERNAME", " ")]), own("w"));
        assert_eq!(found("", &[("REMOTE_USER", "w"), ("CATRACA_PUSHER", "c")]), own("c"));
        let map = "catraca.Ana Maria.owner\nana\0catraca.git.owner\nshared\0";
        let is = |name: &str, owner: &str| Some((name.to_string(), owner.to_string()));
        assert_eq!(found(map, &[("GL_USER", "Ana Maria")]), is("Ana Maria", "ana"));
        assert_eq!(found(map, &[]), is("git", "shared"));
        // Somebody with two clones, and one for whom the repository says something else than the machine.
        let two = "catraca.ana.owner\nana-desk\0catraca.bo.owner\nb\0catraca.ana.owner\nana-lap\0";
        assert_eq!(found(two, &[("GL_USER", "ana")]), is("ana", "ana-desk+ana-lap"));
        let anew = "catraca.ana.owner\nother\0catraca.ana.owner\n\0catraca.ana.owner\nana\0";
        assert_eq!(found(anew, &[("GL_USER", "ana")]), own("ana"));
        assert_eq!(found("catraca.ana.owner\n\0", &[("GL_USER", "ana")]), own("ana"));
        let only = "catraca.pushervariable\nGITEA_PUSHER_NAME\0";
        assert_eq!(found(only, &[("GL_USERNAME", "g"), ("GITEA_PUSHER_NAME", "t")]), own("t"));
        assert_eq!(found(only, &[("GL_USERNAME", "g")]), None);
        // Where everybody has an account, nobody is somebody else by setting a variable.
        let none = "catraca.pushervariable\nnone\0";
        assert_eq!(found(none, &[("CATRACA_PUSHER", "c"), ("none", "n")]), own("git"));
        assert_eq!(found(&(only.to_string() + none), &[("GITEA_PUSHER_NAME", "t")]), own("git"));
    }
}
