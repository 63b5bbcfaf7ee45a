//! Scripts about the block layer around the schedulers: `layer scheduler=none ...`.
//!
//! One task on each CPU, a device that takes every offered request, work items that run on command.
//!
//! ```text
//! layer [rules=v6.12] [scheduler=none] [cpus=1] [hctxs=1] [read_hctxs=0] [tags=8] [nr_requests=16]
//!       [max_sectors=2560] [merge=1] [queue_rqs=0] [commit_rqs=0] [write_cache=0] [fua=0]
//!       [host_tags=0] [max_segments=128] [budget=0] [chunk_sectors=0]
//!       [max_discard_sectors=1048576] [discard_granularity=0]
//!       [blocking=0] [queues=1] [lone_plug=each-bio] [restart=v5.12]
//!       [series=stock] [buckets=32] [first=NR_REQUESTS] [ATTRIBUTE=VALUE]
//! bio [queue=N] REQUEST, REQUEST ... [cpu=N]    submit_bio()
//! plug [N] [cpu=N] | unplug [cpu=N]   a plug that announces N bios; its flush
//! work [timers]                       work items run, also those that a timer delays
//! complete REQUEST, ... | all         the device completes them, in this order
//! batch REQUEST, ... [cpu=N]          the same, collected by an interrupt handler on that CPU
//! fail REQUEST                        the same with an I/O error
//! budgets N                           that get_budget has left
//! room N                              requests that the device takes before it is busy
//! answer WORD ...                     to the next offers: ok, resource, dev_resource, ioerr,
//!                                     requeue, requeue_dontprep
//! stop N | start N | quiesce | unquiesce
//! rerun [MS] [cpu=N]                 a driver has all hctxs run, at once or after so many ms
//! go [cpu=N]                          a task that stopped, or waits for a lock, continues
//! set NAME=VALUE                      an attribute of the scheduler; a refusal is printed
//! tick 20ms | at 500ms                moves the clock; timers that are due expire
//! many N REQUEST [cpu=N]              so many of them, 100 sectors apart
//! print all | runs | WORD ...         all lines; of D only how many of which operation; only lines
//!                                     that begin with one of these words
//! io N OP SECTOR+SECTORS after 3ms    so many, one after another, each this long; prints only
//!                                     the scheduler's probe events
//! depth GROUP N                       another number of tokens, as the timer sets it
//! ... until LABEL                     after bio, unplug, go: the task stops before that label
//! labels on | off                     print every label
//! probes on | off                     print the scheduler's probe events
//! show places | pending | restart | line | busy | map | budgets | completed | scheduler | timer
//!      | tokens | token_maps | work
//! ```
//!
//! A REQUEST is `OP SECTOR+SECTORS [preflush] [fua] [sync] [nowait] [nomerge] [pages]`: with
//! `pages` each page of its data is a segment.

mod clock;
mod machine;

use super::World;
use blkmq::elevator::{Elevator, SchedulerKind, SchedulerSettings};
use blkmq::env::{Answer, Count, Cpu};
use blkmq::list::QueueList;
use blkmq::path::{
    CompletePath, EndBatchPath, Frame, Label, PlugPath, RunHow, RunPath, RunQueuesPath,
};
use blkmq::path::{SubmitPath, Unplug};
use blkmq::queue::{BlkMq, QueueConfig, QueueSettings};
use blkmq::request::{
    Bio, BioId, CpuId, HctxId, Op, Place, Plugged, QueueId, RequestId, Sector, Sectors, Status,
};
use blkmq::rules::{BioPlug, NoMerges, QueueLimits, Restart, Rules, Series};
use blkmq::tags::{CpuTopology, HctxCounts, TagSetConfig};
use blkmq::time::Duration;
use machine::{Machine, Reply};

const HZ: u32 = 250;
const BIOS: usize = 256;

type Printed = Result<Vec<String>, String>;

/// A block layer with its device.
pub(crate) struct Layer {
    machine: Machine,
    /// The lines that are printed.
    only: String,
}

impl World for Layer {
    fn command(&mut self, line: &str) -> Printed {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (rest, until) = take_until(rest.trim());
        let (rest, cpu) = take_cpu(rest)?;
        if cpu >= self.machine.tasks.len() {
            return Err(format!("there is no CPU {cpu}"));
        }
        self.machine.rest.until = match until {
            Some(name) => Some(Label::by_name(name).ok_or(format!("there is no label {name}"))?),
            None => None,
        };
        match word {
            "go" => self.machine.resume(cpu)?,
            "bio" => self.bios(rest, cpu)?,
            "many" => self.many(rest, cpu)?,
            "print" => rest.clone_into(&mut self.only),
            "plug" => {
                let announced = if rest.is_empty() { 1 } else { number(rest)? };
                self.machine.tasks[cpu].plug.start(announced);
            }
            "unplug" => {
                self.machine.tasks[cpu].plug.active = false;
                let flush = PlugPath::new(QueueId(0), Unplug::Finish);
                self.machine.run_task(cpu, Frame::Plug(flush))?;
            }
            "work" => self.machine.run_work(rest == "timers"),
            "complete" => self.complete(rest, Status::Ok)?,
            "batch" => self.batch(rest, cpu)?,
            "fail" => self.complete(rest, Status::IoError)?,
            "budgets" => self.machine.rest.budgets = number(rest)?,
            "room" => self.machine.rest.room = number(rest)?,
            "answer" => {
                let answers: Result<Vec<Reply>, String> =
                    rest.split_whitespace().rev().map(answer).collect();
                self.machine.rest.answers = answers?;
            }
            "stop" | "start" | "quiesce" | "unquiesce" => self.hold(word, rest)?,
            "rerun" => {
                let how = match rest {
                    "" => RunHow::Background,
                    ms => RunHow::Later(Duration::from_millis(number(ms)?)),
                };
                let path = RunQueuesPath::new(QueueId(0), how, 0);
                self.machine.run_on(cpu as u16, Frame::RunQueues(path));
            }
            "labels" => self.machine.rest.labels = rest == "on",
            "probes" => self.probe(rest == "on"),
            "set" => self.set(rest),
            "tick" | "at" => self.move_clock(word, rest)?,
            "io" => self.ios(rest)?,
            "depth" => self.resize(rest)?,
            "show" => return self.show(rest),
            _ => return Err(format!("unknown command {word:?}")),
        }
        if let Some(label) = self.machine.rest.until.take() {
            return Err(format!("nothing came to the label {}", label.name()));
        }
        let printed = core::mem::take(&mut self.machine.rest.printed);
        Ok(clock::filtered(printed, &self.only))
    }
}

impl Layer {
    /// `layer NAME=VALUE ...`.
    pub(crate) fn create(line: &str) -> Result<Box<dyn World>, String> {
        Ok(Box::new(Layer::with(line, None)?))
    }

    /// The same with another scheduler than the line says.
    pub(crate) fn with(line: &str, instead: Option<&SchedulerSettings>) -> Result<Layer, String> {
        let mut values = Values::default();
        for pair in line.split_whitespace().skip(1) {
            values.set(pair)?;
        }
        let sets = vec![vec![values.config(instead)]; values.queues];
        let mut machine = Machine::new(BlkMq::with_sets(&sets, &mut || 0), values.cpus);
        machine.rest.budgets = values.budget;
        let only = "all".to_owned();
        Ok(Layer { machine, only })
    }

    fn bios(&mut self, list: &str, cpu: usize) -> Result<(), String> {
        let (queue, list) = take_queue(list)?;
        if queue.index() >= self.machine.mq.queues.len() {
            return Err(format!("there is no queue {queue}"));
        }
        for text in list.split(',') {
            let bio = self.parse_bio(queue, text.trim())?;
            let path = SubmitPath::new(queue, bio);
            self.machine.run_task(cpu, Frame::Submit(path))?;
        }
        Ok(())
    }

    fn parse_bio(&mut self, queue: QueueId, text: &str) -> Result<BioId, String> {
        let mut words = text.split_whitespace();
        let mut bio = Bio::default();
        bio.segments = 1;
        bio.op = match words.next() {
            Some("r") => Op::Read,
            Some("w") => Op::Write,
            Some("d") => Op::Discard,
            Some("z") => Op::WriteZeroes,
            other => return Err(format!("unknown operation {other:?}: r, w, d or z")),
        };
        let range = words.next().and_then(|range| range.split_once('+'));
        let (sector, sectors) = range.ok_or(format!("{text:?}: no SECTOR+SECTORS"))?;
        bio.sector = Sector(number(sector)?);
        bio.sectors = Sectors(number(sectors)?);
        for word in words {
            match word {
                "preflush" => bio.flags.preflush = true,
                "fua" => bio.flags.fua = true,
                "sync" => bio.flags.sync = true,
                "nowait" => bio.flags.nowait = true,
                "nomerge" => bio.flags.nomerge = true,
                "pages" => bio.scatter(),
                _ => return Err(format!("unknown property {word:?} of a request")),
            }
        }
        let queue = self.machine.mq.queue(queue);
        queue
            .with_pool(|pool| pool.add_bio(bio))
            .ok_or("out of bios".to_owned())
    }

    /// Requests with the device, by their names.
    fn of_device(&self, list: &str) -> Result<Vec<Plugged>, String> {
        if list == "all" {
            return Ok(self.machine.rest.in_device.clone());
        }
        list.split(',').map(|name| self.find(name.trim())).collect()
    }

    fn batch(&mut self, list: &str, cpu: usize) -> Result<(), String> {
        let requests = self.of_device(list)?;
        let in_device = &mut self.machine.rest.in_device;
        in_device.retain(|entry| !requests.contains(entry));
        for &entry in &requests {
            self.machine.give_budget_back(entry);
        }
        let queue = requests.first().ok_or("a batch of nothing")?.queue;
        let list = self.machine.mq.queue(queue).with_pool(|pool| {
            let mut list = QueueList::new();
            for entry in requests {
                assert_eq!(entry.queue, queue, "a batch is of one queue");
                list.push_back(pool, entry.rq);
            }
            list
        });
        let end = EndBatchPath::new(queue, list);
        self.machine.run_on(cpu as u16, Frame::EndBatch(end));
        Ok(())
    }

    fn complete(&mut self, list: &str, status: Status) -> Result<(), String> {
        for entry in self.of_device(list)? {
            self.machine.rest.in_device.retain(|&other| other != entry);
            self.machine.give_budget_back(entry);
            let end = CompletePath::end(entry.queue, entry.rq, status);
            self.machine.run_on(0, Frame::Complete(end));
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Result<Plugged, String> {
        let named = |&&entry: &&Plugged| self.machine.name(entry) == name;
        let found = self.machine.rest.in_device.iter().find(named);
        found.copied().ok_or(format!("{name} is not in the device"))
    }

    /// Operations of a driver, or of the block layer itself, that hold back requests.
    fn hold(&mut self, word: &str, rest: &str) -> Result<(), String> {
        let mut cpu = Cpu::new(CpuId(0));
        let q = self.machine.mq.queue(QueueId(0));
        let hctxs = q.hctxs.len();
        let hctx: usize = if rest.is_empty() { 0 } else { number(rest)? };
        if hctx >= hctxs {
            return Err(format!("there is no hctx {hctx}"));
        }
        match word {
            "stop" => q.hctxs[hctx].stopped.set(&mut cpu),
            "start" => q.hctxs[hctx].stopped.clear(&mut cpu),
            "quiesce" => q.quiesced.set(&mut cpu),
            _ => q.quiesced.clear(&mut cpu),
        }
        let run = match word {
            "start" => hctx..hctx + 1,
            "unquiesce" => 0..hctxs,
            _ => 0..0,
        };
        for hctx in run {
            let path = RunPath::new(QueueId(0), HctxId(hctx as u16), true);
            self.machine.run_on(0, Frame::Run(path));
        }
        Ok(())
    }

    fn show(&self, what: &str) -> Printed {
        let q = self.machine.mq.queue(QueueId(0));
        match what {
            "pending" => Ok(self.machine.pending()),
            "restart" => Ok(self.machine.restart()),
            "line" => Ok(self.machine.line()),
            "busy" => Ok(vec![format!(
                "dispatch_busy {}",
                q.hctxs[0].dispatch_busy.peek()
            )]),
            "budgets" => Ok(vec![format!("budgets {}", self.machine.rest.budgets)]),
            "completed" => {
                let Elevator::MqDeadline(dd) = &q.elevator else {
                    return Err("nobody counts what is completed".to_owned());
                };
                let completed = dd.completed.each_ref().map(Count::peek);
                Ok(vec![format!("completed {completed:?}")])
            }
            "scheduler" | "timer" | "tokens" | "token_maps" | "work" => {
                Ok(self.show_scheduler(what))
            }
            "map" => Ok(vec![format!("{:?}", self.machine.mq.sets[0].map[0])]),
            "places" => {
                let live = q.with_pool(|pool| {
                    let live = pool.iter().filter(|(_, rq)| rq.place != Place::Free);
                    live.map(|(id, rq)| (id, rq.place)).collect::<Vec<_>>()
                });
                let queue = QueueId(0);
                let line = |(rq, place): (RequestId, Place)| {
                    format!(
                        "{} {}",
                        self.machine.name(Plugged { queue, rq }),
                        format!("{place:?}").to_lowercase()
                    )
                };
                Ok(live.into_iter().map(line).collect())
            }
            _ => Err(format!("unknown {what:?}")),
        }
    }
}

/// Settings of a script's layer.
struct Values {
    rules: Rules,
    series: Series,
    /// Another one than that of the rules.
    restart: Option<Restart>,
    scheduler: SchedulerKind,
    cpus: u16,
    hctxs: u16,
    read_hctxs: u16,
    tags: u32,
    nr_requests: u32,
    max_sectors: u32,
    chunk_sectors: u32,
    max_discard_sectors: u32,
    discard_granularity: u32,
    merge: bool,
    queue_rqs: bool,
    commit_rqs: bool,
    write_cache: bool,
    fua: bool,
    host_tags: bool,
    max_segments: u16,
    budget: u32,
    blocking: bool,
    queues: usize,
    bio_plug: Option<BioPlug>,
    /// nr_requests before it was written.
    first: Option<u32>,
    attributes: Vec<(String, String)>,
}

impl Default for Values {
    fn default() -> Values {
        Values {
            rules: Rules::v6_12(),
            series: Series::STOCK,
            restart: None,
            scheduler: SchedulerKind::None,
            cpus: 1,
            hctxs: 1,
            read_hctxs: 0,
            tags: 8,
            nr_requests: 16,
            max_sectors: 2560,
            chunk_sectors: 0,
            max_discard_sectors: 1 << 20,
            discard_granularity: 0,
            merge: true,
            queue_rqs: false,
            commit_rqs: false,
            write_cache: false,
            fua: false,
            host_tags: false,
            max_segments: 128,
            budget: 0,
            blocking: false,
            queues: 1,
            bio_plug: None,
            first: None,
            attributes: Vec::new(),
        }
    }
}

impl Values {
    fn set(&mut self, pair: &str) -> Result<(), String> {
        let (name, value) = pair
            .split_once('=')
            .ok_or(format!("{pair:?}: no NAME=VALUE"))?;
        match name {
            "rules" => {
                self.rules = Rules::by_name(value).ok_or(format!("unknown rules {value:?}"))?;
            }
            "scheduler" => {
                let found = SchedulerKind::by_name(value).filter(|kind| kind.serves(false));
                self.scheduler = found.ok_or(format!("unknown scheduler {value:?}"))?;
            }
            "series" => {
                let buckets = self.series.buckets;
                let found = Series::by_name(value).ok_or(format!("unknown series {value:?}"))?;
                self.series = Series { buckets, ..found };
            }
            "restart" => {
                let found = Restart::by_name(value);
                self.restart = Some(found.ok_or(format!("unknown restart {value:?}"))?);
            }
            "buckets" => self.series.buckets = number(value)?,
            "cpus" => self.cpus = number(value)?,
            "hctxs" => self.hctxs = number(value)?,
            "read_hctxs" => self.read_hctxs = number(value)?,
            "tags" => self.tags = number(value)?,
            "nr_requests" => self.nr_requests = number(value)?,
            "max_sectors" => self.max_sectors = number(value)?,
            "chunk_sectors" => self.chunk_sectors = number(value)?,
            "max_discard_sectors" => self.max_discard_sectors = number(value)?,
            "discard_granularity" => self.discard_granularity = number(value)?,
            "merge" => self.merge = value != "0",
            "queue_rqs" => self.queue_rqs = value != "0",
            "commit_rqs" => self.commit_rqs = value != "0",
            "write_cache" => self.write_cache = value != "0",
            "fua" => self.fua = value != "0",
            "budget" => self.budget = number(value)?,
            "lone_plug" => {
                let found = BioPlug::by_name(value);
                self.bio_plug = Some(found.ok_or(format!("unknown lone_plug {value:?}"))?);
            }
            "queues" => self.queues = number(value)?,
            "blocking" => self.blocking = value != "0",
            "max_segments" => self.max_segments = number(value)?,
            "host_tags" => self.host_tags = value != "0",
            "first" => self.first = Some(number(value)?),
            _ if self
                .scheduler
                .attributes()
                .iter()
                .any(|(known, _)| *known == name) =>
            {
                self.attributes.push((name.to_owned(), value.to_owned()));
            }
            _ => return Err(format!("unknown setting {name:?}")),
        }
        Ok(())
    }

    fn config(&self, instead: Option<&SchedulerSettings>) -> QueueConfig {
        let scheduled = self.scheduler != SchedulerKind::None;
        let nr_requests = if scheduled {
            self.nr_requests
        } else {
            self.tags
        };
        let first = self.first.unwrap_or(nr_requests);
        let mut elevator = match instead {
            Some(instead) => instead.clone(),
            None => {
                let seen = self.rules.depth_hook.seen(first, nr_requests);
                self.scheduler
                    .defaults(HZ, seen)
                    .of_kernel(&self.rules, false)
            }
        };
        for (name, value) in &self.attributes {
            elevator.store(name, value).expect("a value that it takes");
        }
        QueueConfig {
            settings: QueueSettings {
                nr_requests_first: first,
                scheduler: elevator.kind(),
                ..self.settings(nr_requests)
            },
            tags: TagSetConfig {
                counts: HctxCounts {
                    default: self.hctxs,
                    read: self.read_hctxs,
                    poll: 0,
                },
                hctx_shared: self.host_tags,
                waiters: usize::from(self.cpus),
                tasks: usize::from(self.cpus),
                ..TagSetConfig::plain(self.hctxs, self.tags)
            },
            topology: CpuTopology::flat(self.cpus),
            elevator,
            further: Vec::new(),
            bios: BIOS,
            mapped: None,
            above: None,
        }
    }

    fn settings(&self, nr_requests: u32) -> QueueSettings {
        let bio_plug = self.bio_plug.unwrap_or(self.rules.bio_plug);
        let rules = self.rules.with_bio_plug(bio_plug);
        let restart = self.restart.unwrap_or(rules.restart);
        let rules = rules.with_series(self.series).with_restart(restart);
        QueueSettings {
            limits: QueueLimits {
                max_sectors: self.max_sectors,
                max_segments: self.max_segments,
                chunk_sectors: self.chunk_sectors,
                max_discard_sectors: self.max_discard_sectors,
                discard_granularity: self.discard_granularity,
                write_cache: self.write_cache,
                fua: self.fua,
                ..QueueLimits::PLAIN
            },
            nomerges: NoMerges::All,
            hz: HZ,
            driver_queue_rqs: self.queue_rqs,
            driver_commit_rqs: self.commit_rqs,
            driver_budget: self.budget > 0,
            blocking: self.blocking,
            should_merge: self.merge,
            ..QueueSettings::plain(rules, self.scheduler, nr_requests)
        }
    }
}

/// Splits off `until LABEL` at the end.
fn take_until(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once("until ") {
        Some((rest, label)) => (rest.trim(), Some(label.trim())),
        None => (text, None),
    }
}

/// Splits off `queue=N` in front.
fn take_queue(text: &str) -> Result<(QueueId, &str), String> {
    let Some(rest) = text.strip_prefix("queue=") else {
        return Ok((QueueId(0), text));
    };
    let (queue, rest) = rest.split_once(' ').ok_or("nothing after queue=N")?;
    Ok((QueueId(number(queue)?), rest))
}

/// Splits off `cpu=N` at the end.
fn take_cpu(text: &str) -> Result<(&str, usize), String> {
    match text.rsplit_once("cpu=") {
        Some((rest, cpu)) => Ok((rest.trim(), number(cpu)?)),
        None => Ok((text, 0)),
    }
}

fn answer(word: &str) -> Result<Reply, String> {
    Ok(Reply::Says(match word {
        "ok" => Answer::Ok,
        "resource" => Answer::Resource,
        "dev_resource" => Answer::DevResource,
        "ioerr" => Answer::Error(Status::IoError),
        "requeue" => return Ok(Reply::Requeues(false)),
        "requeue_dontprep" => return Ok(Reply::Requeues(true)),
        _ => return Err(format!("unknown answer {word:?}")),
    }))
}

fn number<T: core::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a number of the right size"))
}
