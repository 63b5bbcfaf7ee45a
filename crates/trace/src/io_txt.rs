//! `io.txt`: the script that the aioscript replayer ran, exactly as written.
//!
//! One or more processes, each a list of I/O in batches: a batch is one io_submit() and so one plug
//! in the kernel. Numbers that are missing are 0 and words that are too many are nothing, as there;
//! a word that is no number, or no line of the replayer's, is an error here. Read next:
//! `Process::expand`.

use std::path::Path;

use blkmq::time::Duration;

use crate::Result;
use crate::ftrace::IoPriority;
use crate::text::Lines;

mod line;

/// Most I/Os in a batch; the replayer submits by itself when it has gathered so many.
pub const BATCH_MAX: usize = 4096;

/// All processes of a script. They start together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoScript {
    /// In the order of the file.
    pub processes: Vec<Process>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its task name, as long as the kernel keeps it.
    pub name: String,
    /// ioprio of the task; class 0 leaves it unchanged.
    pub priority: IoPriority,
    /// cgroup that it is in from the start, without a slash in front; empty: the root.
    pub group: String,
    /// Line of its `proc`.
    pub line: u64,
    /// Its steps, loops not unrolled.
    pub steps: Vec<Step>,
}

/// One line of a script, or a loop of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Line in the file.
    pub line: u64,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Call(Call),
    /// `loop COUNT [STEP]` ... `end`, not nested.
    Loop {
        count: u32,
        /// Sectors added to every position from one round to the next.
        step_sectors: i64,
        body: Vec<(u64, Call)>,
    },
}

/// One call of the replayer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `at`: sleep until this long after the common start.
    At(Duration),
    /// `r`, `w`, `W`, `f`: put an I/O into the batch.
    Queue(Io),
    /// `submit`: submit the batch.
    Submit,
    /// `reap N`: wait for N completions; 0: for all that are outstanding.
    Reap(u32),
    /// `d`: discard, and wait for it.
    Discard { sector: u64, sectors: u32 },
    /// `b`: write into the page cache.
    Buffered { sector: u64, sectors: u32 },
    /// `wb`: begin writeback of all that is dirty, and do not wait.
    Writeback,
    /// `fsync`: write back, and wait.
    Fsync,
    /// `exit`: submit, wait for all, end the process; later steps are never reached.
    Exit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    pub kind: IoKind,
    /// First sector; 0 for a flush.
    pub sector: u64,
    /// Length, sectors; 0 for a flush.
    pub sectors: u32,
    /// Its own ioprio, or that of the task.
    pub priority: Option<IoPriority>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoKind {
    /// `r`
    Read,
    /// `w`
    Write,
    /// `W`: a write with RWF_DSYNC: FUA, or write and flush.
    WriteDsync,
    /// `f`: fdatasync(2).
    Flush,
}

impl IoScript {
    /// Opens and reads a script, plain or compressed.
    pub fn open(file: &Path) -> Result<IoScript> {
        IoScript::read(Lines::open(file)?)
    }

    pub fn read(mut lines: Lines) -> Result<IoScript> {
        let mut processes: Vec<Process> = Vec::new();
        let mut in_loop = false;
        while lines.advance()? {
            let Some(parsed) = line::parse(&lines)? else {
                continue;
            };
            let number = lines.number();
            if let line::Line::Process(process) = parsed {
                if in_loop {
                    return Err(lines.error("proc", "inside a loop; `end` is missing"));
                }
                processes.push(process);
                continue;
            }
            let Some(process) = processes.last_mut() else {
                return Err(lines.error("proc", "expected `proc NAME CLASS LEVEL` first"));
            };
            match parsed {
                line::Line::Process(_) => unreachable!("handled above"),
                line::Line::Loop {
                    count,
                    step_sectors,
                } => {
                    if in_loop {
                        return Err(lines.error("loop", "loops do not nest"));
                    }
                    in_loop = true;
                    process
                        .steps
                        .push(Step::empty_loop(number, count, step_sectors));
                }
                line::Line::End if !in_loop => {
                    return Err(lines.error("end", "no loop is open"));
                }
                line::Line::End => in_loop = false,
                line::Line::Call(call) if in_loop => match process.steps.last_mut() {
                    Some(Step {
                        action: Action::Loop { body, .. },
                        ..
                    }) => {
                        body.push((number, call));
                    }
                    _ => unreachable!("an open loop is the last step"),
                },
                line::Line::Call(call) => {
                    process.steps.push(Step {
                        line: number,
                        action: Action::Call(call),
                    });
                }
            }
        }
        if in_loop {
            return Err(lines.error("loop", "`end` is missing"));
        }
        if processes.is_empty() {
            return Err(lines.error("proc", "no process in this script"));
        }
        Ok(IoScript { processes })
    }
}

impl Step {
    fn empty_loop(line: u64, count: u32, step_sectors: i64) -> Step {
        let body = Vec::new();
        Step {
            line,
            action: Action::Loop {
                count,
                step_sectors,
                body,
            },
        }
    }

    /// Its calls in order, each with the offset of its position.
    fn calls(&self) -> impl Iterator<Item = (Call, i64)> + '_ {
        let (alone, count, step, body) = match &self.action {
            Action::Call(call) => (Some((*call, 0)), 0, 0, &[][..]),
            Action::Loop {
                count,
                step_sectors,
                body,
            } => (None, *count, *step_sectors, &body[..]),
        };
        let rounds = 0..i64::from(count);
        let unrolled = rounds.flat_map(move |round| {
            let add = round.saturating_mul(step);
            body.iter().map(move |&(_, call)| (call, add))
        });
        alone.into_iter().chain(unrolled)
    }
}

impl Process {
    /// The calls in order as the replayer makes them: loops unrolled, full batches submitted, and
    /// the final `submit` and `reap 0` that every process ends with, at its `exit` at the latest.
    pub fn expand(&self) -> Vec<Call> {
        let mut out = Expansion::default();
        let all = self.steps.iter().flat_map(Step::calls);
        for (call, add) in all.take_while(|&(call, _)| call != Call::Exit) {
            out.push(call, add);
        }
        out.push(Call::Submit, 0);
        out.push(Call::Reap(0), 0);
        out.calls
    }
}

#[derive(Default)]
struct Expansion {
    calls: Vec<Call>,
    batch: usize,
}

impl Expansion {
    fn push(&mut self, call: Call, add: i64) {
        match call {
            Call::Queue(io) => {
                let moved = match io.kind {
                    IoKind::Flush => Some(io.sector),
                    _ => moved(io.sector, io.sectors, add),
                };
                let queue = |sector| Call::Queue(Io { sector, ..io });
                self.calls.extend(moved.map(queue));
                self.batch += 1;
                if self.batch == BATCH_MAX {
                    self.calls.push(Call::Submit);
                    self.batch = 0;
                }
            }
            // An empty batch makes no system call.
            Call::Submit if self.batch == 0 => {}
            Call::Submit => {
                self.calls.push(Call::Submit);
                self.batch = 0;
            }
            Call::Discard { sector, sectors } => {
                let moved = moved(sector, sectors, add);
                let discard = |sector| Call::Discard { sector, sectors };
                self.calls.extend(moved.map(discard));
            }
            Call::Buffered { sector, sectors } => {
                let moved = moved(sector, sectors, add);
                let buffered = |sector| Call::Buffered { sector, sectors };
                self.calls.extend(moved.map(buffered));
            }
            other => self.calls.push(other),
        }
    }
}

/// Where an I/O of a loop goes. The kernel makes none of a length of 0, or before the device.
fn moved(sector: u64, sectors: u32, add: i64) -> Option<u64> {
    sector.checked_add_signed(add).filter(|_| sectors > 0)
}

#[cfg(test)]
mod tests;
