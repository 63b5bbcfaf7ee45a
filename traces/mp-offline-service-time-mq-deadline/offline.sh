#!/bin/sh
# The device of a path goes offline while fio runs (its requests fail, and so the path does), comes back, and the path is reinstated.
done_at() { while :; do read -r r a b c w rest < /sys/block/dm-0/stat; [ $((r + w)) -ge $1 ] && return; done; }
read -r r a b c w rest < /sys/block/dm-0/stat; z=$((r + w))
"$@" & f=$!
done_at $((z + 100)); echo offline > /sys/block/sda/device/state
done_at $((z + 220)); echo running > /sys/block/sda/device/state; dmsetup message mp 0 reinstate_path 8:0
done_at $((z + 340)); echo offline > /sys/block/sdb/device/state
done_at $((z + 420)); echo running > /sys/block/sdb/device/state; dmsetup message mp 0 reinstate_path 8:16
wait $f
