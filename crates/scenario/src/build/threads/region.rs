//! The parts of its disks that a thread works on, and the amount of its work.
//!
//! After fio 3.33 filesetup.c setup_files(), get_start_offset().

use trace::fio::{self, Extent, FioEngine};

use super::super::Result;
use super::Written;
use sim::plan::{BlockSize, DevicePlan, DiskId, DiskPlan, FilePlan, Order, PerDirection, Rounds};

impl Written<'_> {
    /// Parts of the disks with these numbers, and their length together in bytes.
    pub(super) fn files(
        &self,
        disks: &[DiskPlan],
        numbers: &[u16],
        block: &PerDirection<BlockSize>,
        clone: u16,
    ) -> Result<(Vec<FilePlan>, u64)> {
        let (mut files, mut total) = (Vec::new(), 0);
        for (index, &number) in numbers.iter().enumerate() {
            let disk = &disks[usize::from(number)];
            self.possible(disk)?;
            self.whole_blocks(&disk.device)?;
            let place = (numbers.len(), index);
            let (mut first_sector, mut region_bytes) =
                self.region(&disk.device, block, place, clone)?;
            // Several files of one disk lie one after the other.
            let same = |numbers: &[u16]| {
                let same = numbers.iter().map(|other| u64::from(*other == number));
                same.sum::<u64>()
            };
            let (before, all) = (same(&numbers[..index]), same(numbers));
            let room = (disk.device.sectors - first_sector) * 512;
            let whole = u64::from(disk.device.block_sectors) * 512;
            if all > 1 && room / all < region_bytes {
                region_bytes = room / all / whole * whole;
            }
            first_sector += before * region_bytes.next_multiple_of(whole) / 512;
            let region_sectors = region_bytes / 512;
            self.zones(region_sectors, block)?;
            files.push(FilePlan {
                disk: DiskId(number),
                block_sectors: disk.device.block_sectors,
                first_sector,
                region_sectors,
                has_rest: !region_bytes.is_multiple_of(512),
            });
            total += region_bytes;
        }
        Ok((files, total))
    }

    /// Each I/O is whole blocks of the device.
    fn whole_blocks(&self, device: &DevicePlan) -> Result<()> {
        let unit = u64::from(device.block_sectors) * 512;
        let (bs, rw) = (&self.options.bs, self.options.rw);
        for (range, used) in [(bs.read, rw.read), (bs.write, rw.write), (bs.trim, rw.trim)] {
            let mut sizes = [range.min, range.max].into_iter().filter(|_| used);
            if let Some(odd) = sizes.find(|bytes| !bytes.is_multiple_of(unit)) {
                let (name, above) = (&device.name, odd.next_multiple_of(unit));
                let what = format!(
                    "{odd} bytes are not whole blocks of {name} ({unit} bytes), as direct I/O \
                     needs them; the next size that is possible is {above}"
                );
                return self.error(self.options.size_option(), what);
            }
        }
        if !self.options.rw_gap.unsigned_abs().is_multiple_of(unit) {
            let what = format!("no gap of whole blocks of {} ({unit} bytes)", device.name);
            return self.error("rw", what);
        }
        Ok(())
    }

    /// First sector and bytes of the part of the device that a clone works on. A size in bytes is
    /// that of all files together, unless filesize sets each one's; `place`: how many files there
    /// are, and which of them this is.
    fn region(
        &self,
        device: &DevicePlan,
        block: &PerDirection<BlockSize>,
        (files, number): (usize, usize),
        clone: u16,
    ) -> Result<(u64, u64)> {
        let options = self.options;
        let end = match options.filesize {
            Some(bytes) if bytes / 512 > device.sectors => {
                let what = format!("{} has {}", device.name, size(device.sectors * 512));
                return self.error("filesize", what);
            }
            Some(bytes) => bytes,
            None => device.sectors * 512,
        };
        let first_sector = self.first_sector(device, block, clone);
        let first = first_sector * 512;
        if first >= end {
            let what = format!(
                "{} is after the end of {} ({})",
                size(first),
                device.name,
                size(end)
            );
            let moved = u64::from(clone) > 0;
            return self.error(if moved { "offset_increment" } else { "offset" }, what);
        }
        let rest = end - first;
        let least = least_bytes(block);
        let bytes = match options.size {
            Extent::Percent(100) => rest,
            Extent::Bytes(_) if options.filesize.is_some() => rest,
            Extent::Bytes(bytes) => {
                // The first files get the blocks that are left.
                let each = bytes / files as u64;
                let left = (bytes - each * files as u64) / least;
                each + if (number as u64) < left { least } else { 0 }
            }
            Extent::Percent(percent) => {
                let bytes = u128::from(end) * u128::from(percent) / 100;
                let bytes = (bytes as u64).min(rest);
                bytes - bytes % least
            }
        };
        if bytes > rest {
            let what = beyond(device, bytes, first, end);
            return self.error("size", what);
        }
        let directions = [
            (self.options.rw.read, block.read),
            (self.options.rw.write, block.write),
            (self.options.rw.trim, block.trim),
        ];
        let used = directions.iter().filter(|(used, _)| *used);
        let smallest = used.map(|(_, b)| b.min_sectors).max().unwrap_or(1);
        if bytes / 512 < u64::from(smallest) {
            let what = format!("{} sectors do not hold one I/O", bytes / 512);
            return self.error("size", what);
        }
        let (align, random) = (&options.blockalign, options.rw.random);
        let widest = align.read.max(align.write).max(align.trim);
        if random && widest > bytes {
            let what = format!("is more than the region, {bytes} bytes");
            return self.error("blockalign", what);
        }
        Ok((first_sector, bytes))
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
            let least = least_bytes(block) / 512;
            first.next_multiple_of(least.max(u64::from(device.block_sectors)))
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

    /// Bytes after which a thread ends, and its rounds, with files of so many bytes.
    pub(super) fn ends(&self, files_bytes: u64) -> (u64, Rounds) {
        let job = self.options;
        let size = match job.size {
            Extent::Bytes(bytes) => bytes.min(files_bytes),
            Extent::Percent(_) => files_bytes,
        };
        let alike = job.randrepeat && job.randseed.is_none();
        let verifies = job.writes.verify;
        // io_queue_event() and do_io(): a backlog reads as much again.
        let round = |bytes: u64| match verifies && job.rw.write && job.writes.verify_backlog > 0 {
            true => bytes.saturating_add(size),
            false => bytes,
        };
        if job.time_based {
            let counts = !job.ends_in_call() && verifies;
            let rounds = Rounds {
                bytes: if counts { round(size) } else { u64::MAX },
                after_end: true,
                loops: 1,
                alike,
            };
            return (u64::MAX, rounds);
        }
        let io_bytes = match job.io_size {
            Some(Extent::Bytes(bytes)) => bytes,
            Some(Extent::Percent(percent)) => {
                (u128::from(files_bytes) * u128::from(percent) / 100) as u64
            }
            None => size,
        };
        // fio counts only I/Os that did not complete in the call for them (io_queue_event()), and
        // random writes without a map make one round.
        let is_call = job.rw.trim && job.ioengine != FioEngine::Null;
        let counts = !job.ends_in_call() && !is_call && !job.control.offload;
        let one = job.rw.write && super::order(job) == Order::Random;
        let rounds = Rounds {
            bytes: if counts && !one {
                // do_io(): both I/Os of a block.
                let both = job.rw.trim && job.rw.write;
                round(if both {
                    size.saturating_add(io_bytes.saturating_mul(u64::from(job.loops)))
                } else {
                    size
                })
            } else {
                u64::MAX
            },
            after_end: matches!(job.io_size, Some(Extent::Bytes(_))),
            loops: job.loops,
            alike,
        };
        (io_bytes.saturating_mul(u64::from(job.loops)), rounds)
    }
}

/// Smallest I/O of all directions, also of those that are not used (td_min_bs()).
fn least_bytes(block: &PerDirection<BlockSize>) -> u64 {
    let [read, write, trim] = [block.read, block.write, block.trim].map(|b| b.min_sectors);
    u64::from(read.min(write).min(trim)) * 512
}

/// So many bytes from `first` on are too many.
fn beyond(device: &DevicePlan, bytes: u64, first: u64, end: u64) -> String {
    let [bytes, first, rest, end] = [bytes, first, end - first, end].map(size);
    let name = &device.name;
    format!("{bytes} from {first} on end after {name} ({end}); expected at most {rest}")
}

/// Bytes with the largest unit of fio that has two digits before the point.
fn size(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let fits = |(_, shift): &(&str, u32)| {
        bytes >> shift >= 10 || bytes > 0 && bytes.trailing_zeros() >= *shift
    };
    match units.into_iter().find(fits) {
        Some((unit, shift)) => {
            let tenths = ((u128::from(bytes) * 10) >> shift) as u64;
            match tenths % 10 {
                0 => format!("{} {unit}", tenths / 10),
                tenth => format!("{}.{tenth} {unit}", tenths / 10),
            }
        }
        None => format!("{bytes} bytes"),
    }
}
