#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Records one command with blktrace and ftrace, in the folder that blksim analyze, dump, replay and conform read.
# Needs root, debugfs, blktrace(8) and, for a multipath device, dmsetup(8). `blksim record` prints it or runs it.
usage="usage: record.sh [-s SCHEDULER] [-w NAME=VALUE]... [-m 'MODULE PARAMETER=VALUE ...'] FOLDER DEVICE COMMAND...
  -s SCHEDULER   write queue/scheduler first: none, then this one, so that it starts with an empty state
  -w NAME=VALUE  write queue/NAME after that: -w nr_requests=64 -w iosched/fifo_batch=8
  -m MODULE ...  the driver and its parameters, where /sys/module does not have them (null_blk by configfs)
  DEVICE         nvme0n1, sda, dm-0 (then its paths are recorded as well)"
sys=${SYSFS:-/sys} scheduler='' writes='' module='' trace='' ftrace='' command=''
die() { echo "record.sh: $*" >&2; exit 2; }
while getopts s:w:m: option; do
  case $option in
    s) scheduler=$OPTARG ;;
    w) writes="$writes $OPTARG" ;;
    m) module=$OPTARG ;;
    *) echo "$usage" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# -ge 3 ] || { echo "$usage" >&2; exit 2; }
out=$1 top=${2#/dev/}
shift 2
[ -d "$sys/block/$top/queue" ] || die "$sys/block has no $top; a partition's disk is meant"
[ -d "$sys/kernel/debug/block" ] || die "no $sys/kernel/debug/block: mount -t debugfs debugfs /sys/kernel/debug"
[ ! -e "$out" ] || die "$out exists"
command -v blktrace > /dev/null || die "no blktrace"
devices=$top
for slave in "$sys/block/$top/slaves"/*; do
  [ ! -e "$slave" ] || devices="$devices ${slave##*/}"
done

# The module below a device, and those of its parameters that blksim knows.
module_of() {
  case $1 in
    nullb*) echo null_blk ;;
    nvme*) echo nvme ;;
    vd*) echo virtio_blk ;;
    sd*) host=$(readlink -f "$sys/block/$1/device" | sed -n 's|.*/\(host[0-9]*\)/.*|\1|p')
      cat "$sys/class/scsi_host/$host/proc_name" ;;
    *) echo unknown ;;
  esac
}
parameters_of() {
  case $1 in
    null_blk) names="queue_mode irqmode completion_nsec submit_queues poll_queues hw_queue_depth nr_devices gb bs
      max_sectors shared_tags shared_tag_bitmap no_sched blocking memory_backed discard cache_size fua mbps" ;;
    scsi_debug) names="delay ndelay max_queue host_max_queue submit_queues poll_queues dev_size_mb sector_size
      random lbpu add_host num_tgts max_luns opts wp" ;;
    nvme) names="io_queue_depth write_queues poll_queues" ;;
    *) names='' ;;
  esac
  for name in $names; do
    value=$(cat "$sys/module/$1/parameters/$name" 2> /dev/null) || continue
    case $value in '' | -*) ;; Y) echo "$name=1" ;; N) echo "$name=0" ;; *) echo "$name=$value" ;; esac
  done | tr '\n' ' '
}
queues() {
  for device in $devices; do
    at=$sys/block/$device
    echo "== $device size $(cat "$at/size")"
    for file in "$at"/queue/* "$at"/queue/iosched/*; do
      [ ! -f "$file" ] || echo "${file#"$at"/}=$(cat "$file" 2> /dev/null | tr '\n' ' ')"
    done
    for hctx in "$at"/mq/*; do
      [ ! -d "$hctx" ] || echo "mq/${hctx##*/}: tags=$(cat "$hctx/nr_tags") cpus=$(cat "$hctx/cpu_list")"
    done
  done
}

chosen=''
if [ -n "$scheduler" ]; then
  queue=$sys/block/$top/queue
  echo none > "$queue/scheduler" || die "cannot write $queue/scheduler"
  chosen=$(cat "$queue/rotational")
  echo "$scheduler" > "$queue/scheduler" || die "no scheduler $scheduler for $top"
fi
for write in $writes; do
  echo "${write#*=}" > "$sys/block/$top/queue/${write%%=*}" || die "cannot write $write"
done
mkdir "$out" || exit 2
driver=${devices##* }
: "${module:=$(module_of "$driver")}"
hz=$(sed -n 's/^CONFIG_HZ=/HZ=/p' "/boot/config-$(uname -r)" 2> /dev/null)
{
  echo "uname=$(uname -a) $hz"
  echo "cpus=$(getconf _NPROCESSORS_CONF 2> /dev/null || grep -c ^processor /proc/cpuinfo)"
  echo "cmdline=$(cat /proc/cmdline)"
  echo "device=$module $(parameters_of "$module")"
  echo "cmd=$*"
  [ -z "$chosen" ] || echo "rotational_when_scheduler_chosen_$top=$chosen"
  case $top in dm-*) echo "dm: $(dmsetup table "/dev/$top")" ;; esac
} > "$out/meta.txt"
queues > "$out/queue.txt"

# ftrace writes into an instance, which has a buffer of its own. The probes read members of structures: kernels from 6.6
# on find them by name (CONFIG_PROBE_EVENTS_BTF_ARGS), for others bpftool(8) shows where they are. Without either, only
# the events are recorded.
tracing=$sys/kernel/tracing
[ -d "$tracing/instances" ] || tracing=$sys/kernel/debug/tracing
jiffies=j=@jiffies:u64
member() { echo "$1->$2"; }
probe() { echo "$1" 2> /dev/null >> "$tracing/kprobe_events"; }
probe_all() { # REQUEST HCTX IOPRIO: the arguments' names, and where the priority is
  request() {
    echo "rq=$1:x64 s=$(member "$1" __sector):u64 len=$(member "$1" __data_len):u32 prio=$(member "$1" "$2"):x16" \
      "fl=$(member "$1" cmd_flags):x32 it=$(member "$1" internal_tag):s32 $jiffies"
  }
  called="$jiffies h=$(member "$2" queue_num):u32"
  insertion="p:blksim/ins blk_mq_sched_try_insert_merge $(request "$1" "$3")"
  case $(cat "$sys/block/$top/queue/scheduler") in
    *'[mq-deadline]'*)
      fields="s=$(member '$retval' __sector):u64 ft=$(member '$retval' fifo_time):u64 $jiffies"
      probe "$insertion" && probe "p:blksim/dde dd_dispatch_request $called" &&
        probe "r64:blksim/dd dd_dispatch_request rq=\$retval:x64 $fields" ;;
    *'[bfq]'*)
      probe "$insertion" && probe "r64:blksim/bfq bfq_dispatch_request $(request '$retval' "$3")" ;;
    *'[kyber]'*)
      probe "r64:blksim/kyber kyber_dispatch_request $(request '$retval' "$3")" &&
        probe "p:blksim/kybere kyber_dispatch_request $called" ;;
  esac
}
# Members of struct request and struct blk_mq_hw_ctx, also those in unnamed unions: NAME OFFSET.
offsets() {
  bpftool btf dump file "$sys/kernel/btf/vmlinux" format raw | awk '
    function value(text) { sub(/.*=/, "", text); return text }
    function bare(text) { return substr(text, 2, length(text) - 2) }
    function print_all(id, base,  i) {
      for (i = 1; i <= count[id]; i++)
        if (name[id, i] == "(anon)") print_all(type[id, i], base + at[id, i])
        else print name[id, i], (base + at[id, i]) / 8
    }
    /^\[/ { id = bare($1); if ($2 == "STRUCT" && bare($3) ~ /^(request|blk_mq_hw_ctx)$/) wanted[id] }
    /bits_offset=/ { i = ++count[id]; name[id, i] = bare($1); type[id, i] = value($2); at[id, i] = value($3) }
    END { for (id in wanted) print_all(id, 0) }'
}
start_ftrace() {
  [ -d "$tracing/instances" ] || return 0
  ftrace=$tracing/instances/blksim
  if ! mkdir "$ftrace"; then
    echo "record.sh: no ftrace.txt; if a killed run left that folder, rmdir it" >&2
    ftrace=''
    return 0
  fi
  if ! probe_all rq hctx ioprio && ! probe_all rq hctx 'bio->bi_ioprio' && command -v bpftool > /dev/null; then
    table=$(offsets)
    member() { echo "$table" | sed -n "s/^$2 \(.*\)/+\1($1)/p" | head -n 1; }
    probe_all '$arg2' '$arg1' ioprio
  fi
  echo 8192 > "$ftrace/buffer_size_kb"
  echo mono > "$ftrace/trace_clock"
  for event in bio_queue getrq plug unplug split bio_backmerge bio_frontmerge rq_merge rq_insert rq_issue rq_requeue \
    rq_complete; do
    echo "block:block_$event"
  done 2> /dev/null > "$ftrace/set_event"
  for group in kyber blksim; do
    [ ! -d "$ftrace/events/$group" ] || echo 1 > "$ftrace/events/$group/enable"
  done
  echo 1 > "$ftrace/tracing_on"
}
stop_ftrace() {
  [ -n "$ftrace" ] || return 0
  echo 0 > "$ftrace/tracing_on"
  cat "$ftrace/trace" > "$out/ftrace.txt"
  for group in block kyber blksim; do
    [ ! -d "$ftrace/events/$group" ] || echo 0 > "$ftrace/events/$group/enable"
  done
  rmdir "$ftrace"
  for name in $(sed -n 's|^[pr][0-9]*:\(blksim/[^ ]*\) .*|\1|p' "$tracing/kprobe_events"); do
    echo "-:$name" 2> /dev/null >> "$tracing/kprobe_events"
  done
  ftrace=''
}
end() { # PID: the process and those that it started
  for child in $(cat "/proc/$1/task/$1/children" 2> /dev/null); do end "$child"; done
  kill -TERM "$1" 2> /dev/null
}
stop() {
  trap '' INT TERM HUP
  [ -z "$command" ] || end "$command"
  if [ -n "$trace" ]; then
    kill -TERM "$trace"
    wait "$trace"
    trace=''
  fi
  stop_ftrace
}
trap stop EXIT
trap 'echo "record.sh: aborted; $out is not complete" >&2; exit 2' INT TERM HUP
start_ftrace

arguments=''
for device in $devices; do arguments="$arguments -d /dev/$device"; done
# shellcheck disable=SC2086
blktrace $arguments -b 512 -n 8 -D "$out" > "$out/blktrace.log" 2>&1 &
trace=$!
for device in $devices; do
  tries=0
  until ls "$sys/kernel/debug/block/$device" 2> /dev/null | grep -q '^trace0$'; do
    kill -0 $trace 2> /dev/null || die "blktrace ended: $(cat "$out/blktrace.log")"
    tries=$((tries + 1))
    [ $tries -lt 100 ] || die "blktrace did not start on $device"
    sleep 0.1
  done
done
sleep 0.5
read -r began _ < /proc/uptime
# A signal ends the wait, but would not end a command in the foreground.
exec 3<&0
"$@" <&3 3<&- > "$out/stdout.txt" 2> "$out/stderr.txt" &
command=$!
wait $command
code=$?
command=''
echo "rc=$code" >> "$out/meta.txt"
sleep 0.3
stop
queues > "$out/queue_after.txt"
if grep -E 'dropped [1-9]|dropped events' "$out/blktrace.log" >&2; then
  die "blktrace lost events; record a shorter command or raise -b"
fi
# A slow machine may have begun the command first: a trace begins with a record of its own, at bytes 8 to 15 its time, ns.
for device in $devices; do
  for file in "$out/$device".blktrace.*[0-9]; do
    [ ! -s "$file" ] || od -A n -t u8 -j 8 -N 8 "$file"
  done | sort -n | head -n 1 | awk -v began="$began" '{ exit $1 / 1e9 > began + 0.01 }' ||
    die "blktrace began after the command on $device; record again"
done
# The header counts events in the buffer and events written: older ones were overwritten.
if [ -e "$out/ftrace.txt" ] && ! grep -q '^# entries-in-buffer/entries-written: \([0-9]*\)/\1 ' "$out/ftrace.txt"; then
  rm "$out/ftrace.txt"
  echo "$out: ftrace lost events, ftrace.txt is left out; record a shorter command"
fi
echo "$out: $* ended with $code"
