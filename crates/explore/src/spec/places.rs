//! The place of a path between two actions, named as the action that follows.

use blkmq::path::Label;
use blkmq::schedule::labels::LabelTable;

/// An enum of places, one for each action that a path takes, and `ACTIONS`: their names, then those
/// of actions that no path takes.
macro_rules! places {
    ($(#[$doc:meta])* $at:ident { $($place:ident)* } + { $($other:ident)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub(super) enum $at {
            $($place,)*
        }

        pub(super) const ACTIONS: &[&str] = &[
            $(stringify!($place),)*
            $(stringify!($other),)*
        ];

        impl $at {
            const ALL: &[$at] = &[$($at::$place,)*];

            /// The place whose action has this name.
            pub(super) fn named(name: &str) -> Option<$at> {
                $at::ALL.iter().copied().find(|at| at.name() == name)
            }

            pub(super) const fn name(self) -> &'static str {
                ACTIONS[self as usize]
            }
        }
    };
}
pub(crate) use places;

/// The place at each label: where an action of the table begins.
pub(crate) fn by_label<T>(
    table: &LabelTable,
    named: impl Fn(&str) -> Option<T>,
) -> [Option<T>; Label::COUNT] {
    let mut places = [const { None }; Label::COUNT];
    for label in Label::all() {
        places[usize::from(label.0)] = table.row(label).action.and_then(&named);
    }
    places
}
