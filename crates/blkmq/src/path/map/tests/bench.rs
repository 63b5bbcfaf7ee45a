//! Queues of a mapped device and of its paths, and contexts that run on them.

use super::machine::{Machinery, On};
use crate::call::{ThenUnplug, ToTarget};
use crate::dm::table::{QueueMode, Table};
use crate::drive::{Context, Stack, drive};
use crate::elevator::SchedulerKind;
use crate::env::{Answer, Cpu, Near, Numbering};
use crate::path::{BioWorkPath, Frame, MapPath, TargetPath};
use crate::queue::{
    Above, BlkMq, EndRuns, MappedConfig, QueueConfig, QueueSettings, SingleSettings,
};
use crate::request::{Bio, CpuId, HctxId, Op, QueueId, Sector, Sectors, Status};
use crate::rules::Rules;
use crate::step::Next;
use crate::tags::TagSetConfig;
use crate::time::Duration;

pub(super) const TOP: QueueId = QueueId(0);
pub(super) const PATH: QueueId = QueueId(1);

/// The queues, and the effects of their labels.
pub(super) struct Bench {
    pub(super) mq: BlkMq,
    pub(super) cpu: Cpu,
    pub(super) on: Machinery,
}

fn joined(mut labels: Vec<&str>) -> String {
    labels.dedup();
    labels.join(" ")
}

/// A read of eight sectors.
pub(super) fn read(sector: u64) -> Bio {
    Bio {
        op: Op::Read,
        sector: Sector(sector),
        sectors: Sectors(8),
        segments: 1,
        ..Bio::default()
    }
}

/// A queue without scheduler gets so many tags.
pub(super) fn set_tags(config: &mut QueueConfig, tags: u32) {
    config.tags.queue_depth = tags;
    let settings = &mut config.settings;
    settings.nr_requests = tags;
    settings.nr_requests_first = tags;
    settings.slots_per_map = tags;
}

impl Bench {
    /// A mapped queue of the single-queue kind over one path of blk-mq with so many tags.
    pub(super) fn new(rules: Rules, tags: u32) -> Bench {
        let line = "0 8 multipath 1 queue_if_no_path 0 1 1 round-robin 0 1 1 8:0 1";
        Bench::over(rules, line, |queue, config| {
            if queue != TOP {
                return set_tags(config, tags);
            }
            let old = rules.of_old_top().expect("it has such a queue");
            let settings = QueueSettings {
                single: Some(SingleSettings {
                    depth: u32::MAX,
                    end_runs: EndRuns::ByDriver,
                }),
                ..QueueSettings::plain(old, SchedulerKind::Noop, 4)
            };
            *config = QueueConfig {
                mapped: config.mapped.take(),
                ..QueueConfig::plain(settings, TagSetConfig::plain(1, 4), 1)
            };
        })
    }

    /// A mapped queue and the queues of its paths, all of blk-mq, without scheduler and with four
    /// tags, unless a change makes them others; the device as this line of dmsetup table has it.
    pub(super) fn over(
        rules: Rules,
        line: &str,
        change: impl Fn(QueueId, &mut QueueConfig),
    ) -> Bench {
        let table = Table::parse(line, &rules.device_mapper, 1).expect("it is right");
        let below: Vec<QueueId> = (1..).map(QueueId).take(table.paths().count()).collect();
        let of = |queue: QueueId| {
            let settings = QueueSettings::plain(rules, SchedulerKind::None, 4);
            let mut config = QueueConfig::plain(settings, TagSetConfig::plain(1, 4), 1);
            if queue == TOP {
                config.mapped = Some(MappedConfig {
                    table: table.clone(),
                    below: below.clone(),
                    nodes: vec![0],
                    timeout_secs: 0,
                });
            } else {
                config.above = Some(match table.queue_mode {
                    QueueMode::Bio => Above::Bios(TOP),
                    QueueMode::Request => Above::Requests(TOP),
                });
            }
            change(queue, &mut config);
            vec![config]
        };
        let sets: Vec<_> = core::iter::once(TOP)
            .chain(below.iter().copied())
            .map(of)
            .collect();
        let mut cpu = Cpu::new(CpuId(0));
        cpu.tracing = true;
        cpu.meter.tariff.near = Near::new(CpuId(0), Numbering::default(), [1; 4]);
        Bench {
            mq: BlkMq::with_sets(&sets, &mut || 0),
            cpu,
            on: Machinery::default(),
        }
    }

    /// Runs a frame to its end; returns its letters.
    pub(super) fn run(&mut self, frame: Frame) -> String {
        let letters = self.go_on(&mut Stack::of(frame));
        assert!(!self.on.parked, "nobody wakes it");
        letters
    }

    /// Runs a context to its end, or until it sleeps; returns its letters.
    pub(super) fn go_on(&mut self, stack: &mut Stack) -> String {
        self.drive(stack);
        let answer = core::mem::take(&mut self.on.answer);
        assert_eq!(answer, Answer::None, "an answer that no path reads");
        core::mem::take(&mut self.on.letters).join(" ")
    }

    fn drive(&mut self, stack: &mut Stack) {
        let Bench { mq, cpu, on } = self;
        on.parked = false;
        drive(&mut On { mq, on }, mq, Context { cpu, stack }, Next::Step);
    }

    /// Runs a context until a label of this name is next; returns its letters.
    pub(super) fn go_to(&mut self, stack: &mut Stack, label: &'static str) -> String {
        self.on.stop_at = Some(label);
        let letters = self.go_on(stack);
        self.on.stop_at = None;
        assert!(!stack.is_empty() && !self.on.parked, "{label} never comes");
        letters
    }

    /// Runs one label of a context.
    pub(super) fn step(&mut self, stack: &mut Stack) {
        self.on.steps = Some(1);
        self.go_on(stack);
        self.on.steps = None;
    }

    /// A bio comes to the mapped device.
    pub(super) fn begin(&mut self, bio: Bio) -> Stack {
        let bio = self.mq.queue(TOP).with_pool(|pool| pool.add_bio(bio));
        let bio = bio.expect("a slot");
        Stack::of(self.mq.submits(TOP, bio, ThenUnplug::Nobody))
    }

    pub(super) fn submit(&mut self, sector: u64) -> String {
        let mut stack = self.begin(read(sector));
        self.go_on(&mut stack)
    }

    /// The thread takes its first request.
    pub(super) fn map(&mut self) -> String {
        let rq = self.on.to_map.remove(0);
        self.run(Frame::Map(MapPath::new(TOP, rq)))
    }

    /// kblockd's run of a queue.
    pub(super) fn works(&mut self, queue: QueueId) -> String {
        let frame = self.mq.works(queue, HctxId(0));
        self.run(frame)
    }

    /// All runs that kblockd is to do at once.
    pub(super) fn kblockd(&mut self) -> String {
        let mut letters = Vec::new();
        while let Some(next) = self
            .on
            .kicks
            .iter()
            .position(|kick| kick.1 == Duration::ZERO)
        {
            let (queue, _) = self.on.kicks.remove(next);
            letters.push(self.works(queue));
            assert!(letters.len() < 100, "it never ends");
        }
        letters.join(" ")
    }

    /// A bio comes, and kblockd runs.
    pub(super) fn send(&mut self, bio: Bio) -> String {
        let mut stack = self.begin(bio);
        format!("{} {}", self.go_on(&mut stack), self.kblockd())
    }

    /// The first work item of a bio-based device, and then kblockd.
    pub(super) fn work(&mut self) -> String {
        let what = self.on.work.remove(0);
        let letters = self.run(Frame::BioWork(BioWorkPath::new(TOP, what)));
        format!("{letters} {}", self.kblockd())
    }

    /// The device of a path begins to end its first request.
    pub(super) fn ends(&mut self, status: Status) -> Stack {
        let (queue, rq) = self.on.in_device.remove(0);
        Stack::of(self.mq.ends(queue, rq, status))
    }

    /// It ends it.
    pub(super) fn end_below(&mut self, status: Status) -> String {
        let mut stack = self.ends(status);
        self.go_on(&mut stack)
    }

    /// The softirq ends the first completed request of the mapped queue.
    pub(super) fn end_above(&mut self) -> String {
        let rq = self.on.completed.remove(0);
        let frame = self.mq.ends(TOP, rq, Status::Ok);
        self.run(frame)
    }

    /// Both.
    pub(super) fn end(&mut self, status: Status) -> String {
        let below = self.end_below(status);
        format!("{below} | {}", self.end_above())
    }

    /// A call of the target; returns its answer.
    pub(super) fn target(&mut self, what: ToTarget) -> Answer {
        self.drive(&mut Stack::of(Frame::Target(TargetPath::new(TOP, what))));
        core::mem::take(&mut self.on.answer)
    }

    pub(super) fn message(&mut self, what: impl Into<ToTarget>) {
        assert_eq!(self.target(what.into()), Answer::None);
    }

    pub(super) fn kicks(&mut self) -> Vec<(QueueId, Duration)> {
        core::mem::take(&mut self.on.kicks)
    }

    /// Labels of a path since the last call, without this prefix. Of the same one in a row one.
    pub(super) fn labels(&mut self, of: &str) -> String {
        let labels = core::mem::take(&mut self.on.labels);
        let labels = labels.iter().filter_map(|label| label.strip_prefix(of));
        joined(labels.collect())
    }

    /// Labels since the last call that missed a cache line, likewise.
    pub(super) fn missed(&mut self) -> String {
        joined(core::mem::take(&mut self.on.missed))
    }

    /// The line of dmsetup status, from the paths on.
    pub(super) fn counts(&self, line: &str) -> String {
        let top = self.mq.queue(TOP);
        let table = Table::parse(line, &top.settings.rules.device_mapper, 1);
        let table = table.expect("it is right");
        top.own_mapped()
            .with_state(|state| state.target.status(&table))
    }

    /// Requests that md->pending counts, and those with the driver above.
    pub(super) fn in_flight(&self) -> (i32, u32) {
        let top = self.mq.queue(TOP);
        let (m, single) = (top.mapped.as_ref(), top.single.as_ref());
        let with_driver = single.unwrap().state.held(CpuId(0)).with_driver();
        (m.unwrap().pending.peek(), with_driver)
    }
}
