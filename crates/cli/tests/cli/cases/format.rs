//! The text of a file of cases.

/// Names and their values, the nearest first.
pub(super) type Names = Vec<(String, String)>;

/// A command, and the lines that must hold after it.
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) name: Option<String>,
    pub(super) command: String,
    pub(super) checks: Vec<(usize, String)>,
}

#[derive(Default)]
pub(super) struct Case {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) long: bool,
    /// Programs, and files by their paths, that must be here for it to run.
    pub(super) needs: Vec<String>,
    pub(super) files: Vec<(String, String)>,
    /// A file, and a text of it with another in its place.
    pub(super) changes: Vec<[String; 3]>,
    names: Names,
    tables: Vec<Vec<Names>>,
    pub(super) steps: Vec<Step>,
}

impl Case {
    /// The values of each run: every combination of rows of its tables.
    pub(super) fn rows(&self) -> Vec<Names> {
        let mut all = vec![Vec::new()];
        for table in &self.tables {
            let with = |names: &Names| {
                let rows = table.iter();
                rows.map(|row| [names.clone(), row.clone()].concat())
                    .collect::<Vec<_>>()
            };
            all = all.iter().flat_map(with).collect();
        }
        let names = all.into_iter();
        names
            .map(|names| [names, self.names.clone()].concat())
            .collect()
    }
}

/// A text with the value of each `{name}`, values included.
pub(super) fn substitute(text: &str, names: &Names) -> Result<String, String> {
    let mut text = text.to_owned();
    for _ in 0..4 {
        for (name, value) in names {
            text = text.replace(&format!("{{{name}}}"), value);
        }
    }
    let lower = |c: char| c.is_ascii_lowercase() || c == '_';
    let left = text
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'));
    match left
        .map(|(name, _)| name)
        .find(|name| !name.is_empty() && name.chars().all(lower))
    {
        Some(name) => Err(format!("`{{{name}}}` has no value")),
        None => Ok(text),
    }
}

/// `\n` in a cell, a value or an expected text is a line break, `""` an empty one.
fn unescape(text: &str) -> String {
    match text.trim() {
        "\"\"" => String::new(),
        text => text.replace("\\n", "\n"),
    }
}

fn cells(line: &str) -> Vec<String> {
    let line = format!(" {} ", line.trim());
    line.split(" | ").map(unescape).collect()
}

/// The cases of a file, or its first error with the line.
pub(super) fn read(text: &str) -> Result<Vec<Case>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut shared, mut all, mut at) = (Case::default(), Vec::<Case>::new(), 0);
    while at < lines.len() {
        let (line, number) = (lines[at], at + 1);
        at += 1;
        let mut block = Vec::new();
        let indented = |at: usize| lines.get(at).and_then(|line| line.strip_prefix("    "));
        let blank = |at: usize| lines.get(at).filter(|line| line.is_empty()).copied();
        while let Some(line) = indented(at).or(indented(at + 1).and(blank(at))) {
            block.push(line);
            at += 1;
        }
        let read = match (line.split_once(' ').unwrap_or((line, "")), all.last_mut()) {
            (("case", name), _) => {
                let (files, names) = (shared.files.clone(), shared.names.clone());
                let (line, name) = (number, name.to_owned());
                all.push(Case {
                    line,
                    name,
                    files,
                    names,
                    ..Case::default()
                });
                block.is_empty().then_some(()).ok_or(String::new())
            }
            (("" | "#", _), _) => block.is_empty().then_some(()).ok_or(String::new()),
            (("file" | "let", _), None) => shared.line(number, line, &block),
            (_, Some(case)) => case.line(number, line, &block),
            (_, None) => Err(String::new()),
        };
        read.map_err(|why| format!("{number}: `{line}` is no line of a case {why}"))?;
    }
    match all
        .iter()
        .find(|case| case.steps.is_empty() || case.name.is_empty())
    {
        Some(case) => Err(format!(
            "{}: a case has a sentence and a command",
            case.line
        )),
        None => Ok(all),
    }
}

impl Case {
    /// A line with its indented ones.
    fn line(&mut self, number: usize, line: &str, block: &[&str]) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let takes_block = matches!(word, "file" | "where" | "stdout" | "stderr");
        if !block.is_empty() && !takes_block {
            return Err("with indented lines".to_owned());
        }
        match word {
            "file" | "let" | "where" | "change" | "long" | "needs" if !self.steps.is_empty() => {
                return Err("after a command".to_owned());
            }
            "file" => {
                let content = block.iter().map(|line| format!("{line}\n")).collect();
                self.files.retain(|(name, _)| name != rest);
                self.files.push((rest.to_owned(), content));
            }
            "let" => {
                let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
                self.names.insert(0, (name.to_owned(), unescape(value)));
            }
            "change" => {
                let (file, texts) = rest.split_once(' ').ok_or("without texts")?;
                let (old, new) = texts.split_once(" => ").ok_or("without =>")?;
                self.changes
                    .push([file.to_owned(), unescape(old), unescape(new)]);
            }
            "where" => self.tables.push(table(rest, block)?),
            "long" if rest.is_empty() => self.long = true,
            "needs" => self.needs.extend(rest.split(' ').map(str::to_owned)),
            _ if word.ends_with('$') => {
                let name = word.trim_end_matches('$');
                let name = (!name.is_empty()).then(|| name.to_owned());
                let (line, command, checks) = (number, rest.to_owned(), Vec::new());
                self.steps.push(Step {
                    line,
                    name,
                    command,
                    checks,
                });
            }
            _ => {
                let step = self.steps.last_mut().ok_or("without a command")?;
                let text = [&[line], block].concat().join("\n");
                step.checks.push((number, text));
            }
        }
        Ok(())
    }
}

fn table(head: &str, rows: &[&str]) -> Result<Vec<Names>, String> {
    let names = cells(head);
    let row = |line: &&str| {
        let row = cells(line);
        let pairs = || names.iter().cloned().zip(row.clone()).collect();
        (row.len() == names.len()).then(pairs)
    };
    let rows: Option<Vec<Names>> = rows.iter().map(row).collect();
    let rows = rows.filter(|rows| !rows.is_empty());
    rows.ok_or(format!("with rows of {} cells", names.len()))
}

#[test]
fn files_that_are_no_cases_are_refused_with_the_line() {
    for (text, what) in [
        ("run\n", "1: `run` is no line"),
        ("case a\n", "1: a case has a sentence and a command"),
        ("case\n$ true\n", "1: a case has a sentence and a command"),
        (
            "case a\nlet x 1\n    y\n$ true\n",
            "2: `let x 1` is no line of a case with ind",
        ),
        (
            "case a\nwhere x | y\n    1\n$ true\n",
            "with rows of 2 cells",
        ),
        ("case a\nwhere x\n$ true\n", "with rows of 1 cells"),
        ("where x\n    1\n", "1: `where x` is no line"),
        (
            "case a\nchange x y\n",
            "2: `change x y` is no line of a case without =>",
        ),
        (
            "case a\nexit 2\n",
            "2: `exit 2` is no line of a case without a command",
        ),
        (
            "case a\n$ true\nlet x 1\n",
            "3: `let x 1` is no line of a case after a command",
        ),
        ("needs jq\ncase a\n$ true\n", "1: `needs jq` is no line"),
        ("# a\n    b\n", "1: `# a` is no line"),
    ] {
        let error = read(text).err().unwrap_or_default();
        assert!(error.contains(what), "{text}: {error}");
    }
    let names = [("a", "{b}"), ("b", "1")].map(|(name, value)| (name.into(), value.into()));
    let names = names.to_vec();
    assert_eq!(
        substitute("{a} { c = {b} }", &names),
        Ok("1 { c = 1 }".to_owned())
    );
    assert_eq!(
        substitute("{c}", &names),
        Err("`{c}` has no value".to_owned())
    );
}
