//! Arrivals: from Q to the scheduler, or to the software queue.

use blkmq::env::{TraceAction, TracePoint};
use blkmq::path::label::Submit;
use blkmq::path::{Frame, PlugPath, SubmitPath, Unplug};
use blkmq::request::{Bio, QueueId};
use blkmq::rules::LonePlug;

use super::{Follow, State};
use crate::event::{Event, Kind};
use crate::kernel::Entry;
use crate::submitters::io_context_of;
use crate::world::{Goal, Hint, Stop};

/// The capture's task waited.
const WAITED: &str = "a task waited for a tag where the model has one";

impl Follow<'_> {
    /// Q: a bio enters.
    pub(super) fn queue(&self, state: &mut State, index: usize) {
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
        if shown && !self.calls {
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

    /// Behind its Q, what cannot wait for the next event of its task: it may not wait, or stands in
    /// line for a tag on a CPU that it leaves.
    fn allocate(&self, state: &mut State, index: usize) {
        match self.stream.waited[index] {
            Some(get) => self.wait(state, index, get),
            _ if self.stream.would_block[index] => self.would_block(state, index),
            _ => {}
        }
    }

    /// There was no tag. The model may have one: a tag is free a while after the C that tells of
    /// it. Then the search comes with the G.
    fn wait(&self, state: &mut State, index: usize, get: usize) {
        let task = self.stream.task[index];
        let before = state.world.clone();
        let next = self.stream.next[index].map(|next| self.stream.events[next].kind);
        let shows = matches!(next, Some(Kind::Issue | Kind::Requeue));
        let hint = self.hint(index);
        state.world.actors[task].hint = hint;
        self.begin_plug(state, get);
        self.go_to_tag(state, get);
        if matches!(state.world.actors[task].stop, Stop::Offer(_)) && !shows {
            state.world = before.clone();
            self.begin_plug(state, get);
            state.world.actors[task].hint = Hint::Nothing;
            self.go_to_tag(state, get);
            state.world.actors[task].hint = hint;
        }
        let found = |point: &TracePoint| point.action == TraceAction::GetRq;
        let elsewhere = self.stream.events[get].cpu != self.stream.events[index].cpu;
        if !elsewhere && state.world.actors[task].shown.iter().any(found) {
            state.world = before;
            Self::note(state, WAITED);
        }
    }

    /// The task of a G goes to its tag.
    fn go_to_tag(&self, state: &mut State, get: usize) {
        let (task, queue) = (self.stream.task[get], self.stream.queue[get].index());
        // Tags that were taken together are not limited as single ones are, and how many were is
        // not recorded. A task that waits lets go of its plug first.
        let plugged = !state.world.actors[task].cpu.plug.list.is_empty();
        let before = state.world.mq.queues[queue].settings.nr_requests;
        if plugged && self.stream.announces[task] > 1 {
            state.world.mq.queues[queue].settings.nr_requests = 1;
        }
        state.world.go(task, Goal::Show);
        state.world.mq.queues[queue].settings.nr_requests = before;
    }

    /// There was no tag for a bio that must not wait. The model may have one: a tag is free a while
    /// after the C that tells of it. Then the bio ends all the same.
    fn would_block(&self, state: &mut State, index: usize) {
        let (task, queue) = (self.stream.task[index], self.stream.queue[index]);
        let before = state.world.clone();
        state.world.go(task, Goal::Show);
        let ends = |point: &TracePoint| point.action == TraceAction::Complete;
        if state.world.actors[task].shown.iter().any(ends) {
            return;
        }
        state.world = before;
        let actor = &state.world.actors[task];
        if let Some(Frame::Submit(path)) = actor.stack.last() {
            let bio = path.bio();
            state
                .world
                .mq
                .queue(queue)
                .with_pool(|pool| pool.free_bio(bio));
        }
        state.world.drop_paths(task);
    }

    /// Whether a request goes into a plug is what the event behind its G tells.
    fn begin_plug(&self, state: &mut State, get: usize) {
        let next = self.follows(get, Kind::Plug);
        let lone = next.is_some_and(|plug| self.is_lone(plug));
        let plug = &mut state.world.actors[self.stream.task[get]].cpu.plug;
        if plug.list.is_empty() {
            plug.active = false;
            if next.is_some() && !lone {
                plug.start(self.stream.announces[self.stream.task[get]]);
            }
        }
    }

    /// A plug for one bio, or one part of it, which its path begins and ends by itself.
    fn is_lone(&self, plug: usize) -> bool {
        let rules = &self.setups[self.stream.queue[plug].index()].rules;
        let lets_go = Kind::Unplug {
            count: 1,
            sleeps: false,
        };
        rules.lone_plug == LonePlug::EachBio && self.follows(plug, lets_go).is_some()
    }

    /// What the task of an event does next, if it is this.
    fn follows(&self, index: usize, kind: Kind) -> Option<usize> {
        let next = self.stream.next[index];
        next.filter(|&next| self.stream.events[next].kind == kind)
    }

    /// A line of the scheduler's log that the model has not come to: its task goes on until it says
    /// something. An interrupt may come between that and the next record of the task.
    pub(super) fn line(&self, state: &mut State, index: usize) {
        let task = self.stream.task[index];
        let actor = &state.world.actors[task];
        let goes = matches!(actor.stop, Stop::Later | Stop::Shown);
        let stands = actor.stack.is_empty() || !actor.shown.is_empty() || !goes;
        if stands || state.coming(self.stream.queue[index]) != self.number_of(index) {
            return;
        }
        let next = self.stream.next[index];
        let get = next.filter(|&next| self.stream.events[next].kind == Kind::Get);
        let submits = matches!(actor.stack.last(), Some(Frame::Submit(_)));
        self.at(state, index);
        if let Some(get) = get.filter(|_| submits) {
            self.begin_plug(state, get);
        }
        state.world.go(task, Goal::Say);
    }

    /// The first bio of a plug: its task has just read the clock (bio_issue_init()), and goes on
    /// with that time until the plug is let go.
    fn start_plug_clock(&self, state: &mut State, index: usize) {
        let (task, queue) = (self.stream.task[index], self.stream.queue[index]);
        if !self.setups[queue.index()].rules.plug_keeps_time || self.stream.logs.is_empty() {
            return;
        }
        let get = self.follows(index, Kind::Get);
        let starts = get.and_then(|get| self.follows(get, Kind::Plug));
        if starts.is_some() {
            state.plugged[task] = Some(self.measured(self.stream.events[index].time));
        } else if state.world.actors[task].cpu.plug.list.is_empty() {
            state.plugged[task] = None;
        }
    }

    fn add_bio(&self, state: &mut State, index: usize) -> Option<blkmq::request::BioId> {
        let event = &self.stream.events[index];
        let mut bio = bio_of(event);
        bio.ioprio = self.stream.ioprio[index].unwrap_or_default();
        bio.io_context = io_context_of(self.stream.task[index]);
        bio.group = self.stream.of_root[index].then_some(0);
        bio.flags.nowait = self.stream.would_block[index];
        let q = state.world.mq.queue(self.stream.queue[index]);
        q.with_pool(|pool| pool.add_bio(bio))
    }

    /// X: the front part goes on.
    pub(super) fn split(&self, state: &mut State, index: usize) {
        let task = self.at(state, index);
        self.show_split(state, index);
        self.next_cut(state, task, index);
    }

    fn show_split(&self, state: &mut State, index: usize) {
        let task = self.stream.task[index];
        // The trace has the length of the part in one format and of the whole in the other.
        let queue = self.stream.queue[index];
        for _ in 0..2 {
            let shown = &mut state.world.actors[task].shown;
            let is_cut = |p: &TracePoint| p.action == TraceAction::Split && p.queue == queue;
            if let Some(at) = shown.iter().position(is_cut) {
                shown.remove(at);
                return;
            }
            let rest = state.world.actors[task].stack.is_empty();
            if rest || !state.world.actors[task].shown.is_empty() {
                return;
            }
            state.world.go(task, Goal::Show);
        }
    }

    /// G: the bio has a request of its own.
    pub(super) fn get(&self, state: &mut State, index: usize) {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let ioprio = event.ioprio.unwrap_or_default();
        state.kernels[queue.index()].open(event, ioprio);
        let task = self.at(state, index);
        state.world.moved(task);
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
        state.denied[task] = false;
        self.go_on(state, index);
    }

    /// A task waits for a tag: does the model have one? A tag is taken a while before the G that
    /// tells of it, and when a task was woken and looked again is not recorded: with several CPUs
    /// nothing follows from a tag that is free.
    pub(in super::super) fn deny(&self, state: &mut State, index: usize) {
        let task = self.stream.task[index];
        let Some(frame @ Frame::Submit(_)) = state.world.actors[task].stack.last() else {
            return;
        };
        let again = frame.label() == Submit::WaitRetry.label();
        let decidable = self.stream.cpus == 1 && !state.denied[task];
        if decidable && Self::finds_tag(state, task) {
            state.denied[task] = true;
            if !again {
                Self::note(state, WAITED);
            }
        }
    }

    /// A task that goes on from here finds a tag.
    fn finds_tag(state: &mut State, task: usize) -> bool {
        let before = state.world.clone();
        state.world.go(task, Goal::Show);
        let found = |point: &TracePoint| point.action == TraceAction::GetRq;
        let finds = state.world.actors[task].shown.iter().any(found);
        state.world = before;
        finds
    }

    /// A task that found no tag before finds one now. Which tags are taken depends on more than the
    /// records tell, and so does whether there is one below the limit of an asynchronous operation.
    /// The kernel found one: so does the model, above the limit. That is told where tasks take tags
    /// when the model's do.
    fn gets_other(&self, state: &mut State, index: usize) -> bool {
        let task = self.stream.task[index];
        let in_order = !self.calls || self.stream.cpus == 1;
        for limited in [true, false] {
            let found = state.world.look_again(task, limited)
                && self.shows(state, task, index, TraceAction::GetRq);
            if found && !limited && !state.denied[task] && in_order {
                let what = "a request has a tag above the limit of its operation";
                Self::note(state, what);
            }
            if found {
                return true;
            }
        }
        false
    }

    /// P.
    pub(super) fn plug(&self, state: &mut State, index: usize) {
        let task = self.at(state, index);
        if !state.world.actors[task].is_lost() {
            self.shows(state, task, index, TraceAction::Plug);
        }
    }

    /// U or UT: the plug is let go. The model may have begun that by itself: the plug is full, or
    /// the task sleeps for a tag.
    pub(super) fn unplug(&self, state: &mut State, index: usize, sleeps: bool) {
        let task = self.at(state, index);
        if !Self::shows_unplug(state, task) {
            let plug = &state.world.actors[task].cpu.plug;
            let queue = plug.queue();
            if plug.list.is_empty() || !state.world.actors[task].is_lost() {
                return;
            }
            let why = match sleeps {
                true => Unplug::Schedule,
                false => Unplug::Finish,
            };
            let path = PlugPath::unplug(queue, why);
            state.world.begin(task, Frame::Plug(path));
            Self::shows_unplug(state, task);
            state.world.actors[task].cpu.plug.active = false;
        }
        self.go_on(state, index);
    }

    /// What is under way comes to where the plug is let go.
    fn shows_unplug(state: &mut State, task: usize) -> bool {
        for _ in 0..super::STOPS_MOST {
            let shown = &mut state.world.actors[task].shown;
            let unplugs = |action| matches!(action, TraceAction::Unplug | TraceAction::UnplugTimer);
            if let Some(at) = shown.iter().position(|point| unplugs(point.action)) {
                shown.remove(at);
                return true;
            }
            if !shown.is_empty() {
                return false;
            }
            match state.world.go(task, Goal::Show) {
                Stop::Shown | Stop::Later => {}
                Stop::Idle | Stop::Parked | Stop::Offer(_) | Stop::Pick => return false,
            }
        }
        false
    }

    /// M or F of a bio: in the plug, in the scheduler, or in the software queue.
    pub(super) fn bio_merge(
        &self,
        state: &mut State,
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
    pub(super) fn insert(&self, state: &mut State, index: usize) {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let known = state.arriving.remove(&event.cpu);
        let known = known.map(|(address, ioprio, _)| (address, ioprio));
        let entry = state.kernels[queue.index()].insert(event, known);
        let task = self.at(state, index);
        if !state.world.actors[task].is_lost() {
            if self.shows(state, task, index, TraceAction::Insert) {
                self.move_tick(state, queue, task, &entry);
                return self.go_on(state, index);
            }
            self.lose(state, index, "the model would not have inserted a request");
        }
        self.put_in(state, queue, &entry, event);
        self.go_on(state, index);
    }

    /// A list is inserted in one label, of which the tick may have been over before its end.
    fn move_tick(&self, state: &mut State, queue: QueueId, task: usize, entry: &Entry) {
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

    /// M of a request: one that was just allocated, or one that its neighbour swallowed.
    pub(super) fn request_merge(&self, state: &mut State, index: usize) -> Result<(), String> {
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
