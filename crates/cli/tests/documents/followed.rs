//! The documents that are followed from top to bottom, each in a test of its own.

use std::collections::BTreeSet;
use std::path::Path;

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
    getting_started: "docs/GETTING-STARTED.md", 1;
    recipes_for_locks: "docs/RECIPES.md", 0;
    planning_and_changing_a_group: "docs/GROUPS.md", 1;
    what_to_do_when_an_alarm_rings: "docs/RUNBOOK.md", 0;
    a_tour_of_the_lab: "docs/TOUR.md", 0;
    the_index_of_the_lessons: "docs/TEACHING.md", 0;
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

/// Documents with code blocks that nobody follows yet.
const NOT_FOLLOWED: &[&str] = &["README.md"];

#[test]
fn no_document_is_forgotten() {
    let mut found = BTreeSet::new();
    for folder in ["", "docs", "docs/teaching"] {
        collect(folder, false, &mut found);
    }
    collect("examples", true, &mut found);
    let known: BTreeSet<String> =
        FOLLOWED.iter().chain(NOT_FOLLOWED).map(|name| name.to_string()).collect();
    assert_eq!(found, known, "a document with code blocks belongs to one of the lists");
}

/// The documents of a folder that have code blocks.
fn collect(folder: &str, deeper: bool, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(repository().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = Path::new(folder).join(&name).to_str().unwrap().to_string();
        if entry.file_type().unwrap().is_dir() {
            if deeper {
                collect(&path, true, found);
            }
        } else if name.ends_with(".md") {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            if text.lines().any(|line| line.trim_start().starts_with("```")) {
                found.insert(path);
            }
        }
    }
}

/// Each page draws a run, compares, and has every mutant caught.
#[test]
fn the_pages_of_the_algorithms() {
    let mut pages = BTreeSet::new();
    collect("docs/algorithms", false, &mut pages);
    assert!(pages.len() > 10, "{pages:?}");
    for page in &pages {
        let tally = super::document::read(page);
        assert!(tally.run > 0 && tally.not_run == 0, "{page}: {tally:?}");
    }
}
