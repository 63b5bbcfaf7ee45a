//! One step of a check: its outcome, and starting other programs.
//!
//! A step that cannot run is `Skipped` with its reason, never `Passed`.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::paths;

/// How a step ended, if it did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It ran and found nothing wrong.
    Passed,
    /// It did not run, for this reason.
    Skipped(String),
}

/// The reason of a failure, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) String);

/// The result of every step.
pub(crate) type Result<T = Outcome> = std::result::Result<T, Failure>;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A missing tool: a skip at a desk, a failure on CI.
pub(crate) fn missing_tool(reason: &str) -> Result {
    if paths::on_ci() {
        return Err(Failure(format!("{reason} (required where CI=true)")));
    }
    Ok(Outcome::Skipped(reason.to_owned()))
}

/// A program to start at the top of the workspace.
#[derive(Debug)]
pub(crate) struct Run {
    command: Command,
}

/// The output of a program and whether it succeeded.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// `program` with `args`.
    pub(crate) fn new<S: AsRef<OsStr>>(program: S, args: &[&str]) -> Run {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(paths::root())
            .stdin(Stdio::null());
        Run { command }
    }

    /// `program` with arguments that are separated by blanks.
    pub(crate) fn words<S: AsRef<OsStr>>(program: S, line: &str) -> Run {
        Run::new(program, &[]).args(line)
    }

    /// Cargo with these arguments.
    pub(crate) fn cargo(line: &str) -> Run {
        Run::words("cargo", line)
    }

    /// With one more environment variable.
    pub(crate) fn env<S: AsRef<OsStr>>(mut self, name: &str, value: S) -> Run {
        self.command.env(name, value);
        self
    }

    pub(crate) fn arg<S: AsRef<OsStr>>(mut self, arg: S) -> Run {
        self.command.arg(arg);
        self
    }

    /// With arguments that are separated by blanks.
    pub(crate) fn args(self, line: &str) -> Run {
        line.split_whitespace().fold(self, Run::arg)
    }

    /// Run in `dir` instead of the top of the workspace.
    pub(crate) fn current_dir(mut self, dir: &Path) -> Run {
        self.command.current_dir(dir);
        self
    }

    /// Let it print to the terminal; it must succeed.
    pub(crate) fn passes(mut self) -> Result {
        let status = self.command.status().map_err(|e| self.cannot_start(&e))?;
        if status.success() {
            return Ok(Outcome::Passed);
        }
        Err(Failure(format!("`{}`: {status}", self.line())))
    }

    /// Its standard output; it must succeed.
    pub(crate) fn stdout(mut self) -> Result<Vec<u8>> {
        let output = self.command.output().map_err(|e| self.cannot_start(&e))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(Failure(format!(
            "`{}`: {}\n{stderr}",
            self.line(),
            output.status
        )))
    }

    /// Collects its output, whether it succeeds or not.
    pub(crate) fn printed(mut self) -> Result<Printed> {
        let output = self.command.output().map_err(|e| self.cannot_start(&e))?;
        Ok(Printed {
            success: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// The command as one would type it, without its environment.
    pub(crate) fn line(&self) -> String {
        let mut line = self.command.get_program().to_string_lossy().into_owned();
        for arg in self.command.get_args() {
            line.push(' ');
            line.push_str(&arg.to_string_lossy());
        }
        line
    }

    fn cannot_start(&self, error: &std::io::Error) -> Failure {
        Failure(format!("`{}` cannot be started: {error}", self.line()))
    }
}
