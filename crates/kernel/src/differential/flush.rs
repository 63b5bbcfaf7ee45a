//! block/blk-flush.c beside `blkmq::path::flush`, or beside that of another kernel: which requests
//! a flush serves and when it is issued, and the whole machine after every command.
//!
//! ```text
//! flush WRITE_CACHE FUA SCHEDULER         the device's limits, and whether there is one: 0 or 1
//! insert RQ SECTORS [preflush] [fua]      blk_insert_flush()
//! requeue                                 its requests and its flush (F) go to the device
//! end RQ|F [ioerr]                        the device ends one
//! wait TICKS
//! ```

use super::dice::Dice;
use super::part::Twins;
use super::sides::Sides;
use crate::library::Library;
use crate::script::World;
use blkmq::path::{FlushAlone, FlushRan};
use blkmq::request::{HctxId, OpFlags, RequestId, Status};
use blkmq::rules::QueueLimits;
use std::fmt::Write as _;
use std::sync::Arc;

const REQUESTS: u32 = 16;

/// blkmq's machine.
struct Machine {
    of: FlushAlone,
    /// By number, those that are used.
    used: [Option<RequestId>; REQUESTS as usize],
}

pub(super) struct Machines {
    sides: Sides,
    /// Requests that the device has.
    issued: Vec<String>,
}

impl World for Machine {
    fn command(&mut self, line: &str) -> Result<Vec<String>, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |text: &str| {
            text.parse::<u32>()
                .map_err(|_| format!("{text:?}: no number"))
        };
        match words[..] {
            ["insert", rq, sectors, ref flags @ ..] => {
                let flags = OpFlags {
                    preflush: flags.contains(&"preflush"),
                    fua: flags.contains(&"fua"),
                    ..OpFlags::default()
                };
                Ok(self.insert(number(rq)?, number(sectors)?, flags))
            }
            ["end", rq, ref status @ ..] => {
                let rq = match rq {
                    "F" => Some(self.of.queue().hctx(HctxId(0)).flush_rq),
                    rq => self.used[number(rq)? as usize],
                };
                let status = if status.is_empty() {
                    Status::Ok
                } else {
                    Status::IoError
                };
                let ran = self.of.end(rq.ok_or("it is not used")?, status);
                Ok(self.shown(ran, None))
            }
            ["requeue"] => {
                let ran = self.of.requeue_work();
                let mut text = "inserts".to_owned();
                for &rq in &ran.inserted {
                    text += &self.name(rq);
                }
                Ok(self.shown(ran, Some(text)))
            }
            ["wait", ticks] => {
                self.of.pass(number(ticks)?.into());
                Ok(Vec::new())
            }
            ["state"] => Ok(self.state()),
            _ => Err(format!("unknown command {line:?}")),
        }
    }
}

impl Machine {
    fn insert(&mut self, number: u32, sectors: u32, flags: OpFlags) -> Vec<String> {
        let (rq, ran) = self.of.insert(number, sectors, flags);
        let (flags, sequence) = self
            .of
            .queue()
            .with_pool(|pool| (pool[rq].flags, pool[rq].flush_seq));
        let mut text = match (ran.goes_on, ran.inserted.is_empty()) {
            (true, _) => "goes on",
            (false, false) => "bypass",
            (false, true) => "taken",
        }
        .to_owned();
        for (set, name) in [
            (flags.sync, " sync"),
            (flags.fua, " fua"),
            (flags.preflush, " preflush"),
        ] {
            if set {
                text += name;
            }
        }
        self.used[number as usize] = Some(rq);
        let lines = self.shown(ran.clone(), None);
        // What needs no flush is no more of the machine's.
        if !ran.inserted.is_empty() || ran.goes_on && !sequence {
            self.free(rq);
        }
        // C says what it ends before it returns.
        let at = lines
            .iter()
            .take_while(|line| line.starts_with("ends"))
            .count();
        let mut all = lines;
        all.insert(at, text);
        all
    }

    fn free(&mut self, rq: RequestId) {
        self.of.free(rq);
        for slot in &mut self.used {
            if *slot == Some(rq) {
                *slot = None;
            }
        }
    }

    /// What a function did, and what it returned.
    fn shown(&mut self, ran: FlushRan, returned: Option<String>) -> Vec<String> {
        let mut lines = Vec::from_iter(returned);
        for (rq, status) in ran.ended {
            let status = if status == Status::Ok { "ok" } else { "ioerr" };
            lines.push(format!("ends{} {status}", self.name(rq)));
            self.free(rq);
        }
        lines.extend(ran.kicked.then(|| "kick".to_owned()));
        lines
    }

    /// With a blank before it.
    fn name(&self, rq: RequestId) -> String {
        let number = self.used.iter().position(|&of| of == Some(rq));
        number.map_or(" F".to_owned(), |number| format!(" {number}"))
    }

    fn state(&self) -> Vec<String> {
        let q = self.of.queue();
        let fq = q.hctx(HctxId(0)).flush.inspect(|fq| *fq);
        let lists = q.requeue.inspect(|lists| [lists.requeue, lists.flush]);
        q.with_pool(|pool| {
            let list = |name: &str, list: &blkmq::list::QueueList| {
                let all = list.iter(pool).map(|rq| self.name(rq));
                format!("{name}:{}", all.collect::<String>())
            };
            let mut steps = "steps:".to_owned();
            for (number, rq) in self.used.iter().enumerate() {
                if let Some(rq) = rq {
                    let rq = &pool[*rq];
                    let tag = if rq.tag.is_some() { "t" } else { "" };
                    let _ = write!(steps, " {number}/{}{tag}", rq.flush_step);
                }
            }
            if fq.pending_idx != fq.running_idx {
                let flush = &pool[q.hctx(HctxId(0)).flush_rq];
                let lent = if q.has_elevator() {
                    flush.internal_tag
                } else {
                    flush.tag
                };
                let tag = if flush.tag.is_some() { "t" } else { "" };
                let _ = write!(
                    steps,
                    " F of {}{tag}",
                    lent.map_or(-1, |tag| i64::from(tag.0))
                );
            }
            vec![
                list("pending", &fq.pending[0]),
                list("pending", &fq.pending[1]),
                format!(
                    "index {} {}, since {}, data {}",
                    fq.pending_idx, fq.running_idx, fq.pending_since.0, fq.data_in_flight
                ),
                list("requeue", &lists[0]),
                list("flush", &lists[1]),
                steps,
            ]
        })
    }
}

impl Twins for Machines {
    fn begin(libraries: &[Arc<Library>], line: &str) -> Option<Machines> {
        let limits: Vec<&str> = line.strip_prefix("flush ")?.split(' ').collect();
        let [write_cache, fua, schedules] = limits[..] else {
            return None;
        };
        let device = QueueLimits {
            write_cache: write_cache == "1",
            fua: fua == "1",
            ..QueueLimits::PLAIN
        };
        let rules = *libraries.last()?.tree.rules();
        let model = || {
            Some(Box::new(Machine {
                of: FlushAlone::new(rules, device, schedules == "1", REQUESTS),
                used: [None; REQUESTS as usize],
            }) as Box<dyn World>)
        };
        Some(Machines {
            sides: Sides::begin(libraries, line, &["state"], model)?,
            issued: Vec::new(),
        })
    }

    fn command(&mut self, line: &str) -> Option<[String; 2]> {
        let both = self.sides.command(line)?;
        let words: Vec<&str> = line.split(' ').collect();
        if let ["end", rq, ..] = words[..] {
            self.issued.retain(|of| of != rq);
        }
        for printed in both[1].lines() {
            if let Some(all) = printed.strip_prefix("inserts") {
                self.issued
                    .extend(all.split_whitespace().map(str::to_owned));
            } else if printed.starts_with("goes on") {
                self.issued.push(words[1].to_owned());
            }
        }
        Some(both)
    }

    fn first(dice: &mut Dice) -> String {
        let write_cache = u8::from(!dice.one_in(10));
        format!("flush {write_cache} {} {}", dice.below(2), dice.below(2))
    }

    fn random(&self, dice: &mut Dice) -> String {
        match dice.below(20) {
            0..=7 => {
                let flags = dice.of(&[" preflush", " preflush", " fua", " preflush fua", ""]);
                // A flush alone, or with data.
                let sectors = if flags == " preflush" {
                    dice.of(&["0", "8"])
                } else {
                    "8"
                };
                format!("insert {} {sectors}{flags}", dice.below(REQUESTS.into()))
            }
            8..=10 => "requeue".to_owned(),
            11 => format!("wait {}", 1 + dice.below(2000)),
            // FLUSH_PENDING_TIMEOUT is 1250 ticks.
            12 => format!("wait {}", dice.one(&[1, 1249, 1250])),
            _ if self.issued.is_empty() => "requeue".to_owned(),
            _ => {
                let error = if dice.one_in(12) { " ioerr" } else { "" };
                format!("end {}{error}", dice.one(&self.issued))
            }
        }
    }
}
