//! One line of an I/O script.

use blkmq::time::Duration;

use super::{Call, Io, IoKind, Process};
use crate::Result;
use crate::ftrace::IoPriority;
use crate::text::Lines;

/// Bytes of a task's name that the kernel keeps: TASK_COMM_LEN without the end.
const NAME_MOST: usize = 15;

pub(super) enum Line {
    Process(Process),
    Loop { count: u32, step_sectors: i64 },
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
            count: words.count("loop count")?,
            step_sectors: words.number("loop step")?,
        },
        "end" => Line::End,
        "at" => {
            let since = words.number("at")?.max(0).unsigned_abs();
            Line::Call(Call::At(Duration::from_micros(since)))
        }
        "submit" => Line::Call(Call::Submit),
        "reap" => Line::Call(Call::Reap(words.count("reap")?)),
        "d" => Line::Call(Call::Discard {
            sector: words.sector()?,
            sectors: words.count("sectors")?,
        }),
        "b" => Line::Call(Call::Buffered {
            sector: words.sector()?,
            sectors: words.count("sectors")?,
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
                "`{op}` is none of proc, at, r, w, W, f, d, b, wb, fsync, submit, reap, exit, \
                 loop, end"
            );
            return Err(lines.error("line", what));
        }
    };
    Ok(Some(line))
}

fn process(words: &mut Words<'_>) -> Result<Line> {
    let name = words.word().unwrap_or("p").as_bytes();
    let name = &name[..name.len().min(NAME_MOST)];
    let class = words.at_most("class", 3)?;
    let level = words.at_most("level", 7)?;
    let group = words.word().unwrap_or_default().trim_matches('/');
    Ok(Line::Process(Process {
        name: String::from_utf8_lossy(name).into_owned(),
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
    /// The next word, if the line does not end here or go on as a comment.
    fn word(&mut self) -> Option<&'a str> {
        let word = self.words.next()?;
        if word.starts_with('#') {
            self.words = "".split_whitespace();
            return None;
        }
        Some(word)
    }

    /// A number; 0 if it is not there.
    fn number(&mut self, field: &str) -> Result<i64> {
        let Some(word) = self.word() else {
            return Ok(0);
        };
        word.parse()
            .map_err(|_| self.lines.error(field, format!("`{word}` is not a number")))
    }

    fn sector(&mut self) -> Result<u64> {
        let number = self.number("sector")?;
        u64::try_from(number).map_err(|_| {
            self.lines
                .error("sector", format!("`{number}` is negative"))
        })
    }

    fn count(&mut self, field: &str) -> Result<u32> {
        let number = self.number(field)?;
        let what = || format!("`{number}` is not 0 to {}", u32::MAX);
        u32::try_from(number).map_err(|_| self.lines.error(field, what()))
    }

    fn at_most(&mut self, field: &str, most: u8) -> Result<u8> {
        let number = self.number(field)?;
        let small = u8::try_from(number).ok().filter(|&small| small <= most);
        let what = || format!("{number} is not 0 to {most}");
        small.ok_or_else(|| self.lines.error(field, what()))
    }

    /// `SECTOR NSECT [PRIO]`; the priority is the kernel's raw value, in any base of C.
    fn io(&mut self, kind: IoKind) -> Result<Line> {
        let sector = self.sector()?;
        let sectors = self.count("sectors")?;
        let mut priority = None;
        if let Some(word) = self.word() {
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
