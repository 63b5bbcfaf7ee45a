//! Names of labels against the variants they stand for.

use super::requeue::RequestAt;
use super::{
    Label, complete, ctx, dd_insert, flush, insert, list, pass, plug, requeue, run, submit,
};
use core::fmt::Debug;
use std::collections::BTreeSet;

/// `WaitRun` as labels spell it: `wait-run`.
fn kebab(variant: &str) -> String {
    let mut name = String::new();
    for (at, letter) in variant.char_indices() {
        if letter.is_uppercase() && at > 0 {
            name.push('-');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

/// Each variant must have the name that stands in its place.
fn check<At: Debug>(path: &str, labels: &[&str], variants: &[(At, usize)]) {
    for (variant, place) in variants {
        let expected = kebab(&format!("{variant:?}"));
        assert_eq!(labels.get(*place), Some(&expected.as_str()), "{path}");
    }
    assert_eq!(variants.len(), labels.len(), "variants of {path}");
}

/// The variants of an `At` with their numbers. A variant that is missing here is one label too
/// few; one too many does not compile.
macro_rules! variants {
    ($path:ident: $($variant:ident),* $(,)?) => {
        check(
            stringify!($path),
            $path::LABELS,
            &[$(($path::At::$variant, $path::At::$variant as usize)),*],
        )
    };
}

#[test]
fn labels_are_the_names_of_the_variants_in_order() {
    variants!(submit: Enter, TryMerge, ElevatorMerge, Absorbed, CtxPending, CtxMerge, Alloc, Tag,
        TagBatch,
        WaitRun, WaitRetry, WaitAdd, WaitCount, WaitLast, WaitSleep, WaitWoken, WaitLeave,
        WaitUncount,
        WaitPassOn,
        AfterFlush, Plug, Busy, Rest);
    variants!(plug: Take, Group, Elevator, AbsorbedLocked, Absorbed, Busy, Ctx, Run,
        WholeQuiesced, WholeAnswer, Next, Stopped, Quiesced, Budget, Tag, NoTag,
        Answer, Refused, Issued, BusyWrite, Cached);
    variants!(insert: Route, Elevator, AbsorbedLocked, Absorbed, Ctx, Dispatch, Run);
    variants!(run: Quiesced, HasDispatch, HasCtx, HasElevator, HasSide, Recheck, Enter, Stopped,
        StillQuiesced, PeekDispatch, TakeDispatch, MarkRestart, CountMark, Busy, Leftovers,
            Pass, Ctx);
    variants!(pass: Busy, HasWork, PeekDispatch, HasSide, Budget, Gate, ShutGate, Drain, TakeSide,
        Pick, Leave, OpenGate, Absorbed, Tag, DelayRuns, List);
    variants!(list: Head, Budget, Tag, TagRestart, TagInLine, TagLine, TagRetry, TagStale,
        TagLeave, TagAhead,
        Answer, PutTag, PutAhead, Commit, Rest, PutBack, Restart, StillInLine, BusyRead, BusyWrite);
    variants!(ctx: Scan, Splice, PeekDispatch, Any, Budget, Find, Dequeue, Withheld, List);
    variants!(complete: End, EndBio, Finish, Tags, PutDriver, PutSched, Restart,
        ClearRestart, ClearFlag, Visit, Unmark, Uncount, SeesDispatch, SeesWork,
        PutSequence, FlushLock, Requeue, EndSequences);
    variants!(flush: Policy, Start, CountData, Requeue, End);
    variants!(requeue: Start, Take, Insert, Run);
    check(
        "requeue-request",
        requeue::REQUEST_LABELS,
        &[RequestAt::Start, RequestAt::PutTag, RequestAt::Add].map(|at| (at, at as usize)),
    );
    variants!(dd_insert: Enter, Append, Note, Tried, Busy, Count, Marked, Mark, Fill, Recount,
        Still, Begin, Insert, Filled, Claim, Look, Collect, End, Again, Unlock, LateEnd, Absorbed);
}

#[test]
fn every_label_has_a_name_of_its_own() {
    let names: BTreeSet<String> = Label::all().map(Label::name).collect();
    assert_eq!(names.len(), Label::COUNT);
    assert!(names.contains("run.take-dispatch"));
    assert!(
        names.contains("dd-insert.absorbed"),
        "the last label of the last path"
    );
}
