// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gives a disk n independent access ranges of equal size, as a drive with n actuators reports them, so that bfq
 * (which reads them when it becomes the disk's scheduler) can be tried with a disk that has none.
 * It does nothing else. Linux 6.12; `insmod iaranges.ko disk=/dev/nullb0 n=2`, then choose the scheduler.
 */
#include <linux/blkdev.h>
#include <linux/module.h>

static char *disk = "/dev/nullb0";
module_param(disk, charp, 0444);
static int n = 2;
module_param(n, int, 0444);

static int __init iaranges_init(void)
{
	struct blk_independent_access_ranges *ranges;
	struct file *file = bdev_file_open_by_path(disk, BLK_OPEN_READ, NULL, NULL);
	sector_t part;
	int i;

	if (IS_ERR(file))
		return PTR_ERR(file);
	part = bdev_nr_sectors(file_bdev(file)) / n;
	ranges = disk_alloc_independent_access_ranges(file_bdev(file)->bd_disk, n);
	if (ranges) {
		for (i = 0; i < n; i++) {
			ranges->ia_range[i].sector = i * part;
			ranges->ia_range[i].nr_sectors = part;
		}
		/* the last one reaches to the end */
		ranges->ia_range[n - 1].nr_sectors = bdev_nr_sectors(file_bdev(file)) - (n - 1) * part;
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
MODULE_DESCRIPTION("independent access ranges for a disk without");
MODULE_LICENSE("GPL");
