use super::*;

const US: u64 = 1000;
const HZ: u32 = 250;

/// Lines of one object, each alone in its section: time in us, and ms of its count.
fn log(name: &str, lines: &[(u64, u64)]) -> Log {
    let text = |ms| format!("{name} raised {ms}/3748 msec");
    let mut log = Log::new(lines.iter().map(|&(_, ms)| text(ms)).collect());
    log.times = lines.iter().map(|&(us, _)| SimTime(us * US)).collect();
    log.goes_on = vec![false; lines.len()];
    log
}

fn ticks(logs: &[Log]) -> Ticks {
    Ticks::of_logs(logs.iter().map(|log| (log, "raised ")), HZ)
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
    let ticks = ticks(&[log("a", &LATE)]);
    let found = ticks.phase / US;
    assert!((890..=1110).contains(&found), "{found} us");
    assert_eq!(at(&ticks, 24_800) + 1, at(&ticks, 25_200));
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
    let counted = counts(&log, "raised ", HZ);
    let all: Vec<(&str, usize)> = counted.into_iter().map(|(o, all)| (o, all.len())).collect();
    assert_eq!(all, [("00000000000000aa", LATE.len())]);
}
