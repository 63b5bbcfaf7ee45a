//! The functions of the schedulers that stop at labels: a search for a merge, an insertion, a
//! dispatch call, a hook. Each runs that of the queue's scheduler.
//!
//! Kernel: block/elevator.h struct elevator_mq_ops (v6.1, v6.12).

use super::hook::After;
use super::shared::Elevator;
use super::{Merged, OwnedByInsert, locked, series};
use crate::call::Hook;
use crate::list::QueueList;
use crate::request::{BioId, HctxId, RequestId};
use crate::step::{Cx, Steps as _, probe};
use steps::steps;

/// Generates the functions, each with an arm for each scheduler.
macro_rules! functions {
    ($($(#[$doc:meta])* $Kind:ident => $module:ident $([$($labels:tt)*])?,)*) => {
        /// bio_merge.
        #[steps]
        pub(crate) fn bio_merge(cx: &mut Cx<'_>, bio: BioId) -> Merged {
            match &cx.q.elevator {
                Elevator::None => Merged::No,
                $(Elevator::$Kind(_) => sub!(crate::elevator::$module::bio_merge(bio)),)*
                Elevator::Custom(_) => sub!(locked::bio_merge(bio)),
            }
        }

        /// insert_requests. True if its last label changed shared state, so that what follows is a
        /// label of its own.
        #[steps]
        pub(crate) fn insert_requests(cx: &mut Cx<'_>, list: QueueList, head: bool) -> bool {
            match &cx.q.elevator {
                Elevator::None => panic!("insertion into a queue without scheduler"),
                $(Elevator::$Kind(_) => {
                    sub!(crate::elevator::$module::insert_requests(list, head))
                })*
                Elevator::Custom(_) => sub!(locked::insert_requests(list, head)),
            }
        }

        /// dispatch_request.
        #[steps]
        pub(crate) fn dispatch_request(cx: &mut Cx<'_>, hctx: HctxId) -> Option<RequestId> {
            probe::ask(cx.q, hctx, cx.cpu);
            let rq: Option<RequestId> = match &cx.q.elevator {
                Elevator::None => panic!("dispatch from a queue without scheduler"),
                $(Elevator::$Kind(_) => sub!(crate::elevator::$module::dispatch_request(hctx)),)*
                Elevator::Custom(_) => sub!(locked::dispatch_request(hctx)),
            };
            probe::answer(cx.q, rq, cx.cpu);
            rq
        }

        /// completed_request, requeue_request, finish_request, exit_icq, or the function of a
        /// timer.
        #[steps]
        pub(crate) fn call_hook(cx: &mut Cx<'_>, hook: Hook) -> After {
            match &cx.q.elevator {
                Elevator::None => panic!("a hook of no scheduler"),
                $(Elevator::$Kind(_) => sub!(crate::elevator::$module::call_hook(hook)),)*
                Elevator::Custom(_) => sub!(locked::call_hook(hook)),
            }
        }

        impl insert_requests::State {
            /// Requests that it still has to insert, if not in buckets.
            fn list(&self) -> QueueList {
                let lists = [
                    self.find::<locked::insert_requests::State>().map(|state| state.list),
                    $(self.find::<crate::elevator::$module::insert_requests::State>()
                        .map(|state| state.list),)*
                ];
                let mut lists = lists.into_iter().flatten();
                lists.find(|list| !list.is_empty()).unwrap_or_default()
            }
        }
    };
}

super::schedulers!(functions);

impl insert_requests::State {
    /// The requests that it holds at this label.
    pub(crate) fn owned(&self) -> OwnedByInsert {
        match self.find::<series::insert::insert_with_buckets::State>() {
            Some(state) => OwnedByInsert {
                list: state.list,
                seq: state.seq,
                bucket: state.bucket,
                filled: state.filled,
            },
            None => OwnedByInsert {
                list: self.list(),
                ..OwnedByInsert::default()
            },
        }
    }
}

impl dispatch_request::State {
    /// The request that was picked, where the label that picks does not return it.
    pub(crate) fn picked(&self) -> Option<RequestId> {
        self.find::<series::dispatch_request::State>()?.rq
    }
}
