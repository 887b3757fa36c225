//! The documents that are followed from top to bottom, each in a test of its own.

use std::collections::BTreeSet;

use super::document::{follow, repository};

/// A test for each document; the number says how many of its blocks are not run, each with a reason.
macro_rules! documents {
    ($($test:ident: $path:literal, $not_run:literal;)*) => {
        const FOLLOWED: &[&str] = &[$($path),*];
        $(#[test]
        fn $test() {
            follow($path, $not_run);
        })*
    };
}

documents! {
    the_lesson_on_the_coordinator: "docs/teaching/01-coordinator.md", 0;
    the_lesson_on_lamport: "docs/teaching/02-lamport.md", 0;
    the_lesson_on_ricart_agrawala: "docs/teaching/03-ricart-agrawala.md", 0;
    the_lesson_on_carvalho_roucairol: "docs/teaching/04-carvalho-roucairol.md", 0;
    the_lesson_on_maekawa: "docs/teaching/05-maekawa.md", 0;
    the_lesson_on_suzuki_kasami: "docs/teaching/06-suzuki-kasami.md", 0;
    the_lesson_on_singhal: "docs/teaching/07-singhal.md", 0;
    the_lesson_on_raymond: "docs/teaching/08-raymond.md", 0;
    the_lesson_on_naimi_trehel: "docs/teaching/09-naimi-trehel.md", 0;
    the_lesson_on_bertier: "docs/teaching/10-bertier.md", 0;
    the_lesson_on_bouabdallah_laforest: "docs/teaching/11-bouabdallah-laforest.md", 0;
    the_lesson_on_raymond_k: "docs/teaching/12-raymond-k.md", 0;
    the_lesson_on_robust_k: "docs/teaching/13-robust-k.md", 0;
    the_lesson_on_evolving_ricart_agrawala: "docs/teaching/14-evolving-ricart-agrawala.md", 0;
    the_lesson_on_evolving_helary: "docs/teaching/15-evolving-helary.md", 0;
    the_index_of_the_lessons: "docs/TEACHING.md", 1;
    the_readme: "README.md", 1;
    getting_started: "docs/GETTING-STARTED.md", 1;
    the_recipes: "docs/RECIPES.md", 0;
    planning_and_changing_a_group: "docs/GROUPS.md", 2;
    git_locks_for_teams: "docs/GIT.md", 2;
    the_api_of_git_locks: "docs/GIT-API.md", 0;
    what_to_do_when_an_alarm_rings: "docs/RUNBOOK.md", 0;
    locks_as_a_service: "docs/SERVICE.md", 2;
    how_to_secure_a_group: "docs/SECURITY-SETUP.md", 0;
    seeing_what_a_group_does_and_stepping_in: "docs/OPERATIONS.md", 0;
    the_manual_of_http: "docs/HTTP.md", 0;
    the_redis_protocol: "docs/REDIS.md", 0;
    the_package_for_python: "clients/python/README.md", 0;
    packages: "docs/PACKAGES.md", 6;
    a_tour_of_the_lab: "docs/TOUR.md", 0;
    the_index_of_commands: "docs/COMMANDS.md", 0;
    the_commands_of_the_lab: "docs/LAB-COMMANDS.md", 1;
    figures_for_other_programs: "docs/DATA.md", 0;
    an_algorithm_of_your_own: "docs/OWN-ALGORITHM.md", 5;
    the_interactive_lab: "docs/LAB.md", 1;
    the_player: "docs/PLAYER.md", 0;
    networks_that_change: "docs/GRAPHS.md", 0;
    the_page_of_bertier: "docs/algorithms/bertier.md", 0;
    the_page_of_bouabdallah_laforest: "docs/algorithms/bouabdallah-laforest.md", 0;
    the_page_of_carvalho_roucairol: "docs/algorithms/carvalho-roucairol.md", 0;
    the_page_of_coordinator: "docs/algorithms/coordinator.md", 0;
    the_page_of_evolving_helary: "docs/algorithms/evolving-helary.md", 0;
    the_page_of_evolving_ricart_agrawala: "docs/algorithms/evolving-ricart-agrawala.md", 0;
    the_page_of_lamport: "docs/algorithms/lamport.md", 0;
    the_page_of_maekawa: "docs/algorithms/maekawa.md", 0;
    the_page_of_naimi_trehel: "docs/algorithms/naimi-trehel.md", 0;
    the_page_of_raymond_k: "docs/algorithms/raymond-k.md", 0;
    the_page_of_raymond: "docs/algorithms/raymond.md", 0;
    the_page_of_ricart_agrawala: "docs/algorithms/ricart-agrawala.md", 0;
    the_page_of_robust_k: "docs/algorithms/robust-k.md", 0;
    the_page_of_singhal: "docs/algorithms/singhal.md", 0;
    the_page_of_suzuki_kasami: "docs/algorithms/suzuki-kasami.md", 0;
    fencing_in_postgresql: "examples/fencing/postgresql/README.md", 1;
    fencing_in_sqlite: "examples/fencing/sqlite/README.md", 0;
    fencing_in_files: "examples/fencing/files/README.md", 0;
    a_pool_of_workers_in_python: "examples/python-workers/README.md", 0;
    a_pipeline_that_deploys: "examples/ci-pipeline/README.md", 0;
    a_leader_among_machines_with_cron: "examples/cron-leader/README.md", 1;
    the_state_of_terraform: "examples/terraform/README.md", 0;
    a_team_with_git: "examples/git-team/README.md", 0;
    a_service_in_rust: "examples/rust-service/README.md", 1;
}

#[test]
fn no_document_is_forgotten() {
    let has_blocks = |document: &String| {
        let text = std::fs::read_to_string(repository().join(document)).unwrap();
        text.lines().any(|line| line.trim_start().starts_with("```"))
    };
    let found: BTreeSet<String> = documents().into_iter().filter(has_blocks).collect();
    let known: BTreeSet<String> =
        FOLLOWED.iter().chain(&[MAP]).map(|name| name.to_string()).collect();
    assert_eq!(found, known, "a document with code blocks belongs to the list");
}

/// All documents for users: the README, the documents and examples, and the other pages of the manual.
pub(crate) fn documents() -> BTreeSet<String> {
    let mut found = BTreeSet::from(["README.md".to_string()]);
    collect("docs", &mut found);
    collect("examples", &mut found);
    let summary = std::fs::read_to_string(repository().join("docs/SUMMARY.md")).unwrap();
    for link in summary.split("](../").skip(1) {
        found.insert(link.split(')').next().unwrap_or("").to_string());
    }
    found
}

/// The documents of a folder and of those within it.
fn collect(folder: &str, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(repository().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            collect(&path, found);
        } else if path.ends_with(".md") {
            found.insert(path);
        }
    }
}

/// Its block is a map of the crates, and nothing to type.
const MAP: &str = "ARCHITECTURE.md";

#[test]
fn links_between_documents_lead_to_files_that_are_there() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = std::fs::read_to_string(repository().join(&document)).unwrap();
        let folder = repository().join(&document).parent().unwrap().to_path_buf();
        for link in text.split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap_or("");
            let is_elsewhere = target.is_empty() || target.contains("://");
            if !is_elsewhere && !folder.join(target).exists() {
                broken.push(format!("{document}: {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn the_manual_has_every_document() {
    let summary = std::fs::read_to_string(repository().join("docs/SUMMARY.md")).unwrap();
    for document in documents().iter().filter_map(|document| document.strip_prefix("docs/")) {
        let is_there = document == "SUMMARY.md" || summary.contains(&format!("]({document})"));
        assert!(is_there, "docs/SUMMARY.md does not list {document}");
    }
}
