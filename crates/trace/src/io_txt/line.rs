//! One line of an I/O script.

use blkmq::time::Duration;

use super::{Call, Io, IoKind, Process};
use crate::Result;
use crate::ftrace::IoPriority;
use crate::text::Lines;

/// What a line is.
pub(super) enum Line {
    Process(Process),
    Loop { count: u32, step_sectors: u64 },
    End,
    Call(Call),
}

/// The current line; nothing if it is blank or a comment.
pub(super) fn parse(lines: &Lines) -> Result<Option<Line>> {
    let mut words = Words {
        lines,
        words: lines.line().split_whitespace(),
    };
    let Some(op) = words.words.next() else {
        return Ok(None);
    };
    if op.starts_with('#') {
        return Ok(None);
    }
    let line = match op {
        "proc" => process(&mut words)?,
        "loop" => Line::Loop {
            count: words.number("loop count")?,
            step_sectors: words.optional("loop step")?.unwrap_or(0),
        },
        "end" => Line::End,
        "at" => Line::Call(Call::At(Duration::from_micros(words.number("at")?))),
        "submit" => Line::Call(Call::Submit),
        "reap" => Line::Call(Call::Reap(words.number("reap")?)),
        "d" => Line::Call(Call::Discard {
            sector: words.number("sector")?,
            sectors: words.length()?,
        }),
        "b" => Line::Call(Call::Buffered {
            sector: words.number("sector")?,
            sectors: words.length()?,
        }),
        "wb" => Line::Call(Call::Writeback),
        "fsync" => Line::Call(Call::Fsync),
        "exit" => Line::Call(Call::Exit),
        "r" => words.io(IoKind::Read)?,
        "w" => words.io(IoKind::Write)?,
        "W" => words.io(IoKind::WriteDsync)?,
        "f" => {
            let io = Io {
                kind: IoKind::Flush,
                sector: 0,
                sectors: 0,
                priority: None,
            };
            Line::Call(Call::Queue(io))
        }
        _ => {
            let what = format!(
                "`{op}` is none of proc, at, r, w, W, f, d, b, wb, fsync, submit, reap, exit, loop, end"
            );
            return Err(lines.error("line", what));
        }
    };
    if let Some(more) = words.words.next() {
        return Err(lines.error("line", format!("`{more}` is one word too many")));
    }
    Ok(Some(line))
}

fn process(words: &mut Words<'_>) -> Result<Line> {
    let name = words.word("proc name")?.to_string();
    let class: u8 = words.optional("class")?.unwrap_or(0);
    let level: u8 = words.optional("level")?.unwrap_or(0);
    if class > 3 {
        return Err(words.lines.error("class", format!("{class} is not 0 to 3")));
    }
    if level > 7 {
        return Err(words.lines.error("level", format!("{level} is not 0 to 7")));
    }
    let group = words.words.next().unwrap_or_default().trim_matches('/');
    Ok(Line::Process(Process {
        name,
        priority: IoPriority {
            class,
            hint: 0,
            level,
        },
        group: group.to_owned(),
        line: words.lines.number(),
        steps: Vec::new(),
    }))
}

struct Words<'a> {
    lines: &'a Lines,
    words: std::str::SplitWhitespace<'a>,
}

impl<'a> Words<'a> {
    fn word(&mut self, field: &str) -> Result<&'a str> {
        self.words
            .next()
            .ok_or_else(|| self.lines.error(field, "missing"))
    }

    fn number<T: std::str::FromStr>(&mut self, field: &str) -> Result<T> {
        let word = self.word(field)?;
        word.parse()
            .map_err(|_| self.lines.error(field, format!("`{word}` is not a number")))
    }

    fn optional<T: std::str::FromStr>(&mut self, field: &str) -> Result<Option<T>> {
        if self.words.clone().next().is_none() {
            return Ok(None);
        }
        self.number(field).map(Some)
    }

    fn length(&mut self) -> Result<u32> {
        match self.number("sectors")? {
            0 => Err(self.lines.error("sectors", "0 sectors are no I/O")),
            n => Ok(n),
        }
    }

    /// `SECTOR NSECT [PRIO]`; the priority is the kernel's raw value, any base that C knows.
    fn io(&mut self, kind: IoKind) -> Result<Line> {
        let sector = self.number("sector")?;
        let sectors = self.length()?;
        let mut priority = None;
        if let Some(word) = self.words.next() {
            let raw = raw_number(word)
                .filter(|raw| raw >> 13 <= 3)
                .ok_or_else(|| {
                    self.lines.error(
                        "prio",
                        format!("`{word}` is no ioprio such as 0x2000 (RT 0)"),
                    )
                })?;
            priority = Some(IoPriority::from_raw(raw));
        }
        Ok(Line::Call(Call::Queue(Io {
            kind,
            sector,
            sectors,
            priority,
        })))
    }
}

/// strtol(text, 0, 0)
fn raw_number(text: &str) -> Option<u16> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u16::from_str_radix(hex, 16).ok();
    }
    match text.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u16::from_str_radix(octal, 8).ok(),
        _ => text.parse().ok(),
    }
}
