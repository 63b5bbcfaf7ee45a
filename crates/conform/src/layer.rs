//! The block layer around the scheduler, as far as it decides when the scheduler is asked: driver
//! tags, budgets, dispatch lists, SCHED_RESTART, the busy average, delayed runs.
//!
//! Not the step machines of `blkmq::path`: here a run is one call, since nothing in a trace tells
//! of its parts, and a decision can be replaced by the kernel's and all that followed made again.
//! Kernel: block/blk-mq-sched.c, block/blk-mq.c blk_mq_dispatch_rq_list() (6.1.192, 6.12.117).

use std::collections::{BTreeSet, VecDeque};

use blkmq::time::{Jiffies, SimTime};

use super::setup::Setup;

/// Number of a decision of the scheduler; the request behind it may be corrected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Token(pub(super) u64);

/// A hardware queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Hctx {
    /// `hctx->dispatch`: chosen, but without driver tag or budget.
    pub(super) dispatch: Vec<Token>,
    /// SCHED_RESTART.
    pub(super) restart: bool,
    /// dispatch_busy.
    pub(super) busy: u32,
    /// `dispatch_wait` stands in line for a shared tag.
    pub(super) waits: bool,
    /// run_work is pending without delay, or somebody is about to run this queue.
    pub(super) kicked: bool,
    /// run_work is pending for this tick.
    pub(super) delayed: Option<Jiffies>,
}

/// Who asks the scheduler and names requests, for a run.
pub(super) trait Asked {
    /// The scheduler has requests, startable or not.
    fn has_work(&self) -> bool;
    /// One dispatch call.
    fn decide(&mut self) -> Option<Token>;
    /// Hardware queue of the request behind a decision.
    fn hctx_of(&self, token: Token) -> usize;
}

/// All hardware queues of one device.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) hctxs: Vec<Hctx>,
    /// Driver tags of each map.
    depth: Vec<u32>,
    /// Tags of each map in use.
    pub(super) used: Vec<u32>,
    /// Tags that other devices of a shared set hold.
    pub(super) foreign: Vec<u32>,
    /// This device draws from the map, and how many others of a shared set do.
    pub(super) active: Vec<bool>,
    pub(super) other_users: Vec<u32>,
    hctx_shared: bool,
    queue_shared: bool,
    budget: Option<u32>,
    budget_used: u32,
    nr_requests: u32,
    hz: u32,
    /// Decisions that hold a driver tag and are not with the driver.
    tagged: BTreeSet<Token>,
    /// Decisions that the driver gets next, in order, with the CPU that hands them over.
    pub(super) expected: VecDeque<(u16, Token)>,
}

/// Tags that every user of a shared set may have, however many there are.
const SHARE_MIN: u32 = 4;

/// blk_mq_update_dispatch_busy().
pub(super) fn average(busy: u32, is_busy: bool) -> u32 {
    if busy == 0 && !is_busy {
        return 0;
    }
    (7 * busy + if is_busy { 16 } else { 0 }) / 8
}

/// When a delay of 3 ms from `now` is over: one tick, and one more because a timer must not be
/// early by any part of the tick it was set in.
fn delay_over(now: SimTime, hz: u32) -> Jiffies {
    now.jiffies(hz) + Jiffies::from_millis(3, hz) + Jiffies(1)
}

impl Layer {
    pub(super) fn new(setup: &Setup) -> Layer {
        let each = setup.hctxs.iter().map(|hctx| hctx.tags);
        let depth: Vec<u32> = if setup.hctx_shared {
            each.take(1).collect()
        } else {
            each.collect()
        };
        Layer {
            hctxs: vec![Hctx::default(); setup.hctxs.len()],
            used: vec![0; depth.len()],
            foreign: vec![0; depth.len()],
            active: vec![false; depth.len()],
            other_users: vec![0; depth.len()],
            depth,
            hctx_shared: setup.hctx_shared,
            queue_shared: setup.queue_shared,
            budget: setup.budget,
            budget_used: 0,
            nr_requests: setup.nr_requests,
            hz: setup.hz,
            tagged: BTreeSet::new(),
            expected: VecDeque::new(),
        }
    }

    fn map(&self, hctx: usize) -> usize {
        if self.hctx_shared { 0 } else { hctx }
    }

    /// A driver tag of this hardware queue is free.
    pub(super) fn tag_free(&self, hctx: usize) -> bool {
        let map = self.map(hctx);
        self.used[map] + self.foreign[map] < self.depth[map] && self.may_have_more(map)
    }

    /// hctx_may_queue(): of a shared set every user has a fair share, at least four tags.
    fn may_have_more(&self, map: usize) -> bool {
        let share = self.depth[map]
            .div_ceil(self.other_users[map] + 1)
            .max(SHARE_MIN);
        !self.queue_shared || self.depth[map] == 1 || self.used[map] < share
    }

    /// blk_mq_get_driver_tag(): who tries is a user of the map from now on.
    fn try_tag(&mut self, hctx: usize) -> bool {
        let map = self.map(hctx);
        self.active[map] = true;
        self.tag_free(hctx)
    }

    /// A tag is taken, free or not.
    pub(super) fn take_tag(&mut self, hctx: usize) {
        let map = self.map(hctx);
        self.active[map] = true;
        self.used[map] += 1;
    }

    /// The device takes one more.
    pub(super) fn budget_free(&self) -> bool {
        self.budget.is_none_or(|budget| self.budget_used < budget)
    }

    /// A request is with the device that the layer did not send there.
    pub(super) fn take_budget(&mut self) {
        self.budget_used += 1;
    }

    /// A request has left the device: its tag and budget are free, and whoever waited is told.
    pub(super) fn put(&mut self, hctx: usize) {
        let map = self.map(hctx);
        self.used[map] = self.used[map].saturating_sub(1);
        self.budget_used = self.budget_used.saturating_sub(1);
        if core::mem::take(&mut self.hctxs[hctx].restart) {
            self.kick(hctx);
        }
        self.wake_one();
        // SCSI runs the queue after each command.
        if self.budget.is_some() {
            for index in 0..self.hctxs.len() {
                if index == hctx || !self.hctxs[index].dispatch.is_empty() {
                    self.kick(index);
                }
            }
        }
    }

    /// A shared tag is free: the first that stands in line is run.
    pub(super) fn wake_one(&mut self) {
        if let Some(waiter) = self.hctxs.iter().position(|hctx| hctx.waits) {
            self.hctxs[waiter].waits = false;
            self.kick(waiter);
        }
    }

    /// The delayed run that is due first.
    pub(super) fn next_delayed(&self) -> Option<(usize, Jiffies)> {
        let due = |(index, hctx): (usize, &Hctx)| Some((index, hctx.delayed?));
        let all = self.hctxs.iter().enumerate().filter_map(due);
        all.min_by_key(|&(_, at)| at)
    }

    /// What this CPU hands to the driver next; unless `strict`, else what any does.
    pub(super) fn first_expected(&self, cpu: u16, strict: bool) -> Option<Token> {
        let own = self.expected.iter().find(|&&(by, _)| by == cpu);
        let any = self.expected.front().filter(|_| !strict);
        own.or(any).map(|&(_, token)| token)
    }

    /// The driver refused a request: it goes to the head of the dispatch list.
    pub(super) fn refused(&mut self, hctx: usize, token: Token, now: SimTime) {
        let map = self.map(hctx);
        self.used[map] = self.used[map].saturating_sub(1);
        self.budget_used = self.budget_used.saturating_sub(1);
        let state = &mut self.hctxs[hctx];
        state.dispatch.insert(0, token);
        state.busy = average(state.busy, true);
        state.delayed = Some(delay_over(now, self.hz));
    }

    /// A decision is about to go to the driver, from whatever CPU.
    pub(super) fn expects(&self, token: Token) -> bool {
        self.expected.iter().any(|&(_, other)| other == token)
    }

    /// A tag and a budget were counted for a decision that was none.
    pub(super) fn give_back(&mut self, hctx: usize) {
        let map = self.map(hctx);
        self.used[map] = self.used[map].saturating_sub(1);
        self.budget_used = self.budget_used.saturating_sub(1);
    }

    /// A decision that was none: what was counted for it is free again.
    pub(super) fn cancel(&mut self, token: Token, hctx: usize) {
        if self.expects(token) {
            self.give_back(hctx);
        } else if self.tagged.remove(&token) {
            let map = self.map(hctx);
            self.used[map] = self.used[map].saturating_sub(1);
        }
        self.withdraw(token);
    }

    /// Two decisions change places.
    pub(super) fn swap(&mut self, one: Token, other: Token) {
        let swapped = |token: Token| match token {
            token if token == one => other,
            token if token == other => one,
            token => token,
        };
        for hctx in &mut self.hctxs {
            for token in &mut hctx.dispatch {
                *token = swapped(*token);
            }
        }
        for (_, token) in &mut self.expected {
            *token = swapped(*token);
        }
        self.tagged = self.tagged.iter().map(|&token| swapped(token)).collect();
    }

    /// A decision is no longer waited for: it left the dispatch list in another way.
    pub(super) fn withdraw(&mut self, token: Token) {
        for hctx in &mut self.hctxs {
            hctx.dispatch.retain(|&other| other != token);
        }
        self.expected.retain(|&(_, other)| other != token);
    }

    /// blk_mq_run_hw_queue(), to happen soon; a delay that was pending is over.
    pub(super) fn kick(&mut self, hctx: usize) {
        self.hctxs[hctx].kicked = true;
        self.hctxs[hctx].delayed = None;
    }

    /// One run of a hardware queue by a CPU.
    pub(super) fn run(&mut self, hctx: usize, cpu: u16, now: SimTime, asked: &mut impl Asked) {
        self.hctxs[hctx].kicked = false;
        for _ in 0..2 {
            let leftovers = core::mem::take(&mut self.hctxs[hctx].dispatch);
            if !leftovers.is_empty() {
                self.hctxs[hctx].restart = true;
                if !self.dispatch_list(hctx, leftovers, false, cpu, now, asked) {
                    return;
                }
            }
            if !self.passes(hctx, cpu, now, asked) {
                return;
            }
        }
        self.kick(hctx);
    }

    /// blk_mq_do_dispatch_sched(): true if the dispatch list filled meanwhile.
    fn passes(&mut self, hctx: usize, cpu: u16, now: SimTime, asked: &mut impl Asked) -> bool {
        loop {
            let most = if self.hctxs[hctx].busy > 0 {
                1
            } else {
                self.nr_requests as usize
            };
            let mut picked: Vec<Token> = Vec::new();
            let (mut withheld, mut again) = (false, false);
            while picked.len() < most && asked.has_work() {
                if !self.hctxs[hctx].dispatch.is_empty() {
                    again = true;
                    break;
                }
                if !self.budget_free() {
                    break;
                }
                let Some(token) = asked.decide() else {
                    withheld = true;
                    break;
                };
                self.budget_used += 1;
                picked.push(token);
                // A request without tag goes along: it will wait for one.
                let own = asked.hctx_of(token);
                if !self.try_tag(own) {
                    break;
                }
                self.take_tag(own);
                self.tagged.insert(token);
            }
            if picked.is_empty() && withheld {
                self.delay_runs(hctx, now);
            }
            let mut moved = false;
            while let Some(&first) = picked.first() {
                let lowest = picked.iter().map(|&token| asked.hctx_of(token)).min();
                let of = lowest.unwrap_or(asked.hctx_of(first));
                let (group, rest) = picked.into_iter().partition(|&t| asked.hctx_of(t) == of);
                picked = rest;
                moved |= self.dispatch_list(of, group, true, cpu, now, asked);
            }
            if again || !moved {
                return again;
            }
        }
    }

    /// blk_mq_dispatch_rq_list(): true if all of it went to the driver, which takes everything.
    fn dispatch_list(
        &mut self,
        hctx: usize,
        list: Vec<Token>,
        mut budgets_held: bool,
        cpu: u16,
        now: SimTime,
        asked: &impl Asked,
    ) -> bool {
        let mut list = VecDeque::from(list);
        let (mut no_tag, mut no_budget) = (false, false);
        while let Some(&token) = list.front() {
            if !budgets_held {
                if !self.budget_free() {
                    no_budget = true;
                    break;
                }
                self.budget_used += 1;
            }
            if !self.tagged.contains(&token) {
                let own = asked.hctx_of(token);
                if !self.try_tag(own) {
                    self.mark_tag_wait(own);
                    self.budget_used -= u32::from(!budgets_held);
                    no_tag = true;
                    break;
                }
                self.take_tag(own);
            }
            self.tagged.remove(&token);
            list.pop_front();
            self.expected.push_back((cpu, token));
        }
        let done = list.is_empty();
        if !done {
            if core::mem::take(&mut budgets_held) {
                self.budget_used = self.budget_used.saturating_sub(list.len() as u32);
            }
            let state = &mut self.hctxs[hctx];
            state.dispatch.extend(list);
            if !state.restart && (!no_tag || !state.waits) {
                self.kick(hctx);
            } else if no_budget {
                state.delayed = Some(delay_over(now, self.hz));
            }
        }
        let state = &mut self.hctxs[hctx];
        state.busy = average(state.busy, !done);
        done
    }

    /// blk_mq_mark_tag_wait(): own tags come back with SCHED_RESTART, shared ones by their wait
    /// queue.
    fn mark_tag_wait(&mut self, hctx: usize) {
        if self.hctx_shared || self.queue_shared {
            self.hctxs[hctx].waits = true;
        } else {
            self.hctxs[hctx].restart = true;
        }
    }

    /// blk_mq_delay_run_hw_queues() where the scheduler orders the whole queue: the CPU's own
    /// hardware queue and those with leftovers.
    fn delay_runs(&mut self, own: usize, now: SimTime) {
        let hz = self.hz;
        for (index, hctx) in self.hctxs.iter_mut().enumerate() {
            let runs = index == own || !hctx.dispatch.is_empty();
            if runs && !hctx.kicked && hctx.delayed.is_none() {
                hctx.delayed = Some(delay_over(now, hz));
            }
        }
    }
}
