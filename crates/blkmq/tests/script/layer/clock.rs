//! The clock of a layer script, its timers, and the probe events of a scheduler.

use blkmq::elevator::{Elevator, Hook};
use blkmq::env::{Cpu, Probe};
use blkmq::path::{Call, Frame, HookFrame, SubmitPath};
use blkmq::queue::TokenMap;
use blkmq::request::{CpuId, HctxId, QueueId};
use blkmq::sbitmap::SbWord;
use blkmq::time::{Duration, SimTime};

use super::{Layer, number};

/// The line of a probe that has no request.
pub(super) fn answer(probe: Probe) -> Option<String> {
    match probe {
        Probe::Throttled { group } => Some(format!("throttled {group}")),
        Probe::Percentile(found) => Some(format!(
            "{} {} p{} {}/{} samples={}",
            found.group,
            found.kind,
            found.percentile,
            found.numerator,
            found.denominator,
            found.samples
        )),
        Probe::Depth { group, depth } => Some(format!("depth {group} {depth}")),
        _ => None,
    }
}

/// The lines to print: all, those with these words, or for D the number of each operation.
pub(super) fn filtered(lines: Vec<String>, only: &str) -> Vec<String> {
    let word = |line: &String| line.split(' ').next().unwrap_or("").to_owned();
    match only {
        "all" => lines,
        "runs" => {
            let mut runs: Vec<(String, u32)> = Vec::new();
            for line in lines.iter().filter(|line| line.starts_with("D ")) {
                let op = line[2..3].to_owned();
                match runs.last_mut() {
                    Some((last, count)) if *last == op => *count += 1,
                    _ => runs.push((op, 1)),
                }
            }
            let run = |(op, count): &(String, u32)| format!(" {count}{op}");
            let text: String = runs.iter().map(run).collect();
            let others = lines.into_iter().filter(|line| {
                let word = line.split(' ').next().unwrap_or("");
                word == "throttled" || word == "depth"
            });
            let mut printed: Vec<String> = others.collect();
            if !text.is_empty() {
                printed.push(format!("D{text}"));
            }
            printed
        }
        words => {
            let wanted = |line: &String| words.split(' ').any(|wanted| wanted == word(line));
            lines.into_iter().filter(wanted).collect()
        }
    }
}

impl Layer {
    /// `many N OP SECTOR+SECTORS [PROPERTY ...]`.
    pub(super) fn many(&mut self, text: &str, cpu: usize) -> Result<(), String> {
        let (count, request) = text.split_once(' ').ok_or("many N REQUEST")?;
        let (op, rest) = request.split_once(' ').ok_or("many N REQUEST")?;
        let (sector, rest) = rest.split_once('+').ok_or("many N REQUEST")?;
        let first: u64 = number(sector)?;
        for at in 0..number::<u64>(count)? {
            let bio = self.parse_bio(QueueId(0), &format!("{op} {}+{rest}", first + at * 100))?;
            let path = SubmitPath::new(QueueId(0), bio);
            self.machine.run_task(cpu, Frame::Submit(path))?;
        }
        Ok(())
    }

    pub(super) fn probe(&mut self, on: bool) {
        self.machine.rest.probes = on;
    }

    /// `set NAME=VALUE`.
    pub(super) fn set(&mut self, pair: &str) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let mut cpu = Cpu::new(CpuId(0));
        let q = self.machine.mq.queue(QueueId(0));
        if let Err(refused) = q.elevator.store(q, name, value, &mut cpu) {
            self.machine.rest.printed.push(refused.to_string());
        }
    }

    /// `tick 20ms` later, or `at 500ms`.
    pub(super) fn move_clock(&mut self, word: &str, text: &str) -> Result<(), String> {
        let span = span(text)?;
        let now = self.machine.rest.now;
        let to = match word {
            "tick" => now + span,
            _ => SimTime(span.0),
        };
        if to < now {
            return Err(format!("the clock shows {now} already"));
        }
        self.machine.expire_until(to);
        Ok(())
    }

    /// `io N OP SECTOR+SECTORS after 3ms`.
    pub(super) fn ios(&mut self, text: &str) -> Result<(), String> {
        let (count, rest) = text.split_once(' ').ok_or("io N REQUEST after SPAN")?;
        let (request, after) = rest
            .split_once(" after ")
            .ok_or("io N REQUEST after SPAN")?;
        let after = span(after)?;
        for _ in 0..number::<u32>(count)? {
            let bio = self.parse_bio(QueueId(0), request)?;
            let path = SubmitPath::new(QueueId(0), bio);
            let before = self.machine.rest.printed.len();
            self.machine.run_task(0, Frame::Submit(path))?;
            self.machine.run_work(true);
            self.machine.rest.printed.truncate(before);
            let to = self.machine.rest.now + after;
            self.machine.expire_until(to);
            let before = self.machine.rest.printed.len();
            self.complete("all", blkmq::request::Status::Ok)?;
            self.machine.rest.printed.truncate(before);
        }
        Ok(())
    }

    /// `depth GROUP N`.
    pub(super) fn resize(&mut self, text: &str) -> Result<(), String> {
        let (group, depth) = text.split_once(' ').ok_or("depth GROUP N")?;
        let tokens = &self.machine.mq.queue(QueueId(0)).tokens;
        let map = tokens.iter().position(|map| map.info.group == group);
        let call = Call::ResizeTokens {
            queue: QueueId(0),
            map: map.ok_or(format!("there is no group {group:?}"))? as u8,
            depth: number(depth)?,
        };
        self.machine.run_on(0, Frame::from(call));
        Ok(())
    }

    pub(super) fn show_scheduler(&self, what: &str) -> Vec<String> {
        let q = self.machine.mq.queue(QueueId(0));
        match what {
            "scheduler" => q.elevator.show(q).lines().map(str::to_owned).collect(),
            "timer" => {
                let due = |&(.., due): &(QueueId, u8, SimTime)| format!("timer at {due}");
                self.machine.rest.timers.iter().map(due).collect()
            }
            "work" => {
                let hctxs = (0..q.hctxs.len() as u16).map(HctxId);
                let says = |hctx: HctxId| match q.elevator.has_queued(hctx) {
                    true => format!("hctx {}: yes", hctx.0),
                    false => format!("hctx {}: no", hctx.0),
                };
                hctxs.map(says).collect()
            }
            "token_maps" => {
                let waits = |map: &TokenMap| {
                    let waits = map.waits.iter().enumerate();
                    let queued = waits.filter(|(_, wait)| wait.queued.peek());
                    let line = |hctx| format!("hctx {hctx} waits for {}", map.info.group);
                    queued.map(|(hctx, _)| line(hctx)).collect::<Vec<_>>()
                };
                let lines = q.tokens.iter().map(as_in_debugfs);
                let lines = lines.chain(match &q.elevator {
                    Elevator::Kyber(kyber) => {
                        let depth = kyber.data.held(CpuId(0)).async_depth;
                        Some(format!("async_depth {depth}"))
                    }
                    _ => None,
                });
                lines.chain(q.tokens.iter().flat_map(waits)).collect()
            }
            _ => {
                let line = |map: &TokenMap| {
                    let waits = map.waits.iter().filter(|wait| wait.queued.peek());
                    let (taken, depth) = (map.map.busy_count(), map.map.depth());
                    let batch = blkmq::env::Hint::get(&map.map.wake_batch);
                    format!(
                        "{} {taken} of {depth}, wake batch {batch}, {} wait",
                        map.info.group,
                        waits.count()
                    )
                };
                q.tokens.iter().map(line).collect()
            }
        }
    }
}

impl super::Machine {
    /// Timers that expire until then, one after another.
    fn expire_until(&mut self, to: SimTime) {
        loop {
            let due = self
                .rest
                .timers
                .iter()
                .copied()
                .filter(|&(.., due)| due <= to);
            let Some(first) = due.min_by_key(|&(.., due)| due) else {
                break;
            };
            let (queue, timer, due) = first;
            self.rest.timers.retain(|&other| other != first);
            self.rest.now = self.rest.now.max(due);
            self.run_on(0, Frame::Hook(HookFrame::new(queue, Hook::Timer(timer))));
        }
        self.rest.now = to;
    }
}

/// A map of tokens as sbitmap_queue_show() prints it, on one line: of bits that were freed twice
/// its `busy` counts some less, and none above a lowered depth.
fn as_in_debugfs(tokens: &TokenMap) -> String {
    let map = &tokens.map;
    let ones = |of: fn(&SbWord) -> u64| {
        let words = map.words.iter().take(map.word_count() as usize);
        let ones = words.enumerate().map(|(at, word)| {
            let mask = u64::MAX >> (64 - map.bits_of(at));
            (of(word) & mask).count_ones()
        });
        ones.sum::<u32>()
    };
    let cleared = ones(|word| word.cleared.peek());
    let hints: Vec<String> = map
        .hints
        .iter()
        .map(|hint| hint.get().to_string())
        .collect();
    let waits = map
        .wait
        .iter()
        .map(|ws| if ws.active.peek() { '1' } else { '0' });
    format!(
        "{} depth={} busy={} cleared={cleared} bits_per_word={} map_nr={} alloc_hint={{{}}} \
         wake_batch={} wake_index={} ws_active={} ws={}",
        tokens.info.group,
        map.depth(),
        ones(|word| word.word.peek()).wrapping_sub(cleared),
        1 << map.shift,
        map.word_count(),
        hints.join(", "),
        map.wake_batch.get(),
        map.wake_index.peek(),
        map.ws_active.peek(),
        waits.collect::<String>(),
    )
}

/// `20ms`, `700us`, `5ns` or `1s`.
fn span(text: &str) -> Result<Duration, String> {
    let units = [
        ("ns", 1),
        ("us", 1000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
    ];
    let found = units.iter().find_map(|&(unit, ns)| {
        let digits = text.strip_suffix(unit)?;
        digits.parse::<u64>().ok().map(|count| Duration(count * ns))
    });
    found.ok_or(format!("{text:?} is no time"))
}
