# SPDX-License-Identifier: GPL-2.0-only
# Ten times move.script and three variants of it, each of which leaves one condition out.
uname -r
device
groups
for k in move stay late nomerge; do cp /move.script /$k; done
sed -i '/^p2 group \/cg\/b/d' /stay                                      # p2 does not go to b
sed -i 's/^p2 group \/cg\/b/sleep 300\n&/' /late                          # p2's queue is created too late for a candidate
sed -i 's/^p2 read \/dev\/nullb0 3000024/p2 read \/dev\/nullb0 2200000/' /nomerge   # q2 is not merged
left() { echo "bfq_queue objects $(cut -d' ' -f1 /sys/kernel/slab/bfq_queue/objects), dying cgroups $(grep nr_dying_desc /cg/cgroup.stat | cut -d' ' -f2)"; }
echo none > /sys/block/nullb0/queue/scheduler
for k in stay late nomerge move; do
  echo bfq > /sys/block/nullb0/queue/scheduler; echo 64 > /sys/block/nullb0/queue/nr_requests
  for i in 1 2 3 4 5 6 7 8 9 10; do
    mkdir /cg/a /cg/b; /script /$k > /dev/null; sleep 0.3; rmdir /cg/a /cg/b
  done
  echo none > /sys/block/nullb0/queue/scheduler; sleep 1; echo "10 x $k: $(left)"
done
cat /sys/kernel/debug/slab/bfq_queue/alloc_traces | head -3
rmmod bfq
