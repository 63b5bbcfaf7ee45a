//! Under `--cfg mutants`: a wrong change of a path, on if the environment names its number.

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// The number of the change that this process runs with.
const CHOSEN: &str = "BLKSIM_MUTANT";
/// A file that gets the number of each change whose place is reached.
const REACHED: &str = "BLKSIM_MUTANTS_REACHED";

const OFF: u8 = 1;
const ON: u8 = 2;

pub(crate) struct Mutant {
    pub(crate) number: u32,
    state: AtomicU8,
}

impl Mutant {
    /// Its number is a hash (FNV-1a) of where it is and what it changes.
    pub(crate) const fn new(file: &str, function: &str, kind: &str, text: &str) -> Mutant {
        let mut number: u32 = 0x811c_9dc5;
        let words = [file, function, kind, text];
        let mut word = 0;
        while word < words.len() {
            let mut at = 0;
            while at < words[word].len() {
                number = (number ^ words[word].as_bytes()[at] as u32).wrapping_mul(0x0100_0193);
                at += 1;
            }
            word += 1;
        }
        let state = AtomicU8::new(0);
        Mutant { number, state }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        match self.state.load(Ordering::Relaxed) {
            OFF => false,
            ON => true,
            _ => self.reached(),
        }
    }

    #[cold]
    fn reached(&self) -> bool {
        static CHOICE: OnceLock<Option<u32>> = OnceLock::new();
        let chosen = || {
            env::var(CHOSEN)
                .ok()
                .map(|number| number.parse().expect("a number"))
        };
        let is_on = *CHOICE.get_or_init(chosen) == Some(self.number);
        if let Some(path) = env::var_os(REACHED) {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let mut file = file.expect("the file can be written");
            file.write_all(format!("{}\n", self.number).as_bytes())
                .expect("the file can be written");
        }
        self.state
            .store(if is_on { ON } else { OFF }, Ordering::Relaxed);
        is_on
    }
}
