//! The part of the Python package that is in Rust: a command of `blksim`, done in this process.
//!
//! Nothing is decided here: `blksim::inside` does what the program does with the same arguments.
//! Read next: `python/blksim/__init__.py`, where settings become arguments, and what a command
//! prints becomes a table.
#![forbid(unsafe_code)]

use std::any::Any;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use blksim::{Done, Stop};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Between two looks at Python's signals.
const LOOK: Duration = Duration::from_millis(20);
/// A command that has not ended so long after its stop is left to itself.
const PATIENCE: Duration = Duration::from_millis(120);
/// As the stack of a program has.
const STACK: usize = 8 << 20;

type Ended = Result<Done, Box<dyn Any + Send>>;

/// Does a command. Its exit code, its standard output and its standard error.
///
/// The interpreter's lock is free meanwhile, and a signal ends the command.
#[pyfunction]
fn command(
    py: Python<'_>,
    arguments: Vec<OsString>,
    input: Option<String>,
) -> PyResult<(u8, Bound<'_, PyBytes>, String)> {
    let stop = Stop::default();
    let (sender, mut ended) = sync_channel::<Ended>(1);
    let of_thread = Stop::clone(&stop);
    let work = move || {
        let work = || blksim::inside(arguments, input, of_thread);
        // Nobody waits for a command that was left to itself.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    };
    let thread = Builder::new().name("blksim".to_owned()).stack_size(STACK);
    thread.spawn(work)?;
    let done = loop {
        match wait(py, &mut ended, LOOK) {
            Ok(done) => break done,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the thread of the command ended"));
            }
        }
        if let Err(signal) = py.check_signals() {
            let _ = stop.set(());
            let _ = wait(py, &mut ended, PATIENCE);
            return Err(signal);
        }
    };
    let done = done.map_err(|panic| PyRuntimeError::new_err(text_of(panic.as_ref())))?;
    Ok((done.code, PyBytes::new(py, &done.out), done.err))
}

fn wait(
    py: Python<'_>,
    ended: &mut Receiver<Ended>,
    time: Duration,
) -> Result<Ended, RecvTimeoutError> {
    py.detach(move || ended.recv_timeout(time))
}

/// A mistake of ours, with what its assertion says.
fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("a defect of blksim: {}", text.unwrap_or("no message"))
}

/// The TOML of a JSON object, for a scenario that is a dict.
#[pyfunction]
fn toml_of(json: &str) -> PyResult<String> {
    let table: toml::Table = serde_json::from_str(json)
        .map_err(|error| PyValueError::new_err(format!("scenario: {error}")))?;
    toml::to_string(&table).map_err(|error| PyValueError::new_err(format!("scenario: {error}")))
}

#[pymodule]
fn _blksim(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // The exception has the message; standard error is Python's.
    std::panic::set_hook(Box::new(|_| {}));
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(toml_of, module)?)
}
