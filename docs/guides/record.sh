#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Records one command with blktrace and ftrace, in the folder that blksim analyze, dump, replay and conform read.
# Needs root, debugfs, blktrace(8) and, for a multipath device, dmsetup(8). `blksim record` prints it or runs it.
usage="usage: record.sh [-s SCHEDULER] [-w NAME=VALUE]... [-m 'MODULE PARAMETER=VALUE ...'] FOLDER DEVICE COMMAND...
  -s SCHEDULER   write queue/scheduler first: none, then this one, so that it starts with an empty state
  -w NAME=VALUE  write queue/NAME after that: -w nr_requests=64 -w iosched/fifo_batch=8
  -m MODULE ...  the driver and its parameters, where /sys/module does not have them (null_blk by configfs)
  DEVICE         nvme0n1, sda, dm-0 (then its paths are recorded as well)"
sys=${SYSFS:-/sys} scheduler='' writes='' module='' trace='' ftrace='' probes=''
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

# ftrace writes into an instance, which has a buffer of its own. The probes name members of struct request; only
# kernels from 6.6 on can look them up (CONFIG_PROBE_EVENTS_BTF_ARGS). Without probes the events are recorded alone.
tracing=$sys/kernel/tracing
[ -d "$tracing/instances" ] || tracing=$sys/kernel/debug/tracing
jiffies=j=@jiffies:u64
request() { # POINTER ...: a definition's fields; ioprio has moved from the request to its bio
  echo "rq=$1:x64 s=$1->__sector:u64 len=$1->__data_len:u32 prio=$1->$2:x16 fl=$1->cmd_flags:x32 it=$1->internal_tag:s32 $jiffies"
}
probe() { # KIND NAME FUNCTION FIELDS...: sets the probe with the first fields that the kernel takes
  kind=$1 name=$2 function=$3
  shift 3
  for fields; do
    if echo "$kind:blksim/$name $function $fields" >> "$tracing/kprobe_events"; then
      probes="$probes $name"
      return 0
    fi
  done 2> /dev/null
  return 1
}
insertions() { probe p ins blk_mq_sched_try_insert_merge "$(request rq ioprio)" "$(request rq 'bio->bi_ioprio')"; }
returns() { probe r64 "$1" "$1_dispatch_request" "$(request '$retval' ioprio)" "$(request '$retval' 'bio->bi_ioprio')"; }
start_ftrace() {
  mkdir "$tracing/instances/blksim" 2> /dev/null || return 0
  ftrace=$tracing/instances/blksim
  case $(cat "$sys/block/$top/queue/scheduler") in
    *'[mq-deadline]'*)
      probe r64 dd dd_dispatch_request "rq=\$retval:x64 s=\$retval->__sector:u64 ft=\$retval->fifo_time:u64 $jiffies" &&
        probe p dde dd_dispatch_request "$jiffies h=hctx->queue_num:u32" && insertions ;;
    *'[bfq]'*) returns bfq && insertions ;;
    *'[kyber]'*) returns kyber && probe p kybere kyber_dispatch_request "$jiffies h=hctx->queue_num:u32" ;;
  esac
  echo 8192 > "$ftrace/buffer_size_kb"
  echo mono > "$ftrace/trace_clock"
  for event in bio_queue getrq plug unplug split bio_backmerge bio_frontmerge rq_merge rq_insert rq_issue rq_requeue rq_complete; do
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
  for name in $probes; do echo "-:blksim/$name" >> "$tracing/kprobe_events"; done
  ftrace=''
}
stop() {
  if [ -n "$trace" ]; then
    kill -TERM "$trace"
    wait "$trace"
    trace=''
  fi
  stop_ftrace
}
trap stop EXIT
trap 'exit 2' INT TERM HUP
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
sleep 0.2
"$@" > "$out/stdout.txt" 2> "$out/stderr.txt"
code=$?
echo "rc=$code" >> "$out/meta.txt"
sleep 0.3
stop
queues > "$out/queue_after.txt"
if grep -E 'dropped [1-9]|dropped events' "$out/blktrace.log" >&2; then
  die "blktrace lost events; record a shorter command or raise -b"
fi
# The header counts events in the buffer and events written: older ones were overwritten.
if [ -e "$out/ftrace.txt" ] && ! grep -q '^# entries-in-buffer/entries-written: \([0-9]*\)/\1 ' "$out/ftrace.txt"; then
  rm "$out/ftrace.txt"
  echo "$out: ftrace lost events, ftrace.txt is left out; record a shorter command"
fi
echo "$out: $* ended with $code"
