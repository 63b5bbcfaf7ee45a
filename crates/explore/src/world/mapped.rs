//! The surroundings of a mapped queue: events of its target, second completions, and the status
//! that each bio may end with.
//!
//! One context sends the target all events, as each is one critical section: those of dmsetup and
//! multipathd, of the worker of kmpath_handlerd, of the timer of held requests.

use super::{Context, Fixed, Outside, Pending, Role, Slot, World};
use crate::config::{Mutant, Paths};
use blkmq::dm::PathId;
use blkmq::dm::multipath::{InitResult, Message, Multipath};
use blkmq::env::Answer;
use blkmq::path::label::{
    BioEnd, BioWork as Worker, MapBio, MapEnd, MapRq, RequeueRequest, Suspend, Target, Wait,
};
use blkmq::path::{BioWork, CompleteOn, Frame, Label, TargetPath, ToTarget};
use blkmq::queue::{BlkMq, RequestQueue, Tio};
use blkmq::request::{BioId, CpuId, QueueId, RequestId, Status};
use blkmq::rules::{EndRule, Held, SecondEnd};

pub(crate) const ABOVE: QueueId = QueueId(0);

/// Labels that read or change the target, without a lock or a word of their own.
const OF_TARGET: [Label; 17] = [
    BioEnd::NotPending.label(),
    MapBio::Pending.label(),
    MapBio::Enter.label(),
    MapBio::Choose.label(),
    MapBio::StartIo.label(),
    BioEnd::Valid.label(),
    BioEnd::Queues.label(),
    BioEnd::CallWorker.label(),
    BioEnd::Account.label(),
    MapRq::Enter.label(),
    MapRq::Choose.label(),
    MapRq::StartIo.label(),
    MapRq::Undo.label(),
    MapEnd::Enter.label(),
    Wait::Enter.label(),
    Wait::Look.label(),
    Suspend::Tags.label(),
];

/// Labels that only change counters which nothing reads here: they commute with everything.
const COUNTED: [Label; 3] = [
    MapRq::Get.label(),
    MapRq::Put.label(),
    MapEnd::NotPending.label(),
];

/// Labels that only a suspension reads from or reports to.
const OF_SUSPENSION: [Label; 8] = [
    MapBio::Pending.label(),
    BioEnd::NotPending.label(),
    BioEnd::Fewer.label(),
    MapRq::Pending.label(),
    MapRq::NotPending.label(),
    MapRq::Fewer.label(),
    MapEnd::Ended.label(),
    MapEnd::Fewer.label(),
];

/// The state around a mapped queue that its paths do not know.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct AroundPaths {
    /// Requests whose second completion will run in a softirq.
    pub(crate) to_end: Vec<RequestId>,
    pub(crate) errors: u8,
    told: u8,
    /// Bad results of activations that have occurred, one bit each.
    inits: u8,
    /// Activations that are queued, and those under way.
    queued: Vec<PathId>,
    activating: Vec<PathId>,
    /// An activation that begins in this step.
    begins: Option<PathId>,
    /// The timer of held requests is armed.
    timer: bool,
    /// Work items of a bio-based device that are queued: process_queued_bios, md->work.
    work: [bool; 2],
    /// The suspending context sleeps until its next look at the tags.
    pub(super) naps: bool,
    /// Bios that were submitted, that have ended, and that were under way when no path was left and
    /// no request was to be held: one bit each.
    begun: u64,
    ended: u64,
    hopeless: u64,
}

impl AroundPaths {
    pub(super) fn new(config: Option<&Paths>) -> AroundPaths {
        AroundPaths {
            errors: config.map_or(0, |paths| paths.errors),
            ..AroundPaths::default()
        }
    }

    /// Allocates nothing once all parts have had their largest size.
    pub(super) fn take_from(&mut self, source: &AroundPaths) {
        self.to_end.clone_from(&source.to_end);
        self.queued.clone_from(&source.queued);
        self.activating.clone_from(&source.activating);
        self.errors = source.errors;
        self.told = source.told;
        self.inits = source.inits;
        self.begins = source.begins;
        self.timer = source.timer;
        self.work = source.work;
        self.naps = source.naps;
        self.begun = source.begun;
        self.ended = source.ended;
        self.hopeless = source.hopeless;
    }

    pub(super) fn begins(&mut self, bio: BioId) {
        self.begun |= 1 << bio.0;
    }

    pub(super) fn works(&self, what: BioWork) -> bool {
        self.work[what as usize]
    }

    /// Marks the work item as queued, or as begun.
    pub(super) fn set_work(&mut self, what: BioWork, queued: bool) {
        self.work[what as usize] = queued;
    }

    pub(super) fn activate(&mut self, path: PathId) {
        insert(&mut self.queued, path);
    }

    /// Records whether the timer of held requests is armed.
    pub(super) fn set_timer(&mut self, armed: bool) {
        self.timer = armed;
    }

    /// An event of the target was handled; `answer` says whether the device of a path is being
    /// activated.
    pub(super) fn is_told(&mut self, answer: &mut Answer) {
        if let Some(path) = self.begins.take()
            && core::mem::take(answer) == Answer::GoOn
        {
            insert(&mut self.activating, path);
        }
    }

    /// A bio ends.
    ///
    /// # Panics
    /// If it has ended before, or if the policy prescribes another status.
    pub(super) fn bio_ends(&mut self, mq: &BlkMq, bio: BioId, status: Status) {
        let bit = 1 << bio.0;
        assert!(self.ended & bit == 0, "bio {} ends twice", bio.0);
        self.ended |= bit;
        if status == Status::Ok {
            return;
        }
        let hopeless = self.hopeless & bit != 0;
        assert!(
            hopeless,
            "bio {} ends with {status:?}, and a path is left",
            bio.0
        );
        let end = mq.queue(ABOVE).settings.rules.device_mapper.end;
        // A bio-based target ends bios that it cannot map, and no other bio with an error.
        let bios = mq.queue(ABOVE).own_mapped().bios.is_some();
        let known = match end {
            _ if bios => status == Status::IoError,
            EndRule::IoError => status == Status::IoError,
            EndRule::AsItIs | EndRule::DelayForResource => {
                matches!(status, Status::IoError | Status::Transport)
            }
        };
        assert!(known, "bio {} ends with {status:?}", bio.0);
    }
}

/// Inserts in order, so that the order of arrival makes no different states.
fn insert<T: Ord + Copy>(list: &mut Vec<T>, of: T) {
    let place = list.partition_point(|&other| other < of);
    list.insert(place, of);
}

fn with_target<R>(mq: &BlkMq, look: impl FnOnce(&Multipath) -> R) -> R {
    let mapped = mq.queue(ABOVE).mapped.as_ref();
    mapped
        .expect("it is mapped")
        .with_state(|state| look(&state.target))
}

impl Fixed {
    /// The surroundings of a mapped queue; panics for any other.
    pub(super) fn paths(&self) -> &Paths {
        self.config.paths.as_ref().expect("it is mapped")
    }

    /// The label reads or changes the target of a mapped queue.
    pub(super) fn is_of_target(&self, label: Label) -> bool {
        self.config.paths.is_some() && OF_TARGET.contains(&label) && !self.only_counts(label)
    }

    /// The label only changes counters that nothing reads.
    pub(super) fn only_counts(&self, label: Label) -> bool {
        let Some(paths) = &self.config.paths else {
            return false;
        };
        let read = !paths.suspensions.is_empty();
        COUNTED.contains(&label) || !read && OF_SUSPENSION.contains(&label)
    }

    pub(super) fn suspends(&self) -> bool {
        let paths = self.config.paths.as_ref();
        paths.is_some_and(|paths| !paths.suspensions.is_empty())
    }

    /// The mutant suppresses this label's kick of the requeue list.
    pub(super) fn drops_requeue_kick(&self, label: Label, later: bool) -> bool {
        let mutant = self.config.mutant;
        match label == Target::Locked.label() {
            true => mutant == Some(Mutant::NoBringBack),
            false if later => mutant == Some(Mutant::LostDelay),
            false if label == Suspend::Kick.label() => mutant == Some(Mutant::NoResumeRun),
            false => mutant == Some(Mutant::NoRequeueKick) && label == RequeueRequest::Add.label(),
        }
    }

    /// The mutant suppresses this label's work item of a bio-based device.
    pub(super) fn drops_bio_work(&self, label: Label, what: BioWork) -> bool {
        let mutant = self.config.mutant;
        match what {
            BioWork::Held if label == Target::Locked.label() => mutant == Some(Mutant::NoBringBack),
            BioWork::Held => mutant == Some(Mutant::NoRequeueKick),
            BioWork::Deferred => {
                mutant == Some(Mutant::NoResumeRun) && label == Suspend::Start.label()
            }
        }
    }

    /// The mutant suppresses this label's run of the queue.
    pub(super) fn drops_run(&self, label: Label) -> bool {
        self.config.mutant == Some(Mutant::NoBringBack) && label == Target::Locked.label()
    }

    /// Whether a second completion runs in the context that has ended the clone.
    pub(super) fn ends_here(&self, mq: &BlkMq, rq: RequestId, cpu: CpuId) -> bool {
        match self.config.rules.device_mapper.requests.second_end {
            SecondEnd::Softirq => false,
            SecondEnd::Placed => mq.complete_on(ABOVE, rq, cpu, |_, _| true) == CompleteOn::Here,
        }
    }

    /// The mutant runs the frame that follows twice.
    pub(super) fn doubles(&self, last: Option<Label>, frame: &Frame) -> bool {
        self.config.mutant == Some(Mutant::FreedTwice)
            && last == Some(MapEnd::Free.label())
            && matches!(frame, Frame::Complete(_))
    }

    /// After a label: applies the mutant to the target and its counts of requests.
    pub(super) fn break_target(&self, mq: &BlkMq, label: Label) {
        let Some(mapped) = &mq.queue(ABOVE).mapped else {
            return;
        };
        mapped.with_state(|state| match self.config.mutant {
            Some(Mutant::CountedTwice) if label == MapEnd::Free.label() => {
                let (path, bytes) = (PathId(0), 4096);
                state.target.start(blkmq::dm::Mapped { path, bytes });
            }
            Some(Mutant::CountedTwice) if label == BioEnd::Account.label() => {
                let (path, bytes) = (PathId(0), 4096);
                state.target.start(blkmq::dm::Mapped { path, bytes });
            }
            Some(Mutant::LostBio) if label == Worker::Take.label() => {
                state.taken.pop_front();
            }
            Some(Mutant::NoFailover) => {
                let failed = |tio: &&mut Tio| tio.status == Status::Transport;
                for tio in state.tios.iter_mut().filter(failed) {
                    tio.status = Status::Medium;
                }
            }
            _ => {}
        });
    }
}

impl World {
    /// The suspending context sleeps for a time.
    pub(super) fn sleeps_by_the_clock(&self, context: &Context) -> bool {
        context.role == Role::Suspender && self.outside.paths.naps
    }

    /// A request of the mapped queue was started and is not freed: another look at the tags would
    /// change nothing.
    pub(super) fn has_started_requests(&self) -> bool {
        let q = self.mq.queue(ABOVE);
        q.with_pool(|pool| pool.iter().any(|(_, rq)| rq.is_started()))
    }

    /// The events that may come to the target next, in a fixed order.
    pub(super) fn may_be_told(&self, fixed: &Fixed) -> Vec<ToTarget> {
        let paths = fixed.paths();
        let around = &self.outside.paths;
        let mut all = Vec::new();
        // Events during a suspension are refused and repeated later.
        let refused = fixed.suspends() && with_target(&self.mq, Multipath::is_suspended);
        if !refused {
            let next = paths.messages.get(usize::from(around.told));
            all.extend(next.copied().map(ToTarget::Message));
        }
        all.extend(around.queued.iter().map(|&path| ToTarget::Activate(path)));
        if fixed.config.mutant != Some(Mutant::LostActivation) {
            let bad = (0..).zip(&paths.inits);
            let bad = bad.filter(|(number, _)| around.inits >> number & 1 == 0);
            let bad: Vec<InitResult> = bad.map(|(_, &result)| result).collect();
            for &path in &around.activating {
                let ends = core::iter::once(InitResult::Ok).chain(bad.iter().copied());
                all.extend(ends.map(|result| ToTarget::Activated(path, result)));
            }
        }
        if around.timer {
            all.push(ToTarget::TimerExpires);
        }
        if paths.reinstates && !refused {
            with_target(&self.mq, |target| {
                let count = target.paths();
                let out = (0..count)
                    .map(PathId)
                    .filter(|&path| !target.is_active(path));
                all.extend(out.map(|path| ToTarget::Message(Message::Reinstate(path))));
            });
        }
        all
    }

    /// Sends the target one of these events.
    pub(super) fn tell(&mut self, fixed: &Fixed, way: usize) -> Frame {
        let what = self.may_be_told(fixed)[way];
        let refused = fixed.suspends() && with_target(&self.mq, Multipath::is_suspended);
        let around = &mut self.outside.paths;
        let messages = &fixed.paths().messages;
        if way == 0 && !refused && messages.len() > usize::from(around.told) {
            around.told += 1;
        } else {
            match what {
                ToTarget::Activate(path) => {
                    around.queued.retain(|&other| other != path);
                    around.begins = Some(path);
                }
                ToTarget::Activated(path, result) => {
                    let first = around.activating.iter().position(|&of| of == path);
                    around.activating.remove(first.expect("it is under way"));
                    let inits = &fixed.paths().inits;
                    let mut bad = (0..)
                        .zip(inits)
                        .filter(|&(number, &of)| of == result && around.inits >> number & 1 == 0);
                    let bit = bad.next().map_or(0, |(number, _)| 1 << number);
                    around.inits |= bit;
                }
                ToTarget::TimerExpires => around.timer = false,
                _ => {}
            }
        }
        Frame::Target(TargetPath::new(ABOVE, what))
    }

    /// The event in words, for a schedule.
    pub(crate) fn told(&self, fixed: &Fixed, way: u8) -> String {
        format!("{:?}", self.may_be_told(fixed)[usize::from(way)])
    }

    /// The number of ways in which a request of the device, or one whose clone has ended, may end.
    pub(super) fn ways_to_end(&self) -> usize {
        let around = &self.outside.paths;
        let each = 1 + usize::from(around.errors > 0);
        self.outside.in_device.len() * each + around.to_end.len()
    }

    /// Takes one of these ways: the request, and the status of its end.
    pub(super) fn end_of(&mut self, way: usize, again: bool) -> (Slot, Status) {
        let in_device = &mut self.outside.in_device;
        let around = &mut self.outside.paths;
        let each = 1 + usize::from(around.errors > 0);
        let Some(rest) = way.checked_sub(in_device.len() * each) else {
            let slot = match again {
                true => in_device[way / each],
                false => in_device.remove(way / each),
            };
            if way.is_multiple_of(each) {
                return (slot, Status::Ok);
            }
            around.errors -= 1;
            return (slot, Status::Transport);
        };
        let rq = around.to_end.remove(rest);
        (Slot { queue: ABOVE, rq }, Status::Ok)
    }

    /// Bios under way may fail if no path is left and requests are not held. If a kernel asks for
    /// both separately, also bios that found no path before holding was switched off.
    pub(super) fn note_hopeless(&mut self) {
        let (left, held) = with_target(&self.mq, |target| {
            (target.valid_paths() > 0, target.must_push_back())
        });
        if held {
            return;
        }
        let around = &mut self.outside.paths;
        if !left {
            around.hopeless |= around.begun & !around.ended;
            return;
        }
        let frames = self.contexts.iter().flat_map(|c| c.stack.frames());
        let frames: Vec<&Frame> = frames.collect();
        let bios = frames.iter().filter_map(|frame| match frame {
            Frame::BioEnd(path) => path.finds_no_path(),
            Frame::MapBio(path) => path.finds_no_path(),
            _ => None,
        });
        around.hopeless |= bios.fold(0, |all, bio| all | 1 << bio.0);
        let pathless = frames.iter().filter_map(|frame| match frame {
            Frame::Map(path) => path.finds_no_path(),
            _ => None,
        });
        for rq in pathless {
            self.mq.queue(ABOVE).with_pool(|pool| {
                let bios = pool.bios_of(rq);
                around.hopeless |= bios.fold(0, |all, bio| all | 1 << bio.0);
            });
        }
    }
}

/// Requests were held and may continue: a work item must be queued for them at once.
pub(super) struct Brought {
    before: (u32, bool, bool),
}

impl Brought {
    /// The state before an event.
    pub(super) fn new(mq: &BlkMq) -> Brought {
        let before = Brought::look(mq);
        Brought { before }
    }

    fn look(mq: &BlkMq) -> (u32, bool, bool) {
        with_target(mq, |target| {
            let waits = target.is_initialising();
            (target.valid_paths(), target.queues_if_no_path(), waits)
        })
    }

    /// The state after the event.
    ///
    /// # Panics
    /// If held requests may continue, must fail, or have their group ready, and no work item was
    /// queued.
    pub(super) fn check(&self, mq: &BlkMq, outside: &Outside) {
        let (valid, queues, waits) = Brought::look(mq);
        let (valid_before, queues_before, waits_before) = self.before;
        let came = valid_before == 0 && valid > 0;
        let fails = queues_before && !queues;
        let ready = waits_before && !waits;
        let q = mq.queue(ABOVE);
        let kicks = q.settings.rules.device_mapper.held == Held::KickList;
        if !kicks || !(came || fails || ready) {
            return;
        }
        if q.own_mapped().bios.is_some() {
            let held = with_target(mq, |target| target.held().next().is_some());
            let queued = outside.paths.works(BioWork::Held);
            assert!(queued || !held, "no work item is queued for held bios");
            return;
        }
        let queued = outside.requeue_work[ABOVE.index()] == Pending::Now;
        assert!(
            queued || list_is_empty(q),
            "no kick is queued for held requests"
        );
    }
}

fn list_is_empty(q: &RequestQueue) -> bool {
    q.requeue.inspect(|lists| lists.requeue.is_empty())
}
