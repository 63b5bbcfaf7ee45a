use super::*;

fn three() -> MergeProtocol {
    let mut protocol = MergeProtocol::new(Rules::v6_1(), 3, 2);
    protocol.create(0, CreationOutcome::Last);
    protocol.create(1, CreationOutcome::Later);
    protocol.create(2, CreationOutcome::Alone);
    protocol
}

fn references(protocol: &MergeProtocol) -> Vec<i32> {
    let all = (0..protocol.born()).map(|q| protocol.queue(q));
    all.map(|seen| seen.map_or(0, |seen| seen.references))
        .collect()
}

#[test]
fn a_candidate_is_held_until_its_time_comes() {
    let mut protocol = three();
    assert_eq!(references(&protocol), [2, 1, 1]);
    assert_eq!(protocol.candidate(1), Some(0));
    // The request makes the process the owner of the queue.
    protocol.submit(0);
    protocol.complete(0);
    protocol.merge_later(1, false);
    assert_eq!(references(&protocol), [2, 0, 1]);
    assert_eq!((protocol.slot(1), protocol.candidate(1)), (Some(0), None));
    assert!(protocol.merged_for_good(0) && protocol.merged_for_good(1));
}

#[test]
fn one_that_idles_better_keeps_its_queue() {
    let mut protocol = three();
    protocol.merge_later(1, true);
    assert_eq!(references(&protocol), [1, 1, 1]);
    assert_eq!(protocol.slot(1), Some(1));
}

#[test]
fn a_merge_reserves_for_who_is_still_to_come() {
    let mut protocol = three();
    protocol.submit(2);
    protocol.submit(0);
    protocol.merge(1, 0);
    // The candidate is the queue that the process has come to by another merge.
    assert_eq!(references(&protocol), [3, 0, 2]);
    protocol.merge(0, 2);
    assert_eq!(references(&protocol), [2, 0, 4]);
    assert_eq!(protocol.queue(0).and_then(|seen| seen.new), Some(2));
    protocol.redirect(1);
    protocol.complete(0);
    assert_eq!(references(&protocol), [0, 0, 4]);
}

#[test]
fn who_exits_gives_back_what_is_reserved_for_it() {
    let mut protocol = three();
    protocol.submit(2);
    protocol.submit(0);
    protocol.merge(1, 0);
    protocol.merge(0, 2);
    for process in 0..3 {
        protocol.exit(process);
    }
    protocol.complete(0);
    protocol.complete(2);
    assert_eq!(references(&protocol), [0, 0, 0]);
}

#[test]
fn who_leaves_a_shared_queue_gets_another() {
    let mut protocol = three();
    protocol.submit(0);
    protocol.merge(2, 0);
    protocol.split(2);
    assert_eq!(protocol.slot(2), Some(3));
    assert_eq!(references(&protocol), [3, 1, 0, 1]);
    protocol.split(0);
    assert_eq!(protocol.slot(0), Some(0));
    assert!(!protocol.queue(0).expect("it is kept").shared);
}

#[test]
fn a_shared_queue_stays_in_its_group() {
    let mut protocol = three();
    protocol.change_group(1, 1);
    assert_eq!(protocol.queue(1).map(|seen| seen.group), Some(1));
    protocol.submit(0);
    protocol.merge(2, 0);
    protocol.change_group(2, 1);
    assert_eq!(protocol.slot(2), None);
    assert_eq!(protocol.queue(0).map(|seen| seen.group), Some(0));
}

#[test]
#[should_panic(expected = "is put and has no reference")]
fn a_reference_too_few_is_found_by_who_puts_the_last() {
    let mut protocol = three();
    protocol.submit(2);
    protocol.miscount(2, -1);
    protocol.exit(2);
    protocol.complete(2);
}
