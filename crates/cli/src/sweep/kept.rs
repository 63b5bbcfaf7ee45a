//! What a sweep has so far: a folder with a manifest, and a log for each shard.
//!
//! A line of a log is a point with all its rows, after a checksum of these and of the manifest. It
//! is appended in one piece when
//! the point's runs have ended; of a process that dies in between only the last line can be
//! incomplete, and it is cut off when the shard goes on. The manifest and the results are written
//! under temporary names, synced and renamed.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use scenario::report::digest;
use scenario::table::Cell;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::output::{self, OutputFile, TEMPORARY};
use crate::progress::now;

/// A log is on the disk, not only with the kernel, at least so often.
const SYNC: Duration = Duration::from_secs(1);
/// Digits of a checksum, before a space.
const DIGITS: usize = 16;

/// One of several parts of a sweep: every `count`-th point from `index` on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Shard {
    pub(super) count: usize,
    pub(super) index: usize,
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.index + 1, self.count))
    }
}

impl Shard {
    pub(super) const WHOLE: Shard = Shard { count: 1, index: 0 };

    /// Of an option, else of the environment of a task of Slurm's, else the whole.
    pub(super) fn of(
        option: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Shard, Error> {
        if let Some(text) = option {
            let shard = text
                .split_once('/')
                .and_then(|(index, count)| Shard::new(index, count));
            let what = "expected I/N, a part of N: 1/8 to 8/8";
            return shard.ok_or_else(|| Error::usage(format!("--shard {text}"), what));
        }
        let Some(id) = variable("SLURM_ARRAY_TASK_ID") else {
            return Ok(Shard::WHOLE);
        };
        let number = |name: &str| variable(name)?.parse::<usize>().ok();
        let least = number("SLURM_ARRAY_TASK_MIN").unwrap_or(1);
        let count = number("SLURM_ARRAY_TASK_COUNT");
        let shard = id.parse::<usize>().ok().and_then(|id| {
            let index = (id + 1).checked_sub(least)?;
            Shard::new(&index.to_string(), &count?.to_string())
        });
        shard.ok_or_else(|| {
            let what = "the array has gaps, or no count; expected --shard I/N";
            Error::usage(format!("SLURM_ARRAY_TASK_ID={id}"), what)
        })
    }

    fn new(index: &str, count: &str) -> Option<Shard> {
        let (index, count): (usize, usize) = (index.parse().ok()?, count.parse().ok()?);
        (1..=count).contains(&index).then(|| Shard {
            count,
            index: index - 1,
        })
    }

    fn file_name(self) -> String {
        format!("shard-{}-of-{}.log", self.index + 1, self.count)
    }

    fn of_file(path: &Path) -> Option<Shard> {
        let name = path.file_name()?.to_str()?;
        let name = name.strip_prefix("shard-")?.strip_suffix(".log")?;
        let (index, count) = name.split_once("-of-")?;
        Shard::new(index, count)
    }

    /// Its points, of so many.
    fn has(self, point: usize) -> bool {
        point % self.count == self.index
    }
}

/// What the results of one folder have in common.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// Version of the program, and a digest of its sources.
    pub(super) version: String,
    pub(super) program: String,
    /// Digest of the sweep's file.
    pub(super) sweep: String,
    /// Digests of scenarios and machines.
    pub(super) inputs: BTreeMap<String, String>,
}

/// The rows of a point, one for each run and job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) point: usize,
    pub(super) rows: Vec<Vec<Cell<'static>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stall: Option<String>,
}

/// A folder of results.
#[derive(Debug)]
pub(super) struct Folder {
    dir: PathBuf,
    /// Digest of the manifest. Checksums are of this as well, so that a log of another sweep,
    /// program or input has no record here.
    pub(super) key: String,
}

impl Folder {
    /// The folder with this manifest; with `make` both are made if they are not there. Of several
    /// processes that make them the first one's manifest counts.
    pub(super) fn open(dir: &Path, manifest: &Manifest, make: bool) -> Result<Folder, Error> {
        let file = dir.join("manifest.json");
        if make && !file.exists() {
            let made = std::fs::create_dir_all(dir);
            made.map_err(|source| Error::output(dir.display().to_string(), source))?;
            let text = serde_json::to_string_pretty(manifest).expect("keys are texts") + "\n";
            OutputFile::open(&file)?.put(&text)?.keep_first()?;
            sync_folder(dir)?;
        }
        let text = std::fs::read_to_string(&file);
        let text = text.map_err(|error| Error::input(&file, format!("cannot read: {error}")))?;
        let there: Manifest = serde_json::from_str(&text)
            .map_err(|error| Error::input(&file, format!("no manifest of a sweep: {error}")))?;
        let differs = match () {
            () if (&there.version, &there.program) != (&manifest.version, &manifest.program) => {
                format!(
                    "these results are of blksim {}, sources {}; this is {}, sources {}",
                    there.version, there.program, manifest.version, manifest.program
                )
            }
            () if there.sweep != manifest.sweep => {
                "the file of the sweep is another one now".to_owned()
            }
            () if there != *manifest => {
                let changed = manifest.inputs.iter();
                let mut changed = changed.filter(|(name, of)| there.inputs.get(*name) != Some(of));
                let name = changed.next().map_or("an input", |(name, _)| name.as_str());
                format!("the scenario or machine is another one now: {name}")
            }
            () => {
                let dir = dir.to_path_buf();
                let key = serde_json::to_string(manifest).expect("keys are texts");
                let key = digest(&key);
                return Ok(Folder { dir, key });
            }
        };
        let what = format!("{differs}; expected the same, or another folder: --output");
        Err(Error::input(file, what))
    }

    /// For the process that writes the results, as long as it has the file. What others that were
    /// killed had begun is removed.
    pub(super) fn alone(&self) -> Result<File, Error> {
        let path = self.dir.join("manifest.json");
        let cannot = |source| Error::output(self.dir.display().to_string(), source);
        let manifest = OpenOptions::new()
            .append(true)
            .open(&path)
            .map_err(cannot)?;
        lock(&manifest, &path, "writes the results")?;
        for entry in std::fs::read_dir(&self.dir).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
                std::fs::remove_file(entry.path()).map_err(cannot)?;
            }
        }
        Ok(manifest)
    }

    /// The logs of all shards, in their order.
    fn logs(&self) -> Result<Vec<(Shard, PathBuf)>, Error> {
        let cannot = |error| Error::input(&self.dir, format!("cannot read: {error}"));
        let mut logs = Vec::new();
        for entry in std::fs::read_dir(&self.dir).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            logs.extend(Shard::of_file(&path).map(|shard| (shard, path)));
        }
        logs.sort();
        Ok(logs)
    }

    /// The records of all logs.
    pub(super) fn all(&self, points: usize) -> Result<Records, Error> {
        let mut all = Records {
            key: self.key.clone(),
            logs: Vec::new(),
            places: vec![None; points],
        };
        let mut notes = String::new();
        for (shard, path) in self.logs()? {
            let lines = self.read(&path, points)?;
            let (log, records) = (all.logs.len(), lines.records.len());
            notes += &lines.notes(&path);
            for (point, place) in lines.records {
                all.add(point, (log, place))?;
            }
            let cannot = |error| Error::input(&path, format!("cannot read: {error}"));
            let file = File::open(&path).map_err(cannot)?;
            all.logs.push((shard, path, file, records));
        }
        if all.missing() > 0 {
            output::print_note(&notes);
        }
        Ok(all)
    }

    /// The records of a log.
    fn read(&self, path: &Path, points: usize) -> Result<Lines, Error> {
        let cannot = |error| Error::input(path, format!("cannot read: {error}"));
        let mut file = BufReader::new(File::open(path).map_err(cannot)?);
        let mut lines = Lines::default();
        let (mut line, mut number) = (Vec::new(), 0);
        loop {
            line.clear();
            file.read_until(b'\n', &mut line).map_err(cannot)?;
            let Some(text) = line.strip_suffix(b"\n") else {
                return Ok(lines);
            };
            number += 1;
            let record: Option<Point> = parse(&self.key, text);
            match record.filter(|record| record.point < points) {
                Some(record) => {
                    let sum = *text.first_chunk().expect("it was checked");
                    let place = (lines.whole, text.len(), sum);
                    lines.records.push((record.point, place));
                }
                None => lines.damaged.push(number),
            }
            lines.whole += line.len() as u64;
        }
    }
}

/// Locks a file for this process, which does the work alone.
fn lock(file: &File, path: &Path, work: &str) -> Result<(), Error> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let what = format!("another process {work}; expected one at a time");
            Err(Error::input(path, what))
        }
        Err(TryLockError::Error(error)) => Err(Error::output(path.display().to_string(), error)),
    }
}

/// What was renamed and made in a folder is on the disk.
pub(super) fn sync_folder(dir: &Path) -> Result<(), Error> {
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(|source| Error::output(dir.display().to_string(), source))
}

/// A record as far as its point.
#[derive(Deserialize)]
struct Point {
    point: usize,
}

/// Where a record is in its log: its first byte, its length, its checksum.
type Place = (u64, usize, [u8; DIGITS]);

/// The records of a log.
#[derive(Debug, Default)]
struct Lines {
    records: Vec<(usize, Place)>,
    /// Bytes up to the end of the last line.
    whole: u64,
    /// Lines that are not as they were written, from 1 on.
    damaged: Vec<usize>,
}

impl Lines {
    /// Which lines do not count.
    fn notes(&self, path: &Path) -> String {
        let note = |line: &usize| {
            let (path, what) = (path.display(), "damaged, or of another sweep");
            format!("note: {path}:{line}: {what}; its point is made again\n")
        };
        self.damaged.iter().map(note).collect()
    }
}

/// The checksum of a record, and the record.
fn sum(key: &str, text: &str) -> String {
    digest(&format!("{key} {text}"))
}

/// The record of a line, if its checksum is right.
fn parse<T: DeserializeOwned>(key: &str, line: &[u8]) -> Option<T> {
    let (written, text) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    let right = sum(key, text) == written;
    right.then(|| serde_json::from_str(text).ok()).flatten()
}

/// The log of a shard, which this process alone appends to.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    key: String,
    file: File,
    length: u64,
    synced: Instant,
}

impl Log {
    /// Opens it, and says which points any log has already.
    pub(super) fn open(
        kept: &Folder,
        shard: Shard,
        points: usize,
    ) -> Result<(Log, Vec<bool>), Error> {
        let path = kept.dir.join(shard.file_name());
        let cannot = |source| Error::output(path.display().to_string(), source);
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(cannot)?;
        lock(&file, &path, "makes this shard")?;
        let (mut done, mut notes) = (vec![false; points], String::new());
        for (other, path) in kept.logs()? {
            // Those of as many shards have none of the points of this one.
            if other.count == shard.count && other != shard {
                continue;
            }
            let lines = kept.read(&path, points)?;
            notes += &lines.notes(&path);
            let of_shard = lines.records.iter().filter(|(point, _)| shard.has(*point));
            of_shard.for_each(|(point, _)| done[*point] = true);
            if other == shard {
                file.set_len(lines.whole).map_err(cannot)?;
            }
        }
        if (shard.index..points)
            .step_by(shard.count)
            .any(|point| !done[point])
        {
            output::print_note(&notes);
        }
        sync_folder(&kept.dir)?;
        let length = file.metadata().map_err(cannot)?.len();
        let log = Log {
            path,
            key: kept.key.clone(),
            file,
            length,
            synced: now(),
        };
        Ok((log, done))
    }

    pub(super) fn append(&mut self, record: &Record) -> Result<(), Error> {
        let text = serde_json::to_string(record).expect("keys are texts");
        let line = format!("{} {text}\n", sum(&self.key, &text));
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // What is left of the line would be cut off later as well.
            let _ = self.file.set_len(self.length);
            return Err(self.failed(&error));
        }
        self.length += line.len() as u64;
        if now() - self.synced >= SYNC {
            self.sync()?;
        }
        Ok(())
    }

    pub(super) fn sync(&mut self) -> Result<(), Error> {
        self.synced = now();
        self.file.sync_data().map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &std::io::Error) -> Error {
        let what = format!(
            "cannot write: {error}; what it has is kept, and the same command makes the rest"
        );
        Error::input(&self.path, what)
    }
}

/// All records, by point.
#[derive(Debug)]
pub(super) struct Records {
    key: String,
    /// Each open, with the number of its records.
    logs: Vec<(Shard, PathBuf, File, usize)>,
    /// The log that has a point, and where.
    places: Vec<Option<(usize, Place)>>,
}

impl Records {
    fn add(&mut self, point: usize, place: (usize, Place)) -> Result<(), Error> {
        let (_, (_, _, sum)) = &place;
        match &self.places[point] {
            Some((_, (_, _, other))) if other != sum => {
                let what = "has other rows in another log; expected the same of the same program";
                Err(Error::usage(format!("point {point}"), what))
            }
            Some(_) => Ok(()),
            None => {
                self.places[point] = Some(place);
                Ok(())
            }
        }
    }

    pub(super) fn missing(&self) -> usize {
        self.places.iter().filter(|place| place.is_none()).count()
    }

    /// Shards of so many that have a missing point, from 1 on.
    pub(super) fn unfinished(&self, count: usize) -> Vec<usize> {
        let missing = self
            .places
            .iter()
            .enumerate()
            .filter(|(_, place)| place.is_none());
        let mut shards: Vec<usize> = missing.map(|(point, _)| point % count + 1).collect();
        shards.sort_unstable();
        shards.dedup();
        shards
    }

    pub(super) fn missing_text(&self) -> Option<String> {
        let missing = self.missing();
        (missing > 0).then(|| {
            format!(
                "{missing} of {} points are missing; `blksim sweep run` makes them",
                self.places.len()
            )
        })
    }

    /// The rows of a point that is there.
    pub(super) fn record(&self, point: usize) -> Result<Record, Error> {
        let (log, (start, length, _)) = self.places[point].expect("no point is missing");
        let (_, path, file, _) = &self.logs[log];
        let mut line = vec![0; length];
        let read = file.read_exact_at(&mut line, start);
        read.map_err(|error| Error::input(path, format!("cannot read: {error}")))?;
        let record: Option<Record> = parse(&self.key, &line);
        let record = record.filter(|record| record.point == point);
        record.ok_or_else(|| Error::input(path, format!("byte {start}: was changed meanwhile")))
    }

    pub(super) fn status(&self) -> String {
        let (missing, all) = (self.missing(), self.places.len());
        let mut text = format!(
            "{} of {all} points done, {missing} missing\n",
            all - missing
        );
        for (shard, _, _, records) in &self.logs {
            let all = (shard.index..all).step_by(shard.count).len();
            text += &format!("  shard {shard:8} {records} of its {all} points\n");
        }
        text
    }
}

#[cfg(test)]
mod tests;
