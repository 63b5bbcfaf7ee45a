//! The state of a scheduler's part in a path: look for a merge, insertion, dispatch call, hook.

use super::OwnedByInsert;
use super::locked;
use crate::path::Label;
use crate::request::RequestId;

/// Generates the states, each with an arm for each scheduler.
macro_rules! paths {
    ($($(#[$doc:meta])* $Kind:ident => $module:ident $([$($labels:tt)*])?,)*) => {
        /// A look for a merge under way.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub(crate) enum MergePath {
            /// None.
            #[default]
            Idle,
            $($Kind(crate::elevator::$module::MergePath),)*
            Custom(locked::MergePath),
        }

        impl MergePath {
            /// The next label, if it is the scheduler's own and not that of the caller.
            pub(crate) fn label(self) -> Option<Label> {
                match self {
                    MergePath::Idle => None,
                    $(MergePath::$Kind(path) => path.label(),)*
                    MergePath::Custom(path) => path.label(),
                }
            }
        }

        /// An insertion under way.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub(crate) enum InsertPath {
            /// None.
            #[default]
            Idle,
            $($Kind(crate::elevator::$module::InsertPath),)*
            Custom(locked::InsertPath),
        }

        impl InsertPath {
            /// The next label, if it is the scheduler's own and not that of the caller.
            pub(crate) fn label(self) -> Option<Label> {
                match self {
                    InsertPath::Idle => None,
                    $(InsertPath::$Kind(path) => path.label(),)*
                    InsertPath::Custom(path) => path.label(),
                }
            }

            /// What it holds at this label; nothing between two insertions.
            pub(crate) fn owned(self) -> Option<OwnedByInsert> {
                match self {
                    InsertPath::Idle => None,
                    $(InsertPath::$Kind(path) => Some(path.owned()),)*
                    InsertPath::Custom(path) => Some(path.owned()),
                }
            }
        }

        /// A dispatch call under way.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub(crate) enum DispatchPath {
            /// None.
            #[default]
            Idle,
            $($Kind(crate::elevator::$module::DispatchPath),)*
            Custom(locked::DispatchPath),
        }

        impl DispatchPath {
            /// The next label, if it is the scheduler's own and not that of the caller.
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

        /// A hook under way.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub(crate) enum HookPath {
            /// None.
            #[default]
            Idle,
            $($Kind(crate::elevator::$module::HookPath),)*
            Custom(locked::HookPath),
        }

        impl HookPath {
            /// The next label, if it is the scheduler's own and not that of the caller.
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
