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
