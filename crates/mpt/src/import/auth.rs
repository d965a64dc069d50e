//! How the commands of the original's protocol are authenticated.

use super::ledger::Ledger;
use super::sheet::Table;
use crate::config::Written as _;

/// The key that is built into the original, as much of it as counts: everybody has it.
const PUBLIC_KEY: &str = "A0A1A2A3A4A5A6A7A8A9AAABACADAEAF";

/// How much of a key counts, in characters.
const KEY_LENGTH: usize = 32;

/// Sets how commands are authenticated, and says whether that is by a key that is not public.
pub(super) fn auth(table: &mut Table, ledger: &mut Ledger) -> bool {
    let kind = ledger.number("auth_type", 0, 0..=255, "it is one byte");
    let key = ledger.text("auth_key");
    if kind.value != 2 {
        let word = if kind.value == 1 { "random" } else { "none" };
        let mut note = kind.note;
        if kind.value > 2 {
            let why = "the original knows none but 0, 1 and 2, and accepts everything then";
            ledger.refuse(&note, why);
            note += " (accepts everything)";
        }
        table.set_as("auth", &format!("{{ type = \"{word}\" }}"), &note);
        if let Some(key) = key {
            ledger.comment(format!("{}: of no use with that `auth_type`", key.note));
        }
        return false;
    }
    let counts: Option<String> =
        key.as_ref().map(|key| key.value.chars().take(KEY_LENGTH).collect());
    let public = counts.as_deref().is_none_or(|counts| counts.eq_ignore_ascii_case(PUBLIC_KEY));
    match (key, counts) {
        (Some(key), Some(counts)) if !public => {
            let mut note = format!("{}; {}", kind.note, key.note);
            if key.value.len() > counts.len() {
                note += " (the first 32 characters count)";
            }
            let value = format!("{{ type = \"sha256\", key = {} }}", counts.written());
            table.set_as("auth", &value, &note);
            true
        }
        (key, _) => {
            let note = key.map_or(kind.note.clone(), |key| format!("{}; {}", kind.note, key.note));
            let why = "not taken over: this is the key that is built into the original, which everybody has. \
                       Write one of your own at both ends: auth = { type = \"sha256\", key = \"...\" }";
            ledger.refuse(&note, why);
            false
        }
    }
}
