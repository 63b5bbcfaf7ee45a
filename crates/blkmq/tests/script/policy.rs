//! Scripts about the decisions of a scheduler with one lock: `queue scheduler=mq-deadline ...`.
//!
//! One scheduler, no tags, no CPUs: insert, merge, dispatch, complete, and a clock. It advances
//! only if a command moves it; a timer that is armed expires when it is passed. Every command
//! checks all structures afterwards.
//!
//! ```text
//! queue [scheduler=mq-deadline] [rules=v6.1] [hz=1000] [nr_requests=128] [ATTRIBUTE=VALUE]
//!       [LIMIT=VALUE] [nomerges=0] [rotational=0] [ranges=0-1000,1000-2000] [runs=1]
//! group PATH [weight=100]             a cgroup; before all but others of its kind
//! task NAME [prio=CLASS[/LEVEL]] [group=PATH] [pid=N]    likewise; others have defaults
//! task NAME shares=OTHER              it has the I/O context of another one (CLONE_IO)
//! move NAME GROUP                     its later bios belong to that group
//! set NAME=VALUE ...                  attributes, limits, nomerges; refusals are printed
//! insert [head] [kworker=PID] REQUEST, REQUEST ...
//!                                     by its task, or by that worker of kblockd: prints M for a
//!                                     request that another one absorbed, "handed" for one that
//!                                     goes to the driver by itself, as `bio` does
//! bio REQUEST                         prints M or F and what it joined, or "no merge"
//! submit REQUEST, REQUEST ...         offers it for merging, inserts it if it did not merge
//! dispatch [N] [waited=2ms]           prints D, or "-" for a call that returns nothing
//! serve N [each=1ms]                  so many dispatches, each completed so much later; a call
//!                                     without result waits for the timer. Prints served tasks
//! drain                               dispatches until a call returns nothing
//! pull N                              so many dispatches at once, printed as those of `serve`
//! complete REQUEST, REQUEST ... | all the device completes; prints "run" if queues must be run
//! exit NAME                           the last task of this I/O context exits
//! rotational 0 | 1                    a write to queue/rotational
//! requeue REQUEST                     the driver gives it back, to be inserted at head
//! tick 20ms | at 500ms                moves the clock, in whole ticks
//! wait 1500us                         moves the clock, to the ns
//! log on | off | WORD ...             messages of the scheduler in blktrace are printed: all, or
//!                                     lines that contain one of these words
//! depth REQUEST                       prints the shallow depth of such an allocation
//! nr_requests N                       a write to queue/nr_requests
//! has_work                            prints yes or no
//! show state | queues | NAME          also of mq-deadline: show batch | queued | counts
//! ```
//!
//! A scheduler of the single-queue path is called as that path does: a request is set up before it
//! is inserted, and the driver looks at it when it is dispatched. If the queue must be run at once,
//! that is printed, and followed by as many dispatch calls as `runs` says; H is a request that was
//! handed over within an insertion.
//!
//! ```text
//! may REQUEST                         prints whether limits apply to such an allocation
//! alloc REQUEST, REQUEST ...          sets it up, no more
//! add REQUEST, REQUEST ...            inserts those that were set up
//! free REQUEST, REQUEST ...           frees it instead
//! dispatch N held                     the driver does not look at it yet
//! activate REQUEST, REQUEST ...       now it does
//! requeue REQUEST                     it goes back to the driver's list, and waits there for that
//! force                               all that is queued goes, as for a barrier
//! ```
//!
//! A REQUEST is `OP SECTOR+SECTORS [by=TASK] [prio=CLASS[/LEVEL]] [group=PATH] [segments=N]
//! [times=N] [gap=N] [nomerge] [sync] [noidle] [fua] [meta] [bare]`, with OP one of r, w, d
//! (discard), z (write-zeroes). With `times` there are so many, each `gap` sectors after the one
//! before. A bare one was allocated for the flush machine, without the scheduler's data of a
//! request.

mod around;
mod arrive;
mod complete;
mod create;
mod dispatch;
mod limits;
mod parse;
mod show;
mod single;

use super::World;
use around::{Around, span};
use blkmq::elevator::{After, CalledOn, Elevator, Hooks, Now, Scheduler, SchedulerSettings};
use blkmq::env::Cpu;
use blkmq::queue::QueueSettings;
use blkmq::request::{RequestId, RequestPool};
use blkmq::rules::{NoMerges, QueueLimits};
use blkmq::time::{Jiffies, SimTime};
use parse::yes_no;

/// One scheduler and the requests around it.
pub(crate) struct PolicyQueue {
    pool: RequestPool,
    elevator: Elevator,
    cpu: Cpu,
    limits: QueueLimits,
    nomerges: NoMerges,
    around: Around,
    settings: QueueSettings,
    scheduler: SchedulerSettings,
    /// Attributes of the first line.
    attributes: Vec<String>,
    nr_requests: u32,
    /// The most that nr_requests was: the tag map has the word size of that.
    map_requests: u32,
    /// Dispatch calls of a run at once.
    runs: u32,
    in_device: Vec<RequestId>,
    /// Requests that the driver has not looked at, and those that are set up and not inserted.
    held: Vec<RequestId>,
    allocated: Vec<RequestId>,
    completed: [u32; 3],
}

type Printed = Result<Vec<String>, String>;

impl World for PolicyQueue {
    fn command(&mut self, line: &str) -> Printed {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let printed = match word {
            "group" => self.around.add_group(rest).and_then(|()| self.begin_anew()),
            "task" => self.around.add_task(rest).and_then(|()| self.begin_anew()),
            "move" => self.around.move_task(rest).map(|()| Vec::new()),
            "submit" => self.submit(rest),
            "serve" => self.serve(rest),
            "pull" => self.pull(rest),
            "exit" => Ok(self.exit(rest)),
            "rotational" => {
                self.call(|policy, _, _| policy.rotates(rest == "1"));
                Ok(Vec::new())
            }
            "wait" => span(rest).map(|span| self.move_clock(self.around.time + span)),
            "log" => Ok(self.listen(rest)),
            "set" => Ok(rest
                .split_whitespace()
                .filter_map(|pair| self.set(pair).err())
                .collect()),
            "insert" => self.insert(rest),
            "bio" => self.bio(rest),
            "may" => self.may(rest),
            "alloc" => self.alloc(rest),
            "add" => self.add(rest),
            "free" => self.free(rest),
            "activate" => self.activate(rest),
            "force" => Ok(self.force()),
            "dispatch" => self.dispatch(rest),
            "drain" => Ok(self.drain()),
            "complete" => self.complete(rest),
            "requeue" => self.requeue(rest),
            "tick" => self
                .millis(rest)
                .map(|span| self.move_clock_to_tick(self.clocks().tick + span)),
            "at" => self
                .millis(rest)
                .map(|instant| self.move_clock_to_tick(instant)),
            "depth" => self.depth(rest),
            "nr_requests" => self.write_nr_requests(rest),
            "has_work" => Ok(vec![yes_no(self.look(Scheduler::has_work))]),
            "show" => self.show(rest),
            _ => Err(format!("unknown command {word:?}")),
        };
        self.elevator.check(&self.pool);
        let mut lines = self.around.take_printed();
        lines.extend(printed?);
        Ok(lines)
    }
}

impl PolicyQueue {
    /// A call of the scheduler, with its results.
    fn call<R>(
        &mut self,
        change: impl FnOnce(&mut dyn Scheduler, &mut RequestPool, Now) -> R,
    ) -> R {
        let (now, pool, around) = (self.clocks(), &mut self.pool, &mut self.around);
        self.elevator.revise(&mut self.cpu, |policy| {
            let result = change(policy, pool, now);
            around.after_call(policy);
            result
        })
    }

    /// A merge or an insertion, during which a scheduler of the multi-queue path may ask for a run.
    fn arrive<R>(
        &mut self,
        change: impl FnOnce(&mut dyn Scheduler, &mut RequestPool, Now) -> R,
    ) -> R {
        let on = CalledOn {
            kworker: self.cpu.kworker,
            ..CalledOn::default()
        };
        let result = self.call(|policy, pool, now| {
            policy.called_on(on);
            change(policy, pool, now)
        });
        if !self.is_single() && self.call(|policy, _, _| policy.take_run()) {
            self.around.print("run".to_owned());
        }
        result
    }

    fn hooks(&self) -> Hooks {
        let info = self.scheduler.kind().info();
        info.expect("scripts are about a scheduler").hooks
    }

    fn after(&mut self, after: After) {
        if after == After::RunQueues {
            self.around.print("run".to_owned());
        }
    }

    fn clocks(&self) -> Now {
        self.around.now()
    }

    fn look<R>(&self, look: impl FnOnce(&dyn Scheduler) -> R) -> R {
        let seen = self.elevator.inspect(look);
        seen.expect("scripts are about a scheduler")
    }

    fn move_clock_to_tick(&mut self, tick: Jiffies) -> Vec<String> {
        self.move_clock(Now::at_tick(tick, self.around.hz).time)
    }

    /// Timers on the way expire.
    fn move_clock(&mut self, to: SimTime) -> Vec<String> {
        assert!(to >= self.around.time, "the clock does not go back");
        while let Some(timer) = self.around.take_expired(to) {
            let after = self.call(|policy, pool, now| policy.timer(pool, timer, now));
            self.after(after);
        }
        self.around.time = to;
        Vec::new()
    }
}
