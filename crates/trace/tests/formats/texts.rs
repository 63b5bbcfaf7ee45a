//! Texts of a capture give the events of its binary records, for every capture.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common;
use trace::blktrace::{Action, Categories, Device, Event, Location, Options, Reader};

/// All events but messages, at times since the first one, without positions; names of processes.
pub(crate) fn read(path: &Path, options: Options) -> (Vec<Event>, BTreeMap<u32, String>) {
    let mut reader = Reader::open(&[path], options).unwrap_or_else(|error| panic!("{error}"));
    let (mut events, mut names) = (Vec::new(), BTreeMap::new());
    while let Some(event) = reader.next().unwrap_or_else(|error| panic!("{error}")) {
        // blkparse 1.2.0 drops messages that have a cgroup id.
        if event.action == Action::Message {
            continue;
        }
        if let Some(name) = reader.process_name(event.pid).filter(|_| event.pid != 0) {
            names.insert(event.pid, name.to_owned());
        }
        events.push(Event {
            time: blkmq::time::SimTime(event.time.since(reader.genesis()).0),
            location: Location::default(),
            ..event
        });
    }
    assert!(
        reader.warnings().is_empty(),
        "{}: {:?}",
        path.display(),
        reader.warnings()
    );
    (events, names)
}

/// Bits that blkparse prints, and whether the event is a request's where a text can say so.
fn printed(event: &Event) -> Event {
    let mut hidden = Categories::CGROUP.0;
    let merge = matches!(event.action, Action::BackMerge | Action::FrontMerge);
    if merge {
        hidden |= Categories::FS.0;
    }
    // Of an N, the direction.
    if event.rwbs().as_str().contains('N') {
        hidden |= Categories::READ.0;
    }
    Event {
        categories: Categories(event.categories.0 & !hidden),
        ..*event
    }
}

fn compare(capture: &Path, text: &str, seen: fn(&Event) -> Event) -> usize {
    let place = format!("{} {text}", capture.display());
    let (want, names) = read(capture, common::all_devices());
    let (got, text_names) = read(&capture.join(text), common::all_devices());
    for (at, (want, got)) in want.iter().zip(&got).enumerate() {
        // blkparse prints the bytes of a command of the SCSI layer, and no direction.
        if want.categories.any(Categories::PC) {
            assert_eq!((got.action, got.time), (want.action, want.time));
            continue;
        }
        assert_eq!(seen(got), seen(want), "{place} event {at}");
    }
    assert_eq!(got.len(), want.len(), "{place}");
    for (pid, name) in &text_names {
        assert_eq!(Some(name), names.get(pid), "{place} process {pid}");
    }
    got.len()
}

#[test]
fn default_text_of_blkparse_is_the_capture() {
    let events: usize = common::captures()
        .iter()
        .map(|capture| compare(capture, "blkparse.txt.xz", printed))
        .sum();
    assert!(events > 60_000, "{events}");
}

/// `-f` with these columns has no remap's origin, no depth of a plug and no sector of a split.
#[test]
fn full_text_of_blkparse_is_the_capture() {
    let shown = |event: &Event| Event {
        extra: 0,
        from: Device::default(),
        ..printed(event)
    };
    let events: usize = common::captures()
        .iter()
        .map(|capture| compare(capture, "blkparse-full.txt.xz", shown))
        .sum();
    assert!(events > 60_000, "{events}");
}

/// ftrace has the events of blktrace but messages, remaps and completions of bios, which these
/// captures did not enable, and prints U for UT.
#[test]
fn block_events_of_ftrace_are_the_capture() {
    let (mut found, mut near) = (0, 0);
    for capture in common::captures() {
        let text = capture.join("ftrace.txt.xz");
        if text.exists() {
            let counts = in_ftrace(&capture, &text);
            found += counts.0;
            near += counts.1;
        }
    }
    assert!(found > 40_000, "{found}");
    assert!(near * 1000 > found * 999, "{near} of {found}");
}

/// What both show of an event.
fn key(event: &Event) -> impl Ord + use<> {
    let action = match event.action {
        Action::UnplugTimer => Action::Unplug,
        action => action,
    };
    let rwbs = event.rwbs().as_str().to_owned();
    let place = (event.device, event.cpu, event.sector, event.bytes);
    (action, place, rwbs, event.pid, event.error, event.extra)
}

/// Events of a capture, all of which its ftrace has, and those of them within 100 us there: both
/// take a time of their own, and an interrupt can come between.
fn in_ftrace(capture: &Path, text: &Path) -> (usize, usize) {
    let all = |path: &Path| {
        let mut reader = Reader::open(&[path], common::all_devices()).expect("it opens");
        let mut events = Vec::new();
        while let Some(event) = reader.next().expect("it is good") {
            events.push(event);
        }
        assert!(reader.warnings().is_empty(), "{:?}", reader.warnings());
        events
    };
    let mut times: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for event in all(text) {
        times.entry(key(&event)).or_default().push(event.time);
    }
    let (mut found, mut near) = (0, 0);
    for event in all(capture) {
        // A bio without request: an empty flush, or one that must not wait and found no tag.
        let eagain = event.error == 11;
        let of_bio = event.action == Action::Complete && (event.rwbs().as_str() == "FN" || eagain);
        let command = event.categories.any(Categories::PC);
        if of_bio || command || matches!(event.action, Action::Message | Action::Remap) {
            continue;
        }
        let list = times.get(&key(&event)).map_or(&[][..], Vec::as_slice);
        let far = list.iter().map(|time| time.0.abs_diff(event.time.0)).min();
        let far = far.filter(|ns| *ns < 20_000_000);
        let far = far.unwrap_or_else(|| panic!("{}: no {event:?}", text.display()));
        found += 1;
        near += usize::from(far < 100_000);
    }
    (found, near)
}
