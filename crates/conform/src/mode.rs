//! What counts as a dispatch: three modes, by name.

/// What counts as a dispatch, and which part of a capture is looked at.
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

    /// The mode of this name.
    pub fn by_name(name: &str) -> Option<Mode> {
        [Mode::Calls, Mode::Records, Mode::Log]
            .into_iter()
            .find(|mode| mode.name() == name)
    }
}
