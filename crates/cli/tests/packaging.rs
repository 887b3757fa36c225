//! What packages bring: the example of a configuration means something.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use support::Folder;

/// The file that packages install as /etc/catraca/catraca.toml.
const EXAMPLE: &str = include_str!("../../../packaging/catraca.toml");
/// The unit of the service.
const UNIT: &str = include_str!("../../../packaging/catraca.service");

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

/// In a user namespace of its own a service sees other users as 'nobody', whoever they are.
#[test]
fn the_service_sees_which_user_of_the_machine_comes_to_its_socket() {
    let settings = UNIT.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let on = |line: &&str| line.starts_with("PrivateUsers=") && !line.ends_with("=no");
    assert_eq!(settings.filter(on).collect::<Vec<_>>(), Vec::<&str>::new());
}
