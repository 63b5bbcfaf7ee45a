//! Random lives whose truth is known, and mutants of their traces that must be noticed.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::matching::live::{Live, Stage};

/// One decision of a small block layer.
#[derive(Clone, Debug)]
enum Choice {
    /// A bio somewhere new, of so many blocks, a write or not.
    Submit(u64, bool),
    /// A bio right after a waiting request.
    Join(Index),
    Issue(Index),
    Requeue(Index),
    Complete(Index),
}

fn choices() -> impl Strategy<Value = Vec<Choice>> {
    let index = any::<Index>;
    let choice = prop_oneof![
        4 => (1..4_u64, proptest::bool::ANY).prop_map(|(n, write)| Choice::Submit(n, write)),
        3 => index().prop_map(Choice::Join),
        3 => index().prop_map(Choice::Issue),
        1 => index().prop_map(Choice::Requeue),
        3 => index().prop_map(Choice::Complete),
    ];
    proptest::collection::vec(choice, 1..200)
}

struct Request {
    bios: Vec<Io>,
    start: u64,
    end: u64,
    write: bool,
}

/// Generates the events of the choices and keeps the truth.
#[derive(Default)]
struct Layer {
    now: u64,
    events: Vec<Event>,
    waiting: Vec<Request>,
    issued: Vec<Request>,
    truth: Vec<Io>,
    next_sector: u64,
}

impl Layer {
    fn run(choices: Vec<Choice>) -> Layer {
        let mut layer = Layer::default();
        for choice in choices {
            match choice {
                Choice::Submit(blocks, write) => layer.submit(blocks, write),
                Choice::Join(at) if !layer.waiting.is_empty() => layer.join(at),
                Choice::Issue(at) if !layer.waiting.is_empty() => {
                    layer.issue(at.index(layer.waiting.len()));
                }
                Choice::Requeue(at) if !layer.issued.is_empty() => layer.requeue(at),
                Choice::Complete(at) if !layer.issued.is_empty() => {
                    layer.complete(at.index(layer.issued.len()));
                }
                _ => {}
            }
        }
        while !layer.waiting.is_empty() {
            layer.issue(0);
        }
        while !layer.issued.is_empty() {
            layer.complete(0);
        }
        layer
    }

    fn put(&mut self, action: Action, start: u64, end: u64, write: bool) -> SimTime {
        self.now += 10;
        let rwbs = if write { "W" } else { "R" };
        let (letters, sectors) = (action.letters(), end - start);
        self.events.push(event(&format!(
            "{} {letters} {rwbs} {start}+{sectors}",
            self.now
        )));
        SimTime(self.now)
    }

    fn bio(&mut self, start: u64, end: u64, write: bool) -> Io {
        let time = self.put(Action::Queue, start, end, write);
        let event = self.events.last().expect("just put");
        let io = Live::new(event, Stage::Queued, Origin::Queue).io(event.device, None);
        Io {
            queued: Some(time),
            ..io
        }
    }

    fn submit(&mut self, blocks: u64, write: bool) {
        // Room for others to join after it, so that ranges never overlap.
        let start = self.next_sector;
        self.next_sector += 8 * 300;
        let end = start + 8 * blocks;
        let mut io = self.bio(start, end, write);
        io.got_request = Some(self.put(Action::GetRequest, start, end, write));
        io.inserted = Some(self.put(Action::Insert, start, end, write));
        self.waiting.push(Request {
            bios: vec![io],
            start,
            end,
            write,
        });
    }

    fn join(&mut self, at: Index) {
        let at = at.index(self.waiting.len());
        let Request { end, write, .. } = self.waiting[at];
        let mut io = self.bio(end, end + 8, write);
        io.merged = Some(self.put(Action::BackMerge, end, end + 8, write));
        io.join = Join::Back;
        self.waiting[at].bios.push(io);
        self.waiting[at].end += 8;
    }

    fn issue(&mut self, at: usize) {
        let mut request = self.waiting.remove(at);
        let time = self.put(Action::Issue, request.start, request.end, request.write);
        request
            .bios
            .iter_mut()
            .for_each(|io| io.issued = Some(time));
        self.issued.push(request);
    }

    fn requeue(&mut self, at: Index) {
        let mut request = self.issued.remove(at.index(self.issued.len()));
        self.put(Action::Requeue, request.start, request.end, request.write);
        request.bios.iter_mut().for_each(|io| io.requeues += 1);
        self.waiting.push(request);
    }

    fn complete(&mut self, at: usize) {
        let mut request = self.issued.remove(at);
        let time = self.put(Action::Complete, request.start, request.end, request.write);
        request
            .bios
            .iter_mut()
            .for_each(|io| io.completed = Some(time));
        self.truth.append(&mut request.bios);
    }
}

fn matched(events: &[Event]) -> (Vec<Io>, Warnings) {
    let mut matcher = Matcher::new();
    let mut ios = Vec::new();
    for event in events {
        ios.extend_from_slice(matcher.add(event));
    }
    ios.extend(matcher.finish());
    (ios, matcher.warnings())
}

proptest! {
    #[test]
    fn the_truth_is_found(choices in choices()) {
        let layer = Layer::run(choices);
        let (ios, warnings) = matched(&layer.events);
        prop_assert_eq!(ios, layer.truth);
        prop_assert!(warnings.is_empty());
    }

    /// Two completions swapped, as if the matcher had confused two requests. The comparison with
    /// the truth must fail then, or it proves nothing.
    #[test]
    fn a_wrong_match_is_noticed(choices in choices(), pick in any::<Index>()) {
        let layer = Layer::run(choices);
        let is_complete = |at: &usize| layer.events[*at].action == Action::Complete;
        let at: Vec<usize> = (0..layer.events.len()).filter(is_complete).collect();
        prop_assume!(at.len() >= 2);
        let first = pick.index(at.len() - 1);
        let (one, other) = (at[first], at[first + 1]);
        let mut mutant = layer.events.clone();
        mutant.swap(one, other);
        (mutant[one].time, mutant[other].time) = (mutant[other].time, mutant[one].time);
        let (ios, _) = matched(&mutant);
        prop_assert_ne!(ios, layer.truth);
    }

    /// A missing completion is reported; any other missing event at least changes the result.
    #[test]
    fn a_missing_event_is_noticed(choices in choices(), pick in any::<Index>()) {
        let layer = Layer::run(choices);
        prop_assume!(!layer.events.is_empty());
        let mut mutant = layer.events.clone();
        let missing = mutant.remove(pick.index(layer.events.len()));
        let (ios, warnings) = matched(&mutant);
        prop_assert!(missing.action != Action::Complete || !warnings.is_empty());
        prop_assert_ne!(ios, layer.truth);
    }
}
