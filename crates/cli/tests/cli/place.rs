//! A directory to run the program in.

use std::path::Path;
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A run of a millisecond after a ramp of one.
const SMALL: &str = "\
[machine]
cpus = 4
[queue]
scheduler = \"mq-deadline\"
[device]
type = \"null_blk\"
[[job]]
rw = \"randread\"
direct = 1
ioengine = \"io_uring\"
iodepth = 4
numjobs = 4
time_based = true
runtime = \"1ms\"
ramp_time = \"1ms\"
";

#[derive(Debug)]
pub(crate) struct Ran {
    /// Exit code; none if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A temporary directory, removed at the end.
#[derive(Debug)]
pub(crate) struct Place(pub(crate) TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        Place(TempDir::new().unwrap())
    }

    /// With a scenario, `small.toml`.
    pub(crate) fn small() -> Place {
        let place = Place::new();
        place.write("small.toml", SMALL);
        place
    }

    /// Path of a file in it.
    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// Runs the program there, for a minute at most.
    pub(crate) fn blksim(&self, args: &[&str]) -> Ran {
        blksim_with(self.0.path(), args, &[])
    }

    /// Names of all files in it, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut files: Vec<String> = std::fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        files.sort();
        files
    }
}

/// The JSON that a command printed.
pub(crate) fn json(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

/// Runs the program with variables of its environment set.
pub(crate) fn blksim_with(dir: &Path, args: &[&str], variables: &[(&str, &str)]) -> Ran {
    blksim_within(Duration::from_mins(1), dir, args, variables)
}

/// The same for commands that may take long on a busy machine.
pub(crate) fn blksim_within(
    limit: Duration,
    dir: &Path,
    args: &[&str],
    variables: &[(&str, &str)],
) -> Ran {
    let output = Command::cargo_bin("blksim")
        .unwrap()
        .current_dir(dir)
        .args(args)
        .envs(variables.iter().copied())
        .timeout(limit)
        .output()
        .unwrap();
    let ran = Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    assert!(!ran.stderr.contains("panicked"), "{args:?}: {ran:?}");
    ran
}
