use super::*;

const A: IoContextId = IoContextId(1);
const B: IoContextId = IoContextId(2);
const C: IoContextId = IoContextId(3);

fn with_queues(rules: QueueMerge, processes: &[IoContextId]) -> (Ties, Vec<QId>) {
    let mut ties = Ties::new(rules, 1);
    let give = |&p: &IoContextId| ties.give(p, None, true).expect("a queue").0;
    let queues = processes.iter().map(give).collect();
    (ties, queues)
}

fn never(_: &Tie) -> bool {
    false
}

/// Bug A of the patch: process b has exited, its queue lives through a request and still points at
/// c's queue, which is freed; the next search for the end of that chain reads it.
fn walk_through_a_dead_queue(rules: QueueMerge) -> Result<Option<(QId, QId)>, Fault> {
    let (mut ties, q) = with_queues(rules, &[A, B, C]);
    ties.hold(q[0], false)?;
    ties.set_up(q[0], q[1])?;
    ties.exit(A, true)?;
    ties.exit(B, true)?;
    assert_eq!(
        ties.take_freed(),
        Some(q[1]),
        "nothing refers to the target"
    );
    ties.set_up(q[2], q[0])
}

#[test]
fn the_patch_follows_a_chain_into_freed_memory() {
    let posted = walk_through_a_dead_queue(QueueMerge::POSTED);
    assert!(matches!(posted, Err(Fault::UseAfterFree(_))), "{posted:?}");
    let first = walk_through_a_dead_queue(QueueMerge::V2_6_33);
    assert!(matches!(first, Err(Fault::UseAfterFree(_))), "{first:?}");
    assert_eq!(walk_through_a_dead_queue(QueueMerge::V2_6_35), Ok(None));
}

/// Two processes share q[1], which will be merged into q[2], whose process shares its queue, too;
/// both leave q[1] by a split. Returns the number of queues left after all exits.
fn split_within_a_chain(rules: QueueMerge) -> Result<usize, Fault> {
    let d = IoContextId(4);
    let (mut ties, q) = with_queues(rules, &[A, B, C, d]);
    ties.set_up(q[0], q[1])?;
    ties.find(A, true, never)?;
    ties.set_up(q[3], q[2])?;
    ties.find(d, true, never)?;
    assert_eq!(
        ties.set_up(q[1], q[2])?,
        Some((q[1], q[2])),
        "equal numbers"
    );
    ties.tie_mut(q[1])?.split_coop = true;
    assert_eq!(ties.find(A, true, never)?, None, "it leaves");
    for p in [A, B, C, d] {
        ties.exit(p, true)?;
    }
    Ok(ties.queues().count() - 1)
}

#[test]
fn a_split_forgets_the_chain() {
    assert_eq!(split_within_a_chain(QueueMerge::V2_6_33), Ok(1), "a leak");
    assert_eq!(split_within_a_chain(QueueMerge::V2_6_35), Ok(0));
}

/// A process changes its group before it changes to the planned queue.
fn group_change_within_a_chain(rules: QueueMerge) -> Result<usize, Fault> {
    let (mut ties, q) = with_queues(rules, &[A, B]);
    ties.set_up(q[0], q[1])?;
    ties.change_group(A)?;
    ties.exit(A, true)?;
    ties.exit(B, true)?;
    Ok(ties.queues().count() - 1)
}

#[test]
fn a_group_change_forgets_the_chain() {
    assert_eq!(
        group_change_within_a_chain(QueueMerge::V4_20),
        Ok(1),
        "a leak"
    );
    let repaired = QueueMerge {
        group_change_drops_chain: true,
        ..QueueMerge::V4_20
    };
    assert_eq!(group_change_within_a_chain(repaired), Ok(0));
}

/// The fallback queue's references after a failed allocation, and whether the table of asynchronous
/// queues has it.
fn want_of_memory(rules: QueueMerge) -> Result<(i32, bool), Fault> {
    let mut ties = Ties::new(rules, 1);
    ties.give(A, None, false)?;
    ties.give(B, Some(0), false)?;
    assert_eq!(ties.find(A, true, never)?, None, "it tries again");
    ties.give(A, None, true)?;
    ties.exit(A, true)?;
    ties.exit(B, false)?;
    Ok((ties.tie(FALLBACK)?.references, ties.table()[0].is_some()))
}

#[test]
fn the_fallback_queue_keeps_references() {
    // Its own, the one of a's slot that is never put, and the table's, for ever.
    assert_eq!(want_of_memory(QueueMerge::V2_6_35), Ok((3, true)));
    assert_eq!(want_of_memory(QueueMerge::V4_20), Ok((1, false)));
}

/// Takes and puts a reference at each place, once. Returns the queues left at the end, or the
/// fault.
fn all_accounts(wrong: Option<(Account, i32)>) -> Result<usize, Fault> {
    let rules = QueueMerge {
        group_change_drops_chain: true,
        ioprio_change_drops_chain: true,
        ..QueueMerge::V2_6_35
    };
    let (d, e) = (IoContextId(4), IoContextId(5));
    let mut ties = Ties::new(rules, 2);
    ties.wrong = wrong;
    let mut q = Vec::new();
    for p in [A, B, C, d, e] {
        q.push(ties.give(p, None, true)?.0);
    }
    ties.give(A, Some(0), true)?;
    ties.change_ioprio(A, 1)?;
    // Only the table held it meanwhile.
    ties.give(B, Some(0), true)?;
    ties.hold(q[0], true)?;
    ties.set_up(q[0], q[1])?;
    ties.find(A, true, never)?;
    ties.release(q[0], true)?;
    ties.set_up(q[3], q[2])?;
    ties.find(d, true, never)?;
    ties.set_up(q[1], q[2])?;
    ties.tie_mut(q[1])?.split_coop = true;
    ties.find(A, true, never)?;
    ties.give(A, None, true)?;
    ties.set_up(q[4], q[2])?;
    ties.change_group(e)?;
    for p in [A, B, C, d, e] {
        ties.exit(p, false)?;
        ties.exit(p, true)?;
    }
    // All queues but those of the table and the fallback.
    let held = ties.table().iter().flatten().count() as i32;
    let left: i32 = ties.queues().map(|(_, tie)| tie.references).sum();
    Ok((left - held - 1).unsigned_abs() as usize)
}

#[test]
fn a_get_or_put_too_many_or_too_few_is_found_everywhere() {
    assert_eq!(all_accounts(None), Ok(0));
    let gets = [
        Account::Slot,
        Account::Table,
        Account::Request,
        Account::Reservation,
    ];
    let puts = [
        Account::RequestEnd,
        Account::Redirection,
        Account::Split,
        Account::SplitChain,
        Account::Exit,
        Account::ExitChain,
        Account::IoprioChange,
        Account::GroupChange,
    ];
    let signs = gets.map(|account| (account, 1)).into_iter();
    for (account, more) in signs.chain(puts.map(|account| (account, -1))) {
        let leak = all_accounts(Some((account, more)));
        let leaks = matches!(leak, Ok(left) if left > 0);
        assert!(leaks, "{account:?}, a reference too many: {leak:?}");
        let used = all_accounts(Some((account, -more)));
        assert!(used.is_err(), "{account:?}, a reference too few: {used:?}");
    }
}
