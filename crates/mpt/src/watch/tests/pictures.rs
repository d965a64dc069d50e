//! What is drawn on terminals of several sizes.

use std::time::Duration;

use mpt_control::QuotaState;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::style::Color;

use super::super::draw::draw;
use super::super::model::{Lost, Model};
use super::super::ui::Ui;
use super::scene;

#[test]
fn a_busy_tunnel_on_three_sizes() {
    insta::assert_snapshot!("busy_80x24", picture(&scene::busy(), &[], (80, 24)));
    insta::assert_snapshot!("busy_60x20", picture(&scene::busy(), &[], (60, 20)));
    insta::assert_snapshot!("busy_140x40", picture(&scene::busy(), &[], (140, 40)));
}

#[test]
fn a_connection_in_focus() {
    let keys = [KeyCode::Tab];
    insta::assert_snapshot!("focus_80x24", picture(&scene::busy(), &keys, (80, 24)));
    insta::assert_snapshot!("focus_140x40", picture(&scene::busy(), &keys, (140, 40)));
    let end = [KeyCode::Tab, KeyCode::End];
    insta::assert_snapshot!("focus_end_60x20", picture(&scene::busy(), &end, (60, 20)));
}

#[test]
fn quotas_are_shown_in_both_views() {
    let mut model = scene::busy();
    model.status.tunnels[0].connections[0].paths[2].quota = Some(QuotaState {
        bytes: 50_000_000_000,
        used: 12_500_000_000,
        seconds_left: Some(86_400),
        used_up: false,
        ..QuotaState::default()
    });
    let words = "12.5 GB of 50.0 GB used (25.0 %), 1 d 0 h left";
    let all = picture(&model, &[], (100, 40));
    assert!(all.contains(&format!("    satellite quota: {words}")), "{all}");
    let focus = picture(&model, &[KeyCode::Tab], (140, 40));
    assert!(focus.contains("quota: 12.5 GB of 50.0 GB used (25.0 %)"), "{focus}");
}

#[test]
fn thirty_connections_are_scrolled() {
    insta::assert_snapshot!("many_80x24", picture(&scene::many(30), &[], (80, 24)));
    let down = [KeyCode::PageDown, KeyCode::PageDown, KeyCode::Char('j')];
    insta::assert_snapshot!("many_below_80x24", picture(&scene::many(30), &down, (80, 24)));
    let end = [KeyCode::Char('c'), KeyCode::Char('G')];
    insta::assert_snapshot!("many_brief_60x20", picture(&scene::many(30), &end, (60, 20)));
}

#[test]
fn a_filter_being_typed() {
    let keys = "/down".chars().map(KeyCode::Char).collect::<Vec<_>>();
    insta::assert_snapshot!("filter_80x24", picture(&scene::many(30), &keys, (80, 24)));
}

#[test]
fn a_daemon_that_is_gone() {
    let mut model = scene::busy();
    let reason = "no daemon listens on /run/mpt/control.sock: start one with `mpt run FILE`";
    model.lose(Lost { reason: reason.into(), seconds: 12.3 });
    for (name, size) in [("gone_80x24", (80, 24)), ("gone_60x20", (60, 20))] {
        insta::assert_snapshot!(name, picture(&model, &[], size));
    }
}

#[test]
fn help_and_pause() {
    let keys = [KeyCode::Char('p'), KeyCode::Char('?')];
    insta::assert_snapshot!("help_80x24", picture(&scene::busy(), &keys, (80, 24)));
}

#[test]
fn no_size_is_too_small() {
    for keys in [&[][..], &[KeyCode::Tab], &[KeyCode::Char('?')], &[KeyCode::Char('/')]] {
        for width in 0..45 {
            for height in 0..9 {
                drawn(&scene::busy(), keys, (width, height), true);
            }
        }
    }
}

#[test]
fn of_a_thousand_connections_only_the_visible_are_drawn() {
    let model = scene::many(1000);
    let text = picture(&model, &[KeyCode::Char('G')], (80, 24));
    assert!(text.contains("site-1000 ") && !text.contains("site-1 "), "{text}");
    assert!(text.lines().any(|line| line.starts_with("\"> only")), "{text}");
}

#[test]
fn colour_only_where_it_is_welcome() {
    let colours = |colour| {
        let backend = drawn(&scene::busy(), &[], (80, 24), colour);
        let cells = backend.buffer().content();
        let all: Vec<Color> = cells.iter().map(|cell| cell.fg).collect();
        [Color::Green, Color::Cyan, Color::Red].map(|shade| all.contains(&shade))
    };
    assert_eq!(colours(true), [true; 3]);
    assert_eq!(colours(false), [false; 3]);
}

fn picture(model: &Model, keys: &[KeyCode], size: (u16, u16)) -> String {
    drawn(model, keys, size, false).to_string()
}

/// What is on a terminal of that size after those keys.
fn drawn(
    model: &Model,
    keys: &[KeyCode],
    (width, height): (u16, u16),
    colour: bool,
) -> TestBackend {
    let mut ui = Ui::new(Duration::from_secs(1), colour);
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model, &mut ui)).unwrap();
    for &key in keys {
        ui.handle(KeyEvent::from(key), model);
        terminal.draw(|frame| draw(frame, model, &mut ui)).unwrap();
    }
    terminal.backend().clone()
}
