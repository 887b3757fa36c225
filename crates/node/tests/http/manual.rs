//! What the manual prints, a node says.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::alone;

const MANUAL: &str = include_str!("../../../../docs/HTTP.md");

/// The commands of the manual with what they print, in its order.
fn commands() -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    let mut is_inside = false;
    for line in MANUAL.lines() {
        if line.starts_with("```") {
            is_inside = line == "```" && !is_inside;
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_inside) {
            commands.push((command.to_string(), String::new()));
        } else if let Some((_, output)) = commands.last_mut().filter(|_| is_inside) {
            output.push_str(line);
        }
    }
    // A node runs already, and what is watched has no end.
    commands.retain(|(command, _)| command.starts_with("curl") && !command.contains("curl -N"));
    commands
}

async fn run(command: String, at: SocketAddr, id: String) -> String {
    let running = spawn_blocking(move || {
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).env("H", format!("http://{at}")).env("ID", id);
        shell.output().unwrap()
    });
    String::from_utf8(running.await.unwrap().stdout).unwrap()
}

/// Whether two answers are the same but for what is different each time.
fn is_alike(name: &str, one: &Value, other: &Value) -> bool {
    let is_volatile = ["id", "fence", "fences"].contains(&name)
        || ["_at", "_ms"].iter().any(|ending| name.ends_with(ending));
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| {
                    other.get(key).is_some_and(|other| is_alike(key, value, other))
                })
        }
        (Value::Array(one), Value::Array(other)) => {
            let all = one.iter().zip(other);
            one.len() == other.len() && all.into_iter().all(|(one, two)| is_alike(name, one, two))
        }
        (Value::String(_), Value::String(_)) | (Value::Number(_), Value::Number(_))
            if is_volatile =>
        {
            true
        }
        _ => one == other,
    }
}

#[tokio::test]
async fn the_commands_of_the_manual_print_what_it_says() {
    let (_node, at) = alone().await;
    let commands = commands();
    assert!(commands.len() >= 8, "{commands:?}");
    let (mut id, mut fences) = (String::new(), (String::new(), String::new()));
    for (command, printed) in commands {
        // The fence that the manual has got stands for the one that was got here.
        let command = match fences.0.is_empty() {
            true => command,
            false => command.replace(&fences.0, &fences.1),
        };
        let said = run(command.clone(), at, id.clone()).await;
        println!("$ {command}\n{said}");
        if printed.is_empty() {
            assert_eq!(said, "", "{command}");
            continue;
        }
        let printed: Value = serde_json::from_str(&printed).expect(&printed);
        let said: Value = serde_json::from_str(&said).expect(&said);
        assert!(is_alike("", &printed, &said), "{command}\nprints {said}\nnot {printed}");
        if let (Some(here), Some(there)) =
            (said["fences"][0].as_str(), printed["fences"][0].as_str())
        {
            fences = (there.to_string(), here.to_string());
        }
        id = said["id"].as_str().map_or(id, str::to_string);
    }
}
