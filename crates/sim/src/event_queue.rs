//! Pending events of a run, in the order (time, class, insertion): a hierarchical timing wheel.
//!
//! Not a clock and not a scheduler: it keeps the simulator's events and returns them in order.
//! Slots near the present are one nanosecond wide, so that they need no sorting by time;
//! docs/decisions/0002 says why. Read next: `near.rs` and `far.rs` for the two halves.

mod far;
mod near;
#[cfg(test)]
mod tests;

use blkmq::time::SimTime;

use far::Far;
use near::Near;

/// Nanoseconds to a tick, the step in which events move from the far to the near half: 2^11.
const TICK_SHIFT: u32 = 11;
const NONE: u32 = u32::MAX;

/// Pending events, earliest first; at one time by class, lowest first; within a class as pushed.
///
/// Pushing and popping cost a few nanoseconds, however many events are pending, as long as events
/// of one nanosecond come in the order of their classes; one that does not walks past those before
/// it. Memory grows to the largest number of events ever pending and is then reused.
///
/// Events are never cancelled: an event that may become void carries a generation, and its receiver
/// drops it if that is not the current one.
///
/// Holds up to 16,769,024 events; one more is a panic.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    /// Time of the earliest event, all bits set if there is none.
    next: u64,
    /// Time of the last event popped. No event lies before it.
    now: u64,
    /// First tick that belongs to the far half: always the tick of `now` plus two.
    horizon: u64,
    count: usize,
    nodes: Nodes<E>,
    near: Near,
    far: Far,
}

/// Slab of events; free ones are linked, the one freed last is taken first.
#[derive(Clone, Debug)]
struct Nodes<E> {
    slab: Vec<Node<E>>,
    /// Links of all lists, by cell: first two cells for each near slot with its first node and its
    /// tail, then one for each node with its successor. In one array, so that appending to an empty
    /// list and to another is the same work: the CPU could not predict a branch there.
    links: Vec<u32>,
    free: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node<E> {
    time: u64,
    event: E,
    class: u8,
}

/// A first-in, first-out list of nodes. Its owner knows whether it is empty.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue with room for `capacity` events before it has to grow.
    pub fn with_capacity(capacity: usize) -> EventQueue<E> {
        EventQueue {
            next: u64::MAX,
            now: 0,
            horizon: 2,
            count: 0,
            nodes: Nodes::with_capacity(capacity),
            near: Near::new(),
            far: Far::new(),
        }
    }

    /// Add `event` at `time`. Panics if `time` lies before the last event popped, or is
    /// `SimTime::NEVER`.
    #[inline]
    pub fn push(&mut self, time: SimTime, class: u8, event: E) {
        let time = time.0;
        assert!(
            time >= self.now,
            "event at {time} ns, before the present {} ns",
            self.now
        );
        assert!(time != u64::MAX, "an event that never comes");
        let id = self.nodes.insert(time, class, event);
        let tick = time >> TICK_SHIFT;
        if tick < self.horizon {
            self.near.push(&mut self.nodes, id, time, class);
        } else {
            self.far.push(&mut self.nodes, id, self.horizon);
        }
        self.next = self.next.min(time);
        self.count += 1;
    }

    /// Remove the earliest event and move the present to its time.
    #[inline]
    pub fn pop(&mut self) -> Option<(SimTime, E)> {
        let time = self.next;
        if time == u64::MAX {
            return None;
        }
        if time >> TICK_SHIFT >= self.horizon {
            self.jump(time >> TICK_SHIFT);
        }
        self.now = time;
        let (event, next) = self.near.pop(&mut self.nodes, time);
        self.count -= 1;
        while self.horizon < (time >> TICK_SHIFT) + 2 {
            self.advance();
        }
        self.next = match next {
            Some(next) => next,
            None => self.near.next_from(time).unwrap_or_else(|| self.far.next()),
        };
        Some((SimTime(time), event))
    }

    #[inline]
    pub fn peek_time(&self) -> Option<SimTime> {
        (self.next != u64::MAX).then_some(SimTime(self.next))
    }

    /// Time of the earliest event, `SimTime::NEVER` if there is none.
    #[inline]
    pub fn next_time(&self) -> SimTime {
        SimTime(self.next)
    }

    /// Pending events with their times, in arbitrary order. Walks every node ever used: for
    /// reports.
    pub fn iter(&self) -> impl Iterator<Item = (SimTime, E)> + '_ {
        let mut free = vec![false; self.nodes.slab.len()];
        let mut id = self.nodes.free;
        while let Some(known) = free.get_mut(id as usize) {
            *known = true;
            id = self.nodes.links[cell_of(id)];
        }
        let nodes = self.nodes.slab.iter().zip(free);
        let pending = nodes.filter(|(_, free)| !free);
        pending.map(|(node, _)| (SimTime(node.time), node.event))
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Drop all events and go back to time zero; memory is kept.
    pub fn clear(&mut self) {
        self.next = u64::MAX;
        self.now = 0;
        self.horizon = 2;
        self.count = 0;
        self.nodes.clear();
        self.near.clear();
        self.far.clear();
    }

    /// Move the horizon to `tick`, that of the earliest event, over ticks that hold none.
    #[cold]
    fn jump(&mut self, tick: u64) {
        let list = self.far.enter(self.horizon, tick);
        self.horizon = tick;
        self.spread(list);
        self.advance();
    }

    /// Move the horizon on by one tick.
    fn advance(&mut self) {
        let tick = self.horizon;
        self.horizon = tick + 1;
        if let Some(list) = self.far.take_first(tick) {
            self.spread(list);
        }
        // Entering a block of 64 ticks (of 64^2, 64^3 ...): the events that wait for it as a whole.
        if let Some(list) = self.far.take_block(self.horizon) {
            self.spread(list);
        }
    }

    /// Put the nodes of a list where they belong under the present horizon, in their order.
    fn spread(&mut self, list: List) {
        let mut id = list.head;
        loop {
            let Node { time, class, .. } = self.nodes.slab[id as usize];
            let next = self.nodes.links[cell_of(id)];
            if time >> TICK_SHIFT < self.horizon {
                self.near.push(&mut self.nodes, id, time, class);
            } else {
                self.far.push(&mut self.nodes, id, self.horizon);
            }
            if id == list.tail {
                return;
            }
            id = next;
        }
    }
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> EventQueue<E> {
        EventQueue::with_capacity(0)
    }
}

impl<E: Copy> Nodes<E> {
    fn with_capacity(capacity: usize) -> Nodes<E> {
        let mut links = Vec::with_capacity(cell_of(0) + capacity);
        links.extend(near::empty_slots());
        Nodes {
            slab: Vec::with_capacity(capacity),
            links,
            free: NONE,
        }
    }

    fn clear(&mut self) {
        self.slab.clear();
        self.links.clear();
        self.links.extend(near::empty_slots());
        self.free = NONE;
    }

    #[inline]
    fn insert(&mut self, time: u64, class: u8, event: E) -> u32 {
        let id = self.free;
        // NONE is past every slab.
        if let Some(node) = self.slab.get_mut(id as usize) {
            *node = Node { time, event, class };
            self.free = self.links[cell_of(id)];
            return id;
        }
        self.grow(Node { time, event, class })
    }

    #[cold]
    fn grow(&mut self, node: Node<E>) -> u32 {
        assert!(
            self.links.len() < near::CELLS,
            "more events than a queue can hold"
        );
        self.slab.push(node);
        self.links.push(NONE);
        self.slab.len() as u32 - 1
    }

    #[inline]
    fn remove(&mut self, id: u32) -> E {
        self.links[cell_of(id)] = self.free;
        self.free = id;
        self.slab[id as usize].event
    }
}

/// Where the link of a node is.
#[inline]
const fn cell_of(id: u32) -> usize {
    2 * near::SLOTS + id as usize
}
