//! fio's iolog, versions 2 and 3: what jobs submitted, without completions.
//!
//! Version 1 is not read. Read first: fio(1), trace file format; iolog.c of fio 3.33.

use blkmq::time::SimTime;

use super::super::event::{Action, Categories, Event};
use super::super::lines::Out;
use super::super::warnings::Warning;
use super::{Bad, Parsed, Parser};
use crate::ftrace::fields::Fields;

#[derive(Debug, Default)]
pub(crate) struct Iolog {
    /// Of the first line.
    version: Option<u8>,
    /// Of version 2: as far as its waits have come.
    now: SimTime,
}

const VERSIONS: &str = "`fio version 2 iolog` or `fio version 3 iolog`";

pub(crate) fn begins(lines: &[&str]) -> bool {
    lines
        .first()
        .is_some_and(|line| line.starts_with("fio version "))
}

impl Parser for Iolog {
    fn line(&mut self, line: &str, out: &mut Out<'_>) -> Parsed<()> {
        let Some(version) = self.version else {
            self.version = match line.trim_end() {
                "fio version 2 iolog" => Some(2),
                "fio version 3 iolog" => Some(3),
                other => return Err(Bad::new("version", other, VERSIONS)),
            };
            return Ok(());
        };
        let mut f = Fields::new(line);
        let mut time = self.now;
        if version == 3 {
            let us = f.number::<u64>("timestamp")?;
            let ns = us.checked_mul(1000);
            let ns = ns.ok_or_else(|| Bad::new("timestamp", &us.to_string(), "microseconds"))?;
            time = SimTime(ns);
        }
        let file = f.word("file name", "the name of a file")?;
        let device = out.device("file name", file)?;
        let action = f.word("action", "read, write, add, ...")?;
        if matches!(action, "add" | "open" | "close") {
            return Ok(f.end()?);
        }
        let offset = f.number::<u64>("offset")?;
        let length = f.number::<u64>("length")?;
        f.end()?;
        let (categories, bytes) = match action {
            "wait" if version == 2 => return self.wait(offset, out),
            "read" => (Categories::READ, length),
            "write" => (Categories::WRITE.with(Categories::SYNC), length),
            "trim" => (Categories::WRITE.with(Categories::DISCARD), length),
            "sync" | "datasync" => {
                let flush = Categories::WRITE.with(Categories::FLUSH);
                (flush.with(Categories::SYNC), 0)
            }
            other => {
                let want = "read, write, trim, sync, datasync, add, open or close";
                return Err(Bad::new("action", other, want));
            }
        };
        let small = u32::try_from(bytes);
        let bytes = small.map_err(|_| Bad::new("length", &bytes.to_string(), "less than 4 GiB"))?;
        let whole = bytes == 0 || offset.is_multiple_of(512) && bytes.is_multiple_of(512);
        out.warn(Warning::NoWholeSectors, u64::from(!whole));
        out.event(Event {
            device,
            sector: if bytes == 0 { 0 } else { offset / 512 },
            bytes,
            categories: categories.of_action(Action::Queue),
            ..Event::new(time, Action::Queue)
        });
        Ok(())
    }

    fn lacks(&self) -> String {
        "an iolog of fio has submissions only: no D and no C, no processes, no priorities; writes \
         are taken for synchronous ones, and version 2 has no times but those of `wait`"
            .to_owned()
    }
}

impl Iolog {
    fn wait(&mut self, ms: u64, out: &mut Out<'_>) -> Parsed<()> {
        let until = ms.checked_mul(1_000_000);
        let until = until.ok_or_else(|| Bad::new("offset", &ms.to_string(), "milliseconds"))?;
        self.now = self.now.max(SimTime(until));
        out.warn(Warning::AmbiguousWait, 1);
        Ok(())
    }
}
