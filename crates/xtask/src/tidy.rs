//! House rules that no compiler checks, mostly about things that must be absent.
//!
//! Not a parser: rules look at lines of code with comments, strings and tests blanked out, and are
//! worded so that this is enough. Each rule has a test with a snippet that it must catch. Read
//! next: `source.rs` for the input of a rule, then the rules by subject.

mod absence;
mod circles;
mod docs;
mod layout;
mod prices;
mod schedulers;
mod shape;
mod source;
#[cfg(test)]
mod tests;
mod words;

use std::fmt;

use crate::paths;
use crate::step::{Failure, Outcome, Result};
use source::Tree;

/// A place where a rule is broken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    /// From 1; 0 for the file as a whole.
    line: usize,
    /// The problem, and the remedy.
    text: String,
}

/// A rule adds its findings in the tree.
struct Rule {
    name: &'static str,
    check: fn(&Tree, &mut Vec<Finding>),
}

const RULES: &[Rule] = &[
    Rule {
        name: "pure-blkmq",
        check: absence::blkmq_is_pure,
    },
    Rule {
        name: "memory-order",
        check: absence::one_file_names_memory_orderings,
    },
    Rule {
        name: "only-cli-speaks",
        check: absence::only_cli_speaks,
    },
    Rule {
        name: "only-cli-touches-paths",
        check: absence::only_cli_touches_paths,
    },
    Rule {
        name: "trace-uses-time-only",
        check: absence::trace_knows_only_time,
    },
    Rule {
        name: "plots-see-reports",
        check: absence::plots_see_reports,
    },
    Rule {
        name: "no-stubs",
        check: absence::no_stubs,
    },
    Rule {
        name: "no-unwrap",
        check: absence::no_unwrap,
    },
    Rule {
        name: "lints-have-reasons",
        check: absence::lint_exceptions_have_reasons,
    },
    Rule {
        name: "prices-in-profiles",
        check: prices::prices_are_in_profiles,
    },
    Rule {
        name: "schedulers-in-folders",
        check: schedulers::names_are_in_folders,
    },
    Rule {
        name: "dependencies",
        check: layout::dependencies_point_one_way,
    },
    Rule {
        name: "circles",
        check: circles::modules_form_no_circle,
    },
    Rule {
        name: "crates",
        check: layout::crates_are_those_of_the_house,
    },
    Rule {
        name: "top-level",
        check: layout::top_level_is_short,
    },
    Rule {
        name: "forbid-unsafe",
        check: layout::crate_roots_forbid_unsafe,
    },
    Rule {
        name: "header",
        check: shape::files_open_with_a_header,
    },
    Rule {
        name: "columns",
        check: shape::lines_fit_100_columns,
    },
    Rule {
        name: "file-length",
        check: shape::files_stay_short,
    },
    Rule {
        name: "file-length-median",
        check: shape::half_of_the_files_are_short,
    },
    Rule {
        name: "function-length",
        check: shape::functions_fit_a_screen,
    },
    Rule {
        name: "deviations",
        check: docs::deviations_are_listed,
    },
    Rule {
        name: "links",
        check: docs::links_lead_somewhere,
    },
    Rule {
        name: "contents",
        check: docs::pages_are_in_the_contents,
    },
    Rule {
        name: "readme-lines",
        check: docs::the_readme_stays_short,
    },
    Rule {
        name: "names",
        check: words::old_names_stay_away,
    },
    Rule {
        name: "prose",
        check: words::prose_stays_plain,
    },
    Rule {
        name: "docs-words",
        check: docs::the_book_stays_short,
    },
];

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

/// Check the workspace and print every finding.
pub(crate) fn run() -> Result {
    let tree = Tree::read(&paths::root());
    if tree.sources().count() == 0 {
        return Err(Failure("no Rust source was found".to_owned()));
    }
    let mut broken = 0;
    for rule in RULES {
        let mut findings = Vec::new();
        (rule.check)(&tree, &mut findings);
        findings.sort();
        for finding in &findings {
            println!("{finding} [{}]", rule.name);
        }
        broken += findings.len();
    }
    if broken > 0 {
        return Err(Failure(format!("{broken} places break a house rule")));
    }
    println!(
        "{} rules hold in {} sources",
        RULES.len(),
        tree.sources().count()
    );
    Ok(Outcome::Passed)
}
