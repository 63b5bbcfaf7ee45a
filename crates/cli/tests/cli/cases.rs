//! Runs every case of `tests/scenarios/*.txt`: shell commands with `blksim` in an empty directory,
//! and what they must print. docs/internals/cases.md describes the format.
//!
//! `CASES=words` runs only the cases of files or with sentences that contain these words.

mod expect;
mod format;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

use expect::Printed;
use format::{Case, Names, Step, read, substitute};

/// A command may take this long on a busy machine.
const LIMIT: Duration = Duration::from_mins(5);

fn command(step: &str, place: &Path) -> Printed {
    let program = Path::new(env!("CARGO_BIN_EXE_blksim"));
    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", program.parent().expect("a folder").display());
    let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let ran = Command::new("sh")
        .args(["-c", step])
        .current_dir(place)
        .envs([("PATH", path.as_str()), ("TREE", tree)])
        .timeout(LIMIT)
        .output();
    let ran = ran.expect("a shell");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Printed {
        code: ran.status.code(),
        stdout: text(ran.stdout),
        stderr: text(ran.stderr),
    }
}

/// What is wrong with a step: each line of it that does not hold, or one that the shell's exit code
/// contradicts.
fn wrong(step: &Step, printed: &Printed, names: &Names, of: &BTreeMap<String, Value>) -> String {
    let mut all = String::new();
    let mut note = |line: usize, what: &str| all += &format!("  line {line}: {what}\n");
    let mut codes = "0".to_owned();
    for (line, text) in &step.checks {
        match substitute(text, names) {
            Ok(text) if text.starts_with("exit ") => text["exit ".len()..].clone_into(&mut codes),
            Ok(text) => {
                if let Err(what) = expect::holds(&text, printed, of) {
                    note(*line, &format!("{text}\n    {what}"));
                }
            }
            Err(what) => note(*line, &what),
        }
    }
    let code = printed.code.map_or(String::new(), |code| code.to_string());
    if codes.split(' ').all(|wanted| wanted != code) {
        note(step.line, &format!("expected exit {codes}"));
    }
    if printed.stderr.contains("panicked") {
        note(step.line, "a panic");
    }
    all
}

/// One run of a case with these values; its differences.
fn run(case: &Case, names: &Names) -> Result<(), String> {
    let place = TempDir::new().expect("a temporary directory");
    for (file, content) in &case.files {
        let (name, mut content) = (substitute(file, names)?, substitute(content, names)?);
        for [_, old, new] in case.changes.iter().filter(|change| change[0] == *file) {
            let (old, new) = (substitute(old, names)?, substitute(new, names)?);
            if !content.contains(&old) {
                return Err(format!("no `{old}` in\n{content}"));
            }
            content = content.replacen(&old, &new, 1);
        }
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, content).expect("a file");
    }
    let mut of = BTreeMap::new();
    for step in &case.steps {
        let text = substitute(&step.command, names)?;
        let printed = command(&text, place.path());
        if let (Some(name), Ok(value)) = (&step.name, serde_json::from_str(&printed.stdout)) {
            of.insert(name.clone(), value);
        }
        let wrong = wrong(step, &printed, names, &of);
        if !wrong.is_empty() {
            let [out, err] = [&printed.stdout, &printed.stderr]
                .map(|text| text.chars().take(3000).collect::<String>());
            let code = printed.code;
            return Err(format!("$ {text}\n{wrong}  exit {code:?}\n{out}{err}"));
        }
    }
    Ok(())
}

/// Runs these cases of a file on both of a small machine's CPUs; the differences, and how many ran.
fn run_all(cases: &[(String, Case)]) -> (Vec<String>, usize) {
    let all = cases.iter().flat_map(|(file, case)| {
        let rows = case.rows().into_iter();
        rows.map(move |names| (file, case, names))
    });
    let (queue, failed) = (Mutex::new(all), Mutex::new((Vec::new(), 0)));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let work = || {
            loop {
                let next = queue.lock().expect("no panic").next();
                let Some((file, case, names)) = next else {
                    break;
                };
                let ran = run(case, &names);
                let mut failed = failed.lock().expect("no panic");
                failed.1 += 1;
                if let Err(what) = ran {
                    let Case { name, line, .. } = case;
                    failed.0.push(format!("{file}:{line}: {name}\n{what}"));
                }
            }
        };
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    failed.into_inner().expect("no panic")
}

/// All cases, each with the name of its file.
fn cases(long: bool) -> Vec<(String, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let files = std::fs::read_dir(&folder).expect("a readable folder");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("an entry").path()).collect();
    files.sort();
    let only = std::env::var("CASES").unwrap_or_default();
    let mut found = Vec::new();
    for path in files {
        let file = path.file_name().expect("a name").display().to_string();
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let of_file = read(&text).unwrap_or_else(|error| panic!("{file}:{error}"));
        let of_file = of_file.into_iter().filter(|case| case.long == long);
        let wanted = |case: &Case| file.contains(&only) || case.name.contains(&only);
        found.extend(of_file.filter(wanted).map(|case| (file.clone(), case)));
    }
    found
}

/// What a case needs and is not here.
fn missing(case: &Case) -> Option<&str> {
    let here = |name: &str| match name.contains('/') {
        true => Path::new(name).exists(),
        false => {
            let path = std::env::var_os("PATH").expect("a path");
            std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
        }
    };
    let mut needs = case.needs.iter().map(String::as_str);
    needs.find(|name| !here(name))
}

/// Whether a case can run here; it is an error where CI=true if a program is missing. A file may be
/// missing there: packages can be installed without their documentation.
fn runs_here(file: &str, case: &Case) -> bool {
    let Some(name) = missing(case) else {
        return true;
    };
    let ci = std::env::var("CI").as_deref() == Ok("true");
    let place = format!("{file}:{}: {}", case.line, case.name);
    assert!(!ci || name.contains('/'), "{place}: {name} is missing");
    println!("skipped: {place}: there is no {name}");
    false
}

fn all_hold(long: bool) {
    let mut cases = cases(long);
    cases.retain(|(file, case)| runs_here(file, case));
    let (failed, ran) = run_all(&cases);
    println!("{ran} runs");
    let count = failed.len();
    assert!(count == 0, "{count} of {ran}\n{}", failed.join("\n"));
}

#[test]
fn cases_print_what_they_say() {
    all_hold(false);
}

#[test]
#[ignore = "a minute: cargo xtask ci --full"]
fn long_cases_print_what_they_say() {
    all_hold(true);
}

/// A case file with one wrong line; the line that is reported.
#[test]
fn a_case_that_does_not_hold_is_reported_by_its_line() {
    let text = "file a/b.json\n    {\"x\": [{tens}, 20]}\nlet tens 10\n\
                case a sentence\nwhere last | of\n    20 | 2\n    7 | 2\n\
                a$ cat a/b.json\n/x/-1 = {last}\nlen /x = {of}\n\
                $ cat absent\nexit 1\nstderr has absent\na:/x/0 = 10\n";
    let cases = read(text).expect("a case");
    let cases: Vec<_> = cases.into_iter().map(|case| ("f".into(), case)).collect();
    let (failed, ran) = run_all(&cases);
    assert_eq!((failed.len(), ran), (1, 2), "{failed:?}");
    let words = "f:4: a sentence\n$ cat a/b.json\n  line 9: /x/-1 = 7\n    20 = 7\n";
    assert!(failed[0].starts_with(words), "{failed:?}");
    let wrong = text.replace("exit 1\n", "");
    let cases = read(&wrong).expect("a case").into_iter();
    let (failed, _) = run_all(&cases.map(|case| ("f".into(), case)).collect::<Vec<_>>());
    let wanted = |what: &String| what.contains("line 11: expected exit 0");
    assert!(failed.iter().any(wanted), "{failed:?}");
}

#[test]
fn a_case_that_needs_what_is_not_here_is_found() {
    let text = "case a\nneeds sh /bin/sh\n$ true\ncase b\nneeds sh no-such\n$ true\n\
                case c\nneeds /no/such\n$ true\n";
    let cases = read(text).expect("cases");
    let found: Vec<_> = cases.iter().map(missing).collect();
    assert_eq!(found, [None, Some("no-such"), Some("/no/such")]);
}
