#!/bin/sh
# Paths of the multipath device mp fail and are reinstated by dmsetup message while fio runs. After N completed requests each.
done_at() { while :; do read -r r a b c w rest < /sys/block/dm-0/stat; [ $((r + w)) -ge $1 ] && return; done; }
read -r r a b c w rest < /sys/block/dm-0/stat; z=$((r + w))
"$@" & f=$!
done_at $((z + 100)); dmsetup message mp 0 fail_path 8:0
done_at $((z + 200)); dmsetup message mp 0 reinstate_path 8:0
done_at $((z + 300)); dmsetup message mp 0 fail_path 8:16
done_at $((z + 400)); dmsetup message mp 0 reinstate_path 8:16
wait $f
