//! Context switches with a mapped device: their destinations and causes.

use core::fmt;

use blkmq::rules::{CloneInsertion, EndRun, MappedRequests, SecondEnd};
use serde::Serialize;

use sim::plan::{DiskPlan, Plan};
use sim::recorder::{Recorder, SwitchCounts, SwitchTo, WorkItems};

/// Context switches of all CPUs by destination, as vmstat and `perf sched` count them.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct SwitchesReport {
    /// To ksoftirqd: the softirq was raised outside an interrupt.
    pub ksoftirqd: u64,
    /// To workers of kblockd, or of a mapped device (kmpathd, kdmflush).
    pub kworker: u64,
    /// To threads that map requests of a mapped device (kdmwork, use_blk_mq=0).
    pub kdmwork: u64,
    /// To all other tasks, those back from ksoftirqd included.
    pub task: u64,
    /// To the idle task (swapper).
    pub idle: u64,
    /// `ctx` of all jobs: times that a thread of fio was switched in, after ksoftirqd as well.
    pub fio: u64,
    /// All of them but `fio`, for each I/O.
    pub per_io: f64,
    /// Their causes in this kernel, in words.
    pub causes: Vec<&'static str>,
}

impl SwitchesReport {
    /// `None` without a mapped device.
    pub(super) fn new(plan: &Plan, recorder: &Recorder) -> Option<SwitchesReport> {
        let mut mapped = plan.disks.iter().filter(|disk| disk.mapped().is_some());
        let first = mapped.next()?;
        let switches = SwitchCounts::sum(recorder.cpus.iter().map(|cpu| cpu.switches));
        let mut items = WorkItems::default();
        for cpu in &recorder.cpus {
            items.add(cpu.items);
        }
        let threads: u64 = recorder.threads.iter().map(|thread| thread.switches).sum();
        let jobs = recorder.jobs.iter().flat_map(|job| &job.directions);
        let ios: u64 = jobs.map(|direction| direction.ios).sum();
        Some(SwitchesReport {
            ksoftirqd: switches[SwitchTo::Ksoftirqd],
            kworker: switches[SwitchTo::Kworker],
            kdmwork: switches[SwitchTo::Kdmwork],
            task: switches[SwitchTo::Task],
            idle: switches[SwitchTo::Idle],
            fio: threads,
            per_io: switches.all() as f64 / ios.max(1) as f64,
            causes: mapped.fold(causes(first, switches, items), |mut all, disk| {
                let more = causes(disk, switches, items);
                let new = more.into_iter().filter(|cause| !all.contains(cause));
                let new: Vec<&str> = new.collect();
                all.extend(new);
                all
            }),
        })
    }
}

/// Causes, by the kernel's rules and the work items.
fn causes(mapped: &DiskPlan, switches: SwitchCounts, items: WorkItems) -> Vec<&'static str> {
    let requests = mapped.queue.rules.device_mapper.requests;
    let mut causes = Vec::new();
    if switches[SwitchTo::Ksoftirqd] > 0 {
        causes.push(match requests.second_end {
            SecondEnd::Softirq => {
                "ksoftirqd: the second completion of a request raises the block softirq, and \
                 outside an interrupt that is ksoftirqd's (second_end=softirq)"
            }
            SecondEnd::Placed => {
                "ksoftirqd: a queue with one hardware queue completes in the block softirq, and \
                 outside an interrupt that is ksoftirqd's"
            }
        });
    }
    if mapped.maps_bios() {
        if switches[SwitchTo::Kworker] > 0 {
            causes.push(
                "kworker: kblockd runs the queues of the paths, and workers map bios that were \
                 held, or have waited for the device or for their flush (queue_mode bio)",
            );
        }
        return causes;
    }
    if switches[SwitchTo::Kworker] > 0 {
        causes.extend(of_workers(requests, items));
    }
    if switches[SwitchTo::Kdmwork] > 0 {
        causes.push(
            "kdmwork: requests wait for the device's one thread, which maps them with the queue's \
             lock let go (use_blk_mq=0)",
        );
    }
    causes
}

/// Causes of switches to kblockd's workers.
fn of_workers(requests: MappedRequests, items: WorkItems) -> impl Iterator<Item = &'static str> {
    let below = match requests.insertion {
        CloneInsertion::InBackground => {
            "kworker: clones wait for kblockd to run their queue (insertion=in-background)"
        }
        _ => {
            "kworker: the queue of a path is run again after the end of a request, or for lack of \
             a tag or of room in its device"
        }
    };
    let above = match requests.end_run {
        EndRun::Hctxs => {
            "kworker: the end of a request has kblockd run the mapped queue (end_run=hctxs)"
        }
        EndRun::Nothing => {
            "kworker: the mapped queue is run again after the end of a request, or for lack of a \
             tag or path"
        }
    };
    let known = [
        (items.runs, below),
        (items.runs_above, above),
        (
            items.requeues,
            "kworker: requeued requests are inserted again (requeue list)",
        ),
        (
            items.others,
            "kworker: timeouts are checked, or a target is called",
        ),
    ];
    known
        .into_iter()
        .filter_map(|(count, cause)| (count > 0).then_some(cause))
}

impl fmt::Display for SwitchesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nContext switches: {} to ksoftirqd, {} to kworkers, {}{} to tasks, {} to swapper \
             ({:.3} per I/O); {} of fio's threads",
            self.ksoftirqd,
            self.kworker,
            match self.kdmwork {
                0 => String::new(),
                count => format!("{count} to kdmwork, "),
            },
            self.task,
            self.idle,
            self.per_io,
            self.fio
        )?;
        for cause in &self.causes {
            writeln!(f, "  {cause}")?;
        }
        Ok(())
    }
}
