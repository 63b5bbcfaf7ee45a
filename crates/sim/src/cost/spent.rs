//! Where CPU time went: by step, by label and by component.
//!
//! Waiting for locks is not in here: the lock table has it.

use blkmq::path::Label;
use blkmq::path::label::{Complete, Plug, Run, Submit};

use super::Step;

/// What CPU time is spent on, as the published profiles divide it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Component {
    /// fio in user space.
    User,
    /// Interrupts and softirqs: entry, exit, sending.
    Interrupt,
    /// System call entry and exit.
    Syscall,
    /// io_uring, AIO or the synchronous path above the block device.
    Engine,
    /// Taking locks and handing them over, without waiting.
    Locks,
    /// The device driver.
    Driver,
    /// The scheduler and its hooks.
    Scheduler,
    /// Tag maps.
    Tags,
    /// blk-mq, bios, the block device.
    BlkMq,
    /// Reading the clock.
    Clock,
    /// Preemption counts and RCU.
    Preempt,
    /// Task switches, wake-ups, workers and all the rest.
    Kernel,
}

impl Component {
    /// All, in order.
    pub const ALL: [Component; 12] = [
        Component::User,
        Component::Interrupt,
        Component::Syscall,
        Component::Engine,
        Component::Locks,
        Component::Driver,
        Component::Scheduler,
        Component::Tags,
        Component::BlkMq,
        Component::Clock,
        Component::Preempt,
        Component::Kernel,
    ];

    /// Name in reports and measurement files.
    pub fn name(self) -> &'static str {
        match self {
            Component::User => "user",
            Component::Interrupt => "interrupt",
            Component::Syscall => "syscall",
            Component::Engine => "engine",
            Component::Locks => "locks",
            Component::Driver => "driver",
            Component::Scheduler => "scheduler",
            Component::Tags => "tags",
            Component::BlkMq => "blk-mq",
            Component::Clock => "clock",
            Component::Preempt => "preempt",
            Component::Kernel => "kernel",
        }
    }

    /// What a label's time counts for: by the kernel functions it stands for.
    pub fn of_label(label: Label) -> Component {
        let (path, at) = label.parts();
        let tag = at.contains("tag") || at.starts_with("wait-") || at.starts_with("put-");
        let hooks = [
            Submit::TryMerge.label(),
            Submit::ElevatorMerge.label(),
            Plug::Elevator.label(),
            Complete::Finish.label(),
            Run::HasElevator.label(),
            Run::HasSide.label(),
        ];
        match path {
            _ if hooks.contains(&label) => Component::Scheduler,
            "submit" | "pass" | "list" | "plug" | "complete" if tag && at != "put-back" => {
                Component::Tags
            }
            "pass" | "insert" | "dd-insert" => Component::Scheduler,
            _ => Component::BlkMq,
        }
    }
}

/// How often and how long, picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sum {
    /// Times.
    pub count: u64,
    /// Time of all of them.
    pub ps: u64,
}

impl Sum {
    /// One more.
    #[inline]
    pub fn add(&mut self, ps: u64) {
        self.count += 1;
        self.ps += ps;
    }
}

/// CPU time by step and by label.
#[derive(Clone, Debug)]
pub struct Spent {
    steps: [Sum; Step::ALL.len()],
    labels: Box<[Sum; 256]>,
    /// Labels executed before the last `clear`.
    before: u64,
}

impl Default for Spent {
    fn default() -> Spent {
        Spent {
            steps: [Sum::default(); Step::ALL.len()],
            labels: Box::new([Sum::default(); 256]),
            before: 0,
        }
    }
}

impl Spent {
    /// A step was made.
    #[inline]
    pub fn step(&mut self, step: Step, ps: u64) {
        self.steps[step as usize].add(ps);
    }

    /// A step that was made took longer.
    pub fn waited(&mut self, step: Step, ps: u64) {
        self.steps[step as usize].ps += ps;
    }

    /// A label was executed.
    #[inline]
    pub fn label(&mut self, label: Label, ps: u64) {
        self.labels[usize::from(label.0)].add(ps);
    }

    /// Steps that were made.
    pub fn steps(&self) -> impl Iterator<Item = (Step, Sum)> + '_ {
        let sums = Step::ALL.iter().copied().zip(self.steps);
        sums.filter(|(_, sum)| sum.count > 0)
    }

    /// Labels that were executed.
    pub fn labels(&self) -> impl Iterator<Item = (Label, Sum)> + '_ {
        let sums = Label::all().map(|label| (label, self.labels[usize::from(label.0)]));
        sums.filter(|(_, sum)| sum.count > 0)
    }

    /// Time by component, picoseconds, in the order of [`Component::ALL`].
    pub fn by_component(&self) -> [u64; Component::ALL.len()] {
        let mut time = [0; Component::ALL.len()];
        for (step, sum) in self.steps() {
            time[step.component() as usize] += sum.ps;
        }
        for (label, sum) in self.labels() {
            time[Component::of_label(label) as usize] += sum.ps;
        }
        time
    }

    /// Labels executed since the run began.
    pub fn labels_executed(&self) -> u64 {
        self.before + self.labels.iter().map(|sum| sum.count).sum::<u64>()
    }

    /// Forgets everything but the number of labels (end of the ramp).
    pub fn clear(&mut self) {
        self.before = self.labels_executed();
        self.steps = [Sum::default(); Step::ALL.len()];
        self.labels.fill(Sum::default());
    }
}
