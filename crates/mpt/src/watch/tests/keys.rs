//! What keys do.

use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::super::list::{Place, What};
use super::super::model::Model;
use super::super::ui::{Flow, Mode, Ui};
use super::scene;

#[test]
fn q_and_control_c_quit_from_everywhere_but_a_filter_being_typed() {
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    let model = scene::busy();
    for before in [&[][..], &[KeyCode::Tab]] {
        let mut ui = ui(&model, before);
        assert_eq!(ui.handle(KeyCode::Char('q').into(), &model), Flow::Quit);
    }
    for before in [&[][..], &[KeyCode::Tab], &[KeyCode::Char('/')], &[KeyCode::Char('?')]] {
        let mut ui = ui(&model, before);
        assert_eq!(ui.handle(control_c, &model), Flow::Quit);
    }
    let mut ui = ui(&model, &[KeyCode::Char('/')]);
    assert_eq!(ui.handle(KeyCode::Char('q').into(), &model), Flow::Continue);
    assert_eq!(ui.filter(), "q");
}

#[test]
fn escape_goes_back_step_by_step() {
    let model = scene::busy();
    let mut ui = ui(&model, &[]);
    for key in [KeyCode::Char('/'), KeyCode::Char('r'), KeyCode::Enter, KeyCode::Enter] {
        ui.handle(key.into(), &model);
    }
    ui.handle(KeyCode::Char('?').into(), &model);
    assert!(matches!(ui.mode(), Mode::Help { .. }));
    ui.handle(KeyCode::Esc.into(), &model);
    assert!(matches!(ui.mode(), Mode::Focus { .. }), "out of the help into the focus");
    ui.handle(KeyCode::Esc.into(), &model);
    assert_eq!((ui.mode(), ui.filter()), (&Mode::List, "r"));
    ui.handle(KeyCode::Esc.into(), &model);
    assert_eq!((ui.mode(), ui.filter()), (&Mode::List, ""));
    assert_eq!(ui.handle(KeyCode::Esc.into(), &model), Flow::Quit);
}

#[test]
fn a_filter_can_be_corrected_kept_and_undone() {
    let model = scene::busy();
    let mut ui = ui(&model, &[]);
    let mut press = |key: KeyCode| {
        ui.handle(key.into(), &model);
        (ui.filter().to_owned(), ui.rows(&model).len())
    };
    let (_, all) = press(KeyCode::Char('/'));
    press(KeyCode::Char('R'));
    press(KeyCode::Char('a'));
    assert_eq!(press(KeyCode::Char('x')), ("Rax".into(), 0));
    let (text, found) = press(KeyCode::Backspace);
    assert_eq!(text, "Ra");
    // The tunnel, the connection, its order, the path `radio` and why that is down.
    assert_eq!(found, 5);
    press(KeyCode::Enter);
    press(KeyCode::Char('/'));
    press(KeyCode::Char('x'));
    assert_eq!(press(KeyCode::Esc), ("Ra".into(), 5));
    assert_eq!(press(KeyCode::Esc), (String::new(), all));
}

#[test]
fn a_filter_finds_connections_with_all_their_paths() {
    let model = scene::busy();
    for (text, paths) in [
        ("server", 3),
        ("10.9.0.7", 1),
        ("VEHICLE", 1),
        ("standby", 1),
        ("eth0", 1),
        ("198.51", 1),
        ("mpt0", 4),
        ("nothing", 0),
    ] {
        let mut ui = ui(&model, &[KeyCode::Char('/')]);
        for letter in text.chars() {
            ui.handle(KeyCode::Char(letter).into(), &model);
        }
        let rows = ui.rows(&model);
        let found = rows.iter().filter(|row| matches!(row.what, What::Path(..))).count();
        assert_eq!(found, paths, "{text}");
        assert_eq!(rows.is_empty(), paths == 0, "{text}");
    }
}

#[test]
fn walking_selects_what_can_be_selected() {
    let model = scene::busy();
    let mut ui = ui(&model, &[]);
    let mut press = |key: KeyCode| {
        ui.handle(key.into(), &model);
        selected(&ui, &model)
    };
    assert_eq!(press(KeyCode::Up), (None, None), "there is nothing above the tunnel");
    assert_eq!(press(KeyCode::Char('j')), some("server", None));
    assert_eq!(press(KeyCode::Down), some("server", Some("fibre")));
    assert_eq!(press(KeyCode::Char('k')), some("server", None));
    assert_eq!(press(KeyCode::PageDown), some("vehicle-10.9.0.7", Some("path-1")));
    assert_eq!(press(KeyCode::Home), (None, None));
    assert_eq!(press(KeyCode::Char('G')), some("vehicle-10.9.0.7", Some("path-1")));
    assert_eq!(press(KeyCode::Char('c')), some("vehicle-10.9.0.7", None), "its path is left out");
}

#[test]
fn what_is_selected_stays_so_when_the_list_changes() {
    let mut model = scene::busy();
    let ui = ui(&model, &[KeyCode::End]);
    model.status.tunnels[0].connections.remove(0);
    model.rates[0].connections.remove(0);
    assert_eq!(selected(&ui, &model), some("vehicle-10.9.0.7", Some("path-1")));
    model.status.tunnels[0].connections[0].paths.clear();
    assert_eq!(selected(&ui, &model), some("vehicle-10.9.0.7", None));
    model.status.tunnels[0].connections.clear();
    assert_eq!(selected(&ui, &model), (None, None));
    model.status.tunnels.clear();
    assert_eq!(ui.selected(&ui.rows(&model)), None);
}

#[test]
fn tab_goes_from_connection_to_connection() {
    let model = scene::busy();
    let mut ui = ui(&model, &[]);
    let mut focused = |key: KeyCode| {
        ui.handle(key.into(), &model);
        let Mode::Focus { connection, top, .. } = ui.mode() else { panic!("{:?}", ui.mode()) };
        (connection.clone(), *top)
    };
    assert_eq!(focused(KeyCode::Enter), ("server".into(), 0));
    assert_eq!(focused(KeyCode::PageDown), ("server".into(), 10));
    assert_eq!(focused(KeyCode::Up), ("server".into(), 9));
    assert_eq!(focused(KeyCode::Tab), ("vehicle-10.9.0.7".into(), 0));
    assert_eq!(focused(KeyCode::Tab), ("server".into(), 0));
}

#[test]
fn pausing_and_resuming() {
    let model = scene::busy();
    assert!(!ui(&model, &[]).is_paused());
    assert!(ui(&model, &[KeyCode::Char('p')]).is_paused());
    assert!(!ui(&model, &[KeyCode::Char('p'), KeyCode::Char('p')]).is_paused());
}

#[test]
fn a_list_is_scrolled_no_further_than_it_must_be() {
    let mut ui = Ui::new(Duration::from_secs(1), false);
    assert_eq!(ui.scroll_list(Some(0), 100, 20), 0);
    assert_eq!(ui.scroll_list(Some(16), 100, 20), 0);
    assert_eq!(ui.scroll_list(Some(17), 100, 20), 1);
    assert_eq!(ui.scroll_list(Some(99), 100, 20), 80);
    assert_eq!(ui.scroll_list(Some(83), 100, 20), 80);
    assert_eq!(ui.scroll_list(Some(82), 100, 20), 79);
    assert_eq!(ui.scroll_list(Some(5), 6, 20), 0);
    assert_eq!(ui.scroll_list(None, 0, 0), 0);
}

fn ui(model: &Model, keys: &[KeyCode]) -> Ui {
    let mut ui = Ui::new(Duration::from_secs(1), false);
    for &key in keys {
        ui.handle(key.into(), model);
    }
    ui
}

/// The connection and the path that are selected.
fn selected(ui: &Ui, model: &Model) -> (Option<String>, Option<String>) {
    let rows = ui.rows(model);
    let Place { connection, path, .. } = rows[ui.selected(&rows).unwrap()].place().unwrap();
    (connection, path)
}

fn some(connection: &str, path: Option<&str>) -> (Option<String>, Option<String>) {
    (Some(connection.into()), path.map(Into::into))
}
