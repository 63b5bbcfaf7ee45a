//! Small random scenarios: no run stalls as long as the device answers every command.
//!
//! `STALLS_COUNT` and `STALLS_SEED` select others; a stall prints the scenario, which `blksim run
//! FILE.toml` repeats, and so does a panic with `STALLS_COUNT=1`.

use scenario::profile;
use scenario::{ProfileFacts, Scenario};
use sim::machine::{Outcome, Simulator};
use sim::profile::MachineProfile;
use sim::rng::Rng;
use std::path::Path;

const PROFILE: &str = "ryzen-7950x";

fn one<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize]
}

/// A number from 1 to `most`.
fn up_to(rng: &mut Rng, most: u64) -> u64 {
    1 + rng.below(most)
}

/// The device's table. Returns how many polled queues it has, and whether it takes trims.
fn device(rng: &mut Rng, text: &mut String) -> (u64, bool) {
    let depth = up_to(rng, 8);
    let queues = up_to(rng, 4);
    let polled = u64::from(rng.chance(1, 4));
    match rng.below(3) {
        0 => {
            let trims = rng.chance(1, 2);
            *text += &format!(
                "[device]\ntype = \"null_blk\"\nsubmit_queues = {queues}\nirqmode = {}\n\
                 hw_queue_depth = {depth}\npoll_queues = {polled}\nshared_tag_bitmap = {}\n",
                rng.below(3),
                rng.below(2)
            );
            if trims {
                *text += "memory_backed = 1\ndiscard = 1\n";
                *text += one(rng, &["", "cache_size = 1\n", "cache_size = 1\nfua = 0\n"]);
            }
            *text += one(rng, &["", "", "mbps = 100\n"]);
            (polled, trims)
        }
        1 => {
            *text += &format!(
                "[device]\ntype = \"nvme\"\nio_queue_depth = {}\nnr_queues = {}\nwrite_queues = {}\n\
                 poll_queues = {polled}\nvolatile_cache = {}\nchannels = {}\n",
                depth + 1,
                queues + polled,
                rng.below(2),
                rng.below(2),
                up_to(rng, 4)
            );
            *text += one(rng, &["", "coalesce_threshold = 3\ncoalesce_time = 1\n"]);
            (polled, true)
        }
        _ => {
            let polled = polled.min(queues - 1);
            *text += &format!(
                "[device]\ntype = \"scsi_debug\"\ndev_size_mb = 64\nsubmit_queues = {queues}\n\
                 poll_queues = {polled}\nndelay = {}\nmax_queue = {depth}\nrandom = {}\nlbpu = 1\n",
                one(rng, &[1_000, 20_000, 300_000]),
                rng.below(2)
            );
            *text += &format!("host_max_queue = {}\n", one(rng, &[0, depth]));
            (polled, true)
        }
    }
}

fn faults(rng: &mut Rng, text: &mut String) {
    *text += "[device.fault]\n";
    for name in ["busy", "requeue", "error", "timeout"] {
        let chance = one(rng, &["0", "0", "1/50", "1/5", "1/2"]);
        if name != "timeout" || chance != "1/2" {
            *text += &format!("{name} = \"{chance}\"\n");
        }
    }
    *text += one(rng, &["busy_status = \"dev_resource\"\n", ""]);
}

fn job(rng: &mut Rng, text: &mut String, polled: u64, trims: bool) {
    let polls = polled > 0 && rng.chance(1, 2);
    let rw = match rng.below(6) {
        0 if trims => "randtrim",
        0 | 1 => "randrw",
        2 => "randwrite",
        3 => "write",
        4 => "read",
        _ => "randread",
    };
    let engine = if polls {
        "io_uring"
    } else {
        one(rng, &["io_uring", "libaio", "psync", "sync"])
    };
    let depth = up_to(rng, 16);
    *text += &format!(
        "[[job]]\nrw = \"{rw}\"\nbs = \"{}\"\nioengine = \"{engine}\"\nnumjobs = {}\ndirect = 1\n\
         size = \"16m\"\nnumber_ios = {}\nthread = 1\n",
        one(rng, &["4k", "16k", "64k"]),
        up_to(rng, 8),
        up_to(rng, 40),
    );
    if engine == "io_uring" || engine == "libaio" {
        let (submit, complete) = (up_to(rng, depth), up_to(rng, depth));
        *text += &format!(
            "iodepth = {depth}\niodepth_batch = {submit}\niodepth_batch_complete_min = {complete}\n"
        );
    }
    if polls {
        *text += "hipri = 1\n";
    }
    *text += one(rng, &["", "continue_on_error = \"all\"\n"]);
    if rw != "randtrim" && rw != "read" && rw != "randread" {
        *text += one(rng, &["", "fsync = 2\n", "fdatasync = 3\n"]);
    }
}

/// The January 2024 series, as far as it loses no requests.
fn series(rng: &mut Rng) -> &'static str {
    let all = [
        "",
        "series = \"v2-repaired\"\n",
        "series = \"v2-repaired\"\ndd_cpu_buckets = 1\n",
        "series = \"v3\"\n",
        "series = \"serialise-only\"\n",
        "series = \"skip-merge\"\n",
    ];
    one(rng, &all)
}

/// A scenario as a user would write it.
fn scenario(seed: u64) -> String {
    let mut rng = Rng::stream(seed, "stalls");
    let rng = &mut rng;
    let mut text = format!(
        "seed = {seed}\n[machine]\nprofile = \"{PROFILE}\"\ncpus = {}\n[queue]\nrules = \"{}\"\n\
         scheduler = \"{}\"\nio_timeout = 5\nnomerges = {}\nrq_affinity = {}\n",
        up_to(rng, 8),
        one(rng, &["v6.1", "v6.12", "v5.11", "v5.13"]),
        one(rng, &["none", "mq-deadline", "kyber", "bfq"]),
        rng.below(3),
        rng.below(3),
    );
    if text.contains("mq-deadline") || text.contains("bfq") {
        text += series(&mut Rng::stream(seed, "series"));
    }
    let (polled, trims) = device(rng, &mut text);
    faults(rng, &mut text);
    for _ in 0..up_to(rng, 2) {
        job(rng, &mut text, polled, trims);
    }
    text
}

/// The same on several devices: each job works on some of them, null_blk's may share their tags.
fn on_several(seed: u64) -> String {
    let mut rng = Rng::stream(seed, "devices");
    let rng = &mut rng;
    let count = 1 + up_to(rng, 3);
    let one_device = scenario(seed);
    let (several, name): (String, fn(u64) -> String) = if one_device.contains("\"null_blk\"") {
        let shared = rng.below(2);
        let several = format!("nr_devices = {count}\nshared_tags = {shared}\n");
        (several, |i| format!("/dev/nullb{i}"))
    } else if one_device.contains("\"nvme\"") {
        (format!("count = {count}\n"), |i| format!("/dev/nvme{i}n1"))
    } else {
        // Hosts, or units of one host.
        let several = one(rng, &["add_host", "num_tgts", "max_luns"]);
        (format!("{several} = {count}\n"), |i| {
            format!("/dev/sd{}", char::from(b'a' + i as u8))
        })
    };
    let mut text = one_device.replace("[device]\n", &format!("[device]\n{several}"));
    let mut from = 0;
    while let Some(found) = text[from..].find("[[job]]\n") {
        from += found + "[[job]]\n".len();
        let mut files: Vec<String> = (0..count).filter(|_| rng.chance(2, 3)).map(name).collect();
        if files.is_empty() {
            files.push(name(rng.below(count)));
        }
        let service = one(rng, &["roundrobin", "roundrobin:3", "random", "sequential"]);
        let files = files.join(":");
        let job = format!("filename = \"{files}\"\nfile_service_type = \"{service}\"\n");
        text.insert_str(from, &job);
    }
    text
}

/// From the environment, or `default`.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// The outcome of a scenario; `None` if it makes no plan.
fn outcome(text: &str, profile: &MachineProfile) -> Option<Result<u64, String>> {
    let info = [ProfileFacts {
        name: PROFILE,
        cpus: profile.cpus(),
    }];
    let scenario = Scenario::from_toml(Path::new("random.toml"), text);
    let plan = match scenario.and_then(|scenario| scenario.plan(&info)) {
        Ok(plan) => plan,
        Err(why) if std::env::var_os("STALLS_REFUSED").is_some() => panic!("{why}\n{text}"),
        Err(_) => return None,
    };
    let mut simulator = Simulator::new(&plan, profile).expect("a machine of this plan");
    Some(match simulator.run(|_| true) {
        Outcome::Finished => Ok(simulator.work_done().1),
        Outcome::Stalled(stall) => Err(format!("{stall}")),
    })
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn nothing_stalls_while_the_device_answers() {
    try_many(scenario, 100);
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn nothing_stalls_on_several_devices() {
    try_many(on_several, 40);
}

#[test]
#[ignore = "half a minute: cargo xtask ci --full"]
fn nothing_stalls_in_more_scenarios() {
    try_many(scenario, 300);
    try_many(on_several, 120);
}

/// `count` of them, unless the environment says otherwise.
fn try_many(scenario: fn(u64) -> String, count: u64) {
    let profile = profile::built_in(PROFILE).expect("the profile of the published runs");
    let (first, count) = (setting("STALLS_SEED", 1), setting("STALLS_COUNT", count));
    let (mut run, mut stalls) = (0, Vec::new());
    for seed in first..first + count {
        let text = scenario(seed);
        if count == 1 {
            // For a run that panics.
            println!("{text}");
        }
        match outcome(&text, &profile) {
            None => {}
            Some(Ok(_)) => run += 1,
            Some(Err(stall)) => stalls.push(format!("{text}\n{stall}")),
        }
    }
    assert!(
        stalls.is_empty(),
        "{} of {count} stall:\n{}",
        stalls.len(),
        stalls[..stalls.len().min(3)].join("\n\n")
    );
    assert!(run * 2 > count, "only {run} of {count} scenarios can run");
}
