//! Puts the specifications into the binary, so that `check` and `explore` work without the tree,
//! and a digest of the sources, by which results of a sweep know their program.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use sha2::{Digest as _, Sha256};

fn main() {
    let top = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let top = top
        .join("../../specs")
        .canonicalize()
        .expect("specs/ is in the tree");
    println!("cargo::rerun-if-changed={}", top.display());
    let mut list = String::from("&[\n");
    add(&top, &top, &mut list);
    list.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("specs.rs"), list).expect("cargo's own folder can be written");
    let crates = top.join("../crates");
    let mut sources = Sha256::new();
    for name in [
        "blkmq", "cli", "conform", "scenario", "sim", "study", "trace",
    ] {
        for path in sorted(&crates.join(name))
            .into_iter()
            .filter(|path| !path.ends_with("tests"))
        {
            println!("cargo::rerun-if-changed={}", path.display());
            hash(&path, &mut sources);
        }
    }
    // A copy of the package alone has none.
    let lock = crates.join("../Cargo.lock");
    if lock.exists() {
        println!("cargo::rerun-if-changed={}", lock.display());
        hash(&lock, &mut sources);
    }
    let digest: String = sources.finalize()[..8]
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    println!("cargo::rustc-env=BLKSIM_SOURCE={digest}");
}

/// A file, or all files below a folder.
fn hash(path: &Path, sources: &mut Sha256) {
    if path.is_dir() {
        for path in sorted(path) {
            hash(&path, sources);
        }
        return;
    }
    let name = path.file_name().expect("it is a file").to_string_lossy();
    let content = fs::read(path).expect("sources can be read");
    sources.update(format!("{name} {}\n", content.len()));
    sources.update(content);
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it is in the tree");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// All files that a program reads, as pairs of the path below `specs/` and the text.
fn add(top: &Path, folder: &Path, list: &mut String) {
    for path in sorted(folder) {
        let ending = path.extension().and_then(|ending| ending.to_str());
        if path.is_dir() {
            add(top, &path, list);
        } else if let Some("tla" | "cfg" | "toml" | "schedule") = ending {
            let name = path.strip_prefix(top).expect("it is below");
            let [name, path] = [name, path.as_path()].map(|path| path.display().to_string());
            let _ = writeln!(list, "({name:?}, include_str!({path:?})),");
        }
    }
}
