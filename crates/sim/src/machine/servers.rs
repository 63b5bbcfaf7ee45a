//! NFS servers with their clients: times of calls, and the threads that get them.
//!
//! A client streams one file with so many calls in flight, as far as its read-ahead of 15 calls
//! goes; replies leave one after the other over one link. Not here: the reads of a thread
//! (`fio.rs`). Kernel: svc_xprt_enqueue(), svc_thread_enqueue() in net/sunrpc/svc_xprt.c,
//! nfsd_read() and nfsd_get_raparms() in fs/nfsd/vfs.c (2.6.32.2).

use std::collections::VecDeque;

use blkmq::time::{Duration, SimTime};

use super::cpus::Cpus;
use super::event::{Event, Of, class};
use super::task::TaskId;
use super::tasks::Tasks;
use crate::plan::{NfsdPlan, Plan};
use crate::readahead::ReadAhead;

/// Calls of a window of a client's read-ahead, for each slot but one.
const WINDOWS: u64 = 2;

/// Detail of an event that is not a call but the end of a server's time.
const CLOSES: u32 = 1;

#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) client: u16,
    number: u64,
    /// When it reaches the server.
    pub(super) at: SimTime,
    /// First byte on the disk.
    pub(super) from: u64,
    pub(super) upto: u64,
}

#[derive(Clone, Debug)]
struct Client {
    next: u64,
    /// Number of the first call without a reply.
    first: u64,
    /// Replies to later calls, a bit each, `first` being bit 0.
    came: u64,
    under_way: u32,
    /// State of the file that each call copies and puts back (struct raparms).
    read_ahead: ReadAhead,
}

#[derive(Debug)]
pub(super) struct Server {
    // Settings.
    pub(super) plan: NfsdPlan,

    // State.
    clients: Vec<Client>,
    /// On their way to the server, in the order of arrival.
    wire: VecDeque<Call>,
    /// Calls at the server without a thread.
    waiting: VecDeque<Call>,
    /// By thread: the call assigned to it.
    given: Vec<Option<Call>>,
    /// Idle threads, the one that went idle last at the end.
    idle: Vec<(u16, TaskId)>,
    /// When the link to the clients is free.
    link_free: SimTime,
}

#[derive(Debug)]
pub(super) struct Servers {
    all: Vec<Server>,
}

impl Servers {
    pub(super) fn new(plan: &Plan) -> Servers {
        let server = |(number, of): (usize, &NfsdPlan)| {
            let threads = plan.threads.iter();
            let mine = threads.filter(|thread| thread.server == Some(number as u8));
            let queue = &plan.disks[of.disk.index()].queue;
            let read_ahead =
                ReadAhead::new(queue.read_ahead_rules(), queue.read_ahead(), of.advice);
            let client = Client {
                next: 0,
                first: 0,
                came: 0,
                under_way: 0,
                read_ahead,
            };
            let threads = mine.count();
            let calls = usize::from(of.clients) * of.slots as usize;
            Server {
                plan: *of,
                clients: vec![client; usize::from(of.clients)],
                wire: VecDeque::with_capacity(calls),
                waiting: VecDeque::with_capacity(calls),
                given: vec![None; threads],
                idle: Vec::with_capacity(threads),
                link_free: SimTime::ZERO,
            }
        };
        Servers {
            all: plan.servers.iter().enumerate().map(server).collect(),
        }
    }

    /// Clients begin, and the end of the threads is scheduled.
    pub(super) fn start(&mut self, cpus: &mut Cpus) {
        let now = cpus.core.now;
        for number in 0..self.all.len() {
            let end = now + self.all[number].plan.until;
            let event = Event::Call(Of::new(number as u32, CLOSES));
            cpus.core.events.push(end, class::CPU, event);
            for client in 0..self.all[number].clients.len() {
                self.send(cpus, number as u8, client as u16, now);
            }
        }
    }

    pub(super) fn of(&mut self, number: u8) -> &mut Server {
        &mut self.all[usize::from(number)]
    }

    /// A call arrives, and the thread that went idle last takes it; or the time is over, and all
    /// idle threads are woken.
    pub(super) fn call_comes(&mut self, cpus: &mut Cpus, tasks: &mut Tasks, of: Of) {
        let server = self.of(of.whom() as u8);
        if of.detail() == CLOSES {
            while let Some((_, task)) = server.idle.pop() {
                let cpu = tasks[task].cpu;
                tasks.wake(cpus, task, cpu, SimTime::ZERO);
            }
            return;
        }
        let call = server.wire.pop_front().expect("a call that was sent");
        match server.idle.pop() {
            None => server.waiting.push_back(call),
            Some((thread, task)) => {
                server.given[usize::from(thread)] = Some(call);
                let cpu = tasks[task].cpu;
                tasks.wake(cpus, task, cpu, SimTime::ZERO);
            }
        }
    }

    /// The reply to a call leaves at `at`, and the client asks for more when it has it.
    pub(super) fn reply(&mut self, cpus: &mut Cpus, number: u8, call: Call, at: SimTime) {
        let server = self.of(number);
        let bytes = call.upto - call.from;
        let time = Duration(bytes * 1_000_000_000 / server.plan.link_bytes);
        server.link_free = server.link_free.max(at) + time;
        let there = server.link_free + server.plan.latency;
        let client = &mut server.clients[usize::from(call.client)];
        client.under_way -= 1;
        client.came |= 1 << (call.number - client.first);
        let in_order = client.came.trailing_ones();
        client.first += u64::from(in_order);
        client.came = client.came.checked_shr(in_order).unwrap_or(0);
        self.send(cpus, number, call.client, there);
    }

    /// A client sends the calls that it may at `at`.
    fn send(&mut self, cpus: &mut Cpus, number: u8, client: u16, at: SimTime) {
        let server = self.of(number);
        let plan = server.plan;
        let of = &mut server.clients[usize::from(client)];
        let window = u64::from(plan.slots - 1).max(1);
        let ahead = of.first / window * window + WINDOWS * window;
        while of.under_way < plan.slots && of.next < ahead {
            let in_file = of.next % (plan.file_bytes / plan.rsize);
            let from = plan.first_byte + u64::from(client) * plan.file_bytes;
            let from = from + in_file * plan.rsize;
            let call = Call {
                client,
                number: of.next,
                at: at + plan.latency,
                from,
                upto: from + plan.rsize,
            };
            (of.next, of.under_way) = (of.next + 1, of.under_way + 1);
            server.wire.push_back(call);
            let event = Event::Call(Of::new(u32::from(number), 0));
            cpus.core.events.push(call.at, class::CPU, event);
        }
    }
}

impl Server {
    /// The next call of a thread: the one assigned to it, or one that waits.
    pub(super) fn take(&mut self, thread: u16) -> Option<Call> {
        let given = self.given[usize::from(thread)].take();
        given.or_else(|| self.waiting.pop_front())
    }

    /// A thread goes idle.
    pub(super) fn idles(&mut self, thread: u16, task: TaskId) {
        if !self.idle.iter().any(|&(other, _)| other == thread) {
            self.idle.push((thread, task));
        }
    }

    pub(super) fn leave(&mut self, thread: u16) {
        self.idle.retain(|&(other, _)| other != thread);
    }

    /// The state of a client's file, to be copied or put back.
    pub(super) fn read_ahead(&mut self, client: u16) -> &mut ReadAhead {
        &mut self.clients[usize::from(client)].read_ahead
    }
}
