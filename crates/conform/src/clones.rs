//! Clones: requests of a path below a stacked device, which no scheduler of the path chose.
//!
//! blk_insert_cloned_request() hands them to the driver, up to 4.15 by way of a queue of the path.
//! They show as a D without Q or G, on a device that a table of `meta.txt` may have below another
//! one.

use trace::capture::CaptureDir;

use super::event::{self, Event, Events, Kind};
use super::judge::{Judge, Unjudged};
use super::{Error, name_of};

/// A path below a stacked device, with its trace.
pub(super) type Path = (String, Events);

/// Those of several devices that are no paths below another one, if there are any, and the paths.
pub(super) fn without_paths(
    dir: &CaptureDir,
    devices: Vec<String>,
) -> Result<(Vec<String>, Vec<Path>), Error> {
    if dir.meta.dm_tables.is_empty() {
        for device in &devices {
            if event::is_cloned(dir, device)? {
                return Err(Error::Unfit {
                    capture: name_of(dir),
                    what: format!(
                        "meta.txt: dm: missing: {device} has requests without Q and G, \
                         only with D, as a path below a multipath device; expected \
                         `dm: TABLE`, as dmsetup table prints it"
                    ),
                });
            }
        }
        return Ok((devices, Vec::new()));
    }
    let (mut others, mut paths) = (Vec::new(), Vec::new());
    for device in &devices {
        let events = event::of_blktrace(dir, device)?;
        match is_path(dir, &events) {
            true => paths.push((device.clone(), events)),
            false => others.push(device.clone()),
        }
    }
    Ok(match others.is_empty() {
        true => (devices, Vec::new()),
        false => (others, paths),
    })
}

/// The judged device is above the paths, if there are some and none was named as the device.
pub(super) fn judges_above(paths: &[Path], named: Option<&str>) -> bool {
    paths.iter().all(|(path, _)| Some(path.as_str()) != named)
}

/// A path below a stacked device: its requests are clones without a Q.
pub(super) fn is_path(dir: &CaptureDir, events: &Events) -> bool {
    !dir.meta.dm_tables.is_empty() && !events.list.iter().any(arrives)
}

fn arrives(event: &Event) -> bool {
    matches!(event.kind, Kind::Queue | Kind::Get)
}

/// Clones come through blk_insert_cloned_request(): no scheduler of the path chose them.
pub(super) fn count(device: &str, events: &Events, judge: &mut Judge) {
    let issues = events.list.iter().filter(|e| e.kind == Kind::Issue);
    if let Some(first) = events.list.first() {
        judge.start(device, first.time);
    }
    for _ in issues {
        judge.unjudged(Unjudged::Clone);
    }
}
