//! The bill of materials: every crate that the program is compiled from, in the form of CycloneDX.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{VERSION, hex, source};
use crate::dependencies::{Expression, Metadata, Package};

/// The release of CycloneDX that the file follows.
const FORM: &str = "1.6";
/// The crate that is the program.
const PROGRAM: &str = "catraca";

pub(super) fn file_name() -> String {
    format!("catraca-{VERSION}.cdx.json")
}

/// The bill, the same bytes for the same commit. `time` is in seconds since 1970.
pub(super) fn bill(time: u64) -> Result<Vec<u8>> {
    let metadata = Metadata::read()?;
    let lock = String::from_utf8(source("Cargo.lock")?).context("Cargo.lock is no text")?;
    let mut text = serde_json::to_vec_pretty(&document(&metadata, &sums(&lock)?, time)?)?;
    text.push(b'\n');
    Ok(text)
}

/// The sum of each crate as it was published, by name and version.
fn sums(lock: &str) -> Result<BTreeMap<(String, String), String>> {
    let lock: toml::Table = lock.parse().context("Cargo.lock cannot be read")?;
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let entry = |package: &toml::Value| {
        let text = |key: &str| Some(package.get(key)?.as_str()?.to_string());
        Some(((text("name")?, text("version")?), text("checksum")?))
    };
    Ok(packages.filter_map(entry).collect())
}

fn document(
    metadata: &Metadata,
    sums: &BTreeMap<(String, String), String>,
    time: u64,
) -> Result<Value> {
    let moment = Timestamp::from_second(time.try_into()?)?.to_string();
    let (mut components, mut dependencies) = (Vec::new(), Vec::new());
    let mut program = Value::Null;
    let mut references = BTreeMap::new();
    let parts = metadata.made_of(PROGRAM);
    for id in parts.keys() {
        let package = metadata.package(id).with_context(|| format!("cargo does not know {id}"))?;
        references.insert(*id, reference(package));
    }
    for (id, needed) in &parts {
        let Some(package) = metadata.package(id) else { continue };
        let is_program = package.name == PROGRAM && metadata.is_own(package);
        let sum = sums.get(&(package.name.clone(), package.version.clone()));
        let component = component(package, is_program, sum)?;
        if is_program {
            program = component;
        } else {
            components.push(component);
        }
        let needed: Vec<&String> = needed.iter().filter_map(|id| references.get(id)).collect();
        dependencies.push(json!({ "ref": references[id], "dependsOn": needed }));
    }
    let mut document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": FORM,
        "version": 1,
        "metadata": { "timestamp": moment, "component": program },
        "components": components,
        "dependencies": dependencies,
    });
    document["serialNumber"] = json!(serial_number(&document));
    Ok(document)
}

/// What names a crate, here and elsewhere.
fn reference(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version)
}

fn component(package: &Package, is_program: bool, sum: Option<&String>) -> Result<Value> {
    let mut component = json!({
        "type": if is_program { "application" } else { "library" },
        "bom-ref": reference(package),
        "name": package.name,
        "version": package.version,
        "purl": reference(package),
    });
    if let Some(text) = &package.description {
        component["description"] = json!(text.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if let Some(licence) = &package.license {
        let licence = Expression::parse(licence).with_context(|| package.name.clone())?;
        component["licenses"] = json!([{ "expression": licence.to_string() }]);
    }
    if let Some(sum) = sum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    if let Some(url) = &package.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": url }]);
    }
    Ok(component)
}

/// A name for this bill alone, which follows from what is in it.
fn serial_number(document: &Value) -> String {
    let mut bytes: Vec<u8> = Sha256::digest(document.to_string()).to_vec();
    bytes.truncate(16);
    // Version 8 of a UUID, made by a rule of one's own.
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let digits = hex(&bytes);
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    format!("urn:uuid:{}", parts.join("-"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn made() -> Value {
        serde_json::from_slice(&bill(1_763_500_000).unwrap()).unwrap()
    }

    fn is_hex(text: &str, length: usize) -> bool {
        text.len() == length
            && text.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c))
    }

    /// What the schema of CycloneDX demands of what is used of it here.
    #[test]
    fn the_bill_has_what_its_form_demands() {
        let bill = made();
        assert_eq!(
            (&bill["bomFormat"], &bill["specVersion"]),
            (&json!("CycloneDX"), &json!("1.6"))
        );
        assert_eq!(bill["version"], 1);
        assert_eq!(bill["metadata"]["timestamp"], "2025-11-18T21:06:40Z");
        let serial = bill["serialNumber"].as_str().unwrap().strip_prefix("urn:uuid:").unwrap();
        let lengths = [8, 4, 4, 4, 12];
        assert_eq!(serial.split('-').count(), lengths.len());
        assert!(
            serial.split('-').zip(lengths).all(|(part, length)| is_hex(part, length)),
            "{serial}"
        );
        assert_eq!(bill["metadata"]["component"]["type"], "application");
        assert_eq!(bill["metadata"]["component"]["name"], PROGRAM);
        let mut names =
            BTreeSet::from([bill["metadata"]["component"]["bom-ref"].clone().to_string()]);
        for part in bill["components"].as_array().unwrap() {
            assert_eq!(part["type"], "library");
            assert!(
                !part["name"].as_str().unwrap().is_empty() && part["version"].is_string(),
                "{part}"
            );
            assert_eq!(part["purl"], part["bom-ref"]);
            assert!(names.insert(part["bom-ref"].to_string()), "{part} is there twice");
            let licence = part["licenses"][0]["expression"].as_str().unwrap();
            assert!(!licence.contains('/'), "{part}");
            for hash in part["hashes"].as_array().into_iter().flatten() {
                assert_eq!(hash["alg"], "SHA-256");
                assert!(is_hex(hash["content"].as_str().unwrap(), 64), "{part}");
            }
            for link in part["externalReferences"].as_array().into_iter().flatten() {
                assert!(link["url"].as_str().unwrap().starts_with("http"), "{part}");
            }
        }
        let listed: BTreeSet<String> = bill["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["ref"].to_string())
            .collect();
        assert_eq!(listed, names, "every part says once what it is made of");
        for one in bill["dependencies"].as_array().unwrap() {
            let needed = one["dependsOn"].as_array().unwrap();
            assert!(needed.iter().all(|part| names.contains(&part.to_string())), "{one}");
        }
    }

    #[test]
    fn the_bill_names_what_is_compiled_into_the_program_and_not_what_tests_need() {
        let bill = made();
        let parts = bill["components"].as_array().unwrap();
        let named = |name: &str| parts.iter().find(|part| part["name"] == name);
        for name in ["tokio", "rustls", "catraca-core", "serde_derive"] {
            assert!(named(name).is_some(), "{name}");
        }
        for name in ["proptest", "criterion", "xtask", "allocation-counter"] {
            assert!(named(name).is_none(), "{name}");
        }
        // Those of others have the sum that their registry gives; our own are not there yet.
        assert!(named("tokio").unwrap()["hashes"].is_array());
        assert!(named("catraca-core").unwrap()["hashes"].is_null());
    }

    #[test]
    fn the_same_commit_gives_the_same_bill_and_another_time_another_name() {
        assert_eq!(bill(5).unwrap(), bill(5).unwrap());
        let name = |time| {
            let bill: Value = serde_json::from_slice(&bill(time).unwrap()).unwrap();
            bill["serialNumber"].clone()
        };
        assert_ne!(name(5), name(6));
    }
}
