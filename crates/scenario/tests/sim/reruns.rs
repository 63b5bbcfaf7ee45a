//! How often hardware queues are run again because budgets of a SCSI host were released.

use std::path::Path;

use scenario::profile;
use scenario::report::{Origin, Report, RunsReport};
use scenario::{ProfileFacts, Scenario};
use sim::machine::{Outcome, Simulator};

/// Runs and I/Os of 20 ms in which 48 hctxs compete for 8 commands of a host.
struct Counted {
    runs: u64,
    looks: u64,
    ios: u64,
    by_hctx: RunsReport,
}

fn run(scheduler: &str, restart: &str) -> Counted {
    let text = format!(
        "[machine]\nprofile = \"dell-r7525\"\ncpus = 48\n[queue]\nscheduler = \"{scheduler}\"\nrestart = \"{restart}\"\n\
         [device]\ntype = \"scsi_debug\"\ndev_size_mb = 256\nndelay = 100000\nmax_queue = 8\n\
         submit_queues = 48\n\
         [[job]]\nname = \"j\"\nrw = \"randread\"\nioengine = \"libaio\"\niodepth = 4\n\
         direct = 1\nnumjobs = 16\nnorandommap = true\ntime_based = true\nruntime = \"20ms\"\n"
    );
    let profile = profile::built_in("dell-r7525").unwrap();
    let info = ProfileFacts {
        name: "dell-r7525",
        cpus: profile.cpus(),
    };
    let scenario = Scenario::from_toml(Path::new("s.toml"), &text).unwrap();
    let plan = scenario.plan(&[info]).unwrap();
    let mut simulator = Simulator::new(&plan, &profile).unwrap();
    simulator.collect_counts();
    assert!(matches!(simulator.run(|_| true), Outcome::Finished));
    simulator.settle();
    let count = |name| {
        let mut labels = simulator.spent().labels();
        let found = labels.find(|(label, _)| label.name() == name);
        found.map_or(0, |(_, sum)| sum.count)
    };
    let recorder = simulator.recorder();
    let report = Report::new(Origin::default(), &plan, &profile, recorder, None);
    Counted {
        by_hctx: report.runs.unwrap(),
        runs: count("run.stopped"),
        looks: count("run-queues.hctx"),
        ios: count("complete.end"),
    }
}

/// mq-deadline keeps the requests of all hctxs, so one of them is enough: a run for each I/O, and
/// not one of each hctx.
#[test]
fn a_budget_that_comes_back_runs_one_hctx_and_not_all() {
    let new = run("mq-deadline", "v5.12");
    let old = run("mq-deadline", "v5.9");
    assert!(
        new.runs < 3 * new.ios,
        "{} runs, {} I/Os",
        new.runs,
        new.ios
    );
    assert!(
        old.runs > 5 * old.ios,
        "{} runs, {} I/Os",
        old.runs,
        old.ios
    );
    // Remaining requests of other hctxs are looked for.
    assert!(new.looks > 48, "{} looks", new.looks);
}

/// Figures of a report: all runs, foreign ones among them, and, for the kernel that runs all hctxs,
/// more runs without a request than own ones. All are kblockd's here.
#[test]
fn runs_are_reported_by_hctx() {
    let new = run("mq-deadline", "v5.12");
    let old = run("mq-deadline", "v5.9");
    for counted in [&new, &old] {
        let all = counted.by_hctx.all;
        // One of each hctx may be in progress when the run ends.
        let runs_of = all.own + all.foreign;
        assert!(runs_of <= counted.runs, "{all:?}");
        assert!(runs_of + 48 >= counted.runs, "{all:?}, {}", counted.runs);
    }
    let (new, old) = (new.by_hctx, old.by_hctx);
    assert_eq!(old.hctxs.len(), 48);
    assert!(old.all.foreign > 5 * old.all.own, "{:?}", old.all);
    assert!(old.all.in_vain > old.all.own, "{:?}", old.all);
    // One hctx for all: the runs are requested where requests are.
    assert!(new.all.foreign < new.all.own, "{:?}", new.all);
    assert!(new.all.in_vain * 10 < old.all.in_vain, "{:?}", new.all);
}
