use super::*;

const US: u64 = 1000;
const HZ: u32 = 250;
const MS4: u64 = 4000 * US;
const MARKS: LogMarks = LogMarks {
    dispatch: "",
    gives: "",
    exit: "",
    unlocked: None,
    ticks: "raised ",
    takes_tick: "busy",
};

/// Lines of one object, each alone in its section: time in us, and ms of its count.
fn log(name: &str, lines: &[(u64, u64)]) -> Log {
    let text = |ms| format!("{name} raised {ms}/3748 msec");
    Log {
        lines: lines.iter().map(|&(_, ms)| text(ms)).collect(),
        times: lines.iter().map(|&(us, _)| SimTime(us * US)).collect(),
        goes_on: vec![false; lines.len()],
        ..Log::default()
    }
}

fn ticks(logs: &[Log]) -> Ticks {
    read(logs, &[])
}

/// With ticks that probes read: time in us, tick.
fn read(logs: &[Log], probes: &[(u64, u64)]) -> Ticks {
    let probe = |&(us, tick): &(u64, u64)| Probe {
        time: SimTime(us * US),
        tick: Jiffies(tick),
        locked: true,
    };
    let mut read = vec![Vec::new(); logs.len()];
    read[0] = probes.iter().map(probe).collect();
    Ticks::of_logs(logs.iter().map(|log| (log, &MARKS)), &read, HZ)
}

fn at(ticks: &Ticks, us: u64) -> u64 {
    ticks.at(SimTime(us * US)).0
}

/// Ticks come 1 ms after a multiple of 4 ms, but the one at 9 ms comes after 10 ms.
const LATE: [(u64, u64); 8] = [
    (500, 0),
    (1500, 4),
    (4900, 4),
    (5100, 8),
    (8500, 8),
    (10_000, 8),
    (11_500, 12),
    (13_500, 16),
];

#[test]
fn the_phase_is_where_most_ticks_come() {
    let phase = |log: Log| ticks(&[log]).phase;
    // Between the section of the line at 4.9 ms and the line at 5.1 ms.
    assert_eq!(
        phase(log("a", &LATE)),
        (4900 * US - BEFORE_LINE).midpoint(5100 * US) % MS4
    );
    // It can be 0.
    assert_eq!(phase(log("a", &LATE.map(|(us, ms)| (us + 3000, ms)))), 0);
    // A section that began before.
    let mut goes_on = log("a", &LATE);
    goes_on.goes_on[1] = true;
    goes_on.goes_on[2] = true;
    assert_eq!(
        phase(goes_on),
        (4500 * US - BEFORE_LINE).midpoint(5100 * US) % MS4
    );
    // Two lines far apart, with late ticks between them, bound none.
    let mut all = vec![log("a", &LATE)];
    all.extend((0..5).map(|n| log(&format!("b{n}"), &[(2000, 0), (11_000, 4)])));
    assert_eq!(ticks(&all).phase, ticks(&all[..1]).phase);
}

#[test]
fn a_late_tick_is_late_for_all_events() {
    let ticks = ticks(&[log("a", &LATE)]);
    let at = |us| at(&ticks, us);
    assert_eq!(at(9_500), at(8_500));
    assert_eq!(at(10_000), at(8_500));
    assert_eq!(at(10_500), at(8_500) + 1);
    assert_eq!(at(13_500), at(8_500) + 2);
}

#[test]
fn a_moment_that_changes_shows_no_late_tick() {
    // Its moment is moved by a tick at each second line: no line came before a late tick.
    let moved: Vec<(u64, u64)> = (0..8).map(|n| (n * 4000 + 2000, n / 2 * 4)).collect();
    let ticks = ticks(&[log("a", &LATE), log("b", &moved)]);
    for (us, _) in moved.into_iter().filter(|&(us, _)| us > 14_000) {
        assert_eq!(at(&ticks, us), ticks.usual(SimTime(us * US)), "{us} us");
    }
}

#[test]
fn what_an_object_shows_is_taken_where_it_is_sure() {
    let late = || log("a", &LATE);
    // Two lines, counted from a moment that came late itself.
    let few = log("b", &[(9200, 0), (9700, 0)]);
    let all = ticks(&[late(), few]);
    assert_eq!(at(&all, 9700), at(&all, 8500));
    // Its moment is moved for the last two lines.
    let back = log(
        "b",
        &[
            (14_000, 0),
            (18_000, 4),
            (22_000, 8),
            (22_500, 4),
            (22_700, 4),
        ],
    );
    let all = ticks(&[late(), back]);
    assert_eq!(at(&all, 22_600), at(&all, 22_000));
    // It is moved by ten ticks.
    let far = [
        (114_000, 80),
        (115_000, 80),
        (118_000, 84),
        (122_000, 8),
        (126_000, 12),
        (130_000, 16),
        (134_000, 20),
    ];
    let all = ticks(&[late(), log("b", &far)]);
    for (us, _) in far {
        assert_eq!(at(&all, us), all.usual(SimTime(us * US)), "{us} us");
    }
    // A tick came a little before its phase: it does not go back.
    let early = [&LATE[..], &[(24_850, 28)]].concat();
    let all = ticks(&[log("a", &early)]);
    assert_eq!(at(&all, 24_900), at(&all, 24_850));
    assert_eq!(at(&all, 24_850), at(&all, 24_100) + 1);
}

#[test]
fn two_names_of_one_pointer_are_one_object() {
    let mut log = log("a", &LATE);
    let named = [
        (100, "a get 00000000000000aa"),
        (700, "SHARED put 00000000000000aa 3"),
    ];
    for line in &mut log.lines[1..] {
        *line = line.replace("a raised", "SHARED raised");
    }
    for (us, line) in named.into_iter().rev() {
        let place = log.times.partition_point(|&time| time < SimTime(us * US));
        log.lines.insert(place, line.to_owned());
        log.times.insert(place, SimTime(us * US));
        log.goes_on.push(false);
    }
    let counted = counts(&log, &MARKS, HZ);
    let all: Vec<(&str, usize)> = counted.into_iter().map(|(o, all)| (o, all.len())).collect();
    assert_eq!(all, [("00000000000000aa", LATE.len())]);
}

/// Ticks come 1 ms after a multiple of 4 ms; between 10 and 30 ms none is counted.
fn counted(us: u64) -> u64 {
    let at = if (10_000..30_000).contains(&us) {
        10_000
    } else {
        us
    };
    1000 + (at + 3000) / 4000
}

#[test]
fn ticks_that_probes_read_stand_however_late_they_are() {
    let probes: Vec<(u64, u64)> = (0..60)
        .map(|n| n * 900 + 300)
        .map(|us| (us, counted(us)))
        .collect();
    // It counts as if none was late.
    let wrong = log("a", &[(21_500, 0), (25_500, 4), (29_500, 8)]);
    let ticks = read(&[wrong], &probes);
    for us in probes.into_iter().map(|(us, _)| us).chain([25_500, 80_000]) {
        assert_eq!(
            at(&ticks, us) - at(&ticks, 300),
            counted(us) - counted(300),
            "{us} us"
        );
    }
}

#[test]
fn a_probe_shows_the_tick_of_its_section() {
    let probes: Vec<(u64, u64)> = (0..50)
        .map(|n| n * 1900 + 300)
        .map(|us| (us, counted(us)))
        .collect();
    let section = |goes_on| {
        let mut log = log("other", &[(55_000, 0), (64_000, 0)]);
        log.lines.fill("no count".to_owned());
        log.goes_on[0] = goes_on;
        let inside: Vec<_> = probes
            .iter()
            .copied()
            .filter(|(us, _)| !(55_000..62_000).contains(us))
            .collect();
        let ticks = read(&[log], &inside);
        at(&ticks, 62_900) - at(&ticks, 54_998)
    };
    assert_eq!((section(true), section(false)), (0, 2));
}

#[test]
fn a_tick_within_a_section_is_seen_where_it_is_taken() {
    // A section from 1 ms to 33 ms: a probe at its beginning, and a tick that is taken at its end.
    let (start, end) = (1000, 33_000);
    let mut log = log("a", &[(start, 0), (end, 0), (34_000, 0), (34_100, 0)]);
    log.lines[0] = "a get".to_owned();
    log.lines[1] = "a busy".to_owned();
    log.goes_on[0] = true;
    let ticks = read(&[log], &[(1001, 100), (34_050, 102)]);
    let known = |us| ticks.known_at(SimTime(us * US));
    let first = known(start).expect("the probe is in this section");
    assert_eq!(known(end), Some(first + Jiffies(2)));
    assert_eq!(known(20_000), None);
}
