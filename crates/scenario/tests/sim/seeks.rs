//! Seeks of rotational disks in reports: all reads and writes that were issued, each with its
//! thread.

use blkmq::env::TraceAction;
use blkmq::request::Op;
use scenario::report::{Details, Origin, Report};
use sim::machine::Simulator;
use sim::recorder::Seek;

use crate::runs;

/// Sectors of each half of the disk.
const HALF: u64 = 8192;

/// A thread in each half; the second one writes and flushes.
fn scenario(device: &str, ramp: &str) -> String {
    format!(
        "[device]\ntype = \"scsi_debug\"\nndelay = 100000\n{device}[queue]\n\
         scheduler = \"mq-deadline\"\n[[job]]\nname = \"low\"\nrw = \"read\"\ndirect = 1\n\
         size = \"4m\"\nbs = \"64k\"\n{ramp}[[job]]\nname = \"high\"\nrw = \"randwrite\"\n\
         direct = 1\noffset = \"4m\"\nsize = \"4m\"\nbs = \"64k\"\nfsync = 8\n{ramp}"
    )
}

/// The recorded seeks, the first sectors of reads and writes that were issued, and the details.
fn ran(text: &str) -> (Vec<Seek>, Vec<u64>, Details) {
    let plan = runs::plan_of(text);
    let mut simulator = Simulator::new(&plan, &runs::machine()).unwrap();
    simulator.collect_details();
    simulator.trace();
    if let Some(stall) = runs::to_its_end(&mut simulator) {
        panic!("{stall}");
    }
    simulator.settle();
    let points = simulator.take_trace().into_iter();
    let data = |op: Op| matches!(op, Op::Read | Op::Write);
    let issued = points
        .filter(|(_, _, _, point)| point.action == TraceAction::Issue && data(point.op))
        .map(|(_, _, _, point)| point.sector.0)
        .collect();
    let recorder = simulator.recorder();
    let noted = recorder.seeks.as_ref().map(|seeks| seeks.first.clone());
    let origin = Origin {
        version: String::new(),
        scenario_hash: String::new(),
        options: Vec::new(),
        varied: Vec::new(),
    };
    let report = Report::new(origin, &plan, &runs::machine(), recorder, None);
    let details = report.details.expect("they were collected");
    (noted.unwrap_or_default(), issued, details)
}

/// Each issued command is there once, in the half of its thread.
fn check(noted: &[Seek], issued: &[u64]) -> Result<(), String> {
    for seek in noted {
        let thread = seek.thread.ok_or("a command without a thread")?;
        if seek.sector.0 / HALF != thread as u64 {
            return Err(format!("thread {thread} is not at {:?}", seek.sector));
        }
    }
    let mut sectors: Vec<u64> = noted.iter().map(|seek| seek.sector.0).collect();
    let mut issued = issued.to_vec();
    sectors.sort_unstable();
    issued.sort_unstable();
    match sectors == issued {
        true => Ok(()),
        false => Err(format!("{} of {} issued", sectors.len(), issued.len())),
    }
}

#[test]
fn all_that_is_issued_is_reported_with_its_thread() {
    let (noted, issued, details) = ran(&scenario("rotational = true\n", ""));
    assert_eq!(check(&noted, &issued), Ok(()));
    assert!(noted.len() >= 100, "{}", noted.len());
    let message = details.seeks.expect("the disk is rotational");
    assert_eq!(message.commands, noted.len() as u64);
    let names: Vec<&str> = message
        .threads
        .iter()
        .map(|of| of.thread.as_str())
        .collect();
    assert_eq!(names, ["low 0", "high 0"]);
    for (number, of) in message.threads.iter().enumerate() {
        assert_eq!(of.device, "sda");
        assert!(of.time_ns.is_sorted(), "{:?}", of.time_ns);
        let own = noted.iter().filter(|seek| seek.thread == Some(number));
        assert_eq!(of.sector.len(), own.count());
        assert_eq!(of.sector.len(), of.time_ns.len());
        assert_eq!(of.sector.len(), of.sectors.len());
        assert!(of.sectors.iter().all(|&sectors| sectors >= 128));
    }
}

#[test]
fn a_command_that_is_missing_or_anothers_is_noticed() {
    let (noted, issued, _) = ran(&scenario("rotational = true\n", ""));
    let lost = check(&noted[1..], &issued);
    assert!(lost.is_err_and(|why| why.contains("issued")));
    let mut stolen = noted.clone();
    stolen[0].thread = stolen[0].thread.map(|thread| 1 - thread);
    let stolen = check(&stolen, &issued);
    assert!(stolen.is_err_and(|why| why.contains("is not at")));
    let mut nobodys = noted;
    nobodys[0].thread = None;
    assert!(check(&nobodys, &issued).is_err());
}

#[test]
fn the_ramp_does_not_count() {
    let ramp = "time_based = true\nruntime = \"5ms\"\nramp_time = \"5ms\"\n";
    let (noted, issued, details) = ran(&scenario("rotational = true\n", ramp));
    let message = details.seeks.expect("the disk is rotational");
    assert_eq!(message.commands, noted.len() as u64);
    assert!(noted.len() < issued.len() * 2 / 3, "{}", issued.len());
    let last = message
        .threads
        .iter()
        .filter_map(|of| of.time_ns.last())
        .max();
    assert!(last.is_some_and(|&at| at < 5_500_000), "{last:?}");
}

#[test]
fn of_other_disks_nothing_is_recorded() {
    let (noted, issued, details) = ran(&scenario("", ""));
    assert!(!issued.is_empty());
    assert_eq!((noted.len(), details.seeks), (0, None));
}
