//! Puts the specifications into the binary, so that `check` and `explore` work without the tree.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

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
}

/// All files that a program reads, as pairs of the path below `specs/` and the text.
fn add(top: &Path, folder: &Path, list: &mut String) {
    let entries = fs::read_dir(folder).expect("specs/ can be read");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
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
