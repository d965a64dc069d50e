//! The word that was meant where there is none like the one that was written.

/// Longer words are no slip, and comparing takes the product of the lengths.
const LONGEST: usize = 64;

/// The word that is like `wrong`, but for a third of its letters at the most.
pub(super) fn closest<'w>(
    wrong: &str,
    words: impl IntoIterator<Item = &'w str>,
) -> Option<&'w str> {
    if wrong.len() > LONGEST {
        return None;
    }
    let wrong = wrong.to_lowercase().replace('-', "_");
    let distance = |word: &str| strsim::damerau_levenshtein(&wrong, &word.to_lowercase());
    words
        .into_iter()
        .map(|word| (distance(word), word))
        .filter(|&(distance, word)| distance <= (word.len() / 3).max(1))
        .min()
        .map(|(_, word)| word)
}

/// ``: did you mean `word`?`` if there is such a word, else nothing.
pub(super) fn did_you_mean<'w>(wrong: &str, words: impl IntoIterator<Item = &'w str>) -> String {
    closest(wrong, words).map_or(String::new(), |word| format!(": did you mean `{word}`?"))
}

/// ``; did you mean `word`?`` after a list of what there is, if one of the words is like it, else nothing.
pub fn meant<'w>(wrong: &str, words: impl IntoIterator<Item = &'w str>) -> String {
    closest(wrong, words).map_or(String::new(), |word| format!("; did you mean `{word}`?"))
}

/// What `toml` says of a word that it does not know, with the one that was meant of those that it lists:
/// ``unknown field `wieght`, expected one of `weight`, `name` ``.
pub(super) fn with_meant(message: &str) -> String {
    let message = message.trim_end();
    let unknown = ["unknown field `", "unknown variant `"];
    let Some((_, rest)) = unknown.iter().find_map(|start| message.split_once(start)) else {
        return message.to_owned();
    };
    let Some((wrong, listed)) = rest.split_once('`') else { return message.to_owned() };
    let words = listed.split('`').skip(1).step_by(2);
    match closest(wrong, words) {
        Some(word) => format!("{message}; did you mean `{word}`?"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_was_meant_is_the_closest_one() {
        for (message, end) in [
            (
                "unknown field `wieghts`, expected one of `weights`, `profile`",
                "; did you mean `weights`?",
            ),
            (
                "at x: unknown field `Rate-mbps`, expected `rate_mbps` or `delay_ms`",
                "; did you mean `rate_mbps`?",
            ),
            ("unknown variant `tpc`, expected one of `tcp`, `udp`", "; did you mean `tcp`?"),
            ("unknown field `zebra`, expected one of `weights`, `profile`", ""),
            ("unknown field `zebra`, there are no fields", ""),
            ("missing field `title`", ""),
        ] {
            assert_eq!(with_meant(message), format!("{message}{end}"));
        }
        assert_eq!(
            did_you_mean("goodput_mpbs", ["goodput_mbps", "p50_ms"]),
            ": did you mean `goodput_mbps`?"
        );
        assert_eq!(did_you_mean("x", ["goodput_mbps"]), "");
    }
}
