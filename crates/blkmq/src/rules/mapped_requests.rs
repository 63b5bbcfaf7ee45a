//! How the way of a request through a mapped queue differs between kernels.
//!
//! Names say what changes; the way itself is in `path/map.rs` and around it.
//! Kernel: drivers/md/dm.c, dm-rq.c, block/blk-core.c of 4.5, 4.6.2, 4.12, 4.20, 6.1.192.

use super::old_top::OldTop;

/// The way of a request through a mapped queue, and that of its clone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MappedRequests {
    /// How queue_rq finds its target.
    pub target: TargetLookUp,
    /// Whether the target asks a path's driver whether it is busy.
    pub busy_paths: BusyPaths,
    /// Where the target keeps what it knows of an I/O (struct dm_mpath_io).
    pub io_data: IoData,
    /// Whether the device counts its requests in flight.
    pub in_flight: InFlight,
    pub insertion: CloneInsertion,
    /// Where the second completion goes on.
    pub second_end: SecondEnd,
    /// Which bios of a clone complete data of the request above.
    pub bio_updates: BioUpdates,
    /// What the end of a request runs.
    pub end_run: EndRun,
    /// What a request that could not be mapped runs.
    pub refused_run: RefusedRun,
    /// How a suspension keeps requests from being mapped.
    pub suspension: Suspension,
    /// Tags of the mapped queue, unless dm_mq_queue_depth says otherwise.
    pub queue_depth: u16,
    /// The mapped queue with use_blk_mq=N, which is the default where there is such a one; none:
    /// there is none any more (4.20).
    pub old_top: Option<OldTop>,
}

/// How queue_rq finds its target.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TargetLookUp {
    /// In the live table, for each request (4.5).
    Table,
    /// It is known (4.6).
    Known,
}

/// Whether the target asks a path's driver whether it is busy (blk_lld_busy()). Only those of SCSI
/// answer, since only they have budgets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BusyPaths {
    /// None of a queue of blk-mq can say so (4.20).
    Unheard,
    /// It is asked (blk_mq_ops.busy, 5.0).
    Asked,
}

/// Where the target keeps what it knows of an I/O.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IoData {
    /// In an object of a mempool (4.5).
    Mempool,
    /// After the request in memory (591ddcfc4bfa, 4.6).
    InRequest,
}

/// Whether the device counts its requests in flight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InFlight {
    /// md->pending, for each direction (4.20).
    Counted,
    /// The tags show it (5.0).
    Tags,
}

/// Where a clone goes (blk_insert_cloned_request()).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CloneInsertion {
    /// To its software queue, which kblockd runs (4.5).
    InBackground,
    /// To its software queue, which is run at once (6acfe68bac7e, 4.6).
    AtOnce,
    /// To the scheduler of its queue, if that has one, otherwise the same (4.11 to 4.13).
    Scheduler,
    /// To the driver, whose answer is used (396eaf21ee17, 4.16).
    Direct,
}

/// Where the second completion goes on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SecondEnd {
    /// In the softirq of the CPU that is there (blk_complete_request(), 4.5).
    Softirq,
    /// As any completion (6acfe68bac7e, 4.6).
    Placed,
}

/// What the end of a request runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EndRun {
    /// All hctxs of the mapped queue, by kblockd (4.5).
    Hctxs,
    /// Nothing (6acfe68bac7e, 4.6).
    Nothing,
}

/// What a request that could not be mapped runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RefusedRun {
    /// Nothing: that the device is busy is all (4.10, 4.16).
    Nothing,
    /// Its hctx, 100 ms later (4.11 to 4.15).
    Later,
}

/// How a suspension keeps requests from being mapped (dm_stop_queue()).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Suspension {
    /// It stops the hctxs (4.6).
    Stops,
    /// It stops them, and waits for the runs that are under way (4.12).
    StopsAndWaits,
    /// It quiesces the queue (4.20).
    Quiesces,
}

/// Which bios of a clone that ends complete data of the request above (blk_update_request() in
/// end_clone_bio()).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BioUpdates {
    /// Each: it traces a C for each of its bios (4.12).
    Each,
    /// The last one: one C (4.20).
    Last,
}

impl TargetLookUp {
    pub(super) const NAMES: [(&'static str, TargetLookUp); 2] = [
        ("table", TargetLookUp::Table),
        ("known", TargetLookUp::Known),
    ];
}

impl IoData {
    pub(super) const NAMES: [(&'static str, IoData); 2] = [
        ("mempool", IoData::Mempool),
        ("in-request", IoData::InRequest),
    ];
}

impl CloneInsertion {
    pub(super) const NAMES: [(&'static str, CloneInsertion); 4] = [
        ("in-background", CloneInsertion::InBackground),
        ("at-once", CloneInsertion::AtOnce),
        ("scheduler", CloneInsertion::Scheduler),
        ("direct", CloneInsertion::Direct),
    ];
}

impl SecondEnd {
    pub(super) const NAMES: [(&'static str, SecondEnd); 2] = [
        ("softirq", SecondEnd::Softirq),
        ("placed", SecondEnd::Placed),
    ];
}

impl EndRun {
    pub(super) const NAMES: [(&'static str, EndRun); 2] =
        [("hctxs", EndRun::Hctxs), ("nothing", EndRun::Nothing)];
}

impl MappedRequests {
    /// Linux 4.5.
    pub const V4_5: MappedRequests = MappedRequests {
        target: TargetLookUp::Table,
        busy_paths: BusyPaths::Unheard,
        io_data: IoData::Mempool,
        in_flight: InFlight::Counted,
        insertion: CloneInsertion::InBackground,
        second_end: SecondEnd::Softirq,
        bio_updates: BioUpdates::Each,
        end_run: EndRun::Hctxs,
        refused_run: RefusedRun::Nothing,
        suspension: Suspension::Stops,
        queue_depth: 128,
        old_top: Some(OldTop::V4_5),
    };

    /// Linux 4.6.
    pub const V4_6: MappedRequests = MappedRequests {
        target: TargetLookUp::Known,
        io_data: IoData::InRequest,
        insertion: CloneInsertion::AtOnce,
        second_end: SecondEnd::Placed,
        end_run: EndRun::Nothing,
        queue_depth: 2048,
        ..MappedRequests::V4_5
    };

    /// Linux 4.12.
    pub const V4_12: MappedRequests = MappedRequests {
        insertion: CloneInsertion::Scheduler,
        refused_run: RefusedRun::Later,
        suspension: Suspension::StopsAndWaits,
        old_top: Some(OldTop::V4_12),
        ..MappedRequests::V4_6
    };

    /// Linux 4.20.
    pub const V4_20: MappedRequests = MappedRequests {
        insertion: CloneInsertion::Direct,
        bio_updates: BioUpdates::Last,
        refused_run: RefusedRun::Nothing,
        suspension: Suspension::Quiesces,
        old_top: None,
        ..MappedRequests::V4_12
    };

    /// Linux 6.1.
    pub const V6_1: MappedRequests = MappedRequests {
        busy_paths: BusyPaths::Asked,
        in_flight: InFlight::Tags,
        ..MappedRequests::V4_20
    };
}
