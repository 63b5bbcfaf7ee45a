//! Readers other than fio's jobs: processes that hand pieces over in order, threads that share an
//! I/O context, NFS servers.

use std::collections::BTreeSet;
use std::path::Path;

use blkmq::env::TraceAction;
use scenario::profile;
use scenario::{ProfileFacts, Scenario};
use sim::machine::{Outcome, Simulator};

/// A run on the machine of the disk, with its trace.
fn run(text: &str) -> Simulator {
    let profile = profile::built_in("quadcore").unwrap();
    let info = ProfileFacts {
        name: &profile.name,
        cpus: profile.cpus(),
    };
    let scenario = Scenario::from_toml(Path::new("s.toml"), text).unwrap();
    let plan = scenario.plan(&[info]).unwrap();
    let mut simulator = Simulator::new(&plan, &profile).unwrap();
    simulator.trace();
    let outcome = simulator.run(|_| true);
    assert!(matches!(outcome, Outcome::Finished), "{text}\n{outcome:?}");
    simulator.settle();
    simulator
}

fn text(rules: &str, scheduler: &str, table: &str) -> String {
    format!(
        "[machine]\nprofile = \"quadcore\"\nhz = 1000\n[queue]\nrules = \"{rules}\"\n\
         scheduler = \"{scheduler}\"\n[device]\ndrive = \"sata2009\"\n{table}\n"
    )
}

fn bytes(simulator: &Simulator) -> u64 {
    let jobs = simulator.recorder().jobs.iter();
    jobs.map(|job| job.directions[0].bytes).sum()
}

/// Pieces that a process requested while one before the reader's last one was missing.
fn ahead_of_its_turn(simulator: &mut Simulator, processes: u64, sectors: u64) -> usize {
    let mut there = BTreeSet::new();
    let mut ahead = 0;
    for (.., point) in simulator.take_trace() {
        let piece = point.sector.0 / sectors;
        match point.action {
            TraceAction::Queue => {
                let handed_over = (piece + 1).saturating_sub(processes);
                ahead += usize::from((0..handed_over).any(|before| !there.contains(&before)));
            }
            TraceAction::Complete => {
                let last = (point.sector.0 + u64::from(point.sectors.0)) / sectors;
                there.extend(piece..last);
            }
            _ => {}
        }
    }
    ahead
}

/// A process continues when all before it have handed their pieces over: with cfq it runs ahead
/// otherwise. All of them end.
#[test]
fn processes_take_turns() {
    for (hand_over, in_order) in [("in-order", true), ("none", false)] {
        let table = format!(
            "[[interleaved]]\npiece = \"64k\"\nprocesses = 3\nhand_over = \"{hand_over}\"\n\
             direct = 1\nsize = \"1g\"\nnumber_ios = 40"
        );
        let mut simulator = run(&text("v2.6.32-rc5", "cfq", &table));
        assert_eq!(simulator.recorder().total_ios, 3 * 40);
        let ahead = ahead_of_its_turn(&mut simulator, 3, 128);
        assert_eq!(ahead == 0, in_order, "{hand_over}: {ahead} ahead");
    }
}

/// Own queues make each idle for the others; a shared I/O context has one queue, and so have queues
/// that were merged.
#[test]
fn one_queue_of_all_readers_does_not_idle() {
    let of = |rules: &str, context: &str| {
        let table = format!(
            "[[interleaved]]\nprocesses = 9\npiece = \"16k\"\nhand_over = \"none\"\n\
             io_context = \"{context}\"\noffset = \"250g\"\nsize = \"4g\"\n\
             time_based = true\nruntime = \"2s\""
        );
        bytes(&run(&text(rules, "cfq", &table)))
    };
    let own = of("v2.6.32-rc5", "own");
    assert!(of("v2.6.32-rc5", "shared") > 4 * own, "{own}");
    assert!(of("v2.6.32-rc5-coop", "own") > 4 * own, "{own}");
}

/// The requests of a client are read, at most as much as its link carries, and the same in each
/// run.
#[test]
fn a_server_reads_what_its_clients_stream() {
    for (scheduler, clients, mb_s) in [("deadline", 1, 110), ("cfq", 2, 110), ("cfq", 1, 10)] {
        let table = format!(
            "[[nfsd]]\nthreads = 4\nclients = {clients}\nlink_mb_s = {mb_s}\noffset = \"225g\"\n\
             size = \"2g\"\nruntime = \"1s\""
        );
        let mut simulator = run(&text("v2.6.32", scheduler, &table));
        let read = bytes(&simulator);
        assert!(read > mb_s * 200_000, "{scheduler}: {read}");
        assert!(read <= mb_s * 1_000_000 + (1 << 20), "{scheduler}: {read}");
        let trace = simulator.take_trace();
        let sum = |action| {
            let of = trace.iter().filter(|(.., point)| point.action == action);
            of.map(|(.., point)| u64::from(point.sectors.0))
                .sum::<u64>()
        };
        assert_eq!(sum(TraceAction::Queue), sum(TraceAction::Complete));
        assert!(sum(TraceAction::Queue) * 512 >= read);
        let again = run(&text("v2.6.32", scheduler, &table)).take_trace();
        assert_eq!(format!("{trace:?}"), format!("{again:?}"));
    }
}

/// The thread that went idle last takes the next call: over a slow link two of eight do all.
#[test]
fn the_thread_that_idles_last_serves_first() {
    let table = "[[nfsd]]\nthreads = 8\nslots = 2\nlink_mb_s = 5\noffset = \"225g\"\nsize = \"1g\"\n\
                 runtime = \"1s\"";
    let simulator = run(&text("v2.6.32", "deadline", table));
    let busy = simulator.recorder().threads.iter();
    let busy = busy.filter(|usage| usage.system_ps > 1_000_000_000).count();
    assert!((1..=2).contains(&busy), "{busy} threads");
}
