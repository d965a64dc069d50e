//! The file that keeps what was counted while the daemon does not run.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use toml::{Table, Value};

use super::meters::Key;

/// What was counted of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) key: Key,
    /// When its month began, in seconds since 1970; `None` if that was not known.
    pub(super) begin: Option<u64>,
    /// Bytes since then.
    pub(super) used: u64,
}

/// What the file says; nothing if there is none.
///
/// # Errors
///
/// It cannot be read, or says something else.
pub(super) fn read(file: &Path) -> Result<Vec<Count>> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    };
    let table: Table = text.parse().with_context(|| format!("cannot read {}", file.display()))?;
    let Some(Value::Array(counts)) = table.get("count") else { return Ok(Vec::new()) };
    let counts: Option<Vec<Count>> =
        counts.iter().map(|count| of_table(count.as_table()?)).collect();
    let Some(counts) = counts else { bail!("{} is not as mpt writes it", file.display()) };
    Ok(counts)
}

/// Writes the file at once: it has its old content or all of the new one. Its folder is made if it is missing.
///
/// # Errors
///
/// The kernel's.
pub(super) fn write(file: &Path, counts: &[Count]) -> Result<()> {
    let what = || format!("cannot write {}", file.display());
    let folder = file.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).with_context(what)?;
    let mut text = String::from("# How much of quotas is used, in bytes. Written by mpt.\n");
    for count in counts {
        text += &format!("\n[[count]]\n{}", to_table(count));
    }
    let mut new = tempfile::Builder::new().prefix(".").tempfile_in(folder).with_context(what)?;
    new.write_all(text.as_bytes()).with_context(what)?;
    new.as_file().sync_all().with_context(what)?;
    new.persist(file).map_err(|error| error.error).with_context(what)?;
    File::open(folder).and_then(|folder| folder.sync_all()).with_context(what)
}

fn to_table(count: &Count) -> Table {
    let number = |number: u64| Value::from(i64::try_from(number).unwrap_or(i64::MAX));
    let mut table = Table::new();
    match &count.key {
        Key::Interface { connection, interface } => {
            table.insert("connection".to_owned(), connection.as_str().into());
            table.insert("interface".to_owned(), interface.as_str().into());
        }
        Key::Path { connection, path } => {
            table.insert("connection".to_owned(), connection.as_str().into());
            table.insert("path".to_owned(), path.as_str().into());
        }
    }
    if let Some(begin) = count.begin {
        table.insert("month_began".to_owned(), number(begin));
    }
    table.insert("used".to_owned(), number(count.used));
    table
}

fn of_table(table: &Table) -> Option<Count> {
    let text = |key: &str| table.get(key).and_then(Value::as_str).map(str::to_owned);
    let number = |key: &str| table.get(key)?.as_integer()?.try_into().ok();
    let connection = text("connection")?;
    let key = match text("interface") {
        Some(interface) => Key::Interface { connection, interface },
        None => Key::Path { connection, path: text("path")? },
    };
    let begin = if table.contains_key("month_began") { Some(number("month_began")?) } else { None };
    Some(Count { key, begin, used: number("used")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_they_were_written() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("state/mpt0.toml");
        assert_eq!(read(&file).unwrap(), []);
        let path = Key::Path { connection: "a \"b\"".into(), path: "x = [1]".into() };
        let interface = Key::Interface { connection: "server".into(), interface: "wwan0".into() };
        let counts = [
            Count { key: interface, begin: Some(1 << 31), used: 1 << 40 },
            Count { key: path, begin: None, used: 7 },
        ];
        write(&file, &counts[1..]).unwrap();
        write(&file, &counts).unwrap();
        assert_eq!(read(&file).unwrap(), counts);
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "nothing is left");
    }

    #[test]
    fn what_somebody_else_has_written_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("mpt0.toml");
        for text in [
            "[[count]]\nused = 5\n",
            "[[count]]\nconnection = 'x'\nused = 5\n",
            "[[count]]\nconnection = 'x'\npath = 'x'\nused = -5\n",
            "[[count]]\nconnection = 'x'\npath = 'x'\nused = 5\nmonth_began = 'May'\n",
            "count = [5]",
            "\0",
        ] {
            fs::write(&file, text).unwrap();
            let error = format!("{:#}", read(&file).unwrap_err());
            assert!(error.contains("mpt0.toml"), "{error}");
        }
        fs::write(&file, b"\xff").unwrap();
        assert!(read(&file).is_err());
        let below_a_file = file.join("mpt0.toml");
        assert!(read(&below_a_file).is_err() && write(&below_a_file, &[]).is_err());
    }
}
