//! Words that must not come back: names for which the kernel or the field has a word of its own,
//! and prose that is hard to read.
//!
//! Names are looked for in all code. Prose is looked for in comments and strings of those paths
//! that are free of it: a path joins [`PLAIN`] once its text has been rewritten.

use super::Finding;
use super::source::{File, Tree, has_word};

/// Identifiers, and the names in their place. Labels keep the names that traces have.
const NAMES: &[(&str, &str)] = &[
    ("Aside", "NotState"),
    ("Crowd", "WeightedShare"),
    ("Facts", "SchedulerInfo or DriverInfo"),
    ("FairStep", "MayQueue"),
    ("Gauge", "Counter"),
    ("GaugeForm", "CounterForm"),
    ("GaugeUnit", "CounterUnit"),
    ("Happened", "MergeEvent"),
    ("InsertInHand", "OwnedByInsert"),
    ("Lane", "CpuDriver"),
    ("LineEntry", "WaitEntry"),
    ("LineRetry", "WaitRetry"),
    ("LonePlug", "BioPlug"),
    ("Meddle", "Override"),
    ("Meddler", "DeviceWrapper"),
    ("Roused", "Woken"),
    ("RunInHand", "OwnedByRun"),
    ("SpareRequest", "CachedRequest"),
    ("TagsInHand", "OwnedTags"),
    ("Telling", "EventLog"),
    ("ToldBios", "BioUpdates"),
    ("ToldEnds", "CompletedHook"),
    ("ToldValue", "CounterValue"),
    ("ToldVerdict", "SchedulerEvents"),
    ("foretold", "replayed_has_work"),
    ("hears_of_end", "calls_completed"),
    ("held_up", "insert_stopped"),
    ("in_hand", "owned"),
    ("is_raised", "is_wr"),
    ("meddle", "apply_override"),
    ("rouse", "wake"),
    ("take_visits", "take_touched"),
    ("visit_elevator", "touch_elevator"),
    ("withdraw", "force_remove"),
    ("without_flush", "strip_flush"),
];

/// Words of prose, and their replacements.
const PROSE: &[(&str, &str)] = &[
    ("whoever", "name the path, task or reader"),
    ("told", "reports, shows or records, with its subject"),
    ("tells", "reports, shows or records"),
    ("hears of", "is called for, or sees"),
    ("anew", "again, or another"),
    ("in vain", "without effect, or how it failed"),
    ("stands", "is, means or depends on"),
    ("behind", "after, or below for a lock"),
];

/// Paths whose comments, strings and pages are free of such prose.
const PLAIN: &[&str] = &[
    "README.md",
    "CHANGELOG.md",
    "benches/",
    "crates/",
    "docs/SUMMARY.md",
    "docs/decisions/",
    "docs/explanation/",
    "docs/findings/",
    "docs/glossary.md",
    "docs/guides/",
    "docs/internals/",
    "docs/reference/commands.md",
    "docs/reference/devices.md",
    "docs/reference/fio.md",
    "docs/reference/formats.md",
    "docs/reference/json.md",
    "docs/reference/scenario.md",
    "docs/reference/schedulers.md",
    "docs/results/learned.md",
    "docs/start/",
    "specs/",
    "traces/",
];

/// No identifier has a name that was given up.
pub(super) fn old_names_stay_away(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.sources() {
        forbid(file, &file.code, NAMES, found);
    }
}

/// Text that has been rewritten stays plain.
pub(super) fn prose_stays_plain(tree: &Tree, found: &mut Vec<Finding>) {
    // Tests of the rules have what they refuse.
    let own = |file: &File| file.path == "crates/xtask/src/tidy/tests.rs";
    let plain = |file: &&File| !own(file) && PLAIN.iter().any(|path| file.path.starts_with(path));
    for file in tree.files().filter(plain) {
        match file.is_a("rs") {
            true => forbid(file, &prose_of(file), PROSE, found),
            false if file.is_a("md") => forbid(file, &prose_of_page(file), PROSE, found),
            false => {}
        }
    }
}

fn forbid(file: &File, text: &str, words: &[(&str, &str)], found: &mut Vec<Finding>) {
    for (index, line) in text.lines().enumerate() {
        for (word, instead) in words {
            if has_word(line, word) {
                found.push(Finding {
                    path: file.path.clone(),
                    line: index + 1,
                    text: format!("`{word}`: {instead}"),
                });
            }
        }
    }
}

/// Comments and strings of a source, in lower case. A string of one word is a key or a name.
fn prose_of(file: &File) -> String {
    let text = file.text.to_lowercase();
    if text.len() != file.code.len() {
        return text;
    }
    let blanked = text.bytes().zip(file.code.bytes());
    let prose = blanked.map(|(byte, code)| if code == b' ' { byte } else { b' ' });
    let prose = prose.zip(text.bytes());
    let prose: Vec<u8> = prose
        .map(|(byte, original)| if original == b'\n' { original } else { byte })
        .collect();
    let mut prose = String::from_utf8_lossy(&prose).into_owned();
    for (word, _) in PROSE {
        prose = prose.replace(&format!("\"{word}\""), "\"\"");
    }
    prose
}

/// A page without its code spans, in lower case.
fn prose_of_page(file: &File) -> String {
    let text = file.text.to_lowercase();
    let lines = text.lines().map(|line| {
        let parts: Vec<&str> = line.split('`').step_by(2).collect();
        parts.join("`")
    });
    lines.collect::<Vec<_>>().join("\n")
}
