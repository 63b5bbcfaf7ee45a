//! docs/reference/fio.md, from the table by which job files are read.

use trace::fio::{
    DIFFERENCES, Fate, FioEngine, Known, Treatment, known_engines, known_options, t_io_uring,
};

use super::{cell, code, section, table};

/// The grammar, and the settings of every job here.
const GRAMMAR: &str = "\
`blksim run FILE.fio`, `blksim run -- --name=... --rw=...` and the `[[job]]` tables of a scenario \
take the options of fio 3.33. An option is **modelled**; or **ignored**, since it cannot change \
what the block layer sees, and listed at the end of the report; or **refused** with the reason, \
since a run without it would answer another question. An option that another one leaves without \
effect (`rwmixread` with `rw=read`) is accepted and listed; a contradiction that fio settles in \
silence (`direct=1` with `buffered=1`) is an error. All problems of the options of all jobs are \
reported at once, each with its line; what a job lacks in the device or the machine (a region \
after the end, discards, poll queues) is found after that, one at a time. `run \
--ignore-unmodelled` leaves out what is refused, and lists it in the report \
(`left_out_options` in JSON).

Job files are fio's, of any name, and `-` is standard input: `[name]` begins a job, `[global]` \
changes the defaults of the sections after it, `;` and `#` begin a comment; `include FILE` and \
`${VARIABLE}` of the environment are replaced, and `$pagesize` with sums and products of it; \
`$ncpus` and `$mb_memory` are refused. Jobs of a further file begin after the end of those before. \
On a command line the options before the first `--name` are global; `-option`, `--option=value` \
and `--option value` are the same, the beginning of a name does if no other begins so, and other \
arguments are job files. A file that is no device lies on the device of the run: `directory` and \
the file's name are only noted.

Sizes are `4k`, `4kb`, `4ki`, `1m`, `0x1000`. As in fio, with the default `kb_base=1024`, `k` and \
`ki` are 1024 and `kib` is 1000. Times are us, ms, s, m, h, d. Devices stand in for files: the \
region of a job must lie within its device.";

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
        _ => None,
    });
    text.push_str(&table(["Option", "Meaning, unit, default"], rows));
    section(&mut text, "Ignored", "Accepted, and listed in the report.");
    let why = |known: &Known| match known.treatment {
        Treatment::Ignored(why) => Some(why),
        _ => None,
    };
    text.push_str(&by_reason(&all, "Ignored because", why));
    section(
        &mut text,
        "Outputs of fio",
        "Accepted; a line on standard error says what is not written.",
    );
    let why = |known: &Known| match known.treatment {
        Treatment::Unwritten(why) => Some(why),
        _ => None,
    };
    text.push_str(&by_reason(&all, "What is there instead", why));
    section(
        &mut text,
        "Of the command line",
        "Options of the program fio, not of a job; one without a text changes nothing. With normal \
         or terse alone, standard error has what the report says of options: left out, without \
         effect, taken otherwise. Of a run that a signal cut, normal says so in its first line; \
         terse has no place for it, so that only standard error and the exit code 130 say so.",
    );
    let why = |known: &Known| match known.treatment {
        Treatment::Program(why) => Some(why),
        _ => None,
    };
    text.push_str(&by_reason(&all, "Effect", why));
    section(
        &mut text,
        "Refused",
        "An error with this reason. The values in brackets ask for nothing, and are accepted.",
    );
    let why = |known: &Known| match known.treatment {
        Treatment::Refused(why) => Some(why),
        _ => None,
    };
    text.push_str(&by_reason(&all, "Not modelled", why));
    let others: Vec<String> = trace::fio::OTHER_BUSINESS.iter().map(|o| code(o)).collect();
    text.push_str(&format!(
        "Refused on a command line, since fio then does something else than its jobs: {}.\n\n",
        others.join(", ")
    ));
    engines(&mut text, &all);
    differences(&mut text);
    of_t_io_uring(&mut text);
    text
}

/// What becomes of a job with each engine, and options of engines that are not modelled.
fn engines(text: &mut String, all: &[Known]) {
    section(
        text,
        "Engines",
        "The nearest engine is that of `--ignore-unmodelled`, which leaves out jobs without I/O.",
    );
    let rows = known_engines().map(|(name, fate)| {
        let nearest = |engine: FioEngine| {
            let is = |fate: &Fate| matches!(fate, Fate::Is(one) if *one == engine);
            let found = known_engines().find(|(_, fate)| is(fate));
            code(found.map_or("", |(name, _)| name))
        };
        let (what, why) = match fate {
            Fate::Is(_) => ("modelled".to_owned(), ""),
            Fate::As(engine, why) => (format!("runs as {}", nearest(engine)), why),
            Fate::Not(engine, why) => (format!("refused; nearest {}", nearest(engine)), why),
            Fate::NoIo(why) => ("refused; no I/O".to_owned(), why),
        };
        [code(name), what, cell(why)]
    });
    text.push_str(&table(["Engine", "Here", "Why"], rows));
    text.push_str("\nAn option of these engines is an error with any other one.\n\n");
    let why = |known: &Known| match known.treatment {
        Treatment::OfEngines(engines) => Some(engines),
        _ => None,
    };
    text.push_str(&by_reason(all, "Engines", why));
}

fn differences(text: &mut String) {
    section(
        text,
        "Differences from fio",
        "A test compares jobs with fio 3.33 and knows these, which are on purpose.",
    );
    let rows = DIFFERENCES.iter();
    let rows = rows.map(|(name, what)| [(*name).to_owned(), cell(what)]);
    text.push_str(&table(["What", "How it differs"], rows));
}

/// Names of an option: `rw` (`readwrite`).
fn names(known: Known) -> String {
    let others: Vec<String> = known.names().skip(1).map(code).collect();
    let accepted: Vec<String> = known
        .neutral()
        .map(|value| code(&format!("={value}")))
        .collect();
    let mut text = code(known.name);
    for list in [others, accepted] {
        if !list.is_empty() {
            text += &format!(" ({})", list.join(", "));
        }
    }
    text
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
