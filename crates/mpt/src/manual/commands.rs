//! A page for each command, in section 1.
//!
//! What a command's help says after its options becomes sections of their own: examples, exit codes,
//! and path updates.

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::page::{MANUAL, SOURCE, VERSION, section, verbatim};

/// Headings in the help and the sections that they become (man-pages(7)).
const SECTIONS: [(&str, &str); 3] =
    [("Examples:", "EXAMPLES"), ("Example:", "EXAMPLES"), ("Exit codes:", "EXIT STATUS")];

/// The pages of `command` and all below it, by the names of their files.
pub(super) fn pages(mut command: Command) -> anyhow::Result<Vec<(String, String)>> {
    command.build();
    let mut pages = Vec::new();
    add(&command, &mut pages)?;
    Ok(pages)
}

fn add(command: &Command, pages: &mut Vec<(String, String)>) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    pages.push((format!("{name}.1"), page(command)?));
    command
        .get_subcommands()
        .filter(|below| !below.is_hide_set() && below.get_name() != "help")
        .try_for_each(|below| add(below, pages))
}

fn page(command: &Command) -> anyhow::Result<String> {
    let man = Man::new(command.clone()).date(VERSION).source(SOURCE).manual(MANUAL);
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    // As the help has it: the values of options, and what is required, in the order in which it is typed.
    let mut synopsis = Roff::new();
    section(&mut synopsis, "SYNOPSIS");
    let usage = command.clone().render_usage().to_string();
    synopsis.text([roman(usage.trim_start_matches("Usage: "))]);
    synopsis.to_writer(&mut text)?;
    man.render_description_section(&mut text)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut text)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let mut rest = Roff::new();
    add_help(&mut rest, command);
    if command.get_display_name().is_none_or(|name| name == "mpt") {
        section(&mut rest, "FILES");
        let files = [
            "/etc/mpt/mpt.toml          configuration of the service, see mpt.toml(5)",
            "/run/mpt/control.sock      control socket, unless the configuration names another",
        ];
        verbatim(&mut rest, files);
        section(&mut rest, "SEE ALSO");
        rest.text([roman("mpt.toml(5), systemctl(1), /usr/share/doc/mpt")]);
    } else {
        section(&mut rest, "SEE ALSO");
        rest.text([roman("mpt(1), mpt.toml(5)")]);
    }
    rest.to_writer(&mut text)?;
    Ok(String::from_utf8(text)?)
}

/// What stands after the options of the help.
fn add_help(page: &mut Roff, command: &Command) {
    let help = command.get_after_long_help().or(command.get_after_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let mut path_updates = Vec::new();
    for paragraph in help.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        let known = SECTIONS.iter().find_map(|(heading, title)| {
            Some((*title, paragraph.trim_start().strip_prefix(heading)?))
        });
        match known {
            Some((title, text)) => {
                section(page, title);
                verbatim(page, text.trim_matches('\n').lines().map(str::trim_start));
            }
            None => path_updates.push(paragraph),
        }
    }
    if !path_updates.is_empty() {
        section(page, "NOTES");
    }
    for paragraph in path_updates {
        page.text([roman(paragraph.split_whitespace().collect::<Vec<_>>().join(" "))]);
        page.control("PP", []);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_all_its_options_and_commands() {
        let mut command = crate::command_line();
        let pages = pages(command.clone()).unwrap();
        command.build();
        let mut open = vec![&command];
        let mut seen = 0;
        while let Some(command) = open.pop() {
            let name = command.get_display_name().unwrap_or(command.get_name());
            let file = format!("{name}.1");
            let (_, text) = pages.iter().find(|(page, _)| *page == file).expect(&file);
            // As troff would print it.
            let text = text.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "");
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                if let Some(long) = argument.get_long() {
                    assert!(text.contains(&format!("--{long}")), "{file}: --{long}");
                }
                for value in argument.get_value_names().unwrap_or_default() {
                    let takes = argument.get_action().takes_values();
                    assert!(!takes || text.contains(value.as_str()), "{file}: {value}");
                }
            }
            let told = |below: &&Command| !below.is_hide_set() && below.get_name() != "help";
            for below in command.get_subcommands().filter(told) {
                assert!(text.contains(&format!("{name}-{}", below.get_name())), "{file}: {below}");
                open.push(below);
            }
            assert_eq!(text.contains(".SH EXAMPLES"), help(command).contains("Example"), "{file}");
            assert_eq!(
                text.contains(".SH \"EXIT STATUS\""),
                help(command).contains("Exit"),
                "{file}"
            );
            seen += 1;
        }
        assert_eq!(seen, pages.len());
        assert!(seen > 5);
    }

    #[test]
    fn examples_stay_as_they_are_typed() {
        let pages = pages(crate::command_line()).unwrap();
        let (_, text) = pages.iter().find(|(page, _)| page == "mpt-path-down.1").unwrap();
        assert!(text.contains("\nmpt path down fibre            if only"), "{text}");
    }

    #[test]
    fn a_synopsis_is_what_is_typed() {
        let pages = pages(crate::command_line()).unwrap();
        let (_, text) = pages.iter().find(|(page, _)| page == "mpt-path-weight.1").unwrap();
        let typed = "mpt path weight [OPTIONS] --to <WEIGHT> [CONNECTION] <PATH>";
        assert!(text.replace("\\-", "-").contains(&format!("\n.SH SYNOPSIS\n{typed}\n")), "{text}");
    }

    fn help(command: &Command) -> String {
        command.get_after_help().map(ToString::to_string).unwrap_or_default()
    }
}
