#!/bin/sh
# The scheduler of nullb0 is changed while fio runs: to bfq when 350 requests have completed, to none at 700.
done_at() { while :; do read -r r a b c w rest < /sys/block/nullb0/stat; [ $((r + w)) -ge $1 ] && return; done; }
read -r r a b c w rest < /sys/block/nullb0/stat; base=$((r + w))
"$@" & f=$!
done_at $((base + 350)); echo bfq > /sys/block/nullb0/queue/scheduler
done_at $((base + 700)); echo none > /sys/block/nullb0/queue/scheduler
wait $f
