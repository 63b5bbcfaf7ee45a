//! docs/reference/schedulers.md, from the attributes as the schedulers declare them.

use blkmq::elevator::SchedulerKind;

use super::{cell, code, section, table};

const INTRO: &str = "\
Schedulers by the name that `queue.scheduler` and `--scheduler` take, and their attributes: files \
of queue/iosched/, keys of `[queue]` in a scenario (`--set queue.fifo_batch=1`). An attribute that \
the scheduler does not have is an error; a value out of range is clamped as the kernel clamps it, \
and the report lists it (`adjusted_options`).";

pub(super) fn page() -> String {
    let mut text = format!("# Schedulers\n\n{INTRO}\n\n");
    for (single, path) in [(false, "blk-mq"), (true, "single-queue path")] {
        for kind in SchedulerKind::of_path(single) {
            let attributes = kind.attributes();
            let name = kind.name();
            if attributes.is_empty() {
                section(&mut text, &format!("{name} ({path})"), "No attributes.");
                continue;
            }
            section(&mut text, &format!("{name} ({path})"), "");
            let rows = attributes.into_iter().map(|(name, about)| {
                let (default, meaning) = about.split_once(": ").unwrap_or(("", about));
                [code(name), cell(default), cell(meaning)]
            });
            text.push_str(&table(["Attribute", "Unit, default", "Meaning"], rows));
        }
    }
    text
}
