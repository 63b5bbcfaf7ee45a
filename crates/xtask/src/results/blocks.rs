//! The generated blocks of README.md and docs/: name, duration of its runs, and the function that
//! makes it.

use super::markdown::fenced;
use super::runs::Blksim;
use super::{
    bfq, captures, cfq, disk, dm, kyber, pages, predictions, readme, specifications, sweeps,
};
use crate::step::Result;
use crate::{btt, speed};

/// Duration of a block's runs on two cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cost {
    /// Seconds, or up to a minute where nothing else looks at it: checked with every change.
    Seconds,
    /// More: checked by `ci --full`.
    Minutes,
}

/// The result of a block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Made {
    /// The text between the markers: whole lines.
    pub(super) body: String,
    /// Files beside it, from the top of the workspace, with their text.
    pub(super) files: Vec<(String, String)>,
}

impl From<String> for Made {
    fn from(body: String) -> Made {
        Made {
            body,
            files: Vec::new(),
        }
    }
}

/// A generated block. Its markers are in one page, whichever that is.
#[derive(Debug)]
pub(super) struct Block {
    /// Its name, as in the marker.
    pub(super) name: &'static str,
    pub(super) cost: Cost,
    /// Makes it. Nothing if a tool is missing.
    pub(super) make: fn(&Blksim) -> Result<Option<Made>>,
}

pub(super) const BLOCKS: &[Block] = &[
    Block {
        name: "captures-one-cpu",
        cost: Cost::Seconds,
        make: |blksim| made(captures::one_cpu(blksim)),
    },
    Block {
        name: "captures-more-cpus",
        cost: Cost::Seconds,
        make: |blksim| made(captures::more_cpus(blksim)),
    },
    Block {
        name: "captures-choices",
        cost: Cost::Seconds,
        make: |blksim| made(captures::choices(blksim)),
    },
    Block {
        name: "captures-other-rules",
        cost: Cost::Minutes,
        make: |blksim| made(captures::other_rules(blksim)),
    },
    Block {
        name: "captures-refused",
        cost: Cost::Minutes,
        make: |blksim| made(captures::refused(blksim)),
    },
    Block {
        name: "reproduce",
        cost: Cost::Seconds,
        make: |blksim| printed(blksim, "reproduce"),
    },
    Block {
        name: "drives",
        cost: Cost::Seconds,
        make: |blksim| made(sweeps::drives(blksim)),
    },
    Block {
        name: "kyber-latency",
        cost: Cost::Seconds,
        make: |blksim| made(kyber::latency(blksim)),
    },
    Block {
        name: "kyber-threads",
        cost: Cost::Minutes,
        make: |blksim| made(predictions::threads(blksim, "kyber")),
    },
    Block {
        name: "walk",
        cost: Cost::Minutes,
        make: |blksim| made(sweeps::walk(blksim)),
    },
    Block {
        name: "walk-rules",
        cost: Cost::Minutes,
        make: |blksim| made(sweeps::walk_rules(blksim)),
    },
    Block {
        name: "ablations",
        cost: Cost::Minutes,
        make: |blksim| printed(blksim, "reproduce --ablations"),
    },
    Block {
        name: "bfq-burst",
        cost: Cost::Minutes,
        make: |blksim| made(predictions::burst(blksim)),
    },
    Block {
        name: "bfq-startup",
        cost: Cost::Seconds,
        make: |blksim| bfq::startup(blksim).map(Some),
    },
    Block {
        name: "disk",
        cost: Cost::Seconds,
        make: |blksim| made(disk::measured(blksim)),
    },
    Block {
        name: "cfq-cooperators",
        cost: Cost::Seconds,
        make: |blksim| cfq::cooperators(blksim).map(Some),
    },
    Block {
        name: "cfq-assumptions",
        cost: Cost::Seconds,
        make: |blksim| made(cfq::assumptions(blksim)),
    },
    Block {
        name: "cfq-nfsd",
        cost: Cost::Seconds,
        make: |blksim| cfq::nfsd(blksim).map(Some),
    },
    Block {
        name: "cfq-nfsd-assumptions",
        cost: Cost::Seconds,
        make: |blksim| made(cfq::nfsd_assumptions(blksim)),
    },
    Block {
        name: "cfq-clients",
        cost: Cost::Seconds,
        make: |blksim| made(cfq::clients(blksim)),
    },
    Block {
        name: "dm-null",
        cost: Cost::Minutes,
        make: |blksim| dm::kernels(blksim).map(Some),
    },
    Block {
        name: "dm-shares",
        cost: Cost::Seconds,
        make: |blksim| made(dm::shares(blksim)),
    },
    Block {
        name: "dm-switches",
        cost: Cost::Minutes,
        make: |blksim| made(dm::switched_to(blksim)),
    },
    Block {
        name: "dm-depth",
        cost: Cost::Minutes,
        make: |blksim| made(dm::depths(blksim)),
    },
    Block {
        name: "dm-changes",
        cost: Cost::Minutes,
        make: |blksim| made(dm::changes(blksim)),
    },
    Block {
        name: "dm-queues",
        cost: Cost::Minutes,
        make: |blksim| dm::queues(blksim).map(Some),
    },
    Block {
        name: "dm-fc",
        cost: Cost::Minutes,
        make: |blksim| made(dm::hosts(blksim)),
    },
    Block {
        name: "processes",
        cost: Cost::Minutes,
        make: |blksim| made(predictions::processes(blksim)),
    },
    Block {
        name: "bfq-threads",
        cost: Cost::Minutes,
        make: |blksim| made(predictions::threads(blksim, "bfq")),
    },
    Block {
        name: "threads-null_blk",
        cost: Cost::Minutes,
        make: |blksim| {
            Ok(Some(sweeps::threads(
                blksim,
                "mq-deadline-scaling",
                "null_blk",
            )?))
        },
    },
    Block {
        name: "threads-nvme",
        cost: Cost::Minutes,
        make: |blksim| sweeps::threads(blksim, "nvme-scaling", "NVMe").map(Some),
    },
    Block {
        name: "sensitivity-ryzen-7950x",
        cost: Cost::Minutes,
        make: |blksim| printed(blksim, "sensitivity ryzen-7950x"),
    },
    Block {
        name: "sensitivity-xeon-10c",
        cost: Cost::Minutes,
        make: |blksim| printed(blksim, "sensitivity xeon-10c --runtime 10ms --seeds 3"),
    },
    Block {
        name: "btt",
        cost: Cost::Seconds,
        make: |blksim| Ok(btt::agreement(&blksim.path)?.map(Made::from)),
    },
    Block {
        name: "replay",
        cost: Cost::Seconds,
        make: |blksim| made(captures::replayed(blksim)),
    },
    Block {
        name: "instructions",
        cost: Cost::Seconds,
        make: |_| made(speed::table()),
    },
    Block {
        name: "specifications",
        cost: Cost::Seconds,
        make: |_| made(specifications::verdicts()),
    },
    Block {
        name: "published-plot",
        cost: Cost::Seconds,
        make: |blksim| sweeps::published(blksim).map(Some),
    },
    Block {
        name: "main-job",
        cost: Cost::Seconds,
        make: |blksim| made(readme::main_job(blksim)),
    },
    Block {
        name: "accuracy",
        cost: Cost::Seconds,
        make: |_| made(readme::accuracy()),
    },
    Block {
        name: "report",
        cost: Cost::Seconds,
        make: |blksim| printed(blksim, "run mq-deadline-scaling"),
    },
    Block {
        name: "compare",
        cost: Cost::Seconds,
        make: |blksim| {
            let schedulers = "mq-deadline,mq-deadline+v2-repaired";
            let line = format!("compare mq-deadline-scaling --scheduler {schedulers} --seeds 3");
            printed(blksim, &line)
        },
    },
    Block {
        name: "fio-mix",
        cost: Cost::Seconds,
        make: |blksim| made(pages::fio_mix(blksim)),
    },
    Block {
        name: "blktrace-replay",
        cost: Cost::Seconds,
        make: |blksim| {
            printed(
                blksim,
                "replay traces/m2-randread-mq-deadline --closed-loop --scheduler mq-deadline,none",
            )
        },
    },
    Block {
        name: "stall",
        cost: Cost::Seconds,
        make: |blksim| {
            let stalled = blksim.printed("run shared-restart-stall")?;
            Ok(Some(fenced(&stalled.stderr).into()))
        },
    },
];

/// A text that needs no tool.
fn made(text: Result<String>) -> Result<Option<Made>> {
    Ok(Some(text?.into()))
}

fn printed(blksim: &Blksim, line: &str) -> Result<Option<Made>> {
    Ok(Some(fenced(&blksim.text(line)?).into()))
}
