//! The driver of a device: effects of its module and the parameters.
//!
//! Kernel: drivers/block/null_blk/main.c, drivers/scsi/scsi_debug.c, drivers/nvme/host/pci.c.

use std::collections::BTreeMap;

use blkmq::rules::Rules;
use trace::capture::CaptureDir;

pub(super) const NULL_BLK: &str = "null_blk";
const SCSI_DEBUG: &str = "scsi_debug";
const NVME: &str = "nvme";
const FC: &str = "fc";

/// Default of scsi_debug's max_queue.
const SCSI_DEBUG_MAX_QUEUE: u32 = 192;

/// Operations of a driver that decide how requests are dispatched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Driver {
    /// queue_rqs: it takes a whole plug.
    pub(crate) queue_rqs: bool,
    pub(crate) commit_rqs: bool,
}

/// As meta.txt has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Module<'a> {
    name: &'a str,
    parameters: &'a BTreeMap<String, String>,
}

impl<'a> Module<'a> {
    /// The module that is named is the driver of the device below.
    pub(super) fn of(dir: &'a CaptureDir, device: &str) -> Module<'a> {
        let given = &dir.meta.device;
        Module {
            name: match device.starts_with("dm-") {
                true => "dm-mod",
                false => &given.module,
            },
            parameters: &given.parameters,
        }
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    fn number(&self, name: &str) -> Option<u32> {
        self.parameters.get(name)?.parse().ok()
    }

    /// As kernels read bool parameters, of which some are numbers.
    fn on(&self, name: &str) -> bool {
        let text = self.parameters.get(name);
        text.is_some_and(|text| matches!(text.as_str(), "1" | "Y" | "y"))
    }

    /// All hardware queues draw from one map of driver tags.
    pub(super) fn hctx_shared(&self) -> bool {
        match self.name {
            SCSI_DEBUG => self.of_host().is_some(),
            NULL_BLK => self.on("shared_tag_bitmap"),
            FC => self.number("nr_queues").is_some_and(|queues| queues > 1),
            _ => false,
        }
    }

    /// Its devices draw from one tag set.
    pub(super) fn queue_shared(&self) -> bool {
        !self.is(SCSI_DEBUG) && self.on("shared_tags")
    }

    /// BLK_MQ_F_BLOCKING: memory is allocated if the device has some.
    pub(super) fn blocking(&self) -> bool {
        self.is(NULL_BLK) && (self.on("blocking") || self.on("memory_backed"))
    }

    pub(super) fn driver(&self, rules: &Rules) -> Driver {
        let nvme = self.is(NVME);
        Driver {
            queue_rqs: nvme || self.is(NULL_BLK) && rules.null_blk_queue_rqs,
            commit_rqs: nvme,
        }
    }

    /// Budget before the scheduler is asked: the depth of a unit, where that is given, of the
    /// host's limit.
    pub(super) fn budget(&self) -> Option<u32> {
        if !self.is(SCSI_DEBUG) {
            return None;
        }
        // scsi_debug_init(): host_max_queue overrides max_queue.
        let host = self.of_host().or(self.number("max_queue"));
        let host = host.unwrap_or(SCSI_DEBUG_MAX_QUEUE);
        let unit = self.number("cmd_per_lun");
        Some(unit.map_or(host, |unit| unit.min(host)))
    }

    /// Devices of one host, which share its tags.
    pub(super) fn units(&self) -> usize {
        let number = |name| self.number(name).unwrap_or(1).max(1) as usize;
        match self.is(SCSI_DEBUG) || self.is(FC) {
            true => number("num_tgts").saturating_mul(number("max_luns")),
            false => 1,
        }
    }

    fn of_host(&self) -> Option<u32> {
        self.number("host_max_queue").filter(|&depth| depth > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_takes_what_it_may_and_no_more_than_its_host() {
        let budget = |name: &str, given: &[(&str, &str)]| {
            let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let module = Module {
                name,
                parameters: &given.iter().map(pair).collect(),
            };
            module.budget()
        };
        let debug = |given: &[(&str, &str)]| budget(SCSI_DEBUG, given);
        assert_eq!(debug(&[]), Some(192));
        assert_eq!(debug(&[("max_queue", "64")]), Some(64));
        assert_eq!(debug(&[("max_queue", "64"), ("cmd_per_lun", "3")]), Some(3));
        let host = ("host_max_queue", "16");
        assert_eq!(debug(&[("max_queue", "64"), host]), Some(16));
        assert_eq!(debug(&[("cmd_per_lun", "32"), host]), Some(16));
        assert_eq!(budget(NVME, &[("cmd_per_lun", "3")]), None);
    }
}
