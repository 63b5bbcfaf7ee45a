//! Properties of a device's whole binary trace: its number, whether it has events, whether its
//! scheduler wrote a log, its damage.
//!
//! Each question reads the trace again, up to its answer. Not here: the events themselves
//! (`records.rs`).

use trace::blktrace::{self, Action, Categories, DeviceChoice, Reader};
use trace::capture::CaptureDir;
use trace::ftrace::DeviceNumber;

use crate::Error;

/// Opens the binary trace of `device`.
pub(super) fn reader_of(dir: &CaptureDir, device: &str) -> Result<Reader, Error> {
    let files: Vec<_> = dir
        .devices
        .iter()
        .filter(|traced| traced.name == device)
        .flat_map(|traced| traced.blktrace.values().cloned())
        .collect();
    if files.is_empty() {
        let what = format!("no {device}.blktrace.N here; mode records needs them");
        return Err(Error::Trace(trace::Error::input(&dir.path, what)));
    }
    let options = blktrace::Options {
        device: DeviceChoice::Named(device.to_owned()),
        ..blktrace::Options::default()
    };
    Ok(Reader::open(&files, options)?)
}

/// All records of the binary trace of `device`, appended to `list`.
pub(crate) fn raw(
    dir: &CaptureDir,
    device: &str,
    events: &mut Vec<blktrace::Event>,
) -> Result<(), Error> {
    let mut reader = reader_of(dir, device)?;
    while let Some(event) = reader.next()? {
        events.push(event);
    }
    Ok(())
}

/// A scheduler wrote messages into the trace of `device`.
pub(crate) fn has_log(dir: &CaptureDir, device: &str) -> Result<bool, Error> {
    let Ok(mut reader) = reader_of(dir, device) else {
        return Ok(false);
    };
    while let Some(event) = reader.next()? {
        if event.action == Action::Message {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Damage of the binary trace of `device`.
pub(crate) fn damage(dir: &CaptureDir, device: &str) -> Result<Vec<blktrace::Row>, Error> {
    let Ok(mut reader) = reader_of(dir, device) else {
        return Ok(Vec::new());
    };
    while reader.next()?.is_some() {}
    Ok(reader.warnings().rows(reader.files()))
}

/// `device` has requests of which none was queued there.
pub(crate) fn is_cloned(dir: &CaptureDir, device: &str) -> Result<bool, Error> {
    let Ok(mut reader) = reader_of(dir, device) else {
        return Ok(false);
    };
    let mut issued = false;
    while let Some(event) = reader.next()? {
        match event.action {
            _ if event.categories.any(Categories::PC) => {}
            Action::Queue | Action::GetRequest => return Ok(false),
            Action::Issue if event.bytes > 0 => issued = true,
            _ => {}
        }
    }
    Ok(issued)
}

/// A bio for `device` was split after so many sectors.
pub(crate) fn is_cut_at(dir: &CaptureDir, device: &str, sectors: u32) -> Result<bool, Error> {
    let Ok(mut reader) = reader_of(dir, device) else {
        return Ok(false);
    };
    while let Some(event) = reader.next()? {
        let of_limit = event.action == Action::Split && !event.categories.any(Categories::DISCARD);
        if of_limit && (event.extra as u32).wrapping_sub(event.sector as u32) == sectors {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The first record of a device's trace.
fn first_record(dir: &CaptureDir, device: &str) -> Result<blktrace::Event, Error> {
    let mut reader = reader_of(dir, device)?;
    reader.next()?.ok_or_else(|| {
        let what = format!("the trace of {device} has no events");
        Error::Trace(trace::Error::input(&dir.path, what))
    })
}

/// Nothing happened on a device that was traced: no records, or no files for them.
pub(crate) fn is_idle(dir: &CaptureDir, device: &str) -> Result<bool, Error> {
    let named = dir.devices.iter().filter(|traced| traced.name == device);
    for file in named.flat_map(|traced| traced.blktrace.values()) {
        if !blktrace::is_empty(file)? {
            return Ok(reader_of(dir, device)?.next()?.is_none());
        }
    }
    Ok(true)
}

/// Device number of a device, from its first record.
pub(crate) fn number_of(dir: &CaptureDir, device: &str) -> Result<DeviceNumber, Error> {
    let device = first_record(dir, device)?.device;
    Ok(DeviceNumber {
        major: device.major(),
        minor: device.minor(),
    })
}
