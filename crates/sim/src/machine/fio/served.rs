//! A thread of an NFS server: it takes a call, reads the file in pieces, and replies.
//!
//! It shares the statistics of fio's threads. Assignment of calls: `servers.rs`. Kernel: nfsd() in
//! fs/nfsd/nfssvc.c, nfsd_vfs_read() in fs/nfsd/vfs.c, splice_direct_to_actor() and
//! __generic_file_splice_read() in fs/splice.c, which goes on by 16 pages (2.6.32.2).
//!
//! Deviation(D25): pages are looked up, awaited and copied one by one as by read(2); splice looks
//! up all of a piece, then waits for each.

use blkmq::request::{Op, Sector, Sectors, Status};
use blkmq::time::Duration;

use super::steps::On;
use super::{FioTask, Stage};
use crate::cost::Step;
use crate::machine::buffered::BufferedRead;
use crate::machine::cpu::Mode;
use crate::machine::servers::Call;
use crate::machine::task::Turn;
use crate::page_cache::PAGE_BYTES;
use crate::recorder::IoRecord;
use crate::workload::NextIo;

/// Bytes that one round of splice handles (PIPE_BUFFERS).
const PIECE_BYTES: u64 = 16 * PAGE_BYTES;

/// State of a thread of a server.
#[derive(Clone, Debug)]
pub(super) struct Served {
    pub(super) server: u8,
    /// The call, and the byte where its next piece begins.
    call: Option<(Call, u64)>,
}

impl Served {
    pub(super) fn of(server: u8) -> Served {
        Served { server, call: None }
    }
}

impl FioTask {
    /// Takes the next call, or waits for one.
    pub(super) fn serve(&mut self, on: &mut On<'_>) -> Turn {
        let id = on.id;
        let served = self.served.as_mut().expect("it is of a server");
        let server = on.servers.of(served.server);
        let at = on.cpus.at(id);
        if at >= self.end_at || self.failed {
            server.leave(self.plan.clone);
            return self.wind_down(on.recorder, at);
        }
        let Some(call) = server.take(self.plan.clone) else {
            server.idles(self.plan.clone, on.task);
            return Turn::Sleep;
        };
        // nfsd_get_raparms(): a copy, so that concurrent calls do not see each other's.
        let read_ahead = *server.read_ahead(call.client);
        let (disk, work) = (server.plan.disk, server.plan.call);
        on.cpus[id].spend(work.0 * 1000, Mode::System);
        on.cpus.charge_as(id, Step::FileLookup, Mode::System);
        served.call = Some((call, call.from));
        self.in_flight += 1;
        self.slots[0].io = NextIo {
            op: Op::Read,
            disk,
            prio: blkmq::request::IoPrio::default(),
            sector: Sector(call.from / 512),
            sectors: Sectors(((call.upto - call.from) / 512) as u32),
            not_before: Duration::ZERO,
        };
        self.slots[0].issued = call.at;
        let cached = self.cached.as_mut().expect("it reads through the cache");
        cached.opened_with(read_ahead);
        self.next_piece(on)
    }

    fn next_piece(&mut self, on: &mut On<'_>) -> Turn {
        let served = self.served.as_mut().expect("it is of a server");
        let (call, from) = served.call.as_mut().expect("it has a call");
        let upto = call.upto.min(*from + PIECE_BYTES);
        let cached = self.cached.as_mut().expect("it reads through the cache");
        let (mapping, bio_pages) = cached.mapping(on.mappings, self.slots[0].io.disk);
        cached.read = Some((0, 0, BufferedRead::new(mapping, *from..upto, bio_pages)));
        *from = upto;
        self.stage = Stage::Cached;
        Turn::Again
    }

    /// A piece was read, or its read failed.
    pub(super) fn piece_over(&mut self, on: &mut On<'_>, status: Status) -> Turn {
        let served = self.served.as_mut().expect("it is of a server");
        let &(call, from) = served.call.as_ref().expect("it has a call");
        if status == Status::Ok && from < call.upto {
            return self.next_piece(on);
        }
        served.call = None;
        let number = served.server;
        let now = on.cpus.at(on.id);
        let cached = self.cached.as_ref().expect("it reads through the cache");
        *on.servers.of(number).read_ahead(call.client) = cached.state();
        on.servers.reply(on.cpus, number, call, now);
        self.in_flight -= 1;
        if status != Status::Ok && !self.failed {
            self.failed = true;
            on.recorder.thread_failed(self.thread, status);
        }
        let io = self.slots[0].io;
        on.recorder.io(&IoRecord {
            thread: self.thread,
            disk: io.disk,
            op: io.op,
            sector: io.sector,
            sectors: io.sectors,
            at: now,
            latency: now.since(call.at),
            prepared: Duration::ZERO,
            slat: None,
            status,
            counts: now >= self.count_from && now <= self.end_at,
            closes: false,
        });
        self.stage = Stage::Prepare;
        Turn::Again
    }
}
