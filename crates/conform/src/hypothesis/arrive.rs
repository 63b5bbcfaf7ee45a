//! Arrivals: from Q to the scheduler, or to the software queue.
//!
//! Q begins the path of a bio, and each later record of it must show there. Between them a bio is
//! cut (`cut.rs`), takes a tag (`tag.rs`) and may wait in a plug (`plug.rs`).

use blkmq::env::{TraceAction, TracePoint};
use blkmq::path::{Frame, SubmitPath};
use blkmq::request::{Bio, BioId, QueueId};

use super::{Hypotheses, Hypothesis};
use crate::event::Event;
use crate::kernel::Entry;
use crate::submitters::io_context_of;
use crate::world::{Goal, Stop};

impl Hypotheses<'_> {
    /// Q: a bio enters.
    pub(super) fn queue(&self, state: &mut Hypothesis, index: usize) {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        self.start_plug_clock(state, index);
        let task = self.at(state, index);
        if !Self::finish(state, task) {
            self.lose(state, index, "a task went on where its path would not");
        }
        let Some(bio) = self.add_bio(state, index) else {
            return self.lose(state, index, "more bios at once than were submitted");
        };
        self.begin_cuts(state, index);
        let submit = SubmitPath::new(queue, bio);
        state.world.begin(task, Frame::Submit(submit));
        let shown = self.shows(state, task, index, TraceAction::Queue);
        if shown {
            self.allocate(state, index);
        }
        if !shown {
            // A flush that means nothing ends before its Q.
            let ended = state.world.actors[task].stop == Stop::Idle && event.sectors.0 == 0;
            if !ended {
                self.lose(state, index, "the model would not have taken a bio");
            }
        }
    }

    fn add_bio(&self, state: &mut Hypothesis, index: usize) -> Option<BioId> {
        let event = &self.stream.events[index];
        let mut bio = bio_of(event);
        bio.ioprio = self.stream.ioprio[index].unwrap_or_default();
        bio.io_context = io_context_of(self.stream.context[self.stream.task[index]]);
        bio.group = self.stream.group[index];
        bio.flags.nowait = self.stream.would_block[index];
        let q = state.world.mq.queue(self.stream.queue[index]);
        q.with_pool(|pool| pool.add_bio(bio))
    }

    /// G: the bio has a request of its own.
    pub(super) fn get(&self, state: &mut Hypothesis, index: usize) {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let ioprio = event.ioprio.unwrap_or_default();
        state.kernels[queue.index()].open(event, ioprio);
        let task = self.at(state, index);
        let at_g = |point: &TracePoint| point.action == TraceAction::GetRq;
        if !state.world.actors[task].shown.iter().any(at_g) {
            self.begin_plug(state, index);
            if !self.calls && !state.world.actors[task].is_lost() {
                self.go_to_tag(state, index);
            }
        }
        if state.world.actors[task].is_lost() {
            return;
        }
        if !self.shows(state, task, index, TraceAction::GetRq) && !self.gets_other(state, index) {
            self.lose(state, index, "the model would not have allocated a request");
        }
        state.tag_denied[task] = false;
        self.go_on(state, index);
        // An insertion by the flush machine has no record (v6.1), and a run by another task may be
        // the first to see the request.
        let frames = state.world.actors[task].stack.frames();
        if matches!(frames, [.., Frame::Flush(_), Frame::Insert(_)]) {
            state.world.go(task, Goal::BeforeRun);
        }
    }

    /// M or F of a bio: in the plug, in the scheduler, or in the software queue.
    pub(super) fn bio_merge(
        &self,
        state: &mut Hypothesis,
        index: usize,
        front: bool,
    ) -> Result<(), String> {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let before = state.kernels[queue.index()].merge(event, front)?;
        let task = self.at(state, index);
        if before.is_none() {
            Self::note(state, "a bio merged with nothing that the trace shows");
        }
        let action = match front {
            true => TraceAction::FrontMerge,
            false => TraceAction::BackMerge,
        };
        if !state.world.actors[task].is_lost() {
            if self.shows(state, task, index, action) {
                return Ok(());
            }
            self.lose(state, index, "the model would not have merged a bio");
        }
        if let Some(before) = before {
            self.grow(state, queue, &before, event, front);
        }
        Ok(())
    }

    /// I: in the scheduler, or in a software queue.
    pub(super) fn insert(&self, state: &mut Hypothesis, index: usize) {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let known = state.arriving.remove(&event.cpu);
        let known = known.map(|(address, ioprio, _)| (address, ioprio));
        let entry = state.kernels[queue.index()].insert(event, known);
        let task = self.at(state, index);
        let late = self.works_off_list(state, index);
        let lost = state.world.actors[task].is_lost();
        let shown = !lost && self.shows(state, task, index, TraceAction::Insert);
        Self::list_again(state, queue, late);
        if shown {
            self.move_tick(state, queue, task, &entry);
            return self.go_on(state, index);
        }
        if !lost {
            self.lose(state, index, "the model would not have inserted a request");
        }
        self.put_in(state, queue, &entry, event);
        self.go_on(state, index);
    }

    /// A list is inserted in one label, of which the tick may have been over before its end.
    fn move_tick(&self, state: &mut Hypothesis, queue: QueueId, task: usize, entry: &Entry) {
        let hz = self.setups[0].hz;
        let cpu = &state.world.actors[task].cpu;
        let (then, now) = (cpu.traced_at.jiffies(hz), cpu.now().jiffies(hz));
        if now > then
            && let Some(rq) = Self::held(state, queue, entry)
        {
            let q = state.world.mq.queue(queue);
            q.with_pool(|pool| pool[rq].fifo_time = pool[rq].fifo_time + (now - then));
        }
    }

    /// M of a request: one that was just allocated, or one that its neighbour absorbed.
    pub(super) fn request_merge(&self, state: &mut Hypothesis, index: usize) -> Result<(), String> {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        state.arriving.remove(&event.cpu);
        if !state.kernels[queue.index()].absorb(event)? {
            Self::note(state, "a request merged with nothing that the trace shows");
            state.differs[queue.index()] = true;
        }
        let task = self.at(state, index);
        if !state.world.actors[task].is_lost() {
            if self.shows(state, task, index, TraceAction::BackMerge) {
                self.go_on(state, index);
                return Ok(());
            }
            let what = "the model would not have merged two requests";
            self.lose(state, index, what);
        }
        state.differs[queue.index()] = true;
        Ok(())
    }
}

/// A bio as an event shows it, one segment long: how many it has is not recorded.
pub(super) fn bio_of(event: &Event) -> Bio {
    let mut bio = Bio::default();
    bio.op = event.op;
    bio.flags = event.flags;
    bio.sector = event.sector;
    bio.sectors = event.sectors;
    bio.segments = 1;
    bio.ioprio = event.ioprio.unwrap_or_default();
    bio
}
