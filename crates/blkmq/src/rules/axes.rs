//! `axes!`: each difference between kernels is declared once, in one row.
//!
//! From the rows come the enums, the struct that has them as fields, its presets, the names that
//! users write, and the tables of the reference.

/// The axes of a struct, as the reference prints them.
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    /// Presets, each with the one that it is like on axes that do not name it; none of the first.
    pub presets: &'static [(&'static str, Option<&'static str>)],
    pub rows: &'static [Axis],
}

/// What one row declares.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    pub name: &'static str,
    pub about: &'static str,
    pub values: &'static [AxisValue],
}

/// A value of an axis, with the presets in whose lines it is.
#[derive(Clone, Copy, Debug)]
pub struct AxisValue {
    pub name: &'static str,
    pub about: &'static str,
    pub presets: &'static [&'static str],
}

/// Declares a struct of axes. First its presets, as constants or functions: `V4_11 "v4.11" = V4_14`
/// has the values of `V4_14` on all axes that do not name `V4_11`. Then a row for each axis:
///
/// ```text
/// /// What the axis decides (kernel_function()).
/// axis: Kind {
///     V4_14 => First /// Its meaning.
///     V4_11 | V5_9 => Second /// Two presets have it.
///     - => Third /// No preset has it.
/// }
/// axis: Kind { V4_14 => First "first", V4_11 => Second "second" }
/// axis: u32 [V4_14 => 1, V4_11 => 2]
/// ```
///
/// In braces the enum is declared as well; in brackets the type exists. A preset without a value,
/// or with two, does not compile.
#[macro_export]
macro_rules! axes {
    (
        $(#[$meta:meta])*
        pub struct $Rules:ident $(($named:ident))?, $how:tt {
            $($(#[$about:meta])* $Preset:ident $word:literal $(= $Like:ident)?,)+
        }
        $($(#[doc = $doc:literal])* $axis:ident: $Kind:tt $body:tt)+
    ) => {
        $($crate::axes!(@kind [$($doc)*] $Kind $body);)+

        $(#[$meta])*
        #[allow(unused_parens, reason = "a type of several tokens needs them in its row")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub struct $Rules {
            $(/// Name of the preset, for reports.
            pub $named: &'static str,)?
            $($(#[doc = $doc])* pub $axis: $Kind,)+
        }

        #[allow(
            non_camel_case_types,
            unused_parens,
            clippy::upper_case_acronyms,
            reason = "presets are spelt as the constants; as above"
        )]
        const _: () = {
            #[derive(Clone, Copy)]
            enum Preset { $($Preset,)+ None }

            const WORDS: &[&str] = &[$($word),+];

            const fn like(of: Preset) -> Preset {
                match of {
                    $($(Preset::$Preset => Preset::$Like,)?)+
                    Preset::None => panic!("a preset has no value on an axis"),
                    _ => Preset::None,
                }
            }

            $(
                #[deny(unreachable_patterns)]
                const fn $axis(of: Preset) -> $Kind {
                    $crate::axes!(@value of $axis $Kind $body)
                }
            )+

            const fn preset(of: Preset) -> $Rules {
                $Rules { $($named: WORDS[of as usize],)? $($axis: $axis(of),)+ }
            }

            impl $Rules {
                $($crate::axes!(@preset $how $Rules $Preset $(#[$about])*);)+

                /// All presets.
                pub const ALL: [$Rules; WORDS.len()] = [$(preset(Preset::$Preset)),+];

                /// Axes on which the other rules have another value, each with both values.
                pub fn unlike(&self, other: &$Rules) -> Vec<(&'static str, [String; 2])> {
                    let mut all = Vec::new();
                    $(if self.$axis != other.$axis {
                        let values = [&self.$axis, &other.$axis].map(|value| format!("{value:?}"));
                        all.push((stringify!($axis), values));
                    })+
                    all
                }

                /// Takes the value of an axis from other rules. False: there is no such axis.
                pub fn take(&mut self, axis: &str, from: &$Rules) -> bool {
                    match axis {
                        $(stringify!($axis) => self.$axis = from.$axis,)+
                        _ => return false,
                    }
                    true
                }

                /// The axes, for the reference.
                pub const AXES: $crate::rules::Axes = $crate::rules::Axes {
                    presets: &[$(($word, [$(Some(WORDS[Preset::$Like as usize]),)? None][0])),+],
                    rows: &[$($crate::rules::Axis {
                        name: stringify!($axis),
                        about: concat!($($doc),*),
                        values: $crate::axes!(@about $body),
                    }),+],
                };
            }
        };
    };

    (@preset const $Rules:ident $Preset:ident $(#[$about:meta])*) => {
        $(#[$about])* pub const $Preset: $Rules = preset(Preset::$Preset);
    };
    (@preset fn $Rules:ident $Preset:ident $(#[$about:meta])*) => {
        $(#[$about])* pub const fn $Preset() -> $Rules { const { preset(Preset::$Preset) } }
    };

    (@kind $doc:tt $Kind:tt [$($cells:tt)+]) => {};
    (@kind [$($doc:literal)*] $Kind:ident {
        $($($Preset:ident)|* $(-)? => $Value:ident $(#[doc = $means:literal])* $(,)?)+
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $Kind { $($(#[doc = $means])* $Value,)+ }
    };
    (@kind [$($doc:literal)*] $Kind:ident {
        $($($Preset:ident)|* $(-)? => $Value:ident $word:literal $(| $other:literal)?
            $(#[doc = $means:literal])* $(,)?)+
    }) => {
        $crate::axes!(@kind [$($doc)*] $Kind { $(=> $Value $(#[doc = $means])*)+ });

        impl $Kind {
            /// Names of all values, as users write them.
            pub const NAMES: &'static [&'static str] = &[$($word),+];

            pub fn name(self) -> &'static str {
                match self { $($Kind::$Value => $word,)+ }
            }

            /// The value of this name.
            pub fn by_name(name: &str) -> Option<$Kind> {
                match name {
                    $($word $(| $other)? => Some($Kind::$Value),)+
                    _ => None,
                }
            }
        }
    };

    (@value $of:ident $axis:ident $Kind:tt {
        $($($Preset:ident)|* $(-)? => $Value:ident $($word:literal $(| $other:literal)?)?
            $(#[doc = $means:literal])* $(,)?)+
    }) => {
        match $of {
            $($(Preset::$Preset => $Kind::$Value,)*)+
            other => $axis(like(other)),
        }
    };
    (@value $of:ident $axis:ident $Kind:tt [$($($Preset:ident)|+ => $value:expr),+ $(,)?]) => {
        match $of {
            $($(Preset::$Preset => $value,)+)+
            other => $axis(like(other)),
        }
    };

    (@about {
        $($($Preset:ident)|* $(-)? => $Value:ident $($word:literal $(| $other:literal)?)?
            $(#[doc = $means:literal])* $(,)?)+
    }) => {
        &[$($crate::rules::AxisValue {
            name: stringify!($Value),
            about: concat!($($means),*),
            presets: &[$(WORDS[Preset::$Preset as usize]),*],
        }),+]
    };
    (@about [$($($Preset:ident)|+ => $value:expr),+ $(,)?]) => {
        &[$($crate::rules::AxisValue {
            name: stringify!($value),
            about: "",
            presets: &[$(WORDS[Preset::$Preset as usize]),+],
        }),+]
    };
}
