//! Names of steps, spelt at compile time out of the variants of an enum.

/// Implemented by [`stages!`] for an enum.
pub(crate) trait Group: Copy {
    const NAME: &'static str;
    /// Names of the steps with that of the group, in order.
    const NAMES: &'static [&'static str];
}

/// Declares steps that have names and no numbers: an enum and the names of its variants.
macro_rules! stages {
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
            pub const fn name(self) -> &'static str {
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
