//! The names of queues and groups in CFQ's messages in blktrace.
//!
//! Not here: how messages are written and kept (`messages.rs` of schedulers). Kernel:
//! cfq_log_cfqq(), cfq_log_cfqg() in block/cfq-iosched.c (2.6.32 to 4.20).

use core::fmt;

use super::ids::GroupId;
use super::queue::{Class, Work};
use super::{Cfq, QId};
use crate::rules::SliceLog;

impl Cfq {
    /// The queue's name, which a message begins with.
    pub(super) fn line_name(&self, q: QId) -> String {
        let queue = &self.queues[q];
        let pid = queue.pid;
        let kind = if queue.flags.sync { 'S' } else { 'A' };
        match self.rules.log {
            SliceLog::Process => format!("cfq{pid}"),
            SliceLog::Path | SliceLog::PathAndWork => {
                format!("cfq{pid}{kind} {}", self.path_of(queue.group))
            }
            SliceLog::Kind => {
                let idles = match queue.work() {
                    Work::SyncNoIdle => 'N',
                    Work::Async | Work::Sync => ' ',
                };
                format!("cfq{pid}{kind}{idles}")
            }
        }
    }

    fn path_of(&self, group: GroupId) -> String {
        format!("/{}", self.submitters.groups[group.index()].path)
    }

    pub(super) fn trace_group_msg(&mut self, group: GroupId, text: fmt::Arguments<'_>) {
        if !self.log.listens {
            return;
        }
        match self.rules.log {
            SliceLog::Process => {}
            SliceLog::Path | SliceLog::PathAndWork => {
                let path = self.path_of(group);
                self.log.line(format_args!("{path} {text}"));
            }
            SliceLog::Kind => self.log.line(text),
        }
    }

    /// A queue becomes active for the current workload.
    pub(super) fn trace_active(&mut self, q: QId) {
        // enum wl_prio_t, enum wl_class_t; enum wl_type_t.
        let class = match self.serving.class {
            Class::BestEffort => 0,
            Class::RealTime => 1,
            Class::Idle => 2,
        };
        let work = self.serving.work as u8;
        match self.rules.log {
            SliceLog::Process | SliceLog::Path => trace_msg!(self, q, "set_active"),
            SliceLog::PathAndWork => {
                trace_msg!(self, q, "set_active wl_prio:{class} wl_type:{work}");
            }
            SliceLog::Kind => trace_msg!(self, q, "set_active wl_class:{class} wl_type:{work}"),
        }
    }

    /// The used part of a queue's slice, before its group is charged (2.6.33, 2.6.35).
    pub(super) fn trace_used(&mut self, q: QId, used: i64) {
        let sectors = self.queues[q].slice_sectors;
        match self.rules.log {
            SliceLog::Path => trace_msg!(self, q, "sl_used={used} sect={sectors}"),
            SliceLog::PathAndWork => trace_msg!(self, q, "sl_used={used}"),
            SliceLog::Process | SliceLog::Kind => {}
        }
    }

    /// The used part of a queue's slice, after its group was charged (4.20).
    pub(super) fn trace_charged(&mut self, q: QId, used: i64, charge: i64) {
        if self.rules.log == SliceLog::Kind {
            let queue = &self.queues[q];
            let (dispatched, sectors) = (queue.slice_dispatch, queue.slice_sectors);
            let iops = u8::from(self.counts_requests());
            trace_msg!(
                self,
                q,
                "sl_used={used} disp={dispatched} charge={charge} iops={iops} sect={sectors}"
            );
        }
    }
}
