//! `catraca config`: what a configuration file means.

use std::io::Write;
use std::path::PathBuf;

use catraca_node::{
    Config, LONGEST_NAME, MOST_MEMBERS, MOST_PERMITS, RegistryPlace, SecurityConfig, hi_adsd,
};

use super::node::read;
use crate::Outcome;
use crate::output::Stdout;
use crate::table::{Align, Table, grouped};

/// Explains configuration files of nodes.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Says what a file means, or what is wrong with it and in which line (exit code 2).
    Check {
        /// The file.
        file: PathBuf,
        /// Check it for this member; a file that all share does not say which one it is for.
        #[arg(long)]
        name: Option<String>,
    },
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let What::Check { file, name } = self.what;
        let config = read(&file, name.as_deref())?;
        let mut out = Stdout::lock();
        writeln!(
            out,
            "Group '{}', {} of at most {MOST_MEMBERS} members:",
            config.group,
            config.members.len()
        )?;
        let mut members = Table::new(&[
            ("member", Align::Left),
            ("address", Align::Left),
            ("cluster", Align::Left),
        ]);
        for member in &config.members {
            let name = match member.name == config.name {
                true => format!("{} (this node)", member.name),
                false => member.name.clone(),
            };
            let cluster = member.cluster.clone().unwrap_or("-".to_string());
            members.row(vec![name, member.address.clone(), cluster]);
        }
        for line in members.lines() {
            writeln!(out, "{line}")?;
        }
        if let Some(listen) = &config.listen {
            writeln!(out, "It listens at {listen}.")?;
        }
        if config.name.is_empty() {
            writeln!(
                out,
                "Start each with: catraca node --config {} --name MEMBER",
                file.display()
            )?;
        }
        writeln!(out, "\nThe first of these that fits a name says which algorithm guards it:")?;
        let mut namespaces =
            Table::new(&[("names", Align::Left), ("algorithm", Align::Left), ("", Align::Left)]);
        for namespace in config.all_namespaces() {
            let entry = catraca_algorithms::registry::entry(&namespace.algorithm);
            let takes =
                |parameter| entry.is_some_and(|entry| entry.parameters.contains(&parameter));
            let note = if takes("resources") {
                format!("sets, over {} resources", grouped(namespace.resources.into()))
            } else if takes("test-interval") {
                match config.detector {
                    Some(hi_adsd::Config { interval, timeout, .. }) => {
                        format!(
                            "hears of crashes by tests every {interval:?}, time-out {timeout:?}"
                        )
                    }
                    None => "hears of crashes by the view".to_string(),
                }
            } else {
                String::new()
            };
            namespaces.row(vec![namespace.pattern, namespace.algorithm, note]);
        }
        for line in namespaces.lines() {
            writeln!(out, "{line}")?;
        }
        writeln!(
            out,
            "\nA member that is silent for {:?} is out of the group. {}",
            config.lease,
            registry_words(&config)
        )?;
        writeln!(out, "{}", security_words(&config.security))?;
        writeln!(
            out,
            "\nLimits: {} locks per node, {} hand-overs in a row between clients of one node,\n\
             for each that waited {} rounds; names of at most {LONGEST_NAME} bytes, semaphores of at most {MOST_PERMITS} permits.",
            grouped(config.most_locks as u64),
            config.turns.handovers,
            config.turns.rounds
        )?;
        Ok(())
    }
}

/// Who may use the node, in a sentence.
fn security_words(security: &SecurityConfig) -> String {
    let has_authority = security.tls.as_ref().is_some_and(|tls| tls.authority.is_some());
    let over = if security.tls.is_some() { " over TLS" } else { "" };
    match (&security.tokens, has_authority) {
        (Some(_), true) => "Callers show a token or a certificate, over TLS.".to_string(),
        (Some(_), false) => format!("Callers show a token{over}."),
        (None, true) => "Callers show a certificate, over TLS.".to_string(),
        (None, false) if security.is_insecure => format!("Everybody may call{over}."),
        (None, false) => format!(
            "Whoever is on the same machine may call{over}; where others reach a node, it does not start."
        ),
    }
}

/// Where the registry is, in a sentence.
fn registry_words(config: &Config) -> String {
    match &config.registry {
        RegistryPlace::Memory => {
            let mut names: Vec<String> = config.members.iter().map(|it| it.name.clone()).collect();
            names.sort();
            let voters = catraca_node::voters(&names).join(", ");
            format!("The registry is kept by {voters}, each in a directory of its own (--data).")
        }
        RegistryPlace::Directory(directory) => {
            format!("The registry is kept in {}.", directory.display())
        }
        RegistryPlace::Etcd(_) => "The registry is kept in etcd.".to_string(),
    }
}
