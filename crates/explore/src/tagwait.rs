//! Tasks that take tags of a map and give them back: does a waiter sleep for ever?
//!
//! The map, its searches and its frees are blkmq's (`sbitmap`). What a waiting task does is written
//! here once more, in the order of `blkmq::path::submit::tagwait` but without its runs of the
//! queue, which would make the spaces a hundred times as large. Kernel: blk_mq_get_tag()
//! (6.12.117).

mod search;
mod task;

use blkmq::env::{Count, Cpu, Effect, Solo, Word};
use blkmq::request::CpuId;
use blkmq::rules::{Fix, Rules};
use blkmq::sbitmap::Sbitmap;
use blkmq::tags::WaiterId;

use crate::report::Verdict;
pub use search::tag_waits;
use task::{Phase, Task};

/// One or two maps and who takes their tags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TagWait {
    /// Name in reports.
    pub name: &'static str,
    /// Kernel: how wake-ups are dealt out, and what is repaired.
    pub rules: Rules,
    /// Tags of a map.
    pub depth: u32,
    /// Wait queues of a map, 1 to 8.
    pub wait_queues: usize,
    /// Tags freed per wake-up.
    pub wake_batch: u32,
    /// Tasks; they begin in order.
    pub tasks: u8,
    /// That many of the first ones have a tag when the exploration begins.
    pub holding: u8,
    /// Tags that each task takes, one after another.
    pub rounds: u8,
    /// All bits are given back but not merged back when it begins.
    pub freed: bool,
    /// A task that was woken may go on at another map of the same size.
    pub moves: bool,
    /// Those without a tag sleep when it begins, and stay where they are when they are woken: each
    /// batch of frees must wake one of them.
    pub only_frees: bool,
    /// Distinct states after which the exploration gives up.
    pub states_max: usize,
}

impl TagWait {
    /// `tasks` tasks that take one tag each of a map of `depth` tags, of which the first ones have
    /// all: two wait queues, wake batch 1.
    pub fn new(name: &'static str, rules: Rules, depth: u32, tasks: u8) -> TagWait {
        TagWait {
            name,
            rules,
            depth,
            wait_queues: 2,
            wake_batch: 1,
            tasks,
            holding: (depth as u8).min(tasks),
            rounds: 1,
            freed: false,
            moves: false,
            only_frees: false,
            states_max: 3_000_000,
        }
    }
}

/// A state.
#[derive(Debug)]
struct State {
    maps: Vec<Sbitmap<Solo>>,
    /// The next wait queue of each map (`hctx->wait_index`).
    next_queue: Vec<u8>,
    tasks: Vec<Task>,
}

impl Clone for State {
    fn clone(&self) -> State {
        State {
            maps: self.maps.clone(),
            next_queue: self.next_queue.clone(),
            tasks: self.tasks.clone(),
        }
    }

    fn clone_from(&mut self, source: &State) {
        self.maps.clone_from(&source.maps);
        self.next_queue.clone_from(&source.next_queue);
        self.tasks.clone_from(&source.tasks);
    }
}

impl core::hash::Hash for State {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.maps.hash(state);
        self.next_queue.hash(state);
        self.tasks.hash(state);
    }
}

impl State {
    fn first(config: &TagWait) -> State {
        let map = || {
            let rule = config.rules.shallow_depth;
            let tasks = usize::from(config.tasks);
            let mut map = Sbitmap::new(config.depth, 1, rule, None, tasks, || 0);
            map.keep_wait_queues(config.wait_queues);
            map.follow(&config.rules);
            map.set_wake_batch(config.wake_batch);
            map
        };
        let maps: Vec<Sbitmap<Solo>> = (0..=u8::from(config.moves)).map(|_| map()).collect();
        if config.freed {
            let cpu = &mut Cpu::new(CpuId(0));
            for word in maps.iter().flat_map(|map| &map.words) {
                let all = u64::MAX >> (64 - word.depth);
                cpu.begin_label();
                word.word.fetch_or(cpu, all);
                cpu.begin_label();
                word.cleared.fetch_or(cpu, all);
            }
        }
        let mut state = State {
            next_queue: vec![0; maps.len()],
            maps,
            tasks: (0..config.tasks)
                .map(|_| Task::new(config.rounds))
                .collect(),
        };
        for task in 0..usize::from(config.holding) {
            while state.tasks[task].phase != Phase::Holds {
                state.apply(config, task, 0);
            }
        }
        if config.only_frees {
            for task in usize::from(config.holding)..state.tasks.len() {
                while state.tasks[task].phase != Phase::Asleep {
                    state.apply(config, task, 0);
                }
            }
        }
        state
    }

    /// Ways in which a task can go on; 0: it cannot.
    fn ways(&self, config: &TagWait, task: usize) -> u8 {
        let this = &self.tasks[task];
        match this.phase {
            Phase::Idle if this.rounds == 0 => 0,
            // Those that have not begun are alike: the first one goes.
            Phase::Idle if task > 0 && this.rounds == config.rounds => {
                u8::from(!self.tasks[task - 1].is_new(config))
            }
            // What they hold from the beginning comes back in order.
            Phase::Holds if task > 0 && task < usize::from(config.holding) => {
                let before = &self.tasks[task - 1];
                u8::from(before.phase != Phase::Holds || before.rounds + 1 != config.rounds)
            }
            Phase::Asleep if !this.woken || config.only_frees => 0,
            Phase::Asleep if config.moves => 2,
            _ => 1,
        }
    }

    /// One access to the map, or one critical section.
    fn apply(&mut self, config: &TagWait, task: usize, way: u8) {
        let cpu = &mut Cpu::new(CpuId(0));
        cpu.task = WaiterId(task as u32);
        cpu.owner = task as u32;
        cpu.begin_label();
        self.step(config, task, way, cpu);
        assert_eq!(cpu.locks_held(), 0, "a section is one step");
        let mut number = 0;
        while let Some(effect) = cpu.outbox.take(number) {
            number += 1;
            match effect {
                Effect::Wake(waiter) => self.tasks[waiter.0 as usize].woken = true,
                other => unreachable!("{other:?} of a map without hctxs"),
            }
        }
    }

    /// What must hold in every state.
    fn check(&self, config: &TagWait) -> Result<(), Verdict> {
        let broken = |text: String| Err(Verdict::Broken(text));
        for (number, map) in self.maps.iter().enumerate() {
            let mut held = 0_u64;
            let mut between = false;
            for task in self.tasks.iter().filter(|task| task.map == number) {
                if let Some(bit) = task.holds() {
                    if held >> bit & 1 != 0 {
                        return broken(format!("tag {bit} has two holders"));
                    }
                    held |= 1 << bit;
                }
                between |= task.is_searching() && !config.rules.fixes.has(Fix::SwapLock);
            }
            let busy = (0..map.depth).filter(|&bit| map.is_busy(bit));
            let busy = busy.fold(0_u64, |bits, bit| bits | 1 << bit);
            // Freed bits that a search has in hand are in neither word.
            if held & !busy != 0 || (busy != held && !between) {
                return broken(format!("tags {busy:#b} are taken, {held:#b} have holders"));
            }
            let frees = self.tasks.iter().any(|task| task.is_freeing(number));
            let batch = config.wake_batch as i32;
            let counts = map.countdowns.iter().map(Count::peek);
            if let Some(count) = counts.filter(|_| !frees).find(|c| !(1..=batch).contains(c)) {
                return broken(format!("nobody frees, and a queue waits for {count} tags"));
            }
        }
        Ok(())
    }

    /// Nothing can happen any more.
    fn rests(&self, config: &TagWait) -> bool {
        (0..self.tasks.len()).all(|task| self.ways(config, task) == 0)
    }

    /// What must hold then.
    fn rest(&self, config: &TagWait) -> Result<(), Verdict> {
        let asleep = |task: &&Task| task.phase == Phase::Asleep && !task.woken;
        let asleep = self.tasks.iter().filter(asleep).count();
        let batches = match config.only_frees {
            true => config.depth / config.wake_batch,
            false => u32::from(config.tasks),
        };
        let waiters = u32::from(config.tasks - config.holding);
        let free: u32 = self
            .maps
            .iter()
            .map(|map| map.depth - map.busy_count())
            .sum();
        if asleep as u32 <= waiters.saturating_sub(batches) {
            return Ok(());
        }
        let text = format!("{asleep} sleep for a tag, {free} are free");
        Err(Verdict::Stall(text))
    }
}
