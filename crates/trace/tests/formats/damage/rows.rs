//! Damage to names, magic words, lengths, numbers and times.

use trace::blktrace::{Options, Version, Warning};

use super::Verdict::{Error as Refused, Fine, Warning as Warned};
use super::*;

/// All rows but those of compression.
pub(super) fn all() -> Vec<Row> {
    [
        whole_capture_rows(),
        file_set_rows(),
        magic_rows(),
        length_rows(),
        truncation_rows(),
        content_rows(),
        time_rows(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn whole_capture_rows() -> Vec<Row> {
    vec![
        Row(
            "empty directory",
            |_| {},
            plain(),
            Refused("no file named", None),
        ),
        Row(
            "only empty files",
            |dir| {
                std::fs::write(dir.join("sda.blktrace.0"), b"").expect("written");
                std::fs::write(dir.join("sda.blktrace.1"), b"").expect("written");
            },
            plain(),
            Refused("no readable record", None),
        ),
        Row(
            "less than one record",
            |dir| edit(&good(dir), |bytes| bytes.truncate(30)),
            plain(),
            Refused("no readable record", None),
        ),
        Row(
            "an empty file beside a full one",
            |dir| {
                good(dir);
                std::fs::write(dir.join("sda.blktrace.1"), b"").expect("written");
            },
            strict(),
            Fine(10),
        ),
        Row(
            "two devices, none named",
            |dir| {
                write_good(dir, "sda", Version::V1);
                write_good(dir, "sdb", Version::V1);
            },
            plain(),
            Refused("several devices, name one of them: sda, sdb", None),
        ),
        Row(
            "a directory with the name of a file",
            |dir| std::fs::create_dir(dir.join("sda.blktrace.0")).expect("made"),
            plain(),
            Refused("Is a directory", None),
        ),
    ]
}

fn file_set_rows() -> Vec<Row> {
    vec![
        Row(
            "one CPU twice",
            |dir| {
                let bytes = std::fs::read(good(dir)).expect("written");
                std::fs::write(dir.join("sda.blktrace.0.gz"), gzip(&bytes)).expect("written");
            },
            plain(),
            Refused("CPU 0 a second time", None),
        ),
        Row(
            "a CPU number without file",
            |dir| {
                write_cpus(dir, "sda", DEVICE, Version::V1, 3);
                std::fs::remove_file(dir.join("sda.blktrace.1")).expect("it was there");
            },
            plain(),
            Warned(7, Warning::MissingCpu, 1, 0),
        ),
        Row(
            "drops reported by blktrace",
            |dir| {
                good(dir);
                let log = "=== sda ===\n  Total:  10 events (dropped 42),  1 KiB data\n";
                std::fs::write(dir.join("blktrace.log"), log).expect("written");
            },
            plain(),
            Warned(10, Warning::Dropped, 42, 0),
        ),
        Row(
            "drops reported by blktrace, strict",
            |dir| {
                good(dir);
                let log = "=== sda ===\n  Total:  10 events (dropped 42),  1 KiB data\n";
                std::fs::write(dir.join("blktrace.log"), log).expect("written");
            },
            strict(),
            Refused("because of strict", Some(0)),
        ),
    ]
}

fn magic_rows() -> Vec<Row> {
    vec![
        Row(
            "first bytes are no magic",
            |dir| edit(&good(dir), |bytes| bytes[..4].copy_from_slice(b"GIF8")),
            plain(),
            Refused("no record magic: 0x38464947", Some(0)),
        ),
        Row(
            "first bytes are no magic, salvage",
            |dir| edit(&good(dir), |bytes| bytes[..4].copy_from_slice(b"GIF8")),
            salvage(),
            Refused("no record magic", Some(0)),
        ),
        Row(
            "unknown version first",
            |dir| edit(&good(dir), |bytes| bytes[0] = 9),
            plain(),
            Refused("unknown version 9", Some(0)),
        ),
        Row(
            "unknown version in the middle",
            |dir| poke(dir, 3, 0, &[6]),
            plain(),
            Refused(
                "unknown version 6, expected 7 or 8; 4 good records before",
                Some(NOTE + 3 * RECORD),
            ),
        ),
        Row(
            "bad magic in the middle",
            |dir| poke(dir, 4, 1, &[0, 0]),
            plain(),
            Refused("5 good records before", Some(NOTE + 4 * RECORD)),
        ),
        Row(
            "bad magic in the middle, salvage",
            |dir| poke(dir, 4, 1, &[0, 0]),
            salvage(),
            Warned(4, Warning::Salvaged, 1, NOTE + 4 * RECORD),
        ),
        Row(
            "bad magic in the middle, salvage and strict",
            |dir| poke(dir, 4, 1, &[0, 0]),
            Options {
                strict: true,
                salvage: true,
                ..Options::default()
            },
            Refused("because of strict", Some(NOTE + 4 * RECORD)),
        ),
        Row(
            "the other byte order in the middle",
            |dir| poke(dir, 2, 0, b"eat\x07"),
            plain(),
            Refused("other byte order", Some(NOTE + 2 * RECORD)),
        ),
        Row(
            "rubbish after the last record",
            |dir| edit(&good(dir), |bytes| bytes.extend_from_slice(b"rubbish")),
            plain(),
            Refused("no record magic", Some(NOTE + 10 * RECORD)),
        ),
    ]
}

fn length_rows() -> Vec<Row> {
    vec![
        Row(
            "impossible length in the middle",
            |dir| poke(dir, 5, 46, &[0xff, 0xff]),
            plain(),
            Refused("impossible pdu_len 65535", Some(NOTE + 5 * RECORD)),
        ),
        Row(
            "impossible length, salvage",
            |dir| poke(dir, 5, 46, &[0xff, 0xff]),
            salvage(),
            Warned(5, Warning::Salvaged, 1, NOTE + 5 * RECORD),
        ),
        Row(
            "cgroup bit without room for the id",
            |dir| poke(dir, 5, 29, &[1]),
            plain(),
            Refused("impossible pdu_len 0", Some(NOTE + 5 * RECORD)),
        ),
        Row(
            "a remap without payload",
            |dir| poke(dir, 5, 28, &[15]),
            plain(),
            Refused(
                "impossible pdu_len 0 for action 15",
                Some(NOTE + 5 * RECORD),
            ),
        ),
    ]
}

fn truncation_rows() -> Vec<Row> {
    vec![
        Row(
            "truncated last record",
            |dir| edit(&good(dir), |bytes| bytes.truncate(bytes.len() - 1)),
            plain(),
            Warned(9, Warning::TruncatedRecord, 1, NOTE + 9 * RECORD),
        ),
        Row(
            "truncated after two bytes of the last record",
            |dir| edit(&good(dir), |bytes| bytes.truncate(bytes.len() - 46)),
            plain(),
            Warned(9, Warning::TruncatedRecord, 1, NOTE + 9 * RECORD),
        ),
        Row(
            "truncated payload of the last record",
            |dir| poke(dir, 9, 46, &[24]),
            plain(),
            Warned(9, Warning::TruncatedRecord, 1, NOTE + 9 * RECORD),
        ),
        Row(
            "truncated last record, v2",
            |dir| {
                write_good(dir, "sda", Version::V2);
                edit(&dir.join("sda.blktrace.0"), |bytes| {
                    bytes.truncate(bytes.len() - 12);
                });
            },
            plain(),
            Warned(9, Warning::TruncatedRecord, 1, 64 + 8 + 9 * 64),
        ),
        Row(
            "truncated last record, strict",
            |dir| edit(&good(dir), |bytes| bytes.truncate(bytes.len() - 1)),
            strict(),
            Refused("truncated last record", Some(NOTE + 9 * RECORD)),
        ),
        Row(
            "unknown action of known length",
            |dir| poke(dir, 5, 28, &[77]),
            strict(),
            Fine(10),
        ),
    ]
}

fn content_rows() -> Vec<Row> {
    vec![
        Row(
            "another device in the file of one CPU",
            |dir| poke(dir, 6, 36, &[1]),
            plain(),
            Refused(
                "device 252,1 in a trace of device 252,0",
                Some(NOTE + 6 * RECORD),
            ),
        ),
        Row(
            "another CPU in the file of one CPU",
            |dir| poke(dir, 6, 40, &[3]),
            plain(),
            Refused(
                "CPU 3, expected 0 as in the file's name",
                Some(NOTE + 6 * RECORD),
            ),
        ),
        Row(
            "a gap in the numbers",
            |dir| {
                edit(&good(dir), |bytes| {
                    let at = (NOTE + 4 * RECORD) as usize;
                    bytes.drain(at..at + 3 * RECORD as usize);
                });
            },
            plain(),
            Warned(7, Warning::SequenceGap, 3, NOTE + 4 * RECORD),
        ),
        Row(
            "a beginning that is missing",
            |dir| {
                edit(&good(dir), |bytes| {
                    bytes.drain(NOTE as usize..(NOTE + RECORD) as usize);
                });
            },
            plain(),
            Warned(9, Warning::SequenceGap, 1, NOTE),
        ),
        Row(
            "a trace started a second time",
            |dir| {
                edit(&good(dir), |bytes| {
                    // As long after the first as it lasted.
                    let mut again = bytes[NOTE as usize..].to_vec();
                    for record in again.chunks_mut(RECORD as usize) {
                        record[9] += 0x40;
                    }
                    bytes.extend_from_slice(&again);
                });
            },
            strict(),
            Fine(20),
        ),
    ]
}

fn time_rows() -> Vec<Row> {
    vec![
        Row(
            "time goes back by less than a millisecond",
            |dir| poke(dir, 5, 8, &4_999_u64.to_le_bytes()),
            plain(),
            Warned(10, Warning::TimeBackwards, 1, NOTE + 5 * RECORD),
        ),
        Row(
            "time goes back by a millisecond",
            |dir| {
                poke(dir, 5, 8, &2_000_000_u64.to_le_bytes());
                edit(&dir.join("sda.blktrace.0"), |bytes| {
                    let from = (NOTE + 6 * RECORD) as usize + 8;
                    bytes[from..from + 8].copy_from_slice(&1_000_000_u64.to_le_bytes());
                });
            },
            plain(),
            Refused("time goes back by 1000000 ns", Some(NOTE + 6 * RECORD)),
        ),
        Row(
            "time of one CPU goes back in a dump that is sorted",
            |dir| {
                poke(dir, 5, 8, &9_000_000_u64.to_le_bytes());
                std::fs::rename(dir.join("sda.blktrace.0"), dir.join("dump")).expect("it is there");
            },
            plain(),
            Refused("time goes back by 8993000 ns", Some(NOTE + 6 * RECORD)),
        ),
        Row(
            "times of a text in the wrong order, and no room to sort them",
            |dir| {
                let text = "fio version 3 iolog\n5000 f read 0 4096\n1 f read 0 4096\n";
                std::fs::write(dir.join("dump"), text).expect("written");
            },
            Options {
                window: 1,
                ..plain()
            },
            Refused("time goes back by 4999000 ns", Some(39)),
        ),
        Row(
            "events that ftrace lost",
            |dir| {
                let text = "f-7 [000] ..... 1.0: block_getrq: 8,0 R 8 + 8 [f]\n\
                            CPU:1 [LOST 22 EVENTS]\n";
                std::fs::write(dir.join("dump"), text).expect("written");
            },
            plain(),
            Warned(1, Warning::Dropped, 22, 50),
        ),
        Row(
            "uninitialised fields of a note",
            |dir| edit(&good(dir), |bytes| bytes[4..8].fill(0xa5)),
            strict(),
            Fine(10),
        ),
    ]
}
