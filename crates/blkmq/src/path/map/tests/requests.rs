//! A mapped queue of blk-mq over those of its paths: the labels of a request by kernel, and what
//! becomes of a clone that its queue does not take.

use super::bench::{Bench, PATH, TOP, read, set_tags};
use crate::dm::PathId;
use crate::drive::Stack;
use crate::elevator::SchedulerKind;
use crate::env::{Answer, CacheLine};
use crate::queue::{Mapped, QueueConfig};
use crate::request::{HctxId, Place, RequestId, Status};
use crate::rules::{DeviceMapper, EmptyRun, Rules};
use crate::time::Duration;

/// One path; without it requests are held.
pub(super) const LINE: &str = "0 8 multipath 1 queue_if_no_path 0 1 1 queue-length 0 1 1 8:0 1";

/// Two groups of one path each, with a hardware handler that activates them.
pub(super) const HANDLER: &str =
    "0 8 multipath 1 queue_if_no_path 1 alua 2 1 queue-length 0 1 1 a 1 queue-length 0 1 1 b 1";

fn plain(rules: Rules) -> Bench {
    Bench::over(rules, LINE, |_, _| {})
}

/// The queue of the path with a scheduler.
fn under(scheduler: SchedulerKind) -> Bench {
    Bench::over(Rules::v6_1(), LINE, |queue, config| {
        if queue == PATH {
            give(config, scheduler);
        }
    })
}

fn give(config: &mut QueueConfig, scheduler: SchedulerKind) {
    let settings = &mut config.settings;
    settings.scheduler = scheduler;
    config.elevator = scheduler.defaults(settings.hz, settings.nr_requests);
}

/// A request that is being mapped, up to a label.
fn mapped_to(bench: &mut Bench, label: &'static str) -> Stack {
    let mut stack = bench.begin(read(0));
    if bench.mq.queue(TOP).settings.rules.name == "v4.12" {
        // Its run is left to kblockd.
        bench.go_on(&mut stack);
        bench.kicks();
        stack = Stack::of(bench.mq.works(TOP, HctxId(0)));
    }
    bench.go_to(&mut stack, label);
    stack
}

fn clone_of(bench: &Bench) -> RequestId {
    let top = bench.mq.queue(TOP).own_mapped();
    top.with_state(|state| state.tios.iter().find_map(|tio| tio.clone))
        .expect("a clone")
}

/// dm_mq_queue_rq(), map_request(), then dm_softirq_done().
#[test]
fn labels_of_a_request_by_kernel() {
    let v4_20 = Rules {
        name: "v4.20",
        device_mapper: DeviceMapper::V4_20,
        empty_run: EmptyRun::Return,
        ..Rules::v4_12()
    };
    let mapped = "clone start-io setup issued tell";
    let counted = "enter free freed ended fewer woken not-pending put";
    for (rules, before, after, ends) in [
        (
            Rules::v4_5(),
            "enter table busy start pending get",
            "data ",
            "enter free freed no-data ended fewer woken not-pending put",
        ),
        (Rules::v4_6(), "enter busy start pending get", "", counted),
        (Rules::v4_12(), "enter start pending get", "", counted),
        (v4_20, "enter start pending get", "", counted),
        (
            Rules::v6_1(),
            "enter start get",
            "",
            "enter free freed ended put",
        ),
    ] {
        let mut bench = plain(rules);
        bench.send(read(0));
        let maps = format!("{before} choose {after}{mapped}");
        assert_eq!(bench.labels("map-rq."), maps, "{}", rules.name);
        bench.end(Status::Ok);
        assert_eq!(bench.labels("map-end."), ends, "{}", rules.name);
    }
}

/// The queue of the path has no tag: the target's data of the I/O is freed (4.5).
#[test]
fn labels_of_a_request_without_clone() {
    for (rules, data) in [(Rules::v4_5(), "data "), (Rules::v4_6(), "")] {
        let mut bench = Bench::over(rules, LINE, |queue, config| {
            if queue == PATH {
                set_tags(config, 1);
            }
        });
        bench.send(read(0));
        bench.labels("");
        bench.submit(80);
        let labels = bench.labels("map-rq.");
        let freed = if data.is_empty() { "" } else { " no-data" };
        let whole = format!("get choose {data}clone{freed} not-pending fewer put tell");
        assert!(labels.ends_with(&whole), "{}: {labels}", rules.name);
    }
}

/// The driver's last word on a clone is the status of the request above.
#[test]
fn the_error_of_a_driver_ends_the_request_above() {
    let mut bench = plain(Rules::v6_1());
    bench.on.answers = vec![Answer::Error(Status::Target)];
    bench.submit(0);
    assert_eq!(bench.on.completed.len(), 1);
    bench.end_above();
    assert_eq!(bench.on.ended, [Status::Target]);
}

/// blk_mq_start_request() of the mapped queue comes after the question whether the target is busy.
#[test]
fn a_request_is_started_once_the_target_was_asked() {
    let mut bench = plain(Rules::v6_1());
    let mut stack = mapped_to(&mut bench, "map-rq.start");
    let started = |bench: &Bench| {
        bench
            .mq
            .queue(TOP)
            .with_pool(|pool| pool.iter().any(|(_, rq)| rq.in_flight))
    };
    assert!(!started(&bench));
    bench.step(&mut stack);
    assert!(started(&bench));
}

/// The lines that submitters on all CPUs share: which labels of a request access them.
#[test]
fn lines_of_the_target_and_of_a_path() {
    let mut bench = plain(Rules::v6_1());
    let mut missed = |line: Option<fn(&Mapped) -> &CacheLine>| {
        bench.missed();
        bench.on.contended = line;
        bench.submit(0);
        bench.end(Status::Ok);
        bench.missed()
    };
    missed(None);
    assert_eq!(missed(None), "", "all lines are this CPU's");
    let account = missed(Some(|mapped| &mapped.accounts[0]));
    assert_eq!(account, "map-rq.choose map-rq.start-io map-end.enter");
    missed(None);
    let fields = missed(Some(|mapped| &mapped.fields));
    assert_eq!(fields, "map-rq.enter map-rq.choose");
}

/// In 4.12 a request that waits for the initialisation that another one has begun goes back to its
/// queue, whose hctx is run 100 ms later; one that is mapped leaves nothing to be run.
#[test]
fn a_refused_request_runs_its_hctx_later_in_4_12() {
    let mut bench = Bench::over(Rules::v4_12(), HANDLER, |_, _| {});
    let mut first = mapped_to(&mut bench, "map-rq.start");
    bench.send(read(80));
    assert_eq!(bench.on.activations, [PathId(0)]);
    bench.kicks();
    bench.go_on(&mut first);
    let later = (TOP, Duration::from_millis(100));
    assert!(bench.kicks().contains(&later));
    let mut bench = plain(Rules::v4_12());
    bench.send(read(0));
    assert_eq!((bench.on.in_device.len(), bench.kicks()), (1, vec![]));
}

/// blk_queue_exit() of a clone without a tag may be the last one that a freeze waits for.
#[test]
fn a_clone_without_tag_leaves_a_queue_that_is_frozen() {
    for frozen in [false, true] {
        let mut bench = Bench::over(Rules::v6_1(), LINE, |queue, config| {
            if queue == PATH {
                set_tags(config, 1);
            }
        });
        // Another queue of the path's tag set has the tag.
        bench.mq.set_of(PATH).driver[0].words[0]
            .word
            .fetch_or(&mut bench.cpu, 1);
        let mut stack = mapped_to(&mut bench, "clone-rq.tag");
        if frozen {
            bench.mq.queue(PATH).with_pool(|pool| pool.usage.freeze());
        }
        bench.labels("");
        bench.go_to(&mut stack, "clone-rq.tell");
        let wakes = if frozen { "enter wake" } else { "" };
        assert_eq!(bench.labels("wait."), wakes, "frozen: {frozen}");
    }
}

/// limit_depth() of BFQ for a process without a queue takes no lock, also if its message is
/// recorded.
#[test]
fn the_scheduler_of_a_path_limits_clones_without_its_lock() {
    for log in [false, true] {
        let mut bench = Bench::over(Rules::v6_1(), LINE, |queue, config| {
            if queue == PATH {
                config.settings.log = log;
                give(config, SchedulerKind::Bfq);
            }
        });
        bench.submit(0);
        let labels = bench.labels("clone-rq.");
        assert!(labels.starts_with("enter tag"), "log: {log}: {labels}");
    }
}

/// A clone that the driver refuses is free again, as before it was offered.
#[test]
fn a_refused_clone_has_no_budget_and_is_not_started() {
    let mut bench = Bench::over(Rules::v6_1(), LINE, |queue, config| {
        config.settings.driver_budget = queue == PATH;
    });
    bench.on.answers = vec![Answer::Resource];
    let mut stack = mapped_to(&mut bench, "clone-rq.busy-write");
    bench.go_to(&mut stack, "clone-rq.tell");
    let clone = clone_of(&bench);
    bench.mq.queue(PATH).with_pool(|pool| {
        let rq = &pool[clone];
        assert_eq!((rq.budget, rq.in_flight), (None, false));
        assert_eq!(rq.place, Place::Path);
    });
}

/// The budget was for a clone that gets no driver tag.
#[test]
fn a_clone_without_driver_tag_puts_its_budget() {
    let mut bench = Bench::over(Rules::v6_1(), LINE, |queue, config| {
        if queue == PATH {
            config.settings.driver_budget = true;
            config.tags.queue_depth = 1;
            give(config, SchedulerKind::MqDeadline);
        }
    });
    bench.submit(0);
    assert_eq!(bench.on.in_device.len(), 1);
    bench.on.budgets = vec![Answer::Budget(7)];
    bench.submit(80);
    assert_eq!((bench.on.in_device.len(), bench.on.put[0]), (1, 7));
}

/// A queue that is stopped or quiesced takes the clone; a later run issues it.
#[test]
fn a_path_that_is_stopped_or_quiesced_takes_the_clone() {
    for stops in [true, false] {
        let mut bench = plain(Rules::v6_1());
        let (path, hctx) = (bench.mq.queue(PATH), HctxId(0));
        match stops {
            true => path.hctx(hctx).stopped.set(&mut bench.cpu),
            false => path.quiesced.set(&mut bench.cpu),
        }
        assert_eq!(bench.submit(0), "Q G D a i", "stopped: {stops}");
        assert!(bench.on.in_device.is_empty(), "stopped: {stops}");
        let path = bench.mq.queue(PATH);
        match stops {
            true => path.hctx(hctx).stopped.clear(&mut bench.cpu),
            false => path.quiesced.clear(&mut bench.cpu),
        }
        assert_eq!(bench.works(PATH), "d", "stopped: {stops}");
    }
}

/// The end of a clone calls the completed hook of its queue's scheduler, if that has one.
#[test]
fn the_end_of_a_clone_calls_the_hook_of_its_queue() {
    for (scheduler, hook) in [
        (SchedulerKind::None, ""),
        (SchedulerKind::MqDeadline, ""),
        (SchedulerKind::Kyber, "enter"),
    ] {
        let mut bench = under(scheduler);
        bench.submit(0);
        bench.labels("");
        bench.end_below(Status::Ok);
        assert_eq!(bench.labels("hook."), hook, "{scheduler:?}");
    }
}

/// Each bio of a clone ends at a label of its own.
#[test]
fn a_bio_of_a_clone_ends_after_the_account() {
    let mut bench = plain(Rules::v6_1());
    bench.submit(0);
    let mut end = bench.ends(Status::Ok);
    bench.go_to(&mut end, "clone-end.end-bio");
    assert!(bench.on.ended.is_empty());
    bench.step(&mut end);
    assert_eq!(bench.on.ended, [Status::Ok]);
}
