//! What packages bring: the example of a configuration means something.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use support::Folder;

/// The file that packages install as /etc/catraca/catraca.toml.
const EXAMPLE: &str = include_str!("../../../packaging/catraca.toml");

#[test]
fn the_example_of_a_configuration_is_valid_and_so_is_everything_that_it_suggests() {
    let folder = Folder::new();
    folder.write("as-it-is.toml", EXAMPLE);
    let alone = folder.run(&["config", "check", "as-it-is.toml"]).quietly(0);
    alone.says("1 of at most").says("The registry is kept in /var/lib/catraca.");
    // A remark has a blank after its '#', a suggestion has none.
    let suggested = EXAMPLE.lines().map(|line| match line.strip_prefix('#') {
        Some(rest) if !rest.starts_with(' ') => rest,
        _ => line,
    });
    let suggested: Vec<&str> = suggested.collect();
    folder.write("suggested.toml", suggested.join("\n"));
    let group = folder.run(&["config", "check", "suggested.toml"]).quietly(0);
    group.says("a (this node)").says("raymond");
}
