# SPDX-License-Identifier: GPL-2.0-only
# Two readers of two regions on a null_blk that takes 1 ms a request, one at a time: merges, and how many dispatches follow one
# of the other region. A case is NAME low_latency STEP-a STEP-b MS-between; toggled: at 4 s low_latency is written 1, then 0.
uname -r; sha1sum $(ls /bfq.ko /mod/bfq.ko 2>/dev/null | head -1)
device completion_nsec=1000000
q=/sys/block/nullb0/queue; echo 64 > $q/max_sectors_kb
while read name low a b between; do
  echo none > $q/scheduler; echo bfq > $q/scheduler; echo 64 > $q/nr_requests; echo $low > $q/iosched/low_latency
  echo "a reads /dev/nullb0 0 64 $a 8000" > /s
  [ $between = 0 ] || echo "sleep $between" >> /s
  [ $b = - ] || echo "b reads /dev/nullb0 2097152 64 $b 8000" >> /s
  # bfq's log for the first second, in which a stable merge would come; then dispatches alone
  log_on > /dev/null; say "$name"; (sleep 1; echo issue > /sys/block/nullb0/trace/act_mask) &
  [ $name = toggled ] && { (sleep 4; echo 1 > $q/iosched/low_latency; echo 0 > $q/iosched/low_latency) & }
  /script /s; echo 0 > $T/tracing_on
  grep -E ' D |merging with' $T/trace | awk '/merging with queue/ { did++ }
    { for (i = 3; i <= 8; i++) if ($i == "D") { t = $(i-2) + 0; if (!t0) t0 = t; s = 0
        for (j = i + 1; j <= i + 2; j++) if ($j ~ /^[0-9]+$/) s = $j
        side = s >= 2097152; w = t - t0 > 5; n[w]++; alt[w] += side != before; before = side; break } }
    END { printf "   merges %d; D after one of the other side: %d of %d, from 5 s on %d of %d\n", did, alt[0], n[0], alt[1], n[1] }'; log_off
done <<E
together 1 128 128 0
apart 1 128 128 300
random 1 800024 800024 0
one 1 128 - 0
off 0 128 128 0
toggled 0 128 128 0
E
