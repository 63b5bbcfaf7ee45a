#!/bin/sh
# The processes r1 and r2 of io.txt are moved to other cgroups while they run.
"$@" & s=$!
move() { for p in /proc/[0-9]*; do read -r n < $p/comm; [ "$n" = $1 ] && echo ${p#/proc/} > /cg/$2/cgroup.procs; done; }
usleep 120000; move r1 b
usleep 120000; move r2 a
usleep 120000; move r1 a; move r2 c
usleep 120000; move r1 c
usleep 120000; move r1 b; move r2 b
wait $s
