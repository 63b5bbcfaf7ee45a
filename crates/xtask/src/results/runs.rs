//! Runs of the program, and their output.

use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

use crate::build::Build;
use crate::step::{Failure, Printed, Result, Run};

/// The program, as it is used.
#[derive(Clone, Debug)]
pub(super) struct Blksim {
    pub(super) path: PathBuf,
}

impl Blksim {
    /// A build of the tree.
    pub(super) fn built() -> Result<Blksim> {
        let path = Build::Release.blksim()?;
        Ok(Blksim { path })
    }

    /// The output of one command line, whether it succeeds or not. Arguments are separated by
    /// blanks.
    pub(super) fn printed(&self, line: &str) -> Result<Printed> {
        let args: Vec<&str> = line.split_whitespace().collect();
        Run::new(&self.path, &args).printed()
    }

    /// Its standard output. Exit code 1 means that figures are out of their tolerance, which a
    /// table may show; another failure has nothing on standard output.
    pub(super) fn text(&self, line: &str) -> Result<String> {
        let printed = self.printed(line)?;
        if printed.stdout.is_empty() {
            let stderr = printed.stderr.trim_end();
            return Err(Failure(format!("`blksim {line}`: {stderr}")));
        }
        Ok(printed.stdout)
    }

    pub(super) fn json(&self, line: &str) -> Result<Value> {
        let text = self.text(line)?;
        let json = serde_json::from_str(&text);
        json.map_err(|e| Failure(format!("`blksim {line}`: no JSON: {e}")))
    }

    /// JSON of several command lines, one a core at a time, in their order.
    pub(super) fn all(&self, lines: &[String]) -> Result<Vec<Value>> {
        each(lines, |line| self.json(line))
    }
}

/// `of` each, one a core at a time, in their order.
pub(super) fn each<A: Sync, B: Send>(
    all: &[A],
    of: impl Fn(&A) -> Result<B> + Sync,
) -> Result<Vec<B>> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let next = Mutex::new(all.iter().enumerate());
    let done = Mutex::new(Vec::with_capacity(all.len()));
    thread::scope(|scope| {
        for _ in 0..cores.min(all.len()) {
            scope.spawn(|| {
                loop {
                    let Some((index, one)) = next.lock().ok().and_then(|mut next| next.next())
                    else {
                        return;
                    };
                    let result = of(one);
                    if let Ok(mut done) = done.lock() {
                        done.push((index, result));
                    }
                }
            });
        }
    });
    let lost = |_| Failure("a thread ended".to_owned());
    let mut done = done.into_inner().map_err(lost)?;
    done.sort_by_key(|(index, _)| *index);
    if done.len() < all.len() {
        return Err(Failure("a thread ended".to_owned()));
    }
    done.into_iter().map(|(_, result)| result).collect()
}

/// A number of a report, by its path: `/jobs/0/read/iops`.
pub(super) fn number(report: &Value, path: &str) -> Result<f64> {
    let found = report.pointer(path).and_then(Value::as_f64);
    found.ok_or_else(|| Failure(format!("a report has no number at {path}")))
}

/// A text of a report.
pub(super) fn word<'a>(report: &'a Value, path: &str) -> Result<&'a str> {
    let found = report.pointer(path).and_then(Value::as_str);
    found.ok_or_else(|| Failure(format!("a report has no text at {path}")))
}

/// IOPS of all jobs and directions of a run.
pub(super) fn iops(report: &Value) -> Result<f64> {
    let mut sum = 0.0;
    let jobs = report.pointer("/jobs").and_then(Value::as_array);
    for job in jobs.ok_or_else(|| Failure("a report has no jobs".to_owned()))? {
        for direction in ["read", "write", "trim"] {
            sum += number(job, &format!("/{direction}/iops"))?;
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_their_items() {
        let all: Vec<u64> = (0..50).collect();
        let squares = each(&all, |n| Ok(n * n)).unwrap();
        assert!(squares.iter().zip(&all).all(|(square, n)| *square == n * n));
        let failure = each(&all, |n| match n {
            7 => Err(Failure("seven".to_owned())),
            n => Ok(*n),
        });
        assert_eq!(failure.unwrap_err().0, "seven");
        assert_eq!(each(&[0; 0], |n: &u64| Ok(*n)).unwrap(), [0; 0]);
    }

    #[test]
    fn figures_are_found_by_their_path() {
        let report: Value = serde_json::from_str(
            r#"{"a": "b", "jobs": [
                {"read": {"iops": 1.5}, "write": {"iops": 2}, "trim": {"iops": 0}}]}"#,
        )
        .unwrap();
        assert_eq!(iops(&report).unwrap().to_bits(), 3.5_f64.to_bits());
        assert_eq!(word(&report, "/a").unwrap(), "b");
        let failure = number(&report, "/jobs/1/read/iops").unwrap_err();
        assert!(failure.0.contains("/jobs/1/read/iops"), "{failure}");
        assert!(iops(&Value::Null).is_err());
    }
}
