//! Messages of a program's own scheduler in blktrace, and its limit of tags under its lock.

use std::fmt::Write as _;
use std::hash::{Hash, Hasher};

use blkmq::elevator::{
    BioMerge, Custom, CustomScheduler, DispatchTime, ElevatorLock, InsertAt, Insertion, LEVELS,
    Now, Scheduler, SchedulerInfo, SchedulerSettings, TRACED, Wanted,
};
use blkmq::env::TraceAction;
use blkmq::list::QueueList;
use blkmq::merge::Merging;
use blkmq::request::{BioId, CpuId, Place, RequestId, RequestPool};
use blkmq::rules::Rules;
use blkmq::time::SimTime;
use sim::machine::Simulator;
use sim::plan::Plan;

use crate::runs;

const SILENT: SchedulerInfo =
    SchedulerInfo::plain("own-silent", &[ElevatorLock::irq_save("own->lock")]);
const TALKS: SchedulerInfo = SchedulerInfo {
    logs: true,
    ..SchedulerInfo::plain("own-talks", &[ElevatorLock::irq_save("own->lock")])
};

const READS: SchedulerInfo = SchedulerInfo {
    reads_clock: true,
    ..TALKS
};

/// First in, first out, with messages.
#[derive(Clone, Debug)]
struct Talker {
    info: &'static SchedulerInfo,
    /// The tags that a submission may use, computed under the lock.
    limit: Option<u32>,
    queued: QueueList,
    text: String,
}

impl Talker {
    fn new(info: &'static SchedulerInfo) -> Talker {
        Talker {
            info,
            limit: None,
            queued: QueueList::new(),
            text: String::new(),
        }
    }

    fn say(&mut self, what: &str, now: Now) {
        writeln!(self.text, "{what} at {}", now.time.0).unwrap();
    }
}

impl Scheduler for Talker {
    fn merge_bio(
        &mut self,
        _pool: &mut RequestPool,
        _bio: BioId,
        now: Now,
        _merging: Merging<'_>,
    ) -> BioMerge {
        self.say("no merge", now);
        BioMerge::No
    }

    fn insert(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        _at: InsertAt,
        now: Now,
        _merging: Merging<'_>,
    ) -> Insertion {
        self.say("before", now);
        self.text += TRACED;
        self.text += "\n";
        self.say("after", now);
        pool[rq].place = Place::Elevator;
        self.queued.push_back(pool, rq);
        Insertion::Inserted
    }

    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        now: DispatchTime,
        _completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        self.say("dispatch", now.now());
        let rq = self.queued.first()?;
        self.force_dispatch(pool, rq);
        Some(rq)
    }

    fn has_work(&self) -> bool {
        !self.queued.is_empty()
    }

    fn limits_under_lock(&self, _wanted: Wanted) -> bool {
        self.limit.is_some()
    }

    fn limit_depth_locked(&mut self, _wanted: Wanted, now: Now) -> Option<u32> {
        self.say("depth", now);
        self.limit
    }

    fn take_log(&mut self, each: &mut dyn FnMut(&str)) {
        self.text.lines().for_each(each);
        self.text.clear();
    }

    fn force_remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.queued.remove(pool, rq);
        pool[rq].place = Place::Path;
    }
}

impl CustomScheduler for Talker {
    fn info(&self) -> &'static SchedulerInfo {
        self.info
    }

    fn copy(&self) -> Box<dyn CustomScheduler> {
        Box::new(self.clone())
    }

    fn digest(&self, mut state: &mut dyn Hasher) {
        self.queued.hash(&mut state);
    }
}

fn plan(job: &str, own: Talker) -> Plan {
    let text = format!(
        "[device]\ntype = \"null_blk\"\nsubmit_queues = 1\npoll_queues = 0\nirqmode = 2\n\
         hw_queue_depth = 16\ncompletion_nsec = 50000\n[queue]\n\
         scheduler = \"mq-deadline\"\nnr_requests = 64\n[[job]]\nname = \"reads\"\n\
         rw = \"randread\"\ndirect = 1\nioengine = \"libaio\"\nnorandommap = true\n{job}"
    );
    let mut plan = runs::plan_of(&text);
    plan.disks[0].queue.scheduler = SchedulerSettings::Custom(Custom::new(own));
    plan
}

/// Time, CPU, and a message or the name of a record.
type Line = (SimTime, CpuId, String);

fn run(plan: &Plan) -> Vec<Line> {
    let mut simulator = Simulator::new(plan, &runs::machine()).unwrap();
    simulator.trace();
    if let Some(stall) = runs::to_its_end(&mut simulator) {
        panic!("{stall}");
    }
    simulator.settle();
    let points = simulator.take_trace();
    let messages = simulator.take_messages();
    let lines = points.into_iter().map(|(at, cpu, _, point)| {
        let line = match point.action {
            TraceAction::Message(said) => said.text(&messages).to_owned(),
            action => format!("{action:?}"),
        };
        (at, cpu, line)
    });
    lines.collect()
}

const ONE: &str = "iodepth = 1\nnumber_ios = 20\n";

#[test]
fn messages_stand_around_the_record_of_their_call() {
    let lines = run(&plan(ONE, Talker::new(&TALKS)));
    let inserted = (0..lines.len()).filter(|&at| lines[at].2 == "Insert");
    let around: Vec<(&str, &str)> = inserted
        .map(|at| (lines[at - 1].2.as_str(), lines[at + 1].2.as_str()))
        .collect();
    assert_eq!(around.len(), 20);
    for (before, after) in around {
        let (what, at) = before.split_once(" at ").unwrap();
        assert_eq!(what, "before");
        assert_eq!(after, format!("after at {at}"), "one section, one time");
    }
    let said = |what: &str| lines.iter().filter(|line| line.2.starts_with(what)).count();
    // Tried for each bio; called once with a request and once without.
    assert_eq!(said("no merge"), 20);
    assert!(said("dispatch") >= 20, "{}", said("dispatch"));
    assert!(!lines.iter().any(|line| line.2.contains(TRACED)));
    for (at, _, line) in &lines {
        if let Some((_, message)) = line.split_once(" at ") {
            // The label began then; a record of it takes the clock of its CPU a little later.
            let message = SimTime(message.parse().unwrap());
            assert!(
                message <= *at && at.since(message).0 < 5_000,
                "{line}: {at}"
            );
        }
    }
}

#[test]
fn who_does_not_log_is_not_asked() {
    let lines = run(&plan(ONE, Talker::new(&SILENT)));
    assert!(lines.iter().all(|line| !line.2.contains(" at ")));
    // The records are the same ones at the same times: a message costs nothing.
    let message = run(&plan(ONE, Talker::new(&TALKS)));
    let records = |lines: &[Line]| -> Vec<String> {
        let records = lines.iter().filter(|line| !line.2.contains(" at "));
        records.map(|line| line.2.clone()).collect()
    };
    assert_eq!(records(&lines), records(&message));
}

#[test]
fn a_limit_under_the_lock_is_asked_for_once_an_allocation() {
    let job = "iodepth = 32\nnumber_ios = 400\n";
    let depth = |limit: Option<u32>| {
        let mut own = Talker::new(&TALKS);
        own.limit = limit;
        let lines = run(&plan(job, own));
        let asked = lines.iter().filter(|line| line.2.starts_with("depth"));
        let mut inside = (0, 0);
        for (.., line) in &lines {
            match line.as_str() {
                "GetRq" => inside.0 += 1,
                "Complete" => inside.0 -= 1,
                _ => {}
            }
            inside.1 = inside.1.max(inside.0);
        }
        (asked.count(), inside.1)
    };
    assert_eq!(depth(None), (0, 32));
    let (limited, least) = depth(Some(8));
    // Once for each of the 400, however long they wait for a tag.
    assert_eq!(limited, 400);
    assert!((8..=9).contains(&least), "{least}");
}

/// A task's plug keeps the time at which its first bio entered (v6.12), and drops it when the full
/// plug is flushed: the bio after the one that found it full reads the clock again.
#[test]
fn a_plug_keeps_its_time_until_it_is_let_go() {
    let job = "iodepth = 40\niodepth_batch_submit = 40\nnumber_ios = 40\n";
    let mut plan = plan(job, Talker::new(&READS));
    plan.disks[0].queue.rules = Rules::v6_12();
    let lines = run(&plan);
    let bios = lines.iter().filter(|line| line.2 == "Queue");
    let entered: Vec<SimTime> = bios.map(|line| line.0).collect();
    let message = |what: &str| -> Vec<SimTime> {
        let message = lines.iter().filter_map(|line| line.2.strip_prefix(what));
        message.map(|at| SimTime(at.parse().unwrap())).collect()
    };
    let (looked, inserted) = (message("no merge at "), message("before at "));
    assert_eq!((entered.len(), looked.len(), inserted.len()), (40, 40, 40));
    // BLK_MAX_REQUEST_COUNT are in the plug when the 33rd comes.
    let (full, rest) = (looked[0], looked[33]);
    assert!(full <= entered[0], "the first bio's time");
    assert!(entered[32] < rest && rest <= entered[33], "the 34th bio's");
    assert_eq!(looked, [[full; 33].as_slice(), &[rest; 7]].concat());
    assert_eq!(inserted, [[full; 32].as_slice(), &[rest; 8]].concat());
}
