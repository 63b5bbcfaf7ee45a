// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gives a disk two independent access ranges of equal size, as a drive with two actuators reports them, so that bfq
 * (which reads them when it becomes the disk's scheduler) can be tried with a disk that has none.
 * It does nothing else. Linux 6.12; `insmod iaranges.ko disk=/dev/nullb0`, then choose the scheduler.
 */
#include <linux/blkdev.h>
#include <linux/module.h>

static char *disk = "/dev/nullb0";
module_param(disk, charp, 0444);

static int __init iaranges_init(void)
{
	struct blk_independent_access_ranges *ranges;
	struct file *file = bdev_file_open_by_path(disk, BLK_OPEN_READ, NULL, NULL);
	sector_t half;

	if (IS_ERR(file))
		return PTR_ERR(file);
	half = bdev_nr_sectors(file_bdev(file)) / 2;
	ranges = disk_alloc_independent_access_ranges(file_bdev(file)->bd_disk, 2);
	if (ranges) {
		ranges->ia_range[0].sector = 0;
		ranges->ia_range[0].nr_sectors = half;
		ranges->ia_range[1].sector = half;
		ranges->ia_range[1].nr_sectors = bdev_nr_sectors(file_bdev(file)) - half;
		disk_set_independent_access_ranges(file_bdev(file)->bd_disk, ranges);
	}
	fput(file);
	return ranges ? 0 : -ENOMEM;
}

/* The ranges go with the disk. */
static void __exit iaranges_exit(void)
{
}

module_init(iaranges_init);
module_exit(iaranges_exit);
MODULE_DESCRIPTION("two independent access ranges for a disk without");
MODULE_LICENSE("GPL");
