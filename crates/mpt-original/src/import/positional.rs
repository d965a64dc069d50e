//! The form of earlier binary packages, as printed in the papers: one value per line, identified by its place.
//!
//! Lines that begin with `;` separate blocks of values, and `#` begins a comment. A file of an
//! interface has blocks for the commands, the client and the tunnel; one of connections has the
//! number of connections, and then for each a separate block and one for each of its paths:
//!
//! ```text
//! ;;;;;;;;;; connections          ;;;;;;;;;; path
//! 1         # how many            eth1
//! ;;;;;;;;;; connection           4
//! name                            192.0.2.1
//! ...                             ...
//! ```
//!
//! The result is the document that the other form would have given, with its names.

use super::blocks::{Block, blocks, span};
use super::document::{Document, Entry, Form, Section};
use super::keys;
use super::problem::Problem;

/// The least number of values of a connection's block. A path has fewer.
const CONNECTION: usize = keys::POSITIONAL_CONNECTION.len() - 1;

/// Reads the file: an interface, or each of the connections in it.
///
/// # Errors
///
/// Where there are more or fewer values than there are places for.
pub(super) fn read(name: &str, text: &str) -> Result<Vec<Document>, Vec<Problem>> {
    let blocks = blocks(text);
    let found = match &blocks[..] {
        [count, connections @ ..] if count.len() == 1 => read_connections(count, connections)?,
        _ => vec![read_interface(&blocks)?],
    };
    let document = |sections| Document {
        form: Form::Positional,
        ..Document::new(name.to_owned(), text.to_owned(), sections)
    };
    Ok(found.into_iter().map(document).collect())
}

fn read_interface(blocks: &[Block]) -> Result<Vec<Section>, Vec<Problem>> {
    let [general, client, tunnels @ ..] = blocks else {
        let span = blocks.first().map_or(0..0, span);
        return Err(vec![
            Problem::new("the blocks of an interface are missing", span).label("too few").help(
                "the positional format has blocks for the commands, the client and the tunnel, each \
                 beginning with `;`",
            ),
        ]);
    };
    let what = "of the commands";
    let mut sections = vec![section("general", general, &keys::POSITIONAL_GENERAL, 0, what)?];
    sections.push(section("general", client, &keys::POSITIONAL_CLIENT, 0, "of the client")?);
    for (number, tunnel) in tunnels.iter().enumerate() {
        let name = format!("tun_{number}");
        sections.push(section(&name, tunnel, &keys::POSITIONAL_TUNNEL, 1, "of the tunnel")?);
    }
    Ok(sections)
}

fn read_connections(count: &Block, blocks: &[Block]) -> Result<Vec<Vec<Section>>, Vec<Problem>> {
    let mut connections: Vec<Vec<Section>> = Vec::new();
    for block in blocks {
        let name = "connection";
        if block.len() >= CONNECTION {
            let keys = &keys::POSITIONAL_CONNECTION;
            connections.push(vec![section(name, block, keys, 1, "of the connection")?]);
        } else if let Some(connection) = connections.last_mut() {
            let name = format!("path_{}", connection.len() - 1);
            connection.push(section(&name, block, &keys::POSITIONAL_PATH, 1, "of the path")?);
        } else {
            // Too short, which is reported.
            let keys = &keys::POSITIONAL_CONNECTION;
            connections.push(vec![section(name, block, keys, 1, "of the connection")?]);
        }
    }
    let mut declared = section("connection", count, &["connection_count"], 0, "")?;
    match connections.first_mut().and_then(|connection| connection.first_mut()) {
        Some(first) => first.entries.append(&mut declared.entries),
        None => {
            return Err(vec![
                Problem::new("no connection follows", declared.span)
                    .label("this block says how many there are")
                    .help("give each connection a block, and each of its paths, each beginning with `;`"),
            ]);
        }
    }
    Ok(connections)
}

/// The values of a block under their keys, of which the last `optional` may be missing.
fn section(
    name: &str,
    block: &Block,
    keys: &[&str],
    optional: usize,
    what: &str,
) -> Result<Section, Vec<Problem>> {
    let (least, most) = (keys.len() - optional, keys.len());
    if !(least..=most).contains(&block.len()) {
        let places = keys.join(", ");
        let title = format!("a block {what} with {} values", block.len());
        let label = if least == most {
            format!("at most {most} are possible")
        } else {
            format!("{least} or {most} are possible")
        };
        let help = format!("the values are, in this order and each on a line by itself: {places}");
        return Err(vec![Problem::new(title, span(block)).label(label).help(help)]);
    }
    let entries = block.iter().zip(keys).map(|(value, key)| Entry {
        key: (*key).to_owned(),
        value: value.text.clone(),
        line: value.line,
        span: value.span.clone(),
        remark: None,
    });
    Ok(Section { name: name.to_owned(), span: span(block), entries: entries.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::blocks::is_positional;

    #[test]
    fn values_get_the_keys_of_their_places() {
        let text = ";;;; a\n 60456  # port\n1\n\n0\n;\n;\n15\n;\ntun0\n1440 # bytes\n10.0.0.1/24\n";
        assert!(is_positional(text));
        let [document] = &read("f", text).unwrap()[..] else { panic!("one document") };
        let shown: Vec<_> = document
            .sections
            .iter()
            .flat_map(|section| section.entries.iter().map(|entry| (&*section.name, entry)))
            .map(|(section, entry)| format!("{section} {} {entry}", entry.line))
            .collect();
        assert_eq!(
            shown,
            [
                "general 2 cmdport_local = 60456",
                "general 3 interface_num = 1",
                "general 5 accept_remote = 0",
                "general 8 cmd_timeout = 15",
                "tun_0 10 name = tun0",
                "tun_0 11 mtu = 1440",
                "tun_0 12 ipv4_addr = 10.0.0.1/24",
            ]
        );
        let first = &document.sections[0].entries[0];
        assert_eq!(&text[first.span.clone()], "60456");
    }
}
