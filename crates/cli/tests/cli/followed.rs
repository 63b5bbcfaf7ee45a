//! Runs of the simulator as schedules of `specs/Restart` and `specs/Dispatch`, label by label:
//! random ones are written, and TLC takes them; it rejects those of block layers that are wrong on
//! purpose.
//!
//! `FOLLOWED_COUNT` and `FOLLOWED_SEED` choose other runs.

use std::any::Any;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use blkmq::path::Label;
use blkmq::schedule::Schedule;
use blkmq::schedule::labels::LabelTable;
use explore::run_recorder::Recording;
use explore::{dispatch, restart};
use scenario::profile;
use scenario::{ProfileFacts, Scenario};
use sim::machine::{Outcome, Simulator};
use sim::plan::Plan;
use sim::profile::MachineProfile;
use sim::rng::Rng;

use crate::defect::{Defect, Wrong};
use crate::place::{Place, blksim_within};

const PROFILE: &str = "ryzen-7950x";

/// Random runs of each specification.
const COUNT: u64 = 100;

pub(crate) fn one<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize]
}

/// Readers, and writers whose flushes go past the scheduler, on disks with shared tags.
fn of_restart(seed: u64) -> String {
    let mut rng = Rng::stream(seed, "followed");
    let rng = &mut rng;
    let disks = 2 + rng.below(2);
    let cpus = 1 + rng.below(6);
    let mut text = format!(
        "seed = {seed}\n[machine]\nprofile = \"{PROFILE}\"\ncpus = {cpus}\n[queue]\n\
         rules = \"{}\"\nscheduler = \"mq-deadline\"\nnr_requests = 64\nlone_plug = \"never\"\nrestart = \"{}\"\nrestart_rule = \"{}\"\n\
         [device]\ntype = \"null_blk\"\nnr_devices = {disks}\nshared_tags = 1\n\
         submit_queues = 1\npoll_queues = 0\nhw_queue_depth = {}\nirqmode = {}\n\
         memory_backed = 1\ncache_size = 16\n",
        one(rng, &["v6.1", "v6.12"]),
        one(rng, &["v4.11", "v4.14", "v4.14-map-count", "v4.15"]),
        one(rng, &["R0", "R1", "R2", "R2p", "R4", "all"]),
        1 + rng.below(2),
        // By timer most of the time: requests are in the device for a while.
        match rng.below(4) {
            2.. => format!("2\ncompletion_nsec = {}", 300 + rng.below(3_000)),
            mode => mode.to_string(),
        },
    );
    let mut flushed = BTreeSet::new();
    for job in 0..2 + rng.below(2 * disks - 1) {
        let disk = if job < disks { job } else { rng.below(disks) };
        let cpu = rng.below(cpus);
        let rw = one(rng, &["randread", "randwrite"]);
        // One flush may end the sequences of several threads, except the first without a step.
        let fsync = match rw == "randwrite" && flushed.insert(disk) {
            true => "fsync = 1\n",
            false => "",
        };
        text += &format!(
            "[[job]]\nfilename = \"/dev/nullb{disk}\"\nrw = \"{rw}\"\nbs = \"4k\"\n\
             ioengine = \"psync\"\ndirect = 1\nsize = \"64m\"\nnumber_ios = {}\n\
             cpus_allowed = \"{cpu}\"\n{fsync}",
            1 + rng.below(12),
        );
    }
    text
}

/// All that insertion and dispatch may be.
const SERIES: [&str; 7] = [
    "stock",
    "serialise-only",
    "poc",
    "v1",
    "v2",
    "v2-repaired",
    "v3",
];

/// Readers and writers of one disk under mq-deadline, each CPU with a bucket of its own.
fn of_dispatch(seed: u64, series: &str) -> String {
    let mut rng = Rng::stream(seed, "dispatched");
    let rng = &mut rng;
    let cpus = 1 + rng.below(6);
    let buckets = match series {
        "poc" | "v1" | "v2" | "v2-repaired" => {
            format!("dd_cpu_buckets = {}\n", cpus + rng.below(2))
        }
        _ => String::new(),
    };
    let mut text = format!(
        "seed = {seed}\n[machine]\nprofile = \"{PROFILE}\"\ncpus = {cpus}\n[queue]\n\
         rules = \"{}\"\nscheduler = \"mq-deadline\"\nnr_requests = 64\nseries = \"{series}\"\n\
         lone_plug = \"never\"\nnomerges = {}\ninline_runs = {}\n{buckets}\
         [device]\ntype = \"null_blk\"\nsubmit_queues = 1\nhw_queue_depth = 64\nirqmode = {}\n",
        one(rng, &["v6.1", "v6.12"]),
        rng.below(3),
        one(rng, &["false", "true"]),
        // By timer most of the time: requests are in the device for a while.
        match rng.below(4) {
            2.. => format!("2\ncompletion_nsec = {}", 300 + rng.below(3_000)),
            mode => mode.to_string(),
        },
    );
    for _ in 0..=rng.below(cpus + 2) {
        let engine = one(rng, &["psync", "io_uring", "libaio"]);
        let depth = if engine == "psync" {
            1
        } else {
            1 + rng.below(6)
        };
        text += &format!(
            "[[job]]\nrw = \"{}\"\nbs = 512\nioengine = \"{engine}\"\niodepth = {depth}\n\
             iodepth_batch_submit = {depth}\ndirect = 1\nnumber_ios = {}\ncpus_allowed = \"{}\"\n",
            one(rng, &["randread", "randwrite"]),
            1 + rng.below(12),
            rng.below(cpus),
        );
    }
    text
}

/// The plan of a scenario on a built-in machine.
fn plan_on(text: &str, name: &str) -> Result<(Plan, MachineProfile), String> {
    let profile = profile::built_in(name).expect("a built-in profile");
    let info = [ProfileFacts {
        name,
        cpus: profile.cpus(),
    }];
    let scenario = Scenario::from_toml(Path::new("random.toml"), text);
    let plan = scenario.and_then(|scenario| scenario.plan(&info));
    Ok((plan.map_err(|why| why.to_string())?, profile))
}

fn run(text: &str, wrong: Option<Wrong>) -> Result<Schedule, String> {
    run_on(PROFILE, text, wrong)
}

/// The schedule of a run on a built-in machine.
pub(crate) fn run_on(profile: &str, text: &str, wrong: Option<Wrong>) -> Result<Schedule, String> {
    let (plan, profile) = plan_on(text, profile)?;
    let mut simulator = Simulator::new(&plan, &profile)?;
    let recording = Recording::new(simulator.block_layer(), &plan.name)?;
    simulator.follow(Box::new(Defect::new(recording, wrong)));
    let stalled = matches!(simulator.run(|_| true), Outcome::Stalled(_));
    let followed: Box<dyn Any> = simulator.take_follower();
    let followed: Box<Defect> = followed.downcast().expect("it was given so");
    let mut recording = followed.recording;
    let schedule = recording.schedule(simulator.block_layer(), stalled)?;
    let merging = !schedule.spec.ends_with("Labels");
    assert!(!(merging && stalled), "{text}");
    Ok(schedule)
}

/// The same; none of a run with something that the specification has not. Left to chance are only
/// passes that end early, as another task wants the CPU, and writers that may not have all of the
/// scheduler's tags.
fn within(text: &str, wrong: Option<Wrong>) -> Option<Schedule> {
    match run(text, wrong) {
        Ok(schedule) => Some(schedule),
        Err(why) if why.contains("cut short") || why.contains("a scheduler tag") => None,
        Err(why) => panic!("{why}\n{text}"),
    }
}

/// From the environment, or `default`.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn seeds() -> core::ops::Range<u64> {
    let (first, count) = (
        setting("FOLLOWED_SEED", 1),
        setting("FOLLOWED_COUNT", COUNT),
    );
    first..first + count
}

/// These runs take each step that a label is but for `rare`, and the steps `more`.
fn all_are_taken(schedules: &[Schedule], table: &LabelTable, rare: &[&str], more: &[&str]) {
    let steps = schedules.iter().flat_map(|schedule| &schedule.steps);
    let taken: BTreeSet<&str> = steps.map(|step| step.action.as_str()).collect();
    let of_labels = Label::all().filter_map(|label| table.row(label).step);
    let of_labels = of_labels.filter(|step| !rare.contains(step));
    let mut all = of_labels.chain(more.iter().copied());
    assert_eq!(all.find(|step| !taken.contains(step)), None, "never taken");
}

/// As a file holds them.
fn can_be_read_again(schedules: &[Schedule]) {
    for schedule in schedules {
        let written = Schedule::parse(&schedule.to_string()).expect("a schedule file");
        assert_eq!(*schedule, written);
    }
}

#[test]
fn random_runs_of_shared_tags_are_written_down() {
    let seeds = seeds();
    let count = seeds.end - seeds.start;
    let all: Vec<Schedule> = seeds.filter_map(|s| within(&of_restart(s), None)).collect();
    let runs = all.len() as u64;
    assert!(runs * 10 >= count * 9, "only {runs} of {count} are within");
    can_be_read_again(&all);
    if count >= COUNT {
        // A CPU makes both its attempts to get a tag within the time that it may run ahead of
        // others: the second has the result of the first, and no entry is stale.
        let more = ["StartOne", "Miss", "Waking", "Wake"];
        all_are_taken(&all, &restart::TABLE, &["Stale", "Leave"], &more);
        let two = ("Contexts".to_owned(), "2".to_owned());
        assert!(all.iter().any(|schedule| schedule.settings.contains(&two)));
    }
}

#[test]
fn random_runs_of_the_series_are_written_down_and_some_postings_lose_requests() {
    let seeds = seeds();
    let count = seeds.end - seeds.start;
    let (mut all, mut stalled) = (Vec::new(), BTreeSet::new());
    for seed in seeds {
        let series = series(seed);
        let text = of_dispatch(seed, series);
        let schedule = run(&text, None).unwrap_or_else(|why| panic!("{why}\n{text}"));
        if schedule.shows == "NoStall violated" {
            stalled.insert(series);
        }
        all.push(schedule);
    }
    can_be_read_again(&all);
    let lossy = BTreeSet::from(["poc", "v1", "v2"]);
    if count < COUNT {
        assert!(stalled.is_subset(&lossy), "{stalled:?}");
        return;
    }
    // That of v2 is narrow: here is a run that is in it. With the mark after the filling it ends.
    let (seed, _) = lost();
    stalled.insert("v2");
    assert_eq!(stalled, lossy, "which postings lose requests");
    let ended = run(&of_dispatch(seed, "v2-repaired"), None).expect("a run");
    assert_eq!(ended.shows, "NeverAllDone violated");
    // Recheck: between an insertion and the look after it another CPU has to pick all there is,
    // which one run of some hundred has.
    let more = [
        "MergeAsk",
        "MergeLock",
        "TryLock",
        "TryLate",
        "Lock",
        "PickLock",
        "Offer",
        "Fire",
    ];
    all_are_taken(&all, &dispatch::TABLE, &["Recheck"], &more);
}

/// The stall that was looked for, and the same under rules that have it repaired.
#[test]
fn the_stall_ends_as_its_rule_says() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = crate_folder.join("scenarios/shared-restart-stall.toml");
    let text = std::fs::read_to_string(file).expect("a built-in scenario");
    let rules = ["R0", "R1", "R2", "R2p", "R4", "all"];
    let rules = rules.map(|rule| ("v4.14", rule));
    for (restart, rule) in rules.into_iter().chain([("v4.15", "R2"), ("v4.15", "R4")]) {
        let axes = format!("restart = \"{restart}\"\nrestart_rule = \"{rule}\"");
        let text = text.replace("restart = \"v4.14\"", &axes);
        let schedule = run(&text, None).expect("a run");
        let shows = match (restart, rule) {
            ("v4.14", "R2") => "NoStall violated",
            _ => "NeverAllDone violated",
        };
        assert_eq!(schedule.shows, shows, "{restart} {rule}");
        assert!(schedule.steps.len() > 4_000, "{restart} {rule}");
    }
}

/// Seeds of which several have a run in which v2 loses a request. They depend on nanoseconds
/// between threads whose first I/Os all begin at zero.
const LOST: core::ops::Range<u64> = 0..300;

/// The first run of them in which v2 loses a request, and its seed.
fn lost() -> (u64, Schedule) {
    let runs = LOST.map(|seed| (seed, run(&of_dispatch(seed, "v2"), None).expect("a run")));
    let mut lossy = runs.filter(|(_, run)| run.shows == "NoStall violated");
    lossy.next().expect("v2 loses under one of these seeds")
}

fn series(seed: u64) -> &'static str {
    SERIES[(seed % SERIES.len() as u64) as usize]
}

/// How many of these runs are not as TLC has them: it rejects a step, or the last state is another.
fn not_taken(spec: &str, schedules: &[Schedule]) -> usize {
    let place = Place::new();
    let specs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs");
    let mut args = vec!["check".to_owned(), spec.to_owned()];
    args.extend(["--specs", specs, "--run"].map(str::to_owned));
    for (number, schedule) in schedules.iter().enumerate() {
        let name = format!("{number}.schedule");
        place.write(&name, schedule.to_string());
        args.push(name);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ran = blksim_within(Duration::from_mins(10), place.0.path(), &args, &[]);
    let of = format!(" of {} as expected", schedules.len());
    assert!(ran.stdout.contains(&of), "{ran:?}");
    ran.stdout.matches("  MISMATCH\n").count()
}

#[test]
#[ignore = "two minutes of TLC: cargo xtask ci --full"]
fn tlc_takes_random_runs() {
    let of_restart = (1..=30).filter_map(|seed| within(&of_restart(seed), None));
    assert_eq!(not_taken("Restart", &of_restart.collect::<Vec<_>>()), 0);
    let of_dispatch = (1..=28).map(|seed| run(&of_dispatch(seed, series(seed)), None));
    let of_dispatch = of_dispatch.map(|schedule| schedule.expect("a run"));
    let (_, lost) = lost();
    let of_dispatch: Vec<Schedule> = of_dispatch.chain([lost]).collect();
    assert_eq!(not_taken("Dispatch", &of_dispatch), 0);
}

/// Runs of a block layer with a defect, as far as the defect makes another run of them.
fn defective(wrong: Wrong, scenario: impl Fn(u64) -> String) -> Vec<Schedule> {
    let defect = |seed| {
        let text = scenario(seed);
        let (right, defect) = (within(&text, None), within(&text, Some(wrong)));
        defect.filter(|defect| Some(defect) != right.as_ref())
    };
    let runs: Vec<Schedule> = (1..=60).filter_map(defect).take(8).collect();
    assert!(runs.len() >= 3, "{wrong:?}: {} runs differ", runs.len());
    runs
}

#[test]
#[ignore = "two minutes of TLC: cargo xtask ci --full"]
fn tlc_rejects_runs_of_a_wrong_block_layer() {
    let restart = |seed| of_restart(seed).replace("restart_rule = \"R4\"", "restart_rule = \"R2\"");
    for wrong in [
        Wrong::StaysCounted,
        Wrong::ForgottenRestart,
        Wrong::ForgottenWake,
        Wrong::ForgottenRun,
    ] {
        let runs = defective(wrong, restart);
        let rejected = not_taken("Restart", &runs);
        // A wake that is lost while another run is to come looks like two that became one.
        let enough = rejected * 4 >= runs.len() * 3;
        assert!(enough, "{wrong:?}: {rejected} of {}", runs.len());
    }
    for (wrong, series) in [
        (Wrong::GateLeftOpen, "serialise-only"),
        (Wrong::LostFill, "v2-repaired"),
        (Wrong::ForgottenMark, "v2-repaired"),
        (Wrong::ForgottenDelay, "v2-repaired"),
    ] {
        let runs = defective(wrong, |seed| of_dispatch(seed, series));
        assert_eq!(not_taken("Dispatch", &runs), runs.len(), "{wrong:?}");
    }
}

/// One error names the requirement of either specification, or the event that it lacks.
#[test]
fn a_run_of_neither_specification_is_refused() {
    let text = of_dispatch(1, "stock");
    for (from, to, what) in [
        (
            "scheduler = \"mq-deadline\"",
            "scheduler = \"none\"",
            "for specs/Restart: 2 to 8 disks that share one tag set; or for specs/Dispatch: \
             scheduler mq-deadline",
        ),
        (
            "submit_queues = 1",
            "submit_queues = 2",
            "for specs/Dispatch: one hardware queue",
        ),
        (
            "nr_requests = 64",
            "nr_requests = 64\nseries = \"v2\"\ndd_cpu_buckets = 1",
            "a bucket for each CPU",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let text = text.replace("series = \"stock\"\n", "").replace(from, to);
        let why = run(&text, None).expect_err(what);
        assert!(why.contains(what), "{to}: {why}");
    }
    // A holder of one tag needs another one sooner or later.
    let with_one_tag =
        |seed| of_dispatch(seed, "v2").replace("queue_depth = 64", "queue_depth = 1");
    let errors = (1..=20).filter_map(|seed| run(&with_one_tag(seed), None).err());
    let errors: BTreeSet<String> = errors.collect();
    let message = "the driver's tags ran out (device queue depth)";
    assert!(errors.contains(message), "{errors:?}");
}
