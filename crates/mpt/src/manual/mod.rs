//! Manual pages and shell completions, made from the command line's own definition and from the guide.
//!
//! `mpt man` and `mpt completions` print them, so that they are there without the package; `cargo xtask generate`
//! writes them for it. [`commands`] makes a page of each command, [`mod@reference`] the one of the configuration.

mod commands;
mod page;
mod reference;

use anyhow::Result;

/// The document whose settings become mpt.toml(5).
const GUIDE: &str = include_str!("../../../../docs/guide.md");

/// All pages by the names of their files, such as `mpt-status.1`.
///
/// # Errors
///
/// If the guide has not what is expected of it.
pub(crate) fn pages() -> Result<Vec<(String, String)>> {
    let mut pages = commands::pages(crate::command_line())?;
    pages.push(("mpt.toml.5".into(), reference::page(GUIDE)?));
    Ok(pages)
}
