//! Captures of `traces/`, compared.

use std::path::{Path, PathBuf};

use blkmq::rules::Rules;
use conform::{Error, Mode, Options, Verdict};
use trace::capture::CaptureDir;

pub(crate) fn traces(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../traces")
        .join(name)
}

pub(crate) fn run_in(dir: &Path, mode: Mode, rules: Option<Rules>) -> Result<Verdict, Error> {
    let options = Options {
        mode: Some(mode),
        rules,
        ..Options::default()
    };
    conform::run(&CaptureDir::open(dir)?, &options)
}
