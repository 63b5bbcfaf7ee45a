# SPDX-License-Identifier: GPL-2.0-only
# Sourced by the guest's run.sh.
T=/sys/kernel/tracing
say() { echo "$(cut -d' ' -f1 /proc/uptime) $*"; }
device() { # one rotational null_blk, one request at a time, and bfq; "$@": further parameters
  insmod /mod/configfs.ko 2>/dev/null
  insmod /mod/null_blk.ko queue_mode=2 irqmode=2 completion_nsec=10000000 submit_queues=1 hw_queue_depth=1 nr_devices=1 gb=2 "$@"
  [ -f /iaranges.ko ] && insmod /iaranges.ko n=${n:-2} && ls -d /sys/block/nullb0/queue/independent_access_ranges/*
  insmod $(ls /bfq.ko /mod/bfq.ko 2>/dev/null | head -1) # one of the files takes the place of the packaged one
  echo 1 > /sys/block/nullb0/queue/rotational
  echo bfq > /sys/block/nullb0/queue/scheduler; echo 64 > /sys/block/nullb0/queue/nr_requests
  echo 4 > /sys/block/nullb0/queue/max_sectors_kb; }
groups() { mkdir -p /cg; mount -t cgroup2 c /cg 2>/dev/null; echo +io > /cg/cgroup.subtree_control; for g in $*; do mkdir /cg/$g; done; }
log_on() { echo 0 > $T/tracing_on; echo 16384 > $T/buffer_size_kb; echo mono > $T/trace_clock; echo 1 > /sys/block/nullb0/trace/enable; echo blk > $T/current_tracer; echo > $T/trace; echo 1 > $T/tracing_on; cat $T/current_tracer /sys/block/nullb0/trace/enable /sys/block/nullb0/trace/act_mask; }
log_off() { echo 0 > $T/tracing_on; echo 0 > /sys/block/nullb0/trace/enable; echo nop > $T/current_tracer; }
