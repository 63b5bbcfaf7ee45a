//! Delays that are not the device's.

use blkmq::time::{Duration, SimTime};

use super::{HostDelays, Times};

/// Times of an I/O; `NEVER` as `u64::MAX`.
fn io(queued: u64, issued: u64, completed: u64) -> Times {
    Times {
        queued: SimTime(queued),
        issued: SimTime(issued),
        completed: SimTime(completed),
    }
}

/// One tag: the second waits for the first and is issued 7 after its end; the third finds nothing.
#[test]
fn a_request_that_waited_for_a_tag_shows_the_delay_of_the_completion() {
    let times = [io(0, 3, 100), io(10, 107, 200), io(300, 305, 400)];
    let delays = HostDelays::of(&times, |_| 0, 1);
    let ns = |ns: [u64; 3]| ns.map(Duration).to_vec();
    assert_eq!(delays.completing, ns([7, 0, 0]));
    let alone = [Some(Duration(3)), None, Some(Duration(5))];
    assert_eq!(delays.submitting, alone);
}

/// With a tag to spare the second did not wait for the first.
#[test]
fn a_queue_with_room_delays_nothing() {
    let times = [io(0, 3, 100), io(10, 107, 200)];
    let delays = HostDelays::of(&times, |_| 0, 2);
    assert_eq!(delays.completing, [Duration::ZERO; 2]);
}

/// Two bios of one request have one completion, and the first of two completions counts.
#[test]
fn completions_are_of_requests_and_the_first_counts() {
    let merged = [io(0, 5, 50), io(1, 5, 50), io(2, 5, 60), io(20, 90, 150)];
    // The third bio is a request of its own, issued at the same time.
    let delays = HostDelays::of(&merged, |index| u32::from(index == 2), 1);
    assert_eq!(delays.completing.len(), 3);
    assert_eq!(delays.completing[0], Duration(40));
}
