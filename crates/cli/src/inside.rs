//! A command inside another program, such as Python: what it would print is kept, a scenario may be
//! a text, and Ctrl-C is a flag that the program sets.
//!
//! Not here: what the commands do, which is the same. The thread that calls [`inside`] reads and
//! prints for the whole command.

use std::cell::RefCell;
use std::ffi::OsString;

use clap::Parser as _;
use study::fleet::Stop;

use crate::args::{self, Args};
use crate::{BAD_INPUT, OK, run_command};

/// What a command did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// The exit code, as `blksim --help` lists them.
    pub code: u8,
    /// What it would have printed to standard output and to standard error.
    pub out: Vec<u8>,
    pub err: String,
}

/// The streams of the command that this thread does.
#[derive(Debug)]
pub(crate) struct Inside {
    pub(crate) stop: Stop,
    pub(crate) input: Option<String>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

thread_local! {
    static INSIDE: RefCell<Option<Inside>> = const { RefCell::new(None) };
}

impl Inside {
    /// Looks at the streams, if this thread is inside another program.
    pub(crate) fn with<R>(look: impl FnOnce(&mut Inside) -> R) -> Option<R> {
        INSIDE.with_borrow_mut(|inside| inside.as_mut().map(look))
    }
}

/// Does what the arguments say, without the program's name. A scenario `-` is the text `input`, and
/// `stop` ends the runs.
pub fn inside(arguments: Vec<OsString>, input: Option<String>, stop: Stop) -> Done {
    let arguments = std::iter::once(OsString::from("blksim")).chain(arguments);
    let args = match Args::try_parse_from(args::joined(arguments)) {
        Ok(args) => args,
        Err(error) => return refused(&error),
    };
    INSIDE.set(Some(Inside {
        stop,
        input,
        out: Vec::new(),
        err: String::new(),
    }));
    let code = run_command(args.command);
    let done = INSIDE
        .take()
        .map(|Inside { out, err, .. }| Done { code, out, err });
    done.unwrap_or_default()
}

/// One line about arguments, without the usage; or the help that they ask for.
fn refused(error: &clap::Error) -> Done {
    let text = error.to_string();
    if error.exit_code() == i32::from(OK) {
        return Done {
            out: text.into_bytes(),
            ..Done::default()
        };
    }
    let lines = text.lines().map(str::trim);
    let lines =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    // A setting is no value.
    let lines = lines.filter(|line| !line.is_empty() && !line.contains("as a value, use"));
    let lines = lines.map(|line| line.strip_prefix("tip: ").unwrap_or(line));
    Done {
        code: BAD_INPUT,
        err: lines.collect::<Vec<_>>().join("; ") + "\n",
        ..Done::default()
    }
}
