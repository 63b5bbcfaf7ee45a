//! The reader reads the writer's files, in blkparse's order; and no bytes make it panic.

use std::collections::VecDeque;
use std::path::Path;

use blkmq::time::SimTime;
use proptest::prelude::*;
use trace::blktrace::{
    Action, Categories, Device, DeviceChoice, Event, Options, Order, Reader, Version, Writer,
    WriterOptions,
};
use trace::matching::{Btt, Matcher};

const DEVICE: Device = Device::new(252, 7);

/// An event with its cgroup id and payload.
#[derive(Clone, PartialEq, Debug)]
struct Record {
    event: Event,
    cgroup: Option<u64>,
    pdu: Vec<u8>,
}

fn actions() -> impl Strategy<Value = Action> {
    proptest::sample::select(Action::ALL.to_vec())
}

prop_compose! {
    fn records(v2: bool)(
        step in prop_oneof![Just(0), 0..3_u64, 0..5_000_000_u64],
        cpu in 0..12_u32,
        action in actions(),
        (sector, bytes, extra) in any::<(u64, u32, u64)>(),
        bits in any::<u32>(),
        (pid, error) in any::<(u32, u16)>(),
        cgroup in proptest::option::of(any::<u64>()),
        pdu in proptest::collection::vec(any::<u8>(), 0..40),
    ) -> Record {
        // The width of v1's field; a record that is not a note must not have this category.
        let width = if v2 { Categories::RECORD.0 } else { 0xffff };
        let mut categories = bits & width & !Categories::NOTIFY.0;
        let mut event = Event { sector, bytes, pid, cpu, error, device: DEVICE,
            ..Event::new(SimTime(step), action) };
        let pdu = match action {
            Action::Unplug | Action::UnplugTimer | Action::Split => {
                event.extra = extra;
                extra.to_be_bytes().to_vec()
            }
            Action::Remap => {
                event.extra = extra;
                event.from = Device(pid);
                let mut pdu = pid.to_be_bytes().to_vec();
                pdu.extend_from_slice(&DEVICE.0.to_be_bytes());
                pdu.extend_from_slice(&extra.to_be_bytes());
                pdu
            }
            Action::Message => {
                categories |= Categories::NOTIFY.0;
                pdu
            }
            Action::Unknown => pdu,
            Action::DriverData => pdu,
            _ => Vec::new(),
        };
        if cgroup.is_some() {
            categories |= Categories::CGROUP.0;
        }
        event.categories = Categories(categories);
        Record { event, cgroup, pdu }
    }
}

fn write(dir: &Path, records: &[Record], options: WriterOptions) {
    let mut writer = Writer::create(dir, "nullb7", DEVICE, 12, options).expect("a directory");
    for record in records {
        writer.name_process(record.event.pid, &format!("task{}", record.event.pid));
        writer
            .write_with(&record.event, record.cgroup, &record.pdu)
            .expect("written");
    }
    writer.finish().expect("written");
}

fn read(dir: &Path, options: Options) -> Vec<Record> {
    let mut reader = Reader::open(&[dir], options).expect("it was just written");
    let mut records = Vec::new();
    while let Some(event) = reader.next().expect("it is good") {
        assert_eq!(
            reader.process_name(event.pid).expect("it was named"),
            &format!("task{}", event.pid)[..format!("task{}", event.pid).len().min(15)],
        );
        records.push(Record {
            event,
            cgroup: reader.cgroup(),
            pdu: reader.pdu().to_vec(),
        });
    }
    assert!(reader.warnings().is_empty(), "{:?}", reader.warnings());
    records
}

/// blkparse's list of streams, done as slowly as it is described.
fn blkparse_order(records: &[Record]) -> Vec<Record> {
    let mut streams: Vec<VecDeque<Record>> = vec![VecDeque::new(); 12];
    for record in records {
        streams[record.event.cpu as usize].push_back(record.clone());
    }
    let mut list: Vec<VecDeque<Record>> = Vec::new();
    let time = |stream: &VecDeque<Record>| stream[0].event.time;
    let insert = |list: &mut Vec<_>, stream: VecDeque<Record>| {
        if list.is_empty() || time(&stream) < time(&list[0]) {
            list.insert(0, stream);
            return;
        }
        let place = list[1..]
            .iter()
            .position(|other| time(other) >= time(&stream));
        list.insert(place.map_or(list.len(), |at| at + 1), stream);
    };
    for stream in streams.into_iter().filter(|stream| !stream.is_empty()) {
        insert(&mut list, stream);
    }
    let mut out = Vec::new();
    while !list.is_empty() {
        out.push(list[0].pop_front().expect("no stream in the list is empty"));
        if list[0].is_empty() {
            list.remove(0);
        } else if list.len() > 1 && time(&list[0]) > time(&list[1]) {
            let stream = list.remove(0);
            insert(&mut list, stream);
        }
    }
    out
}

/// Fills in the fields that reading adds.
fn numbered(mut records: Vec<Record>) -> Vec<Record> {
    let (mut now, mut numbers) = (0, [0; 12]);
    for Record { event, .. } in &mut records {
        now += event.time.0;
        event.time = SimTime(now);
        if event.action == Action::Message {
            event.sequence = 0;
        } else {
            numbers[event.cpu as usize] += 1;
            event.sequence = numbers[event.cpu as usize];
        }
        if event.action == Action::Unknown {
            event.extra = 0;
        }
    }
    records
}

/// Clears the fields that only the reader fills in.
fn comparable(mut records: Vec<Record>) -> Vec<Record> {
    for Record { event, .. } in &mut records {
        event.location = Event::new(SimTime::ZERO, Action::Queue).location;
        if event.action == Action::Message {
            event.sequence = 0;
        }
    }
    records
}

fn options() -> impl Strategy<Value = WriterOptions> {
    let version = prop_oneof![Just(Version::V1), Just(Version::V2)];
    let order = prop_oneof![Just(Order::Little), Just(Order::Big)];
    (version, order).prop_map(|(version, order)| WriterOptions {
        version,
        order,
        ..WriterOptions::default()
    })
}

fn written() -> impl Strategy<Value = (WriterOptions, Vec<Record>)> {
    options().prop_flat_map(|options| {
        let v2 = options.version == Version::V2;
        (
            Just(options),
            proptest::collection::vec(records(v2), 1..200),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_is_written_is_read_in_blkparse_order((options, records) in written()) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let records = numbered(records);
        write(dir.path(), &records, options);
        let got = comparable(read(dir.path(), Options::default()));
        prop_assert_eq!(got, comparable(blkparse_order(&records)));
    }

    /// All CPUs in one file, one after the other: the window puts them in order of time.
    #[test]
    fn a_dump_is_sorted_by_time((options, records) in written()) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let records = numbered(records);
        write(dir.path(), &records, options);
        let dump = dir.path().join("dump");
        let mut bytes = Vec::new();
        for cpu in 0..12 {
            let path = dir.path().join(format!("nullb7.blktrace.{cpu}"));
            bytes.extend(std::fs::read(path).expect("it was just written"));
        }
        std::fs::write(&dump, bytes).expect("it can be written");
        let key = |record: &Record| (record.event.time, record.event.cpu, record.event.sequence);
        let mut got = comparable(read(&dump, Options::default()));
        prop_assert!(got.is_sorted_by_key(|record| record.event.time));
        got.sort_by_key(key);
        let mut want = comparable(records);
        want.sort_by_key(key);
        prop_assert_eq!(got, want);
    }

    /// Damage anywhere ends in an error or in counted warnings, never in a panic; the same for
    /// bytes after the last record.
    #[test]
    fn no_damage_makes_it_panic(
        (options, records) in written(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
        salvage in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        write(dir.path(), &numbered(records), options);
        let path = dir.path().join("nullb7.blktrace.0");
        let mut bytes = std::fs::read(&path).expect("it was just written");
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        std::fs::write(&path, &bytes).expect("it can be written");
        std::fs::copy(&path, dir.path().join("dump")).expect("it can be written");
        let options = Options { salvage, device: DeviceChoice::All, ..Options::default() };
        for path in [dir.path().to_path_buf(), dir.path().join("dump")] {
            let Ok(mut reader) = Reader::open(&[path], options.clone()) else {
                continue;
            };
            let (mut btt, mut matcher, mut events) = (Btt::new(), Matcher::new(), 0);
            while let Ok(Some(event)) = reader.next() {
                btt.add(&event);
                matcher.add(&event);
                events += 1;
                prop_assert!(events <= bytes.len() + 12 * 200, "it ends");
            }
            matcher.finish();
            prop_assert_eq!(matcher.in_flight(), 0);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..2000),
        magic in 0..4,
    ) {
        let magics: [&[u8]; 4] = [b"", b"\x07tae", &[0x1f, 0x8b, 8, 0], b"\xfd7zXZ\0"];
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("sda.blktrace.0");
        let mut all = magics[magic as usize].to_vec();
        all.extend(bytes);
        std::fs::write(&path, all).expect("it can be written");
        if let Ok(mut reader) = Reader::open(&[path], Options::default()) {
            while let Ok(Some(_)) = reader.next() {}
        }
    }
}

#[test]
fn an_unfinished_writer_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let options = WriterOptions::default();
    let mut writer = Writer::create(dir.path(), "sda", DEVICE, 2, options).expect("a directory");
    let event = Event {
        device: DEVICE,
        ..Event::new(SimTime(5), Action::Queue)
    };
    writer.write(&event).expect("written");
    let names = || std::fs::read_dir(dir.path()).expect("it is there").count();
    assert_eq!(names(), 2, "temporary files");
    drop(writer);
    assert_eq!(names(), 0);
}

#[test]
fn the_writer_refuses_events_that_the_format_cannot_hold() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let options = WriterOptions::default();
    let mut writer = Writer::create(dir.path(), "sda", DEVICE, 2, options).expect("a directory");
    let good = Event {
        device: DEVICE,
        ..Event::new(SimTime(5), Action::Queue)
    };
    writer.write(&good).expect("written");
    let refused = [
        (Event { cpu: 2, ..good }, "event on CPU 2, of 2"),
        (
            Event {
                time: SimTime(4),
                ..good
            },
            "event at 0.000000004 after 0.000000005",
        ),
        (
            Event {
                device: Device::new(8, 0),
                ..good
            },
            "device 8,0 in the trace of 252,7",
        ),
    ];
    for (event, text) in refused {
        let error = writer.write(&event).expect_err("it cannot be").to_string();
        assert!(error.contains(text), "{error}");
    }
    let error = writer
        .write_with(&good, None, &vec![0; 70_000])
        .expect_err("too long")
        .to_string();
    assert!(error.contains("payload of 70000 bytes"), "{error}");
    assert!(Writer::create(dir.path(), "a/b", DEVICE, 1, WriterOptions::default()).is_err());
}
