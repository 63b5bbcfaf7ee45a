//! The text of a captured device, by `blksim dump` and by blkparse 1.2.0: equal, byte for byte.
//!
//! The names of the input files, which blkparse prints as well, are left out. With `-t` blkparse
//! prints what happens to be in memory for a D whose request was not inserted, and for a C without
//! its D; such lines, which have no time in our text, are counted apart.

use std::path::{Path, PathBuf};

use crate::step::{Result, Run};

/// Options of both programs.
const OPTIONS: &[&[&str]] = &[
    &[],
    &["-s"],
    &["-q", "-f", "%D,%c,%s,%T.%9t,%p,%a,%d,%S,%n,%N,%e,%C\\n"],
    &[
        "-q",
        "-a",
        "issue",
        "-f",
        "%-6a|%8S|%-4c|%3t|%M:%m %5C%%\\t%U\\n",
        "-F",
        "D,%2d %12N %P\\n",
    ],
    &["-q", "-t"],
    &["-w", "0.01:0.02"],
    &["-w", "0.005", "-A", "d0", "-s"],
    &["-s", "-q", "--hash-by-name"],
];

/// Lines that were compared.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Lines {
    pub(super) equal: u64,
    /// Lines of `-t` for which blkparse has no defined time.
    pub(super) without_time: u64,
}

/// Compares one device, whose plain files are in `scratch`. A difference is added to `wrong`.
pub(super) fn compare(
    blksim: &Path,
    scratch: &Path,
    device: &str,
    files: &[PathBuf],
    lines: &mut Lines,
) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for options in OPTIONS {
        let mut run = Run::new(blksim, &["dump"]);
        for file in files {
            run = run.arg(file);
        }
        let ours = options.iter().fold(run, Run::arg).stdout()?;
        let run = Run::new("blkparse", &["-i", device]).current_dir(scratch);
        let theirs = options.iter().fold(run, Run::arg).stdout()?;
        if let Some(line) = first_difference(&ours, &theirs, lines) {
            wrong.push(format!("dump {options:?}: {line}"));
        }
    }
    Ok(wrong)
}

fn first_difference(ours: &[u8], theirs: &[u8], lines: &mut Lines) -> Option<String> {
    let (ours, theirs) = (
        String::from_utf8_lossy(ours),
        String::from_utf8_lossy(theirs),
    );
    let mut ours = ours.split('\n');
    let mut theirs = theirs
        .split('\n')
        .filter(|line| !line.starts_with("Input file "));
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return None,
            (Some(a), Some(b)) if a == b => lines.equal += 1,
            (Some(a), Some(b)) if without_time(b).as_deref() == Some(a) => lines.without_time += 1,
            (a, b) => return Some(format!("ours {a:?}, blkparse's {b:?}")),
        }
    }
}

/// A line of a D or C without the time in brackets.
fn without_time(line: &str) -> Option<String> {
    let (before, rest) = line.split_once('(')?;
    if !["  D ", "  C "]
        .iter()
        .any(|action| before.contains(action))
    {
        return None;
    }
    let (time, after) = rest.split_once(") ")?;
    let is_time = !time.is_empty() && time.bytes().all(|byte| b" 0123456789".contains(&byte));
    is_time.then(|| format!("{before}{after}"))
}

#[cfg(test)]
mod tests {
    use super::{Lines, first_difference};

    #[test]
    fn each_difference_of_text_is_found() {
        let theirs = "a\nInput file x added\n 8,0  D  W 1 + 8 (      12) [x]\n";
        let mut lines = Lines::default();
        assert_eq!(
            first_difference(theirs.as_bytes(), theirs.as_bytes(), &mut lines).map(|_| ()),
            Some(())
        );
        let ours = "a\n 8,0  D  W 1 + 8 [x]\n";
        let mut lines = Lines::default();
        assert_eq!(
            first_difference(ours.as_bytes(), theirs.as_bytes(), &mut lines),
            None
        );
        assert_eq!(
            lines,
            Lines {
                equal: 2,
                without_time: 1
            }
        );
        for ours in [
            "a\n",
            "b\n 8,0  D  W 1 + 8 [x]\n",
            "a\n 8,0  D  W 1 + 8 (      13) [x]\n",
            "a\n 8,0  D  W 1 + 8 [x]",
        ] {
            assert!(
                first_difference(ours.as_bytes(), theirs.as_bytes(), &mut lines).is_some(),
                "{ours}"
            );
        }
    }
}
