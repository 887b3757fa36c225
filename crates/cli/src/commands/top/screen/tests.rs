use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyCode;

use super::super::testing::{answer, line, listing, member, sample, view};
use super::*;

/// The screen as lines of text, without blanks at their ends.
fn screen(view: &View, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(view, Theme::new(false), frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_string()).collect()
}

fn press(view: &mut View, keys: &[KeyCode]) {
    for &key in keys {
        assert_eq!(view.on_key(key.into()), None);
    }
}

fn lines() -> Vec<catraca_client::Line> {
    vec![
        line("db/orders", 0, "ana:migrate"),
        line("db/orders", 1, "rui:report"),
        line("db/orders", 2, "eva:report"),
        line("deploy", 0, "ci:make deploy"),
        line("deploy", 1, "ci:make deploy"),
    ]
}

#[test]
fn members_and_locks_fit_a_small_terminal() {
    let mut view = view(sample(lines()));
    let mut later = sample(lines());
    later.status.millis += 2_000;
    later.status.grants += 2_500;
    later.status.messages += 100;
    answer(&mut view, later);
    assert_eq!(
        screen(&view, 80, 16),
        [
            "a at 10.0.0.1:7800, group 'g', up 3 min",
            "ready, epoch 3, 2 of 3 members since 5.0 s, lease 4.2 s left",
            "at this node 2 held, 3 waiting, 4 sessions",
            "grants 1,250/s, hand-overs 0.0/s, messages 50/s",
            "member      address        view  lease    link",
            "c           10.0.0.3:7800  out   -        down for 5.0 s: connection refused",
            "and 2 more  m shows all",
            "",
            "lock                                 holder                node  for      queue",
            "db/orders                            ana:migrate           a     12 s     2",
            "deploy                               ci:make deploy        a     12 s     1",
            "",
            "",
            "",
            "",
            "? help  q quit  Enter inspect  / filter  s sort: name  n node  p pause",
        ]
    );
}

#[test]
fn a_wide_terminal_shows_fences_too() {
    let screen = screen(&view(sample(lines())), 120, 24);
    assert!(screen.iter().any(|line| line.starts_with("b           10.0.0.2:7800")), "{screen:#?}");
    assert!(screen.iter().any(|line| line.ends_with("12884901888")), "{screen:#?}");
}

#[test]
fn a_narrow_terminal_shows_names_before_anything_else() {
    let screen = screen(&view(sample(lines())), 40, 24);
    let lock = screen.iter().find(|line| line.starts_with("db/orders")).unwrap();
    assert_eq!(lock, "db/orders          ana:migrate    2");
}

#[test]
fn how_many_hold_a_lock_is_seen_and_somebody_without_a_name_is_not_nobody() {
    let mut all = vec![line("pool", 0, "a-name-that-is-too-long-for-it"), line("pool", 0, "b")];
    all.push(line("unnamed", 0, ""));
    all.push(line("waits", 1, ""));
    let screen = screen(&view(sample(all)), 80, 24);
    let cells = |name: &str| -> String {
        let line = screen.iter().find(|line| line.starts_with(name)).unwrap();
        line.chars().skip(37).take(20).collect::<String>().trim_end().to_string()
    };
    assert!(cells("pool").starts_with("a-name-that") && cells("pool").ends_with(" +1"));
    assert_eq!(cells("unnamed"), "at build-1");
    assert_eq!(cells("waits"), "-");
}

#[test]
fn the_keys_fit_a_small_terminal() {
    let mut view = view(sample(lines()));
    press(&mut view, &[KeyCode::Char('?')]);
    let shown = screen(&view, 80, 24).concat();
    for line in HELP.lines() {
        assert!(line.chars().count() < 80 && shown.contains(line), "{line}");
    }
}

#[test]
fn one_lock_is_told_from_first_to_last_in_its_queue() {
    let mut view = view(sample(lines()));
    press(&mut view, &[KeyCode::Down, KeyCode::Enter]);
    assert!(screen(&view, 80, 10)[4].starts_with("deploy: asking"));
    let mut inspected = sample(lines());
    inspected.inspected = Some(listing(lines().split_off(3)));
    answer(&mut view, inspected);
    assert_eq!(
        screen(&view, 80, 10)[4..9],
        [
            "deploy: 1 holding, 1 waiting",
            "place      who                   process              node  for      fence",
            "holds      ci:make deploy        4711 at build-1      a     12 s     12884901888",
            "waits 1    ci:make deploy        4711 at build-1      a     12 s     -",
            "",
        ]
    );
    press(&mut view, &[KeyCode::Esc]);
    assert!(screen(&view, 80, 16)[8].starts_with("lock"));
}

#[test]
fn a_node_that_goes_away_and_comes_back_is_told_of() {
    let mut view = view(sample(lines()));
    let wish = view.wish();
    let address = "10.0.0.1:7800".to_string();
    let result = Err(catraca_client::ClientError::Silent { address });
    view.on_answer(super::super::asking::Answer { wish, result });
    view.on_time(std::time::Duration::from_millis(7_500));
    let gone = screen(&view, 80, 16);
    assert!(gone[1].starts_with("NO ANSWER for 7.5 s: "), "{}", gone[1]);
    assert!(gone[9].starts_with("db/orders"), "what was known is still shown");
    answer(&mut view, sample(lines()));
    let back = screen(&view, 80, 16);
    assert!(back[1].starts_with("ready") && back[15] == "10.0.0.1:7800 answers again", "{back:#?}");
}

#[test]
fn no_terminal_is_too_small_and_no_name_too_long_or_strange() {
    let mut strange = lines();
    strange.push(line(&"é".repeat(127), 0, "\x1b[31m"));
    strange.push(line("漢字/ロック", 0, "ひと"));
    let mut sample = sample(strange);
    sample.status.members =
        (0..26).map(|it| member(&char::from(b'a' + it).to_string(), it % 2 == 0)).collect();
    let mut view = view(sample);
    for page in ['m', 'v', '?'] {
        for (width, height) in [(1, 1), (2, 3), (20, 5), (80, 6), (80, 24), (300, 100)] {
            screen(&view, width, height);
            press(&mut view, &[KeyCode::Char(page), KeyCode::End]);
            let text = screen(&view, width, height).concat();
            assert!(!text.contains('\x1b'));
            press(&mut view, &[KeyCode::Esc]);
        }
    }
    press(&mut view, &[KeyCode::Char('m')]);
    let whole = screen(&view, 80, 40);
    assert_eq!(whole.iter().filter(|line| line.contains(":7800  ")).count(), 26);
}

#[test]
fn who_pauses_and_who_filters_sees_so() {
    let mut view = view(sample(lines()));
    press(&mut view, &[KeyCode::Char('p')]);
    assert_eq!(screen(&view, 80, 16)[1], "PAUSED: p goes on");
    press(&mut view, &[KeyCode::Char('p'), KeyCode::Char('/'), KeyCode::Char('*')]);
    let asked = "names that begin with (* first: contain): *_";
    assert_eq!(screen(&view, 80, 16)[15], asked);
    press(&mut view, &[KeyCode::Char('x'), KeyCode::Enter]);
    assert_eq!(screen(&view, 80, 16)[8], "No lock fits '*x'; Esc shows all.");
    press(&mut view, &[KeyCode::Esc]);
    assert!(screen(&view, 80, 16)[9].starts_with("db/orders"));
}
