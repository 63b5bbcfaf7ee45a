//! Presets by name and kind, and presets with one change.

use super::{BioPlug, FairQueueing, Fix, Restart, Rules, Series, StableMerge};

impl Rules {
    /// These rules with another series.
    pub const fn with_series(self, series: Series) -> Rules {
        Rules { series, ..self }
    }

    /// These rules with another plug for tasks without one: a comparison of v6.12 with kernels
    /// older than its plug around each bio.
    pub const fn with_bio_plug(self, bio_plug: BioPlug) -> Rules {
        Rules { bio_plug, ..self }
    }

    /// These rules with another way of restarting.
    pub const fn with_restart(self, restart: Restart) -> Rules {
        Rules { restart, ..self }
    }

    /// These rules without a repair.
    pub const fn without(self, fix: Fix) -> Rules {
        let fixes = self.fixes.without(fix);
        Rules { fixes, ..self }
    }

    /// Presets whose queues are of the single-queue kind, oldest first. Those between 2.6.32 and
    /// 4.20 differ from 2.6.32 only in cfq.
    pub const SINGLE_QUEUE: [Rules; 6] = [
        Rules::v2_6_32_rc5(),
        Rules::v2_6_32_rc5_coop(),
        Rules::v2_6_32(),
        Rules::v2_6_33(),
        Rules::v2_6_35(),
        Rules::v4_20(),
    ];

    /// Complete presets of blk-mq, oldest first.
    pub const PRESETS: [Rules; 2] = [Rules::v6_1(), Rules::v6_12()];

    /// Presets of blk-mq of which only schedulers and restarts are modelled, the rest being v6.1;
    /// oldest first.
    pub const PARTIAL: [Rules; 2] = [Rules::v5_11(), Rules::v5_13()];

    /// Presets of blk-mq of which only what dm-multipath needs is modelled, oldest first. Not among
    /// those of a path.
    pub const MAPPED: [Rules; 3] = [Rules::v4_5(), Rules::v4_6(), Rules::v4_12()];

    /// All presets whose queues are of this kind, oldest first.
    pub fn of_path(single_queue: bool) -> impl Iterator<Item = Rules> {
        let all = Rules::SINGLE_QUEUE.into_iter();
        let all = all.chain(Rules::PARTIAL).chain(Rules::PRESETS);
        all.filter(move |rules| rules.single_queue.is_some() == single_queue)
    }

    /// Names of [`Rules::of_path`] for messages; with [`Rules::MAPPED`] if they are of blk-mq.
    pub fn names_of(single_queue: bool) -> String {
        let names = |all: &mut dyn Iterator<Item = Rules>| {
            let names: Vec<&str> = all.map(|rules| rules.name).collect();
            names.join(", ")
        };
        let own = names(&mut Rules::of_path(single_queue));
        match single_queue {
            true => own,
            false => format!(
                "{own}; for mapped devices {}",
                names(&mut Rules::MAPPED.into_iter())
            ),
        }
    }

    /// These rules with another stable merge of BFQ.
    pub const fn with_stable_merge(self, stable_merge: StableMerge) -> Rules {
        let fair_queueing = FairQueueing {
            stable_merge,
            ..self.fair_queueing
        };
        Rules {
            fair_queueing,
            ..self
        }
    }

    /// The preset of this name ("v6.1", also without the "v").
    pub fn by_name(name: &str) -> Option<Rules> {
        let bare = name.strip_prefix('v').unwrap_or(name);
        let mut all = Rules::ALL.into_iter();
        all.find(|rules| &rules.name[1..] == bare)
    }
}
