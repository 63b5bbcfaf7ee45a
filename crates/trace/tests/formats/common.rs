//! Helpers of the integration tests: the captures and their text files.

use std::io::Read;
use std::path::{Path, PathBuf};

use trace::blktrace::{DeviceChoice, Options};

/// Folder with all captures.
pub(crate) fn traces() -> PathBuf {
    std::env::var_os("TRACES_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces"),
        PathBuf::from,
    )
}

/// Folders of the captures whose files are all here, by name.
pub(crate) fn captures() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(traces()).expect("the captures are in the repository");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let mut folders: Vec<PathBuf> = paths
        .filter(|path| path.join("blkparse-full.txt.xz").exists())
        .collect();
    folders.sort();
    folders
}

/// Contents of an xz file.
pub(crate) fn unxz(path: &Path) -> Vec<u8> {
    let file = std::fs::File::open(path).expect("the file is in the repository");
    let mut bytes = Vec::new();
    liblzma::read::XzDecoder::new(file)
        .read_to_end(&mut bytes)
        .expect("it is not damaged");
    bytes
}

/// Text of an xz file.
pub(crate) fn text(path: &Path) -> String {
    String::from_utf8(unxz(path)).expect("it is text")
}

/// Options that read every device.
pub(crate) fn all_devices() -> Options {
    Options {
        device: DeviceChoice::All,
        ..Options::default()
    }
}
