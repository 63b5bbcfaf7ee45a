use std::collections::BTreeSet;

use blkmq::request::Op;

use crate::plan::{DiskId, FilePlan, FileService, Order, ThreadPlan};
use crate::workload::NextIo;
use crate::workload::tests::{mix, take, thread};

/// The thread of `thread()` on disks 0 to `count` - 1, 100 blocks of each.
fn on_disks(count: u16, service: FileService) -> ThreadPlan {
    let mut plan = thread();
    plan.file_service = service;
    let file = plan.files[0];
    plan.files = (0..count)
        .map(|disk| FilePlan {
            disk: DiskId(disk),
            ..file
        })
        .collect();
    plan
}

fn disks(plan: &ThreadPlan, count: usize) -> Vec<u16> {
    take(plan, count).iter().map(|io| io.disk.0).collect()
}

#[test]
fn files_take_turns() {
    let one_each = disks(&on_disks(3, FileService::RoundRobin(1)), 7);
    assert_eq!(one_each, [0, 1, 2, 0, 1, 2, 0]);
    let two_each = disks(&on_disks(3, FileService::RoundRobin(2)), 7);
    assert_eq!(two_each, [0, 0, 1, 1, 2, 2, 0]);
    // 100 blocks of 8 sectors are a file; when both are done the thread starts over.
    let mut in_order = on_disks(2, FileService::Sequential);
    in_order.order = Order::Sequential;
    let whole = disks(&in_order, 250);
    assert!(whole[..100].iter().all(|&disk| disk == 0));
    assert!(whole[100..200].iter().all(|&disk| disk == 1));
    assert!(whole[200..].iter().all(|&disk| disk == 0));
}

#[test]
fn random_files_are_served_alike_and_in_runs() {
    let drawn = disks(&on_disks(4, FileService::Random(3)), 3000);
    for run in drawn.chunks(3) {
        assert!(run.iter().all(|disk| *disk == run[0]), "{run:?}");
    }
    for disk in 0..4 {
        let runs = drawn.chunks(3).filter(|run| run[0] == disk).count();
        assert!((200..300).contains(&runs), "disk {disk}: {runs}");
    }
}

#[test]
fn each_file_has_its_own_map() {
    let plan = on_disks(3, FileService::RoundRobin(1));
    let ios = take(&plan, 300);
    for disk in 0..3 {
        let places = ios.iter().filter(|io| io.disk == DiskId(disk));
        let places: BTreeSet<u64> = places.map(|io| io.sector.0).collect();
        assert_eq!(places.len(), 100, "every block of disk {disk} once");
    }
    let of = |disk: DiskId| {
        let places = ios.iter().filter(move |io| io.disk == disk);
        places.map(|io| io.sector.0).collect::<Vec<_>>()
    };
    assert_ne!(
        of(DiskId(0)),
        of(DiskId(1)),
        "files do not repeat one order"
    );
}

#[test]
fn another_file_does_not_move_the_places_of_the_first() {
    let alone = take(&thread(), 60);
    let beside = take(&on_disks(2, FileService::RoundRobin(1)), 120);
    let first: Vec<NextIo> = beside
        .into_iter()
        .filter(|io| io.disk == DiskId(0))
        .collect();
    assert_eq!(first, alone);
}

#[test]
fn a_trimmed_block_is_written_on_the_same_disk() {
    let mut plan = on_disks(2, FileService::RoundRobin(1));
    plan.mix = mix(0, 50, 50);
    plan.fsync = 2;
    let ios = take(&plan, 50);
    let trims = ios.iter().filter(|io| io.op == Op::Discard);
    let writes = ios.iter().filter(|io| io.op == Op::Write);
    for (trim, write) in trims.zip(writes) {
        assert_eq!((trim.disk, trim.sector), (write.disk, write.sector));
    }
    let flushes: BTreeSet<u16> = ios
        .iter()
        .filter(|io| io.op == Op::Flush)
        .map(|io| io.disk.0)
        .collect();
    assert_eq!(flushes.len(), 2, "an fsync goes to the file in turn");
}
