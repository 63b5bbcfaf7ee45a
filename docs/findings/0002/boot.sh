#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# boot.sh ROOT VERSION "FURTHER CMDLINE" FILE...: boots ROOT/boot/vmlinuz-VERSION in QEMU with busybox, the modules, script and
# the files; run.sh, which must be among them, is run. ROOT is where `dpkg-deb -x linux-image-VERSION*.deb ROOT` put it.
here=$(dirname "$0") root=$1 version=$2 further=$3; shift 3
d=$(mktemp -d); mkdir -p $d/bin $d/mod
gcc -O2 -Wall -static -o $d/script $here/script.c || exit 1
cp /bin/busybox $d/bin/; cp $here/init $here/setup.sh $d/; chmod +x $d/init
for k in fs/configfs/configfs block/bfq drivers/block/null_blk/null_blk; do
  m=$root/lib/modules/$version/kernel/$k.ko
  if [ -f $m ]; then cp $m $d/mod; else xz -dc $m.xz > $d/mod/${k##*/}.ko; fi
done
cp "$@" $d/
(cd $d && find . | cpio -o -H newc --quiet | gzip -1) > $d.img
timeout ${LIMIT:-100} qemu-system-x86_64 -m 512 -smp 1 -accel tcg -icount shift=1,sleep=off -nographic -no-reboot -nic none \
  -kernel $root/boot/vmlinuz-$version -initrd $d.img \
  -append "console=ttyS0 panic=-1 quiet cgroup_no_v1=all slub_debug=FZU,bfq_queue $further" < /dev/null
rm -rf $d $d.img
