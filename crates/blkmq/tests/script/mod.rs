//! The format of scripts: blocks of commands, `----`, and the lines they must print.
//!
//! A blank line ends a block; `#` starts a comment anywhere in the commands. The first command of a
//! file creates the world that the others act on; the same word later begins a new one. Not here:
//! the effect of a command; that is a [`World`], one file for each kind of script.

pub(crate) mod layer;
pub(crate) mod multipath;
pub(crate) mod policy;

/// Line between commands and their output.
const RULE: &str = "----";
const NO_WORLD: &str = "the first command creates what the others act on: queue ...";

/// The objects of one kind of script.
pub(crate) trait World {
    /// Carries out one command; returns its output. An error ends the script.
    fn command(&mut self, line: &str) -> Result<Vec<String>, String>;
}

/// The world that a command creates, if it is one of those that do.
fn create_world(line: &str) -> Option<Result<Box<dyn World>, String>> {
    match line.split_whitespace().next()? {
        "queue" => Some(policy::PolicyQueue::create(line)),
        "layer" => Some(layer::Layer::create(line)),
        "multipath" => Some(multipath::Target::create(line)),
        _ => None,
    }
}

#[derive(Debug)]
pub(crate) struct Script {
    blocks: Vec<Block>,
}

/// Commands and their expected output.
#[derive(Debug)]
struct Block {
    /// Number of the first line.
    first_line: usize,
    /// Comments and commands as written.
    commands: Vec<String>,
    expected: Vec<String>,
}

/// The result of running a script.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// One entry for each block with other output, with its line number.
    pub(crate) differences: Vec<String>,
    /// The script with the actual output.
    pub(crate) text: String,
}

impl Script {
    /// Reads a script. Errors start with the line number.
    pub(crate) fn parse(text: &str) -> Result<Script, String> {
        if !text.starts_with("# ") {
            return Err("1: a script starts with a comment that states its rule".to_owned());
        }
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let mut blocks = Vec::new();
        let mut at = 0;
        while at < lines.len() {
            if lines[at].is_empty() {
                at += 1;
                continue;
            }
            let paragraph: Vec<&str> = lines[at..]
                .iter()
                .copied()
                .take_while(|line| !line.is_empty())
                .collect();
            let rule = paragraph.iter().position(|&line| line == RULE);
            let rule = rule.ok_or_else(|| format!("{}: no {RULE} line in this block", at + 1))?;
            let owned = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect();
            blocks.push(Block {
                first_line: at + 1,
                commands: owned(&paragraph[..rule]),
                expected: owned(&paragraph[rule + 1..]),
            });
            at += paragraph.len();
        }
        Ok(Script { blocks })
    }

    /// Runs all blocks. Errors start with the line number.
    pub(crate) fn run(&self) -> Result<Outcome, String> {
        let mut world: Option<Box<dyn World>> = None;
        let mut outcome = Outcome {
            differences: Vec::new(),
            text: String::new(),
        };
        for block in &self.blocks {
            let mut printed = Vec::new();
            let mut last_line = block.first_line;
            for (offset, command) in block.commands.iter().enumerate() {
                let bare = command.split('#').next().unwrap_or_default().trim();
                if bare.is_empty() {
                    continue;
                }
                last_line = block.first_line + offset;
                let with_line = |error| format!("{last_line}: {error}");
                if let Some(created) = create_world(bare) {
                    world = Some(created.map_err(with_line)?);
                    continue;
                }
                let world = world
                    .as_mut()
                    .ok_or_else(|| with_line(NO_WORLD.to_owned()))?;
                printed.extend(world.command(bare).map_err(with_line)?);
            }
            if printed != block.expected {
                let indented = |lines: &[String]| {
                    lines
                        .iter()
                        .map(|line| format!("\n    {line}"))
                        .collect::<String>()
                };
                let (expected, got) = (indented(&block.expected), indented(&printed));
                let difference = format!("{last_line}: expected{expected}\n  got{got}");
                outcome.differences.push(difference);
            }
            block.write(&printed, &mut outcome.text);
        }
        Ok(outcome)
    }
}

impl Block {
    /// Appends the block with the actual output.
    fn write(&self, printed: &[String], text: &mut String) {
        if !text.is_empty() {
            text.push('\n');
        }
        let rule = [RULE.to_owned()];
        for line in self.commands.iter().chain(&rule).chain(printed) {
            text.push_str(line);
            text.push('\n');
        }
    }
}
