//! Mode records: every `D` of blktrace, with nothing but records. On one CPU the order of records
//! is the order of the events; on several the decision was made at some time since the insertion.

use trace::capture::CaptureDir;

use super::log;
use crate::event::{self, Events};
use crate::judge::Judge;
use crate::script::Script;
use crate::setup::Setup;
use crate::{Error, Options, clones, decision_time, priority};

pub(super) fn of_device(
    (dir, options): (&CaptureDir, &Options),
    setup: &Setup,
    script: &Script,
    judge: &mut Judge,
) -> Result<Events, Error> {
    let logged = log::with_exits(dir, setup)?;
    let exits_logged = logged.is_some();
    let mut events = match logged {
        Some(events) => events,
        None => event::of_blktrace(dir, &setup.device)?,
    };
    if clones::is_path(dir, &events) {
        clones::count(&setup.device, &events, judge);
        events.list.clear();
    }
    priority::fill(dir, &setup.device, script, &mut events)?;
    if !exits_logged {
        decision_time::add_exits(dir, options, setup, &mut events, judge);
    }
    Ok(events)
}
