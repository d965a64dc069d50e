//! Masks keys in what is shown of a file.
//!
//! A key is written as the setting that is made of it, and nowhere else. This includes keys with a misspelt
//! name, and lines that a report shows for another problem.

use std::net::IpAddr;

use super::keys::closest;
use super::{blocks, keys};

/// Shown in place of a secret value.
pub(super) const HIDDEN: &str = "(not shown)";

/// Whether the value of a key is secret. A misspelt name counts.
pub(super) fn is_secret(key: &str) -> bool {
    let key = key.trim().to_ascii_lowercase().replace([' ', '-'], "_");
    let known = keys::all();
    if known.contains(&&*key) {
        return key == keys::SECRET;
    }
    match closest(&key, known) {
        Some(meant) => meant == keys::SECRET,
        None => ["key", "auth", "secret", "passw"].iter().any(|part| key.contains(part)),
    }
}

/// The text of a file with keys masked, of the same length.
pub(super) fn masked(text: &str) -> String {
    if blocks::is_positional(text) { masked_values(text) } else { masked_settings(text) }
}

/// `key = value`, of which a `\` or nothing behind the `=` moves the value to the next line.
fn masked_settings(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut continues = false;
    for line in text.split_inclusive('\n') {
        let begun = line.trim_start_matches('\u{feff}').trim_start();
        if continues && !begun.starts_with('[') {
            shown += &stars(line);
            continues = begun.trim_end().ends_with('\\');
            continue;
        }
        let end = begun.find('=').or_else(|| begun.find([' ', '\t', ':', ';', '#']));
        let (key, value) = begun.split_at(end.unwrap_or(begun.trim_end().len()));
        if is_secret(key) {
            shown += &line[..line.len() - value.len()];
            shown += &stars(value);
            let written = value.trim_start_matches('=').trim();
            continues = written.is_empty() || written.ends_with('\\');
        } else {
            shown += line;
            continues = false;
        }
    }
    shown
}

/// The positional form, which a report shows if there are too many or too few values. Then any value may be the
/// key, except a number or an address.
fn masked_values(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (value, comment) = line.split_at(line.find('#').unwrap_or(line.len()));
        let is_separator = value.trim_start().starts_with(';');
        shown += &if is_separator || is_harmless(value) { value.to_owned() } else { stars(value) };
        shown += comment;
    }
    shown
}

/// A number of at most the digits of a port, or an address with or without a length.
fn is_harmless(value: &str) -> bool {
    let value = value.trim();
    let address = value.split('/').next().unwrap_or_default();
    let is_number = value.len() <= 5 && value.bytes().all(|byte| byte.is_ascii_digit());
    is_number || address.parse::<IpAddr>().is_ok()
}

/// As many stars as there are bytes, but for white space and what separates.
fn stars(text: &str) -> String {
    let star = |c: char| match c {
        ' ' | '\t' | '\r' | '\n' | '=' | '\\' => c.to_string(),
        c => "*".repeat(c.len_utf8()),
    };
    text.chars().map(star).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_keys_are_secret() {
        for key in
            ["auth_key", "AUTH_KEY", "auth_kye", "auth-key", "auth key", "authkey", "psk_key"]
        {
            assert!(is_secret(key), "{key}");
        }
        for key in ["auth_type", "auth_typ", "keepalive_time", "keepalive", "name", "weight_out"] {
            assert!(!is_secret(key), "{key}");
        }
    }

    #[test]
    fn masking_keeps_the_length_of_lines() {
        for (text, shown) in [
            ("name = a\nauth_key = \"sä\" ; x\n", "name = a\nauth_key = ***** * *\n"),
            ("auth_key sesame", "auth_key ******"),
            (
                "\u{feff} auth_kye=\\\nsesame\nname = b\n",
                "\u{feff} auth_kye=\\\n******\nname = b\n",
            ),
            ("auth_key =\nsesame\n[path_0]\n", "auth_key =\n******\n[path_0]\n"),
            ("auth_key =\n[path_0]\n", "auth_key =\n[path_0]\n"),
            (";\n0 # auth type\nsesame # key\n", ";\n0 # auth type\n****** # key\n"),
            (
                ";\n10.0.0.1/24\n2001:db8::1\n65050\n123456\n",
                ";\n10.0.0.1/24\n2001:db8::1\n65050\n******\n",
            ),
        ] {
            let masked = masked(text);
            assert_eq!(masked, shown);
            assert_eq!(masked.len(), text.len());
        }
    }
}
