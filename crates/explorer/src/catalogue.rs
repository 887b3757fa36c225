//! What can be chosen: the algorithms and their mutants, with the groups in which these are caught.

use catraca_algorithms::mutants::Caught;
use catraca_algorithms::registry::{self, ENTRIES};
use serde_json::{Value, json};

use crate::link::MOST_NODES;

/// The algorithms in the order of the papers.
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
}
