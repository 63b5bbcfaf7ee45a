//! Short histories and their expected lives.

mod lives;

use super::*;
use crate::matching::Join;

/// One event from `time action rwbs sector+sectors [pN] [eN] [bio] [from SECTOR]`. Events of
/// requests have FS unless `bio` is given.
fn event(line: &str) -> Event {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [time, letters, rwbs, range, rest @ ..] = &words[..] else {
        panic!("too short: {line}");
    };
    let action = Action::ALL
        .into_iter()
        .find(|action| action.letters() == *letters);
    let action = action.unwrap_or_else(|| panic!("no such action: {line}"));
    let (sector, sectors) = range.split_once('+').expect("a range");
    let mut event = Event::new(SimTime(time.parse().expect("a time")), action);
    event.sector = sector.parse().expect("a sector");
    event.bytes = sectors.parse::<u32>().expect("a count") * 512;
    event.pid = 1;
    event.device = Device::new(8, 0);
    let mut bits = match *rwbs {
        "R" => Categories::READ,
        "W" => Categories::WRITE,
        "D" => Categories::WRITE.with(Categories::DISCARD),
        "FWS" => Categories::WRITE
            .with(Categories::SYNC)
            .with(Categories::FLUSH),
        "WS" => Categories::WRITE.with(Categories::SYNC),
        "FN" => Categories::READ.with(Categories::FLUSH),
        "PC" => Categories::READ.with(Categories::PC),
        other => panic!("no such flags: {other}"),
    };
    let of_request = matches!(
        action,
        Action::Insert | Action::Issue | Action::Complete | Action::Requeue
    );
    if of_request && !rest.contains(&"bio") && *rwbs != "PC" {
        bits = bits.with(Categories::FS);
    }
    event.categories = bits;
    for pair in rest.windows(2) {
        if pair[0] == "from" {
            event.from = Device::new(253, 0);
            event.extra = pair[1].parse().expect("a sector");
        }
    }
    for word in rest {
        if let Some(Ok(pid)) = word.strip_prefix('p').map(str::parse) {
            event.pid = pid;
        } else if let Some(Ok(error)) = word.strip_prefix('e').map(str::parse) {
            event.error = error;
        }
    }
    event
}

/// One line for a bio: its kind, its times, and anomalies.
fn shown(io: &Io) -> String {
    let mut words = vec![format!("{} {}+{}", io.rwbs(), io.sector, io.bytes / 512)];
    let times = [
        ('q', io.queued),
        ('g', io.got_request),
        ('m', io.merged),
        ('i', io.inserted),
        ('d', io.issued),
        ('c', io.completed),
    ];
    for (letter, time) in times {
        words.extend(time.map(|SimTime(time)| format!("{letter}{time}")));
    }
    let marks = [
        ("back", io.join == Join::Back),
        ("front", io.join == Join::Front),
        ("absorbed", io.absorbed),
        ("no-q", io.origin == Origin::Issue),
    ];
    words.extend(
        marks
            .iter()
            .filter(|(_, is)| *is)
            .map(|(word, _)| (*word).to_string()),
    );
    let counts = [
        ("parts", io.parts, 1),
        ("requeues", io.requeues, 0),
        ("errno", u32::from(io.error), 0),
    ];
    let unusual = counts.iter().filter(|(_, count, usual)| count != usual);
    words.extend(unusual.map(|(word, count, _)| format!("{word}={count}")));
    if let Origin::Remap { from, sector } = io.origin {
        words.push(format!("from={from}:{sector}"));
    }
    words.join(" ")
}

/// Completed bios, then unfinished ones, one a line; and the counts of the warnings.
fn run(history: &str) -> (Vec<String>, Vec<(Warning, u64)>) {
    let mut matcher = Matcher::new();
    let mut lines = Vec::new();
    for line in history
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        lines.extend(matcher.add(&event(line)).iter().map(shown));
    }
    lines.extend(matcher.finish().iter().map(shown));
    assert_eq!(matcher.in_flight(), 0);
    assert_eq!(matcher.finish(), [], "a second end returns nothing");
    let warnings = matcher.warnings();
    let counts = Warning::ALL
        .into_iter()
        .map(|warning| (warning, warnings.count(warning)));
    (lines, counts.filter(|(_, count)| *count > 0).collect())
}

/// A history without anything to warn of.
fn clean(history: &str, want: &[&str]) {
    let (lines, warnings) = run(history);
    assert_eq!(lines, want);
    assert_eq!(warnings, []);
}

#[test]
fn a_plain_life() {
    clean(
        "10 Q R 100+8
         11 G R 100+8
         12 I R 100+8
         13 D R 100+8
         20 C R 100+8",
        &["R 100+8 q10 g11 i12 d13 c20"],
    );
}

#[test]
fn bios_join_at_both_ends() {
    clean(
        "10 Q W 100+8
         11 G W 100+8
         12 Q W 108+8
         13 M W 108+8
         14 I W 100+16
         15 Q W 92+8
         16 F W 92+8
         20 D W 92+24
         30 C W 92+24",
        &[
            "W 100+8 q10 g11 i14 d20 c30",
            "W 108+8 q12 m13 i14 d20 c30 back",
            "W 92+8 q15 m16 d20 c30 front",
        ],
    );
}

#[test]
fn a_request_swallows_its_neighbour_with_all_its_bios() {
    clean(
        "10 Q W 100+8
         11 G W 100+8
         12 I W 100+8
         13 Q W 116+8
         14 G W 116+8
         15 Q W 124+8
         16 M W 124+8
         17 I W 116+16
         18 Q W 108+8
         19 M W 108+8
         20 M W 116+16
         30 D W 100+32
         40 C W 100+32",
        &[
            "W 100+8 q10 g11 i12 d30 c40",
            "W 108+8 q18 m19 d30 c40 back",
            "W 116+8 q13 g14 i17 d30 c40 absorbed",
            "W 124+8 q15 m16 i17 d30 c40 back absorbed",
        ],
    );
}

#[test]
fn the_tasks_own_request_is_joined_first() {
    // Both requests end at 108; the bio of task 2 joins that of task 2.
    let (lines, _) = run("10 Q R 100+8 p1
         11 G R 100+8 p1
         12 Q R 104+4 p2
         13 G R 104+4 p2
         14 Q R 108+8 p2
         15 M R 108+8 p2
         20 D R 104+12 p2
         21 D R 100+8 p1
         30 C R 104+12
         31 C R 100+8");
    assert_eq!(
        lines,
        [
            "R 104+4 q12 g13 d20 c30",
            "R 108+8 q14 m15 d20 c30 back",
            "R 100+8 q10 g11 d21 c31"
        ]
    );
}

#[test]
fn a_split_bio_completes_with_its_last_part() {
    let want = ["R 0+96 q10 g12 d20 c40 parts=3"];
    clean(
        "10 Q R 0+96
         11 X R 0+32
         12 G R 0+32
         13 X R 32+32
         14 G R 32+32
         15 G R 64+32
         20 D R 0+32
         21 D R 32+32
         22 D R 64+32
         30 C R 64+32
         31 C R 0+32
         40 C R 32+32",
        &want,
    );
    // An action mask can hide X: the lengths of G show the same.
    clean(
        "10 Q R 0+96
         12 G R 0+32
         14 G R 32+32
         15 G R 64+32
         20 D R 0+32
         21 D R 32+32
         22 D R 64+32
         30 C R 64+32
         31 C R 0+32
         40 C R 32+32",
        &want,
    );
    // Old kernels queue the remainder once more.
    clean(
        "10 Q R 0+64
         11 X R 0+32
         12 G R 0+32
         13 Q R 32+32
         14 G R 32+32
         20 D R 0+32
         21 D R 32+32
         30 C R 0+32
         31 C R 32+32 e5",
        &["R 0+64 q10 g12 d20 c31 parts=2 errno=5"],
    );
}

#[test]
fn a_requeued_request_is_issued_again() {
    clean(
        "10 Q R 0+8
         11 G R 0+8
         12 D R 0+8
         13 R R 0+8
         14 D R 0+8
         15 R R 0+8
         16 D R 0+8
         20 C R 0+8",
        &["R 0+8 q10 g11 d16 c20 requeues=2"],
    );
}

#[test]
fn a_request_may_complete_bit_by_bit() {
    clean(
        "10 Q R 0+8
         11 G R 0+8
         12 Q R 8+8
         13 M R 8+8
         14 Q R 16+8
         15 M R 16+8
         20 D R 0+24
         30 C R 0+12
         31 C R 12+4
         32 C R 16+8",
        &[
            "R 0+8 q10 g11 d20 c30",
            "R 8+8 q12 m13 d20 c31 back",
            "R 16+8 q14 m15 d20 c32 back",
        ],
    );
}

#[test]
fn of_two_alike_the_first_issued_completes_first_and_that_is_said() {
    let (lines, warnings) = run("10 Q R 0+8 p1
         11 G R 0+8 p1
         12 Q R 0+8 p2
         13 G R 0+8 p2
         14 I R 0+8 p1
         15 I R 0+8 p2
         20 D R 0+8 p1
         21 D R 0+8 p2
         30 C R 0+8
         31 C R 0+8");
    assert_eq!(
        lines,
        ["R 0+8 q10 g11 i14 d20 c30", "R 0+8 q12 g13 i15 d21 c31"]
    );
    assert_eq!(
        warnings,
        [(Warning::AmbiguousMatch, 2)],
        "the first D and the first C"
    );
}

#[test]
fn direction_distinguishes_bios_of_one_range() {
    clean(
        "10 Q R 0+8
         11 Q W 0+8
         12 Q D 0+8
         13 G D 0+8
         14 G R 0+8
         15 G W 0+8
         20 D W 0+8
         21 D R 0+8
         22 D D 0+8
         30 C R 0+8
         31 C D 0+8
         32 C W 0+8",
        &[
            "R 0+8 q10 g14 d21 c30",
            "D 0+8 q12 g13 d22 c31",
            "W 0+8 q11 g15 d20 c32",
        ],
    );
}

#[test]
fn a_nowait_bio_fails_beside_its_twin() {
    clean(
        "10 Q R 0+8 p1
         11 G R 0+8 p1
         12 D R 0+8 p1
         13 Q R 0+8 p2
         14 C R 0+8 p2 e11 bio
         20 C R 0+8",
        &["R 0+8 q13 c14 errno=11", "R 0+8 q10 g11 d12 c20"],
    );
}

#[test]
fn what_has_no_beginning_or_no_end_is_counted() {
    let (lines, warnings) = run("10 D R 0+8
         11 C R 0+8
         12 C R 64+8
         13 Q W 128+8
         14 D W 256+8");
    assert_eq!(
        lines,
        ["R 0+8 d10 c11 no-q", "W 128+8 q13", "W 256+8 d14 no-q"]
    );
    let want = [
        (Warning::QueueWithoutComplete, 2),
        (Warning::CompleteWithoutQueue, 2),
    ];
    assert_eq!(warnings, want);
}

#[test]
fn missing_events_are_bridged() {
    // Without M: the range of D shows the members. Without D: the range of C.
    clean(
        "10 Q R 0+8
         11 G R 0+8
         12 Q R 8+8
         13 D R 0+16
         14 C R 0+16
         20 Q R 64+8
         21 G R 64+8
         22 C R 64+8",
        &[
            "R 0+8 q10 g11 d13 c14",
            "R 8+8 q12 d13 c14",
            "R 64+8 q20 g21 c22",
        ],
    );
}

#[test]
fn a_remapped_request_lives_on_the_lower_device() {
    // The path was busy the first time.
    clean(
        "10 A W 0+8 from 500
         12 A W 0+8 from 500
         13 D W 0+8
         20 C W 0+8
         21 C WS 0+0",
        &["W 0+8 d13 c20 from=253,0:500"],
    );
    // A partition: A, then Q.
    clean(
        "10 A R 2048+8 from 0
         11 Q R 2048+8
         12 G R 2048+8
         13 D R 2048+8
         20 C R 2048+8",
        &["R 2048+8 q11 g12 d13 c20 from=253,0:0"],
    );
    // Sent down another path: no bio of this device.
    clean("10 A R 0+8 from 0", &[]);
}

#[test]
fn one_flush_serves_all_that_wait() {
    clean(
        "10 Q FWS 0+0 p1
         11 G FWS 0+0 p1
         12 Q FWS 0+0 p2
         13 G FWS 0+0 p2
         14 D FN 0+0
         15 Q FWS 0+0 p3
         20 C FN 0+0
         21 C WS 0+0
         22 C WS 0+0
         23 C WS 0+0",
        &[
            "FWS 0+0 q10 g11 d14 c21",
            "FWS 0+0 q12 g13 d14 c22",
            "FWS 0+0 q15 c23",
        ],
    );
}

#[test]
fn passthrough_is_counted_apart() {
    let mut matcher = Matcher::new();
    for line in ["10 I PC 0+8", "11 D PC 0+8", "12 C PC 0+8"] {
        assert_eq!(matcher.add(&event(line)), []);
    }
    assert_eq!(matcher.passthrough(), 3);
    assert!(matcher.warnings().is_empty());
}

#[test]
fn devices_do_not_mix() {
    let mut matcher = Matcher::new();
    let on = |minor, line| Event {
        device: Device::new(8, minor),
        ..event(line)
    };
    matcher.add(&on(0, "10 Q R 0+8"));
    matcher.add(&on(16, "11 Q R 0+8"));
    matcher.add(&on(16, "12 D R 0+8"));
    matcher.add(&on(0, "13 D R 0+8"));
    assert_eq!(matcher.in_flight_max(), 2);
    assert_eq!(matcher.oldest(), Some(SimTime(10)));
    let done = matcher.add(&on(0, "20 C R 0+8"));
    assert_eq!(
        (done.len(), shown(&done[0]).as_str()),
        (1, "R 0+8 q10 d13 c20")
    );
    assert_eq!(matcher.oldest(), Some(SimTime(11)));
}

#[test]
fn what_never_completes_does_not_pile_up() {
    let mut matcher = Matcher::new();
    let mut given_up = 0;
    for n in 0..=crate::matching::LIMIT as u64 {
        let lost = Event {
            sector: n * 8,
            ..event("10 Q R 0+8")
        };
        given_up += matcher.add(&lost).len();
    }
    assert_eq!(given_up, crate::matching::LIMIT + 1);
    assert_eq!(matcher.in_flight(), 0);
    assert_eq!(matcher.warnings().count(Warning::TooManyUnfinished), 1);
}
