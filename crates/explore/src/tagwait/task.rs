//! One task: takes a tag, waits for it in line if there is none, and gives it back.

use blkmq::env::{Count, Cpu, Lock, Solo};
use blkmq::request::CpuId;
use blkmq::rules::Fix;
use blkmq::sbitmap::{Get, GetStep, Put, PutStep, Sbitmap};
use blkmq::tags::Waiter;

use super::{State, TagWait};

/// What a task does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Phase {
    /// Begin with the next tag, or end.
    Idle,
    /// Look for a tag.
    Search(Try),
    /// Stand in line.
    Add,
    /// Count the entry.
    CountIn,
    /// Go on once it is woken.
    Asleep,
    /// Leave the line.
    Leave,
    /// Count the entry out.
    CountOut,
    /// At another map now: wake another one of the old map.
    PassOn,
    /// Give the tag back.
    Holds,
    /// Give it back, step by step.
    Frees,
}

/// Which attempt a search is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Try {
    /// The first one, or the one behind the queue's run.
    Early,
    /// With its entry in line.
    InLine,
}

/// A task.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Task {
    pub(super) phase: Phase,
    /// Tags still to be taken.
    pub(super) rounds: u8,
    /// A wake-up has come since it stood in line.
    pub(super) woken: bool,
    /// Where it looks for a tag, or has it from.
    pub(super) map: usize,
    /// The map that it left.
    left: usize,
    queue: Option<u8>,
    bit: Option<u32>,
    get: Option<Get>,
    put: Option<Put>,
    lock: Option<u32>,
}

impl Task {
    pub(super) fn new(rounds: u8) -> Task {
        Task {
            phase: Phase::Idle,
            rounds,
            woken: false,
            map: 0,
            left: 0,
            queue: None,
            bit: None,
            get: None,
            put: None,
            lock: None,
        }
    }

    /// It has not begun.
    pub(super) fn is_new(&self, config: &TagWait) -> bool {
        self.phase == Phase::Idle && self.rounds == config.rounds
    }

    /// The tag that is taken because of it.
    pub(super) fn holds(&self) -> Option<u32> {
        self.bit
    }

    pub(super) fn is_searching(&self) -> bool {
        self.get.is_some()
    }

    /// It deals out a wake-up of this map.
    pub(super) fn is_freeing(&self, map: usize) -> bool {
        let of = if self.phase == Phase::PassOn {
            self.left
        } else {
            self.map
        };
        self.put.is_some() && of == map
    }

    /// In the words of a schedule.
    pub(super) fn tells(&self) -> String {
        let part = match (self.get, self.put) {
            (Some(get), _) => format!(" {get:?}"),
            (_, Some(put)) => format!(" {put:?}"),
            _ => String::new(),
        };
        format!("{:?}{part}", self.phase)
    }
}

impl State {
    pub(super) fn step(&mut self, config: &TagWait, task: usize, way: u8, cpu: &mut Cpu) {
        let this = self.tasks[task];
        let map = &self.maps[this.map];
        match this.phase {
            Phase::Idle => {
                self.tasks[task].rounds -= 1;
                self.tasks[task].phase = Phase::Search(Try::Early);
                self.search(task, cpu);
            }
            Phase::Search(_) => self.search(task, cpu),
            Phase::Add => {
                self.tasks[task].woken = false;
                let ws = &map.wait[usize::from(this.queue.expect("it chose a line"))];
                ws.queue.acquire(cpu);
                let waiter = Waiter::Task(cpu.task);
                ws.edit(cpu, |entries| entries.push(waiter));
                ws.queue.release(cpu);
                self.tasks[task].phase = Phase::CountIn;
            }
            Phase::CountIn => {
                map.ws_active.add(cpu, 1);
                self.tasks[task].phase = Phase::Search(Try::InLine);
            }
            Phase::Asleep => {
                self.leave(task, cpu);
                let this = &mut self.tasks[task];
                this.woken = false;
                this.left = this.map;
                if way == 1 {
                    this.map = 1 - this.map;
                }
            }
            Phase::Leave => self.leave(task, cpu),
            Phase::CountOut => self.count_out(config, task, cpu),
            Phase::PassOn | Phase::Frees => self.free(config, task, cpu),
            Phase::Holds => {
                let bit = this.bit.expect("it has a tag");
                self.tasks[task].put = Some(Put::one(bit, CpuId(0)));
                self.tasks[task].phase = Phase::Frees;
                self.free(config, task, cpu);
            }
        }
    }

    fn search(&mut self, task: usize, cpu: &mut Cpu) {
        let this = &mut self.tasks[task];
        let map = &self.maps[this.map];
        if let Some(word) = this.lock.take() {
            map.words[word as usize].swap.acquire(cpu);
        }
        let get = this.get.get_or_insert_with(|| Get::start(map, cpu, None));
        match get.step(map, cpu) {
            GetStep::Step => {}
            GetStep::Lock(word) => this.lock = Some(word),
            GetStep::GotRun { .. } => unreachable!("tags are taken one by one"),
            GetStep::Got(bit) => {
                this.get = None;
                this.bit = Some(bit);
                let waits = this.phase == Phase::Search(Try::InLine);
                this.left = this.map;
                this.phase = if waits { Phase::Leave } else { Phase::Holds };
            }
            GetStep::Full => {
                this.get = None;
                if this.phase == Phase::Search(Try::InLine) {
                    this.phase = Phase::Asleep;
                    return;
                }
                let next = &mut self.next_queue[this.map];
                this.queue = Some(*next);
                *next = (*next + 1) % map.wait.len() as u8;
                this.phase = Phase::Add;
            }
        }
    }

    fn leave(&mut self, task: usize, cpu: &mut Cpu) {
        let this = &mut self.tasks[task];
        let line = usize::from(this.queue.take().expect("it stands in line"));
        let ws = &self.maps[this.map].wait[line];
        ws.queue.acquire(cpu);
        let waiter = Waiter::Task(cpu.task);
        ws.edit(cpu, |entries| entries.retain(|&entry| entry != waiter));
        ws.queue.release(cpu);
        this.phase = Phase::CountOut;
    }

    fn count_out(&mut self, config: &TagWait, task: usize, cpu: &mut Cpu) {
        let this = &mut self.tasks[task];
        let left = core::mem::take(&mut this.left);
        self.maps[left].ws_active.add(cpu, -1);
        if this.bit.is_some() {
            this.phase = Phase::Holds;
        } else if left == this.map || !config.rules.fixes.has(Fix::PassedOnWake) {
            this.phase = Phase::Search(Try::Early);
        } else {
            this.left = left;
            this.put = Some(Put::wake(1));
            this.phase = Phase::PassOn;
        }
    }

    fn free(&mut self, config: &TagWait, task: usize, cpu: &mut Cpu) {
        let this = &mut self.tasks[task];
        let of = if this.phase == Phase::PassOn {
            this.left
        } else {
            this.map
        };
        let map: &Sbitmap<Solo> = &self.maps[of];
        if let Some(queue) = this.lock.take() {
            map.wait[queue as usize].queue.acquire(cpu);
        }
        let put = this.put.as_mut().expect("it gives a tag back");
        let step = put.step(map, config.rules.wake_scan, cpu, |_, _, _| {});
        if put.bit_in_hand().is_none() {
            this.bit = None;
        }
        match step {
            PutStep::Step => {}
            PutStep::Lock(queue) => this.lock = Some(queue),
            PutStep::Done => {
                this.put = None;
                this.left = 0;
                this.phase = match this.phase {
                    Phase::PassOn => Phase::Search(Try::Early),
                    _ => Phase::Idle,
                };
                if this.phase == Phase::Idle {
                    this.map = 0;
                }
            }
        }
    }
}
