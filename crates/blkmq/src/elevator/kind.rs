//! The set of schedulers, and the choice of one: kind, attributes, names.
//!
//! Kernel: block/elevator.c (v6.1, v6.12).

use super::attribute::{Attributes, StoreError, Value};
use super::custom::Custom;
use super::info::{RequestPath, SchedulerInfo};
use super::scheduler::{Now, Scheduler};
use crate::rules::Rules;

/// Generates the kinds, their settings and the groups of their own labels.
macro_rules! kinds {
    ($(
        $(#[$doc:meta])*
        $Kind:ident => $module:ident
        $([$($(#[doc = $said:literal])+ $Group:ident = $($at:ident)::+,)+])?,
    )*) => {
        /// Labels of schedulers that the block layer does not have.
        pub mod labels {
            crate::names::groups! {
                /// Insertion of a list by the January 2024 series.
                SeriesInsert = crate::elevator::series::insert::At,
                /// Dispatch calls of the January 2024 series.
                SeriesDispatch = crate::elevator::series::dispatch::At,
                $($($($(#[doc = $said])+ $Group = crate::elevator::$module::$($at)::+,)+)?)*
            }
        }

        /// The kind of a queue's scheduler.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum SchedulerKind {
            /// No scheduler: requests wait in software queues.
            None,
            $($(#[$doc])* $Kind,)*
            /// A scheduler of the program, with its properties.
            Custom(&'static SchedulerInfo),
        }

        impl SchedulerKind {
            /// Those with a name, `none` first.
            pub const ALL: &'static [SchedulerKind] =
                &[SchedulerKind::None, $(SchedulerKind::$Kind,)*];

            /// Its properties; `none` has none.
            #[inline]
            pub const fn info(self) -> Option<&'static SchedulerInfo> {
                match self {
                    SchedulerKind::None => None,
                    $(SchedulerKind::$Kind => Some(&crate::elevator::$module::INFO),)*
                    SchedulerKind::Custom(info) => Some(info),
                }
            }

            /// The defaults, with so many ticks a second and scheduler tags.
            ///
            /// # Panics
            /// For a scheduler of the program: only the program can create it.
            pub fn defaults(self, hz: u32, nr_requests: u32) -> SchedulerSettings {
                match self {
                    SchedulerKind::None => SchedulerSettings::None,
                    $(SchedulerKind::$Kind => SchedulerSettings::$Kind(
                        crate::elevator::$module::Settings::defaults(hz, nr_requests),
                    ),)*
                    SchedulerKind::Custom(info) => panic!("{} comes from a program", info.name),
                }
            }

            /// Names of attributes with their documentation.
            pub fn attributes(self) -> Vec<(&'static str, &'static str)> {
                match self {
                    SchedulerKind::None | SchedulerKind::Custom(_) => Vec::new(),
                    $(SchedulerKind::$Kind => {
                        let table = crate::elevator::$module::Settings::TABLE.iter();
                        table.map(|a| (a.name, a.about)).collect()
                    })*
                }
            }

            /// The numbers that a write to an attribute takes, if it has one of this name.
            pub fn range(self, name: &str) -> Option<&'static str> {
                match self {
                    SchedulerKind::None | SchedulerKind::Custom(_) => None,
                    $(SchedulerKind::$Kind => {
                        let mut table = crate::elevator::$module::Settings::TABLE.iter();
                        table.find(|a| a.name == name).map(|a| a.store.range())
                    })*
                }
            }
        }

        /// A scheduler with its attributes.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum SchedulerSettings {
            None,
            $($(#[$doc])* $Kind(crate::elevator::$module::Settings),)*
            /// A scheduler of the program, idle.
            Custom(Custom),
        }

        impl SchedulerSettings {
            pub fn kind(&self) -> SchedulerKind {
                match self {
                    SchedulerSettings::None => SchedulerKind::None,
                    $(SchedulerSettings::$Kind(_) => SchedulerKind::$Kind,)*
                    SchedulerSettings::Custom(custom) => SchedulerKind::Custom(custom.info()),
                }
            }

            /// The same with the attributes and defaults of a kernel with these rules, on a
            /// rotational or other drive.
            pub fn of_kernel(mut self, rules: &Rules, rotational: bool) -> SchedulerSettings {
                match &mut self {
                    SchedulerSettings::None | SchedulerSettings::Custom(_) => {}
                    $(SchedulerSettings::$Kind(settings) => settings.follow(rules, rotational),)*
                }
                self
            }

            /// depth_updated was called since the scheduler was chosen.
            pub fn depth_was_updated(&mut self) {
                match self {
                    SchedulerSettings::None | SchedulerSettings::Custom(_) => {}
                    $(SchedulerSettings::$Kind(settings) => settings.depth_was_updated(),)*
                }
            }

            /// The attribute async_depth, if it has one.
            pub(crate) fn async_depth(&self) -> Option<u32> {
                let (_, depth) = self.shown().into_iter().find(|(name, _)| *name == "async_depth")?;
                u32::try_from(depth).ok()
            }

            /// Writes `text` to the attribute `name`, as a write to sysfs would.
            pub fn store(&mut self, name: &str, text: &str) -> Result<(), StoreError> {
                match self {
                    SchedulerSettings::None => Err(StoreError::UnknownAttribute {
                        scheduler: "none",
                        name: name.to_owned(),
                        known: Vec::new(),
                    }),
                    $(SchedulerSettings::$Kind(settings) => settings.store(name, text),)*
                    SchedulerSettings::Custom(custom) => custom.store(name, text, Now::default()),
                }
            }

            /// Names and values of all attributes as sysfs shows them.
            pub fn shown(&self) -> Vec<(&'static str, Value)> {
                match self {
                    SchedulerSettings::None => Vec::new(),
                    $(SchedulerSettings::$Kind(settings) => settings.shown(),)*
                    SchedulerSettings::Custom(custom) => custom.shown(),
                }
            }
        }
    };
}

super::schedulers!(kinds);

impl SchedulerSettings {
    /// The value that a read of attribute `name` shows; none if there is no such attribute.
    pub fn show(&self, name: &str) -> Option<Value> {
        let mut shown = self.shown().into_iter();
        shown
            .find(|&(known, _)| known == name)
            .map(|(_, value)| value)
    }
}

impl SchedulerKind {
    /// The schedulers of single-queue or of blk-mq queues.
    pub fn of_path(single: bool) -> impl Iterator<Item = SchedulerKind> {
        let all = SchedulerKind::ALL.iter().copied();
        all.filter(move |kind| kind.serves(single))
    }

    /// A queue of this kind can have it.
    pub fn serves(self, single: bool) -> bool {
        let path = self
            .info()
            .map_or(RequestPath::MultiQueue, |info| info.path);
        match path {
            RequestPath::MultiQueue => !single,
            RequestPath::SingleQueue => single,
            RequestPath::Any => true,
        }
    }

    /// The name that queue/scheduler shows.
    pub const fn name(self) -> &'static str {
        match self.info() {
            Some(info) => info.name,
            None => "none",
        }
    }

    pub fn by_name(name: &str) -> Option<SchedulerKind> {
        let mut all = SchedulerKind::ALL.iter().copied();
        all.find(|kind| kind.name() == name)
    }

    /// The scheduler without settings, which a queue of this kind falls back on (elevator_init()).
    pub fn plain(single: bool) -> SchedulerKind {
        let mut all = SchedulerKind::of_path(single);
        all.find(|kind| kind.attributes().is_empty())
            .unwrap_or(SchedulerKind::None)
    }

    /// elevator_get_default(): the scheduler that asks for one hctx or one tag map for the whole
    /// device, where that is so; else `none`.
    pub fn default_for(one_queue: bool) -> SchedulerKind {
        let wants = |kind: &SchedulerKind| kind.info().is_some_and(|f| f.default_for_one_queue);
        let mut all = SchedulerKind::ALL.iter().copied();
        let found = all.find(wants).filter(|_| one_queue);
        found.unwrap_or(SchedulerKind::None)
    }
}
