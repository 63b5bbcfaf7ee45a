//! Neither threads nor memory change a result: counts, verdicts and schedules are those of one
//! thread with as much memory as it takes.

use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::sync::Mutex;

use blkmq::elevator::SchedulerKind;
use blkmq::rules::Rules;
use explore::spec::{Options, Specification, explore};
use explore::{
    Config, Halt, Mutant, Resources, Spill, bfq_merge, cfq_merge, dispatch, exhaustive, restart,
};

use crate::spec::{configuration, setting};

/// Threads, and bytes for visited states: 0 writes them at once, and derives all states again.
const ALL: [(usize, u64); 5] = [(2, u64::MAX), (3, 1 << 18), (1, 1 << 15), (1, 0), (2, 0)];

/// Parts of the table of visited states: each has a file of its own.
const SHARDS: u32 = 64;

/// What a search gives with other resources, and the number of files that these took.
fn with<R>(
    (jobs, memory): (usize, u64),
    search: impl Fn(&Resources<'_>) -> Result<R, Halt>,
) -> (R, u32) {
    let files = Mutex::new(0);
    let file = || {
        *files.lock().expect("no panic") += 1;
        Ok(Box::new(Cursor::new(Vec::new())) as Box<dyn Spill>)
    };
    let resources = Resources {
        jobs,
        memory,
        file: &file,
        ..Resources::ALONE
    };
    let found = search(&resources).expect("nothing stops it");
    let count = *files.lock().expect("no panic");
    (found, count)
}

/// The most files that a search took.
fn same<R: PartialEq + std::fmt::Debug>(
    name: &str,
    search: impl Fn(&Resources<'_>) -> Result<R, Halt>,
) -> u32 {
    let alone = search(&Resources::ALONE).expect("nothing stops it");
    let mut most = 0;
    for resources in ALL {
        let (found, files) = with(resources, &search);
        assert_eq!(found, alone, "{name} with {resources:?}");
        most = most.max(files);
    }
    most
}

fn same_variant<S: Specification>(variant: &str) {
    let setting: S = setting(variant);
    assert!(setting.beyond(&configuration::<S>(variant)).is_none());
    let files = [(false, 1), (true, 0), (true, 3)].map(|(whole, test_one_in)| {
        let options = Options { whole, test_one_in };
        same(variant, |resources| explore(&setting, options, resources))
    });
    // The test of projections adds a column and a table.
    let [_, plain, tested] = files;
    assert!(plain > SHARDS, "{variant}: {files:?} files");
    assert!(tested > plain + 1, "{variant}: {files:?} files");
}

#[test]
fn variants_have_the_same_results_with_any_threads_and_memory() {
    same_variant::<restart::Setting>("r2-rc4-3x2-one-kept-4.14");
    same_variant::<restart::Setting>("r1-rc4-3x2-one-kept-4.14-limit1");
    same_variant::<dispatch::Setting>("v2-inside-2x1");
    same_variant::<cfq_merge::Setting>("v1-3x1");
    same_variant::<bfq_merge::Setting>("runs-2x3");
}

#[test]
fn configurations_have_the_same_results_with_any_threads_and_memory() {
    let reads = |count| {
        let kind = SchedulerKind::MqDeadline;
        Config::new("reads", Rules::v6_12(), kind, count)
    };
    let clean = reads(2);
    let mut ends = reads(2);
    ends.must_end = true;
    let mut few = reads(2);
    few.states_max = 7_777;
    let mut broken = reads(2);
    broken.mutant = Some(Mutant::ForgottenLine);
    for config in [clean, ends, few, broken] {
        let files = same(&config.name, |resources| exhaustive(&config, resources));
        assert!(files > SHARDS, "{}: {files} files", config.name);
    }
}

/// A file on a full disk.
struct Full(Cursor<Vec<u8>>);

impl Read for Full {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read(bytes)
    }
}

impl Seek for Full {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.get_ref().len() {
            0..10_000 => self.0.write(bytes),
            _ => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn a_full_disk_and_a_stop_end_a_search() {
    let setting: restart::Setting = setting("r2-rc4-3x2-one-kept-4.14");
    let options = Options::default();
    let full = Resources {
        memory: 0,
        file: &|| Ok(Box::new(Full(Cursor::new(Vec::new())))),
        ..Resources::ALONE
    };
    let ended = explore(&setting, options, &full);
    let Err(Halt::File(error)) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    let none = Resources {
        memory: 0,
        ..Resources::ALONE
    };
    assert!(matches!(
        explore(&setting, options, &none),
        Err(Halt::File(_))
    ));
    let stopped = Resources {
        stopped: &|| true,
        ..Resources::ALONE
    };
    let ended = explore(&setting, options, &stopped);
    assert!(matches!(ended, Err(Halt::Stopped(1))), "{ended:?}");
}
