use catraca_client::ClientError;

use super::super::testing::{answer, line, sample, status, view};
use super::*;

fn press(view: &mut View, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            '\x08' => KeyCode::Backspace,
            key => KeyCode::Char(key),
        };
        assert_eq!(view.on_key(code.into()), None);
    }
}

fn names(view: &View) -> Vec<&str> {
    view.rows.iter().map(|row| row.name.as_str()).collect()
}

#[test]
fn rates_are_of_one_run_of_one_node() {
    let earlier = status();
    let later = |millis, grants| Status { millis, grants, ..status() };
    let rates = Rates::between(&earlier, &later(earlier.millis + 500, 10)).unwrap();
    assert_eq!((rates.grants, rates.messages), (20.0, 0.0));
    assert_eq!(Rates::between(&earlier, &earlier), None, "no time has passed");
    assert_eq!(Rates::between(&earlier, &later(10, 10)), None, "it was restarted");
    let other = Status { node: "b".to_string(), ..later(earlier.millis + 500, 10) };
    assert_eq!(Rates::between(&earlier, &other), None);
    let restarted = later(earlier.millis + 500, 0);
    assert_eq!(Rates::between(&later(earlier.millis, 9), &restarted), None);
}

#[test]
fn the_cursor_stays_at_its_lock_while_others_come_and_go() {
    let held = |names: &[&str]| sample(names.iter().map(|name| line(name, 0, "x")).collect());
    let mut view = view(held(&["b", "d"]));
    press(&mut view, "j");
    assert_eq!(view.current(), Some("d"));
    answer(&mut view, held(&["a", "b", "c", "d"]));
    assert_eq!(view.current(), Some("d"));
    answer(&mut view, held(&["a"]));
    assert_eq!(view.current(), Some("a"));
    answer(&mut view, held(&[]));
    assert_eq!(view.current(), None);
    press(&mut view, "jkG\n");
    assert_eq!(view.page, Page::Overview, "there is nothing to inspect");
}

#[test]
fn locks_are_sorted_by_queue_age_and_node() {
    let mut old = line("young", 0, "x");
    old.key.name = "z-old".to_string();
    old.millis = 1_000_000;
    old.key.node = "0".to_string();
    let lines = vec![line("a", 0, "x"), line("b", 0, "x"), line("b", 1, "y"), old];
    let mut view = view(sample(lines));
    assert_eq!(names(&view), ["a", "b", "z-old"]);
    press(&mut view, "s");
    assert_eq!(names(&view), ["b", "a", "z-old"]);
    press(&mut view, "s");
    assert_eq!(names(&view)[0], "z-old");
    press(&mut view, "s");
    assert_eq!(names(&view), ["z-old", "a", "b"]);
    press(&mut view, "s");
    assert_eq!(names(&view), ["a", "b", "z-old"]);
}

#[test]
fn a_filter_is_asked_of_the_node_and_one_with_a_star_is_not() {
    let mut view = view(sample(vec![line("ci/a", 0, "ana"), line("db/b", 0, "eva")]));
    press(&mut view, "/ci/x\x08\n");
    assert_eq!(view.wish().names, Selection::Prefix("ci/".to_string()));
    press(&mut view, "\x1b");
    assert_eq!(view.wish().names, Selection::All);
    press(&mut view, "/*ev\n");
    assert_eq!((names(&view), view.wish().names), (vec!["db/b"], Selection::All));
    press(&mut view, "/abc\x1b");
    assert_eq!(view.filter, "*ev", "Esc leaves what was there");
    press(&mut view, "/");
    view.on_key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
    press(&mut view, &"x".repeat(2 * LONGEST_FILTER));
    press(&mut view, "\n");
    assert_eq!(view.filter.len(), LONGEST_FILTER);
}

#[test]
fn esc_and_a_key_that_come_in_one_piece_are_two_keys() {
    let mut view = view(sample(vec![line("ci/a", 0, "ana"), line("db/b", 0, "eva")]));
    press(&mut view, "?");
    assert_eq!(view.on_key(KeyEvent::new(KeyCode::Char('/'), KeyModifiers::ALT)), None);
    press(&mut view, "db\n");
    assert_eq!((&view.page, view.filter.as_str()), (&Page::Overview, "db"));
    let quits = view.on_key(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT));
    assert_eq!(quits, Some(Effect::Quit));
}

#[test]
fn a_long_list_is_seen_part_by_part() {
    let mut first = sample(vec![line("a", 0, "x"), line("b", 0, "x")]);
    first.locks.more = true;
    let mut view = view(first);
    assert!(view.rows[1].is_cut && !view.rows[0].is_cut);
    press(&mut view, ">");
    assert_eq!(view.wish().after.map(|key| key.name).as_deref(), Some("b"));
    answer(&mut view, sample(vec![line("c", 0, "x")]));
    assert_eq!((names(&view), view.part()), (vec!["c"], 2));
    press(&mut view, ">");
    assert_eq!(view.part(), 2, "it was the last one");
    press(&mut view, "<<");
    assert_eq!((view.part(), view.wish().after), (1, None));
}

#[test]
fn an_answer_to_an_earlier_question_is_not_shown() {
    let mut view = view(sample(vec![line("a", 0, "x")]));
    let wish = view.wish();
    press(&mut view, "/b\n");
    view.on_answer(Answer { wish, result: Ok(sample(vec![line("c", 0, "x")])) });
    assert_eq!(names(&view), ["a"]);
    assert!(view.trouble.is_none());
}

#[test]
fn the_next_member_is_asked_also_if_the_chosen_one_is_lost() {
    let mut view = view(sample(Vec::new()));
    press(&mut view, "n");
    assert_eq!(view.wish().nodes, ["10.0.0.2:7800", "10.0.0.1:7800"]);
    // The chosen one does not answer, the first one does.
    answer(&mut view, sample(Vec::new()));
    assert_eq!(view.missing(), Some("10.0.0.2:7800"));
    press(&mut view, "nn");
    assert_eq!(view.wish().nodes, ["10.0.0.1:7800"]);
}

#[test]
fn ctrl_c_and_q_quit_from_everywhere() {
    for keys in ["", "/", "?", "m", "v"] {
        let mut view = view(sample(vec![line("a", 0, "x")]));
        press(&mut view, keys);
        let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(view.on_key(ctrl_c), Some(Effect::Quit));
    }
    let mut view = view(sample(Vec::new()));
    assert_eq!(view.on_key(KeyCode::Char('q').into()), Some(Effect::Quit));
}

#[test]
fn only_holds_that_were_seen_are_ended_and_only_after_a_yes() {
    let mut view = view(sample(vec![line("a", 0, "ana"), line("a", 1, "eva"), line("b", 1, "x")]));
    let fences = vec![12_884_901_888];
    let meant = Meant { name: "a".to_string(), fences, whose: "ana".to_string() };
    press(&mut view, "F");
    assert_eq!(view.input, Some(Input::Force(meant.clone())));
    press(&mut view, "q");
    assert_eq!(view.input, None, "that was a no, and not the end");
    press(&mut view, "F");
    assert_eq!(view.on_key(KeyCode::Char('y').into()), Some(Effect::Force(meant)));
    press(&mut view, "F");
    assert_eq!(view.input, None, "one after the other");
    assert_eq!(view.news(), Some("the last one has not ended yet"));
    view.on_forced("done".to_string());
    assert_eq!(view.news(), Some("done"));
    press(&mut view, "jF");
    assert_eq!((&view.input, view.news()), (&None, Some("nobody holds 'b'")));
}

#[test]
fn time_without_an_answer_is_counted_but_not_while_it_is_paused() {
    let mut view = view(sample(Vec::new()));
    let second = Duration::from_secs(1);
    view.on_time(second);
    press(&mut view, "p");
    view.on_time(second);
    assert_eq!((view.silence, view.wish().is_paused), (second, true));
    press(&mut view, "p");
    let why = || ClientError::Silent { address: "x".to_string() };
    view.on_answer(Answer { wish: view.wish(), result: Err(why()) });
    assert_eq!(view.trouble, Some(why().to_string()));
    view.on_answer(Answer { wish: view.wish(), result: Ok(sample(Vec::new())) });
    assert_eq!((view.silence, view.news().is_some()), (Duration::ZERO, true));
    view.on_time(NEWS_TIME);
    assert_eq!(view.news(), None);
}
