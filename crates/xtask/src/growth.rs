//! `cargo xtask growth`: what a simulated I/O costs and how much memory a run takes, by the number
//! of CPUs, hctxs and devices, from 1 to 1,024. benches/growth.toml has the figures, and a page of
//! docs/results shows them (`results/by_size.rs`).
//!
//! Instructions as in `speed.rs`: two runs that differ only in the number of their I/Os. The load
//! grows with the machine: one thread for each CPU or device, so that all parts of it work.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::build::Build;
use crate::results::by_size::{FIGURES, Figures, SIZES, kept};
use crate::speed::{self, Counted};
use crate::step::{Failure, Outcome, Result};
use crate::{paths, step};

/// I/Os of the shorter run and of the longer one, over all threads.
const IOS: [u32; 2] = [8192, 16_384];
/// I/Os that a thread has at once: no more than all tags together, so that none waits for a tag.
const IODEPTH: u32 = 2;
/// Tags of a device, and more if all threads together need more.
const TAGS: u32 = 64;
/// Kept figures are those of the program as it is, to such a part.
const KEPT: f64 = 0.1;

/// What grows; the rest stays as it is.
struct Axis {
    name: &'static str,
    /// CPUs, hctxs and devices at a size.
    of: fn(u32) -> [u32; 3],
    queue: &'static [&'static str],
}

const NONE: &[&str] = &["--set=queue.scheduler=none"];
const MQ_DEADLINE: &[&str] = &["--set=queue.scheduler=mq-deadline"];

const AXES: [Axis; 5] = [
    Axis {
        name: "cpus",
        of: |n| [n, 1, 1],
        queue: NONE,
    },
    Axis {
        name: "contended",
        of: |n| [n, 1, 1],
        queue: &[
            "--set=queue.scheduler=mq-deadline",
            "--set=queue.nr_requests=2048",
        ],
    },
    Axis {
        name: "hctxs",
        of: |n| [1024, n, 1],
        queue: NONE,
    },
    Axis {
        name: "devices",
        of: |n| [16, 1, n],
        queue: MQ_DEADLINE,
    },
    Axis {
        name: "together",
        of: |n| [n, 1, n],
        queue: MQ_DEADLINE,
    },
];

/// Measures all axes and judges them; `write` keeps the figures.
pub(crate) fn run(write: bool) -> Result {
    if !paths::has_program("valgrind") {
        return step::missing_tool("valgrind is missing");
    }
    let blksim = Build::Release.blksim()?;
    let kept = if write { None } else { Some(kept()?) };
    let (mut text, mut wrong) = (String::new(), Vec::new());
    for axis in &AXES {
        let name = axis.name;
        println!("{name}");
        let mut figures = Figures::default();
        for size in SIZES {
            let (instructions, mib) = measured(&blksim, axis, size)?;
            println!("{size:6}: {instructions} instructions per I/O, {mib} MiB");
            figures.instructions.push(instructions);
            figures.mib.push(mib);
        }
        let Figures { instructions, mib } = &figures;
        text += &format!("\n[{name}]\ninstructions = {instructions:?}\nmib = {mib:?}\n");
        wrong.extend(judged(axis, &figures));
        if let Some(kept) = &kept {
            let none = Figures::default();
            wrong.extend(stale(name, &figures, kept.get(name).unwrap_or(&none)));
        }
    }
    if write {
        let text = format!("# Written by `cargo xtask growth --write`.\n{text}");
        let file = paths::root().join(FIGURES);
        fs::write(file, text).map_err(|e| Failure(format!("{FIGURES}: cannot write: {e}")))?;
    }
    match wrong.is_empty() {
        true => Ok(Outcome::Passed),
        false => Err(Failure(wrong.join("\n"))),
    }
}

/// What of an axis grows faster than it may up to the largest size: instructions than the logarithm
/// of the size, memory than the number of CPUs times that of hctxs and devices.
fn judged(axis: &Axis, figures: &Figures) -> Vec<String> {
    let (name, mut wrong) = (axis.name, Vec::new());
    let [.., fewer, size] = SIZES;
    let mut judge = |what: &str, of: &[u64], most: f64| {
        let ratio = of[SIZES.len() - 1] as f64 / of[SIZES.len() - 2] as f64;
        if ratio > most {
            wrong.push(format!(
                "{name} {size}: {ratio:.2} times the {what} of {fewer}, expected at most \
                 {most}"
            ));
        }
    };
    let logarithm = f64::from(size).log2() / f64::from(fewer).log2();
    judge("instructions", &figures.instructions, logarithm);
    let parts = |size| (axis.of)(size).map(f64::from).iter().product::<f64>();
    judge("memory", &figures.mib, parts(size) / parts(fewer));
    wrong
}

/// What of the kept figures is no longer so.
fn stale(name: &str, now: &Figures, kept: &Figures) -> Option<String> {
    let far = |(now, kept): (&u64, &u64)| now.abs_diff(*kept) as f64 > KEPT * *kept as f64 + 1.0;
    let far = |now: &[u64], kept: &[u64]| now.len() != kept.len() || now.iter().zip(kept).any(far);
    (far(&now.instructions, &kept.instructions) || far(&now.mib, &kept.mib))
        .then(|| format!("{name}: not as {FIGURES} has it; --write"))
}

/// Instructions per I/O, and MiB.
fn measured(blksim: &Path, axis: &Axis, size: u32) -> Result<(u64, u64)> {
    let [cpus, hctxs, devices] = (axis.of)(size);
    let threads = cpus.max(devices);
    let args = |ios: u32| -> Result<Vec<String>> {
        let job = job_file(axis.name, cpus, devices, ios / threads)?;
        let tags = TAGS.max(threads * IODEPTH / (hctxs * devices));
        let device =
            format!("null_blk,nr_devices={devices},submit_queues={hctxs},hw_queue_depth={tags}");
        let words = [
            "run".to_owned(),
            job.display().to_string(),
            "--machine=ryzen-7950x:sockets=32".to_owned(),
            format!("--set=machine.cpus={cpus}"),
            format!("--device={device}"),
        ];
        let queue = axis.queue.iter().map(|word| (*word).to_owned());
        Ok(words.into_iter().chain(queue).collect())
    };
    let [short, long] = [args(IOS[0])?, args(IOS[1])?];
    let name = format!("growth-{}-{size}", axis.name);
    let memory = high_water(blksim, &short)?;
    let [short, long] = thread::scope(|scope| {
        [("short", &short), ("long", &long)]
            .map(|(which, args)| {
                let name = &name;
                scope.spawn(move || counted_of(blksim, name, args, which))
            })
            .map(|run| {
                run.join()
                    .unwrap_or_else(|_| Err(Failure("a thread ended".to_owned())))
            })
    });
    let instructions = speed::slope(short?, long?);
    let instructions =
        instructions.ok_or_else(|| Failure(format!("{name}: the longer run has no more I/Os")))?;
    Ok((instructions.round() as u64, memory / 1024))
}

fn counted_of(blksim: &Path, name: &str, args: &[String], which: &str) -> Result<Counted> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    speed::counted(blksim, &format!("{name}-{which}"), &args, &[])
}

/// A thread on each CPU, or for each device.
fn job_file(name: &str, cpus: u32, devices: u32, ios: u32) -> Result<PathBuf> {
    let mut text = format!(
        "[global]\nrw=randread\nbs=4k\nioengine=io_uring\niodepth={IODEPTH}\ndirect=1\n\
         norandommap=1\ngroup_reporting=1\nnumber_ios={ios}\n"
    );
    if devices == 1 {
        text += &format!(
            "[j]\nnumjobs={cpus}\ncpus_allowed=0-{}\ncpus_allowed_policy=split\n\
             filename=/dev/nullb0\n",
            cpus - 1
        );
    } else {
        for device in 0..devices {
            let cpu = device % cpus;
            text += &format!("[j{device}]\ncpus_allowed={cpu}\nfilename=/dev/nullb{device}\n");
        }
    }
    let folder = paths::target_dir().join("speed");
    let file = folder.join(format!("growth-{name}-{ios}.fio"));
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, text));
    written.map_err(|e| Failure(format!("{}: {e}", file.display())))?;
    Ok(file)
}

/// The most memory that a run has had, KiB: VmHWM, looked at until it ends. All of it is taken at
/// the beginning.
#[expect(clippy::disallowed_methods, reason = "another process is looked at")]
fn high_water(blksim: &Path, args: &[String]) -> Result<u64> {
    let failed = |e: std::io::Error| Failure(format!("{}: {e}", blksim.display()));
    let mut run = Command::new(blksim);
    run.args(args).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = run.spawn().map_err(failed)?;
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut most = 0;
    while child.try_wait().map_err(failed)?.is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        most = kib.unwrap_or(0).max(most);
        thread::sleep(Duration::from_millis(1));
    }
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(instructions: fn(f64) -> f64, mib: fn(u64) -> u64) -> Figures {
        let instructions = SIZES.map(|size| instructions(f64::from(size)) as u64);
        Figures {
            instructions: instructions.to_vec(),
            mib: SIZES.map(|size| mib(size.into())).to_vec(),
        }
    }

    #[test]
    fn a_loop_over_all_parts_is_found_and_a_logarithm_is_not() {
        let log = figures(|n| 8000.0 * (1.0 + n.log2() / 5.0), |n| 20 + n);
        assert_eq!(judged(&AXES[0], &log), Vec::<String>::new());
        // Six instructions for each CPU.
        let linear = figures(|n| 8000.0 + 6.0 * n, |n| 20 + n);
        let wrong = judged(&AXES[0], &linear);
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(
            wrong[0].starts_with("cpus 1024: 1.48 times the instructions of 256"),
            "{wrong:?}"
        );
        // One byte for each pair.
        let squared = figures(|_| 8000.0, |n| 20 + n * n / 1024);
        assert!(
            judged(&AXES[0], &squared)[0].contains("times the memory"),
            "{squared:?}"
        );
    }

    #[test]
    fn figures_that_changed_are_stale() {
        let before = figures(|_| 8000.0, |_| 40);
        let of = |instructions, mib| stale("cpus", &figures(instructions, mib), &before);
        assert_eq!(of(|_| 8700.0, |_| 44), None);
        assert!(of(|_| 8900.0, |_| 44).is_some());
        assert!(of(|_| 8000.0, |_| 30).is_some());
        assert!(stale("cpus", &before, &Figures::default()).is_some());
    }
}
