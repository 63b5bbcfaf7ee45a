//! `blksim conform`: does the model decide as a captured kernel did?

use blkmq::rules::Rules;
use blkmq::time::Duration;
use conform::{Mode, Options, run};
use trace::capture::CaptureDir;

use crate::args::ConformArgs;
use crate::error::Error;
use crate::output::OutputFile;
use crate::{DIFFERENT, OK, UNJUDGED, output};

pub(crate) fn conform(args: &ConformArgs) -> Result<u8, Error> {
    let rules = args.rules.as_deref().map(rules).transpose()?;
    let mode = args.mode.as_deref().map(mode).transpose()?;
    let dir = CaptureDir::open(&args.dir)?;
    let json = args.json.as_deref().map(OutputFile::open).transpose()?;
    let trace_device = args.trace_device.clone();
    let verdict = run(
        &dir,
        &Options {
            mode,
            trace_device,
            rules,
            rotational_when_chosen: args.rotational_when_chosen.map(|number| number != 0),
            decided_before: args.decided_before.map(us),
            decided_after: args.decided_after.map(us),
            exits_after: args
                .exits_after
                .map(|ms| Duration::from_millis(u64::from(ms))),
        },
    )?;
    // The text goes to standard output unless the JSON does.
    let in_place = json.as_ref().is_some_and(OutputFile::is_stdout);
    if let Some(file) = json {
        let text = serde_json::to_string_pretty(&verdict).expect("a verdict has string keys");
        file.put(&format!("{text}\n"))?.keep()?;
    }
    if !in_place {
        output::print(&format!("{verdict}\n"))?;
    }
    // A difference outranks undecided events.
    Ok(match verdict.diverged() {
        _ if !verdict.events_alike() => DIFFERENT,
        0 if verdict.is_whole() => OK,
        0 => UNJUDGED,
        _ => DIFFERENT,
    })
}

fn us(number: u32) -> Duration {
    Duration(u64::from(number) * 1000)
}

fn mode(name: &str) -> Result<Mode, Error> {
    let what = "no such mode; expected calls, records or log";
    Mode::by_name(name).ok_or_else(|| Error::usage(format!("--mode {name}"), what))
}

fn rules(name: &str) -> Result<Rules, Error> {
    let option = format!("--rules {name}");
    let (rules, near) = Rules::asked(name).map_err(|what| Error::usage(option.clone(), what))?;
    if rules.single_queue.is_some() {
        let known = Rules::names_of(false);
        let what = format!("no rules of this kernel for blk-mq; there are {known}");
        return Err(Error::usage(option, what));
    }
    if let Some(near) = near {
        output::print_note(&format!("note: --rules {near}\n"));
    }
    Ok(rules)
}
