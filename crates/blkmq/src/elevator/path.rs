//! The state of a scheduler's part in a path: search for a merge, insertion, dispatch call, hook.

use super::OwnedByInsert;
use super::locked;
use crate::names::Label;
use crate::request::RequestId;

/// Generates the states, each with an arm for each scheduler.
macro_rules! paths {
    ($($(#[$doc:meta])* $Kind:ident => $module:ident $([$($labels:tt)*])?,)*) => {
        /// A search for a merge in progress.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub(crate) enum MergePath {
            #[default]
            Idle,
            $($Kind(crate::elevator::$module::MergePath),)*
            Custom(locked::MergePath),
        }

        impl MergePath {
            /// The next label, if it belongs to the scheduler and not to the caller.
            pub(crate) fn label(self) -> Option<Label> {
                match self {
                    MergePath::Idle => None,
                    $(MergePath::$Kind(path) => path.label(),)*
                    MergePath::Custom(path) => path.label(),
                }
            }
        }

        /// An insertion in progress.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub(crate) enum InsertPath {
            #[default]
            Idle,
            $($Kind(crate::elevator::$module::InsertPath),)*
            Custom(locked::InsertPath),
        }

        impl InsertPath {
            /// The next label, if it belongs to the scheduler and not to the caller.
            pub(crate) fn label(self) -> Option<Label> {
                match self {
                    InsertPath::Idle => None,
                    $(InsertPath::$Kind(path) => path.label(),)*
                    InsertPath::Custom(path) => path.label(),
                }
            }

            /// The requests that it holds at this label; none between two insertions.
            pub(crate) fn owned(self) -> Option<OwnedByInsert> {
                match self {
                    InsertPath::Idle => None,
                    $(InsertPath::$Kind(path) => Some(path.owned()),)*
                    InsertPath::Custom(path) => Some(path.owned()),
                }
            }
        }

        /// A dispatch call in progress.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub(crate) enum DispatchPath {
            #[default]
            Idle,
            $($Kind(crate::elevator::$module::DispatchPath),)*
            Custom(locked::DispatchPath),
        }

        impl DispatchPath {
            /// The next label, if it belongs to the scheduler and not to the caller.
            #[inline]
            pub(crate) fn label(self) -> Option<Label> {
                match self {
                    DispatchPath::Idle => None,
                    $(DispatchPath::$Kind(path) => path.label(),)*
                    DispatchPath::Custom(path) => path.label(),
                }
            }

            /// The request that was picked, until the call returns it.
            pub(crate) fn picked(self) -> Option<RequestId> {
                match self {
                    DispatchPath::Idle => None,
                    $(DispatchPath::$Kind(path) => path.picked(),)*
                    DispatchPath::Custom(path) => path.picked(),
                }
            }
        }

        /// A hook in progress.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub(crate) enum HookPath {
            #[default]
            Idle,
            $($Kind(crate::elevator::$module::HookPath),)*
            Custom(locked::HookPath),
        }

        impl HookPath {
            /// The next label, if it belongs to the scheduler and not to the caller.
            pub(crate) fn label(self) -> Option<Label> {
                match self {
                    HookPath::Idle => None,
                    $(HookPath::$Kind(path) => path.label(),)*
                    HookPath::Custom(path) => path.label(),
                }
            }
        }
    };
}

super::schedulers!(paths);

/// A call of the scheduler's dispatch_request.
pub(crate) mod dispatch_request {
    use super::DispatchPath;
    use crate::request::{HctxId, RequestId};
    use crate::step::{Cx, Label, Steps, Sub, probe};

    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub(crate) struct State {
        pub(crate) call: DispatchPath,
        hctx: HctxId,
    }

    impl State {
        pub(crate) fn new(hctx: HctxId) -> State {
            State {
                call: DispatchPath::Idle,
                hctx,
            }
        }
    }

    impl State {
        /// Notes a label of the scheduler's own.
        fn stop(&self, cx: &mut Cx<'_>) {
            if let Some(label) = self.call.label() {
                cx.stop_at(label);
            }
        }
    }

    impl Steps for State {
        type Done = Option<RequestId>;

        #[inline]
        fn step(&mut self, cx: &mut Cx<'_>) -> Sub<Option<RequestId>> {
            if self.call == DispatchPath::Idle {
                probe::ask(cx.q, self.hctx, cx.cpu);
                let (call, next) = cx.q.elevator.start_dispatch(cx.q, self.hctx, cx.cpu);
                self.call = call;
                self.stop(cx);
                return Sub::Wait(next);
            }
            let step = cx.q.elevator.dispatch(&mut self.call, cx.q, cx.cpu);
            match step {
                Sub::Wait(_) => self.stop(cx),
                Sub::Done(rq) => probe::answer(cx.q, rq, cx.cpu),
            }
            step
        }

        #[inline]
        fn label(&self) -> Option<Label> {
            self.call.label()
        }
    }
}

/// Calls of the scheduler's insert_requests, until the list is empty. True if its last label
/// changed shared state, so that the next step is a label of its own.
pub(crate) mod insert_requests {
    use super::InsertPath;
    use crate::list::QueueList;
    use crate::step::{Cx, Label, Steps, Sub};

    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub(crate) struct State {
        pub(crate) call: InsertPath,
        list: QueueList,
        head: bool,
    }

    impl State {
        pub(crate) fn new(list: QueueList, head: bool) -> State {
            State {
                call: InsertPath::Idle,
                list,
                head,
            }
        }

        /// Notes a label of the scheduler's own.
        fn stop(&self, cx: &mut Cx<'_>) {
            if let Some(label) = self.call.label() {
                cx.stop_at(label);
            }
        }
    }

    impl Steps for State {
        type Done = bool;

        #[inline]
        fn step(&mut self, cx: &mut Cx<'_>) -> Sub<bool> {
            if self.call == InsertPath::Idle {
                let list = core::mem::take(&mut self.list);
                let (call, next) = cx.q.elevator.start_insert(cx.q, list, self.head);
                (self.call, self.head) = (call, false);
                self.stop(cx);
                return Sub::Wait(next);
            }
            let step = cx.q.elevator.insert(&mut self.call, cx.q, cx.cpu);
            if let Sub::Wait(_) = step {
                self.stop(cx);
            }
            step
        }

        #[inline]
        fn label(&self) -> Option<Label> {
            self.call.label()
        }
    }
}
