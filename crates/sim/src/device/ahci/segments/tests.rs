use super::*;

fn held(segments: &Segments) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = segments.all.iter().map(|s| (s.start, s.end)).collect();
    all.retain(|(start, end)| start < end);
    all.sort_unstable();
    all
}

#[test]
fn the_least_recently_used_one_goes() {
    let mut segments = Segments::new(2, 100);
    let first = segments
        .replace(Sector(0), Sector(8))
        .expect("there is one");
    segments
        .replace(Sector(1000), Sector(1008))
        .expect("there is one");
    segments.touch(first);
    segments
        .replace(Sector(2000), Sector(2008))
        .expect("there is one");
    assert_eq!(held(&segments), [(0, 8), (2000, 2008)]);
    assert_eq!(segments.with(Sector(8)), Some((first, Sector(8))));
    assert_eq!(segments.with(Sector(9)), None);
}

#[test]
fn what_has_no_room_is_forgotten_at_the_beginning() {
    let mut segments = Segments::new(1, 100);
    let at = segments
        .replace(Sector(0), Sector(8))
        .expect("there is one");
    segments.extend(at, Sector(150));
    assert_eq!(held(&segments), [(50, 150)]);
}

#[test]
fn written_sectors_are_forgotten() {
    let mut segments = Segments::new(2, 100);
    segments.replace(Sector(0), Sector(8));
    segments.replace(Sector(100), Sector(108));
    segments.forget(Sector(104), Sector(112));
    assert_eq!(held(&segments), [(0, 8)]);
    segments.forget(Sector(8), Sector(16));
    assert_eq!(held(&segments), [(0, 8)], "its end is not of it");
}

#[test]
fn without_segments_nothing_is_read_ahead() {
    let mut segments = Segments::new(0, 100);
    assert_eq!(segments.ahead(), 0);
    assert_eq!(segments.replace(Sector(0), Sector(8)), None);
}
