//! Random events around a target: in any order, each I/O ends once, and selectors count nothing in
//! the end. tests/scripts/multipath has the differences between kernels.

use super::*;
use crate::dm::{Ending, Mapped};
use crate::request::{CpuId, Status};
use crate::rules::Undo;
use crate::time::{Duration, SimTime};
use proptest::prelude::*;

/// Two groups of two and three paths.
fn table(rules: &DeviceMapper, selector: &str, features: &str, handler: &str) -> Table {
    let path = |device: &str, mask: u32| match selector {
        "io-affinity" => format!("{device} {mask:x}"),
        _ => format!("{device} 1"),
    };
    let first = [path("a", 3), path("b", 4), path("c", 8)].join(" ");
    let second = [path("d", 5), path("e", 10)].join(" ");
    let line = format!(
        "0 8 multipath {features} {handler} 2 1 \
         {selector} 0 3 1 {first} {selector} 0 2 1 {second}"
    );
    Table::parse(&line, rules, 4).unwrap()
}

#[derive(Clone, Debug)]
enum Event {
    Map { io: usize, cpu: u16, fate: Fate },
    End { io: usize, status: Status },
    Activation { path: u16, result: InitResult },
    Message(String),
    Suspend { noflush: bool },
    Resume,
    Timer,
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Issued,
    NoTag,
    Dying,
    GivenUp,
}

fn event() -> impl Strategy<Value = Event> {
    let io = 0_usize..8;
    let fate = prop_oneof![
        6 => Just(Fate::Issued),
        1 => Just(Fate::NoTag),
        1 => Just(Fate::Dying),
        1 => Just(Fate::GivenUp),
    ];
    let status = prop_oneof![
        3 => Just(Status::Ok),
        2 => Just(Status::Transport),
        1 => Just(Status::Resource),
        1 => Just(Status::Nexus),
        1 => Just(Status::Target),
    ];
    let result = prop_oneof![
        4 => Just(InitResult::Ok),
        1 => Just(InitResult::NoHandler),
        1 => Just(InitResult::TemporarilyBusy),
        1 => Just(InitResult::Retry),
        1 => Just(InitResult::RetryAtOnce),
        1 => Just(InitResult::Failed),
    ];
    let message = prop_oneof![
        "(fail_path|reinstate_path) [a-e]",
        "(disable_group|enable_group|switch_group) [12]",
        "(queue_if_no_path|fail_if_no_path)",
    ];
    prop_oneof![
        6 => (io.clone(), 0_u16..4, fate).prop_map(|(io, cpu, fate)| Event::Map { io, cpu, fate }),
        6 => (io, status).prop_map(|(io, status)| Event::End { io, status }),
        3 => (0_u16..5, result).prop_map(|(path, result)| Event::Activation { path, result }),
        3 => message.prop_map(Event::Message),
        1 => any::<bool>().prop_map(|noflush| Event::Suspend { noflush }),
        1 => Just(Event::Resume),
        1 => Just(Event::Timer),
    ]
}

/// Eight I/Os and the state of each.
struct World {
    of: Multipath,
    table: Table,
    ios: [Io; 8],
    now: SimTime,
    /// Clones that were given up.
    given_up: u32,
    /// Activations that have begun.
    activating: Vec<PathId>,
    queued: Vec<PathId>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Io {
    Waits,
    InFlight(Mapped, SimTime),
    Ended(Status),
}

impl World {
    fn new(rules: DeviceMapper, selector: &str, features: &str, handler: &str) -> World {
        let table = table(&rules, selector, features, handler);
        World {
            of: Multipath::new(&table, rules, &[0, 0, 1, 1], 5),
            table,
            ios: [Io::Waits; 8],
            now: SimTime(1),
            given_up: 0,
            activating: Vec::new(),
            queued: Vec::new(),
        }
    }

    fn happens(&mut self, event: &Event) {
        self.now = self.now + Duration(1000);
        match *event {
            Event::Map { io, cpu, fate } => self.map(io, cpu, fate),
            Event::End { io, status } => self.end(io, status),
            Event::Activation { path, result } => self.activation(PathId(path), result),
            Event::Message(ref text) => {
                for message in Message::parse(&self.table, text).unwrap() {
                    let taken = self.of.message(message);
                    assert_ne!(taken, self.of.suspended, "{text}");
                }
            }
            Event::Suspend { noflush } if !self.of.suspended => {
                self.of.suspend(noflush);
                self.of.suspended();
            }
            Event::Resume if self.of.suspended => self.of.resume(),
            Event::Suspend { .. } | Event::Resume => {}
            Event::Timer => self.of.timer_expires(),
        }
        while let Some((path, _)) = self.of.take_activation() {
            self.queued.push(path);
        }
        self.of.take_todo();
        self.of.check();
    }

    fn map(&mut self, io: usize, cpu: u16, fate: Fate) {
        if self.ios[io] != Io::Waits {
            return;
        }
        let incoming = Incoming {
            bytes: 4096 * (1 + io as u32),
            cpu: CpuId(cpu),
            now: self.now,
            bio: None,
        };
        let mapping = match (self.of.map(incoming), fate) {
            (Mapping::To(mapped), Fate::Issued) => {
                assert!(self.of.is_active(mapped.path), "{mapped:?} is out of use");
                self.of.start(mapped);
                self.ios[io] = Io::InFlight(mapped, self.now);
                return;
            }
            (Mapping::To(mapped), Fate::NoTag) => self.of.no_clone(mapped.path, false),
            (Mapping::To(mapped), Fate::Dying) => self.of.no_clone(mapped.path, true),
            (Mapping::To(mapped), Fate::GivenUp) => {
                self.of.start(mapped);
                self.of.undo(mapped, SimTime::ZERO, self.now);
                self.given_up += 1;
                Mapping::Requeue
            }
            (other, _) => other,
        };
        if let Mapping::Kill(status) = mapping {
            assert!(self.of.valid_paths() == 0, "killed with a path in use");
            assert!(!self.of.queues_if_no_path(), "killed instead of held");
            self.ios[io] = Io::Ended(status);
        }
    }

    fn end(&mut self, io: usize, status: Status) {
        let Io::InFlight(mapped, started) = self.ios[io] else {
            return;
        };
        self.ios[io] = match self.of.end(mapped, status, started, self.now) {
            Ending::Done(status) => Io::Ended(status),
            Ending::Requeue | Ending::DelayRequeue => Io::Waits,
        };
    }

    /// The next step of an activation of a path.
    fn activation(&mut self, path: PathId, result: InitResult) {
        if let Some(at) = self.activating.iter().position(|&of| of == path) {
            self.activating.remove(at);
            self.of.init_done(path, result);
        } else if let Some(at) = self.queued.iter().position(|&of| of == path) {
            self.queued.remove(at);
            if self.of.begin_activation(path) {
                self.activating.push(path);
            }
        }
    }

    /// All paths are reinstated, activations succeed, and nothing fails any more.
    fn drain(&mut self) {
        if self.of.suspended {
            self.happens(&Event::Resume);
        }
        for device in ["a", "b", "c", "d", "e"] {
            self.happens(&Event::Message(format!("reinstate_path {device}")));
        }
        for _ in 0..20 {
            for path in 0..5 {
                let result = InitResult::Ok;
                self.happens(&Event::Activation { path, result });
            }
            for io in 0..8 {
                let (cpu, fate) = (io as u16 % 4, Fate::Issued);
                self.happens(&Event::Map { io, cpu, fate });
                let status = Status::Ok;
                self.happens(&Event::End { io, status });
            }
        }
    }
}

const SELECTORS: [&str; 5] = [
    "round-robin",
    "queue-length",
    "service-time",
    "historical-service-time",
    "io-affinity",
];

proptest! {
    #[test]
    fn each_io_ends_and_counts_go_back_to_zero(
        events in prop::collection::vec(event(), 1..120),
        kernel in 0_usize..6,
        selector in 0_usize..5,
        queues in any::<bool>(),
        handler in any::<bool>(),
    ) {
        let rules = DeviceMapper::ALL[kernel];
        let known = crate::dm::selector::SelectorKind::of(&rules).len();
        let features = if queues { "3 queue_if_no_path pg_init_retries 3" } else { "0" };
        let handler = if handler { "1 alua" } else { "0" };
        let mut world = World::new(rules, SELECTORS[selector % known], features, handler);
        for event in &events {
            world.happens(event);
        }
        world.drain();
        for io in world.ios {
            prop_assert!(matches!(io, Io::Ended(_)), "{io:?} under {}", rules.name);
        }
        let leaks = rules.undo == Undo::Forgotten && world.given_up > 0;
        prop_assert!(leaks || world.of.accounts_are_empty());
    }
}

/// The check finds the leak of kernels up to 4.20: a mutant of the property above.
#[test]
fn a_count_that_leaks_is_found() {
    for rules in [DeviceMapper::V4_20, DeviceMapper::V6_1] {
        for selector in ["queue-length", "service-time"] {
            let mut world = World::new(rules, selector, "0", "0");
            let (io, cpu, fate) = (0, 0, Fate::GivenUp);
            world.happens(&Event::Map { io, cpu, fate });
            world.drain();
            let clean = rules.undo == Undo::TakenBack;
            assert_eq!(
                world.of.accounts_are_empty(),
                clean,
                "{selector}, {}",
                rules.name
            );
        }
    }
}

/// Single questions give the same result as all under one lock, and a kernel whose choice holds the
/// lock throughout needs no other access.
#[test]
fn questions_are_asked_once() {
    for rules in DeviceMapper::ALL {
        let table = table(&rules, "service-time", "0", "0");
        let mut of = Multipath::new(&table, rules, &[0; 4], 0);
        let io = Incoming {
            bytes: 4096,
            cpu: CpuId(0),
            now: SimTime::ZERO,
            bio: None,
        };
        let mut asked = Vec::new();
        for _ in 0..2 {
            asked.clear();
            let mut choice = of.choice(io);
            let mapping = loop {
                match choice.ask() {
                    Ok(ask) => {
                        asked.push((ask, choice.access(ask)));
                        let answer = of.answer(ask, io);
                        choice.answer(answer);
                    }
                    Err(mapping) => break mapping,
                }
            };
            assert!(matches!(mapping, Mapping::To(_)), "{mapping:?}");
        }
        let locked = |(_, access): &&(Ask, Access)| *access == Access::TargetLock;
        let locks = asked.iter().filter(locked).count();
        let whole = rules.target_lock == crate::rules::TargetLock::Whole;
        // From 4.7 on the second request of a group takes m->lock without need.
        assert_eq!(locks > 0, whole, "{}: {asked:?}", rules.name);
    }
}
