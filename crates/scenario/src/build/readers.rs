//! `[[interleaved]]` and `[[nfsd]]`: readers other than fio's jobs, built from jobs.

use std::collections::BTreeMap;

use blkmq::time::Duration;
use toml::Value;
use trace::fio::{Extent, FioJob};

use super::{Result, Scenario, jobs};
use sim::page_cache::PAGE_BYTES;
use sim::plan::{NfsdPlan, ThreadPlan};
use sim::readahead::Advice;

/// Options of fio that these tables set themselves.
const TAKEN: [&str; 11] = [
    "rw",
    "readwrite",
    "bs",
    "blocksize",
    "bsrange",
    "bssplit",
    "numjobs",
    "offset_increment",
    "ioengine",
    "iodepth",
    "stonewall",
];
/// Processes or threads of one table.
const COUNT_MAX: u64 = 256;

#[derive(Debug)]
pub(super) struct Readers {
    pub(super) job: FioJob,
    /// Its place: `interleaved.0`.
    head: String,
    hands_over: bool,
    shares_context: bool,
    file_system: bool,
    nfsd: Option<Nfsd>,
}

/// Clients and link of an `[[nfsd]]`.
#[derive(Clone, Copy, Debug)]
struct Nfsd {
    clients: u64,
    slots: u64,
    link_mb_s: u64,
    latency_us: u64,
    call_us: u64,
}

/// All of them, in the order of their jobs after those of `[[job]]`, with notes on options without
/// effect.
pub(super) fn readers(scenario: &Scenario) -> Result<(Vec<Readers>, Vec<String>)> {
    let (mut all, mut notes) = (Vec::new(), Vec::new());
    let interleaved = scenario.interleaved.iter().enumerate();
    let nfsd = scenario.nfsd.iter().enumerate();
    for (number, table) in interleaved {
        let mut keys = Keys::new(scenario, format!("interleaved.{number}"), table)?;
        all.push(keys.interleaved(&mut notes)?);
    }
    for (number, table) in nfsd {
        let mut keys = Keys::new(scenario, format!("nfsd.{number}"), table)?;
        all.push(keys.nfsd(&mut notes)?);
    }
    Ok((all, notes))
}

/// Sets the fields of threads that fio's do not have, and creates the servers.
pub(super) fn settle(
    scenario: &Scenario,
    readers: &[Readers],
    threads: &mut [ThreadPlan],
) -> Result<Vec<NfsdPlan>> {
    let mut servers = Vec::new();
    for (job, of) in (scenario.job.len()..).zip(readers) {
        let mine = |thread: &&mut ThreadPlan| usize::from(thread.job) == job;
        let server = of.nfsd.map(|_| servers.len() as u8);
        for thread in threads.iter_mut().filter(mine) {
            thread.hands_over = of.hands_over;
            thread.shares_context = of.shares_context;
            thread.server = server;
            if let Some(buffered) = &mut thread.buffered {
                buffered.file_system = of.file_system;
            }
        }
        let mut mine = threads
            .iter()
            .filter(|thread| usize::from(thread.job) == job);
        if let (Some(nfsd), Some(thread)) = (of.nfsd, mine.next()) {
            servers.push(of.server(scenario, nfsd, thread)?);
        }
    }
    Ok(servers)
}

impl Readers {
    fn server(&self, scenario: &Scenario, nfsd: Nfsd, thread: &ThreadPlan) -> Result<NfsdPlan> {
        let error = |key: &str, what: &str| {
            let field = format!("{}.{key}", self.head);
            Err(scenario.error(&field, what))
        };
        if self.job.runtime.is_none() {
            return error("runtime", "is required: clients stream without end");
        }
        let file = thread.files[0];
        let rsize = self.job.bs.read.min;
        let first_byte = (file.first_sector * 512).next_multiple_of(PAGE_BYTES);
        let bytes = (file.first_sector + file.region_sectors) * 512 - first_byte;
        let file_bytes = bytes / nfsd.clients / rsize * rsize;
        if file_bytes == 0 {
            return error("size", "does not hold a call of each client");
        }
        Ok(NfsdPlan {
            clients: nfsd.clients as u16,
            rsize,
            slots: nfsd.slots as u32,
            link_bytes: nfsd.link_mb_s * 1_000_000,
            latency: Duration::from_micros(nfsd.latency_us),
            call: Duration::from_micros(nfsd.call_us),
            until: thread.startdelay + thread.ramp_time + thread.runtime,
            disk: file.disk,
            first_byte,
            file_bytes,
            advice: thread.buffered.map_or(Advice::Normal, |of| of.advice),
        })
    }
}

/// The remaining keys of a table.
struct Keys<'a> {
    scenario: &'a Scenario,
    head: String,
    table: BTreeMap<String, Value>,
}

impl<'a> Keys<'a> {
    fn new(
        scenario: &'a Scenario,
        head: String,
        table: &BTreeMap<String, Value>,
    ) -> Result<Keys<'a>> {
        if let Some(key) = table.keys().find(|key| TAKEN.contains(&key.as_str())) {
            let what = "follows from the other keys of this table";
            return Err(scenario.error(&format!("{head}.{key}"), what));
        }
        let table = table.clone();
        Ok(Keys {
            scenario,
            head,
            table,
        })
    }

    fn error<T>(&self, key: &str, what: &str) -> Result<T> {
        Err(self.scenario.error(&format!("{}.{key}", self.head), what))
    }

    /// A whole number in these bounds.
    fn number(&mut self, key: &str, default: u64, least: u64, most: u64) -> Result<u64> {
        let number = match self.table.remove(key) {
            None => return Ok(default),
            Some(Value::Integer(number)) => u64::try_from(number).ok(),
            Some(_) => None,
        };
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(number),
            None => self.error(key, &format!("is a whole number from {least} to {most}")),
        }
    }

    /// One of two words. True: the second one.
    fn word(&mut self, key: &str, words: [&str; 2], default: bool) -> Result<bool> {
        let word = match self.table.remove(key) {
            None => return Ok(default),
            Some(Value::String(word)) => words.iter().position(|known| *known == word),
            Some(_) => None,
        };
        match word {
            Some(place) => Ok(place == 1),
            None => self.error(key, &format!("is \"{}\" or \"{}\"", words[0], words[1])),
        }
    }

    fn truth(&mut self, key: &str, default: bool) -> Result<bool> {
        match self.table.remove(key) {
            None => Ok(default),
            Some(Value::Boolean(is)) => Ok(is),
            Some(_) => self.error(key, "is true or false"),
        }
    }

    /// The remaining keys, as the options of a job of so many clones that read blocks of this key's
    /// size.
    fn job(&mut self, block: (&str, &str), count: u64, notes: &mut Vec<String>) -> Result<FioJob> {
        let (key, default) = block;
        let size = self.table.remove(key);
        let size = size.unwrap_or_else(|| Value::String(default.to_owned()));
        self.table.insert("bs".to_owned(), size);
        let text = |text: &str| Value::String(text.to_owned());
        self.table.insert("rw".to_owned(), text("read"));
        for (option, value) in [("direct", "0"), ("fadvise_hint", "none")] {
            let said = self.table.contains_key("buffered") && option == "direct";
            if !said {
                self.table
                    .entry(option.to_owned())
                    .or_insert_with(|| text(value));
            }
        }
        let parsed = jobs::of_table(self.scenario, &self.head, &self.table, ("bs", key));
        let (mut job, more) = parsed?;
        notes.extend(more);
        let size = job.bs.read.min;
        if !size.is_multiple_of(PAGE_BYTES) || job.bs.read.max != size {
            return self.error(key, "is one size in whole pages of 4096 bytes");
        }
        job.numjobs = count as u32;
        job.group_reporting = true;
        Ok(job)
    }

    fn shares_context(&mut self) -> Result<bool> {
        self.word("io_context", ["own", "shared"], false)
    }

    fn interleaved(&mut self, notes: &mut Vec<String>) -> Result<Readers> {
        let processes = self.number("processes", 3, 1, COUNT_MAX)?;
        let hands_over = self.word("hand_over", ["none", "in-order"], true)?;
        let shares_context = self.shares_context()?;
        let file_system = self.truth("file_system", false)?;
        let mut job = self.job(("piece", "64k"), processes, notes)?;
        let piece = job.bs.read.min;
        job.rw_gap = ((processes - 1) * piece) as i64;
        job.offset_increment = Extent::Bytes(piece);
        Ok(Readers {
            job,
            head: self.head.clone(),
            hands_over,
            shares_context,
            file_system,
            nfsd: None,
        })
    }

    fn nfsd(&mut self, notes: &mut Vec<String>) -> Result<Readers> {
        let threads = self.number("threads", 8, 1, COUNT_MAX)?;
        let nfsd = Nfsd {
            clients: self.number("clients", 1, 1, COUNT_MAX)?,
            slots: self.number("slots", 16, 2, 32)?,
            link_mb_s: self.number("link_mb_s", 110, 1, 100_000)?,
            latency_us: self.number("latency_us", 100, 0, 1_000_000)?,
            call_us: self.number("call_us", 75, 0, 1_000_000)?,
        };
        let shares_context = self.shares_context()?;
        let file_system = self.truth("file_system", true)?;
        let job = self.job(("rsize", "32k"), threads, notes)?;
        if job.direct {
            return self.error("direct", "a server of files reads through the page cache");
        }
        Ok(Readers {
            job,
            head: self.head.clone(),
            hands_over: false,
            shares_context,
            file_system,
            nfsd: Some(nfsd),
        })
    }
}
