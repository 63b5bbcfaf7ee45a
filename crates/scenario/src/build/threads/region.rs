//! The parts of its disks that a thread works on, and the amount of its work.
//!
//! After fio 3.33 filesetup.c setup_files(), get_start_offset().

use trace::fio::{self, Extent};

use super::super::Result;
use super::Written;
use sim::plan::{BlockSize, DevicePlan, DiskId, DiskPlan, FilePlan, PerDirection};

impl Written<'_> {
    /// Parts of the disks with these numbers.
    pub(super) fn files(
        &self,
        disks: &[DiskPlan],
        numbers: &[u8],
        block: &PerDirection<BlockSize>,
        clone: u16,
    ) -> Result<Vec<FilePlan>> {
        let mut files = Vec::new();
        for &number in numbers {
            let disk = &disks[usize::from(number)];
            self.possible(disk)?;
            self.whole_blocks(&disk.device)?;
            let (first_sector, region_sectors) =
                self.region(&disk.device, block, numbers.len(), clone)?;
            self.zones(region_sectors, block)?;
            files.push(FilePlan {
                disk: DiskId(number),
                block_sectors: disk.device.block_sectors,
                first_sector,
                region_sectors,
            });
        }
        Ok(files)
    }

    /// Each I/O is whole blocks of the device.
    fn whole_blocks(&self, device: &DevicePlan) -> Result<()> {
        let unit = u64::from(device.block_sectors) * 512;
        let (bs, rw) = (&self.options.bs, self.options.rw);
        for (range, used) in [(bs.read, rw.read), (bs.write, rw.write), (bs.trim, rw.trim)] {
            if used && (!range.min.is_multiple_of(unit) || !range.max.is_multiple_of(unit)) {
                let what = format!("not whole blocks of {} ({unit} bytes)", device.name);
                return self.error(self.options.size_option(), what);
            }
        }
        if !self.options.rw_gap.unsigned_abs().is_multiple_of(unit) {
            let what = format!("no gap of whole blocks of {} ({unit} bytes)", device.name);
            return self.error("rw", what);
        }
        Ok(())
    }

    /// First sector and length of the part of the device that a clone works on. A size in bytes is
    /// that of all its `files` together, unless filesize sets each one's.
    fn region(
        &self,
        device: &DevicePlan,
        block: &PerDirection<BlockSize>,
        files: usize,
        clone: u16,
    ) -> Result<(u64, u64)> {
        let options = self.options;
        let end = match options.filesize {
            Some(bytes) if bytes / 512 > device.sectors => {
                let what = format!("{} has {} sectors", device.name, device.sectors);
                return self.error("filesize", what);
            }
            Some(bytes) => bytes / 512,
            None => device.sectors,
        };
        let first = self.first_sector(device, block, clone);
        if first >= end {
            let what = format!("after the end of {} ({end} sectors)", device.name);
            let moved = u64::from(clone) > 0;
            return self.error(if moved { "offset_increment" } else { "offset" }, what);
        }
        let rest = end - first;
        let whole = u64::from(device.block_sectors);
        let sectors = match options.size {
            Extent::Percent(100) => rest,
            Extent::Bytes(_) if options.filesize.is_some() => rest,
            Extent::Bytes(bytes) => bytes / files as u64 / 512,
            // No overflow: no device has 2^57 sectors.
            Extent::Percent(percent) => {
                let sectors = end * u64::from(percent) / 100;
                sectors - sectors % whole
            }
        };
        if sectors > rest {
            let what = format!(
                "{sectors} sectors from sector {first} on end after {} ({end} sectors)",
                device.name
            );
            return self.error("size", what);
        }
        let directions = [
            (self.options.rw.read, block.read),
            (self.options.rw.write, block.write),
            (self.options.rw.trim, block.trim),
        ];
        let largest = directions
            .iter()
            .filter(|(used, _)| *used)
            .map(|(_, b)| b.max_sectors)
            .max();
        if sectors < u64::from(largest.unwrap_or(1)) {
            return self.error("size", format!("{sectors} sectors do not hold one I/O"));
        }
        Ok((first, sectors))
    }

    /// Where a clone begins. A percentage is rounded up to blocks of the smallest size.
    fn first_sector(
        &self,
        device: &DevicePlan,
        block: &PerDirection<BlockSize>,
        clone: u16,
    ) -> u64 {
        let resolve = |extent: Extent| match extent {
            Extent::Bytes(bytes) => bytes / 512,
            Extent::Percent(percent) => device.sectors * u64::from(percent) / 100,
        };
        let (offset, increment) = (self.options.offset, self.options.offset_increment);
        let first = resolve(offset) + u64::from(clone) * resolve(increment);
        let relative = |extent: Extent| matches!(extent, Extent::Percent(percent) if percent > 0);
        if relative(offset) || relative(increment) {
            let sizes = [block.read, block.write, block.trim].map(|block| block.min_sectors);
            let [read, write, trim] = sizes;
            first.next_multiple_of(u64::from(
                read.min(write).min(trim).max(device.block_sectors),
            ))
        } else {
            first
        }
    }

    /// Zones of sizes in bytes lie in the region, and each holds an I/O.
    fn zones(&self, region_sectors: u64, block: &PerDirection<BlockSize>) -> Result<()> {
        let fio::Distribution::Zoned(zones) = &self.options.random_distribution else {
            return Ok(());
        };
        let rw = self.options.rw;
        let directions = [
            (rw.read, &zones.read, block.read),
            (rw.write, &zones.write, block.write),
            (rw.trim, &zones.trim, block.trim),
        ];
        for (used, zones, block) in directions {
            let sizes = zones.iter().filter_map(|zone| match zone.size {
                Extent::Bytes(bytes) => Some(bytes / 512),
                Extent::Percent(_) => None,
            });
            let sum = sizes.clone().fold(0, u64::saturating_add);
            if used && sum > region_sectors {
                let what = format!("zones of {sum} sectors in a region of {region_sectors}");
                return self.error("random_distribution", what);
            }
            let least = u64::from(block.min_sectors);
            if used && sizes.min().is_some_and(|size| size < least) {
                let what = format!("a zone holds no I/O of {least} sectors");
                return self.error("random_distribution", what);
            }
        }
        Ok(())
    }

    /// Bytes after which a thread ends, with regions of so many bytes.
    pub(super) fn io_bytes(&self, region_bytes: u64) -> u64 {
        let options = self.options;
        match (options.io_size, options.size) {
            _ if options.time_based => u64::MAX,
            (Some(Extent::Bytes(bytes)), _) => bytes,
            (Some(Extent::Percent(percent)), _) => {
                (u128::from(region_bytes) * u128::from(percent) / 100) as u64
            }
            (None, Extent::Bytes(bytes)) => bytes.min(region_bytes),
            (None, Extent::Percent(_)) => region_bytes,
        }
    }
}
