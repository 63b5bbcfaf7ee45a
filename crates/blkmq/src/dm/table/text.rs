//! A table as `dmsetup table` prints it after the target's name.
//!
//! Kernel: multipath_status(STATUSTYPE_TABLE) in drivers/md/dm-mpath.c, and the selectors' own
//! (6.1.192).

use core::fmt;

use super::{GroupTable, PG_INIT_DELAY_MSECS, PathTable, QueueMode, Table};
use crate::dm::selector::SelectorKind;
use crate::rules::AttachedHandler;

/// The number of words, and the words.
struct Counted<'a>(&'a [String]);

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.len())?;
        self.0.iter().try_for_each(|word| write!(f, " {word}"))
    }
}

impl Table {
    /// Features with their number, as a table and multipath.conf have them.
    pub fn features(&self) -> String {
        self.features_with(self.retain_attached_hw_handler)
    }

    fn features_with(&self, retains: bool) -> String {
        let mut words = Vec::new();
        let mut add = |wanted: bool, all: &[&str]| {
            if wanted {
                words.extend(all.iter().map(|&word| word.to_owned()));
            }
        };
        let (retries, delay) = (
            self.pg_init_retries.to_string(),
            self.pg_init_delay_msecs.to_string(),
        );
        add(self.queue_if_no_path, &["queue_if_no_path"]);
        add(self.pg_init_retries > 0, &["pg_init_retries", &retries]);
        let delays = self.pg_init_delay_msecs != PG_INIT_DELAY_MSECS;
        add(delays, &["pg_init_delay_msecs", &delay]);
        add(retains, &["retain_attached_hw_handler"]);
        add(self.queue_mode == QueueMode::Bio, &["queue_mode", "bio"]);
        Counted(&words).to_string()
    }

    /// The hardware handler with the number of its words.
    pub fn hw_handler_words(&self) -> String {
        let words: Vec<String> = self.hw_handler.iter().cloned().collect();
        Counted(&words).to_string()
    }
}

impl GroupTable {
    /// The selector with its own arguments and their number (multipath.conf's path_selector).
    pub fn path_selector(&self) -> String {
        let arguments = match self.selector {
            SelectorKind::HistoricalServiceTime => vec![
                self.base_weight.to_string(),
                self.threshold_multiplier.to_string(),
            ],
            _ => Vec::new(),
        };
        format!("{} {}", self.selector.name(), Counted(&arguments))
    }

    /// Arguments of each path.
    fn arguments(&self, path: &PathTable) -> Vec<String> {
        match self.selector {
            SelectorKind::RoundRobin | SelectorKind::QueueLength => {
                vec![path.repeat_count.to_string()]
            }
            // hst_status() says 0, whatever the count is.
            SelectorKind::HistoricalServiceTime => vec!["0".to_owned()],
            SelectorKind::ServiceTime => vec![
                path.repeat_count.to_string(),
                path.relative_throughput.to_string(),
            ],
            SelectorKind::IoAffinity => vec![mask(&path.cpumask)],
        }
    }
}

/// CPUs in hexadecimal, 32 of them between two commas.
fn mask(cpus: &[usize]) -> String {
    let words = cpus.iter().max().map_or(1, |last| last / 32 + 1);
    let word = |at: usize| {
        let own = cpus.iter().filter(|&cpu| cpu / 32 == at);
        own.fold(0_u32, |word, cpu| word | 1 << (cpu % 32))
    };
    let mut text = format!("{:x}", word(words - 1));
    for at in (0..words - 1).rev() {
        text += &format!(",{:08x}", word(at));
    }
    text
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.first_group.map_or(0, |group| group + 1);
        // alloc_multipath_stage2(): a bio-based target has the feature in any case.
        let retains = self.retain_attached_hw_handler || self.queue_mode == QueueMode::Bio;
        let retains = retains && self.attached_handler == AttachedHandler::Feature;
        let (features, handler) = (self.features_with(retains), self.hw_handler_words());
        write!(f, "{features} {handler} {} {first}", self.groups.len())?;
        self.groups
            .iter()
            .try_for_each(|group| write!(f, " {group}"))
    }
}

impl fmt::Display for GroupTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self
            .paths
            .first()
            .map_or(0, |path| self.arguments(path).len());
        write!(f, "{} {} {count}", self.path_selector(), self.paths.len())?;
        self.paths.iter().try_for_each(|path| {
            write!(f, " {}", path.device)?;
            let mut arguments = self.arguments(path).into_iter();
            arguments.try_for_each(|argument| write!(f, " {argument}"))
        })
    }
}
