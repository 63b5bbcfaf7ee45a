//! Lines of C that a program has reached, by gcov.

use crate::library::Library;
use crate::tree::Error;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coverage {
    /// Its path.
    pub file: PathBuf,
    /// Lines with code.
    pub lines: usize,
    /// Numbers of those that were not reached, by function, in the order of the file.
    pub missed: Vec<(String, Vec<u32>)>,
}

impl Coverage {
    /// The share of lines that were reached.
    fn share(&self) -> f64 {
        let missed: usize = self.missed.iter().map(|(_, lines)| lines.len()).sum();
        1.0 - missed as f64 / self.lines.max(1) as f64
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.file.file_name().unwrap_or_default().display();
        let share = 100.0 * self.share();
        writeln!(f, "{name}: {share:.1} % of {} lines reached", self.lines)?;
        for (function, lines) in &self.missed {
            writeln!(f, "  not: {function} {}", ranges(lines))?;
        }
        Ok(())
    }
}

/// `3, 5-7`.
fn ranges(lines: &[u32]) -> String {
    let runs = lines.chunk_by(|one, next| one + 1 == *next);
    let text = runs.map(|run| match run {
        [only] => only.to_string(),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    text.collect::<Vec<_>>().join(", ")
}

impl Library {
    /// What was reached so far of each file of the tree and of the scheduler, if the library was
    /// built with `--coverage`.
    pub fn coverage(&self) -> Result<Vec<Coverage>, Error> {
        self.write_counts();
        let notes = files_with(self.dir(), "gcno")?;
        let mut command = Command::new("gcov");
        command
            .args(["-t", "-b"])
            .args(notes)
            .current_dir(self.dir());
        let output = command.output().map_err(Error::read(Path::new("gcov")))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(Error::Gcov(text.lines().take(5).collect()));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let mut files = of_gcov(&text);
        files.retain(|of| of.file.starts_with(&self.tree.dir) || of.file == self.file);
        Ok(files)
    }
}

fn files_with(dir: &Path, extension: &str) -> Result<Vec<PathBuf>, Error> {
    let entries = std::fs::read_dir(dir).map_err(Error::read(dir))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|of| of == extension))
        .collect();
    files.sort();
    Ok(files)
}

/// Lines with code, the function of each, and whether it was reached.
type Lines = BTreeMap<u32, (String, bool)>;

/// C files of what `gcov -t -b` prints: for each a head, then `COUNT: LINE:TEXT`, where a count of
/// `-` is no code, and one of `#####` or `=====` was not reached.
fn of_gcov(text: &str) -> Vec<Coverage> {
    let mut files: Vec<(PathBuf, Lines)> = Vec::new();
    let mut function = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("function ") {
            let name = rest.split(' ').next().unwrap_or_default();
            name.clone_into(&mut function);
        }
        let mut words = line.splitn(3, ':');
        let (Some(count), Some(number), Some(rest)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let Ok(number) = number.trim().parse::<u32>() else {
            continue;
        };
        if let (0, Some(source)) = (number, rest.strip_prefix("Source:")) {
            files.push((PathBuf::from(source), BTreeMap::new()));
            function.clear();
        }
        let (Some((_, lines)), true) = (files.last_mut(), number > 0 && count.trim() != "-") else {
            continue;
        };
        let reached = !count.contains(['#', '=']);
        // A line of an inlined function comes once for each place.
        let of_line = lines.entry(number).or_insert((function.clone(), false));
        of_line.1 |= reached;
    }
    files.retain(|(file, _)| file.extension().is_some_and(|of| of == "c"));
    let of_file = |(file, lines): (PathBuf, Lines)| {
        let mut missed: Vec<(String, Vec<u32>)> = Vec::new();
        let count = lines.len();
        for (number, (function, reached)) in lines {
            match missed.last_mut() {
                _ if reached => {}
                Some((last, lines)) if *last == function => lines.push(number),
                _ => missed.push((function, vec![number])),
            }
        }
        Coverage {
            file,
            lines: count,
            missed,
        }
    };
    files.into_iter().map(of_file).collect()
}

#[cfg(test)]
mod tests {
    use super::of_gcov;

    #[test]
    fn lines_that_were_not_reached_are_listed_by_function() {
        let text = "        -:    0:Source:/tree/block/a.c\n\
                    function f called 2 returned 100% blocks executed 50%\n        \
                    2:    3:int f(int a)\n        -:    4:{\n        2:    5:\tif (a)\n    \
                    #####:    6:\t\treturn g(1);\n    #####:    7:\treturn 2;\n        \
                    -:    0:Source:/tree/include/linux/a.h\n    #####:    1:int x;\n";
        let files = of_gcov(text);
        let printed: String = files.iter().map(ToString::to_string).collect();
        assert_eq!(printed, "a.c: 50.0 % of 4 lines reached\n  not: f 6-7\n");
    }
}
