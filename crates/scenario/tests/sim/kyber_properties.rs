//! Properties of Kyber over random jobs, drives and targets, in the simulator: a request is
//! dispatched once, with a token of its own below its domain's depth; each domain with requests and
//! tokens gets its turn; and at the end no token is missing. The oracle is a follower of what
//! probes see; a mutant is one that falsifies it, and must be caught.

use std::any::Any;
use std::collections::BTreeMap;

use blkmq::drive::{Follower, Ran};
use blkmq::elevator::Elevator;
use blkmq::elevator::kyber::Domain;
use blkmq::env::{Cpu, Probe, TraceAction};
use blkmq::path::Frame;
use blkmq::path::label::Token;
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::{HctxId, QueueId, RequestId};
use proptest::prelude::*;
use sim::machine::Simulator;

use crate::runs;

const QUEUE: QueueId = QueueId(0);
const DOMAINS: usize = Domain::ALL.len();

/// Defects of Kyber.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    /// A token that was taken is free for others, too.
    DoubledToken,
    /// A domain's batch never ends.
    EndlessBatch,
    /// Requests are dispatched without a token.
    NoToken,
    /// Kyber reports half of the tokens that it takes.
    HalfTold,
}

#[derive(Clone, Debug)]
struct Asked {
    hctx: HctxId,
    /// Domains that had a request in the hctx before the call.
    waited: [bool; DOMAINS],
    /// The largest depth of each since then.
    depth: [u32; DOMAINS],
}

#[derive(Debug)]
struct Oracle {
    mutant: Option<Mutant>,
    depth: [u32; DOMAINS],
    /// Waiting requests, with hctx and domain.
    waiting: BTreeMap<RequestId, (HctxId, usize)>,
    /// Requests with a token of their domain.
    held: BTreeMap<(usize, u32), RequestId>,
    calls: BTreeMap<usize, Asked>,
    /// For each hctx and domain: requests of other domains that were dispatched while it had some.
    passed_over: BTreeMap<(HctxId, usize), u32>,
    given: u64,
    throttled: u64,
    adjusted: u64,
    wrong: Option<String>,
}

impl Oracle {
    fn new(mutant: Option<Mutant>) -> Oracle {
        Oracle {
            mutant,
            depth: Domain::ALL.map(Domain::depth_max),
            waiting: BTreeMap::new(),
            held: BTreeMap::new(),
            calls: BTreeMap::new(),
            passed_over: BTreeMap::new(),
            given: 0,
            throttled: 0,
            adjusted: 0,
            wrong: None,
        }
    }

    fn expect(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds && self.wrong.is_none() {
            self.wrong = Some(what());
        }
    }

    fn note(&mut self, mq: &BlkMq, context: usize, probe: Probe) {
        match probe {
            Probe::Arrive { rq, .. } => {
                let (hctx, domain) = mq.queue(QUEUE).with_pool(|pool| {
                    let rq = &pool[rq];
                    (rq.hctx, Domain::of(rq.op).index())
                });
                let twice = self.waiting.insert(rq, (hctx, domain));
                self.expect(twice.is_none(), || format!("{rq:?} is inserted twice"));
            }
            Probe::Ask { hctx, .. } => {
                let mut waited = [false; DOMAINS];
                for &(of, domain) in self.waiting.values() {
                    waited[domain] |= of == hctx;
                }
                let depth = self.depth;
                let call = Asked {
                    hctx,
                    waited,
                    depth,
                };
                self.calls.insert(context, call);
            }
            Probe::Throttled { group } => {
                self.throttled += 1;
                let hctx = self.calls[&context].hctx;
                // It had its turn, and found no token.
                self.passed_over.insert((hctx, index(group)), 0);
            }
            Probe::Depth { group, depth } => {
                self.adjusted += 1;
                let depth = match self.mutant {
                    Some(Mutant::HalfTold) => depth.div_ceil(2),
                    _ => depth,
                };
                self.depth[index(group)] = depth;
                for call in self.calls.values_mut() {
                    let most = &mut call.depth[index(group)];
                    *most = (*most).max(depth);
                }
            }
            Probe::Answer { rq, .. } => {
                let call = self.calls.remove(&context).expect("it was asked");
                if let Some(rq) = rq {
                    self.gives(mq, &call, rq);
                }
            }
            _ => {}
        }
    }

    fn gives(&mut self, mq: &BlkMq, call: &Asked, rq: RequestId) {
        self.given += 1;
        let waited = self.waiting.remove(&rq);
        self.expect(waited.is_some(), || format!("{rq:?} is given out twice"));
        let Some((hctx, domain)) = waited else {
            return;
        };
        self.expect(hctx == call.hctx, || format!("{rq:?} is of {hctx:?}"));
        let token = mq.queue(QUEUE).with_pool(|pool| pool[rq].elv_priv[0]);
        match token.checked_sub(1) {
            None => self.expect(false, || format!("{rq:?} has no token")),
            Some(token) => {
                let depth = call.depth[domain];
                self.expect(token < depth, || {
                    format!("{rq:?} has token {token} of domain {domain}, whose depth is {depth}")
                });
                let other = self.held.insert((domain, token), rq);
                self.expect(other.is_none(), || {
                    format!("{rq:?} and {other:?} have token {token} of domain {domain}")
                });
            }
        }
        // The rest of one batch of each other domain may come before, no more.
        for other in (0..DOMAINS).filter(|other| *other != domain) {
            let passed = self.passed_over.entry((hctx, other)).or_default();
            let waits = call.waited[other] && self.waiting.values().any(|w| *w == (hctx, other));
            *passed = if waits { *passed + 1 } else { 0 };
            let others = Domain::ALL.iter().filter(|of| of.index() != other);
            let (passed, most) = (*passed, others.map(|of| of.batch()).sum::<u32>());
            self.expect(passed <= most, || {
                format!("domain {other} of {hctx:?} is passed over {passed} times")
            });
        }
        self.passed_over.insert((hctx, domain), 0);
    }

    fn mutate(&self, mq: &BlkMq, ran: Ran<'_>, cpu: &mut Cpu) {
        let q = mq.queue(QUEUE);
        let gave = cpu.trace.iter().any(|point| {
            matches!(
                point.action,
                TraceAction::Probe(Probe::Answer { rq: Some(_), .. })
            )
        });
        match self.mutant {
            Some(Mutant::DoubledToken) if ran.was.label() == Token::Get.label() => {
                for word in q.tokens.iter().flat_map(|tokens| &tokens.map.words) {
                    cpu.begin_label();
                    word.word.fetch_and(cpu, 0);
                }
            }
            Some(Mutant::EndlessBatch) if gave => {
                let Elevator::Kyber(kyber) = &q.elevator else {
                    panic!("this is about kyber");
                };
                for hctx in kyber.hctxs.iter().filter(|hctx| hctx.data.is_free()) {
                    cpu.begin_label();
                    hctx.data.acquire(cpu);
                    hctx.data.held(cpu).batching = 0;
                    hctx.data.release(cpu);
                }
            }
            Some(Mutant::NoToken) if gave => q.with_pool(|pool| {
                let ids: Vec<RequestId> = pool.iter().map(|(rq, _)| rq).collect();
                for rq in ids {
                    pool[rq].elv_priv[0] = 0;
                }
            }),
            _ => {}
        }
    }
}

fn index(group: &str) -> usize {
    let found = Domain::ALL.iter().position(|domain| domain.name() == group);
    found.expect("a group is a domain")
}

impl Follower for Oracle {
    fn before(&mut self, _mq: &BlkMq, frame: &Frame) {
        // Its token is freed from here on.
        if let Some(rq) = frame.ends() {
            self.held.retain(|_, holder| *holder != rq);
        }
    }

    fn after(&mut self, mq: &BlkMq, ran: Ran<'_>, cpu: &mut Cpu) {
        self.mutate(mq, ran, cpu);
        let probes = cpu.trace.iter().filter_map(|point| match point.action {
            TraceAction::Probe(probe) => Some(probe),
            _ => None,
        });
        for probe in probes.collect::<Vec<Probe>>() {
            self.note(mq, ran.who.context, probe);
        }
    }

    fn contended(&mut self, _mq: &BlkMq, _context: usize, _lock: LockId) {}
    fn item_begins(&mut self, _mq: &BlkMq, _context: usize, _queue: QueueId) {}
}

#[derive(Clone, Debug)]
struct Drawn {
    rules: &'static str,
    seed: u64,
    cpus: u16,
    hctxs: u16,
    /// Of a hardware queue: with few of them requests wait in the scheduler.
    tags: u32,
    channels: u32,
    latency_ns: u64,
    write_latency_ns: u64,
    jitter: u8,
    nr_requests: u32,
    /// Targets of reads and writes.
    targets: [u64; 2],
    /// Direction, depth.
    jobs: Vec<(&'static str, u32)>,
    busy: bool,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let targets = prop::sample::select(vec![1, 50_000, 400_000, 2_000_000, 1_000_000_000]);
    let directions = prop::sample::select(vec!["randread", "randwrite", "randrw", "randtrim"]);
    let tags = prop::sample::select(vec![2, 5, 16, 63, 255_u32]);
    let device = (
        tags,
        1..=3_u16,
        1..=8_u32,
        50_000..400_000_u64,
        50_000..900_000_u64,
        0..=90_u8,
    );
    let jobs = prop::collection::vec((directions, 1..=48_u32), 1..=4);
    let rules = prop::sample::select(vec!["v5.11", "v6.1", "v6.12"]);
    let queue = (rules, 1..=4_u16, 8..=256_u32, [targets.clone(), targets]);
    (any::<u64>(), queue, device, jobs, any::<bool>()).prop_map(
        |(seed, (rules, cpus, nr_requests, targets), device, jobs, busy)| {
            let (tags, hctxs, channels, latency_ns, write_latency_ns, jitter) = device;
            Drawn {
                rules,
                seed: seed >> 1,
                cpus,
                hctxs,
                tags,
                channels,
                latency_ns,
                write_latency_ns,
                jitter,
                nr_requests,
                targets,
                jobs,
                busy,
            }
        },
    )
}

/// A run of 350 ms, so that the timer sets depths three times.
fn scenario(of: &Drawn) -> String {
    let mut text = format!(
        "seed = {}\n[machine]\ncpus = {}\n[queue]\nscheduler = \"kyber\"\nrules = \"{}\"\n\
         nr_requests = {}\nread_lat_nsec = {}\nwrite_lat_nsec = {}\n[device]\ntype = \"nvme\"\n\
         nr_queues = {}\nio_queue_depth = {}\nchannels = {}\nlatency_ns = {}\nwrite_latency_ns = {}\n\
         jitter_percent = {}\n",
        of.seed,
        of.cpus,
        of.rules,
        of.nr_requests,
        of.targets[0],
        of.targets[1],
        of.hctxs,
        of.tags + 1,
        of.channels,
        of.latency_ns,
        of.write_latency_ns,
        of.jitter,
    );
    if of.busy {
        text += "[device.fault]\nbusy = \"1/50\"\n";
    }
    for (number, (rw, depth)) in of.jobs.iter().enumerate() {
        text += &format!(
            "[[job]]\nname = \"{number}\"\nrw = \"{rw}\"\nbs = \"4k\"\ndirect = 1\n\
             ioengine = \"io_uring\"\nnorandommap = true\niodepth = {depth}\ntime_based = true\n\
             runtime = \"350ms\"\n"
        );
    }
    text
}

/// The oracle's verdict on a run.
fn look(of: &Drawn, mutant: Option<Mutant>) -> Oracle {
    let plan = runs::plan_of(&scenario(of));
    let mut simulator = Simulator::new(&plan, &runs::machine()).unwrap();
    simulator.trace();
    simulator.probe();
    simulator.follow(Box::new(Oracle::new(mutant)));
    let stall = runs::to_its_end(&mut simulator);
    let follower: Box<dyn Any> = simulator.take_follower();
    let mut oracle: Box<Oracle> = follower.downcast().expect("it was given so");
    if let Some(stall) = stall {
        oracle.expect(false, || stall.to_string());
    }
    let left = oracle.waiting.len();
    oracle.expect(left == 0, || {
        format!("{left} requests were never given out")
    });
    let left = oracle.held.len();
    oracle.expect(left == 0, || format!("{left} requests never ended"));
    for tokens in &simulator.block_layer().queue(QUEUE).tokens {
        let (name, left) = (tokens.info.name, tokens.map.busy_count());
        oracle.expect(left == 0, || format!("{left} of {name} are still taken"));
    }
    *oracle
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn kyber_gives_out_each_request_once_with_a_token_and_in_turn(of in drawn()) {
        let oracle = look(&of, None);
        prop_assert_eq!(&oracle.wrong, &None, "{}", scenario(&of));
        prop_assert!(oracle.given > 0);
    }
}

/// Reads that are always late, and writes that are not: the depth of writes goes down to one.
fn throttled() -> Drawn {
    Drawn {
        rules: "v6.12",
        seed: 1,
        cpus: 2,
        hctxs: 2,
        tags: 255,
        channels: 4,
        latency_ns: 60_000,
        write_latency_ns: 200_000,
        jitter: 50,
        nr_requests: 128,
        targets: [1, 1_000_000_000],
        jobs: vec![("randread", 16), ("randwrite", 48), ("randtrim", 8)],
        busy: false,
    }
}

/// Reads and writes that wait in the scheduler for a few tags of the drive.
fn waiting() -> Drawn {
    Drawn {
        cpus: 1,
        hctxs: 1,
        tags: 5,
        targets: [1_000_000_000; 2],
        jobs: vec![("randread", 48), ("randwrite", 48)],
        ..throttled()
    }
}

#[test]
fn depths_are_lowered_and_requests_wait_for_tokens() {
    let oracle = look(&throttled(), None);
    assert_eq!(oracle.wrong, None);
    assert!(oracle.adjusted >= 3, "{} depths", oracle.adjusted);
    assert!(
        oracle.throttled > 1000,
        "{} without a token",
        oracle.throttled
    );
    assert!(oracle.depth[Domain::Write.index()] <= 4, "{oracle:?}");
}

#[test]
fn mutants_are_caught() {
    for (mutant, of, says) in [
        (Mutant::DoubledToken, throttled(), "have token"),
        (Mutant::EndlessBatch, waiting(), "is passed over"),
        (Mutant::NoToken, throttled(), "has no token"),
        (Mutant::HalfTold, throttled(), "whose depth is"),
    ] {
        assert_eq!(look(&of, None).wrong, None, "{of:?}");
        let wrong = look(&of, Some(mutant)).wrong;
        let wrong = wrong.unwrap_or_else(|| panic!("{mutant:?} is not caught"));
        assert!(wrong.contains(says), "{mutant:?}: {wrong}");
    }
}
