//! The authentication of the original's commands.

use super::ledger::{Given, Ledger};
use super::table::Table;
use super::value::Value as _;
use crate::auth::Key;

/// Sets the authentication of commands, and returns whether it has a key.
pub(super) fn auth(table: &mut Table, ledger: &mut Ledger) -> bool {
    let kind = ledger.number("auth_type", 0, 0..=255, "it is one byte");
    let key = ledger.text("auth_key");
    if kind.value == 2 {
        return by_key(table, ledger, &kind, key);
    }
    let word = if kind.value == 1 { "random" } else { "none" };
    let mut note = kind.note;
    if kind.value > 2 {
        ledger.refuse(&note, "there is no such type; the original then accepts everything");
        note += " (accepts everything)";
    }
    table.set_as("auth", &format!("{{ type = \"{word}\" }}"), &note);
    if let Some(key) = key {
        ledger.comment(format!("{}: not used with that `auth_type`", key.note));
    }
    false
}

fn by_key(
    table: &mut Table,
    ledger: &mut Ledger,
    kind: &Given<i64>,
    key: Option<Given<String>>,
) -> bool {
    let fault = match &key {
        None => "without one the original uses its built-in key, which is public".to_owned(),
        Some(key) => {
            let text = first(&key.value);
            match Key::new(&text) {
                Ok(_) => {
                    let cut = key.value.len() > text.len();
                    let cut = if cut { " (the first 32 characters count)" } else { "" };
                    let value = format!("{{ type = \"sha256\", key = {} }}", text.toml());
                    table.set_as("auth", &value, &format!("{}; {}{cut}", kind.note, key.note));
                    table.holds_key = true;
                    return true;
                }
                Err(fault) => fault.to_string(),
            }
        }
    };
    // The peer's commands are refused with either kind. A cookie prevents blind forgery.
    let instead = "until both ends have a key: auth = { type = \"sha256\", key = \"...\" }";
    table.set_as("auth", "{ type = \"random\" }", instead);
    let why = format!("the key is not imported: {fault}. Give both ends the same private key");
    ledger.refuse(&kind.note, &why);
    if let Some(key) = key {
        ledger.comment(format!("{}: not imported", key.note));
    }
    false
}

/// The characters of a key that count.
fn first(key: &str) -> String {
    key.chars().take(Key::LEN).collect()
}
