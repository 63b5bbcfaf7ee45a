//! lib/sbitmap.c beside `blkmq::sbitmap`: the bits that are allocated, the waiters that are woken,
//! words, hints, counts and wait queues.
//!
//! ```text
//! map DEPTH ROUND_ROBIN MIN_SHALLOW SEED
//! get CPU [SHALLOW] | batch CPU COUNT | put CPU BIT | puts CPU BIT ...
//! resize DEPTH | share USERS | wakeall CPU
//! wait QUEUE WAITER | runs WAITER | leave WAITER      waiters below 32 are tasks, the others hctxs
//! ```

use super::dice::Dice;
use super::part::{Twins, numbers, opened};
use crate::call::{BITS_MAX, PartOp};
use crate::library::{Library, Part};
use blkmq::env::Effect;
use blkmq::path::MapAlone;
use blkmq::request::{HctxId, QueueId};
use blkmq::sbitmap::{Sbitmap, WAIT_QUEUES};
use blkmq::waiter::{Waiter, WaiterId};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

const CPUS: u32 = 3;
/// Tasks, and as many hctxs, that may wait.
const WAITERS: u32 = 32;
/// Number of the first hctx in C.
const HCTXS_IN_C: u32 = 64;

/// A context that waits.
#[derive(Clone, Copy, Debug)]
struct Waits {
    queue: u32,
    /// It was woken, or removed: it counts as waiting, without an entry.
    woken: bool,
}

pub(super) struct Map {
    ours: MapAlone,
    theirs: Part,
    /// Bits that are taken, and the CPU that took each.
    taken: BTreeMap<u32, u32>,
    waits: BTreeMap<u32, Waits>,
    depth_at_first: u32,
}

fn waiter(number: u32) -> Waiter {
    match number.checked_sub(WAITERS) {
        None => Waiter::Task(WaiterId(number)),
        Some(hctx) => Waiter::Hctx {
            queue: QueueId(0),
            hctx: HctxId(hctx as u16),
            exclusive: false,
        },
    }
}

/// Its number in C.
fn number_in_c(number: u32) -> u32 {
    match number.checked_sub(WAITERS) {
        None => number,
        Some(hctx) => HCTXS_IN_C + hctx,
    }
}

impl Map {
    /// What a call returned, the waiters that were woken, and the state: in C's words.
    fn shown(&mut self, returned: String, woken: &[Effect]) -> String {
        let mut text = returned;
        for effect in woken {
            let (number, line) = match *effect {
                Effect::Wake(task) => (task.0, format!(" task {}", task.0)),
                Effect::Kick { hctx, .. } => {
                    (WAITERS + u32::from(hctx.0), format!(" hctx {}", hctx.0))
                }
                other => (u32::MAX, format!(" {other:?}")),
            };
            text += &line;
            if number >= WAITERS {
                self.waits.remove(&number);
            } else if let Some(waits) = self.waits.get_mut(&number) {
                waits.woken = true;
            }
        }
        text + &state(self.ours.map())
    }

    /// Bits that a call took.
    fn took(&mut self, cpu: u32, bits: impl IntoIterator<Item = u32>) {
        for bit in bits {
            self.taken.insert(bit, cpu);
        }
    }

    /// blkmq's side of a command.
    fn ours(&mut self, word: &str, n: &[u32]) -> Option<String> {
        let cpu = *n.first()? as usize;
        Some(match (word, &n[1..]) {
            ("get", shallow) => {
                let got = self.ours.get(cpu, shallow.first().copied());
                self.took(n[0], got);
                let bit = got.map_or("-1".to_owned(), |bit| bit.to_string());
                self.shown(bit, &[])
            }
            ("batch", &[count]) => {
                let got = self.ours.get_batch(cpu, count);
                let (first, bits) = got.unwrap_or((0, 0));
                let set = (0..64).filter(|bit| bits >> bit & 1 != 0);
                self.took(n[0], set.map(|bit| first + bit));
                self.shown(format!("{bits:x} from {first}"), &[])
            }
            ("put", &[bit]) => {
                let owner = self.taken.remove(&bit)?;
                let woken = self.ours.put(cpu, bit, owner as usize);
                self.shown(String::new(), &woken)
            }
            ("puts", bits) => {
                for bit in bits {
                    self.taken.remove(bit)?;
                }
                let woken = self.ours.put_batch(cpu, bits);
                self.shown(String::new(), &woken)
            }
            ("resize", []) => {
                self.ours.resize(n[0]);
                self.shown(String::new(), &[])
            }
            ("share", []) => {
                self.ours.share_wake_batch(n[0]);
                self.shown(String::new(), &[])
            }
            ("wakeall", []) => {
                let woken = self.ours.wake_all(cpu);
                self.shown(String::new(), &woken)
            }
            _ => return self.waiters(word, n),
        })
    }

    /// The same of commands about those that wait.
    fn waiters(&mut self, word: &str, n: &[u32]) -> Option<String> {
        match (word, n) {
            ("wait", &[queue, number]) => {
                let waits = Waits {
                    queue,
                    woken: false,
                };
                match self.waits.insert(number, waits) {
                    None => self.ours.wait(queue as usize, waiter(number)),
                    Some(_) => self.ours.line_up(queue as usize, waiter(number)),
                }
            }
            ("runs", &[number]) => self.ours.runs(waiter(number)),
            ("leave", &[number]) => {
                let waits = self.waits.remove(&number)?;
                self.ours.leave(waits.queue as usize, waiter(number));
            }
            _ => return None,
        }
        Some(self.shown(String::new(), &[]))
    }

    /// C's side: its call.
    fn theirs(&mut self, word: &str, n: &[u32]) -> Option<String> {
        let mut arg = [0; 4];
        let (op, cpu, bits): (_, _, &[u32]) = match (word, n) {
            ("get", [cpu, shallow @ ..]) => {
                arg[0] = shallow.first().copied().unwrap_or(0);
                (PartOp::Get, *cpu, &[])
            }
            ("batch", &[cpu, count]) => {
                arg[0] = count;
                (PartOp::GetBatch, cpu, &[])
            }
            ("put", &[cpu, bit]) => {
                arg[..2].copy_from_slice(&[bit, *self.taken.get(&bit)?]);
                (PartOp::Put, cpu, &[])
            }
            ("puts", [cpu, bits @ ..]) => (PartOp::PutBatch, *cpu, bits),
            ("wakeall", &[cpu]) => (PartOp::WakeAll, cpu, &[]),
            ("wait", &[queue, number]) => {
                arg[..2].copy_from_slice(&[queue, number_in_c(number)]);
                (PartOp::Wait, 0, &[])
            }
            ("runs", &[number]) => {
                arg[1] = number_in_c(number);
                (PartOp::Runs, 0, &[])
            }
            ("leave", &[number]) => {
                let queue = self.waits.get(&number)?.queue;
                arg[..2].copy_from_slice(&[queue, number_in_c(number)]);
                (PartOp::Leave, 0, &[])
            }
            ("resize" | "share", &[value]) => {
                arg[0] = value;
                let op = if word == "share" {
                    PartOp::Share
                } else {
                    PartOp::Resize
                };
                (op, 0, &[])
            }
            _ => return None,
        };
        Some(self.theirs.call(op, cpu, arg, bits).unwrap_or_else(|e| e))
    }

    /// The command makes sense in this state.
    fn allows(&self, word: &str, n: &[u32]) -> bool {
        let known = |number: u32| self.waits.get(&number);
        match (word, n) {
            ("get", [cpu, shallow @ ..]) => {
                *cpu < CPUS && shallow.len() < 2 && shallow.iter().all(|&most| most > 0)
            }
            ("batch", &[cpu, count]) => cpu < CPUS && (2..=32).contains(&count),
            ("put", &[cpu, bit]) => cpu < CPUS && self.taken.contains_key(&bit),
            ("puts", [cpu, bits @ ..]) => {
                let distinct: std::collections::BTreeSet<_> = bits.iter().collect();
                *cpu < CPUS
                    && (1..=BITS_MAX).contains(&bits.len())
                    && distinct.len() == bits.len()
                    && bits.iter().all(|bit| self.taken.contains_key(bit))
            }
            ("resize", &[depth]) => (1..=self.depth_at_first).contains(&depth),
            ("share", &[users]) => users > 0,
            ("wakeall", &[cpu]) => cpu < CPUS,
            ("wait", &[queue, number]) => {
                let free = known(number).is_none_or(|waits| waits.woken);
                (queue as usize) < WAIT_QUEUES && number < 2 * WAITERS && free
            }
            ("runs", &[number]) => number < WAITERS && known(number).is_some(),
            ("leave", &[number]) => known(number).is_some(),
            _ => false,
        }
    }
}

impl Twins for Map {
    fn begin(libraries: &[Arc<Library>], line: &str) -> Option<Map> {
        let ("map", n) = numbers(line)? else {
            return None;
        };
        let &[depth, round_robin, min_shallow, seed] = n.as_slice() else {
            return None;
        };
        let rules = *libraries[0].tree.rules();
        let mut random = seed;
        let hint = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if round_robin == 0 { random } else { 0 }
        };
        let least = (min_shallow > 0).then_some(min_shallow);
        let (cpus, rule) = (CPUS as usize, rules.shallow_depth);
        let mut map = Sbitmap::new(depth, cpus, rule, least, WAITERS as usize, hint);
        map.round_robin = round_robin != 0;
        map.follow(&rules);
        let arg = [depth, round_robin, min_shallow, seed];
        Some(Map {
            ours: MapAlone::new(map, rules, WAITERS as u16),
            theirs: opened(&libraries[0], CPUS, arg),
            taken: BTreeMap::new(),
            waits: BTreeMap::new(),
            depth_at_first: depth,
        })
    }

    fn command(&mut self, line: &str) -> Option<[String; 2]> {
        let (word, n) = numbers(line)?;
        if !self.allows(word, &n) {
            return None;
        }
        let theirs = self.theirs(word, &n)?;
        Some([self.ours(word, &n)?, theirs])
    }

    fn first(dice: &mut Dice) -> String {
        let depth = match dice.below(6) {
            0 => 1 + dice.below(8),
            1 | 2 => 9 + dice.below(60),
            3 => 128,
            4 => 100 + dice.below(500),
            _ => 1 << dice.below(9),
        };
        let min_shallow = match dice.below(3) {
            0 => 1 + dice.below(depth),
            1 => 1 + dice.below(4),
            _ => 0,
        };
        let round_robin = u32::from(dice.one_in(4));
        format!(
            "map {depth} {round_robin} {min_shallow} {}",
            1 + dice.below(1 << 30)
        )
    }

    fn random(&self, dice: &mut Dice) -> String {
        let cpu = dice.below(u64::from(CPUS));
        let depth = u64::from(self.ours.map().depth());
        let of = |dice: &mut Dice| {
            let at = dice.below(self.taken.len().max(1) as u64) as usize;
            self.taken.keys().nth(at).copied().unwrap_or(0)
        };
        let someone = dice.below(u64::from(2 * WAITERS));
        match dice.below(40) {
            0..=9 => format!("get {cpu}"),
            10..=13 => format!("get {cpu} {}", 1 + dice.below(depth + 2)),
            14 | 15 => format!("batch {cpu} {}", 2 + dice.below(10)),
            16..=24 => format!("put {cpu} {}", of(dice)),
            25 => {
                let mut text = format!("puts {cpu}");
                for _ in 0..=dice.below(12) {
                    let _ = write!(text, " {}", of(dice));
                }
                text
            }
            26 if dice.one_in(4) => {
                format!("resize {}", 1 + dice.below(u64::from(self.depth_at_first)))
            }
            27 if dice.one_in(6) => format!("share {}", 1 + dice.below(6)),
            28 if dice.one_in(3) => format!("wakeall {cpu}"),
            29 => format!("runs {someone}"),
            30..=32 => format!("leave {someone}"),
            33..=38 => format!("wait {} {someone}", dice.below(WAIT_QUEUES as u64)),
            // Once nothing is left, a get fails.
            _ => format!("get {cpu}"),
        }
    }
}

/// The state of blkmq's map, as show_map() in `shim/parts.c` prints it.
fn state(map: &Sbitmap) -> String {
    let mut text = format!(
        "\ndepth {} shift {} words {} batch {} index {} active {} completed {} promised {}",
        map.depth(),
        map.shift,
        map.word_count(),
        map.wake_batch.get(),
        map.wake_index.peek(),
        map.ws_active.peek(),
        map.completion_cnt.peek(),
        map.wakeup_cnt.peek(),
    );
    // Those beyond the depth are not counted.
    let used = (0..map.depth()).filter(|&bit| map.is_busy(bit)).count();
    let mut words = map.words.iter().take(map.word_count() as usize);
    let any = words.any(|word| word.word.peek() & !word.cleared.peek() != 0);
    let _ = write!(text, " used {used} {}", if any { "any" } else { "none" });
    text += "\nmap";
    for word in &map.words {
        let _ = write!(text, " {:x}/{:x}", word.word.peek(), word.cleared.peek());
    }
    text += "\nhints";
    for hint in &map.hints {
        let _ = write!(text, " {}", hint.get());
    }
    for (number, wait) in map.wait.iter().enumerate() {
        let _ = write!(text, "\nqueue {number}:");
        wait.queue.inspect(|queue| {
            for &entry in &queue.entries {
                let _ = match entry {
                    Waiter::Task(task) => write!(text, " task {}", task.0),
                    Waiter::Hctx { hctx, .. } => write!(text, " hctx {}", hctx.0),
                };
            }
        });
    }
    text
}
