//! What the person in front of the terminal chose to see, and the keys to choose by.

use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::list::{Place, Row, rows};
use super::model::Model;

/// Rows that a page key moves by.
const PAGE: usize = 10;

/// The keys with what they do, for the help.
pub(super) const KEYS: [(&str, &str); 9] = [
    ("j k, arrows", "select the next or previous row; scroll if there is nothing to select"),
    ("PgDn PgUp", "ten rows further or back"),
    ("g G", "to the beginning or the end"),
    ("Enter, Tab", "show details of the connection; Tab again: of the next one"),
    ("/", "show only rows that contain a text: a name, a state, an address"),
    ("c", "connections only, without their paths; again: with them"),
    ("p", "pause; again: resume"),
    ("Esc", "one step back; at the top level quit"),
    ("q, Ctrl-C", "quit"),
];

/// What is chosen.
#[derive(Clone, Debug)]
pub(super) struct Ui {
    /// How often the daemon is asked.
    pub(super) interval: Duration,
    /// Whether colours are welcome.
    pub(super) colour: bool,
    /// The row that is selected; the first one if there is no such row.
    selected: Option<Place>,
    /// How far the list is scrolled, in rows. [`Ui::scroll_list`] keeps the selected row in sight.
    top: usize,
    filter: String,
    mode: Mode,
    paused: bool,
    brief: bool,
}

/// What the keys are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// To walk through the list.
    List,
    /// To type the filter. What it was before is kept in case it is not meant.
    Filter { before: String },
    /// Details of one connection, scrolled by this many lines.
    Focus { tunnel: String, connection: String, top: usize },
    /// To read about the keys; what was before comes back.
    Help { before: Box<Self> },
}

/// The next action of the watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// It does.
    Continue,
    /// It does not.
    Quit,
}

/// Where a key leads in a list.
#[derive(Clone, Copy)]
enum Step {
    Down(usize),
    Up(usize),
    First,
    Last,
}

impl Ui {
    /// Everything is shown, the first row is selected.
    pub(super) fn new(interval: Duration, colour: bool) -> Self {
        Self {
            interval,
            colour,
            selected: None,
            top: 0,
            filter: String::new(),
            mode: Mode::List,
            paused: false,
            brief: false,
        }
    }

    /// What the keys are for.
    pub(super) fn mode(&self) -> &Mode {
        &self.mode
    }

    /// Whether what comes from the daemon is not to be shown.
    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    /// The text that rows must contain; empty if they need not.
    pub(super) fn filter(&self) -> &str {
        &self.filter
    }

    /// The rows that are wanted.
    pub(super) fn rows<'m>(&self, model: &'m Model) -> Vec<Row<'m>> {
        rows(model, &self.filter, self.brief)
    }

    /// Which of `rows` is selected; none if none can be.
    pub(super) fn selected(&self, rows: &[Row<'_>]) -> Option<usize> {
        let found = self.selected.as_ref().and_then(|place| {
            let exact = rows.iter().position(|row| row.is_at(place));
            // What is gone or filtered out leaves its connection, or the beginning.
            let parent = Place { path: None, ..place.clone() };
            exact.or_else(|| rows.iter().position(|row| row.is_at(&parent)))
        });
        found.or_else(|| rows.iter().position(Row::is_selectable))
    }

    /// Scrolls a list in which row `selected` of `count` is to be seen in `height` rows, and returns
    /// the first row that is.
    pub(super) fn scroll_list(
        &mut self,
        selected: Option<usize>,
        count: usize,
        height: usize,
    ) -> usize {
        if let Some(selected) = selected {
            // A few rows around it show what it belongs to.
            let margin = (height / 5).min(3);
            let latest = selected.saturating_sub(margin);
            let earliest = (selected + margin + 1).saturating_sub(height);
            self.top = self.top.min(latest).max(earliest);
        }
        self.top = self.top.min(count.saturating_sub(height));
        self.top
    }

    /// Keeps the text about a connection, of so many lines, from being scrolled out of `height`, and
    /// returns the first line to be seen.
    pub(super) fn scroll_focus(&mut self, lines: usize, height: usize) -> usize {
        let Mode::Focus { top, .. } = &mut self.mode else { return 0 };
        *top = (*top).min(lines.saturating_sub(height));
        *top
    }

    /// Does what `key` is for.
    pub(super) fn handle(&mut self, key: KeyEvent, model: &Model) -> Flow {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return Flow::Quit;
        }
        match std::mem::replace(&mut self.mode, Mode::List) {
            Mode::Filter { before } => self.handle_typing(key, before),
            Mode::Help { before } => self.mode = *before,
            mode @ (Mode::List | Mode::Focus { .. }) => {
                self.mode = mode;
                return self.handle_command(key, model);
            }
        }
        Flow::Continue
    }

    fn handle_typing(&mut self, key: KeyEvent, before: String) {
        let plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        if key.code == KeyCode::Enter {
            return;
        }
        if key.code == KeyCode::Esc {
            self.filter = before;
            return;
        }
        if let KeyCode::Char(letter) = key.code
            && plain
        {
            self.filter.push(letter);
        } else if key.code == KeyCode::Backspace {
            self.filter.pop();
        }
        self.mode = Mode::Filter { before };
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys do nothing")]
    fn handle_command(&mut self, key: KeyEvent, model: &Model) -> Flow {
        match key.code {
            KeyCode::Char('q') => return Flow::Quit,
            KeyCode::Esc => return self.step_back(),
            KeyCode::Char('j') | KeyCode::Down => self.walk(Step::Down(1), model),
            KeyCode::Char('k') | KeyCode::Up => self.walk(Step::Up(1), model),
            KeyCode::PageDown => self.walk(Step::Down(PAGE), model),
            KeyCode::PageUp => self.walk(Step::Up(PAGE), model),
            KeyCode::Char('g') | KeyCode::Home => self.walk(Step::First, model),
            KeyCode::Char('G') | KeyCode::End => self.walk(Step::Last, model),
            KeyCode::Enter if self.mode == Mode::List => self.focus(model),
            KeyCode::Tab => self.focus(model),
            KeyCode::Char('/') => {
                self.mode = Mode::Filter { before: self.filter.clone() };
            }
            KeyCode::Char('c') => self.brief = !self.brief,
            KeyCode::Char('p') => self.paused = !self.paused,
            KeyCode::Char('?' | 'h') => {
                let before = Box::new(std::mem::replace(&mut self.mode, Mode::List));
                self.mode = Mode::Help { before };
            }
            _ => {}
        }
        Flow::Continue
    }

    /// Out of the focus, then out of the filter, then out.
    fn step_back(&mut self) -> Flow {
        if self.mode != Mode::List {
            self.mode = Mode::List;
        } else if !self.filter.is_empty() {
            self.filter.clear();
        } else {
            return Flow::Quit;
        }
        Flow::Continue
    }

    fn walk(&mut self, step: Step, model: &Model) {
        if let Mode::Focus { top, .. } = &mut self.mode {
            *top = match step {
                Step::Down(lines) => top.saturating_add(lines),
                Step::Up(lines) => top.saturating_sub(lines),
                Step::First => 0,
                Step::Last => usize::MAX,
            };
            return;
        }
        let rows = self.rows(model);
        let places: Vec<usize> =
            (0..rows.len()).filter(|&place| rows[place].is_selectable()).collect();
        let Some(at) = self.selected(&rows) else { return };
        let at = places.partition_point(|&place| place < at);
        let last = places.len().saturating_sub(1);
        let to = match step {
            Step::Down(rows) => (at + rows).min(last),
            Step::Up(rows) => at.saturating_sub(rows),
            Step::First => 0,
            Step::Last => last,
        };
        self.selected = rows[places[to]].place();
        if to == 0 {
            self.top = 0;
        }
    }

    /// Looks at the connection that is selected or that the path selected belongs to; from there,
    /// at the next one.
    fn focus(&mut self, model: &Model) {
        let rows = self.rows(model);
        let connections: Vec<Place> = rows
            .iter()
            .filter_map(Row::place)
            .filter(|place| place.connection.is_some() && place.path.is_none())
            .collect();
        let at = self.selected(&rows).and_then(|at| rows[at].place());
        let Some(at) = at else { return };
        let same = |place: &Place| {
            place.tunnel == at.tunnel
                && (at.connection.is_none() || place.connection == at.connection)
        };
        let found = connections.iter().position(same);
        let next = match self.mode {
            Mode::Focus { .. } => found.map_or(0, |found| (found + 1) % connections.len()),
            Mode::List | Mode::Filter { .. } | Mode::Help { .. } => found.unwrap_or(0),
        };
        let Some(place) = connections.get(next) else { return };
        self.selected = Some(place.clone());
        self.mode = Mode::Focus {
            tunnel: place.tunnel.clone(),
            connection: place.connection.clone().unwrap_or_default(),
            top: 0,
        };
    }
}
