//! Differences of dm-multipath between kernels.
//!
//! Names say what changes; the algorithm that all share is in `dm/`. Requests between the queues:
//! `mapped_requests.rs`; changes that can be made by themselves: `single_changes.rs`. Kernel:
//! drivers/md/dm.c, dm-rq.c, dm-mpath.c and the path selectors of 4.5, 4.6.2, 4.12, 4.20, 6.1.192
//! and 6.12.117.

use super::MappedRequests;

/// dm-multipath of one kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeviceMapper {
    /// Name of the preset, for scripts and reports.
    pub name: &'static str,
    /// What is done under m->lock when a path is chosen.
    pub target_lock: TargetLock,
    /// How a flag of the target is read on the way of a request.
    pub flag_read: FlagRead,
    /// How many requests in a row go to one path.
    pub repeat: Repeat,
    /// queue-length, service-time: which path goes to the end of the list, and when.
    pub rotation: Rotation,
    pub selectors: Selectors,
    /// The feature `queue_mode`.
    pub queue_mode: QueueModes,
    /// How a bio of a bio-based target is mapped.
    pub bio_map: BioMap,
    /// What a bio-based device sends down for a bio that flushes first.
    pub flush_clone: FlushClone,
    /// A request that cannot be mapped now because no path is left.
    pub no_path: Hold,
    /// A request that waits for the initialisation of its group.
    pub unready: Unready,
    /// How much later the list of delayed requests is kicked, ms: 5000 up to 4.11, then 100.
    pub delay_ms: u16,
    /// A request whose path has no tag for a clone.
    pub no_clone: NoClone,
    /// What is said of a target without path that holds its requests back, when it is asked
    /// whether it is busy.
    pub pathless: Pathless,
    /// When requests of a target without path are held back.
    pub push_back: PushBack,
    /// The saved copy of queue_if_no_path.
    pub saved: Saved,
    /// What a clone that ended with an error does to its request.
    pub end: EndRule,
    /// The selector's count of a request whose clone was not issued after all.
    pub undo: Undo,
    /// What makes held requests come back once there is a path, or its group is ready.
    pub held: Held,
    /// The timer of queue_if_no_path_timeout_secs.
    pub no_path_timer: bool,
    /// What differs on the way of a request through the mapped queue.
    pub requests: MappedRequests,
}

/// What is done under m->lock when a path is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TargetLock {
    /// All of it, and each choice becomes the current path (4.6).
    Whole,
    /// Only changes of the group; the rest is read without it, and the current path changes only
    /// with its group (2da1610ae20e, 4.7).
    Changes,
}

impl TargetLock {
    pub(super) const NAMES: [(&'static str, TargetLock); 2] = [
        ("whole", TargetLock::Whole),
        ("changes", TargetLock::Changes),
    ];
}

/// How a flag of the target is read on the way of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FlagRead {
    /// As it is (4.20).
    Once,
    /// A flag that is set is read once more under m->lock (6.1).
    TwiceIfSet,
}

/// How many requests in a row go to one path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Repeat {
    /// As many as the table says of the path, counted by the target: until then the selector is
    /// not asked (4.5).
    ByTarget,
    /// The selector is asked for each; round-robin counts by itself, with a counter of CPUs that
    /// may be off by 32 for each of them (4.6).
    ByRoundRobin,
    /// One, whatever the table says (4.12).
    One,
}

/// Which path goes to the end of the list, and when.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rotation {
    /// The first one, before the list is looked through (4.12).
    FirstBefore,
    /// The chosen one (4.20).
    ChosenBehind,
}

/// Which selectors there are besides round-robin, queue-length and service-time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Selectors {
    /// None (5.7).
    Three,
    /// historical-service-time (5.8) and io-affinity (5.11).
    Five,
}

/// The feature `queue_mode`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum QueueModes {
    /// There is none (4.7).
    Unknown,
    /// bio, rq and mq (4.8).
    Known,
}

/// How a bio of a bio-based target is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BioMap {
    /// Whether the group waits for its initialisation is read once, before the selector is asked;
    /// whether bios are held is read without m->lock (4.12).
    ReadsOnce,
    /// The selector is asked only where there is no current path: that stays until it fails. So it
    /// is without a hardware handler; the rest as before (4.20).
    Stays,
    /// The selector is asked for each bio, and what holds a bio back is read under m->lock, where
    /// the worker is called as well (6.1).
    UnderLock,
}

/// What a bio-based device sends down for a bio that flushes first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FlushClone {
    /// A flush of its own, which knows nothing of the bio (md->flush_bio, 4.20).
    OfDevice,
    /// The bio without its data; its other flags remain (6.1).
    OfBio,
}

/// What becomes of a request that is held back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Hold {
    /// The device reports busy to the queue (4.6).
    Requeue,
    /// It goes to the requeue list, which is kicked later (4.9).
    Delay,
}

/// A request that waits for the initialisation of its group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unready {
    /// As [`Hold::Requeue`] (4.6).
    Requeue,
    /// It is held with a delay if an initialisation goes on, otherwise as [`Hold::Requeue`] (4.12).
    DelayIfStarted,
    /// It is held with a delay (4.20).
    Delay,
}

/// A request whose path has no tag for a clone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NoClone {
    /// The device reports busy to the queue, whatever the reason (4.6).
    Requeue,
    /// It is held with a delay; the device reports busy only if the path's queue is dying (4.12).
    Delay,
    /// The device reports busy, so that the request may merge further; it is held with a delay if
    /// the path's queue is dying (4.16).
    RequeueToMerge,
}

/// What a target without path that holds its requests back says when asked whether it is busy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pathless {
    /// Yes (4.6).
    Busy,
    /// No, in request-based mode: mapping holds them (4.12).
    Maps,
}

/// When requests of a target without path are held back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PushBack {
    /// queue_if_no_path, or it differs from its saved copy in a suspension without flush (4.6,
    /// 4.20).
    SavedDiffers,
    /// queue_if_no_path, which a suspension without flush sets (4.12).
    FlagAlone,
    /// queue_if_no_path, or a suspension without flush (6.1).
    Noflush,
}

/// The saved copy of queue_if_no_path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Saved {
    /// Follows each message; resuming takes it as it is. Any suspension saves and clears (4.20).
    Follows,
    /// Only while suspended with flush; resuming sets the flag or leaves it. A message that clears
    /// the flag clears it, and the saved flag is never cleared while the flag is set (6.1).
    WhileSuspended,
}

/// What a clone that ended with an error does to its request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EndRule {
    /// Without a path left: EIO, but a reservation conflict is passed on where requests would be
    /// held (4.6).
    IoError,
    /// Without a path left: the error as it is. A reservation conflict is no error of the path
    /// (4.12).
    AsItIs,
    /// The same, and one for want of resources is retried with a delay (4.20).
    DelayForResource,
}

/// The selector's count of a request whose clone was not issued after all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Undo {
    /// Stays as it is: it leaks (4.20).
    Forgotten,
    /// Is taken back as at the end of I/O (5de719e3d01b, 5.2).
    TakenBack,
}

/// What makes held requests come back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Held {
    /// Runs of the queue, as after a busy device (4.6).
    RunQueue,
    /// The requeue list is kicked as well (4.12).
    KickList,
}

impl DeviceMapper {
    /// Linux 4.5.
    pub const V4_5: DeviceMapper = DeviceMapper {
        name: "v4.5",
        target_lock: TargetLock::Whole,
        flag_read: FlagRead::Once,
        repeat: Repeat::ByTarget,
        rotation: Rotation::FirstBefore,
        selectors: Selectors::Three,
        queue_mode: QueueModes::Unknown,
        bio_map: BioMap::ReadsOnce,
        flush_clone: FlushClone::OfDevice,
        no_path: Hold::Requeue,
        unready: Unready::Requeue,
        delay_ms: 100,
        no_clone: NoClone::Requeue,
        pathless: Pathless::Busy,
        push_back: PushBack::SavedDiffers,
        saved: Saved::Follows,
        end: EndRule::IoError,
        undo: Undo::Forgotten,
        held: Held::RunQueue,
        no_path_timer: false,
        requests: MappedRequests::V4_5,
    };

    /// Linux 4.6.
    pub const V4_6: DeviceMapper = DeviceMapper {
        name: "v4.6",
        repeat: Repeat::ByRoundRobin,
        requests: MappedRequests::V4_6,
        ..DeviceMapper::V4_5
    };

    /// Linux 4.12.
    pub const V4_12: DeviceMapper = DeviceMapper {
        name: "v4.12",
        target_lock: TargetLock::Changes,
        repeat: Repeat::One,
        queue_mode: QueueModes::Known,
        no_path: Hold::Delay,
        unready: Unready::DelayIfStarted,
        no_clone: NoClone::Delay,
        pathless: Pathless::Maps,
        push_back: PushBack::FlagAlone,
        end: EndRule::AsItIs,
        held: Held::KickList,
        requests: MappedRequests::V4_12,
        ..DeviceMapper::V4_6
    };

    /// Linux 4.20.
    pub const V4_20: DeviceMapper = DeviceMapper {
        name: "v4.20",
        rotation: Rotation::ChosenBehind,
        bio_map: BioMap::Stays,
        unready: Unready::Delay,
        no_clone: NoClone::RequeueToMerge,
        push_back: PushBack::SavedDiffers,
        end: EndRule::DelayForResource,
        requests: MappedRequests::V4_20,
        ..DeviceMapper::V4_12
    };

    /// Linux 6.1 stable (6.1.192).
    pub const V6_1: DeviceMapper = DeviceMapper {
        name: "v6.1",
        flag_read: FlagRead::TwiceIfSet,
        bio_map: BioMap::UnderLock,
        flush_clone: FlushClone::OfBio,
        selectors: Selectors::Five,
        push_back: PushBack::Noflush,
        saved: Saved::WhileSuspended,
        undo: Undo::TakenBack,
        no_path_timer: true,
        requests: MappedRequests::V6_1,
        ..DeviceMapper::V4_20
    };

    /// Linux 6.12 stable (6.12.117). No field here has changed since 6.1.
    pub const V6_12: DeviceMapper = DeviceMapper {
        name: "v6.12",
        ..DeviceMapper::V6_1
    };

    /// All presets, oldest first.
    pub const PRESETS: [DeviceMapper; 6] = [
        DeviceMapper::V4_5,
        DeviceMapper::V4_6,
        DeviceMapper::V4_12,
        DeviceMapper::V4_20,
        DeviceMapper::V6_1,
        DeviceMapper::V6_12,
    ];

    /// The preset of this name ("v6.1", also without the "v").
    pub fn by_name(name: &str) -> Option<DeviceMapper> {
        let bare = name.strip_prefix('v').unwrap_or(name);
        let mut presets = DeviceMapper::PRESETS.into_iter();
        presets.find(|rules| &rules.name[1..] == bare)
    }
}
