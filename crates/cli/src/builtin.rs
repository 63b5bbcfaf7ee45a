//! Scenarios that are part of the program: `crates/cli/scenarios`.

use scenario::Scenario;

use crate::error::Error;

#[derive(Clone, Copy, Debug)]
pub(crate) struct BuiltIn {
    /// File name below `crates/cli/scenarios`.
    pub(crate) file: &'static str,
    pub(crate) text: &'static str,
}

/// All of them, by name. A test compares with the directory.
pub(crate) const ALL: &[BuiltIn] = &[
    built_in(
        "bfq-burst.toml",
        include_str!("../scenarios/bfq-burst.toml"),
    ),
    built_in(
        "bfq-low-latency-toggle.toml",
        include_str!("../scenarios/bfq-low-latency-toggle.toml"),
    ),
    built_in(
        "bfq-startup.toml",
        include_str!("../scenarios/bfq-startup.toml"),
    ),
    built_in(
        "bfq-two-readers.toml",
        include_str!("../scenarios/bfq-two-readers.toml"),
    ),
    built_in(
        "cfq-cooperators.toml",
        include_str!("../scenarios/cfq-cooperators.toml"),
    ),
    built_in("cfq-nfsd.toml", include_str!("../scenarios/cfq-nfsd.toml")),
    built_in(
        "dell-scaling.toml",
        include_str!("../scenarios/dell-scaling.toml"),
    ),
    built_in(
        "disk-cached.toml",
        include_str!("../scenarios/disk-cached.toml"),
    ),
    built_in(
        "disk-random.toml",
        include_str!("../scenarios/disk-random.toml"),
    ),
    built_in(
        "disk-stream.toml",
        include_str!("../scenarios/disk-stream.toml"),
    ),
    built_in(
        "disk-stroke.toml",
        include_str!("../scenarios/disk-stroke.toml"),
    ),
    built_in(
        "disk-turn.toml",
        include_str!("../scenarios/disk-turn.toml"),
    ),
    built_in(
        "dm-failover.toml",
        include_str!("../scenarios/dm-failover.toml"),
    ),
    built_in("dm-fc.toml", include_str!("../scenarios/dm-fc.toml")),
    built_in("dm-null.toml", include_str!("../scenarios/dm-null.toml")),
    built_in(
        "fault-busy.toml",
        include_str!("../scenarios/fault-busy.toml"),
    ),
    built_in(
        "fault-error.toml",
        include_str!("../scenarios/fault-error.toml"),
    ),
    built_in(
        "fsync-flush.toml",
        include_str!("../scenarios/fsync-flush.toml"),
    ),
    built_in(
        "idle-user-stall.toml",
        include_str!("../scenarios/idle-user-stall.toml"),
    ),
    built_in(
        "kyber-latency.toml",
        include_str!("../scenarios/kyber-latency.toml"),
    ),
    built_in(
        "lost-completion.toml",
        include_str!("../scenarios/lost-completion.toml"),
    ),
    built_in(
        "mixed-prio.toml",
        include_str!("../scenarios/mixed-prio.toml"),
    ),
    built_in(
        "mq-deadline-scaling.toml",
        include_str!("../scenarios/mq-deadline-scaling.toml"),
    ),
    built_in(
        "null-blk-one-thread.toml",
        include_str!("../scenarios/null-blk-one-thread.toml"),
    ),
    built_in(
        "null-blk-randread.toml",
        include_str!("../scenarios/null-blk-randread.toml"),
    ),
    built_in(
        "null-blk-timer.toml",
        include_str!("../scenarios/null-blk-timer.toml"),
    ),
    built_in(
        "nvme-coalescing.toml",
        include_str!("../scenarios/nvme-coalescing.toml"),
    ),
    built_in(
        "nvme-eight-drives.toml",
        include_str!("../scenarios/nvme-eight-drives.toml"),
    ),
    built_in(
        "nvme-one-process.toml",
        include_str!("../scenarios/nvme-one-process.toml"),
    ),
    built_in(
        "nvme-polled-4.toml",
        include_str!("../scenarios/nvme-polled-4.toml"),
    ),
    built_in(
        "nvme-polled.toml",
        include_str!("../scenarios/nvme-polled.toml"),
    ),
    built_in(
        "nvme-randread.toml",
        include_str!("../scenarios/nvme-randread.toml"),
    ),
    built_in(
        "nvme-scaling.toml",
        include_str!("../scenarios/nvme-scaling.toml"),
    ),
    built_in("randread.fio", include_str!("../scenarios/randread.fio")),
    built_in(
        "scsi-limits.toml",
        include_str!("../scenarios/scsi-limits.toml"),
    ),
    built_in(
        "seq-merge.toml",
        include_str!("../scenarios/seq-merge.toml"),
    ),
    built_in(
        "shared-restart-cost.toml",
        include_str!("../scenarios/shared-restart-cost.toml"),
    ),
    built_in(
        "shared-restart-stall.toml",
        include_str!("../scenarios/shared-restart-stall.toml"),
    ),
    built_in("trim.toml", include_str!("../scenarios/trim.toml")),
    built_in(
        "write-starvation.toml",
        include_str!("../scenarios/write-starvation.toml"),
    ),
];

const fn built_in(file: &'static str, text: &'static str) -> BuiltIn {
    BuiltIn { file, text }
}

impl BuiltIn {
    /// Its name: the file's stem.
    pub(crate) fn name(&self) -> &'static str {
        self.file
            .rsplit_once('.')
            .map_or(self.file, |(stem, _)| stem)
    }

    pub(crate) fn scenario(&self) -> Result<Scenario, Error> {
        Ok(crate::text::parse(self.file.as_ref(), self.text, false)?)
    }
}

/// The built-in scenario of this name. The error names the nearest one, or all.
pub(crate) fn find(name: &str) -> Result<BuiltIn, Error> {
    if let Some(found) = ALL.iter().find(|scenario| scenario.name() == name) {
        return Ok(*found);
    }
    let names: Vec<&str> = ALL.iter().map(BuiltIn::name).collect();
    let what = match trace::fio::nearest(name, names.iter().copied()) {
        Some(near) => format!("no scenario of this name; did you mean {near}?"),
        None => "no scenario of this name: see `blksim list`, or give FILE.toml or FILE.fio".into(),
    };
    Err(Error::usage(name, what))
}

#[cfg(test)]
mod tests {
    use super::ALL;

    #[test]
    fn every_file_is_built_in() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let mut files: Vec<String> = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let known: Vec<&str> = ALL.iter().map(|scenario| scenario.file).collect();
        assert_eq!(known, files);
    }

    #[test]
    fn every_one_is_a_scenario() {
        for built_in in ALL {
            let scenario = built_in.scenario().unwrap();
            assert_eq!(scenario.name(), built_in.name());
        }
    }
}
