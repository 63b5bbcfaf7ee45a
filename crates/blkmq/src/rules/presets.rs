//! Presets by name and kind, and presets with one change.

use super::{
    AsyncDepth, BioPlug, DepthHook, FairQueueing, Fix, Restart, Rules, Series, StableMerge,
};

impl DepthHook {
    /// queue/nr_requests as depth_updated sees it when it changes.
    pub const fn seen(self, old: u32, new: u32) -> u32 {
        match self {
            DepthHook::BeforeStore => old,
            DepthHook::AfterStore => new,
        }
    }
}

impl AsyncDepth {
    /// queue/async_depth after that change (blk_mq_update_nr_requests(), v7.0).
    pub(crate) fn scaled(async_depth: u32, old: u32, new: u32) -> u32 {
        (async_depth * new / old.max(1)).max(1)
    }
}

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
    pub const PRESETS: [Rules; 5] = [
        Rules::v6_1(),
        Rules::v6_6(),
        Rules::v6_12(),
        Rules::v6_18(),
        Rules::v7_2(),
    ];

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

    /// Rules as [`Rules::parse`] reads them, or those of the kernel that is nearest to this one,
    /// with a note that they are taken. An error says what is wrong.
    pub fn asked(text: &str) -> Result<(Rules, Option<String>), String> {
        if text.contains('+') {
            return Ok((Rules::parse(text)?, None));
        }
        if let Some(rules) = Rules::by_name(text) {
            return Ok((rules, None));
        }
        let near = match Rules::nearest(text) {
            Some((rules, true)) => {
                let name = rules.name;
                let note = format!("{text} is taken as {name}, the nearest that is known");
                return Ok((rules, Some(note)));
            }
            Some((near, false)) => format!(" the nearest is {};", near.name),
            None => String::new(),
        };
        Err(format!(
            "no rules of a kernel `{text}`;{near} there are {}; of the single-queue path {}",
            Rules::names_of(false),
            Rules::names_of(true)
        ))
    }

    /// The kernel of blk-mq whose version is nearest, of those that any queue runs with. True: both
    /// are of a time from which on all kernels are modelled as a whole.
    fn nearest(name: &str) -> Option<(Rules, bool)> {
        let number = |name: &str| -> Option<u32> {
            let (major, minor) = name.strip_prefix('v').unwrap_or(name).split_once('.')?;
            let minor = minor.split(['.', '-']).next()?;
            Some(major.parse::<u32>().ok()?.checked_mul(100)? + minor.parse::<u32>().ok()?.min(99))
        };
        let wanted = number(name)?;
        let known = Rules::of_path(false).filter_map(|rules| Some((number(rules.name)?, rules)));
        // Of two that are as near, the later one.
        let (_, nearest) =
            known.min_by_key(|(known, _)| (known.abs_diff(wanted), u32::MAX - known))?;
        let whole = wanted >= number(Rules::PRESETS[0].name)?;
        Some((nearest, whole))
    }

    /// Rules as users write them: a preset, or one with axes of others, as in
    /// `v6.1+bio_plug@v6.12+fair_queueing.actuators@v6.12`. An error says what is wrong.
    pub fn parse(text: &str) -> Result<Rules, String> {
        let known = |name: &str| Rules::by_name(name).ok_or(format!("no kernel `{name}`"));
        let mut parts = text.split('+');
        let mut rules = known(parts.next().unwrap_or_default())?;
        for part in parts {
            let Some((axis, kernel)) = part.split_once('@') else {
                return Err(format!("`{part}`; expected AXIS@KERNEL after a +"));
            };
            let from = known(kernel)?;
            if !rules.take_axis(axis, &from) {
                let differ = rules.differences(&from).into_iter().map(|(axis, _)| axis);
                let differ: Vec<String> = differ.collect();
                return Err(format!(
                    "no axis `{axis}`; between {} and {kernel} differ {}",
                    rules.name,
                    differ.join(", ")
                ));
            }
        }
        Ok(rules)
    }

    /// Axes on which other rules have another value, those of a table within as `TABLE.AXIS`.
    pub fn differences(&self, other: &Rules) -> Vec<(String, [String; 2])> {
        let mut all = Vec::new();
        for (axis, values) in self.unlike(other) {
            let (a, b) = (self, other);
            let within = match axis {
                "fair_queueing" => a.fair_queueing.unlike(&b.fair_queueing),
                "time_slices" => a.time_slices.unlike(&b.time_slices),
                "device_mapper" => a.device_mapper.unlike(&b.device_mapper),
                "restart" => a.restart.unlike(&b.restart),
                _ => Vec::new(),
            };
            match within.is_empty() {
                // Only the names of the two differ.
                true if matches!(axis, "device_mapper" | "restart") => {}
                true => all.push((axis.to_owned(), values)),
                false => {
                    let named = within.into_iter();
                    all.extend(named.map(|(of, values)| (format!("{axis}.{of}"), values)));
                }
            }
        }
        all
    }

    fn take_axis(&mut self, axis: &str, from: &Rules) -> bool {
        match axis.split_once('.') {
            None => self.take(axis, from),
            Some(("fair_queueing", axis)) => self.fair_queueing.take(axis, &from.fair_queueing),
            Some(("time_slices", axis)) => self.time_slices.take(axis, &from.time_slices),
            Some(("device_mapper", axis)) => self.device_mapper.take(axis, &from.device_mapper),
            Some(("restart", axis)) => self.restart.take(axis, &from.restart),
            Some(_) => false,
        }
    }
}
