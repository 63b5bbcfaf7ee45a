//! The block layer as a value, for the explorer: copied, compared and hashed.
//!
//! Only state that changes in a run is compared; sizes and settings come from the configuration.

/// `Clone`, `PartialEq`, `Eq` and `Hash` of a structure with shared words or locks; none of these
/// for loom's words. Fields before the semicolon are only copied. `clone_from` reuses allocations,
/// which a derived one does not: both values must have been created from one configuration, and
/// copies of cache lines stay as they were; if the method after `made for` returns different values
/// for the two, a whole copy is made. A field that is missing here does not compile.
macro_rules! value {
    (
        $name:ident $(of $P:ident: $bound:path)? { $($constant:ident),*; $($state:ident),* }
        $(made for $made_for:ident)?
    ) => {
        #[cfg(not(loom))]
        impl$(<$P: $bound + Clone + 'static>)? Clone for $name$(<$P>)? {
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

        #[cfg(not(loom))]
        impl$(<$P: $bound + PartialEq + 'static>)? PartialEq for $name$(<$P>)? {
            fn eq(&self, other: &Self) -> bool {
                $(self.$state == other.$state)&&*
            }
        }

        #[cfg(not(loom))]
        impl$(<$P: $bound + Eq + 'static>)? Eq for $name$(<$P>)? {}

        #[cfg(not(loom))]
        impl$(<$P: $bound + core::hash::Hash + 'static>)? core::hash::Hash
            for $name$(<$P>)?
        {
            fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
                $(self.$state.hash(state);)*
            }
        }
    };
}

pub(crate) use value;
