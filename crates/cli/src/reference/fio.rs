//! docs/reference/fio.md, from the table by which job files are read.

use trace::fio::{Known, Treatment, known_options, t_io_uring};

use super::{cell, code, section, table};

/// The grammar, and the settings of every job here.
const GRAMMAR: &str = "\
`blksim run FILE.fio`, `blksim run -- --name=... --rw=...` and the `[[job]]` tables of a scenario \
take the options of fio 3.33. An option is **modelled**; or **ignored**, since it cannot change \
what the block layer sees, and listed at the end of the report; or **refused** with the reason, \
since a run without it would answer another question. An option that another one leaves without \
effect (`rwmixread` with `rw=read`) is accepted and listed; a contradiction that fio settles in \
silence (`direct=1` with `buffered=1`) is an error.

Job files are fio's: `[name]` begins a job, `[global]` changes the defaults of the sections after \
it, `;` and `#` begin a comment; `include` and `$` are refused. On a command line the options \
before the first `--name` are global, and `-option`, `--option=value` and `--option value` are \
the same.

Sizes are `4k`, `4kb`, `1m`, `0x1000`. As in fio, with the default `kb_base=1024`, `k` is 1024 and \
`ki` is 1000. Times are us, ms, s, m, h, d. Devices stand in for files: the region of a job must \
lie within its device.";

pub(super) fn page() -> String {
    let all: Vec<Known> = known_options().collect();
    let count = |of: fn(&Treatment) -> bool| all.iter().filter(|k| of(&k.treatment)).count();
    let modelled = |t: &Treatment| matches!(t, Treatment::Value(_) | Treatment::Flag(_));
    let mut text = format!(
        "# fio options\n\n{} options are modelled, {} ignored, {} refused.\n\n{GRAMMAR}\n\n",
        count(modelled),
        count(|t| matches!(t, Treatment::Ignored(_))),
        count(|t| matches!(t, Treatment::Refused(_))),
    );
    section(
        &mut text,
        "Modelled",
        "Other names of an option are in brackets. A switch may be given without a value.",
    );
    let rows = all.iter().filter_map(|known| match known.treatment {
        Treatment::Value(meaning) => Some([names(*known), cell(meaning)]),
        Treatment::Flag(meaning) => Some([names(*known), format!("switch: {}", cell(meaning))]),
        Treatment::Ignored(_) | Treatment::Refused(_) => None,
    });
    text.push_str(&table(["Option", "Meaning, unit, default"], rows));
    section(&mut text, "Ignored", "Accepted, and listed in the report.");
    let why = |known: &Known| match known.treatment {
        Treatment::Ignored(why) => Some(why),
        Treatment::Value(_) | Treatment::Flag(_) | Treatment::Refused(_) => None,
    };
    text.push_str(&by_reason(&all, "Ignored because", why));
    section(&mut text, "Refused", "An error with this reason.");
    let why = |known: &Known| match known.treatment {
        Treatment::Refused(why) => Some(why),
        Treatment::Value(_) | Treatment::Flag(_) | Treatment::Ignored(_) => None,
    };
    text.push_str(&by_reason(&all, "Refused because", why));
    let others: Vec<String> = trace::fio::OTHER_BUSINESS.iter().map(|o| code(o)).collect();
    text.push_str(&format!(
        "Refused on a command line, since fio then does something else than its jobs: {}.\n\n",
        others.join(", ")
    ));
    of_t_io_uring(&mut text);
    text
}

/// Names of an option: `rw` (`readwrite`).
fn names(known: Known) -> String {
    let others: Vec<String> = known.names().skip(1).map(code).collect();
    match others.is_empty() {
        true => code(known.name),
        false => format!("{} ({})", code(known.name), others.join(", ")),
    }
}

/// A row for each reason, in the order of the table.
fn by_reason(all: &[Known], head: &str, why: impl Fn(&Known) -> Option<&'static str>) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for known in all {
        let Some(reason) = why(known) else { continue };
        match reasons.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, options)) => options.push(names(*known)),
            None => reasons.push((reason, vec![names(*known)])),
        }
    }
    let rows = reasons
        .into_iter()
        .map(|(reason, options)| [options.join(", "), cell(reason)]);
    table(["Option", head], rows)
}

/// The text about fio's small benchmark.
const T_IO_URING: &str = "\
fio's small benchmark prepares a batch of I/Os, submits it and waits in one io_uring_enter(2). Its \
command line follows `--`, as fio's does; in a scenario it is a `[[job]]` with `ioengine = \
\"t/io_uring\"` and the options of the second column:

```sh
blksim run --device nvme,poll_queues=4 -- t/io_uring -d128 -b512 -s32 -c32 -p1 -n4 -r1 /dev/nvme0n1
```

A call returns at once if one more batch fits into the depth, else it waits for `-c` completions. \
As in the program itself, `-s` and `-c` that are large against the depth (`-p0 -d128 -s96 -c128`) \
wait for more I/Os than are in flight, and the run stalls. Random positions are independent draws \
from all blocks but the last two. Each thread gets at most 16 of the files. A job may also have";

fn of_t_io_uring(text: &mut String) {
    let beside: Vec<String> = t_io_uring::BESIDE
        .iter()
        .map(|option| code(option))
        .collect();
    let paragraphs = format!(
        "{T_IO_URING} {}; fio's other options are an error.",
        beside.join(", ")
    );
    section(text, "t/io_uring", &paragraphs);
    let rows = t_io_uring::options().map(|(letter, option, meaning)| {
        [
            code(&format!("-{letter}")),
            option.map(code).unwrap_or_default(),
            cell(&meaning),
        ]
    });
    text.push_str(&table(["Option", "In a job", "Meaning"], rows));
}
