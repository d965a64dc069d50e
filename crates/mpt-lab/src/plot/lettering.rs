//! How much room words take, without asking a font.

/// Height of a line of text, in pixels.
pub(super) const LINE: f64 = 17.0;

/// How much wider bold letters are.
pub(super) const BOLD: f64 = 1.16;

/// About how wide a text is at 12 pixels, on the safe side for the usual sans-serif fonts.
pub(super) fn width(text: &str) -> f64 {
    text.chars().map(letter).sum()
}

fn letter(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' | 'f' | 't'
        | 'r' => 4.3,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 11.0,
        'A'..='Z' | '&' => 8.6,
        '0'..='9' | 'a'..='z' => 7.1,
        _ if letter.is_ascii() => 7.4,
        // Letters of other scripts may be as wide as they are high.
        _ => 12.0,
    }
}

/// `text`, cut so that it fits.
pub(super) fn fit(text: &str, room: f64) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let ellipsis = width("…");
    let mut used = ellipsis;
    let fits = |&next: &char| {
        used += letter(next);
        used <= room
    };
    let cut: String = text.chars().take_while(fits).collect();
    cut.trim_end().to_owned() + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(fit("short", 100.0), "short");
        let cut = fit("a very long text that goes on", 60.0);
        assert!(cut.ends_with('…') && cut.starts_with("a very"), "{cut}");
        assert!(width(&cut) <= 60.0);
        assert!(width("wide") > width("illi"));
    }
}
