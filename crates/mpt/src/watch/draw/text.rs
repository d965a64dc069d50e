//! Lines of a given width, and what they are shown in.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// How things are shown; without colour only by weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shades {
    colour: bool,
}

impl Shades {
    pub(super) fn new(colour: bool) -> Self {
        Self { colour }
    }

    /// The state of a path or anything else that has one of those words.
    pub(super) fn state(self, word: &str) -> Style {
        match word {
            "up" => self.of(Color::Green),
            "standby" => self.of(Color::Cyan),
            "probing" => self.of(Color::Yellow),
            "off" => Style::new(),
            _ => self.of(Color::Red),
        }
    }

    /// Highlighted text.
    pub(super) fn trouble(self) -> Style {
        self.of(Color::Red)
    }

    /// Names that others belong to.
    pub(super) fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn of(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }
}

/// `text` in exactly `width` columns; what is too long ends in an ellipsis.
pub(super) fn fit(text: &str, width: usize, right: bool) -> String {
    let text = shorten(text, width);
    if right { format!("{text:>width$}") } else { format!("{text:<width$}") }
}

/// `text` in at most `width` columns; what is too long ends in an ellipsis.
pub(super) fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        short.push('…');
    }
    short
}

/// `left` and `right` at the two ends of `width` columns. The right end stays whole; of the left one
/// as many parts as there is room for, the first of them in any case, shortened if need be.
pub(super) fn spread<'t>(left: Vec<Span<'t>>, right: &str, width: usize) -> Line<'t> {
    let right = shorten(right, width);
    let mut room = width.saturating_sub(right.chars().count());
    let mut spans = Vec::new();
    for (place, span) in left.into_iter().enumerate() {
        let wanted = span.content.chars().count();
        // One column stays free between the two ends.
        let there = room.saturating_sub(usize::from(!right.is_empty()));
        if wanted > there && place > 0 {
            break;
        }
        let short = shorten(&span.content, there);
        room -= short.chars().count();
        spans.push(Span::styled(short, span.style));
    }
    spans.push(Span::raw(" ".repeat(room)));
    spans.push(Span::raw(right));
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_takes_the_room_it_is_given() {
        assert_eq!(fit("fibre", 7, false), "fibre  ");
        assert_eq!(fit("12.3", 6, true), "  12.3");
        assert_eq!(fit("a long name", 7, false), "a long…");
        assert_eq!(fit("abc", 1, false), "…");
        assert_eq!(fit("abc", 0, true), "");
    }

    #[test]
    fn the_right_end_stays_and_the_left_one_gives_way() {
        let text = |width| {
            let line = spread(vec!["server".into(), " weighted".into()], "8 Mbit/s", width);
            line.spans.iter().map(|span| span.content.as_ref()).collect::<String>()
        };
        assert_eq!(text(26), "server weighted   8 Mbit/s");
        assert_eq!(text(23), "server         8 Mbit/s");
        assert_eq!(text(14), "serv… 8 Mbit/s");
        assert_eq!(text(5), "8 Mb…");
        assert_eq!(text(0), "");
    }
}
