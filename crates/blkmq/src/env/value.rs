//! The block layer under `Solo` as a value, for the explorer: copied, compared and hashed.
//!
//! Compared is what changes while it runs; sizes and settings come from the configuration.

/// `Clone`, `PartialEq`, `Eq` and `Hash` of a structure over `Env`, for `Solo`. Fields before the
/// semicolon are only copied. `clone_from` reuses what is there: both must have been made from one
/// configuration, and copies of cache lines stay what they were; where `made for` names a method
/// whose answers differ, a whole copy is made. A derive would have to name the
/// bounds of every field's fields; a field that is missing here does not compile.
macro_rules! solo_value {
    (
        $name:ident $(of $P:ident: $bound:path)? { $($constant:ident),*; $($state:ident),* }
        $(made for $made_for:ident)?
    ) => {
        impl$(<$P: $bound + Clone + 'static>)? Clone for $name<$crate::env::Solo $(, $P)?> {
            fn clone(&self) -> Self {
                let $name { $($constant,)* $($state,)* } = self;
                $name { $($constant: $constant.clone(),)* $($state: $state.clone(),)* }
            }

            fn clone_from(&mut self, source: &Self) {
                $(if self.$made_for() != source.$made_for() {
                    *self = source.clone();
                    return;
                })?
                $(debug_assert!(self.$constant == source.$constant, "another configuration");)*
                $(self.$state.clone_from(&source.$state);)*
            }
        }

        impl$(<$P: $bound + PartialEq + 'static>)? PartialEq for $name<$crate::env::Solo $(, $P)?> {
            fn eq(&self, other: &Self) -> bool {
                $(self.$state == other.$state)&&*
            }
        }

        impl$(<$P: $bound + Eq + 'static>)? Eq for $name<$crate::env::Solo $(, $P)?> {}

        impl$(<$P: $bound + core::hash::Hash + 'static>)? core::hash::Hash
            for $name<$crate::env::Solo $(, $P)?>
        {
            fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
                $(self.$state.hash(state);)*
            }
        }
    };
}

pub(crate) use solo_value;

/// A value beside the state, like a time or a count of work: neither compared nor hashed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aside<T>(pub T);

impl<T> PartialEq for Aside<T> {
    fn eq(&self, _other: &Aside<T>) -> bool {
        true
    }
}

impl<T> Eq for Aside<T> {}

impl<T> core::hash::Hash for Aside<T> {
    fn hash<H: core::hash::Hasher>(&self, _state: &mut H) {}
}
