//! The unit of comparison: three modes, by name.

/// The unit of comparison, and the part of a capture that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The probes of `ftrace.txt`: one call of the scheduler's dispatch function.
    Calls,
    /// The records of blktrace: one `D`.
    Records,
    /// The scheduler's messages in blktrace: each line, and each dispatch call among them.
    Log,
}

impl Mode {
    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Calls => "calls",
            Mode::Records => "records",
            Mode::Log => "log",
        }
    }

    pub fn by_name(name: &str) -> Option<Mode> {
        [Mode::Calls, Mode::Records, Mode::Log]
            .into_iter()
            .find(|mode| mode.name() == name)
    }
}
