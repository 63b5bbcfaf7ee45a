//! Schedulers in the C of a kernel tree: `--elevator FILE.c --linux DIR`.
//!
//! Not here: compiling and calling them (`kernel`).

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use blkmq::elevator::{Custom, Now, Scheduler as _, SchedulerKind, SchedulerSettings};
use kernel::{Library, Policy, Tree};
use sim::plan::Plan;

use crate::error::Error;

/// Libraries of this process by file and ticks a second: each is compiled once.
static LIBRARIES: Mutex<Vec<Arc<Library>>> = Mutex::new(Vec::new());

/// A scheduler is named by its file.
pub(crate) fn is_file(name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|ending| ending == "c")
}

/// The scheduler of a file, with what it calls of a tree: that around the file unless one is named.
pub(crate) fn library(file: &str, linux: Option<&Path>, hz: u32) -> Result<Arc<Library>, Error> {
    let mut libraries = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
    let path = Path::new(file);
    let known = libraries.iter().find(|of| of.file == path && of.hz == hz);
    if let Some(known) = known {
        return Ok(Arc::clone(known));
    }
    let failed =
        |error: kernel::Error| Error::usage(format!("--elevator {file}"), error.to_string());
    let tree = match linux {
        Some(dir) => Tree::open(dir),
        None => Tree::around(path),
    };
    let library = Library::build(&tree.map_err(failed)?, path, hz, false).map_err(failed)?;
    libraries.push(Arc::clone(&library));
    Ok(library)
}

/// The scheduler of blkmq in whose place it comes: that of its name, or else the usual one.
pub(crate) fn in_place_of(library: &Library) -> SchedulerKind {
    let known = SchedulerKind::by_name(&library.name);
    known.unwrap_or(SchedulerKind::default_for(true))
}

/// Puts it in the place of that scheduler, with its attributes.
pub(crate) fn replace(plan: &mut Plan, library: &Arc<Library>) -> Result<(), Error> {
    let (kind, option) = (in_place_of(library), library.file.display().to_string());
    let failed = |text: String| Error::usage(format!("--elevator {option}"), text);
    for disk in &mut plan.disks {
        let of = &mut disk.queue.scheduler;
        if of.kind() != kind {
            continue;
        }
        let policy = Policy::new(library).map_err(|fault| failed(fault.text))?;
        let mut policy = policy.named(&option);
        for (name, value) in of.shown() {
            let differs = |&(known, has): &(&str, _)| known == name && has != value;
            if policy.shown().iter().any(differs) {
                let stored = policy.store(name, &value.to_string(), Now::default());
                stored.map_err(|error| failed(error.to_string()))?;
            }
        }
        *of = SchedulerSettings::Custom(Custom::new(policy));
    }
    Ok(())
}
