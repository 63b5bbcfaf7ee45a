//! `cargo xtask growth`: what a simulated I/O costs and how much memory a run takes, by the number
//! of CPUs, hctxs and devices, from 1 to 1,024.
//!
//! Instructions as in `speed.rs`: two runs that differ only in the number of their I/Os. The load
//! grows with the machine: one thread for each CPU or device, so that all parts of it work.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::build::Build;
use crate::speed::{self, Counted};
use crate::step::{Failure, Outcome, Result};
use crate::{paths, step};

/// Where the figures are.
const FIGURES: &str = "benches/growth.toml";
/// Sizes of each axis.
const SIZES: [u32; 6] = [1, 4, 16, 64, 256, 1024];
/// I/Os of the shorter run and of the longer one, over all threads.
const IOS: [u32; 2] = [8192, 24_576];
/// An I/O may cost so many times the instructions of the least size, plus so many times that for
/// each doubling since: what grows with the size itself is far beyond that at 1,024.
const A_DOUBLING: f64 = 0.25;
/// Memory of the largest size: at most so many times that of a quarter of it. Linear is four times.
const MEMORY: f64 = 4.5;

/// What grows; the rest stays as it is.
struct Axis {
    name: &'static str,
    /// CPUs, hctxs and devices at a size.
    of: fn(u32) -> [u32; 3],
    scheduler: &'static str,
}

const AXES: [Axis; 4] = [
    Axis {
        name: "cpus",
        of: |n| [n, 1, 1],
        scheduler: "none",
    },
    Axis {
        name: "hctxs",
        of: |n| [1024, n, 1],
        scheduler: "none",
    },
    Axis {
        name: "devices",
        of: |n| [16, 1, n],
        scheduler: "mq-deadline",
    },
    Axis {
        name: "together",
        of: |n| [n, 1, n],
        scheduler: "mq-deadline",
    },
];

/// A size of an axis, measured.
#[derive(Clone, Copy, Debug)]
struct Figure {
    size: u32,
    instructions: f64,
    mib: u64,
}

/// Measures all axes and judges them; `write` keeps the figures.
pub(crate) fn run(write: bool) -> Result {
    if !paths::has_program("valgrind") {
        return step::missing_tool("valgrind is missing");
    }
    let blksim = Build::Release.blksim()?;
    let (mut text, mut wrong) = (String::new(), Vec::new());
    for axis in &AXES {
        let mut figures = Vec::new();
        for size in SIZES {
            let figure = measured(&blksim, axis, size)?;
            let Figure {
                instructions, mib, ..
            } = figure;
            println!(
                "{} {size}: {instructions:.0} instructions per I/O, {mib} MiB",
                axis.name
            );
            text += &format!(
                "[[{}]]\nsize = {size}\ninstructions = {instructions:.0}\nmib = {mib}\n\n",
                axis.name
            );
            figures.push(figure);
        }
        wrong.extend(judged(axis.name, &figures));
    }
    if write {
        let text = format!("# Written by `cargo xtask growth --write`.\n{text}");
        let file = paths::root().join(FIGURES);
        fs::write(file, text.trim_end().to_owned() + "\n")
            .map_err(|e| Failure(format!("{FIGURES}: cannot write: {e}")))?;
    }
    match wrong.is_empty() {
        true => Ok(Outcome::Passed),
        false => Err(Failure(wrong.join("\n"))),
    }
}

/// The bounds that the figures of an axis break.
fn judged(name: &str, figures: &[Figure]) -> Vec<String> {
    let Some(first) = figures.first() else {
        return Vec::new();
    };
    let mut wrong = Vec::new();
    for figure in figures {
        let doublings = f64::from(figure.size / first.size).log2();
        let most = first.instructions * (1.0 + A_DOUBLING * doublings);
        if figure.instructions > most {
            wrong.push(format!(
                "{name} {}: {:.0} instructions per I/O, expected at most {most:.0}: {:.0} for the \
                 first size, and a quarter more for each doubling",
                figure.size, figure.instructions, first.instructions
            ));
        }
    }
    if let [.., quarter, last] = figures {
        let ratio = last.mib as f64 / quarter.mib as f64;
        if ratio > MEMORY {
            wrong.push(format!(
                "{name} {}: {} MiB, {ratio:.1} times those of {}, expected at most {MEMORY}",
                last.size, last.mib, quarter.size
            ));
        }
    }
    wrong
}

fn measured(blksim: &Path, axis: &Axis, size: u32) -> Result<Figure> {
    let [cpus, hctxs, devices] = (axis.of)(size);
    let threads = cpus.max(devices);
    let args = |ios: u32| -> Result<Vec<String>> {
        let job = job_file(axis.name, cpus, devices, ios / threads)?;
        let device =
            format!("null_blk,nr_devices={devices},submit_queues={hctxs},hw_queue_depth=4096");
        let words = [
            "run".to_owned(),
            job.display().to_string(),
            "--machine=ryzen-7950x:sockets=32".to_owned(),
            format!("--set=machine.cpus={cpus}"),
            format!("--set=queue.scheduler={}", axis.scheduler),
            format!("--device={device}"),
        ];
        Ok(words.to_vec())
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
    Ok(Figure {
        size,
        instructions: instructions
            .ok_or_else(|| Failure(format!("{name}: the longer run has no more I/Os")))?,
        mib: memory / 1024,
    })
}

fn counted_of(blksim: &Path, name: &str, args: &[String], which: &str) -> Result<Counted> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    speed::counted(blksim, &format!("{name}-{which}"), &args, &[])
}

/// A thread on each CPU, or for each device.
fn job_file(name: &str, cpus: u32, devices: u32, ios: u32) -> Result<PathBuf> {
    let mut text = format!(
        "[global]\nrw=randread\nbs=4k\nioengine=io_uring\niodepth=4\ndirect=1\nnorandommap=1\n\
         group_reporting=1\nnumber_ios={ios}\n"
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

    fn figures(instructions: fn(f64) -> f64, mib: fn(u64) -> u64) -> Vec<Figure> {
        let of = |size: u32| Figure {
            size,
            instructions: instructions(f64::from(size)),
            mib: mib(u64::from(size)),
        };
        SIZES.map(of).to_vec()
    }

    #[test]
    fn a_loop_over_all_parts_is_found_and_a_logarithm_is_not() {
        let log = figures(|n| 5000.0 * (1.0 + n.log2() / 5.0), |n| 20 + n);
        assert_eq!(judged("cpus", &log), Vec::<String>::new());
        // Twenty instructions for each CPU.
        let linear = figures(|n| 5000.0 + 20.0 * n, |n| 20 + n);
        let wrong = judged("cpus", &linear);
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(
            wrong[0].starts_with("cpus 1024: 25480 instructions"),
            "{wrong:?}"
        );
        // One byte for each pair.
        let squared = figures(|_| 5000.0, |n| 20 + n * n / 1024);
        assert!(judged("cpus", &squared)[0].contains("MiB, "), "{squared:?}");
    }
}
