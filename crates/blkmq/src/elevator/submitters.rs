//! Submitters of I/O to a queue: pid and priority by I/O context, and their groups.
//!
//! Kernel: struct io_context, struct task_struct, struct blkcg (v6.1, v6.12).

use crate::request::{IoContextId, IoPrio};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Submitter {
    /// The pid of its task.
    pub pid: i32,
    /// ioprio of the context; class none if it was not set.
    pub ioprio: IoPrio,
    /// The replacement of class none (task_nice_ioclass(), task_nice_ioprio()).
    pub nice: IoPrio,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SubmitterGroup {
    /// Path below the root, without a slash in front: `a/b`. Empty: the root.
    pub path: String,
    /// Index of the parent group; 0 for the root itself.
    pub parent: u16,
    /// io.bfq.weight, 1 to 1000.
    pub weight: u16,
}

/// All submitters of a queue.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Submitters {
    /// By I/O context.
    pub tasks: Vec<Submitter>,
    /// Groups, the root first, each after its parent.
    pub groups: Vec<SubmitterGroup>,
}

impl Default for Submitters {
    /// Only the root group, without tasks.
    fn default() -> Submitters {
        let root = SubmitterGroup {
            path: String::new(),
            parent: 0,
            weight: 100,
        };
        Submitters {
            tasks: Vec::new(),
            groups: vec![root],
        }
    }
}

impl Submitters {
    /// The submitter with this I/O context; an unknown one is an ordinary task of the root group,
    /// with the context's number.
    pub fn of(&self, io_context: IoContextId) -> Submitter {
        let known = self.tasks.get(io_context.0 as usize).copied();
        known.unwrap_or(Submitter {
            pid: io_context.0 as i32,
            ioprio: IoPrio::default(),
            nice: IoPrio {
                class: crate::request::IoClass::BestEffort,
                level: 4,
            },
        })
    }
}
