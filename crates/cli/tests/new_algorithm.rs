//! `catraca new-algorithm` as users run it. What it writes is compiled and tested in `crates/own`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use support::Folder;

/// The folder of the source, two above this crate.
fn source() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    path.into_os_string().into_string().unwrap()
}

#[test]
fn a_crate_is_written_that_cargo_takes() {
    let folder = Folder::new();
    folder
        .run(&["new-algorithm", "my-ring"])
        .quietly(0)
        .says("my-ring/src/algorithm.rs")
        .says("cargo run -- compare");
    let manifest = folder.read("my-ring/Cargo.toml");
    assert!(manifest.contains("name = \"my-ring\""), "{manifest}");
    for name in ["Cargo.toml", "README.md", "src/main.rs", "src/algorithm.rs"] {
        assert!(!folder.read(&format!("my-ring/{name}")).contains("@NAME@"), "{name}");
        assert!(!folder.read(&format!("my-ring/{name}")).contains("@CATRACA@"), "{name}");
    }
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(folder.path("my-ring"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&metadata.stderr);
    assert!(metadata.status.success(), "{said}");
    let found: serde_json::Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let own = format!("{}/crates/own", source());
    let dependencies = found["packages"][0]["dependencies"].as_array().unwrap();
    assert!(dependencies.iter().any(|one| one["path"] == own.as_str()), "{own}");
}

#[test]
fn everything_that_it_is_built_on_is_found_in_the_versions_that_are_tested() {
    let folder = Folder::new();
    folder.run(&["new-algorithm", "my-ring"]).quietly(0);
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--edges", "normal,build", "--prefix", "none"])
        .current_dir(folder.path("my-ring"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let lock = fs::read_to_string(format!("{}/Cargo.lock", source())).unwrap();
    let mut others = 0;
    for line in String::from_utf8(tree.stdout).unwrap().lines() {
        let mut words = line.split(' ');
        let (Some(name), Some(version)) = (words.next(), words.next()) else { continue };
        let version = version.trim_start_matches('v');
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(name == "my-ring" || lock.contains(&entry), "{line}");
        others += 1;
    }
    assert!(others > 20, "only {others}");
}

#[test]
fn its_files_are_those_that_the_workspace_tests() {
    let folder = Folder::new();
    folder.run(&["new-algorithm", "r", "--catraca", &source()]).quietly(0);
    for name in ["src/main.rs", "src/algorithm.rs", "src/mutants.rs", "src/tests.rs"] {
        let template = format!("{}/crates/own/template/{name}", source());
        assert_eq!(folder.read(&format!("r/{name}")), fs::read_to_string(template).unwrap());
    }
    for name in ["Cargo.lock", "rust-toolchain.toml"] {
        let original = fs::read_to_string(format!("{}/{name}", source())).unwrap();
        assert_eq!(folder.read(&format!("r/{name}")), original);
    }
}

#[test]
fn nothing_that_is_there_is_overwritten() {
    let folder = Folder::new();
    fs::create_dir(folder.path("ring")).unwrap();
    folder.write("notes", "mine");
    std::os::unix::fs::symlink("nowhere", folder.path("link")).unwrap();
    for name in ["ring", "notes", "link"] {
        let why = format!("'{name}' is there already, and nothing in it is overwritten");
        folder.run(&["new-algorithm", name]).refused(&[&why]);
    }
    assert_eq!(folder.names(), ["link", "notes", "ring"]);
    assert_eq!(folder.read("notes"), "mine");
    assert_eq!(fs::read_dir(folder.path("ring")).unwrap().count(), 0);
}

#[test]
fn names_that_no_crate_can_have_are_refused() {
    let folder = Folder::new();
    for name in ["../ring", "/tmp/ring", "Ring", "ríng", "a b", "", ".", "a\nb"] {
        folder.run(&["new-algorithm", name]).refused(&["is no name for a crate"]);
    }
    folder.run(&["new-algorithm", "fn"]).refused(&["the name of something else"]);
    folder.run(&["new-algorithm", "raymond"]).refused(&["is in the catalogue"]);
    assert!(folder.names().is_empty());
}

#[test]
fn a_folder_that_is_not_the_source_is_refused_before_anything_is_written() {
    let folder = Folder::new();
    for place in [".", "nowhere", "/dev/null"] {
        let why = format!("--catraca: '{place}' is not the folder of Catraca's source");
        folder.run(&["new-algorithm", "ring", "--catraca", place]).refused(&[&why]);
    }
    assert!(folder.names().is_empty());
}

#[test]
fn a_place_that_cannot_be_written_to_is_named_and_left_as_it_is() {
    let folder = Folder::new();
    fs::create_dir(folder.path("closed")).unwrap();
    fs::set_permissions(folder.path("closed"), fs::Permissions::from_mode(0o555)).unwrap();
    let probe = fs::create_dir(folder.path("closed/probe"));
    if probe.is_ok() {
        // Whoever may do everything is refused nothing; a folder that is gone refuses everybody.
        fs::remove_dir(folder.path("closed/probe")).unwrap();
        let line = "mkdir gone && cd gone && rmdir ../gone && catraca new-algorithm ring";
        folder.shell(line).refused(&["cannot make the folder 'ring'", "go to a folder"]);
        return;
    }
    let ran = folder.shell("cd closed && catraca new-algorithm ring");
    ran.refused(&["cannot make the folder 'ring'", "go to a folder that you can write to"]);
    assert_eq!(fs::read_dir(folder.path("closed")).unwrap().count(), 0);
}
