//! Names of steps, spelt at compile time out of the variants of an enum, and the labels among them,
//! which have numbers.

/// Implemented by [`stages!`] for an enum.
pub(crate) trait Group: Copy {
    const NAME: &'static str;
    /// Names of the steps with that of the group, in order.
    const NAMES: &'static [&'static str];
}

/// Declares steps that have names and no numbers: an enum and the names of its variants.
macro_rules! stages {
    // Those that functions with `#[steps(stages)]` declare.
    ($vis:vis enum $At:ident in $group:literal of $first:ident $($rest:ident)*) => {
        $first! { [stages $vis $At $group] [] $($rest)* }
    };
    (
        $(#[$meta:meta])*
        $vis:vis enum $At:ident in $group:literal {
            $($(#[doc = $doc:literal])+ $variant:ident,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        $vis enum $At { $($(#[doc = $doc])+ $variant,)+ }

        impl $crate::names::Group for $At {
            const NAME: &'static str = $group;
            const NAMES: &'static [&'static str] = &[$({
                const LEN: usize = $crate::names::length($group, stringify!($variant));
                const NAME: [u8; LEN] =
                    $crate::names::spell($group, stringify!($variant));
                $crate::names::as_str(&NAME)
            },)+];
        }

        impl $At {
            /// Group and step: `tag-get.search`.
            $vis const fn name(self) -> &'static str {
                <$At as $crate::names::Group>::NAMES[self as usize]
            }
        }
    };
}
pub(crate) use stages;

/// Bytes of `group.variant` with the variant in kebab case.
pub(crate) const fn length(group: &str, variant: &str) -> usize {
    kebab_length(variant) + group.len() + 1
}

const fn kebab_length(variant: &str) -> usize {
    let variant = variant.as_bytes();
    let mut length = variant.len();
    let mut at = 1;
    while at < variant.len() {
        if variant[at].is_ascii_uppercase() {
            length += 1;
        }
        at += 1;
    }
    length
}

/// Those bytes: `list.wait-run` of `list` and `WaitRun`.
pub(crate) const fn spell<const LEN: usize>(group: &str, variant: &str) -> [u8; LEN] {
    let (group, variant) = (group.as_bytes(), variant.as_bytes());
    let mut name = [b'.'; LEN];
    let mut to = 0;
    while to < group.len() {
        name[to] = group[to];
        to += 1;
    }
    to += 1;
    let mut at = 0;
    while at < variant.len() {
        if variant[at].is_ascii_uppercase() && at > 0 {
            name[to] = b'-';
            to += 1;
        }
        name[to] = variant[at].to_ascii_lowercase();
        to += 1;
        at += 1;
    }
    assert!(to == LEN, "length() counted otherwise");
    name
}

/// A name from its bytes.
pub(crate) const fn as_str(name: &'static [u8]) -> &'static str {
    match core::str::from_utf8(name) {
        Ok(name) => name,
        Err(_) => panic!("identifiers of labels are ASCII"),
    }
}

/// A label of any path, numbered densely.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Label(pub u16);

/// The number of a group in the lists of `path/label.rs`.
pub(crate) trait Numbered: Group {
    /// Number of its first label.
    const BASE: usize;
}

/// Declares the labels of one path: steps with numbers.
macro_rules! labels {
    // Those that functions with `#[steps]` declare where they stop.
    ($vis:vis enum $At:ident in $group:literal of $first:ident $($rest:ident)*) => {
        $first! { [labels $vis $At $group] [] $($rest)* }
    };
    (@ [$($head:tt)*] [$($labels:tt)*] $first:ident $($rest:ident)*) => {
        $first! { [$($head)*] [$($labels)*] $($rest)* }
    };
    (@ [$which:ident $vis:vis $At:ident $group:literal] [$($labels:tt)*]) => {
        $crate::names::$which! { $vis enum $At in $group { $($labels)* } }
    };
    (
        $(#[$meta:meta])*
        $vis:vis enum $At:ident in $group:literal { $($variants:tt)+ }
    ) => {
        $crate::names::stages! {
            $(#[$meta])*
            $vis enum $At in $group { $($variants)+ }
        }

        impl $At {
            #[inline]
            pub const fn label(self) -> $crate::names::Label {
                let base = <$At as $crate::names::Numbered>::BASE;
                $crate::names::Label((base + self as usize) as u16)
            }
        }
    };
}
pub(crate) use labels;

/// `SeriesInsert` is the variant of the group `series-insert`.
pub(crate) const fn stands_for(variant: &str, group: &str) -> bool {
    let mut at = 0;
    let mut from = 0;
    let (variant, group) = (variant.as_bytes(), group.as_bytes());
    while at < group.len() && from < variant.len() {
        if variant[from].is_ascii_uppercase() && from > 0 {
            if group[at] != b'-' {
                return false;
            }
            at += 1;
        }
        if at == group.len() || group[at] != variant[from].to_ascii_lowercase() {
            return false;
        }
        at += 1;
        from += 1;
    }
    at == group.len() && from == variant.len()
}

/// Lists groups under names of their own, and in `GROUPS` the names of their labels. With
/// `from $base;` they are numbered, too (see [`number!`]).
macro_rules! groups {
    (from $base:expr; $($(#[doc = $doc:literal])+ $Name:ident = $Path:path,)*) => {
        $crate::names::groups! { $($(#[doc = $doc])+ $Name = $Path,)* }
        $crate::names::number!(from $base; $($Name)*);
    };
    ($($(#[doc = $doc:literal])+ $Name:ident = $Path:path,)*) => {
        $($(#[doc = $doc])+ pub use $Path as $Name;)*
        pub(crate) const GROUPS: &[&[&str]] =
            &[$(<$Name as $crate::names::Group>::NAMES),*];
        $(const _: () = assert!(
            $crate::names::stands_for(
                stringify!($Name),
                <$Name as $crate::names::Group>::NAME,
            ),
            "a group is called otherwise here than where it is declared"
        );)*
    };
}
pub(crate) use groups;

/// Numbers the labels of groups from `$base` on: each begins where the one before ends. `END` is
/// the number after the last.
macro_rules! number {
    (from $base:expr; $Name:ident $($rest:ident)*) => {
        impl $crate::names::Numbered for $Name {
            const BASE: usize = $base;
        }
        $crate::names::number!(
            from <$Name as $crate::names::Numbered>::BASE
                + <$Name as $crate::names::Group>::NAMES.len();
            $($rest)*
        );
    };
    (from $base:expr;) => {
        pub(crate) const END: usize = $base;
    };
}
pub(crate) use number;
