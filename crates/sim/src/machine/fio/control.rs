//! How a thread of fio ends, waits for, paces and holds back others, and what ends it.
//!
//! State of options that few jobs have; other threads have none. After fio 3.33 backend.c
//! (__check_min_rate(), do_io()), io_u.c (lat_target_check() and its helpers), flow.c, libfio.c
//! fio_terminate_threads().

use blkmq::request::{Op, Status};
use blkmq::time::{Duration, SimTime};

use super::FioTask;
use super::steps::On;
use crate::cost::Step;
use crate::machine::cpu::Mode;
use crate::machine::cpus::Cpus;
use crate::machine::event::{Event, class};
use crate::machine::task::{Program, State, TaskId, Turn};
use crate::machine::tasks::Tasks;
use crate::plan::{ControlPlan, ExitWhat, FloorPlan, LatencyPlan, ThreadPlan};
use crate::recorder::{Recorder, TaskUsage};

/// A rate below the floor is no failure before this.
const SETTLE: Duration = Duration::from_secs(2);
/// A sleep is cut after so many whole seconds, to see whether the thread is to end (usec_sleep()).
const SLEEP_SECS: u64 = 1;

#[derive(Clone, Debug)]
pub(in crate::machine) struct Control {
    // Settings.
    pub(in crate::machine) plan: ControlPlan,

    // State.
    pub(in crate::machine) life: Life,
    /// fio_mark_td_terminate(): it ends as soon as it can, or does not start.
    pub(in crate::machine) terminated: bool,
    /// It sleeps, and has done so already in this pause.
    has_slept: bool,
    /// Completed I/Os and bytes, reads, writes and trims.
    pub(in crate::machine) ios: [u64; 3],
    pub(in crate::machine) bytes: [u64; 3],
    flow_ios: u64,
    floors: [Floor; 3],
    latency: Option<Search>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::machine) enum Life {
    Waits,
    Runs,
    Ended,
}

/// The last look at the rate of a direction.
#[derive(Clone, Copy, Default, Debug)]
struct Floor {
    at: SimTime,
    ios: u64,
    bytes: u64,
}

/// The search for the depth of a latency.
#[derive(Clone, Debug)]
struct Search {
    low: u32,
    high: u32,
    stable: u32,
    /// The window: when it began, I/Os before it, slow ones in it.
    since: SimTime,
    ios: u64,
    slow: u64,
    /// The last window counts.
    last: bool,
    /// Done as soon as nothing is in flight.
    quiesces: Option<Quiesce>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Quiesce {
    NewWindow,
    LastWindow,
}

impl Control {
    /// `None` if the thread has none of these options.
    pub(super) fn of(thread: &ThreadPlan) -> Option<Box<Control>> {
        let plan = thread.control.clone();
        let none = ControlPlan {
            group: plan.group,
            ..ControlPlan::default()
        };
        (plan != none).then(|| {
            Box::new(Control {
                latency: plan.latency.map(|_| Search::new(thread.iodepth)),
                plan,
                life: Life::Waits,
                terminated: false,
                has_slept: false,
                ios: [0; 3],
                bytes: [0; 3],
                flow_ios: 0,
                floors: [Floor::default(); 3],
            })
        })
    }

    /// The depth that it begins with.
    pub(super) fn depth(&self) -> Option<u32> {
        self.latency.is_some().then_some(1)
    }

    fn all_ios(&self) -> u64 {
        self.ios.iter().sum()
    }

    /// It starts at this time.
    pub(in crate::machine) fn starts(&mut self, at: SimTime) {
        self.life = Life::Runs;
        if let Some(search) = &mut self.latency {
            search.since = at;
        }
    }

    /// check_min_rate(): below the least that it must do.
    fn is_too_slow(&mut self, started: SimTime, now: SimTime) -> bool {
        let Some(plan) = self.plan.floor else {
            return false;
        };
        let mut fails = false;
        for way in 0..3 {
            let did = (self.ios[way], self.bytes[way]);
            if did.0 > 0 && now.since(started) >= SETTLE {
                fails |= self.floors[way].fails(plan, way, did, now);
            }
        }
        fails
    }
}

impl Floor {
    /// __check_min_rate() of a direction with so many I/Os and bytes.
    fn fails(
        &mut self,
        plan: FloorPlan,
        way: usize,
        (ios, bytes): (u64, u64),
        now: SimTime,
    ) -> bool {
        let least_bytes = [plan.bytes.read, plan.bytes.write, plan.bytes.trim][way];
        let least_ios = [plan.ios.read, plan.ios.write, plan.ios.trim][way];
        if least_bytes == 0 && least_ios == 0 {
            return false;
        }
        if self.ios > 0 {
            let spent = now.since(self.at).0 / 1_000_000;
            if spent == 0 || spent < plan.cycle.0 / 1_000_000 {
                return false;
            }
            let a_second = |count: u64| (u128::from(count) * 1000 / u128::from(spent)) as u64;
            let fails = match least_bytes {
                0 => a_second(ios - self.ios) < u64::from(least_ios),
                least => a_second(bytes - self.bytes) < least,
            };
            if fails {
                return true;
            }
        }
        *self = Floor {
            at: now,
            ios,
            bytes,
        };
        false
    }
}

impl Search {
    fn new(iodepth: u32) -> Search {
        Search {
            low: 1,
            high: iodepth,
            stable: 0,
            since: SimTime::ZERO,
            ios: 0,
            slow: 0,
            last: false,
            quiesces: None,
        }
    }

    /// lat_new_cycle().
    fn new_window(&mut self, now: SimTime, ios: u64) {
        (self.since, self.ios, self.slow) = (now, ios, 0);
    }

    /// __lat_target_failed(): a smaller depth. `None`: there is none.
    fn fails(&mut self, depth: u32) -> Option<u32> {
        if depth == 1 {
            return None;
        }
        self.high = depth;
        if depth == self.low {
            self.low -= 1;
        }
        self.stable = 0;
        self.quiesces = Some(Quiesce::NewWindow);
        Some(u32::midpoint(depth, self.low).max(1))
    }

    /// lat_target_success(): a larger depth, or the same.
    fn succeeds(&mut self, depth: u32, iodepth: u32) -> u32 {
        self.low = depth;
        if depth + 1 == self.high {
            self.stable += 1;
            if self.stable >= 3 {
                self.high += 1;
                self.stable = 0;
            }
        }
        let next = match self.high == iodepth {
            false => u32::midpoint(depth, self.high),
            true => depth.saturating_mul(2),
        };
        next.min(iodepth)
    }
}

impl FioTask {
    /// What these options do before the next I/O; `None`: nothing.
    #[cold]
    pub(super) fn controlled(&mut self, on: &mut On<'_>, at: SimTime) -> Option<Turn> {
        let control = self.control.as_mut().expect("the thread has some");
        let counts = at >= self.count_from;
        if counts && control.is_too_slow(self.started, at) {
            self.fails(on.recorder, Status::IoError);
            return Some(Turn::Again);
        }
        if let Some(plan) = control.plan.latency.filter(|_| counts)
            && self.searches(plan, at)
        {
            return Some(Turn::Again);
        }
        let control = self.control.as_mut().expect("the thread has some");
        let flow = control.plan.flow.filter(|_| self.held.is_none())?;
        if !on.flows.holds_back(flow, &mut control.flow_ios) {
            return None;
        }
        if flow.sleep > Duration::ZERO {
            self.resting = Some(flow.sleep);
        } else {
            on.cpus.charge_as(on.id, Step::FioGettime, Mode::User);
        }
        Some(Turn::Again)
    }

    /// The thread fails, although none of its I/Os did.
    fn fails(&mut self, recorder: &mut Recorder, status: Status) {
        if !self.failed {
            self.failed = true;
            recorder.thread_failed(self.thread, status);
        }
    }

    /// lat_target_check(). True: the thread waits for its I/Os in flight, or ends.
    fn searches(&mut self, plan: LatencyPlan, at: SimTime) -> bool {
        let control = self.control.as_mut().expect("the thread has some");
        let ios = control.all_ios();
        let search = control.latency.as_mut().expect("it searches");
        if search.quiesces.is_some() || at.since(search.since) < plan.window {
            return false;
        }
        let did = ios - search.ios;
        let in_time = u128::from(did.saturating_sub(search.slow)) * 100_000_000_000;
        if did == 0 || in_time < u128::from(did) * u128::from(plan.share) {
            let Some(depth) = search.fails(self.depth) else {
                return false;
            };
            self.depth = depth;
            self.resting = Some(Duration::ZERO);
            return true;
        }
        let before = self.depth;
        self.depth = search.succeeds(before, self.plan.iodepth);
        if self.depth == before && !plan.goes_on {
            if search.last {
                self.end_at = self.end_at.min(at);
                return true;
            }
            search.last = true;
            search.quiesces = Some(Quiesce::LastWindow);
            self.resting = Some(Duration::ZERO);
            return true;
        }
        search.new_window(at, ios);
        false
    }

    /// Nothing is in flight, and a search for a depth has waited for that.
    #[cold]
    pub(super) fn quiesced(&mut self, on: &mut On<'_>, at: SimTime) {
        let Some(control) = &mut self.control else {
            return;
        };
        let ios = control.all_ios();
        let Some(search) = &mut control.latency else {
            return;
        };
        let Some(quiesce) = search.quiesces.take() else {
            return;
        };
        search.new_window(at, ios);
        if quiesce == Quiesce::LastWindow {
            // reset_all_stats(): the runtime, too, starts over.
            let runtime = self.plan.runtime;
            (self.count_from, self.end_at) = (at, at + runtime);
            on.recorder.thread_counts_anew(self.thread, at);
            on.tasks[on.task].usage = TaskUsage::default();
            on.cpus[on.id].begin_task_usage();
        }
    }

    /// An I/O is complete.
    #[cold]
    pub(super) fn control_completed(
        &mut self,
        recorder: &mut Recorder,
        (op, bytes): (Op, u64),
        latency: Duration,
        counts: bool,
    ) {
        let control = self.control.as_mut().expect("the thread has some");
        let way = match op {
            Op::Read => 0,
            Op::Discard => 2,
            Op::Write | Op::WriteZeroes => 1,
            Op::Flush => return,
        };
        control.ios[way] += 1;
        control.bytes[way] += bytes;
        if !counts {
            return;
        }
        let slow = |most: Duration| most > Duration::ZERO && latency > most;
        let most = control.plan.max_latency;
        if most.is_some_and(|most| slow([most.read, most.write, most.trim][way])) {
            self.fails(recorder, Status::Timeout);
            return;
        }
        let Some(plan) = control.plan.latency.filter(|plan| slow(plan.target)) else {
            return;
        };
        let search = control.latency.as_mut().expect("it searches");
        if plan.share < 100_000_000_000 {
            search.slow += 1;
            return;
        }
        match search.fails(self.depth) {
            Some(depth) => {
                self.depth = depth;
                self.resting = Some(Duration::ZERO);
            }
            None => self.fails(recorder, Status::Timeout),
        }
    }

    /// How long it sleeps at once of a pause, and what is left then. `None`: it has slept already,
    /// and is to end.
    pub(super) fn sleeps(&mut self, time: Duration) -> Option<(Duration, Option<Duration>)> {
        let Some(control) = &mut self.control else {
            return Some((time, None));
        };
        if control.has_slept && control.terminated {
            control.has_slept = false;
            return None;
        }
        let second = Duration::from_secs(1).0;
        control.has_slept = time.0 / second > SLEEP_SECS;
        if !control.has_slept {
            return Some((time, None));
        }
        let at_once = SLEEP_SECS * second + time.0 % second;
        Some((Duration(at_once), Some(Duration(time.0 - at_once))))
    }

    /// The thread ends: others end with it, and those that wait for it start.
    #[cold]
    pub(super) fn control_ends(&mut self, on: &mut On<'_>) {
        let at = on.cpus.at(on.id);
        let control = self.control.as_mut().expect("the thread has some");
        control.life = Life::Ended;
        let plan = &control.plan;
        if let Some(flow) = plan.flow {
            on.flows.leave(flow, control.flow_ios);
        }
        if plan.is_awaited {
            let events = &mut on.cpus.core.events;
            events.push(at, class::TIMER, Event::Ended);
        }
        if let Some(what) = plan.ends {
            on.tasks.terminate(on.cpus, at, |other, life| match what {
                ExitWhat::Group => other.group == plan.group,
                ExitWhat::Stonewall => life == Life::Runs,
                ExitWhat::All => true,
            });
        }
    }
}

impl Tasks {
    /// fio_terminate_threads(): the threads of these plans and states end, or do not start.
    pub(in crate::machine) fn terminate(
        &mut self,
        cpus: &mut Cpus,
        at: SimTime,
        which: impl Fn(&ControlPlan, Life) -> bool,
    ) {
        for task in (0..self.count()).map(TaskId) {
            if let Program::Fio(Some(fio)) = &self[task].program
                && let Some(control) = &fio.control
                && which(&control.plan, control.life)
            {
                self.terminate_one(cpus, at, task);
            }
        }
    }

    /// fio_mark_td_terminate() of a thread with such options.
    pub(in crate::machine) fn terminate_one(&mut self, cpus: &mut Cpus, at: SimTime, task: TaskId) {
        let asleep = self[task].state == State::Sleeping;
        let Program::Fio(Some(fio)) = &mut self[task].program else {
            return;
        };
        let Some(control) = &mut fio.control else {
            return;
        };
        let runs = control.life == Life::Runs && !control.terminated;
        control.terminated = true;
        if !runs {
            return;
        }
        fio.end_at = fio.end_at.min(at);
        // It sleeps until its startdelay is over, and never starts.
        if asleep && fio.started > at {
            (fio.started, fio.count_from) = (at, at);
            let cpu = self[task].cpu;
            self.wake(cpus, task, cpu, at);
        }
    }
}
