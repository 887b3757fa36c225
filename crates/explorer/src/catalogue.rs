//! What can be chosen: the algorithms and their mutants, with the groups in which these are caught.

use catraca_algorithms::mutants::Caught;
use catraca_algorithms::registry::{self, ENTRIES};
use catraca_algorithms::relabelling;
use serde_json::{Value, json};

use crate::link::MOST_NODES;

/// The algorithms in the order of the papers, and those that play elsewhere.
pub fn catalogue() -> Value {
    let algorithm = |entry: &registry::Entry| {
        let mutants = registry::mutants(entry.name);
        let mutants: Vec<Value> = mutants
            .iter()
            .map(|mutant| {
                let setting = registry::setting(entry.name, mutant.name);
                let group = match mutant.caught {
                    Caught::Checked { nodes, requests, .. } => json!({
                        "nodes": nodes, "requests": requests,
                        "k": setting.k, "crashes": setting.crashes,
                    }),
                    Caught::Simulated { .. } => Value::Null,
                };
                json!({ "name": mutant.name, "breaks": mutant.breaks,
                        "property": mutant.caught.property(), "group": group })
            })
            .collect();
        json!({
            "name": entry.name,
            "title": entry.title,
            "family": entry.family.to_string(),
            "channels": entry.channels.to_string(),
            "parameters": entry.parameters,
            "mutants": mutants,
        })
    };
    json!({
        "mostNodes": MOST_NODES,
        "algorithms": ENTRIES.iter().map(algorithm).collect::<Vec<Value>>(),
        "evolving": relabelling::ENTRIES.iter().map(|entry| entry.name).collect::<Vec<&str>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Link;

    #[test]
    fn every_mutant_that_a_small_group_catches_has_a_link_that_opens() {
        for algorithm in catalogue()["algorithms"].as_array().unwrap() {
            for mutant in algorithm["mutants"].as_array().unwrap() {
                let group = &mutant["group"];
                if group.is_null() {
                    continue;
                }
                let text = |value: &Value| value.as_str().unwrap().to_string();
                let mut link = format!(
                    "algorithm={}&mutant={}&nodes={}&requests={}&crashes={}",
                    text(&algorithm["name"]),
                    text(&mutant["name"]),
                    group["nodes"],
                    group["requests"],
                    group["crashes"]
                );
                if let Some(k) = group["k"].as_u64() {
                    link += &format!("&k={k}");
                }
                let state = crate::state(&link.parse::<Link>().unwrap()).unwrap();
                assert!(!state["possible"].as_array().unwrap().is_empty(), "{link}");
            }
        }
    }

    /// Everything between `http://127.0.0.1:7890/#` and the end of the link.
    fn links(page: &str) -> Vec<&str> {
        let after = page.split("http://127.0.0.1:7890/#").skip(1);
        after.filter_map(|rest| rest.split([')', '`', '\n']).next()).collect()
    }

    #[test]
    fn every_link_of_a_lesson_opens_and_breaks_its_mutant_where_it_is_caught() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/teaching");
        let mut seen = Vec::new();
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let page = std::fs::read_to_string(&path).unwrap();
            let lesson = path.file_stem().unwrap().to_str().unwrap();
            let (_, algorithm) = lesson.split_once('-').unwrap();
            if relabelling::entry(algorithm).is_some() {
                assert!(page.contains("catraca graph run"), "{lesson} plays elsewhere");
                continue;
            }
            let mut mutants = 0;
            for text in links(&page) {
                let link: Link = text.parse().unwrap();
                let (spec, options) = link.group().unwrap_or_else(|why| panic!("{text}: {why}"));
                assert_eq!(spec.algorithm, algorithm, "{text}");
                let state = crate::state(&link).unwrap();
                assert_eq!(state["problem"], Value::Null, "{text}");
                assert!(!state["possible"].as_array().unwrap().is_empty(), "{text}");
                let Some(name) = &spec.mutant else { continue };
                let all = registry::mutants(algorithm);
                let mutant = all.iter().find(|mutant| mutant.name == *name).unwrap();
                let Caught::Checked { nodes, requests, .. } = mutant.caught else {
                    panic!("{text}: no small group shows it");
                };
                assert!(spec.nodes >= nodes && options.requests >= requests, "{text}");
                mutants += 1;
            }
            assert!(mutants > 0, "{lesson} breaks a mutant");
            seen.push(algorithm.to_string());
        }
        let left_out = ENTRIES.iter().find(|entry| !seen.iter().any(|name| name == entry.name));
        assert_eq!(left_out.map(|entry| entry.name), None, "each has a lesson");
    }

    #[test]
    fn the_link_of_the_manual_opens() {
        for page in
            [include_str!("../../../docs/LAB.md"), include_str!("../../../docs/TEACHING.md")]
        {
            for text in links(page).into_iter().filter(|text| !text.is_empty()) {
                let state = crate::state(&text.parse::<Link>().unwrap()).unwrap();
                assert_eq!(state["problem"], Value::Null, "{text}");
            }
        }
    }
}
