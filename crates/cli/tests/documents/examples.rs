//! Examples that another program runs: files of pipelines, and a line of a crontab.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::document::repository;
use super::left_out::left_out;

/// A file of YAML as JSON; nothing where nobody can read it.
fn yaml(path: &str) -> Option<Value> {
    let read = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let file = repository().join(path);
    let output = Command::new("python3").args(["-c", read]).arg(file).output().ok()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(why.contains("No module named"), "{path}: {why}");
        left_out(path, "python3-yaml");
        return None;
    }
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// A shell takes it for a command.
fn is_command(text: &str) -> bool {
    Command::new("bash").args(["-n", "-c", text]).status().unwrap().success()
}

/// The one command of a pipeline that takes the lock.
#[track_caller]
fn takes_the_lock(commands: &[String]) {
    let [command] = commands else { panic!("{commands:?}") };
    let begin = "catraca lock --wait 1800 --label ";
    assert!(command.starts_with(begin) && command.contains(" deploy/production -- "), "{command}");
    assert!(is_command(command), "{command}");
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().filter_map(|it| it.as_str().map(str::to_string)).collect()
}

#[test]
fn a_pipeline_of_gitlab_is_a_job_whose_script_takes_the_lock() {
    let Some(file) = yaml("examples/ci-pipeline/gitlab-ci.yml") else { return };
    let job = &file["deploy"];
    assert_eq!(job["stage"], "deploy");
    takes_the_lock(&texts(&job["script"]));
}

#[test]
fn a_pipeline_of_github_is_a_job_with_a_step_that_takes_the_lock() {
    let Some(file) = yaml("examples/ci-pipeline/github.yml") else { return };
    let job = &file["deploy"];
    assert_eq!(job["runs-on"], "self-hosted");
    let steps = job["steps"].as_array().unwrap();
    for step in steps {
        let kinds = ["uses", "run"].iter().filter(|kind| step[**kind].is_string()).count();
        assert_eq!(kinds, 1, "{step}");
    }
    let runs = steps.iter().filter_map(|step| step["run"].as_str());
    // What stands between ${{ and }} is filled in before the shell sees it.
    let filled = runs.map(|run| run.replace("${{ github.run_number }}", "7"));
    takes_the_lock(&filled.collect::<Vec<_>>());
    for (name, value) in job["env"].as_object().unwrap() {
        let text = value.as_str().unwrap();
        assert_eq!(text.matches("${{ ").count(), text.matches(" }}").count(), "{name}");
    }
}

#[test]
fn the_alarms_for_prometheus_are_a_group_of_rules() {
    let Some(file) = yaml("contrib/prometheus/catraca.rules.yml") else { return };
    let rules = file["groups"][0]["rules"].as_array().unwrap();
    assert!(rules.len() >= 10);
    let runbook = std::fs::read_to_string(repository().join("docs/RUNBOOK.md")).unwrap();
    for rule in rules {
        assert!(rule["alert"].is_string() && rule["expr"].is_string(), "{rule}");
        let heading = format!("\n## {}: ", rule["alert"].as_str().unwrap());
        assert!(runbook.contains(&heading), "the runbook does not say what to do: {rule}");
    }
}

#[test]
fn prometheus_is_told_of_the_rules_and_of_the_job_that_they_name() {
    let Some(file) = yaml("contrib/prometheus/prometheus.yml") else { return };
    let folder = repository().join("contrib/prometheus");
    for rules in texts(&file["rule_files"]) {
        let rules = std::fs::read_to_string(folder.join(rules)).unwrap();
        let job = file["scrape_configs"][0]["job_name"].as_str().unwrap();
        assert!(rules.contains(&format!("up{{job=\"{job}\"}}")), "{rules}");
    }
    let targets = texts(&file["scrape_configs"][0]["static_configs"][0]["targets"]);
    assert!(targets.iter().all(|it| it.parse::<SocketAddr>().is_ok()), "{targets:?}");
}

#[test]
fn the_line_of_a_crontab_has_five_times_and_a_command() {
    let readme = repository().join(Path::new("examples/cron-leader/README.md"));
    let text = std::fs::read_to_string(readme).unwrap();
    let line = text.lines().find(|line| line.starts_with("0 3 ")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let (times, command) = words.split_at(5);
    let is_time = |word: &&str| {
        word.chars().all(|c| c.is_ascii_digit() || matches!(c, '*' | ',' | '-' | '/'))
    };
    assert!(times.iter().all(is_time) && command[..2] == ["catraca", "lock"], "{line}");
    assert!(is_command(&command.join(" ")), "{line}");
    // In a crontab '%' would be the end of the line.
    assert!(!line.contains('%'), "{line}");
}

/// Writes a report with the example's script: whether it was written.
fn writes(folder: &Path, fence: &str, text: &str) -> bool {
    let script = repository().join("examples/fencing/files/write.sh");
    let wrote = Command::new(script).args([fence, text]).current_dir(folder).output().unwrap();
    wrote.status.success()
}

fn report(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("report.txt")).unwrap()
}

#[test]
fn a_file_takes_no_smaller_fence_and_forgets_none_when_a_write_fails() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    assert!(writes(folder, "5", "five") && writes(folder, "5", "five again"));
    assert!(!writes(folder, "4", "four"));
    assert_eq!(report(folder), "five again\n");
    // As if the disk were full while the fence is written.
    std::fs::create_dir(folder.join("report.fence.new")).unwrap();
    assert!(!writes(folder, "6", "six"));
    std::fs::remove_dir(folder.join("report.fence.new")).unwrap();
    assert!(!writes(folder, "4", "four"), "the fence before is still known");
    assert_eq!(report(folder), "five again\n");
    // Nobody knows what the last fence was.
    for unknown in ["", "many"] {
        std::fs::write(folder.join("report.fence"), unknown).unwrap();
        assert!(!writes(folder, "7", "seven"), "'{unknown}'");
    }
    assert_eq!(report(folder), "five again\n");
}

#[test]
fn of_many_writers_of_a_file_at_once_the_newest_stays() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    std::thread::scope(|scope| {
        for fence in 1..=20 {
            scope.spawn(move || writes(folder, &fence.to_string(), &format!("by {fence}")));
        }
    });
    assert_eq!(report(folder), "by 20\n");
}
