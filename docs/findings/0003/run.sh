# SPDX-License-Identifier: GPL-2.0-only
# With iaranges.ko among the files the disk has two actuators, without it (the control) one.
uname -r
device
groups
log_on
/script /across.script
