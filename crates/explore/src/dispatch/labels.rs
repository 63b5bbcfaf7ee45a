//! A schedule of `DispatchLabels`, step by step with the real paths: each label that touches what
//! others see is a step, as a run of the simulator has it.
//!
//! What a step does not show must be as it was before. What a label of a path depends on and the
//! specification leaves open - how many requests a pass may pick, whether a run is left to
//! kblockd - is taken from the steps that follow. Read next: `labels/process.rs` for how a process
//! goes on.

mod process;

use blkmq::elevator::series::shared::{BUCKETS, DISPATCHING, INSERTING};
use blkmq::env::{Count, Solo};
use blkmq::path::{Frame, Label, RunPath};
use blkmq::queue::BlkMq;
use blkmq::request::{HctxId, QueueId, RequestId};
use blkmq::rules::{BucketSignal, EmptyRun, Insertion};
use blkmq::schedule::view::DISPATCH as OBSERVED;
use blkmq::schedule::{Argument, Schedule, Step};

use super::project::{bits, bucket, queued, seq, side_list};
use super::setting::Setting;
use crate::spec::{Constants, ENDS_WELL, Replayed, SettingError, as_shown, flag};
use crate::tlc::Verdict;
use process::{Merging, Place, Process};

/// Its name in schedules.
pub const SPEC: &str = "DispatchLabels";

/// Most CPUs of a run, and most requests at once.
const CPUS_MAX: u8 = 64;
const REQUESTS_MAX: u8 = 192;

/// Constants of the specification.
const CONSTANTS: [&str; 8] = [
    "Cpus",
    "PerCpu",
    "Insertion",
    "Gating",
    "SeesSide",
    "Reruns",
    "Delayed",
    "Rechecks",
];

/// Steps that a CPU may take ahead of its time.
const AHEAD: [&str; 10] = [
    "Submit",
    "MergeAsk",
    "Glance",
    "GlanceSide",
    "Recheck",
    "LeaveRun",
    "HasWork",
    "HasSide",
    "Offer",
    "DelayRuns",
];

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    New,
    Live,
    Device(RequestId),
}

/// A schedule that is followed.
#[derive(Debug)]
struct Follower<'a> {
    setting: Setting,
    steps: &'a [Step],
    /// Which of them is being taken.
    at: usize,
    mq: BlkMq<Solo>,
    processes: Vec<Process>,
    requests: Vec<Life>,
    /// Who has dd->lock.
    owner: Option<usize>,
    /// Who dropped it last, until its next step in time.
    late: Option<usize>,
    armed: bool,
    /// How often the work item was asked for.
    kicks: usize,
    /// Labels of the step under way.
    log: Vec<Label>,
}

/// The constants of a schedule of [`SPEC`], and whether a run that found nothing looks again.
pub fn run_setting(schedule: &Schedule) -> Result<(Setting, bool), SettingError> {
    let constants = Constants::among(&schedule.settings, &CONSTANTS)?;
    // The end of a request runs nothing here.
    constants.choice("Reruns", &[("FALSE", ())])?;
    let setting = Setting::sized(&constants, CPUS_MAX, REQUESTS_MAX)?;
    Ok((setting, constants.flag("Rechecks")?))
}

/// Takes the steps of a schedule of [`SPEC`]. An error: its constants are none.
pub fn follow(schedule: &Schedule) -> Result<Replayed, SettingError> {
    let (setting, rechecks) = run_setting(schedule)?;
    let mut mq = setting.build();
    let queue = &mut mq.queues[0];
    if !rechecks {
        queue.settings.rules.empty_run = EmptyRun::Return;
    }
    queue.hctxs[0].dispatch_busy = Count::new(0);
    let mut follower = Follower {
        steps: &schedule.steps,
        at: 0,
        mq,
        processes: (0..setting.processes()).map(Process::new).collect(),
        requests: vec![Life::New; usize::from(setting.requests())],
        owner: None,
        late: None,
        armed: false,
        kicks: 0,
        log: Vec::new(),
        setting,
    };
    let mut replayed = Replayed {
        steps: Vec::new(),
        verdict: Verdict::Holds,
        rejected: None,
        left: Vec::new(),
    };
    let mut shown = follower.observe();
    for (index, step) in schedule.steps.iter().enumerate() {
        follower.at = index;
        follower.log.clear();
        let taken = follower.take(step);
        if let Err(why) =
            taken.and_then(|()| as_shown(&OBSERVED, step, &follower.observe(), &mut shown))
        {
            replayed.rejected = Some(why);
            return Ok(replayed);
        }
        replayed.steps.push((step.clone(), follower.log.clone()));
        // Where a request may be left in a bucket, the next submission goes on with it.
        if follower.stalls() && !follower.leaves_requests() {
            break;
        }
    }
    follower.judge(schedule, &shown, &mut replayed);
    Ok(replayed)
}

impl Follower<'_> {
    /// Something is left, and nobody brings it on.
    fn stalls(&self) -> bool {
        let device = |life: &Life| matches!(life, Life::Device(_));
        !self.armed
            && self.processes.iter().all(Process::is_idle)
            && !self.requests.iter().any(device)
            && !self.is_done()
    }

    fn is_done(&self) -> bool {
        self.requests.iter().all(|life| *life == Life::New)
    }

    /// A posting of the series that may leave a request until the next submission.
    fn leaves_requests(&self) -> bool {
        match self.setting.insertion {
            Insertion::UnderLock | Insertion::SideLists => false,
            Insertion::Buckets(signal) => signal != BucketSignal::MarkAfter,
        }
    }

    /// Behind the last step, or the first from which nobody goes on.
    fn judge(&self, schedule: &Schedule, shown: &[String], replayed: &mut Replayed) {
        if self.stalls() {
            replayed.verdict = Verdict::Violated("NoStall".to_owned());
            let shown = OBSERVED.iter().zip(shown);
            replayed.left = shown
                .map(|(name, value)| format!("{name} = {value}"))
                .collect();
        } else if self.is_done() && schedule.shows == ENDS_WELL {
            replayed.verdict = Verdict::Violated("NeverAllDone".to_owned());
        }
    }

    /// Takes the step, if it is possible and ends as it is named.
    fn take(&mut self, step: &Step) -> Result<(), String> {
        let impossible = |why: String| format!("`{step}` is not possible: {why}");
        let (owner, process) = (self.owner, self.process(step).map_err(impossible)?);
        let taken = match (step.action.as_str(), &step.arguments[..], process) {
            ("Submit", [_, (_, Argument::Number(request))], Some(p)) => self.submit(p, *request),
            ("Complete", [(_, Argument::Number(request))], None) => self.complete(*request),
            ("Fire", [], None) => self.fire(),
            (name, [_], Some(p)) => self.go(p, name),
            _ => Err("it is applied to something else".to_owned()),
        };
        taken.map_err(impossible)?;
        // A CPU that has dropped the lock is ahead of others until it does something in time.
        match (owner, self.owner) {
            (Some(_), None) => self.late = owner,
            (None, Some(_)) => self.late = None,
            _ => {
                let in_time = !AHEAD.contains(&step.action.as_str());
                if in_time && process.is_some() && self.late == process {
                    self.late = None;
                }
            }
        }
        Ok(())
    }

    /// The process that a step names, counted from 0.
    fn process(&self, step: &Step) -> Result<Option<usize>, String> {
        match step.arguments.first() {
            Some((name, Argument::Number(number))) if name == "process" => {
                let known = (*number as usize) <= self.processes.len();
                known
                    .then(|| Some(*number as usize - 1))
                    .ok_or_else(|| format!("there is no process {number}"))
            }
            _ => Ok(None),
        }
    }

    fn life(&mut self, number: u32) -> Result<&mut Life, String> {
        let life = self.requests.get_mut(number as usize - 1);
        life.ok_or_else(|| format!("there is no request {number}"))
    }

    /// One more request of the list that a CPU is about to insert.
    fn submit(&mut self, process: usize, number: u32) -> Result<(), String> {
        if process >= usize::from(self.setting.cpus) {
            return Err("it is no CPU".to_owned());
        }
        let life = self.life(number)?;
        if *life != Life::New {
            return Err(format!("the request is {life:?}"));
        }
        *life = Life::Live;
        let process = &mut self.processes[process];
        if !process.stack.is_empty() || process.merging != Merging::No {
            return Err("something is under way".to_owned());
        }
        process.batch.push(number as u8 - 1);
        Ok(())
    }

    /// kblockd begins with the work item.
    fn fire(&mut self) -> Result<(), String> {
        let kblockd = usize::from(self.setting.kblockd());
        if !self.armed {
            return Err("no work item is to run".to_owned());
        }
        if !self.processes[kblockd].is_idle() {
            return Err("the work item runs".to_owned());
        }
        self.armed = false;
        let run = Frame::Run(RunPath::work(QueueId(0), HctxId(0)));
        self.processes[kblockd].stack.push(run);
        self.run_silent(kblockd)
    }

    fn complete(&mut self, number: u32) -> Result<(), String> {
        let life = self.life(number)?;
        let Life::Device(slot) = *life else {
            return Err(format!("the request is {life:?}"));
        };
        *life = Life::New;
        self.end(slot)
    }

    /// A step of a process.
    fn go(&mut self, p: usize, name: &str) -> Result<(), String> {
        if !self.processes[p].batch.is_empty() {
            self.begin(p)?;
        }
        match name {
            "MergeAsk" | "MergeLock" | "Merge" => return self.merge(p, name),
            "Offer" => return self.offer(p),
            "LeaveRun" => return self.leave(p),
            _ => {}
        }
        self.run_up_to_step(p)?;
        let place = self.place(p);
        let stands = match place {
            Place::Tries => ["TryLock", "TryLate"].contains(&name),
            Place::Step(here) => here == name,
            Place::Elsewhere => false,
        };
        if !stands {
            return Err(format!("the process is at {place}"));
        }
        match name {
            "TryLock" => self.try_lock(p)?,
            "TryLate" => self.try_late(p)?,
            "Lock" | "PickLock" => self.grant(p)?,
            _ => {
                self.label(p)?;
            }
        }
        self.run_silent(p)
    }

    /// A look for a merge, which finds none.
    fn merge(&mut self, p: usize, name: &str) -> Result<(), String> {
        let process = &mut self.processes[p];
        if p >= usize::from(self.setting.cpus) || !process.stack.is_empty() {
            return Err("something is under way".to_owned());
        }
        match (name, process.merging) {
            ("MergeAsk", Merging::No) => process.merging = Merging::Asks,
            ("MergeLock", Merging::No | Merging::Asks) => {
                process.merging = Merging::Looks;
                self.grant(p)?;
            }
            ("Merge", Merging::Looks) => {
                process.merging = Merging::No;
                self.drop_lock(p);
            }
            (_, at) => return Err(format!("it looks for a merge: {at:?}")),
        }
        Ok(())
    }

    /// The lock seems taken: its release is on the way, or somebody stands in line.
    fn try_late(&mut self, p: usize) -> Result<(), String> {
        let waits = (0..self.processes.len()).any(|other| other != p && self.waits(other));
        let late = self.late.is_some_and(|late| late != p);
        if self.owner.is_some() || !(waits || late) {
            return Err("the lock is free to everybody".to_owned());
        }
        self.tried(p, false);
        Ok(())
    }

    /// Picks of the pass that begins, if it ends because it may have no more.
    fn picks_in_pass(&self, p: usize) -> Option<u32> {
        let mine = self.steps[self.at..].iter().filter(|step| {
            let process = step.arguments.first();
            process.is_some_and(|(name, number)| {
                name == "process" && *number == Argument::Number(p as u32 + 1)
            })
        });
        let (mut picks, mut full) = (0, false);
        for step in mine {
            match step.action.as_str() {
                "Pick" => (picks, full) = (picks + 1, true),
                "OpenGate" => {}
                "Offer" => return full.then_some(picks),
                "HasWork" | "HasSide" | "Gate" | "ShutGate" | "PickLock" | "TakeSide"
                | "InsertSide" => {
                    full = false;
                }
                _ => return None,
            }
        }
        None
    }

    /// The run that comes behind the insertion that begins is left to kblockd.
    fn leaves_run(&self, p: usize) -> bool {
        let mut mine = self.steps[self.at..].iter().filter(|step| {
            let process = step.arguments.first();
            process.is_some_and(|(name, number)| {
                name == "process" && *number == Argument::Number(p as u32 + 1)
            })
        });
        let ends = ["LeaveRun", "HasWork", "Submit", "MergeAsk", "MergeLock"];
        let end = mine.find(|step| ends.contains(&step.action.as_str()));
        end.is_some_and(|step| step.action == "LeaveRun")
    }

    fn observe(&self) -> [String; OBSERVED.len()] {
        let q = self.mq.queue(QueueId(0));
        let numbers = |requests: Vec<u8>| {
            let numbers = requests.iter().map(|request| (request + 1).to_string());
            numbers.collect::<Vec<_>>().join(", ")
        };
        let tuple = |requests: Vec<u8>| format!("<<{}>>", numbers(requests));
        let buckets = (0..self.setting.cpus).map(|cpu| tuple(bucket(q, cpu)));
        let device = (0..self.setting.requests())
            .filter(|&request| matches!(self.requests[usize::from(request)], Life::Device(_)));
        let bit = |mask: u64| flag(bits(q) & mask != 0);
        [
            self.owner.map_or(0, |owner| owner + 1).to_string(),
            tuple(queued(q)),
            format!("<<{}>>", buckets.collect::<Vec<_>>().join(", ")),
            tuple(side_list(q)),
            seq(q).to_string(),
            bit(DISPATCHING),
            bit(INSERTING),
            bit(BUCKETS),
            flag(self.armed),
            format!("{{{}}}", numbers(device.collect())),
        ]
    }
}
