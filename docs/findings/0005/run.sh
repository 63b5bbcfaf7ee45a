# SPDX-License-Identifier: GPL-2.0-only
# n=N on the kernel's command line: a disk with N access ranges (iaranges.ko among the files; without it, none), 100 reads of
# each range, and 0 written to low_latency. An oops ends it.
uname -r; sha1sum $(ls /bfq.ko /mod/bfq.ko 2>/dev/null | head -1)
for w in $(cat /proc/cmdline); do case $w in n=*) eval $w;; esac; done
device completion_nsec=1000000
for part in $(seq 0 $((n - 1))); do
  say "range $part: $(dd if=/dev/nullb0 of=/dev/null bs=4k iflag=direct count=100 skip=$((part * 524288 / n + 8)) 2>&1 | tail -1)"
done
echo 0 > /sys/block/nullb0/queue/iosched/low_latency; say "written"; say "all done"
