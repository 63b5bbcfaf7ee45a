//! A Slurm of its own on 127.0.0.1, from Debian's packages, and sweeps in it.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Sweep, shown, started, until};
use crate::paths;
use crate::step::{self, Failure, Outcome, Result, Run};

const PROGRAMS: [&str; 6] = ["munged", "munge", "slurmctld", "slurmd", "sbatch", "squeue"];

/// The array gives what one process gives: as it is; with a task and the program that waits for it
/// killed; and with a script of the user's own.
pub(crate) fn run() -> Result {
    let missing = PROGRAMS
        .into_iter()
        .find(|name| !paths::has_program(name) && !Path::new("/usr/sbin").join(name).is_file());
    if let Some(name) = missing {
        let reason = format!("{name} is missing: apt-get install munge slurmctld slurmd");
        return step::missing_tool(&reason);
    }
    if Run::words("id", "-u").stdout()? != b"0\n" {
        return step::missing_tool("Slurm's daemons need root");
    }
    let sweep = Sweep::new("slurm", 40, "40ms")?;
    let slurm = Slurm::start(&sweep.dir.join("daemons"))?;
    sweep
        .run("--engine slurm --shards 3", "array")
        .env("SLURM_CONF", &slurm.conf)
        .passes()?;
    sweep.check("array")?;
    killed(&sweep, &slurm)?;
    // The task's part of the array is known from the environment.
    let words = "--quiet sweep run s.toml -o own";
    let own = Run::words("sbatch", "--wait --array=1-2 --output=/dev/null --wrap");
    let own = own.arg(format!("{} {words}", shown(&sweep.blksim)));
    own.env("SLURM_CONF", &slurm.conf)
        .current_dir(&sweep.dir)
        .passes()?;
    sweep.run("merge", "own").passes()?;
    sweep.check("own")?;
    println!(
        "3 sweeps of {} points in Slurm: same bytes, none twice",
        sweep.points
    );
    Ok(Outcome::Passed)
}

/// A task and the waiting program are killed; the same command goes on.
fn killed(sweep: &Sweep, slurm: &Slurm) -> Result<()> {
    let words = "--engine slurm --shards 2";
    let mut waits = started(sweep, words, "killed", &[("SLURM_CONF", &slurm.conf)])?;
    let begun = until(20, || sweep.records("killed") > 2);
    let _ = waits.kill();
    let _ = waits.wait();
    if !begun {
        return Err(Failure(
            "no task of the array made a point in 20 s".to_owned(),
        ));
    }
    let ids = slurm.ask("squeue", "-h -r -o %i")?;
    let second = ids.lines().find(|id| id.trim().ends_with("_2"));
    let second = second.ok_or_else(|| Failure(format!("no second task: {ids}")))?;
    slurm.ask("scancel", &format!("--full --signal=KILL {second}"))?;
    let kept = sweep.records("killed");
    if kept >= sweep.points {
        return Err(Failure(
            "the array had ended before a task was killed".to_owned(),
        ));
    }
    sweep
        .run(words, "killed")
        .env("SLURM_CONF", &slurm.conf)
        .passes()?;
    sweep.check("killed")?;
    println!(
        "{kept} of {} points were kept when a task was killed",
        sweep.points
    );
    Ok(())
}

/// The daemons, which end with this.
#[derive(Debug)]
struct Slurm {
    dir: PathBuf,
    conf: PathBuf,
}

impl Slurm {
    fn start(dir: &Path) -> Result<Slurm> {
        let failed = |e: std::io::Error| Failure(format!("{}: {e}", dir.display()));
        for folder in ["state", "spool"] {
            fs::create_dir_all(dir.join(folder)).map_err(failed)?;
        }
        let host = Run::words("hostname", "").stdout()?;
        let conf = include_str!("slurm.conf").replace("{dir}", &shown(dir));
        let conf = conf.replace("{host}", String::from_utf8_lossy(&host).trim());
        let slurm = Slurm {
            dir: dir.to_path_buf(),
            conf: dir.join("slurm.conf"),
        };
        fs::write(&slurm.conf, conf).map_err(failed)?;
        if !Run::words("munge", "-n").printed()?.success {
            // As Debian's unit for systemd does.
            Run::words(
                "install",
                "-d -o munge -g munge /run/munge /var/log/munge /var/lib/munge",
            )
            .passes()?;
            Run::words("runuser", "-u munge -- /usr/sbin/munged").passes()?;
        }
        slurm.ask("/usr/sbin/slurmctld", "-i")?;
        slurm.ask("/usr/sbin/slurmd", "")?;
        let idle = || {
            slurm
                .ask("sinfo", "-h -o %t")
                .is_ok_and(|state| state.trim() == "idle")
        };
        match until(30, idle) {
            true => Ok(slurm),
            false => Err(Failure(format!(
                "Slurm does not start; logs: {}",
                shown(dir)
            ))),
        }
    }

    /// What one of its commands prints.
    fn ask(&self, program: &str, words: &str) -> Result<String> {
        let stdout = Run::words(program, words)
            .env("SLURM_CONF", &self.conf)
            .stdout()?;
        Ok(String::from_utf8_lossy(&stdout).into_owned())
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for name in ["slurmd", "slurmctld"] {
            if let Ok(pid) = fs::read_to_string(self.dir.join(format!("{name}.pid"))) {
                // What cannot be ended here is not ours to report.
                let _ = Run::words("kill", pid.trim()).printed();
            }
        }
    }
}
