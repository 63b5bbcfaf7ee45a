//! Paths: the workspace, the target directory, programs.
//!
//! Every place has one answer, for any current directory.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Top level of the workspace.
pub(crate) fn root() -> PathBuf {
    // Cargo sets the variable at run time too, so a moved tree is found where it is now.
    let manifest = env::var("CARGO_MANIFEST_DIR")
        .map_or_else(|_| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let root = manifest
        .ancestors()
        .nth(2)
        .expect("xtask lies in crates/xtask of the workspace");
    root.to_path_buf()
}

/// Cargo's target directory for builds of this workspace.
pub(crate) fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// True if `program` can be started by name.
pub(crate) fn has_program(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// True where a missing optional tool is a failure: the environment says `CI=true`.
pub(crate) fn on_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true")
}

/// All files under `dir`, sorted by path; nothing if there is no such directory.
pub(crate) fn files_under(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_path_buf()];
    while let Some(dir) = pending.pop() {
        let Ok(entries) = fs::read_dir(&dir) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// All Rust sources under `dir`, sorted by path.
pub(crate) fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = files_under(dir);
    found.retain(|path| path.extension().is_some_and(|ext| ext == "rs"));
    found
}
