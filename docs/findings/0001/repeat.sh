#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# As root, with null_blk as a module: finding 1. The measurement used a program for the readers; these lines were not run.
udevadm control --stop-exec-queue                       # nothing else may read a
modprobe null_blk nr_devices=0 shared_tags=1 submit_queues=1 hw_queue_depth=64
cd /sys/kernel/config/nullb
for d in a b; do
        mkdir $d
        echo 2 > $d/irqmode; echo 1 > $d/submit_queues; echo 64 > $d/hw_queue_depth
        echo 1 > $d/shared_tags; echo 1024 > $d/size
done
echo 4000000000 > a/completion_nsec; echo 10000 > b/completion_nsec
for d in a b; do echo 1 > $d/power; echo none > /sys/block/$d/queue/scheduler; done
echo 10000 > /sys/block/a/queue/io_timeout; echo 2000 > /sys/block/b/queue/io_timeout
sleep 12                                                # both are idle again
dd if=/dev/b of=/dev/null bs=4k count=1 iflag=direct    # b is a user of the tags
for i in $(seq 0 55); do
        dd if=/dev/a of=/dev/null bs=4k count=1 skip=$i iflag=direct & sleep 0.002
done
sleep 90; jobs -r | wc -l                               # expected: 2 on 6.1.192, 0 on 6.12
grep -e '^busy=' -e ws_active /sys/kernel/debug/block/a/hctx0/tags
