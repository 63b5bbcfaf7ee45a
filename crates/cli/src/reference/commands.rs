//! docs/reference/commands.md, from clap's own description of the command line.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command, CommandFactory as _};

use super::{cell, code, section, table};
use crate::args::Args;

pub(super) fn page() -> String {
    let mut root = Args::command();
    root.build();
    let mut text = format!(
        "# Commands\n\n{}.\n\n",
        root.get_about()
            .map(ToString::to_string)
            .unwrap_or_default()
    );
    let verbs: Vec<&Command> = root
        .get_subcommands()
        .filter(|verb| verb.get_name() != "help")
        .collect();
    text.push_str(&table(
        ["Command", "What it does"],
        verbs.iter().map(|verb| {
            let name = verb.get_name();
            [format!("[`{name}`](#{name})"), about(verb)]
        }),
    ));
    text.push_str(
        "All commands take `-q`, `--quiet` (no progress and no notes on standard error, only \
         errors), `-h`, `--help` and `-V`, `--version`.\n\n",
    );
    if let Some(notes) = root.get_after_help() {
        let _ = write!(text, "```text\n{notes}\n```\n\n");
    }
    for verb in verbs {
        of_verb(&mut text, verb);
    }
    text
}

fn about(verb: &Command) -> String {
    verb.get_about()
        .map(|about| cell(&about.to_string()))
        .unwrap_or_default()
}

fn of_verb(text: &mut String, verb: &Command) {
    section(text, verb.get_name(), &format!("{}.", about(verb)));
    let usage = verb.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let _ = write!(text, "```text\n{usage}\n```\n\n");
    let own = |arg: &&Arg| {
        !arg.is_hide_set() && !["help", "version", "quiet"].contains(&arg.get_id().as_str())
    };
    let mut arguments = verb.get_arguments().filter(own).peekable();
    if arguments.peek().is_some() {
        let rows = arguments.map(|arg| [code(&name(arg)), help(arg)]);
        text.push_str(&table(["Argument", "Meaning"], rows));
    }
    if let Some(notes) = verb.get_after_help() {
        let _ = write!(text, "```text\n{notes}\n```\n\n");
    }
}

/// The usage of an argument: `-o, --output DIR`, `--json[=FILE]`, `SCENARIO`.
fn name(arg: &Arg) -> String {
    let values: Vec<String> = match arg.get_action().takes_values() {
        true => arg
            .get_value_names()
            .unwrap_or_default()
            .iter()
            .map(ToString::to_string)
            .collect(),
        false => Vec::new(),
    };
    let values = values.join(" ");
    let Some(long) = arg.get_long() else {
        return values;
    };
    let short = arg.get_short().map(|short| format!("-{short}, "));
    let value = match values.is_empty() {
        true => String::new(),
        false if arg.is_require_equals_set() => format!("[={values}]"),
        false => format!(" {values}"),
    };
    format!("{}--{long}{value}", short.unwrap_or_default())
}

fn help(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let mut text = cell(help.replace("\n\n", ". ").trim_end_matches('.'));
    let defaults: Vec<String> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    if !defaults.is_empty() && arg.get_action().takes_values() {
        let _ = write!(text, "; default {}", code(&defaults.join(",")));
    }
    if let Some(aliases) = arg.get_visible_aliases().filter(|names| !names.is_empty()) {
        let _ = write!(text, "; also --{}", aliases.join(", --"));
    }
    if matches!(arg.get_action(), ArgAction::Append) && arg.get_long().is_some() {
        text.push_str("; may be repeated");
    }
    text
}
