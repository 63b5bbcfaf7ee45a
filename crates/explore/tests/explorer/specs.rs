//! The folders below `specs/` are complete and consistent; `blksim check` compares them with TLC.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use blkmq::path::Label;
use blkmq::schedule::Schedule;
use blkmq::schedule::labels::{LabelTable, Row};
use explore::tlc::{Expectations, Expected, Mutants, Variant, corruptions};
use explore::{bfq_merge, cfq_merge, dispatch, restart};

const SPECS: [&str; 5] = ["BfqMerge", "CfqMerge", "Dispatch", "QueueLife", "Restart"];
/// Specifications of step machines: their actions are labels. The others describe code under one
/// lock.
const STEPPED: [&str; 2] = ["Dispatch", "Restart"];

fn folder(spec: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../specs")
        .join(spec)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn expectations(spec: &str) -> Expectations {
    Expectations::parse(&text(&folder(spec).join("expect.toml"))).expect("a right file")
}

/// Names of the files in a folder.
fn files(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// The actions that `Next` names.
fn actions(spec: &str) -> BTreeSet<String> {
    actions_of(spec, &format!("{spec}.tla"), "Next")
}

/// The actions that a definition of a module names.
fn actions_of(spec: &str, module: &str, next: &str) -> BTreeSet<String> {
    let module = text(&folder(spec).join(module));
    let next = module.split_once(&format!("\n{next} ==\n"));
    let next = next.expect("its definition").1;
    let next = next.split_once("\n\n").expect("an end").0;
    let names = next.lines().map(|line| {
        let line = line.trim().trim_start_matches("\\/ ");
        let action = line.split_once(" : ").map_or(line, |(_, action)| action);
        action.split('(').next().unwrap_or(action).to_owned()
    });
    names.collect()
}

/// Names in one column of `labels.txt` of a specification; empty for one without that file.
fn named_in_labels(spec: &str, column: fn(&Row) -> Option<&'static str>) -> BTreeSet<String> {
    let table: &LabelTable = match spec {
        "Dispatch" => &dispatch::TABLE,
        "Restart" => &restart::TABLE,
        _ => return BTreeSet::new(),
    };
    let names = Label::all().filter_map(|label| column(table.row(label)));
    names.map(str::to_owned).collect()
}

#[test]
fn every_configuration_is_promised_and_there() {
    for spec in SPECS {
        let promised = expectations(spec).variant;
        let promised: BTreeSet<String> =
            promised.iter().map(|v| format!("{}.cfg", v.name)).collect();
        assert_eq!(promised, files(&folder(spec).join("variants")), "{spec}");
        assert!(files(&folder(spec)).contains("README.md"), "{spec}");
    }
    let all: BTreeSet<String> = SPECS.map(str::to_owned).into();
    assert_eq!(all, files(&folder("")), "a specification without test");
}

/// Every action of the specification is taken in some quick variant; README or `labels.txt` names
/// its label.
#[test]
fn no_action_is_vacuous_or_unexplained() {
    for spec in SPECS {
        let quick = expectations(spec).variant.into_iter().filter(|v| v.quick);
        let (by_labels, others): (Vec<_>, Vec<_>) =
            quick.partition(|variant| variant.name.ends_with("-labels"));
        let taken = |variants: Vec<Variant>| -> BTreeSet<String> {
            variants.into_iter().flat_map(|v| v.taken).collect()
        };
        assert_eq!(taken(others), actions(spec), "{spec}");
        if STEPPED.contains(&spec) {
            let labels = actions_of(spec, &format!("{spec}Labels.tla"), "LabelsNext");
            assert_eq!(taken(by_labels), labels, "{spec}Labels");
        }
        let readme = text(&folder(spec).join("README.md"));
        let begun = named_in_labels(spec, |row| row.action);
        for action in actions(spec) {
            let explained = readme.contains(&format!("| {action} |")) || begun.contains(&action);
            assert!(explained, "{spec}: {action}");
        }
    }
}

/// Operations of the merge protocol that a README names exist.
#[test]
fn operations_of_actions_exist() {
    let source = "../crates/blkmq/src/elevator/bfq/protocol.rs";
    let source = text(&folder("").join(source));
    let readme = text(&folder("BfqMerge").join("README.md"));
    let rows = readme.lines().filter(|line| line.starts_with("| "));
    let named = rows.filter_map(|row| row.split('`').nth(1));
    let named: BTreeSet<&str> = named.collect();
    assert_eq!(named.len(), 14, "{named:?}");
    for operation in named {
        let name = operation.split('(').next().unwrap_or(operation);
        assert!(source.contains(&format!("pub fn {name}(")), "no {name}");
    }
}

/// Steps that the trace module of the runs has.
fn steps_of_runs(spec: &str) -> BTreeSet<String> {
    let module = text(&folder(spec).join(format!("Trace{spec}Labels.tla")));
    let named = ["name = \"", "action = \""].map(|mark| module.split(mark).skip(1));
    let named = named.into_iter().flatten();
    let names = named.filter_map(|rest| rest.split('"').next());
    names.map(str::to_owned).collect()
}

/// README and `labels.txt` explain every step of the trace module of the runs, and no other; the
/// actions of `labels.txt` are those of the specification.
#[test]
fn steps_of_runs_are_explained() {
    for spec in STEPPED {
        let mut explained = named_in_labels(spec, |row| row.step);
        for (names, _) in table_of(spec, "| Step | Label |") {
            explained.extend(names);
        }
        assert_eq!(explained, steps_of_runs(spec), "{spec}");
        let begun = named_in_labels(spec, |row| row.action);
        assert!(begun.is_subset(&actions(spec)), "{spec}: {begun:?}");
    }
}

/// Rows of README's table with this head: names of the first column, labels of the second.
fn table_of(spec: &str, head: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let readme = text(&folder(spec).join("README.md"));
    let rows = readme.lines().skip_while(|line| !line.starts_with(head));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    let words = |cell: &str| -> Vec<String> {
        let words = cell.split([' ', ',', '(', ')', ':']);
        words.filter(|w| !w.is_empty()).map(str::to_owned).collect()
    };
    let rows = rows.map(|row| {
        let (names, labels) = row.trim_matches('|').split_once('|').expect("two cells");
        let mut labels = words(labels);
        labels.retain(|word| word.contains('.'));
        (words(names), labels)
    });
    rows.collect()
}

#[test]
fn labels_in_readmes_exist() {
    for spec in STEPPED {
        let tables = ["| Action |", "| Step | Label |"].map(|head| table_of(spec, head));
        let labels = tables.iter().flatten().flat_map(|(_, labels)| labels);
        let labels: Vec<&String> = labels.collect();
        assert!(labels.len() > 10, "{spec}: {labels:?}");
        for label in labels {
            assert!(Label::by_name(label).is_some(), "{spec}: no label {label}");
        }
    }
}

/// A mutant edits one place; the variant that must find it holds without the edit.
#[test]
fn mutants_fit() {
    for spec in SPECS {
        let Expectations {
            variant: variants,
            trace: traces,
            ..
        } = expectations(spec);
        let mutants = Mutants::parse(&text(&folder(spec).join("mutants.toml"))).expect("right");
        assert!(mutants.mutant.len() >= 5, "{spec}: too few mutants");
        for edit in &mutants.mutant {
            let right = text(&folder(spec).join(&edit.file));
            let wrong = edit.apply(&right).expect("one place");
            assert_ne!(right, wrong, "{}", edit.name);
            if edit.file.starts_with("Trace") {
                let known = traces.iter().any(|trace| trace.file == edit.variant);
                assert!(known && edit.expect == "corruptions", "{}", edit.name);
                continue;
            }
            let variant = variants.iter().find(|v| v.name == edit.variant);
            let variant = variant.unwrap_or_else(|| panic!("{}: no such variant", edit.name));
            assert_eq!(variant.verdict, Expected::Holds, "{}", edit.name);
        }
    }
}

/// Recorded behaviours belong to existing variants and have their constants, and each can be
/// corrupted at nearly every step.
#[test]
fn traces_are_of_known_variants() {
    for spec in SPECS {
        let expectations = expectations(spec);
        let listed: BTreeSet<String> = expectations.trace.iter().map(|t| t.file.clone()).collect();
        assert_eq!(listed, files(&folder(spec).join("traces")), "{spec}");
        for recorded in &expectations.trace {
            let file = folder(spec).join("traces").join(&recorded.file);
            let schedule = Schedule::parse(&text(&file)).expect("a schedule");
            let variant = folder(spec)
                .join("variants")
                .join(format!("{}.cfg", schedule.variant));
            // A run of the simulator has the constants of its scenario.
            let of_runs = [
                restart::RUNS,
                dispatch::RUNS,
                cfq_merge::RUNS,
                bfq_merge::RUNS,
            ];
            let a_run = of_runs.contains(&schedule.spec.as_str());
            let constants = if a_run {
                let settings = schedule.settings.iter();
                settings.map(|(n, v)| format!("{n} = {v}\n")).collect()
            } else {
                text(&variant)
            };
            for (name, value) in &schedule.settings {
                let line = constants
                    .lines()
                    .find(|l| l.trim().starts_with(&format!("{name} = ")));
                let line = line.unwrap_or_else(|| panic!("{}: {name}", recorded.file));
                let given = line.split_once(" = ").map(|(_, given)| given.trim());
                let same = given == Some(value.as_str()) || name == "Requests";
                assert!(same, "{}: {name} is {value}, but {line}", recorded.file);
            }
            let corrupted: BTreeSet<usize> = corruptions(&schedule.steps)
                .iter()
                .map(|c| c.step)
                .collect();
            assert!(
                corrupted.len() + 2 >= schedule.steps.len(),
                "{}",
                recorded.file
            );
        }
    }
}
