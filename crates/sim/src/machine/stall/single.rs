//! Stall report of a queue of the single-queue kind: its plug, its driver's list, and tasks that
//! wait for a request.

use blkmq::queue::{Kind, RequestQueue};
use blkmq::request::CpuId;

use super::View;
use crate::machine::task::TaskId;

/// Its state, unless it is quiet. `disk`: its name with a space, if there are several.
pub(super) fn state_of(queue: &RequestQueue, disk: &str) -> Option<String> {
    let single = queue.single.as_ref()?;
    let state = single.state.held(CpuId(0));
    let (listed, with_driver) = (state.driver_list.len(), state.with_driver());
    let quiet = state.limits.allocated() == 0;
    let plugged = match single.plugged.peek() {
        true => "PLUGGED, and no task unplugs it",
        false => "not plugged",
    };
    let stopped = match (single.stopped.peek(), queue.mapped.is_some()) {
        (true, true) => "STOPPED by a suspension, ",
        (true, false) => "STOPPED by its driver, ",
        (false, _) => "",
    };
    let runs = if state.runs {
        "in the driver's function, "
    } else {
        ""
    };
    let [not, sync] = state.limits.count;
    (!quiet).then(|| {
        format!(
            "{disk}queue: {plugged}, {stopped}{runs}{listed} requests on the driver's list, \
             {with_driver} with the driver; allocated: {sync} sync, {not} async"
        )
    })
}

impl View<'_> {
    /// Tasks that sleep for a request of a queue.
    pub(super) fn request_waits_of(&self, queue: &RequestQueue) -> Vec<String> {
        let Some(single) = &queue.single else {
            return Vec::new();
        };
        let state = single.state.held(CpuId(0));
        let name = self.layer.name(queue.id);
        let disk = name.map_or(String::new(), |name| format!(" of {name}"));
        let of_kind = |(kind, name): (Kind, &'static str)| {
            let count = state.limits.count[kind as usize];
            let waiting = state.limits.waiting(kind).iter();
            let texts = waiting.map(|task| {
                let who = self.who(TaskId(task.0));
                format!("{who} waits for a request{disk}: {count} {name} ones are allocated")
            });
            texts.collect::<Vec<String>>()
        };
        let kinds = [(Kind::Sync, "sync"), (Kind::Async, "async")];
        kinds.into_iter().flat_map(of_kind).collect()
    }
}
