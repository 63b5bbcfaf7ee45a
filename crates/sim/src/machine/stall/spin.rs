//! Stall report of running tasks, of pollers with the queues that they poll and do not poll, and of
//! tasks that sleep for a tag.

use std::collections::BTreeSet;

use blkmq::queue::RequestQueue;
use blkmq::request::{HctxId, QueueId};
use blkmq::sbitmap::Sbitmap;
use blkmq::waiter::Waiter;

use super::super::cpu::Wait;
use super::super::fio::Place;
use super::super::task::{Program, State, Task, TaskId};
use super::View;
use super::tokens::token_waits;

impl View<'_> {
    pub(super) fn busy_tasks(&self) -> Vec<String> {
        let runnable = self
            .tasks
            .iter()
            .filter(|(_, task)| task.state == State::Runnable);
        let line = |(id, task): (TaskId, &Task)| {
            let name = self.who(id);
            format!(
                "{name} {} on CPU {}",
                self.what_it_does(id, task),
                task.cpu.0
            )
        };
        runnable.map(line).collect()
    }

    fn what_it_does(&self, id: TaskId, task: &Task) -> String {
        let cpu = &self.cpus[task.cpu];
        if cpu.current != Some(id) {
            return "waits for its turn".to_owned();
        }
        if let Wait::Spin(lock) = cpu.levels[0].wait {
            return format!("spins for {lock:?}");
        }
        match &task.program {
            Program::Fio(Some(fio)) if fio.polls() => {
                let looked_at: BTreeSet<Place> = fio.polled.places().collect();
                if looked_at.is_empty() {
                    return "polls, but knows of no I/O that is issued".to_owned();
                }
                let hctxs = looked_at
                    .iter()
                    .map(|&(queue, hctx)| self.hctx_name(queue, hctx));
                format!("polls {}", hctxs.collect::<Vec<_>>().join(", "))
            }
            Program::Kworker(worker) => worker.describe(),
            Program::BioWorker(number) => self.bio_workers.describe(*number),
            Program::Fio(_)
            | Program::IoWorker(_)
            | Program::Replay(_)
            | Program::Writer(_)
            | Program::Dmsetup(_)
            | Program::Mapper(_) => "runs".to_owned(),
        }
    }

    fn hctx_name(&self, queue: QueueId, hctx: HctxId) -> String {
        let disk = self.layer.name(queue);
        let disk = disk.map_or(String::new(), |name| format!("{name} "));
        format!("{disk}hctx {}", hctx.0)
    }

    /// Tasks that wait for a tag of this queue's maps, and hctxs that wait for a token.
    pub(super) fn tag_waits_of(&self, queue: &RequestQueue) -> Vec<String> {
        let driver = self.layer.mq.set_of(queue.id).driver.iter();
        let first = self
            .layer
            .mq
            .queues
            .iter()
            .find(|other| other.set == queue.set);
        // A set's maps are reported with its first queue.
        let driver = driver.filter(|_| first.is_some_and(|first| first.id == queue.id));
        let driver = driver
            .enumerate()
            .map(|(index, map)| ("driver", index, map));
        let sched = queue.sched.iter().enumerate();
        let sched = sched.map(|(index, map)| ("scheduler", index, map));
        let line = |(kind, index, map): (&str, usize, &Sbitmap)| {
            let hctx = self.hctx_name(queue.id, HctxId(index as u16));
            let entries = map
                .wait
                .iter()
                .flat_map(|ws| ws.queue.inspect(|q| q.entries.clone()));
            let tasks = entries.filter_map(|entry| match entry {
                Waiter::Task(task) => Some(self.who(TaskId(task.0))),
                Waiter::Hctx { .. } => None,
            });
            tasks
                .map(move |task| format!("{task} sleeps for a {kind} tag of {hctx}"))
                .collect::<Vec<_>>()
        };
        let tokens = token_waits(queue, |hctx| self.hctx_name(queue.id, hctx));
        driver.chain(sched).flat_map(line).chain(tokens).collect()
    }

    pub(super) fn who(&self, task: TaskId) -> String {
        match &self.tasks[task].program {
            Program::Fio(Some(fio)) => format!("thread {}.{}", fio.plan.name, fio.plan.clone),
            Program::Fio(None) => "a thread that takes its turn".to_owned(),
            Program::Kworker(_) => "kblockd's worker".to_owned(),
            Program::IoWorker(worker) => {
                format!("io_uring's worker of {}", self.who(worker.owner))
            }
            Program::Replay(process) => {
                let replay = self.replay.expect("a captured process is replayed");
                replay.name(process)
            }
            Program::Writer(_) => "the process that changes the scheduler".to_owned(),
            Program::Dmsetup(_) => "dmsetup".to_owned(),
            Program::Mapper(_) => "kdmwork, which maps requests".to_owned(),
            Program::BioWorker(number) => {
                format!("a worker, which {}", self.bio_workers.describe(*number))
            }
        }
    }
}
